//! The sweep as a map: weights down, temperatures across, a figure in every cell. The present and the recommended
//! setting are marked by a sign, not by colour; arrow keys move from cell to cell, and the cell is described as text.
//!
//! A table, not ECharts' heat map: that one's cells take neither the focus nor a name to be read aloud.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_icicle::heat::STEPS;
use radixscope_insight::counterfactual::{FixedStateOutcome, Grid, SweepReport, present_setting};

use super::table::{changed, signed};
use crate::format;
use crate::keys;
use crate::view::control::view;

/// What the cells show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Changed,
    Overlap,
    Imbalance,
    Saved,
}

impl Metric {
    const ALL: [Metric; 4] = [Metric::Changed, Metric::Overlap, Metric::Imbalance, Metric::Saved];

    const fn key(self) -> &'static str {
        match self {
            Metric::Changed => "flips",
            Metric::Overlap => "overlap",
            Metric::Imbalance => "spread",
            Metric::Saved => "saved",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Metric::Changed => "Changed worker, % of decisions",
            Metric::Overlap => "KV hit rate, % of prompt blocks",
            Metric::Imbalance => "In-flight imbalance p95, requests",
            Metric::Saved => "Prompt tokens saved a request",
        }
    }

    fn of(self, outcome: &FixedStateOutcome) -> Option<f64> {
        match self {
            Metric::Changed => Some(outcome.expected_changes / outcome.decisions.max(1) as f64),
            Metric::Overlap => outcome.overlap_share,
            Metric::Imbalance => outcome.imbalance.map(|imbalance| f64::from(imbalance.p95)),
            Metric::Saved => {
                outcome.prefill_saved_tokens.map(|saved| saved / outcome.prefill_decisions.max(1) as f64)
            }
        }
    }

    fn text(self, value: Option<f64>) -> String {
        let Some(value) = value else { return format::UNKNOWN.to_owned() };
        match self {
            Metric::Changed | Metric::Overlap => format!("{:.1}", value * 100.0),
            Metric::Imbalance => format!("{value:.0}"),
            Metric::Saved => signed(value),
        }
    }
}

/// A cell as text.
fn in_text(grid: &Grid, outcome: &FixedStateOutcome, weight: f64, temperature: f64) -> String {
    let name = grid.recorded.prefill_factor_number().name;
    let unknown = || "unknown".to_owned();
    let overlap = |o: &FixedStateOutcome| o.overlap_share.map_or_else(unknown, format::tenths);
    let imbalance = |o: &FixedStateOutcome| o.imbalance.map_or_else(unknown, |s| s.p95.to_string());
    let saved = match Metric::Saved.of(outcome) {
        Some(saved) => format!("{} prompt tokens saved a request", signed(saved)),
        None => "prompt tokens saved unknown".to_owned(),
    };
    format!(
        "{name} {weight}, router_temperature {temperature}: {} of {} decisions change worker; KV hit rate {} (actual {}); in-flight imbalance \
         p95 {} (actual {}); {saved}",
        changed(outcome),
        format::count(outcome.decisions),
        overlap(outcome),
        overlap(&grid.actual),
        imbalance(outcome),
        imbalance(&grid.actual),
    )
}

/// Where a key leads from a cell, `(row, column)`.
fn next((row, column): (usize, usize), key: &str, rows: usize, columns: usize) -> Option<(usize, usize)> {
    Some(match key {
        "ArrowUp" => (row.saturating_sub(1), column),
        "ArrowDown" => ((row + 1).min(rows - 1), column),
        "ArrowLeft" => (row, column.saturating_sub(1)),
        "ArrowRight" => (row, (column + 1).min(columns - 1)),
        "Home" => (row, 0),
        "End" => (row, columns - 1),
        "PageUp" => (0, column),
        "PageDown" => (rows - 1, column),
        _ => return None,
    })
}

fn cell_id((row, column): (usize, usize)) -> String {
    format!("cf-cell-{row}-{column}")
}

/// Every setting tried, behind its name: the answer stands above. `choose` gets the setting of a cell that is chosen.
#[component]
pub(super) fn AllSettings(report: Arc<SweepReport>, choose: Callback<(f64, f64)>) -> impl IntoView {
    let tried = report.grid.as_ref()?.outcomes.len();
    Some(view! {
        <details class="cf-all" data-testid="cf-all">
            <summary data-testid="cf-all-name">{format!("All {tried} settings")}</summary>
            <HeatMap report choose/>
        </details>
    })
}

/// The map, and what the cell says.
#[component]
fn HeatMap(report: Arc<SweepReport>, choose: Callback<(f64, f64)>) -> impl IntoView {
    let grid = report.grid.clone()?;
    let grid = StoredValue::new(grid);
    let metric = RwSignal::new(Metric::Changed);
    let (rows, columns) = grid.with_value(|g| (g.prefill_factors.len(), g.temperatures.len()));
    let present = grid.with_value(|g| {
        let row = g.prefill_factors.iter().position(|&factor| factor == g.recorded.prefill_factor())?;
        Some((row, g.temperatures.iter().position(|&temperature| temperature == 0.0)?))
    });
    let recommended = report.recommendation.as_ref().and_then(|advice| advice.outcome);
    let recommended = recommended.map(|at| (at / columns, at % columns));
    let at = RwSignal::new(recommended.or(present).unwrap_or((0, 0)));
    let range = Memo::new(move |_| {
        let metric = metric.get();
        grid.with_value(|g| {
            let values = g.outcomes.iter().filter_map(|outcome| metric.of(outcome));
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)))
        })
    });
    let status_text = move || {
        let (row, column) = at.get();
        grid.with_value(|g| {
            let (weight, temperature) = (g.prefill_factors[row], g.temperatures[column]);
            let mark = mark((row, column), present, recommended);
            let mark = if mark.1.is_empty() { String::new() } else { format!(" ({})", mark.1) };
            let note = g.outcome(row, column).map(|outcome| in_text(g, outcome, weight, temperature));
            format!("{}{mark}.", note.unwrap_or_default())
        })
    };
    let go = move |event: web_sys::KeyboardEvent| {
        let key = event.key();
        if key == "Enter" || key == " " {
            event.prevent_default();
            let (row, column) = at.get_untracked();
            choose.run(grid.with_value(|g| (g.prefill_factors[row], g.temperatures[column])));
        } else if let Some(cell) = next(at.get_untracked(), &key, rows, columns) {
            event.prevent_default();
            at.set(cell);
            keys::focus(&cell_id(cell));
        }
    };
    let cell = move |row: usize, column: usize| {
        let (sign, meaning) = mark((row, column), present, recommended);
        let value =
            move || grid.with_value(|g| g.outcome(row, column).and_then(|outcome| metric.get().of(outcome)));
        let step = move || match (value(), range.get()) {
            (Some(value), (least, most)) if most > least => {
                let step = ((value - least) / (most - least) * (STEPS - 1) as f64).round();
                format!("cf-cell h{}", step as usize)
            }
            (Some(_), _) => "cf-cell h4".to_owned(),
            (None, _) => "cf-cell".to_owned(),
        };
        let note = grid.with_value(|g| {
            let outcome = g.outcome(row, column)?;
            Some(in_text(g, outcome, g.prefill_factors[row], g.temperatures[column]))
        });
        let label = if meaning.is_empty() { note } else { note.map(|note| format!("{note} ({meaning})")) };
        let title = label.clone();
        // What is seen comes first: who speaks to the page says that.
        let label = move || label.as_ref().map(|label| format!("{}: {label}", metric.get().text(value())));
        view! {
            <td role="gridcell" id=cell_id((row, column)) class=move || step() title=title aria-label=move || label()
                tabindex=move || if at.get() == (row, column) { "0" } else { "-1" }
                aria-selected=move || (at.get() == (row, column)).to_string()
                data-mark=meaning
                on:focus=move |_| at.set((row, column))
                on:click=move |_| { at.set((row, column)); keys::focus(&cell_id((row, column))); }
                on:dblclick=move |_| choose.run(grid.with_value(|g| (g.prefill_factors[row], g.temperatures[column])))>
                {move || metric.get().text(value())}
                {(!sign.is_empty()).then(|| view! { <b class="cf-mark" aria-hidden="true">{sign}</b> })}
            </td>
        }
    };
    let option = grid.with_value(|g| g.recorded.prefill_factor_number().option(g.recorded.formula));
    let head = grid.with_value(|g| {
        g.temperatures
            .iter()
            .map(|t| view! { <th scope="col" role="columnheader">{t.to_string()}</th> })
            .collect_view()
    });
    let body = grid.with_value(|g| {
        let row = |(row, weight): (usize, &f64)| {
            view! {
                <tr role="row">
                    <th scope="row" role="rowheader">{weight.to_string()}</th>
                    {(0..columns).map(|column| cell(row, column)).collect_view()}
                </tr>
            }
        };
        g.prefill_factors.iter().enumerate().map(row).collect_view()
    });
    let choose = move |event: web_sys::Event| {
        let key = event_target_value(&event);
        metric.set(Metric::ALL.into_iter().find(|metric| metric.key() == key).unwrap_or(Metric::Changed));
    };
    Some(view! {
        <div class="cf-map">
            <p class="quiet" data-testid="cf-present">{present_setting(&report)}</p>
            <div class="cf-map-head">
                <label>"Cells show "
                    <select data-testid="cf-metric" on:change=choose>
                        {Metric::ALL.map(|m| view! { <option value=m.key()>{m.name()}</option> }).collect_view()}
                    </select>
                </label>
                <span class="cf-legend" data-testid="cf-legend">
                    {move || metric.get().text(Some(range.get().0).filter(|v| v.is_finite()))}
                    <span class="cf-scale" aria-hidden="true">
                        {(0..STEPS).map(|step| view! { <i class=format!("h{step}")></i> }).collect_view()}
                    </span>
                    {move || metric.get().text(Some(range.get().1).filter(|v| v.is_finite()))}
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
                    <tr role="row"><td></td>{head}</tr>
                </thead>
                <tbody>{body}</tbody>
            </table>
            <p id="cf-status" class="cf-status" aria-live="polite" data-testid="cf-status">{move || status_text()}</p>
            <p class="quiet">"Arrow keys move between cells; Enter takes the cell's setting into the form above."</p>
        </div>
    })
}

/// Sign and meaning of a marked cell.
fn mark(
    cell: (usize, usize),
    present: Option<(usize, usize)>,
    recommended: Option<(usize, usize)>,
) -> (&'static str, &'static str) {
    match (Some(cell) == present, Some(cell) == recommended) {
        (true, true) => ("◆★", "present, recommended"),
        (true, false) => ("◆", "present"),
        (false, true) => ("★", "recommended"),
        (false, false) => ("", ""),
    }
}
