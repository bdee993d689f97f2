//! The response as it is shown: computed again for every touch of a field, and at a readable pace as the state changes.

use leptos::prelude::*;
use radixscope_icicle::palette::label;
use radixscope_insight::whatif::{self, CandidateRef, Prompt, WhatIf, WhatIfResponse, WhatIfState};
use radixscope_model::id::Millis;
use radixscope_router::explain::Short;
use radixscope_state::cluster::{Cluster, PoolState};

use super::asking::{InputFault, QueryState};
use crate::format;
use crate::store::{Store, ViewContext, now_ms};
use crate::view::control::view;
use crate::view::costs::{CostLegend, CostRow, CostRows};

/// Rows shown.
const ROWS: usize = 48;

/// A state that was retained: the page's own goes on.
pub(super) struct OfflineReplay {
    pub cluster: Cluster,
    pub at_ms: Millis,
}

/// What is shown.
#[derive(Clone, PartialEq, Default)]
pub(super) struct Response {
    pub rows: Vec<CostRow>,
    more: usize,
    headline: String,
    cost_gap: String,
    prompt: String,
    versus: Option<(String, bool)>,
    notes: Vec<String>,
    partial: Option<String>,
}

/// The response, or what is wrong with the request.
pub(super) type ResponseResult = Result<Response, InputFault>;

/// Asks whenever the question changes, and with `tick` as the state does. The last time it took is written to `took_us`.
pub(super) fn keep_current(
    store: Store,
    asking: QueryState,
    offline: StoredValue<Option<OfflineReplay>, LocalStorage>,
    offline_seq: RwSignal<Option<u64>>,
    tick: Memo<(bool, u64)>,
    took_us: RwSignal<u64>,
) -> Memo<ResponseResult> {
    let engine = StoredValue::new_local(WhatIf::default());
    Memo::new(move |_| {
        let start = now_ms();
        let is_offline = offline_seq.get().is_some();
        let ask = |cluster: &ViewContext<'_>, now: Millis| -> ResponseResult {
            let question = asking.question(cluster)?;
            let state = WhatIfState { cluster: cluster.cluster, active: None, now_ms: now };
            let result = engine.try_update_value(|engine| match engine.score(state, &question) {
                Ok(scored) => {
                    let mut response = shown(cluster, &scored);
                    if cluster.pool_list().len() > 1 && !matches!(question.prompt, Prompt::Example) {
                        let pool = whatif::pool(cluster, &question);
                        let name = cluster.cluster.pool(pool).map(PoolState::name).unwrap_or_default();
                        response.prompt.push_str(&format!(" · pool {name}"));
                    }
                    Ok(response)
                }
                Err(refused) => Err(InputFault::new(refused.field(), sentence(&refused.to_string()))),
            });
            result.unwrap_or_else(|| Err(InputFault::new("prompt", "The panel is closed")))
        };
        let result = if is_offline {
            let pools = store.pools.get();
            offline.with_value(|offline| {
                offline.as_ref().map(|offline| ask(&ViewContext::new(&offline.cluster, pools), offline.at_ms))
            })
        } else {
            None
        };
        let result = result.unwrap_or_else(|| {
            tick.track();
            let now = store.now_ms();
            store.peek(|cluster| ask(cluster, now))
        });
        let took = ((now_ms() - start) * 1_000.0).round() as u64;
        // After this run: a memo must not write while it is read.
        queue_microtask(move || {
            let _ = took_us.try_set(took);
        });
        result
    })
}

/// As a sentence begins. The text is ours, in English.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |first| std::iter::once(first.to_ascii_uppercase()).chain(chars).collect())
}

/// What a candidate is called here.
pub(super) fn name(who: CandidateRef) -> String {
    match who {
        CandidateRef::Worker(worker) => label(worker),
        CandidateRef::Added(number) => format!("New {}", number + 1),
        CandidateRef::Example(number) => format!("Worker {}", number + 1),
    }
}

fn shown(cluster: &Cluster, scored: &WhatIfResponse<'_>) -> Response {
    let scores = scored.scores;
    let likeliest = scores.probabilities().iter().copied().fold(0.0, f64::max);
    let recorded_cost = |who| {
        let decided = cluster.decisions().get(scored.versus?.decision)?;
        let mut candidates = decided.decision.candidates.iter();
        candidates
            .find(|candidate| CandidateRef::Worker(candidate.worker) == who)
            .map(|candidate| candidate.cost)
    };
    let rows: Vec<CostRow> = scored
        .ranked()
        .take(ROWS)
        .map(|c| CostRow {
            worker: match c.candidate.worker {
                CandidateRef::Worker(worker) => Some(worker),
                CandidateRef::Added(_) | CandidateRef::Example(_) => None,
            },
            label: name(c.candidate.worker),
            rank: c.rank,
            overlap_blocks: c.candidate.overlap_blocks,
            terms: c.terms,
            probability: Some(c.probability),
            is_chosen: c.probability > 0.0 && c.probability >= likeliest,
            marks: [c.is_actual.then_some("actual choice"), c.is_changed.then_some("load changed")]
                .into_iter()
                .flatten()
                .collect(),
            ghost: recorded_cost(c.candidate.worker),
            about: format!(
                "Load: {}. {} prompt tokens queued, {} with this prompt",
                c.load_from.to_text(),
                format::count(c.load.active_prefill_tokens),
                format::plural(c.load.decode_blocks, "block", "blocks")
            ),
        })
        .collect();
    let winners: Vec<&str> = rows.iter().filter(|row| row.is_chosen).map(|row| row.label.as_str()).collect();
    // Not all of them need be among the rows.
    let wins = |chance: &&f64| **chance > 0.0 && **chance >= likeliest;
    let winning = scores.probabilities().iter().filter(wins).count();
    let headline = match winners.as_slice() {
        [] => "No worker can be chosen".to_owned(),
        [one] if scores.choice_count() > 1 => format!("{one} is most likely"),
        [one] => format!("{one} wins"),
        many if winning <= 4 => format!("{} tie", many.join(", ")),
        _ => format!("{} workers tie", format::count(winning as u64)),
    };
    let cost_gap = match scores.cost_gap_blocks() {
        None => "One candidate, no cost gap".to_owned(),
        Some(0.0) => "The lowest cost is shared: a tie".to_owned(),
        Some(cost_gap) => format!("Cost gap {} blocks to the next", Short(cost_gap)),
    };
    let request = scored.request;
    let prompt = format!(
        "{} in {} of {}",
        format::plural(request.isl_tokens, "token", "tokens"),
        format::plural(request.blocks(), "block", "blocks"),
        request.block_size_tokens
    );
    Response {
        more: scores.len() - rows.len(),
        rows,
        headline,
        cost_gap,
        prompt,
        versus: scored.versus.map(|versus| (versus.sentence(name), versus.changes_worker)),
        notes: scored.notes.to_vec(),
        partial: scored.partial.map(str::to_owned),
    }
}

/// The right half of the panel.
#[component]
pub(super) fn ResponseView(
    store: Store,
    result: Memo<ResponseResult>,
    took_us: RwSignal<u64>,
) -> impl IntoView {
    let of = move |pick: fn(&Response) -> String| {
        Memo::new(move |_| result.with(|result| result.as_ref().map(pick).unwrap_or_default()))
    };
    let headline = of(|shown| shown.headline.clone());
    let cost_gap = of(|shown| shown.cost_gap.clone());
    let prompt = of(|shown| shown.prompt.clone());
    let more = of(|shown| match shown.more {
        0 => String::new(),
        more => format!("and {} more", format::count(more as u64)),
    });
    let fault = Memo::new(move |_| result.with(|result| result.as_ref().err().cloned()));
    let versus =
        Memo::new(move |_| result.with(|result| result.as_ref().ok().and_then(|shown| shown.versus.clone())));
    let notes = Memo::new(move |_| {
        result.with(|result| result.as_ref().map(|t| t.notes.clone()).unwrap_or_default())
    });
    let partial = Memo::new(move |_| {
        result.with(|result| result.as_ref().ok().and_then(|shown| shown.partial.clone()))
    });
    let rows =
        Memo::new(move |_| result.with(|result| result.as_ref().map(|t| t.rows.clone()).unwrap_or_default()));
    view! {
        <section class="whatif-answer" aria-label="Result" data-testid="whatif-answer"
            data-took-us=move || took_us.get().to_string()>
            {move || fault.get().map(|fault| view! {
                <p class="whatif-none" role="status" data-testid="whatif-fault">{fault.message}</p>
            })}
            <Show when=move || fault.with(Option::is_none)>
                {move || partial.get().map(|why| view! { <p class="partial-note" data-testid="whatif-partial">{why}</p> })}
                <div class="verdict">
                    <p class="headline" role="status" aria-live="polite" data-testid="whatif-winner">{headline}</p>
                    <p class="quiet"><span data-testid="whatif-margin">{cost_gap}</span>" · "{prompt}</p>
                </div>
                {move || versus.get().map(|(sentence, changes_worker)| view! {
                    <p class="versus" class:flips=changes_worker data-testid="whatif-versus">
                        <b>{if changes_worker { "Change worker" } else { "Same worker" }}</b>" "{sentence}
                    </p>
                })}
                <CostRows store rows/>
                <p class="quiet">{more}</p>
                <CostLegend ghost="cost as recorded"/>
                <Show when=move || notes.with(|notes| !notes.is_empty())>
                    <div class="whatif-notes" data-testid="whatif-notes">
                        <h3>"Assumptions"</h3>
                        <ul>{move || notes.get().into_iter().map(|note| view! { <li>{note}</li> }).collect_view()}</ul>
                    </div>
                </Show>
            </Show>
        </section>
    }
}
