//! Costs as stacked bars, a row for each worker: what a cost is made of, what the cache saved, who was chosen. Plain data
//! in; knows neither decisions nor questions.
//!
//! The bars are cells of a table, whose other cells are text and buttons: elements, which a chart beside the table could not
//! keep in line with it.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_router::explain::Short;
use radixscope_router::{Formula, Terms};

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;

/// A row.
#[derive(Clone, PartialEq)]
pub(super) struct CostRow {
    /// Whose colour and label to show; `None` for what is no worker of the cluster.
    pub worker: Option<WorkerIx>,
    /// Its name, for those without a chip and for tests.
    pub label: String,
    /// Place by cost, from 1.
    pub rank: u32,
    /// Blocks of the prompt it holds.
    pub overlap_blocks: u32,
    /// Cost and what it is made of.
    pub terms: Terms,
    /// Chance to be chosen, 0 … 1, if it is known.
    pub probability: Option<f64>,
    /// Whether it is the choice.
    pub is_chosen: bool,
    /// What else is to be said of it, in words: `actual choice`, `load changed`.
    pub marks: Vec<&'static str>,
    /// A cost to compare with, drawn as a line across the bar.
    pub ghost: Option<f64>,
    /// Where its load is from, in words.
    pub about: String,
}

/// A part of a cost, in blocks.
struct Part {
    class: &'static str,
    blocks: f64,
}

impl CostRow {
    /// What the bar is stacked of, in the order of the formulas; together the cost.
    fn parts(&self) -> [Part; 3] {
        let t = &self.terms;
        let times = t.taint_multiplier.unwrap_or(1.0);
        let decode =
            if t.is_decode_only { (t.decode_blocks - t.credit_blocks).max(0.0) } else { t.decode_blocks };
        [
            Part { class: "prefill", blocks: t.prefill_factor * t.prefill_blocks * times },
            Part { class: "decode", blocks: decode * times },
            Part { class: "requests", blocks: t.active_request_blocks * times },
        ]
    }

    /// What it would cost more without its cache.
    fn saved_blocks(&self) -> f64 {
        let t = &self.terms;
        let cached = if t.formula == Formula::A { f64::from(self.overlap_blocks) } else { t.credit_blocks };
        let factor = if t.is_decode_only { 1.0 } else { t.prefill_factor };
        factor * cached * t.taint_multiplier.unwrap_or(1.0)
    }
}

/// What the colours of the bars mean.
#[component]
pub(super) fn CostLegend(
    /// What [`CostRow::ghost`] is, where there is one.
    #[prop(optional)]
    ghost: Option<&'static str>,
) -> impl IntoView {
    view! {
        <p class="cost-legend" aria-hidden="true">
            <span><i class="prefill"></i>"prefill × weight or scale"</span>
            <span><i class="decode"></i>"decode"</span>
            <span><i class="requests"></i>"active requests"</span>
            <span><i class="saved"></i>"saved by the cache"</span>
            {ghost.map(|ghost| view! { <span><b class="ghost"></b>{ghost}</span> })}
        </p>
    }
}

/// The rows, in their order. Bars share one scale.
#[component]
pub(super) fn CostRows(store: Store, rows: Signal<Vec<CostRow>>) -> impl IntoView {
    view! {
        <table class="costs" data-testid="costs">
            <thead><tr>
                <th scope="col" class="n">"Rank"</th>
                <th scope="col">"Worker"</th>
                <th scope="col" class="n" title="Blocks of the prompt that are cached on the worker">"Cached blocks"</th>
                <th scope="col" class="bar-head">"Cost breakdown, blocks"</th>
                <th scope="col" class="n">"Cost"</th>
                <th scope="col" class="n chance">"Probability"</th>
            </tr></thead>
            <tbody>
                {move || {
                    let rows = rows.get();
                    let most = longest(&rows);
                    let row = |row: CostRow| view! { <OneRow store row most/> };
                    rows.into_iter().map(row).collect_view()
                }}
            </tbody>
        </table>
    }
}

/// Blocks at the end of the scale.
fn longest(rows: &[CostRow]) -> f64 {
    let ends = rows.iter().flat_map(|row| [row.terms.cost + row.saved_blocks(), row.ghost.unwrap_or(0.0)]);
    ends.filter(|end| end.is_finite()).fold(0.0, f64::max)
}

#[component]
fn OneRow(store: Store, row: CostRow, most: f64) -> impl IntoView {
    let width =
        |blocks: f64| format!("width:{}", format::width(if most > 0.0 { blocks / most } else { 0.0 }));
    let parts = row.parts();
    let saved = row.saved_blocks();
    let bars = parts.iter().filter(|part| part.blocks > 0.0).map(|part| {
        let title = format!("{} {} blocks", part.class, Short(part.blocks));
        view! { <i class=part.class style=width(part.blocks) title=title></i> }
    });
    let bars = bars.collect_view();
    let ghost = row.ghost.map(|ghost| {
        let left = format!("left:{}", format::width(if most > 0.0 { ghost / most } else { 0.0 }));
        view! { <b class="ghost" style=left title=format!("{} blocks, to compare with", Short(ghost))></b> }
    });
    let saved = (saved > 0.0).then(|| {
        view! { <i class="saved" style=width(saved) title=format!("{} blocks saved by the cache", Short(saved))></i> }
    });
    let name = match row.worker {
        Some(worker) => view! { <Chip store worker/> }.into_any(),
        None => view! { <span class="chip">{row.label.clone()}</span> }.into_any(),
    };
    let marks = row.marks.iter().map(|&mark| view! { <span class="mark-word">{mark}</span> }).collect_view();
    let chosen = row.is_chosen.then(|| view! { <span class="mark-word chosen">"wins"</span> });
    let chance = row.probability.map_or(format::UNKNOWN.to_owned(), chance);
    let meter = row.probability.map(|p| format!("width:{}", format::width(p)));
    view! {
        <tr class:chosen=row.is_chosen data-testid="cost-row" data-name=row.label.clone() data-cost=row.terms.cost.to_string()
            data-probability=row.probability.map(|p| p.to_string()) data-overlap=row.overlap_blocks.to_string()>
            <td class="n">{row.rank}</td>
            <th scope="row"><span class="who">{name}{chosen}{marks}</span></th>
            <td class="n">{format::count(row.overlap_blocks.into())}</td>
            <td class="bar-cell">
                <span class="stack" aria-hidden="true">{bars}{saved}{ghost}</span>
                <span class="sum" title=row.about>{row.terms.sum().to_string()}</span>
            </td>
            <td class="n cost">{Short(tenths(row.terms.cost)).to_string()}</td>
            <td class="n chance"><span class="meter" aria-hidden="true"><i style=meter></i></span>" "{chance}</td>
        </tr>
    }
}

/// Costs as people compare them; the sum beside has all digits.
fn tenths(cost: f64) -> f64 {
    (cost * 100.0).round() / 100.0
}

/// A chance in percent, one decimal where it says something.
fn chance(probability: f64) -> String {
    match probability * 100.0 {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p => format!("{} %", (p * 10.0).round() / 10.0),
    }
}
