//! What another router than Dynamo's gave every worker: its score as a bar, and what each scorer gave it.

use leptos::prelude::*;
use radixscope_model::record::{Arithmetic, ScoredCandidate};
use radixscope_router::explain::Short;
use radixscope_state::cluster::DecisionEntry;

use crate::format::{self, UNKNOWN};
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Beyond so many candidates only the best are shown at first.
const MANY: usize = 16;
/// How many of them.
const BEST: usize = 8;

/// A worker with what it scored, and how the router names it.
#[derive(Clone, PartialEq)]
struct Row {
    of: ScoredCandidate,
    endpoint: Option<String>,
    is_chosen: bool,
}

#[component]
pub(super) fn ScoresTable(store: Store, decided: DecisionEntry) -> impl IntoView {
    let scores = decided.decision.scores.clone().filter(|scores| !scores.candidates.is_empty())?;
    let chosen = decided.decision.worker;
    let row = |of: &ScoredCandidate| Row {
        endpoint: store.peek(|shown| shown.endpoint_of(of.worker).map(str::to_owned)),
        is_chosen: of.worker == chosen,
        of: of.clone(),
    };
    let rows: Vec<Row> = scores.candidates.iter().map(row).collect();
    let most = scores.candidates.iter().filter_map(|of| of.score).fold(0.0, f64::max);
    let all = RwSignal::new(rows.len() <= MANY);
    let (total, scorers) = (rows.len(), scores.scorers.clone());
    let has_scores = most > 0.0;
    let lines = move || {
        let is_shown = |(at, row): &(usize, &Row)| all.get() || *at < BEST || row.is_chosen;
        let shown = rows.iter().enumerate().filter(is_shown);
        shown.map(|(_, row)| line(store, row, &scorers, has_scores.then_some(most))).collect_view()
    };
    let what = match decided.decision.arithmetic {
        Arithmetic::SglangGateway => "Only the chosen worker is logged.",
        Arithmetic::EndpointPicker | Arithmetic::Dynamo => {
            "Each scorer gives 0 to 1; a worker's score is their weighted sum. What-if and counterfactual know Dynamo's cost formula \
             alone and leave this decision out."
        }
    };
    Some(view! {
        <p class="costs-shared" data-testid="scores-note">{what}</p>
        <div class="waterfall" role="list" aria-label="Score of every candidate, highest first" data-testid="scores">
            {move || lines()}
        </div>
        <Show when=move || !all.get()>
            <button class="plain" data-testid="candidates-more" on:click=move |_| all.set(true)>
                {format!("Show all {}: the best {BEST} and the chosen one are shown", format::plural(total as u64, "candidate", "candidates"))}
            </button>
        </Show>
    })
}

fn line(store: Store, row: &Row, scorers: &[String], most: Option<f64>) -> impl IntoView + use<> {
    let Row { of, endpoint, is_chosen } = row;
    let number = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| Short(value).to_string());
    let by: Vec<String> = scorers
        .iter()
        .zip(&of.by_scorer)
        .map(|(scorer, value)| format!("{scorer} {}", number(*value)))
        .collect();
    let load = [
        of.running.map(|n| format!("{n} running")),
        of.waiting.map(|n| format!("{n} waiting")),
        of.kv_usage.map(|share| format!("KV cache {:.0} % in use", share * 100.0)),
    ];
    let load: Vec<String> = load.into_iter().flatten().collect();
    let bar = of.score.zip(most).map(|(score, most)| {
        let style = format!("width:{}", format::width((score / most).clamp(0.0, 1.0)));
        view! { <i class="score" style=style></i> }
    });
    let score = of.score.map(|score| format!("score {}", Short(score)));
    view! {
        <div class="candidate" class:chosen=*is_chosen role="listitem" data-testid="scored"
            data-score=of.score.map(|score| score.to_string())>
            <span class="who"><Chip store worker=of.worker/><em>{if *is_chosen { "chosen" } else { "" }}</em></span>
            <span class="track" aria-hidden="true">{bar}</span>
            <span class="sum">
                {score} " " <span class="quiet">{by.join(" · ")}</span>
                <span class="scored-load quiet">
                    {endpoint.clone().map(|name| view! { <span class="mono" data-testid="endpoint">{name}</span> " " })}
                    {load.join(", ")}
                </span>
            </span>
        </div>
    }
}
