//! The timeline below every view: what is retained, what each second brought, the moment that is shown, and the ways to another one.
//!
//! Drawn as paths, so that the style sheet has its colours and sizes. Reads the store; what is shown elsewhere is none of its
//! business.

mod flags;
mod input;
mod tools;

use leptos::html;
use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::timeline::{self as panel, COLUMNS, HEIGHT, Sign, axis, moment, share, signs};

use super::resize;
use crate::draw::strip;
use crate::format;
use crate::store::{Store, time_of_day, zone};
use crate::time_range::TimeSpan;
use crate::view::control::view;
pub(crate) use input::key;
pub(super) use radixscope_panels::timeline::speed_name;
use tools::Tools;

/// What the timeline's parts share; copied freely.
#[derive(Clone, Copy)]
struct TimelineView {
    store: Store,
    /// The part that is drawn; `None`: all that is retained.
    zoom: RwSignal<Option<TimeSpan>>,
    /// What was drawn when the pointer came: nothing moves under it.
    held: RwSignal<Option<TimeSpan>>,
    /// Where a brush began and where it is, shares of the width.
    brush: RwSignal<Option<(f64, f64)>>,
    field: NodeRef<html::Div>,
    /// Its width, CSS pixels.
    width: RwSignal<f64>,
}

impl TimelineView {
    /// The stretch that is drawn. Tracked.
    fn span(self) -> Option<TimeSpan> {
        self.store.history_version.track();
        let all = self.store.history_span()?;
        Some(panel::shown(all, self.zoom.get(), self.held.get()))
    }

    fn share(self, at: Millis) -> Option<f64> {
        share(self.span()?, at)
    }
}

#[component]
pub(super) fn Timeline(store: Store) -> impl IntoView {
    let timeline = TimelineView {
        store,
        zoom: RwSignal::new(None),
        held: RwSignal::new(None),
        brush: RwSignal::new(None),
        field: NodeRef::new(),
        width: RwSignal::new(0.0),
    };
    // The field is made again only where this changes, not whenever it is asked.
    let why_none = Memo::new(move |_| store.why_no_history());
    view! {
        <section class="moments" class:looking-back=move || store.at.get() != 0 aria-label="Timeline" data-testid="timeline">
            <Tools timeline/>
            {move || match why_none.get() {
                "" => view! { <Field timeline/> },
                why => view! { <p class="quiet" data-testid="timeline-none">{why}</p> },
            }}
        </section>
    }
}

/// What can be pointed at.
#[component]
fn Field(timeline: TimelineView) -> impl IntoView {
    let TimelineView { store, held, brush, field, width, .. } = timeline;
    Effect::new(move |_| {
        if let Some(element) = field.get() {
            let measured = element.clone();
            resize::observe(&element, move || width.set(f64::from(measured.client_width())));
        }
    });
    let span = Memo::new(move |_| timeline.span());
    let bound = move |of: fn(TimeSpan) -> Millis| move || span.get().map(|span| of(span).0.to_string());
    let shown = move || match store.at.get() {
        0 => store.history_span().map_or(0, |span| span.until.0),
        at => at,
    };
    let moment = move || {
        let at = Millis(store.at.get());
        moment(at, store.newest_name(), &store.age_of_past(), zone())
    };
    let head = move || {
        let at = store.at.get();
        timeline.share(Millis(at)).filter(|_| at != 0).map(|share| {
            view! { <i class="playhead" style=left(share) data-testid="playhead"></i> }
        })
    };
    let brushed = move || {
        brush.get().map(|(one, other)| {
            let style = format!(
                "left: {}; width: {}",
                format::width(one.min(other)),
                format::width((one - other).abs())
            );
            view! { <i class="brushed" style=style></i> }
        })
    };
    view! {
        <div class="moments-field" node_ref=field role="slider" tabindex="0" aria-label="Moment shown" data-testid="timeline-field"
            aria-valuemin=bound(|span| span.from) aria-valuemax=bound(|span| span.until)
            aria-valuenow=move || { store.history_version.track(); shown().to_string() } aria-valuetext=move || moment()
            title="Drag: go to a moment. Wheel, or Shift and drag: zoom. Double click: all that is retained"
            on:pointerenter=move |_| held.set(untrack(|| timeline.span())) on:pointerleave=move |_| held.set(None)
            on:pointerdown=move |event| timeline.press(&event) on:pointermove=move |event| timeline.drag(&event)
            on:pointerup=move |event| timeline.release(&event) on:pointercancel=move |_| brush.set(None)
            on:dblclick=move |_| timeline.zoom.set(None) on:wheel=move |event| timeline.wheel(&event)>
            <Bands timeline/>
            <Signs timeline span/>
            {move || flags::drawn(timeline)}
            {move || brushed()}
            {move || head()}
            <Axis timeline span/>
        </div>
    }
}

/// Rates and times as paths. What each is, and its largest value, stands in the title.
#[component]
fn Bands(timeline: TimelineView) -> impl IntoView {
    let box_of = format!("0 0 {COLUMNS} {HEIGHT}");
    let bands = Memo::new(move |_| {
        let Some(span) = timeline.span() else { return panel::Bands::default() };
        timeline.store.with_rows(|rows| panel::Bands::of(rows, span))
    });
    let area = move |of: fn(&panel::Bands) -> &[Option<f64>]| {
        move || bands.with(|bands| strip::area(of(bands).iter().copied(), bands.top_blocks, HEIGHT))
    };
    let text = move |of: fn(&panel::Bands) -> &String| move || bands.with(|bands| of(bands).clone());
    let band = move |class: &'static str, parts: AnyView| {
        view! { <svg class=class viewBox=box_of.clone() preserveAspectRatio="none" aria-hidden="true">{parts}</svg> }
    };
    let stored = band("up", view! { <path class="stored" d=area(|bands| &bands.stored)/> });
    let removed = band("down", view! { <path class="removed" d=area(|bands| &bands.removed)/> });
    let lines = view! { <path class="decided" d=text(|bands| &bands.decisions)/><path class="ttft" d=text(|bands| &bands.ttft)/> };
    let lines = band("lines", lines.into_any());
    view! {
        {stored}{removed}{lines}
        <span class="hidden" data-testid="timeline-says">{text(|bands| &bands.text)}</span>
    }
}

/// Times in which nothing was received, findings, departures and restarts. Each keeps its element while time goes on.
#[component]
fn Signs(timeline: TimelineView, span: Memo<Option<TimeSpan>>) -> impl IntoView {
    let all = Memo::new(move |_| {
        let Some(span) = span.get() else { return Vec::new() };
        timeline.store.with_rows(|rows| signs(rows, span, zone()))
    });
    let sign = move |sign: Sign| {
        let Sign { id, class, title, from, .. } = sign.clone();
        let place = move || match span.get().map(|span| sign.place(span)) {
            None => String::new(),
            Some((from, None)) => left(from),
            Some((from, Some(width))) => format!("{}; width: {}", left(from), format::width(width)),
        };
        view! { <i class=class style=place title=title data-testid=id data-at=from.0.to_string()></i> }
    };
    view! { <For each=move || all.get() key=Sign::clone children=sign/> }
}

/// Times of day below the bands.
#[component]
fn Axis(timeline: TimelineView, span: Memo<Option<TimeSpan>>) -> impl IntoView {
    let all = Memo::new(move |_| {
        let width = timeline.width.get();
        span.get().map_or_else(Vec::new, |span| axis(span, width))
    });
    let label = move |at: Millis| {
        let place = move || span.get().map(|span| left(span.share(at)));
        view! { <span style=place>{time_of_day(at)}</span> }
    };
    view! { <div class="moments-axis" aria-hidden="true"><For each=move || all.get() key=|at| *at children=label/></div> }
}

fn left(share: f64) -> String {
    format!("left: {}", format::width(share))
}
