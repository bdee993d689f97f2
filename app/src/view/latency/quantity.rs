//! One quantity: its percentiles against the target, how much of the session was above it, and its way over time.

use leptos::prelude::*;
use radixscope_export::panel::latency::{
    self as latency_panel, NO_SAMPLE, QuantityLabels, TREND_NOTE, TrendSeries,
};
use radixscope_icicle::palette::Palette;
use radixscope_insight::latency::{self, Burn, Quantity, TREND_STEP_MS, Times};
use radixscope_model::id::Millis;
use radixscope_model::range::{Range, TargetComparison};

use super::goals::{LatencyTarget, TargetField};
use crate::draw::trend::{self, Trend};
use crate::format;
use crate::store::{Feed, Store};
use crate::time_range::TimeSpan;
use crate::view::control::view;
use crate::view::figure::EmptyPanel;
use crate::view::legend::{Hidden, Legend, LegendEntry};
use crate::view::time_chart::TimeChart;

#[component]
pub(super) fn QuantityCard(
    store: Store,
    dark: Memo<bool>,
    second: Memo<Millis>,
    goal: LatencyTarget,
    labels: QuantityLabels,
    span: Memo<TimeSpan>,
) -> impl IntoView {
    let QuantityLabels { quantity, id, name: title, long, .. } = labels;
    let times = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency::latest(cluster, quantity, now))
    });
    let burn = Memo::new(move |_| {
        second.track();
        let target = goal.ms.get();
        store.peek(|cluster| latency::burn(cluster, quantity, target))
    });
    // The figure that rules judge: one function for all.
    let figure = Memo::new(move |_| times.with(|all| all.iter().find(|times| times.samples > 0).cloned()));
    let client = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency_panel::client_line(cluster, quantity, now))
    });
    let is_current = move || store.as_of(Feed::Metrics).is_none();
    let known = Memo::new(move |_| times.with(|all| !all.is_empty()));
    let reading = move |at: usize, name: &'static str, of: &'static str| {
        let shown = move || match figure.get().and_then(|times| Some((times.quantiles?[at], times))) {
            Some((range, times)) => {
                let standing = (at == 1 && is_current()).then_some(times);
                view! { <Value range quantity target=goal.ms.get() standing/> }
            }
            None => view! { <dd class="quiet">{NO_SAMPLE}</dd> },
        };
        view! { <div class=of data-testid=format!("{id}-{name}")><dt>{name}</dt>{move || shown()}</div> }
    };
    view! {
        <section class="quantity" aria-labelledby=format!("{id}-title") data-testid=id>
            <header>
                <h3 id=format!("{id}-title")>{title}" "<span class="quiet">{long}</span></h3>
                <span class="spacer"></span>
                <TargetField goal id/>
            </header>
            <Show when=move || known.get() fallback=move || view! { <EmptyPanel text=latency_panel::empty(&labels)/> }>
                <dl class="quantiles">{reading(1, "p95", "main")} {reading(0, "p50", "")} {reading(2, "p99", "")}</dl>
                <p class="caption" data-testid=format!("{id}-source")>{move || times.with(|all| latency::source_text(all, quantity))}</p>
                <p class="caption" data-testid=format!("{id}-burn")>{move || burn.with(|burn| burn_text(burn.as_ref(), quantity, goal.ms.get(), store))}</p>
                <TrendChart store dark goal labels span/>
            </Show>
            {move || client.get().map(|line| view! { <p class="caption" data-testid=format!("{id}-client")>{line}</p> })}
        </section>
    }
}

/// A percentile; the 95th also against its target, as long as it is current.
#[component]
fn Value(range: Range, quantity: Quantity, target: f64, standing: Option<Times>) -> impl IntoView {
    let judged = standing.as_ref().map_or(TargetComparison::Unknown, |times| times.standing(target));
    let status_text = standing.map(|times| times.standing_text(quantity, target));
    view! {
        <dd class=format!("reading {}", judged.as_str())>
            <b>{quantity.range_text(&range)}</b>
            {status_text.map(|status_text| view! { <span class="standing">" "{status_text}</span> })}
        </dd>
    }
}

fn burn_text(burn: Option<&Burn>, quantity: Quantity, target: f64, store: Store) -> String {
    let Some(burn) = burn else { return String::new() };
    let (least, most) = burn.over;
    let share =
        |over: u64| format::percent(if burn.samples > 0 { over as f64 / burn.samples as f64 } else { 0.0 });
    let (over, shares) = match least == most {
        true => (format::count(least), share(least)),
        // The target lies inside a bucket.
        false => (
            format!("{} to {}", format::count(least), format::count(most)),
            format!("{} to {}", share(least), share(most)),
        ),
    };
    format!(
        "Session: {over} of {} samples above {} ({shares}), since {}, {}.",
        format::count(burn.samples),
        quantity.to_text(target),
        format::ago(store.now_ms().since(burn.since_ms)),
        burn.source.to_text()
    )
}

#[component]
fn TrendChart(
    store: Store,
    dark: Memo<bool>,
    goal: LatencyTarget,
    labels: QuantityLabels,
    span: Memo<TimeSpan>,
) -> impl IntoView {
    let QuantityLabels { quantity, id, name: title, .. } = labels;
    // Points are five seconds apart or more and keep their place: between them nothing is worked out or drawn.
    let step = Memo::new(move |_| {
        let at = |at: Millis| Millis(at.0 / TREND_STEP_MS * TREND_STEP_MS);
        span.with(|span| TimeSpan { from: at(span.from), until: at(span.until) })
    });
    let line = Memo::new(move |_| {
        let (span, now) = (step.get(), store.received_ms());
        store.peek(|shown| TrendSeries::of(shown, quantity, span, now))
    });
    let hidden = Hidden::of(store, if quantity == Quantity::Ttft { "ttft.hide" } else { "itl.hide" });
    let legend = Memo::new(move |_| {
        let of = |id: &str, name: &str, colour: &str| LegendEntry {
            id: id.to_owned(),
            name: name.to_owned(),
            swatch: "",
            colour: colour.to_owned(),
        };
        vec![of("p95", "p95", "--focus"), of("target", "target", "--warn")]
    });
    let option = move |palette: &Palette| {
        let target = Some(goal.ms.get()).filter(|_| !hidden.has("target"));
        let is_shown = !hidden.has("p95");
        line.with(|line| {
            let trend = Trend {
                name: &format!("{title} p95, ms"),
                colour: palette.focus,
                series: line.as_ref()?,
                is_shown,
                target,
                target_colour: palette.warn,
            };
            Some(trend::option(&trend, step.get()))
        })
    };
    let description = move || {
        let last = line.with(|line| line.as_ref().and_then(|line| line.last));
        let last = last.map_or("no sample".to_owned(), |p95| quantity.range_text(&p95));
        format!(
            "95th percentile of {title} over the 60 s before each point; at the end {last}, target {}",
            quantity.to_text(goal.ms.get())
        )
    };
    view! {
        <Legend hidden all=legend/>
        <TimeChart store dark id=format!("{id}-trend") class="chart-box trend" description=Memo::new(move |_| description())
            insets=trend::INSETS span=step option/>
        <p class="caption">{TREND_NOTE}</p>
    }
}
