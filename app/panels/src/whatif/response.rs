//! The response as it is shown.

use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_insight::whatif::{
    self, CandidateRef, Prompt, RankedCandidate, WhatIf, WhatIfResponse, WhatIfState,
};
use radixscope_model::id::Millis;
use radixscope_router::explain::Short;
use radixscope_state::cluster::{Cluster, PoolState};

use super::query::{InputFault, Query};
use crate::costs::CostRow;
use crate::format;

/// Rows shown.
const ROWS: usize = 48;

/// What is shown.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Response {
    /// Candidates by cost.
    pub rows: Vec<CostRow>,
    /// How many are not shown, as text; empty: none.
    pub more: String,
    /// Who wins.
    pub headline: String,
    /// By how much.
    pub cost_gap: String,
    /// What the prompt came to.
    pub prompt: String,
    /// The comparison with the decision that was taken, and whether the worker changes.
    pub versus: Option<(String, bool)>,
    /// What was taken for granted.
    pub notes: Vec<String>,
    /// Why the state that was scored is not whole.
    pub partial: Option<String>,
}

/// The response, or what is wrong with the request.
pub type ResponseResult = Result<Response, InputFault>;

/// Answers a question by the same code as `POST /api/v1/score`. `now`: the time of the state.
///
/// # Errors
/// The field that stands in the way.
pub fn respond(engine: &mut WhatIf, shown: &ViewContext<'_>, now: Millis, query: Query) -> ResponseResult {
    let question = query.question(shown)?;
    let state = WhatIfState { cluster: shown.cluster, active: None, now_ms: now };
    let scored = engine
        .score(state, &question)
        .map_err(|refused| InputFault::new(refused.field(), sentence(&refused.to_string())))?;
    let mut response = Response::of(shown, &scored);
    if shown.pool_list().len() > 1 && !matches!(question.prompt, Prompt::Example) {
        let pool = whatif::pool(shown, &question);
        let name = shown.cluster.pool(pool).map(PoolState::name).unwrap_or_default();
        response.prompt.push_str(&format!(" · pool {name}"));
    }
    Ok(response)
}

/// As a sentence begins. The text is ours, in English.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |first| std::iter::once(first.to_ascii_uppercase()).chain(chars).collect())
}

/// What a candidate is called here.
pub fn name(who: CandidateRef) -> String {
    match who {
        CandidateRef::Worker(worker) => label(worker),
        CandidateRef::Added(number) => format!("New {}", number + 1),
        CandidateRef::Example(number) => format!("Worker {}", number + 1),
    }
}

impl Response {
    fn of(cluster: &Cluster, scored: &WhatIfResponse<'_>) -> Self {
        let scores = scored.scores;
        let likeliest = scores.probabilities().iter().copied().fold(0.0, f64::max);
        let recorded_cost = |who| {
            let decided = cluster.decisions().get(scored.versus?.decision)?;
            let mut candidates = decided.decision.candidates.iter();
            candidates
                .find(|candidate| CandidateRef::Worker(candidate.worker) == who)
                .map(|candidate| candidate.cost)
        };
        let row = |c: RankedCandidate| CostRow {
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
        };
        let rows: Vec<CostRow> = scored.ranked().take(ROWS).map(row).collect();
        let winners: Vec<&str> =
            rows.iter().filter(|row| row.is_chosen).map(|row| row.label.as_str()).collect();
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
        let more = match scores.len() - rows.len() {
            0 => String::new(),
            more => format!("and {} more", format::count(more as u64)),
        };
        Self {
            rows,
            more,
            headline,
            cost_gap,
            prompt,
            versus: scored.versus.map(|versus| (versus.sentence(name), versus.changes_worker)),
            notes: scored.notes.to_vec(),
            partial: scored.partial.map(str::to_owned),
        }
    }

    /// What the comparison with the decision begins with.
    pub const fn versus_head(changes_worker: bool) -> &'static str {
        if changes_worker { "Change worker" } else { "Same worker" }
    }
}
