//! What another router than Dynamo's gave every worker: its score as a bar, and what each scorer gave it.

use leptos::prelude::*;
use radixscope_panels::decisions::scores::{ScoreRow, Scores};

use super::waterfall::ShowAll;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

#[component]
pub(super) fn ScoresTable(store: Store, scores: Scores) -> impl IntoView {
    let Scores { note, rows, show_all } = scores;
    let all = RwSignal::new(show_all.is_none());
    let lines = move || {
        let is_shown = |row: &&ScoreRow| all.get() || row.is_first;
        rows.iter().filter(is_shown).map(|row| line(store, row)).collect_view()
    };
    view! {
        <p class="costs-shared" data-testid="scores-note">{note}</p>
        <div class="waterfall" role="list" aria-label="Score of every candidate, highest first" data-testid="scores">
            {move || lines()}
        </div>
        <ShowAll all text=show_all/>
    }
}

fn line(store: Store, row: &ScoreRow) -> impl IntoView + use<> {
    let ScoreRow { worker, score, score_text, bar, is_chosen, by_scorer, endpoint, load, .. } = row.clone();
    let bar = bar.map(|width| view! { <i class="score" style=format!("width:{width}")></i> });
    view! {
        <div class="candidate" class:chosen=is_chosen role="listitem" data-testid="scored"
            data-score=score.map(|score| score.to_string())>
            <span class="who"><Chip store worker/><em>{if is_chosen { "chosen" } else { "" }}</em></span>
            <span class="track" aria-hidden="true">{bar}</span>
            <span class="sum">
                {score_text} " " <span class="quiet">{by_scorer}</span>
                <span class="scored-load quiet">
                    {endpoint.map(|name| view! { <span class="mono" data-testid="endpoint">{name}</span> " " })}
                    {load}
                </span>
            </span>
        </div>
    }
}
