//! A chart with a time axis: over it lie the marks of findings and departures, and a drag over it chooses a shorter time.
//! Knows where the chart's area is; what is drawn there comes from its panel.

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::palette::Palette;
use radixscope_panels::time_menu::dragged;
use web_sys::PointerEvent;

use super::charted::Charted;
use super::marks::Marks;
use crate::draw::option::ChartOption;
use crate::draw::theme::Insets;
use crate::store::Store;
use crate::time_range::{TimeRange, TimeSpan};
use crate::view::control::view;

/// A height that every chart draws something at, CSS pixels from above.
const POINTED_Y: f64 = 20.0;

/// The time that all charts of the page show.
pub(super) fn shown_span(store: Store) -> Memo<TimeSpan> {
    let second = store.second();
    Memo::new(move |_| {
        let now = second.get();
        store.address.with(|address| address.range.span(now))
    })
}

/// The chart that `option` gives, followed as signals are.
#[component]
pub(super) fn TimeChart(
    store: Store,
    dark: Memo<bool>,
    /// For tests.
    #[prop(into)]
    id: String,
    /// What is seen, for those who do not see it.
    #[prop(into)]
    description: Signal<String>,
    /// Class of its box.
    #[prop(default = "chart-box")]
    class: &'static str,
    /// Where its area is.
    insets: Insets,
    /// The time it shows.
    span: Memo<TimeSpan>,
    /// What is drawn, in the colours given.
    option: impl Fn(&Palette) -> Option<ChartOption> + 'static,
) -> impl IntoView {
    let area = NodeRef::<html::Div>::new();
    let drag = RwSignal::new(None::<(f64, f64)>);
    // Where the pointer is: 0 at the area's left edge, 1 at its right.
    let share = move |event: &PointerEvent| {
        let rect = area.get_untracked()?.get_bounding_client_rect();
        (rect.width() > 0.0).then(|| (f64::from(event.client_x()) - rect.left()) / rect.width())
    };
    let down = move |event: PointerEvent| {
        let at = share(&event).filter(|at| (0.0..=1.0).contains(at) && event.button() == 0);
        drag.set(at.map(|at| (at, at)));
    };
    // The pointer stays where it is while time goes on under it.
    let here = RwSignal::new(None::<f64>);
    let name = StoredValue::new(id.clone());
    let is_here = move |over: &Option<(_, String)>| {
        over.as_ref().is_some_and(|(_, chart)| name.with_value(|name| name == chart))
    };
    Effect::new(move |_| match here.get() {
        Some(share) => store.pointed.set(Some((span.get().at(share), name.get_value()))),
        None if store.pointed.with_untracked(is_here) => store.pointed.set(None),
        None => {}
    });
    on_cleanup(move || {
        if store.pointed.with_untracked(is_here) {
            store.pointed.set(None);
        }
    });
    let elsewhere = Memo::new(move |_| {
        let at = store.pointed.with(|over| over.as_ref().filter(|_| !is_here(over)).map(|(at, _)| *at))?;
        let share = Some(span.get().share(at)).filter(|share| (0.0..=1.0).contains(share))?;
        let width = area.get_untracked()?.get_bounding_client_rect().width();
        Some((f64::from(insets.left) + share * width, POINTED_Y))
    });
    let moved = move |event: PointerEvent| {
        let at = share(&event);
        here.set(at.filter(|at| (0.0..=1.0).contains(at)));
        let Some((from, _)) = drag.get_untracked() else { return };
        if let Some(to) = at {
            drag.set(Some((from, to.clamp(0.0, 1.0))));
            // From here on also where the pointer leaves the chart.
            if let Some(area) = area.get_untracked() {
                let _ = area.set_pointer_capture(event.pointer_id());
            }
        }
    };
    let up = move |_| {
        let dragged = drag.get_untracked().and_then(|drag| dragged(span.get_untracked(), drag));
        drag.set(None);
        if let Some(part) = dragged {
            store.address.update(|address| {
                store.unzoomed.set(Some(address.range));
                address.range = TimeRange::fixed(part);
            });
        }
    };
    let brushed = move || {
        drag.get().map(|(from, to)| {
            let width = (from - to).abs() * 100.0;
            format!("left: {:.2}%; width: {width:.2}%", from.min(to) * 100.0)
        })
    };
    let edges = format!("left: {}px; right: {}px; bottom: {}px", insets.left, insets.right, insets.bottom);
    view! {
        <div class=format!("time-chart {class}") on:pointerdown=down on:pointermove=moved on:pointerup=up
            on:pointerleave=move |_| here.set(None) on:pointercancel=move |_| drag.set(None)>
            <Charted store dark id description class="chart-fill" pointed=elsewhere option/>
            <div class="time-area" node_ref=area style=edges>
                {move || brushed().map(|style| view! { <div class="time-brush" data-testid="time-brush" style=style></div> })}
                <Marks store span/>
            </div>
        </div>
    }
}
