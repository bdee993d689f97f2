//! Costs as bars, a row for each worker: by how much one costs more than the cheapest, and which terms that is of. Bars from 0
//! would all look the same, because candidates of a busy pool differ by a few blocks of thousands. Plain data in; knows
//! neither decisions nor questions.
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
use crate::view::control::view;

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
    /// Notes on it: `actual choice`, `load changed`.
    pub marks: Vec<&'static str>,
    /// A cost to compare with, drawn as a line across the bar.
    pub ghost: Option<f64>,
    /// Where its load is from, as text.
    pub about: String,
}

/// What bars are drawn on: what every candidate costs at least is left out.
#[derive(Clone, Copy, PartialEq, Default)]
pub(super) struct CostScale {
    /// Cost of the cheapest, in blocks, where the bars begin.
    pub base: f64,
    /// The highest cost, or what else is to be on the scale.
    pub end: f64,
    /// The terms of the cheapest.
    least: [f64; 3],
    candidates: usize,
}

impl CostScale {
    /// The scale of `costs`, each with its terms, of which it is the sum. `also`: what else is to be on it.
    pub(super) fn of(costs: impl Iterator<Item = (f64, [f64; 3])>, also: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self { base: f64::INFINITY, end: f64::NEG_INFINITY, ..Self::default() };
        for (cost, terms) in costs {
            scale.candidates += 1;
            if cost < scale.base {
                (scale.base, scale.least) = (cost, terms);
            }
            scale.end = if cost.is_finite() { scale.end.max(cost) } else { scale.end };
        }
        scale.end = also.filter(|other| other.is_finite()).fold(scale.end, f64::max);
        if scale.base.is_finite() { scale } else { Self { candidates: scale.candidates, ..Self::default() } }
    }

    /// Where a cost lies, as a width for style sheets.
    pub(super) fn width(&self, cost: f64) -> String {
        let span = self.end - self.base;
        let beyond = if span > 0.0 { (cost - self.base) / span } else { 0.0 };
        format::width(if beyond.is_finite() { beyond } else { 1.0 })
    }

    /// The bar of a cost: what it has beyond the cheapest, shared out among the terms that it has more of.
    pub(super) fn bar(&self, cost: f64, terms: [f64; 3], classes: [&'static str; 3]) -> AnyView {
        let more: [f64; 3] = std::array::from_fn(|at| (terms[at] - self.least[at]).max(0.0));
        let sum: f64 = more.iter().filter(|blocks| blocks.is_finite()).sum();
        let beyond = cost - self.base;
        let part = |at: usize| {
            let share =
                if sum > 0.0 && sum.is_finite() { more[at] / sum } else { f64::from(u8::from(at == 2)) };
            (beyond > 0.0 && share > 0.0).then(|| {
                let width = self.width(self.base + beyond * share);
                view! { <i class=classes[at] style=format!("width:{width}")></i> }
            })
        };
        [part(0), part(1), part(2)].collect_view().into_any()
    }

    /// What is left out, as text.
    pub(super) fn shared_text(&self) -> String {
        let shared = Short(tenths(self.base));
        match self.candidates {
            0 | 1 => format!("One candidate: {shared} blocks of cost"),
            all if self.end <= self.base => format!("All {all} candidates cost {shared} blocks"),
            all => format!(
                "All {all} candidates share {shared} blocks of cost; bars show what each costs beyond"
            ),
        }
    }
}

impl CostRow {
    /// What the cost is the sum of, in the order of the formulas: prefill, decode, active requests.
    fn parts(&self) -> [f64; 3] {
        let t = &self.terms;
        let times = t.taint_multiplier.unwrap_or(1.0);
        let decode =
            if t.is_decode_only { (t.decode_blocks - t.credit_blocks).max(0.0) } else { t.decode_blocks };
        [t.prefill_factor * t.prefill_blocks * times, decode * times, t.active_request_blocks * times]
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
            <span><i class="prefill"></i>"more prefill × weight or scale"</span>
            <span><i class="decode"></i>"more decode"</span>
            <span><i class="requests"></i>"more active requests"</span>
            {ghost.map(|ghost| view! { <span><b class="ghost"></b>{ghost}</span> })}
        </p>
    }
}

/// The rows, in their order. Bars share one scale.
#[component]
pub(super) fn CostRows(store: Store, rows: Memo<Vec<CostRow>>) -> impl IntoView {
    let scale = Memo::new(move |_| {
        rows.with(|rows| {
            let costs = rows.iter().map(|row| (row.terms.cost, row.parts()));
            CostScale::of(costs, rows.iter().filter_map(|row| row.ghost))
        })
    });
    view! {
        <p class="costs-shared" data-testid="cost-shared">{move || scale.with(CostScale::shared_text)}</p>
        <table class="costs" data-testid="costs">
            <thead><tr>
                <th scope="col" class="n">"Rank"</th>
                <th scope="col">"Worker"</th>
                <th scope="col" class="n" title="Blocks of the prompt that are cached on the worker">"Cached blocks"</th>
                <th scope="col" class="bar-head">"Cost beyond the cheapest, blocks"</th>
                <th scope="col" class="n">"Cost"</th>
                <th scope="col" class="n chance">"Probability"</th>
            </tr></thead>
            <tbody>
                {move || {
                    let scale = scale.get();
                    let row = |row: CostRow| view! { <OneRow store row scale/> };
                    rows.get().into_iter().map(row).collect_view()
                }}
            </tbody>
        </table>
    }
}

#[component]
fn OneRow(store: Store, row: CostRow, scale: CostScale) -> impl IntoView {
    let bars = scale.bar(row.terms.cost, row.parts(), ["prefill", "decode", "requests"]);
    let ghost = row.ghost.map(|ghost| {
        let left = format!("left:{}", scale.width(ghost));
        view! { <b class="ghost" style=left title=format!("{} blocks, to compare with", Short(ghost))></b> }
    });
    let saved = match row.saved_blocks() {
        saved if saved > 0.0 => format!("; {} blocks saved by the cache", Short(saved)),
        _ => String::new(),
    };
    let about = row.about + &saved;
    let name = match row.worker {
        Some(worker) => view! { <Chip store worker/> },
        None => view! { <span class="chip">{row.label.clone()}</span> },
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
                <span class="stack" aria-hidden="true">{bars}{ghost}</span>
                <span class="sum" title=about>{row.terms.sum().to_string()}</span>
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
