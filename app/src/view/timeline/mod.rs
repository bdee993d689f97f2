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

use super::resize;
use crate::format;
use crate::store::{Store, time_of_day};
use crate::time_range::TimeSpan;
use crate::timeline::{COLUMNS, HEIGHT, Quantity, columns, gaps, labels, line, most, top};
use crate::view::control::view;
pub(crate) use input::key;
use tools::Tools;
pub(super) use tools::speed_name;

/// Room that a label of the axis needs, CSS pixels.
const LABEL_PX: f64 = 90.0;

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
        Some(
            self.zoom
                .get()
                .or(self.held.get())
                .map_or(all, |zoom| TimeSpan { from: zoom.from.max(all.from), ..zoom }),
        )
    }

    /// Columns of a quantity.
    fn columns(self, of: Quantity) -> Vec<Option<f64>> {
        let Some(span) = self.span() else { return Vec::new() };
        self.store.with_rows(|rows| columns(rows, span, of))
    }

    fn share(self, at: Millis) -> Option<f64> {
        self.span().map(|span| span.share(at)).filter(|share| (0.0..=1.0).contains(share))
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
    let moment = move || match store.at.get() {
        0 => store.newest_name().to_owned(),
        at => format!("{}, {}", time_of_day(Millis(at)), store.age_of_past()),
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
    let paths = Memo::new(move |_| {
        let (stored, removed) =
            (timeline.columns(|row| Some(row.stored)), timeline.columns(|row| Some(row.removed)));
        // One scale for both, so that they can be compared.
        let (most_blocks, top_blocks) = (most(&stored).max(most(&removed)), top(&stored).max(top(&removed)));
        let area = |values: Vec<Option<f64>>| crate::draw::strip::area(values, top_blocks, HEIGHT);
        let decisions = timeline.columns(|row| Some(row.decisions));
        let ttft = timeline.columns(|row| row.ttft_p95_ms);
        let (most_decisions, most_ttft) = (most(&decisions), most(&ttft));
        let says = format!(
            "Blocks stored (up) and removed (down): at most {} /s. Decisions: at most {} /s. TTFT p95, last 60 s: {}",
            format::rate(most_blocks),
            format::rate(most_decisions),
            if most_ttft > 0.0 { format!("at most {most_ttft:.0} ms") } else { "not reported".to_owned() },
        );
        [area(stored), area(removed), line(&decisions, top(&decisions)), line(&ttft, most_ttft), says]
    });
    let path = move |at: usize| move || paths.with(|paths| paths[at].clone());
    let band = move |class: &'static str, parts: AnyView| {
        view! { <svg class=class viewBox=box_of.clone() preserveAspectRatio="none" aria-hidden="true">{parts}</svg> }
    };
    let stored = band("up", view! { <path class="stored" d=path(0)/> });
    let removed = band("down", view! { <path class="removed" d=path(1)/> });
    let lines = view! { <path class="decided" d=path(2)/><path class="ttft" d=path(3)/> };
    let lines = band("lines", lines.into_any());
    view! {
        {stored}{removed}{lines}
        <span class="hidden" data-testid="timeline-says">{path(4)}</span>
    }
}

/// Something at a time: a mark, or a gap from one moment to another.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Sign {
    /// For tests.
    id: &'static str,
    class: String,
    title: String,
    from: Millis,
    /// The end of a gap.
    until: Option<Millis>,
}

/// Times in which nothing was received, findings, departures and restarts. Each keeps its element while time goes on.
#[component]
fn Signs(timeline: TimelineView, span: Memo<Option<TimeSpan>>) -> impl IntoView {
    let all = Memo::new(move |_| span.get().map(|span| signs(timeline, span)).unwrap_or_default());
    let sign = move |Sign { id, class, title, from, until }| {
        let place = move || {
            let Some(span) = span.get() else { return String::new() };
            let Some(until) = until else { return left(span.share(from)) };
            let (from, until) = (span.share(from).max(0.0), span.share(until).min(1.0));
            format!("{}; width: {}", left(from), format::width(until - from))
        };
        view! { <i class=class style=place title=title data-testid=id data-at=from.0.to_string()></i> }
    };
    view! { <For each=move || all.get() key=Sign::clone children=sign/> }
}

/// Those within `span`.
fn signs(timeline: TimelineView, span: TimeSpan) -> Vec<Sign> {
    let mark = |row: &crate::timeline::TimelineRow| {
        let worst = ["critical", "warning", "left", "restarted", "settings_changed", "info"];
        let kind = worst.into_iter().find(|kind| row.marks.iter().any(|mark| mark.kind == *kind));
        let texts: Vec<&str> = row.marks.iter().map(|mark| mark.text.as_str()).collect();
        Sign {
            id: "timeline-mark",
            class: format!("moments-mark {}", kind.unwrap_or("resolved")),
            title: format!("{}\n{}", time_of_day(row.at_ms), texts.join("\n")),
            from: row.at_ms,
            until: None,
        }
    };
    let gap = |gap: TimeSpan| {
        let (begin, end) = (time_of_day(gap.from), time_of_day(gap.until));
        Sign {
            id: "timeline-gap",
            class: "moments-gap".to_owned(),
            title: format!("Nothing was received or recorded from {begin} to {end}"),
            from: gap.from,
            until: Some(gap.until),
        }
    };
    timeline.store.with_rows(|rows| {
        let is_seen = |gap: &TimeSpan| gap.until > span.from && gap.from < span.until;
        let is_inside = |row: &&crate::timeline::TimelineRow| {
            !row.marks.is_empty() && (0.0..=1.0).contains(&span.share(row.at_ms))
        };
        gaps(rows).filter(is_seen).map(gap).chain(rows.iter().filter(is_inside).map(mark)).collect()
    })
}

/// Times of day below the bands.
#[component]
fn Axis(timeline: TimelineView, span: Memo<Option<TimeSpan>>) -> impl IntoView {
    let all = Memo::new(move |_| {
        let (Some(span), width) = (span.get(), timeline.width.get()) else { return Vec::new() };
        // One at the very edge would be cut.
        let is_inside = |at: &Millis| {
            let edge = LABEL_PX / 2.0 / width.max(1.0);
            (edge..=1.0 - edge).contains(&span.share(*at))
        };
        labels(span, (width / LABEL_PX) as u64).into_iter().filter(is_inside).collect()
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
