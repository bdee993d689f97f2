//! The latest decisions under other router settings: exact on the state each saw, and in a model that reacts.
//! Computed beside the page, on request, and retained with its time until it is computed again.

mod changed;
mod controls;
mod fetch;
mod heat;
mod recommended;
mod run;
mod table;

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{
    About, FIXED_STATE_LIMITS, Fact, ModelReport, calibration_to_text, headline, hint, not_judged,
};

use changed::ChangedDecisions;
use controls::{Controls, Inputs};
use heat::AllSettings;
use recommended::Recommended;
use run::{Done, RunProgress, Runner};
use table::Comparison;

use radixscope_state::cluster::DecisionEntry;

use crate::format;
use crate::store::{Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, PanelHead, Waiting};
use crate::view::hint::HintList;

/// The panel.
#[component]
pub fn CounterfactualPanel(store: Store) -> impl IntoView {
    let runner = Runner::new(store);
    let inputs = Inputs::new();
    let compute = Callback::new(move |()| match inputs.request() {
        Ok(request) => runner.compute(request, || ()),
        Err(error) => runner.error.set(Some(error)),
    });
    let sweep = Callback::new(move |()| match inputs.span() {
        Ok(span) => runner.sweep(span),
        Err(error) => runner.error.set(Some(error)),
    });
    let known = Memo::new(move |_| store.on_beat(|shown| shown.decision_sums().count > 0));
    // Once, for whoever opens the panel, and for each pool and moment; never again by itself.
    Effect::new(move |_| {
        runner.show_only(store.debounced_at.get());
        if store.ready()
            && known.get()
            && !runner.has_begun()
            && let Ok(request) = inputs.request()
        {
            runner.compute(request, move || runner.sweep(request.span));
        }
    });
    let replay = Memo::new(move |_| runner.replay.get().map(|done| done.report));
    let model = Memo::new(move |_| runner.model.get().map(|done| done.report));
    let newer = Memo::new(move |_| {
        let to = replay.with(|report| report.as_ref().and_then(|report| report.about.to_ms));
        to.map_or(0, |to| {
            let pool = store.compared_pool();
            let is_meant = |d: &&DecisionEntry| pool.is_none_or(|pool| d.pool == pool);
            store.on_beat(|shown| {
                let newer = shown.decisions().newest_first().take_while(|d| d.decided_ms() > to);
                newer.filter(is_meant).count()
            })
        })
    });
    let again = Memo::new(move |_| runner.replay.with(Option::is_some));
    let busy = Memo::new(move |_| runner.step.with(Option::is_some));
    let stamp = move || {
        runner.replay.get().map(|done| {
            let newer = match newer.get() {
                0 => String::new(),
                n => format!(" {} since.", format::plural(n as u64, "newer decision", "newer decisions")),
            };
            view! {
                <p class="quiet" data-testid="cf-stamp" data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>
                    {format!("{}{newer}", stamped(&done, &done.report.about))}
                </p>
            }
        })
    };
    view! {
        <section class="panel counterfactual" aria-labelledby="counterfactual-title" data-testid="counterfactual">
            <PanelHead store panel=Panel::Counterfactual title="Counterfactual">
                <span class="quiet cf-sub">"The latest decisions under other router settings"</span>
            </PanelHead>
            <Show when=move || known.get() fallback=move || view! { <Nothing store/> }>
                <div class="scroll cf-scroll">
                    <div class="cf-answer">
                        {move || runner.sweep.get().map(|done| view! { <Recommended report=done.report/> })}
                        {move || replay.get().map(|report| view! { <p class="cf-headline" data-testid="cf-headline">{headline(&report)}</p> })}
                    </div>
                    <div class="cf-top">
                        <Controls store inputs busy again compute sweep><Progress runner/></Controls>
                        {move || runner.error.get().map(|error| view! { <p class="cf-error" role="alert" data-testid="cf-error">{error}</p> })}
                    </div>
                    <div class="cf-columns" class:with-model=move || runner.model.with(Option::is_some)>
                        <div class="cf-column">
                            {move || stamp()}
                            {move || replay.get().map(|report| view! { <About about=report.about.clone()/> })}
                            <Comparison store replay model/>
                        </div>
                        <div class="cf-column">
                            {move || replay.get().filter(|report| report.about.judged > 0).map(|report| view! { <ChangedDecisions store report/> })}
                            {move || runner.sweep.get().map(|done| {
                                let stamp = format!("Sweep. {}", stamped(&done, &done.report.about));
                                let choose = Callback::new(move |setting| inputs.set(setting));
                                view! {
                                    <p class="quiet" data-testid="cf-sweep-stamp" data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>{stamp}</p>
                                    <AllSettings report=done.report choose/>
                                }
                            })}
                            {move || again.get().then(|| view! { <Limits/> })}
                            {move || runner.model.get().map(|done| view! { <Assumptions done/> })}
                        </div>
                    </div>
                </div>
            </Show>
        </section>
    }
}

fn stamped<T>(done: &Done<T>, about: &About) -> String {
    let clock = |at: Option<_>| at.map_or(format::UNKNOWN.to_owned(), time_of_day);
    format!(
        "Computed at {} on {}{}, {}–{}, record {}.",
        clock(Some(done.at_ms)),
        format::plural(about.considered, "decision", "decisions"),
        done.pool.as_ref().map_or(String::new(), |pool| format!(" in pool {pool}")),
        clock(about.from_ms),
        clock(about.to_ms),
        format::count(about.seq.0)
    )
}

/// What was judged and what not.
#[component]
fn About(about: About) -> impl IntoView {
    let mut sentences = Vec::new();
    sentences.extend(not_judged(&about));
    if about.reconstructed > 0 {
        sentences.push(format!(
            "Candidates of {} were computed here from the tree and the requests in flight, not written by the router.",
            format::count(about.reconstructed)
        ));
    }
    if about.recorded_settings > 1 {
        sentences.push("Not all decisions were made with the same formula and weight.".to_owned());
    }
    if about.running > 0 {
        sentences.push(format!("{} in flight.", format::plural(about.running, "request", "requests")));
    }
    let hint = hint(&about);
    view! {
        <p class="caption cf-about" data-testid="cf-about">{sentences.join(" ")}</p>
        {hint.map(|hint| view! { <Empty id="cf-no-candidates" head="No decision with all its candidates"><p>{hint}</p></Empty> })}
    }
}

/// What is under way, with its end in sight and a way to end it.
#[component]
fn Progress(runner: Runner) -> impl IntoView {
    let step = runner.step;
    view! {
        <div class="cf-progress" data-testid="cf-progress" aria-live="polite">
            {move || step.get().map(|RunProgress { what, step, steps, part }| {
                let text = if steps > 1 { format!("{step} of {steps}: {what}") } else { what };
                view! {
                    <span>{text}</span>
                    <progress aria-label="Progress" max=part.map(|(_, total)| total.max(1).to_string()) value=part.map(|(done, _)| done.to_string())></progress>
                }
            })}
            <Show when=move || step.with(Option::is_some)>
                <button type="button" class="cf-button" data-testid="cf-cancel" on:click=move |_| runner.stop()>"Cancel"</button>
            </Show>
        </div>
    }
}

#[component]
fn Limits() -> impl IntoView {
    view! {
        <details class="cf-box" data-testid="cf-limits">
            <summary>"What the fixed-state replay does not follow"</summary>
            <ul>{FIXED_STATE_LIMITS.map(|limit| view! { <li>{limit}</li> }).collect_view()}</ul>
        </details>
    }
}

/// What the model is made of and takes for granted.
#[component]
fn Assumptions(done: Done<ModelReport>) -> impl IntoView {
    let report: Arc<ModelReport> = done.report;
    let fact = |fact: &Fact| {
        format!(
            "{} {}{}{} ({})",
            fact.name,
            fact.value,
            if fact.unit.is_empty() { "" } else { " " },
            fact.unit,
            fact.from.as_str()
        )
    };
    let facts: Vec<String> = report.facts.iter().map(fact).collect();
    let left_out = match report.arrivals_left_out {
        0 => String::new(),
        n => format!(
            " {} older ones were excluded: their prompts together exceed the limit.",
            format::count(n)
        ),
    };
    let refused = match report.recorded.refused_requests.max(report.tried.refused_requests) {
        0 => String::new(),
        n => format!(" {} fit no worker of the model.", format::plural(n, "request", "requests")),
    };
    view! {
        <section class="cf-box" data-testid="cf-assumptions" aria-label="Assumptions of the model"
            data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>
            <h3>"Calibration"</h3>
            <ul data-testid="cf-calibration" data-fits=report.calibration.fits().to_string()>
                {calibration_to_text(&report.calibration).into_iter().map(|sentences| view! { <li>{sentences}</li> }).collect_view()}
            </ul>
            <h3>"Assumptions"</h3>
            <p>{format!("{} recorded arrivals were replayed.{left_out}{refused}", format::count(report.arrivals))}</p>
            <p>{format!("Recorded: {} Tried: {}", report.recorded_router, report.tried_router)}</p>
            <p>{format!("Made of: {}.", facts.join("; "))}</p>
            <ul>{report.assumptions.iter().map(|sentences| view! { <li>{sentences.clone()}</li> }).collect_view()}</ul>
        </section>
    }
}

#[component]
fn Nothing(store: Store) -> impl IntoView {
    move || {
        if !store.ready() {
            return view! { <Waiting id="cf-wait"/> };
        }
        let hint = store.on_beat(|cluster| cluster.decisions_hint());
        let head = "No routing decision received yet";
        match hint {
            Some(hint) => view! { <Empty id="cf-empty" head><HintList hint/></Empty> },
            None => {
                view! { <Empty id="cf-empty" head><p>"Once the router places requests, they can be replayed here under other settings."</p></Empty> }
            }
        }
    }
}
