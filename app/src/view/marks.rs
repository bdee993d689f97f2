//! What happened, as marks on the time axis of a chart: findings from begin to end, workers that left or came back, processes
//! that restarted, and settings of routers that changed. Each says what it is and leads there.

use leptos::prelude::*;
use radixscope_panels::marks::{ChartMark, MarkTarget, marks, place};
use web_sys::MouseEvent;

use super::nav;
use crate::keys;
use crate::store::{Store, zone};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::control::view;

/// The marks of a chart's area.
#[component]
pub(super) fn Marks(store: Store, span: Memo<TimeSpan>) -> impl IntoView {
    let all = Memo::new(move |_| {
        let span = span.get();
        store.on_beat(|shown| marks(shown, span, zone()))
    });
    // Each keeps its element while it moves, and with it the focus and the pointer.
    view! {
        <div class="time-marks">
            <For each=move || all.get() key=|mark| (mark.from, mark.id.clone()) let:mark><MarkAt store mark all span/></For>
        </div>
    }
}

#[component]
fn MarkAt(store: Store, mark: ChartMark, all: Memo<Vec<ChartMark>>, span: Memo<TimeSpan>) -> impl IntoView {
    let ChartMark { icon, class, .. } = mark;
    let id = mark.id.clone();
    let text = move || all.with(|all| all.iter().find(|mark| mark.id == id).map(|mark| mark.text.clone()));
    let is_over = mark.until.is_some();
    let (panel, worker) = mark.to.panel();
    let target = move || store.address.with(|address| address.of_panel(panel, worker));
    let to = StoredValue::new(mark.to.clone());
    let placed = Memo::new(move |_| all.with(|all| place(&mark, all, span.get())));
    let go = move |event: MouseEvent| {
        if !nav::stays_here(&event) {
            return;
        }
        store.address.set(untrack(target));
        to.with_value(|to| match to {
            MarkTarget::Finding(code) => show_card(store, format!("finding-{code}"), CARD_FRAMES),
            MarkTarget::Worker(_) | MarkTarget::Latency | MarkTarget::Decisions => {}
        });
    };
    // What it says stands where there is room.
    let side = move || if placed.get().0 > 0.5 { "before" } else { "after" };
    let style = move || {
        let (from, until, above) = placed.get();
        format!("left: {:.2}%; width: {:.2}%; --above: {above}", from * 100.0, (until - from) * 100.0)
    };
    view! {
        <div class=format!("time-mark {class}") class:ended=is_over style=move || style()>
            <a class=move || side() href=move || format!("./{}", target().query()) on:click=go
                on:pointerdown=|event| event.stop_propagation() aria-label=move || text() data-testid="time-mark">{icon}</a>
        </div>
    }
}

/// Frames that a finding's card is waited for: its panel may have to be loaded, over a slow line.
const CARD_FRAMES: u32 = 1_800;

/// Brings the card of a finding into sight once its panel is in the document, also among those that are over. Gives up when
/// another panel is opened, or after so many frames.
fn show_card(store: Store, id: String, frames: u32) {
    request_animation_frame(move || {
        if frames == 0 || store.address.with_untracked(|address| address.panel) != Panel::Findings {
            return;
        }
        if document().get_element_by_id(&id).is_none() {
            return show_card(store, id, frames - 1);
        }
        if let Ok(Some(over)) = document().query_selector("[data-testid=findings-over]") {
            let _ = over.set_attribute("open", "");
        }
        keys::focus(&id);
    });
}
