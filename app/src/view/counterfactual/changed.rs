//! The decisions that would have gone elsewhere, one by one, each with the way to its ledger entry.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::OfflineReplayReport;
use radixscope_panels::counterfactual::{ChangedRow, ChangedTable};

use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::nav;

/// The list; bounded by the report.
#[component]
pub(super) fn ChangedDecisions(store: Store, report: Arc<OfflineReplayReport>) -> impl IntoView {
    let ChangedTable { caption, rows } = ChangedTable::of(&report);
    let has_any = !rows.is_empty();
    let rows = rows.into_iter().map(|changed| view! { <ChangedDecisionRow store changed/> }).collect_view();
    view! {
        <p class="caption" data-testid="cf-flips-caption">{caption}</p>
        {has_any.then(|| view! {
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
fn ChangedDecisionRow(store: Store, changed: ChangedRow) -> impl IntoView {
    let ChangedRow { decision, from, to, difference, actual_probability } = changed;
    let query = move || {
        let query = store.address.with(|address| address.with_panel(Panel::Decisions).query());
        format!("{query}&decision={decision}")
    };
    let open = move |event: web_sys::MouseEvent| {
        if nav::stays_here(&event) {
            store.address.set(Address::parse(&query()).0);
        }
    };
    view! {
        <tr data-testid="cf-flip" data-decision=decision.to_string()>
            <td><a href=move || format!("./{}", query()) on:click=open>{format!("#{decision}")}</a></td>
            <td><Chip store worker=from.0/>" "{from.1}</td>
            <td>"→ "<Chip store worker=to.0/>" "{to.1}</td>
            <td class="n">{difference}</td>
            <td class="n">{actual_probability}</td>
        </tr>
    }
}
