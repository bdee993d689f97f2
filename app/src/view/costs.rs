//! Costs as bars, a row for each worker: by how much one costs more than the cheapest, and which terms that is of. Bars from 0
//! would all look the same, because candidates of a busy pool differ by a few blocks of thousands. Paints what
//! [`radixscope_panels::costs`] computes.
//!
//! The bars are cells of a table, whose other cells are text and buttons: elements, which a chart beside the table could not
//! keep in line with it.

use leptos::prelude::*;
pub(super) use radixscope_panels::costs::{CostRow, CostScale};

use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

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

/// The parts of a bar, which have these widths.
pub(super) fn bar(parts: &[Option<String>; 3], classes: [&'static str; 3]) -> impl IntoView + use<> {
    let part = |(width, class): (&Option<String>, &'static str)| {
        width.as_ref().map(|width| view! { <i class=class style=format!("width:{width}")></i> })
    };
    parts.iter().zip(classes).map(part).collect_view()
}

/// The rows, in their order. Bars share one scale.
#[component]
pub(super) fn CostRows(store: Store, rows: Memo<Vec<CostRow>>) -> impl IntoView {
    let scale = Memo::new(move |_| rows.with(|rows| CostScale::of_rows(rows)));
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
    let text = row.on(&scale);
    let ghost = text.ghost.map(|(left, title)| {
        let left = format!("left:{left}");
        view! { <b class="ghost" style=left title=title></b> }
    });
    let name = match row.worker {
        Some(worker) => view! { <Chip store worker/> },
        None => view! { <span class="chip">{row.label.clone()}</span> },
    };
    let marks = row.marks.iter().map(|&mark| view! { <span class="mark-word">{mark}</span> }).collect_view();
    let chosen = row.is_chosen.then(|| view! { <span class="mark-word chosen">"wins"</span> });
    let meter = text.meter.map(|width| format!("width:{width}"));
    view! {
        <tr class:chosen=row.is_chosen data-testid="cost-row" data-name=row.label.clone() data-cost=row.terms.cost.to_string()
            data-probability=row.probability.map(|p| p.to_string()) data-overlap=row.overlap_blocks.to_string()>
            <td class="n">{row.rank}</td>
            <th scope="row"><span class="who">{name}{chosen}{marks}</span></th>
            <td class="n">{text.cached}</td>
            <td class="bar-cell">
                <span class="stack" aria-hidden="true">{bar(&text.bar, ["prefill", "decode", "requests"])}{ghost}</span>
                <span class="sum" title=text.about>{text.sum}</span>
            </td>
            <td class="n cost">{text.cost}</td>
            <td class="n chance"><span class="meter" aria-hidden="true"><i style=meter></i></span>" "{text.probability}</td>
        </tr>
    }
}
