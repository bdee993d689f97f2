//! Where the reuse of prompts is lost: a bar for each step, how it went over time, what was lost for each cause with the way to the
//! decision that lost most, and whose sessions lost most. Everything is computed by core; this shows it.

use leptos::prelude::*;
use radixscope_export::panel::reuse::{
    CAPTION, LossLine, ReusePanel, SessionLine, StepLine, TITLE, TREND_PARTS, empty,
};
use radixscope_insight::reuse::Step;
use radixscope_panels::reuse::{
    self, FIGURES, TREND, TrendBar, all_sessions_text, figure, span_text, summed_over, trend,
};

use crate::store::{Store, now_ms, zone};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{EmptyPanel, Figure, PanelHead, Waiting, prose};
use crate::view::session_turns::SessionTurns;
use crate::view::time_chart::shown_span;
use crate::view::time_menu::TimeMenu;

/// The panel.
#[component]
pub fn ReusePanelView(store: Store) -> impl IntoView {
    let span = shown_span(store);
    let session = Memo::new(move |_| store.address.with(|address| address.session.clone()));
    // How long the last look took, for measurements.
    let took = StoredValue::new(0.0);
    let panel = Memo::new(move |_| {
        let (span, picked) = (span.get(), store.picked());
        session.with(|session| {
            let began = now_ms();
            let panel = store.on_beat(|shown| reuse::panel(shown, span, picked, session, zone()));
            took.set_value(now_ms() - began);
            panel
        })
    });
    let of_all = Memo::new(move |_| panel.with(summed_over));
    let figure = move |(id, label, at): (&'static str, &'static str, usize)| {
        let value = Memo::new(move |_| panel.with(|panel| figure(panel, at)));
        view! { <Figure id label value title=of_all/> }
    };
    let any = Memo::new(move |_| panel.with(|panel| panel.decisions > 0));
    let all_of_session = move |_| store.address.update(|address| address.session.clear());
    view! {
        <section class="panel reuse" aria-labelledby="reuse-title" data-testid="reuse" data-took-ms=move || panel.with(|_| format!("{:.3}", took.get_value()))>
            <PanelHead store panel=Panel::Reuse title=TITLE>
                {FIGURES.map(figure).collect_view()}
            </PanelHead>
            <div class="chart-tools">
                <TimeMenu store span/>
                {move || session.with(|session| all_sessions_text(session)).map(|text| view! {
                    <button class="plain" data-testid="reuse-all-sessions" on:click=all_of_session>{text}</button>
                })}
            </div>
            <div class="scroll reuse-scroll" tabindex="0" role="region" aria-label="Steps from prompts to reused tokens, and causes of losses">
                <Show when=move || any.get() fallback=move || view! { <Nothing store/> }>
                    <p class="caption">{CAPTION}{move || format!(". {}.", of_all.get())}</p>
                    <ol class="reuse-steps">
                        {move || panel.with(|panel| panel.steps.iter().map(step).collect_view())}
                    </ol>
                    <OverTime panel span/>
                    {move || panel.with(|panel| (!panel.half.is_empty()).then(|| view! { <p data-testid="reuse-half">{prose(&panel.half)}</p> }))}
                    <Losses store panel/>
                    <SessionTurns store/>
                    <SessionLosses store panel/>
                    <div class="reuse-notes">
                        {move || panel.with(|panel| panel.notes.iter().map(|note| view! { <p data-testid="reuse-note">{note.clone()}</p> }).collect_view())}
                    </div>
                </Show>
            </div>
        </section>
    }
}

fn step(line: &StepLine) -> impl IntoView + use<> {
    let width = reuse::bar(line);
    let StepLine { step, share, text, tokens } = line.clone();
    view! {
        <li data-testid=format!("reuse-step-{}", step.as_str())>
            <span class="name">{step.label()}</span>
            <span class="reuse-bar" class:unknown=share.is_none() aria-hidden="true"><i style=format!("width:{width}")></i></span>
            <b>{text}</b>
            <span class="quiet">{tokens}</span>
        </li>
    }
}

/// The shares of the steps over time: each bar a part of it, one in the other.
#[component]
fn OverTime(panel: Memo<ReusePanel>, span: Memo<TimeSpan>) -> impl IntoView {
    let bar = |TrendBar { at, title, parts }| {
        let rect = |(class, height): (&'static str, f64)| {
            view! { <rect class=class x=at.to_string() y=(100.0 - height).to_string() width="0.92" height=height.to_string()/> }
        };
        view! { <g><title>{title}</title>{parts.map(rect).collect_view()}</g> }
    };
    let bars = move || panel.with(|panel| trend(panel, zone())).into_iter().map(bar).collect_view();
    let span = move || span_text(span.get(), zone());
    let entry = |(_, step, class): (usize, Step, &'static str)| view! { <span><i class=class aria-hidden="true"></i>{step.label()}</span> };
    view! {
        <figure class="reuse-trend">
            <svg viewBox=format!("0 0 {TREND_PARTS} 100") preserveAspectRatio="none" role="img" data-testid="reuse-trend"
                aria-label=move || format!("Shares of prompt tokens over time, {}", span())>{move || bars()}</svg>
            <figcaption class="quiet">{move || span()} {TREND.map(entry).collect_view()}</figcaption>
        </figure>
    }
}

/// Sessions that lost most, each with the way to its requests.
#[component]
fn SessionLosses(store: Store, panel: Memo<ReusePanel>) -> impl IntoView {
    let is_any = Memo::new(move |_| {
        store.address.with(|address| address.session.is_empty())
            && panel.with(|panel| !panel.sessions.is_empty())
    });
    let row = move |line: &SessionLine| {
        let SessionLine { session, text } = line.clone();
        let name = session.clone();
        let open = move |_| store.address.update(|address| address.session.clone_from(&name));
        view! {
            <li>
                <button class="plain mono" data-testid="reuse-session" title="Its requests one by one" on:click=open>{session}</button>
                <span class="quiet">{text}</span>
            </li>
        }
    };
    view! {
        <Show when=move || is_any.get()>
            <h3>"Sessions that lost most"</h3>
            <ul class="reuse-sessions" data-testid="reuse-sessions">
                {move || panel.with(|panel| panel.sessions.iter().map(row).collect_view())}
            </ul>
        </Show>
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
    let text = move || empty(store.peek(|shown| shown.has_no_router()));
    view! {
        <Show when=move || store.ready() fallback=|| view! { <Waiting id="reuse-wait"/> }>
            <EmptyPanel text=text()/>
        </Show>
    }
}
