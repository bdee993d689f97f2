//! The decisions that would have gone elsewhere, one by one, each with the way to its ledger entry.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{ChangedDecision, OfflineReplayReport};

use crate::format;
use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::nav;

/// The list; bounded by the report.
#[component]
pub(super) fn Flips(store: Store, report: Arc<OfflineReplayReport>) -> impl IntoView {
    let shown = report.flips.len();
    let caption = match shown {
        0 => "No decision would most likely change worker.".to_owned(),
        _ => format!(
            "{shown} decisions, oldest first, whose worker is no longer among the likeliest. Costs are in blocks, under the setting tried; round-robin: as recorded."
        ),
    };
    let row = |flip: &ChangedDecision| view! { <FlipRow store flip=*flip/> };
    let rows = report.flips.iter().map(row).collect_view();
    view! {
        <p class="caption" data-testid="cf-flips-caption">{caption}</p>
        {(shown > 0).then(|| view! {
            <div class="scroll cf-flips" tabindex="0" role="region" aria-label="Table of decisions that change worker">
                <table>
                    <thead><tr>
                        <th scope="col">"Decision"</th>
                        <th scope="col">"Actual"</th>
                        <th scope="col">"Instead"</th>
                        <th scope="col" class="n" title="Cost of the other worker less that of the actual one, in blocks">"Cost difference"</th>
                        <th scope="col" class="n" title="Probability that the actual worker is chosen under the setting tried">"Probability of actual"</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        })}
    }
}

#[component]
fn FlipRow(store: Store, flip: ChangedDecision) -> impl IntoView {
    let query = move || {
        let query = store.address.with(|address| address.with_panel(Panel::Decisions).query());
        format!("{query}&decision={}", flip.decision)
    };
    let open = move |event: web_sys::MouseEvent| {
        if nav::stays_here(&event) {
            store.address.set(Address::parse(&query()).0);
        }
    };
    let difference = flip.to_cost - flip.from_cost;
    let sign = if difference < 0.0 { "−" } else { "+" };
    view! {
        <tr data-testid="cf-flip" data-decision=flip.decision.to_string()>
            <td><a href=move || format!("./{}", query()) on:click=open>{format!("#{}", flip.decision)}</a></td>
            <td><Chip store worker=flip.from/>{format!(" {:.1}", flip.from_cost)}</td>
            <td>"→ "<Chip store worker=flip.to/>{format!(" {:.1}", flip.to_cost)}</td>
            <td class="n">{format!("{sign}{:.1}", difference.abs())}</td>
            <td class="n">{format::tenths(flip.actual_probability)}</td>
        </tr>
    }
}
