//! What to set when memory is short: each remedy, what the live figures say of it, and the setting to copy. Nothing is applied.

use leptos::prelude::*;
use radixscope_insight::capacity::{Advice, Remedy, TEST_FIRST, remedies};
use radixscope_insight::memory;

use super::Calculator;
use crate::view::clipboard::copy;
use crate::view::control::view;

#[component]
pub(super) fn Remedies(calculator: Calculator) -> impl IntoView {
    let store = calculator.store;
    let judged = Memo::new(move |_| {
        store.on_beat(|cluster| remedies(&memory::live(cluster, cluster.pool, store.now_ms())))
    });
    let of_pool = move || {
        let drawn = store.pool();
        store.labels.with(|all| {
            all.iter().find(|label| label.pool == drawn).map(|label| format!(", pool {}", label.short))
        })
    };
    let is_asked_for =
        Memo::new(move |_| judged.with(|all| all.iter().any(|remedy| remedy.advice == Advice::Suggested)));
    let engine = Memo::new(move |_| calculator.form.with(|form| form.engine));
    let copied = RwSignal::new(String::new());
    let one = move |remedy: Remedy| {
        let (icon, class) = match remedy.advice {
            Advice::Suggested => ("▲", "suggested"),
            Advice::NotIndicated => ("–", "not-indicated"),
            Advice::Unknown => ("?", "unknown"),
        };
        let settings = move || {
            let of_engine =
                remedy.kind.settings().iter().filter(move |setting| setting.engine == engine.get());
            of_engine
                .map(|setting| {
                    let put = move |_| {
                        copied.set(match copy(setting.text) {
                            true => format!("Copied: {}", setting.text),
                            false => "The browser lets pages copy over HTTPS or localhost only; select the text instead.".to_owned(),
                        });
                    };
                    view! {
                        <li>
                            <code class="cap-setting">{setting.text}</code>
                            <button type="button" class="plain" data-testid="cap-copy" on:click=put aria-label=format!("Copy {}", setting.text)>"Copy"</button>
                            <span class="quiet">{setting.does}</span>
                        </li>
                    }
                })
                .collect_view()
        };
        view! {
            <li class=format!("cap-remedy {class}") data-testid="cap-remedy">
                <p><span aria-hidden="true">{icon}</span>" "<b>{remedy.kind.label()}</b>" "<span class="cap-advice">{remedy.advice.label()}</span></p>
                <p class="quiet">{remedy.why}</p>
                <ul class="cap-settings">{move || settings()}</ul>
            </li>
        }
    };
    view! {
        <section class="cap-remedies" aria-label="Remedies">
            <details prop:open=is_asked_for data-testid="cap-remedies">
                <summary><h4>"If memory is short, with "{move || engine.get().label()}{move || of_pool()}</h4></summary>
                <p class="quiet">{TEST_FIRST}</p>
                <ol>{move || judged.get().into_iter().map(one).collect_view()}</ol>
            </details>
            <p class="quiet" data-testid="cap-no-finding">{move || (!is_asked_for.get()).then_some("No active finding says that memory is short.")}</p>
            <p class="help-line" aria-live="polite" data-testid="cap-copied">{copied}</p>
        </section>
    }
}
