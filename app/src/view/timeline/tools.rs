//! The timeline's buttons: play, speed, step to what is looked for, live.

use leptos::prelude::*;

use super::TimelineView;
use super::flags::Flags;
use crate::past::StepTarget;
use crate::store::REAL_TIME;
use crate::view::control::view;
use crate::view::recording::RecordingMenu;

/// Speeds in quarters of real time, with their names.
const SPEEDS: [(u32, &str); 9] = [
    (1, "0.25×"),
    (2, "0.5×"),
    (4, "1×"),
    (8, "2×"),
    (16, "4×"),
    (32, "8×"),
    (64, "16×"),
    (128, "32×"),
    (256, "64×"),
];
/// What can be stepped to.
const STEPS: [&str; 3] = ["decision", "finding or worker change", "block of the selected worker"];

/// A speed's name.
pub(in crate::view) fn speed_name(speed: u32) -> &'static str {
    SPEEDS.into_iter().find(|(known, _)| *known == speed).map_or("", |(_, name)| name)
}

#[component]
pub(super) fn Tools(timeline: TimelineView) -> impl IntoView {
    let store = timeline.store;
    let chosen = RwSignal::new(REAL_TIME);
    let wanted = RwSignal::new(0_usize);
    let is_back = move || store.at.get() != 0;
    let plays = move || store.speed.get() != 0;
    let name = move || match (is_back(), plays()) {
        (false, _) => "Pause (Space)",
        (true, false) => "Play (Space)",
        (true, true) => "Pause the replay (Space)",
    };
    let shape = move || if is_back() && !plays() { "M4 2l9 6l-9 6z" } else { "M4 2h3v12H4zM9 2h3v12H9z" };
    let step = move |is_forward: bool| match wanted.get_untracked() {
        0 => store.step(is_forward, StepTarget::Decision),
        1 => store.step_to_mark(is_forward),
        _ => match untrack(|| store.picked()) {
            Some(worker) => store.step(is_forward, StepTarget::BlocksOf(worker)),
            None => {
                store.past_fault.set("Select a worker first: click its row or press its number".to_owned())
            }
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
        let name = move || {
            format!("To the {}{}", if is_forward { "next " } else { "previous " }, STEPS[wanted.get()])
        };
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
                <option value="0">"Decision"</option>
                <option value="1">"Finding"</option>
                <option value="2">"Block"</option>
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
