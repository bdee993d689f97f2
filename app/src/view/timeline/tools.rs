//! The timeline's buttons: play, speed, step to what is looked for, live.

use leptos::prelude::*;
use radixscope_panels::timeline::{PlayButton, REAL_TIME, SELECT_FIRST, SPEEDS, STEPS, step_title};

use super::TimelineView;
use super::flags::Flags;
use crate::past::StepTarget;
use crate::view::control::view;
use crate::view::recording::RecordingMenu;

#[component]
pub(super) fn Tools(timeline: TimelineView) -> impl IntoView {
    let store = timeline.store;
    let chosen = RwSignal::new(REAL_TIME);
    let wanted = RwSignal::new(0_usize);
    let is_back = move || store.at.get() != 0;
    let play = Memo::new(move |_| PlayButton::of(is_back(), store.speed.get() != 0));
    let name = move || play.get().title;
    let shape = move || if play.get().plays { "M4 2l9 6l-9 6z" } else { "M4 2h3v12H4zM9 2h3v12H9z" };
    let step = move |is_forward: bool| match wanted.get_untracked() {
        0 => store.step(is_forward, StepTarget::Decision),
        1 => store.step_to_mark(is_forward),
        _ => match untrack(|| store.picked()) {
            Some(worker) => store.step(is_forward, StepTarget::BlocksOf(worker)),
            None => store.past_fault.set(SELECT_FIRST.to_owned()),
        },
    };
    let set_speed = move |event: web_sys::Event| {
        let speed = event_target_value(&event).parse().unwrap_or(REAL_TIME);
        chosen.set(speed);
        if store.speed.get_untracked() != 0 {
            store.play(speed);
        }
    };
    let stepper = move |is_forward: bool, id: &'static str, path: &'static str| {
        let name = move || step_title(is_forward, wanted.get());
        view! {
            <button class="icon" title=name aria-label=name data-testid=id on:click=move |_| step(is_forward)>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d=path/></svg>
            </button>
        }
    };
    view! {
        <div class="moments-tools">
            <button class="icon" title=move || name() aria-label=move || name() data-testid="timeline-play"
                on:click=move |_| store.play_or_pause(chosen.get_untracked())>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path class="fill" d=move || shape()/></svg>
            </button>
            {stepper(false, "timeline-back", "M12 3L6 8l6 5M4 3v10")}
            {stepper(true, "timeline-forward", "M4 3l6 5l-6 5M12 3v10")}
            <select aria-label="Step to the next" title="What the two buttons beside it step to" data-testid="timeline-step"
                on:change=move |event| wanted.set(event_target_value(&event).parse().unwrap_or(0))>
                {STEPS.into_iter().enumerate().map(|(at, (name, _))| view! { <option value=at.to_string()>{name}</option> }).collect_view()}
            </select>
            <select aria-label="Speed" title="Speed of the replay" data-testid="timeline-speed" on:change=set_speed>
                {SPEEDS.map(|(speed, name)| view! { <option value=speed.to_string() selected=speed == REAL_TIME>{name}</option> })
                    .collect_view()}
            </select>
            <button class="plain" title="Back to the newest moment (L)" data-testid="timeline-live" disabled=move || !is_back()
                on:click=move |_| store.back_to_live()>
                {move || if store.replayed.get() { "End" } else { "Live" }}
            </button>
            <RecordingMenu store span=move |()| timeline.span()/>
            <Flags store/>
            <span class="moments-fault" role="status" data-testid="timeline-fault">{move || store.past_fault.get()}</span>
        </div>
    }
}
