//! Where the reuse of prompts is lost: a bar for each step, and what was lost for each cause with the way to the decision that lost
//! most. Everything is computed by core; this shows it.

use leptos::prelude::*;
use radixscope_export::panel::reuse::{self, CAPTION, LossLine, ReusePanel, StepLine, TITLE};
use radixscope_state::cluster::DecisionEntry;

use crate::format;
use crate::store::{Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{EmptyPanel, Figure, PanelHead, Waiting, prose};
use crate::view::time_chart::shown_span;
use crate::view::time_menu::TimeMenu;

/// The panel.
#[component]
pub fn ReusePanelView(store: Store) -> impl IntoView {
    let span = shown_span(store);
    let session = Memo::new(move |_| store.address.with(|address| address.session.clone()));
    let panel = Memo::new(move |_| {
        let (span, picked) = (span.get(), store.picked());
        session.with(|session| {
            let is_meant = |decided: &DecisionEntry| {
                (span.from..=span.until).contains(&decided.decided_ms())
                    && picked.is_none_or(|picked| picked == decided.decision.worker)
                    && (session.is_empty() || decided.decision.session.as_ref() == Some(session))
            };
            store.on_beat(|shown| ReusePanel::of(shown, is_meant, time_of_day))
        })
    });
    let share = move |at: usize| {
        Memo::new(move |_| {
            panel.with(|panel| {
                panel.steps.get(at).map_or(format::UNKNOWN.to_owned(), |step| step.text.clone())
            })
        })
    };
    let of_all = move || {
        panel.with(|panel| {
            format!("Of the prompts of {}", format::plural(panel.decisions.into(), "decision", "decisions"))
        })
    };
    let title = Memo::new(move |_| of_all());
    let any = Memo::new(move |_| panel.with(|panel| panel.decisions > 0));
    let all_of_session = move |_| store.address.update(|address| address.session.clear());
    view! {
        <section class="panel reuse" aria-labelledby="reuse-title" data-testid="reuse">
            <PanelHead store panel=Panel::Reuse title=TITLE>
                <Figure id="reuse-held" label="of prompt tokens cached on the chosen worker" value=share(4) title/>
                <Figure id="reuse-reused" label="reused by engines" value=share(5) title/>
            </PanelHead>
            <div class="chart-tools">
                <TimeMenu store span/>
                {move || session.with(|session| (!session.is_empty()).then(|| {
                    let text = format!("Session {session}: show all");
                    view! { <button class="plain" data-testid="reuse-all-sessions" on:click=all_of_session>{text}</button> }
                }))}
            </div>
            <div class="scroll reuse-scroll" tabindex="0" role="region" aria-label="Steps from prompts to reused tokens, and causes of losses">
                <Show when=move || any.get() fallback=move || view! { <Nothing store/> }>
                    <p class="caption">{CAPTION}{move || format!(". {}.", of_all())}</p>
                    <ol class="reuse-steps">
                        {move || panel.with(|panel| panel.steps.iter().map(step).collect_view())}
                    </ol>
                    <Losses store panel/>
                    <div class="reuse-notes">
                        {move || panel.with(|panel| panel.notes.iter().map(|note| view! { <p data-testid="reuse-note">{note.clone()}</p> }).collect_view())}
                    </div>
                </Show>
            </div>
        </section>
    }
}

fn step(line: &StepLine) -> impl IntoView + use<> {
    let StepLine { step, share, text, tokens } = line.clone();
    let width = format::width(share.unwrap_or(0.0));
    view! {
        <li data-testid=format!("reuse-step-{}", step.as_str())>
            <span class="name">{step.label()}</span>
            <span class="reuse-bar" class:unknown=share.is_none() aria-hidden="true"><i style=format!("width:{width}")></i></span>
            <b>{text}</b>
            <span class="quiet">{tokens}</span>
        </li>
    }
}

#[component]
fn Losses(store: Store, panel: Memo<ReusePanel>) -> impl IntoView {
    let row = move |line: &LossLine| {
        let LossLine { cause, share, tokens, decisions, prefill, largest: (id, most) } = line.clone();
        let open = move |_| {
            store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
        };
        view! {
            <tr data-testid=format!("reuse-loss-{}", cause.as_str())>
                <th scope="row"><b>{cause.label()}</b><span class="cell-sub">{cause.sentence()}</span></th>
                <td class="n"><b>{share}</b></td>
                <td class="n">{tokens}</td>
                <td class="n middle">{decisions}</td>
                <td class="n middle">{prefill}</td>
                <td class="n"><button class="plain" title="Open the decision that lost most" on:click=open>{most}</button></td>
                <td class="reuse-remedy wide">{cause.remedy().map(prose)}</td>
            </tr>
        }
    };
    view! {
        <table class="reuse-table" data-testid="reuse-losses">
            <thead><tr>
                <th scope="col">"Why tokens were computed"</th>
                <th scope="col" class="n" title="Of all tokens of the prompts">"Share"</th>
                <th scope="col" class="n">"Tokens"</th>
                <th scope="col" class="n middle">"Decisions"</th>
                <th scope="col" class="n middle" title="Estimated prefill time for each request summed">"Prefill a request"</th>
                <th scope="col" class="n" title="Tokens of the decision that lost most">"Most in one"</th>
                <th scope="col" class="wide">"What helps"</th>
            </tr></thead>
            <tbody>{move || panel.with(|panel| panel.losses.iter().map(row).collect_view())}</tbody>
        </table>
    }
}

#[component]
fn Nothing(store: Store) -> impl IntoView {
    view! {
        <Show when=move || store.ready() fallback=|| view! { <Waiting id="reuse-wait"/> }>
            <EmptyPanel text=reuse::empty()/>
        </Show>
    }
}
