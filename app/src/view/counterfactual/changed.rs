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
pub(super) fn ChangedDecisions(store: Store, report: Arc<OfflineReplayReport>) -> impl IntoView {
    let shown = report.tried.changed.len();
    let caption = match shown {
        0 => "No decision would most likely change worker.".to_owned(),
        _ => format!(
            "{shown} decisions, oldest first, whose worker is no longer among the likeliest. Costs are in blocks, under the setting tried; round-robin: as recorded."
        ),
    };
    let row = |changed: &ChangedDecision| view! { <ChangedRow store changed=*changed/> };
    let rows = report.tried.changed.iter().map(row).collect_view();
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
fn ChangedRow(store: Store, changed: ChangedDecision) -> impl IntoView {
    let query = move || {
        let query = store.address.with(|address| address.with_panel(Panel::Decisions).query());
        format!("{query}&decision={}", changed.decision)
    };
    let open = move |event: web_sys::MouseEvent| {
        if nav::stays_here(&event) {
            store.address.set(Address::parse(&query()).0);
        }
    };
    let difference = changed.to_cost - changed.from_cost;
    let sign = if difference < 0.0 { "−" } else { "+" };
    view! {
        <tr data-testid="cf-flip" data-decision=changed.decision.to_string()>
            <td><a href=move || format!("./{}", query()) on:click=open>{format!("#{}", changed.decision)}</a></td>
            <td><Chip store worker=changed.from/>{format!(" {:.1}", changed.from_cost)}</td>
            <td>"→ "<Chip store worker=changed.to/>{format!(" {:.1}", changed.to_cost)}</td>
            <td class="n">{format!("{sign}{:.1}", difference.abs())}</td>
            <td class="n">{format::tenths(changed.actual_probability)}</td>
        </tr>
    }
}
