//! Texts that a reader looks for among decisions: in the request id, in what worker, pool and model are called, and in the
//! reason. Reasons are sentences that are made anew each time, so what was found is kept until another text is requested.

use std::collections::HashSet;

use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_state::cluster::{DecisionEntry, Filter};

/// The latest decisions, which may still get their candidates and with them another reason.
const NOT_FINAL: u64 = 200;

/// What was looked for, and where it was found.
#[derive(Default, Debug)]
pub struct Search {
    text: String,
    /// Among which decisions.
    among: (Option<PoolIx>, Option<WorkerIx>),
    /// Ids of the final decisions that have it, ascending.
    found: Vec<u64>,
    /// Decisions before this one are final.
    final_before: u64,
}

/// One pass over the decisions, newest first.
pub(super) struct Pass<'a> {
    search: &'a mut Search,
    /// Workers that are, or whose pool or model is, called so.
    workers: HashSet<WorkerIx>,
    found: Vec<u64>,
    final_before: Option<u64>,
}

impl Search {
    /// Begins a pass for `text` among the decisions that `filter` lets through.
    pub(super) fn pass(&mut self, shown: &ViewContext<'_>, text: &str, filter: &Filter) -> Pass<'_> {
        let (text, among) = (text.trim(), (filter.pool, filter.worker));
        if self.text != text || self.among != among {
            *self = Self { text: text.to_owned(), among, ..Self::default() };
        }
        let called = |worker: WorkerIx| {
            let of = shown.cluster.worker(worker);
            let id = of.map(|of| of.id.to_string()).unwrap_or_default();
            let pool = of.and_then(|of| shown.cluster.pool(of.pool)).map(|pool| pool.name());
            let model = shown.cluster.model_of(worker).unwrap_or_default();
            // A label is meant as a whole: W1 is not W12.
            label(worker).eq_ignore_ascii_case(text)
                || [&id, &pool.unwrap_or_default(), model].into_iter().any(|name| has(name, text))
        };
        let workers = match text.is_empty() {
            true => HashSet::new(),
            false => {
                let departed = shown.cluster.departed().map(|(worker, _)| worker);
                shown.cluster.workers().indices().chain(departed).filter(|&worker| called(worker)).collect()
            }
        };
        Pass { search: self, workers, found: Vec::new(), final_before: None }
    }
}

impl Pass<'_> {
    /// Whether the text stands in the texts of `decided`.
    pub(super) fn is_found(&mut self, decided: &DecisionEntry) -> bool {
        let (text, id) = (&self.search.text, decided.decision.id.0);
        if text.is_empty() {
            return true;
        }
        let final_before = *self.final_before.get_or_insert(id.saturating_sub(NOT_FINAL));
        let is_found = if id < self.search.final_before {
            self.search.found.binary_search(&id).is_ok()
        } else {
            let request = decided.decision.request_id.as_deref().unwrap_or_default();
            let lost = || decided.why_affinity_was_lost(label);
            let session = decided.decision.session.as_deref().unwrap_or_default();
            has(request, text)
                || has(session, text)
                || has(&decided.why(label), text)
                || lost().is_some_and(|lost| has(&lost, text))
        };
        if is_found && id < final_before {
            self.found.push(id);
        }
        is_found || self.workers.contains(&decided.decision.worker)
    }
}

impl Drop for Pass<'_> {
    /// What was found among all that are final now stays known.
    fn drop(&mut self) {
        if let Some(final_before) = self.final_before {
            self.found.reverse();
            (self.search.found, self.search.final_before) = (std::mem::take(&mut self.found), final_before);
        }
    }
}

/// Whether `text` stands in `all`, whatever the case of its letters.
fn has(all: &str, text: &str) -> bool {
    let (all, text) = (all.as_bytes(), text.as_bytes());
    all.windows(text.len().max(1)).any(|part| part.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn letters_count_whatever_their_case() {
        assert!(has("W1 was chosen", "w1 WAS") && has("é", "é"));
        assert!(!has("W1", "W12") && !has("", "a"));
    }
}
