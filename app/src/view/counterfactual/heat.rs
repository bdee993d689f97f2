//! The sweep as a map: weights down, temperatures across, a figure in every cell. The present and the recommended
//! setting are marked by a sign, not by colour; arrow keys move from cell to cell, and the cell is described as text.
//!
//! A table, not ECharts' heat map: that one's cells take neither the focus nor a name to be read aloud.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_icicle::heat::STEPS;
use radixscope_insight::counterfactual::SweepReport;
use radixscope_panels::counterfactual::{CellAt, HeatMap, Metric};

use crate::keys;
use crate::view::control::view;

fn cell_id((row, column): CellAt) -> String {
    format!("cf-cell-{row}-{column}")
}

/// Every setting tried, behind its name: the answer stands above. `choose` gets the setting of a cell that is chosen.
#[component]
pub(super) fn AllSettings(report: Arc<SweepReport>, choose: Callback<(f64, f64)>) -> impl IntoView {
    let map = HeatMap::of(report)?;
    Some(view! {
        <details class="cf-all" data-testid="cf-all">
            <summary data-testid="cf-all-name">{map.name()}</summary>
            <Map map choose/>
        </details>
    })
}

/// The map, and what the cell says.
#[component]
fn Map(map: HeatMap, choose: Callback<(f64, f64)>) -> impl IntoView {
    let metric = RwSignal::new(Metric::Changed);
    let at = RwSignal::new(map.begin_at());
    let (rows, columns) = (map.weights().len(), map.temperatures().len());
    let present = map.present_text();
    let option = map.weight_option();
    let texts = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>();
    let (weights, temperatures) = (texts(map.weights()), texts(map.temperatures()));
    let map = StoredValue::new(map);
    let take = move |cell: CellAt| {
        if let Some(setting) = map.with_value(|map| map.setting(cell)) {
            choose.run(setting);
        }
    };
    let go = move |event: web_sys::KeyboardEvent| {
        let key = event.key();
        if key == "Enter" || key == " " {
            event.prevent_default();
            take(at.get_untracked());
        } else if let Some(cell) = map.with_value(|map| map.after(at.get_untracked(), &key)) {
            event.prevent_default();
            at.set(cell);
            keys::focus(&cell_id(cell));
        }
    };
    let cell = move |cell: CellAt| {
        let (sign, meaning) = map.with_value(|map| map.mark(cell));
        let title = map.with_value(|map| map.note(cell));
        let shade = move || match map.with_value(|map| map.shade(cell, metric.get())) {
            Some(step) => format!("cf-cell h{step}"),
            None => "cf-cell".to_owned(),
        };
        let label = move || map.with_value(|map| map.label(cell, metric.get()));
        let text = move || map.with_value(|map| map.text(cell, metric.get()));
        view! {
            <td role="gridcell" id=cell_id(cell) class=shade title=title aria-label=label
                tabindex=move || if at.get() == cell { "0" } else { "-1" }
                aria-selected=move || (at.get() == cell).to_string()
                data-mark=meaning
                on:focus=move |_| at.set(cell)
                on:click=move |_| { at.set(cell); keys::focus(&cell_id(cell)); }
                on:dblclick=move |_| take(cell)>
                {text}
                {(!sign.is_empty()).then(|| view! { <b class="cf-mark" aria-hidden="true">{sign}</b> })}
            </td>
        }
    };
    let head = temperatures.into_iter().map(|t| view! { <th scope="col" role="columnheader">{t}</th> });
    let row = |(row, weight): (usize, String)| {
        view! {
            <tr role="row">
                <th scope="row" role="rowheader">{weight}</th>
                {(0..columns).map(|column| cell((row, column))).collect_view()}
            </tr>
        }
    };
    let body = weights.into_iter().enumerate().take(rows).map(row).collect_view();
    let choose_metric = move |event: web_sys::Event| metric.set(Metric::named(&event_target_value(&event)));
    let end = move |end: usize| move || map.with_value(|map| map.legend(metric.get())[end].clone());
    view! {
        <div class="cf-map">
            <p class="quiet" data-testid="cf-present">{present}</p>
            <div class="cf-map-head">
                <label>"Cells show "
                    <select data-testid="cf-metric" on:change=choose_metric>
                        {Metric::ALL.map(|m| view! { <option value=m.key()>{m.name()}</option> }).collect_view()}
                    </select>
                </label>
                <span class="cf-legend" data-testid="cf-legend">
                    {end(0)}
                    <span class="cf-scale" aria-hidden="true">
                        {(0..STEPS).map(|step| view! { <i class=format!("h{step}")></i> }).collect_view()}
                    </span>
                    {end(1)}
                    <span class="quiet">"◆ current weight, ★ recommended"</span>
                </span>
            </div>
            <table role="grid" class="cf-grid" data-testid="cf-grid" on:keydown=go aria-describedby="cf-status"
                aria-label=format!("Sweep: {option} down, --router-temperature across")>
                <thead>
                    <tr role="row">
                        <th role="columnheader" scope="colgroup" colspan=(columns + 1).to_string()>
                            "↓ "<code>{option}</code>" → "<code>"--router-temperature"</code>
                        </th>
                    </tr>
                    <tr role="row"><td></td>{head.collect_view()}</tr>
                </thead>
                <tbody>{body}</tbody>
            </table>
            <p id="cf-status" class="cf-status" aria-live="polite" data-testid="cf-status">{move || map.with_value(|map| map.status_text(at.get()))}</p>
            <p class="quiet">"Arrow keys move between cells; Enter takes the cell's setting into the form above."</p>
        </div>
    }
}
