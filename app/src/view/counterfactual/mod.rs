//! The latest decisions under other router settings: exact on the state each saw, and in a model that reacts.
//! Computed beside the page, on request, and retained with its time until it is computed again.

mod changed;
mod controls;
mod fetch;
mod heat;
mod recommended;
mod run;
mod table;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{About, FIXED_STATE_LIMITS, ModelReport, headline};
use radixscope_panels::counterfactual::{
    AboutText, Assumptions, NO_DECISION, NO_DECISION_TEXT, NOT_JUDGED, newer_than,
};

use changed::ChangedDecisions;
use controls::{Controls, Inputs};
use heat::AllSettings;
use recommended::Recommended;
use run::{Done, Runner};
use table::Comparison;

use crate::store::{Store, zone};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, PanelHead, Waiting};
use crate::view::hint::HintList;

/// The panel.
#[component]
pub fn CounterfactualPanel(store: Store) -> impl IntoView {
    let runner = Runner::new(store);
    let inputs = Inputs::new();
    let compute = Callback::new(move |()| match inputs.form().request() {
        Ok(request) => runner.compute(request, || ()),
        Err(error) => runner.error.set(Some(error)),
    });
    let sweep = Callback::new(move |()| match inputs.form().span() {
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
            && let Ok(request) = inputs.form().request()
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
            store.on_beat(|shown| newer_than(shown, to, pool))
        })
    });
    let again = Memo::new(move |_| runner.replay.with(Option::is_some));
    let busy = Memo::new(move |_| runner.step.with(Option::is_some));
    let stamp = move || {
        runner.replay.get().map(|done| {
            let text = done.stamp(&done.report.about).to_text_with_newer(zone(), newer.get());
            view! {
                <p class="quiet" data-testid="cf-stamp" data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>
                    {text}
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
                            {move || replay.get().map(|report| view! { <AboutDecisions about=report.about.clone()/> })}
                            <Comparison store replay model/>
                        </div>
                        <div class="cf-column">
                            {move || replay.get().filter(|report| report.about.judged > 0).map(|report| view! { <ChangedDecisions store report/> })}
                            {move || runner.sweep.get().map(|done| {
                                let stamp = format!("Sweep. {}", done.stamp(&done.report.about).to_text(zone()));
                                let choose = Callback::new(move |setting| inputs.set(setting));
                                view! {
                                    <p class="quiet" data-testid="cf-sweep-stamp" data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>{stamp}</p>
                                    <AllSettings report=done.report choose/>
                                }
                            })}
                            {move || again.get().then(|| view! { <Limits/> })}
                            {move || runner.model.get().map(|done| view! { <ModelAssumptions done/> })}
                        </div>
                    </div>
                </div>
            </Show>
        </section>
    }
}

/// What was judged and what not.
#[component]
fn AboutDecisions(about: About) -> impl IntoView {
    let AboutText { text, hint } = AboutText::of(&about);
    view! {
        <p class="caption cf-about" data-testid="cf-about">{text}</p>
        {hint.map(|hint| view! { <Empty id="cf-no-candidates" head=NOT_JUDGED><p>{hint}</p></Empty> })}
    }
}

/// What is under way, with its end in sight and a way to end it.
#[component]
fn Progress(runner: Runner) -> impl IntoView {
    let step = runner.step;
    view! {
        <div class="cf-progress" data-testid="cf-progress" aria-live="polite">
            {move || step.get().map(|progress| {
                let (text, part) = (progress.to_text(), progress.part);
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
fn ModelAssumptions(done: Done<ModelReport>) -> impl IntoView {
    let Assumptions { fits, calibration, replayed, routers, made_of, assumptions } =
        Assumptions::of(&done.report);
    let list =
        |sentences: Vec<String>| sentences.into_iter().map(|text| view! { <li>{text}</li> }).collect_view();
    view! {
        <section class="cf-box" data-testid="cf-assumptions" aria-label="Assumptions of the model"
            data-worker-ms=format!("{:.3}", done.worker_ms) data-total-ms=format!("{:.3}", done.total_ms)>
            <h3>"Calibration"</h3>
            <ul data-testid="cf-calibration" data-fits=fits.to_string()>{list(calibration)}</ul>
            <h3>"Assumptions"</h3>
            <p>{replayed}</p>
            <p>{routers}</p>
            <p>{made_of}</p>
            <ul>{list(assumptions)}</ul>
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
        match hint {
            Some(hint) => view! { <Empty id="cf-empty" head=NO_DECISION><HintList hint/></Empty> },
            None => {
                view! { <Empty id="cf-empty" head=NO_DECISION><p>{NO_DECISION_TEXT}</p></Empty> }
            }
        }
    }
}
