//! One quantity: its percentiles against the target, how much was above it, and its way over time.

use charming::element::LineStyleType;
use leptos::prelude::*;
use radixscope_export::panel::latency::{
    self as latency_panel, NO_SAMPLE, QuantityLabels, SideRow, TREND_NOTE, TrendSeries,
};
use radixscope_icicle::palette::Palette;
use radixscope_insight::latency::{self, Burn, Quantity, Side, TREND_STEP_MS, Times};
use radixscope_model::id::Millis;
use radixscope_model::range::{Range, TargetComparison};

use super::goals::{LatencyTarget, TargetField};
use crate::draw::trend::{self, Trend, TrendLine};
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
    // Of the same samples as the percentiles: exact where these are.
    let above = Memo::new(move |_| {
        let (now, target) = (second.get(), goal.ms.get());
        let source = figure.with(|times| times.as_ref().map(|times| times.source.clone()))?;
        store.peek(|cluster| latency::share_above(cluster, quantity, now, target, &source))
    });
    let sides = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency_panel::sides(cluster, quantity, now))
    });
    let is_current = move || store.as_of(Feed::Metrics).is_none();
    let is_known = Memo::new(move |_| times.with(|all| !all.is_empty()));
    let has_sides = Memo::new(move |_| sides.with(|all| !all.is_empty()));
    let source = move || times.with(|all| latency::source_text(all, quantity));
    let share = move || figure.with(|times| times.as_ref().map_or(String::new(), Times::share_text));
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
            <Show when=move || is_known.get() fallback=move || view! { <EmptyPanel text=latency_panel::empty(&labels)/> }>
                <dl class="quantiles">{reading(1, "p95", "main")} {reading(0, "p50", "")} {reading(2, "p99", "")}</dl>
                <p class="caption figures" data-testid=format!("{id}-burn")>
                    <span data-testid=format!("{id}-source") title=source>{share}</span>
                    {move || burn.with(|burn| burn.as_ref().map(|burn| {
                        let target = quantity.to_text(goal.ms.get());
                        let session = session_text(burn, &target, store);
                        let hint = format!("{session}, {}", burn.source.to_text());
                        let latest = above.get().map(|share| format!("{} above {target}", share.to_text(format::percent)));
                        view! { <span title=hint>{latest.unwrap_or(session)}</span> }
                    }))}
                </p>
            </Show>
            <Show when=move || has_sides.get()><Sides id quantity sides/></Show>
            <Show when=move || is_known.get() || has_sides.get()><TrendChart store dark goal labels span/></Show>
        </section>
    }
}

/// The same figures wherever else they are measured.
#[component]
fn Sides(id: &'static str, quantity: Quantity, sides: Memo<Vec<SideRow>>) -> impl IntoView {
    let row = move |side: SideRow| {
        let cells = [1, 0, 2].map(|at| view! { <td class="n">{side.text(at, quantity)}</td> });
        view! {
            <tr data-testid=format!("{id}-{}", side.id) title=side.source>
                <th scope="row">{side.name}</th>{cells}<td class="n quiet">{side.share}</td>
            </tr>
        }
    };
    view! {
        <table class="sides" data-testid=format!("{id}-sides")>
            <thead><tr>
                <th scope="col">"Measured"</th>
                {["p95", "p50", "p99"].map(|name| view! { <th scope="col" class="n">{name}</th> })}
                <th scope="col" class="n">"of"</th>
            </tr></thead>
            <tbody>{move || sides.get().into_iter().map(row).collect_view()}</tbody>
        </table>
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

/// How much of the session was above the target.
fn session_text(burn: &Burn, target: &str, store: Store) -> String {
    let of = burn.samples.max(1) as f64;
    let (least, most) = burn.over;
    // They differ where the target lies inside a bucket.
    let share = Range::between(least as f64 / of, Some(most as f64 / of)).to_text(format::percent);
    let (samples, ago) = (format::count(burn.samples), format::ago(store.now_ms().since(burn.since_ms)));
    format!("{share} of {samples} above {target} since {ago}")
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
    let lines = Memo::new(move |_| {
        let (span, now) = (step.get(), store.received_ms());
        // The frontend's above the others.
        store.peek(|shown| {
            let known = [Side::Frontend, Side::Client, Side::Engine].into_iter();
            let known =
                known.filter_map(|side| Some((side, TrendSeries::of(shown, quantity, side, span, now)?)));
            known.collect::<Vec<_>>()
        })
    });
    let shown_sides =
        Memo::new(move |_| lines.with(|lines| lines.iter().map(|(side, _)| *side).collect::<Vec<_>>()));
    let hidden = Hidden::of(store, if quantity == Quantity::Ttft { "ttft.hide" } else { "itl.hide" });
    let legend = Memo::new(move |_| {
        let of = |id: &str, name: &str, colour: &str| LegendEntry {
            id: id.to_owned(),
            name: name.to_owned(),
            swatch: "",
            colour: colour.to_owned(),
        };
        let sides = shown_sides.get();
        let alone = sides.len() == 1;
        let mut all: Vec<_> = sides
            .iter()
            .map(|&side| match side {
                Side::Frontend if alone => of(hide_key(side), "p95", "--focus"),
                Side::Frontend => of(hide_key(side), "p95 at the frontend", "--focus"),
                Side::Client => of(hide_key(side), "at the client", "--text"),
                Side::Engine => of(hide_key(side), "in the engines", "--text-quiet"),
            })
            .collect();
        all.push(of("target", "target", "--warn"));
        all
    });
    let option = move |palette: &Palette| {
        let target = Some(goal.ms.get()).filter(|_| !hidden.has("target"));
        lines.with(|lines| {
            let is_shown = |(side, _): &&(Side, TrendSeries)| !hidden.has(hide_key(*side));
            let names: Vec<_> =
                lines.iter().map(|(side, _)| format!("{title} p95, {}, ms", side.as_str())).collect();
            let drawn = lines.iter().zip(&names).filter(|(line, _)| is_shown(line));
            let drawn = drawn.map(|((side, series), name)| {
                let (colour, style) = match side {
                    Side::Frontend => (palette.focus, LineStyleType::Solid),
                    Side::Client => (palette.text, LineStyleType::Dotted),
                    Side::Engine => (palette.quiet, LineStyleType::Solid),
                };
                TrendLine { name, colour, style, series }
            });
            let trend = Trend { lines: drawn.collect(), target, target_colour: palette.warn };
            (!lines.is_empty()).then(|| trend::option(&trend, step.get()))
        })
    };
    let description = move || {
        let last = |(side, series): &(Side, TrendSeries)| {
            let last = series.last.map_or("no sample".to_owned(), |p95| quantity.range_text(&p95));
            format!("{} {last}", side.as_str())
        };
        let last: Vec<_> = lines.with(|lines| lines.iter().map(last).collect());
        format!(
            "95th percentile of {title} over the 60 s before each point; at the end {}, target {}",
            last.join(", "),
            quantity.to_text(goal.ms.get())
        )
    };
    view! {
        <div title=TREND_NOTE><Legend hidden all=legend/></div>
        <TimeChart store dark id=format!("{id}-trend") class="chart-box trend" description=Memo::new(move |_| description())
            insets=trend::INSETS span=step option/>
    }
}

/// Name of a line in the address.
const fn hide_key(side: Side) -> &'static str {
    match side {
        Side::Frontend => "p95",
        Side::Client | Side::Engine => side.as_str(),
    }
}
