//! What to set when memory is short: each remedy, what the live figures say of it, and the setting to copy. Nothing is applied.

use leptos::prelude::*;
use radixscope_insight::capacity::TEST_FIRST;
use radixscope_panels::memory::{self as panel, RemedyRow, settings};

use super::Calculator;
use crate::view::clipboard::copy;
use crate::view::control::view;

#[component]
pub(super) fn Remedies(calculator: Calculator) -> impl IntoView {
    let Calculator { store, shown } = calculator;
    let judged = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|shown| panel::Remedies::of(shown, now))
    });
    let is_suggested = Memo::new(move |_| judged.with(|all| all.is_suggested));
    let engine = Memo::new(move |_| shown.with(|shown| shown.form.engine));
    let heading = move || {
        let drawn = store.pool();
        store
            .labels
            .with(|all| panel::Remedies::heading(engine.get(), all.iter().find(|label| label.pool == drawn)))
    };
    let copied = RwSignal::new(String::new());
    let one = move |remedy: RemedyRow| {
        let settings = move || {
            settings(remedy.kind, engine.get())
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
            <li class=format!("cap-remedy {}", remedy.class) data-testid="cap-remedy">
                <p><span aria-hidden="true">{remedy.icon}</span>" "<b>{remedy.kind.label()}</b>" "<span class="cap-advice">{remedy.advice}</span></p>
                <p class="quiet">{remedy.why}</p>
                <ul class="cap-settings">{move || settings()}</ul>
            </li>
        }
    };
    view! {
        <section class="cap-remedies" aria-label="Remedies">
            <details prop:open=is_suggested data-testid="cap-remedies">
                <summary><h4>{move || heading()}</h4></summary>
                <p class="quiet">{TEST_FIRST}</p>
                <ol>{move || judged.get().rows.into_iter().map(one).collect_view()}</ol>
            </details>
            <p class="quiet" data-testid="cap-no-finding">{move || judged.with(panel::Remedies::note)}</p>
            <p class="help-line" aria-live="polite" data-testid="cap-copied">{copied}</p>
        </section>
    }
}
