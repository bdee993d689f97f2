//! One quantity: its percentiles against the target, how much was above it, and its way over time.

use charming::element::LineStyleType;
use leptos::prelude::*;
use radixscope_export::panel::latency::{self as latency_panel, QuantityLabels, SideRow, TREND_NOTE};
use radixscope_icicle::palette::Palette;
use radixscope_insight::latency::{Quantity, Side};
use radixscope_model::id::Millis;
use radixscope_panels::latency::{QuantityFigures, Reading, TREND_TARGET, TrendLines};

use super::goals::{LatencyTarget, TargetField};
use crate::draw::trend::{self, Trend, TrendLine};
use crate::store::{Feed, Store};
use crate::time_range::TimeSpan;
use crate::view::control::view;
use crate::view::figure::EmptyPanel;
use crate::view::legend::{Hidden, Legend};
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
    let is_current = Memo::new(move |_| store.as_of(Feed::Metrics).is_none());
    let figures = Memo::new(move |_| {
        let (now, target, is_current) = (second.get(), goal.ms.get(), is_current.get());
        store.peek(|shown| QuantityFigures::of(shown, quantity, target, now, is_current))
    });
    let sides = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency_panel::sides(cluster, quantity, now))
    });
    let is_known = Memo::new(move |_| figures.with(|figures| figures.is_known));
    let has_sides = Memo::new(move |_| sides.with(|all| !all.is_empty()));
    let share = Memo::new(move |_| figures.with(|figures| figures.share.clone()));
    let source = Memo::new(move |_| figures.with(|figures| figures.source.clone()));
    let burn = Memo::new(move |_| figures.with(|figures| figures.burn.clone()));
    let reading = move |at: usize, class: &'static str| {
        let name = figures.with_untracked(|figures| figures.readings[at].name);
        let reading = Memo::new(move |_| figures.with(|figures| figures.readings[at].clone()));
        view! { <div class=class data-testid=format!("{id}-{name}")><dt>{name}</dt>{move || value(reading.get())}</div> }
    };
    view! {
        <section class="quantity" aria-labelledby=format!("{id}-title") data-testid=id>
            <header>
                <h3 id=format!("{id}-title")>{title}" "<span class="quiet">{long}</span></h3>
                <span class="spacer"></span>
                <TargetField goal id/>
            </header>
            <Show when=move || is_known.get() fallback=move || view! { <EmptyPanel text=latency_panel::empty(&labels)/> }>
                <dl class="quantiles">{reading(0, "main")} {reading(1, "")} {reading(2, "")}</dl>
                <p class="caption figures" data-testid=format!("{id}-burn")>
                    <span data-testid=format!("{id}-source") title=source>{share}</span>
                    {move || burn.get().map(|burn| view! { <span title=burn.title>{burn.text}</span> })}
                </p>
            </Show>
            <Show when=move || has_sides.get()><Sides id quantity sides/></Show>
            <Show when=move || is_known.get() || has_sides.get()><TrendChart store dark goal labels span/></Show>
        </section>
    }
}

/// A percentile; the 95th also against its target.
fn value(Reading { text, class, standing, is_sampled, .. }: Reading) -> AnyView {
    if !is_sampled {
        return view! { <dd class=class>{text}</dd> };
    }
    let standing = standing.map(|text| view! { <span class="standing">" "{text}</span> });
    view! { <dd class=class><b>{text}</b>{standing}</dd> }
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

#[component]
fn TrendChart(
    store: Store,
    dark: Memo<bool>,
    goal: LatencyTarget,
    labels: QuantityLabels,
    span: Memo<TimeSpan>,
) -> impl IntoView {
    let QuantityLabels { quantity, id, name: title, .. } = labels;
    let step = Memo::new(move |_| TrendLines::step(span.get()));
    let lines = Memo::new(move |_| {
        let (span, now) = (step.get(), store.received_ms());
        store.peek(|shown| TrendLines::of(shown, quantity, span, now))
    });
    let hidden = Hidden::of(store, TrendLines::hidden_key(quantity));
    let legend = Memo::new(move |_| lines.with(TrendLines::legend));
    let option = move |palette: &Palette| {
        let target = Some(goal.ms.get()).filter(|_| !hidden.has(TREND_TARGET));
        lines.with(|lines| {
            let drawn = hidden.with(|hidden| lines.drawn(title, hidden));
            let drawn = drawn.iter().map(|(name, side, series)| {
                let (colour, style) = match side {
                    Side::Frontend => (palette.focus, LineStyleType::Solid),
                    Side::Client => (palette.text, LineStyleType::Dotted),
                    Side::Engine => (palette.quiet, LineStyleType::Solid),
                };
                TrendLine { name, colour, style, series }
            });
            let trend = Trend { lines: drawn.collect(), target, target_colour: palette.warn };
            (!lines.0.is_empty()).then(|| trend::option(&trend, step.get()))
        })
    };
    let description = Memo::new(move |_| lines.with(|lines| lines.description(&labels, goal.ms.get())));
    view! {
        <div title=TREND_NOTE><Legend hidden all=legend/></div>
        <TimeChart store dark id=format!("{id}-trend") class="chart-box trend" description insets=trend::INSETS span=step option/>
    }
}
