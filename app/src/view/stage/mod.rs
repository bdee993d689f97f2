//! The stage: a bar with everything that can be steered in what is shown. It shows what the server confirmed, and what was just set
//! until then. Knows nothing of the state: what a change does is seen in the panels.

mod faults;
mod feed;

use std::time::Duration;

use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use radixscope_export::stage::{StageChange, StageDriver, Steered};
pub(super) use radixscope_panels::stage::is_wanted;
use radixscope_panels::stage::{self, Controls, is_folded_at_first, note_fold};
use radixscope_router::RouterMode;

use self::faults::Faults;
pub(super) use self::feed::post;
use self::feed::{Feed, follow};
use crate::keys;
use crate::store::Store;
use crate::url::Address;
use crate::view::control::view;
use crate::view::page_meta::page_meta;

/// A slider at rest for so long is sent: each step of a key or of the pointer is not.
const REST: Duration = Duration::from_millis(250);
/// Id of the form that restarts.
const RESTART_ID: &str = "stage-restart";

/// Whether the server has a stage.
pub(super) fn is_served() -> bool {
    page_meta("stage").is_some()
}

/// Whether what is on the stage is simulated, so that it may be broken.
pub(super) fn is_simulated() -> bool {
    page_meta("stage").is_some_and(|driver| driver == StageDriver::Simulator.as_str())
}

/// The bar.
#[component]
pub fn StageBar(store: Store) -> impl IntoView {
    let feed = follow();
    let width = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(f64::MAX);
    let folded = RwSignal::new(store.address.with_untracked(|address| is_folded_at_first(address, width)));
    let fold = move |_| {
        folded.update(|folded| *folded = !*folded);
        let is_folded = folded.get_untracked();
        if !store.address.with_untracked(Address::is_bare) {
            store.address.update(|address| note_fold(address, is_folded));
        }
    };
    let summary = move || feed.report.with(|report| report.as_ref().map(stage::summary)).unwrap_or_default();
    view! {
        <section class="stage-bar" class:folded=folded aria-label="Stage" data-testid="stage">
            <button class="stage-fold" aria-expanded=move || (!folded.get()).to_string() aria-controls="stage-controls" on:click=fold
                title=move || if folded.get() { "Show the controls" } else { "Hide the controls" } data-testid="stage-fold">
                "Stage"
            </button>
            <div class="stage-controls" id="stage-controls" hidden=folded>
                {move || feed.is_known.get().then(|| view! { <ControlsView feed/> })}
            </div>
            <p class="stage-summary" hidden=move || !folded.get() data-testid="stage-summary">{summary}</p>
            <News feed/>
        </section>
    }
}

/// What happened last, or why it did not.
#[component]
fn News(feed: Feed) -> impl IntoView {
    let text =
        move || feed.report.with(|report| feed.fault.with(|fault| stage::news(report.as_ref(), fault)));
    view! {
        <p class="stage-news" class:bad=move || feed.fault.with(|fault| !fault.is_empty()) role="status" aria-live="polite" title=text
            data-testid="stage-news">{text}</p>
    }
}

/// The controls, of what can be steered here.
#[component]
fn ControlsView(feed: Feed) -> impl IntoView {
    let controls =
        Memo::new(move |_| feed.report.with(|report| report.as_ref().map(Controls::of).unwrap_or_default()));
    let has = |what: fn(&Controls) -> bool| Memo::new(move |_| controls.with(what));
    let has_router = has(|of| of.has_router);
    let has_faults = has(|of| of.has_faults);
    let has_seed = has(|of| of.has_seed);
    let is_paused = has(|of| of.is_paused);
    let pause = move |_| feed.send(StageChange::Paused(!is_paused.get_untracked()));
    view! {
        <Concurrency feed/>
        <Show when=move || has_router.get()><RouterControls feed/></Show>
        <Show when=move || has_faults.get()><Faults feed/></Show>
        <span class="stage-group">
            <button class="stage-button" on:click=pause disabled=move || !feed.is_ready.get() aria-pressed=move || is_paused.get().to_string()
                data-testid="stage-pause">
                {move || controls.with(Controls::pause_button)}
            </button>
            <Show when=move || has_seed.get()><RestartForm feed/></Show>
        </span>
    }
}

#[component]
fn Concurrency(feed: Feed) -> impl IntoView {
    let of = Memo::new(move |_| {
        let none = Steered { value: 0, min: 0, max: 0 };
        feed.report.with(|report| report.as_ref().map_or(none, |report| report.concurrency))
    });
    // What was set and is not confirmed yet.
    let draft = RwSignal::new(None::<u32>);
    let resting = StoredValue::new(None::<TimeoutHandle>);
    let shown = move || draft.get().unwrap_or(of.get().value).to_string();
    let rest = move || {
        if let Some(Some(waiting)) = resting.try_update_value(Option::take) {
            waiting.clear();
        }
    };
    on_cleanup(rest);
    let send = move || {
        let Some(users) = draft.get_untracked() else { return };
        feed.send_then(StageChange::Concurrency(users), move || {
            // It may have been moved on meanwhile.
            draft.update(|draft| *draft = draft.filter(|set| *set != users));
        });
    };
    let set = move |event| {
        let Some(users) = stage::users(&event_target_value(&event), of.get_untracked()) else { return };
        draft.set(Some(users));
        rest();
        resting.set_value(set_timeout_with_handle(send, REST).ok());
    };
    let min = move || of.get().min.to_string();
    let max = move || of.get().max.to_string();
    view! {
        <span class="stage-group stage-users">
            <label for="stage-users">"Concurrency"</label>
            <input type="range" min=min max=max prop:value=shown on:input=set disabled=move || !feed.is_ready.get()
                aria-label="Concurrency, slider" aria-valuetext=move || format!("{} users", shown()) data-testid="stage-slider"/>
            <input type="number" id="stage-users" min=min max=max step="1" prop:value=shown on:change=set
                disabled=move || !feed.is_ready.get() data-testid="stage-users"/>
        </span>
    }
}

#[component]
fn RouterControls(feed: Feed) -> impl IntoView {
    let mode = Memo::new(move |_| feed.report.with(|report| Some(report.as_ref()?.router?.mode)));
    let one = move |of: RouterMode, id: &'static str, label: &'static str| {
        let is_on = move || mode.get() == Some(of);
        view! {
            <label class:on=is_on>
                <input type="radio" name="stage-router" data-testid=id prop:checked=is_on disabled=move || !feed.is_ready.get()
                    on:change=move |_| feed.send(StageChange::RouterMode(of))/>
                {label}
            </label>
        }
    };
    let weight =
        Memo::new(move |_| feed.report.with(|report| Some(report.as_ref()?.router?.overlap_score_weight)));
    let temperature =
        Memo::new(move |_| feed.report.with(|report| Some(report.as_ref()?.router?.router_temperature)));
    view! {
        <span class="stage-group" role="radiogroup" aria-label="Router"
            title="The frontends restart with other flags: requests in flight end, users try again">
            <span class="stage-seg">
                {one(RouterMode::Kv, "stage-kv", "KV-aware")}
                {one(RouterMode::RoundRobin, "stage-round-robin", "Round-robin")}
            </span>
        </span>
        <span class="stage-group" class:off=move || mode.get() == Some(RouterMode::RoundRobin)>
            <Number feed id="stage-weight" label="Overlap weight" of=weight change=StageChange::OverlapScoreWeight/>
            <Number feed id="stage-temperature" label="Temperature" of=temperature change=StageChange::RouterTemperature/>
        </span>
    }
}

/// A number of the router.
#[component]
fn Number(
    feed: Feed,
    id: &'static str,
    label: &'static str,
    of: Memo<Option<Steered<f64>>>,
    change: fn(f64) -> StageChange,
) -> impl IntoView {
    let bound = move |bound: fn(Steered<f64>) -> f64| move || of.get().map(|of| bound(of).to_string());
    // Raised to show the confirmed value again where another was refused.
    let again = RwSignal::new(0_u32);
    let shown = move || {
        again.track();
        of.get().map_or(String::new(), |of| of.value.to_string())
    };
    let set = move |event| match crate::format::decimal(&event_target_value(&event)) {
        Some(value) => feed.send_then(change(value), move || again.update(|n| *n += 1)),
        None => again.update(|n| *n += 1),
    };
    view! {
        <label for=id>{label}</label>
        <input type="number" id=id step="0.1" min=bound(|of| of.min) max=bound(|of| of.max) prop:value=shown on:change=set
            disabled=move || !feed.is_ready.get() data-testid=id/>
    }
}

/// Everything anew, with a seed.
#[component]
fn RestartForm(feed: Feed) -> impl IntoView {
    let seed =
        move || feed.report.with(|report| Some(report.as_ref()?.seed?.0.to_string())).unwrap_or_default();
    let text = RwSignal::new(String::new());
    let parsed =
        move || feed.report.with(|report| text.with(|text| stage::typed_seed(report.as_ref(), text)));
    let restart = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let Some(seed) = untrack(parsed) else { return };
        keys::close(RESTART_ID);
        feed.send(stage::restart(seed));
    };
    view! {
        <button class="stage-button" popovertarget=RESTART_ID disabled=move || !feed.is_ready.get() data-testid="stage-restart">"Restart…"</button>
        <div id=RESTART_ID class="stage-menu" popover="auto" aria-label="Restart" data-testid="stage-restart-menu">
            <form on:submit=restart>
                <p>"Everything is deployed anew: workers leave, others come with empty caches, and no fault is at work. Equal seeds give equal traffic."</p>
                <label for="stage-seed">"Seed"</label>
                <input type="text" id="stage-seed" inputmode="numeric" autocomplete="off" placeholder=seed prop:value=text
                    on:input=move |event| text.set(event_target_value(&event)) aria-invalid=move || parsed().is_none().to_string()
                    data-testid="stage-seed"/>
                <button class="primary" type="submit" disabled=move || parsed().is_none() data-testid="stage-restart-now">"Restart"</button>
            </form>
        </div>
    }
}
