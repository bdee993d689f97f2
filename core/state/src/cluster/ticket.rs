//! A decision as text for a ticket, with why it was taken. Must not know how workers and times are shown.

use super::DecisionEntry;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_model::record::{Candidate, Completeness, DecisionSource};
use radixscope_router::RouterSettings;
use radixscope_router::text::{CandidateText, DecisionText};

impl DecisionEntry {
    /// The whole decision in Markdown. `at` is its time written out with its zone; `worker` gives a worker's short label
    /// and its id.
    pub fn ticket(&self, at: &str, worker: impl Fn(WorkerIx) -> (String, Option<Worker>)) -> String {
        let decision = &self.decision;
        let full_name = |ix: WorkerIx| match worker(ix) {
            (label, Some(id)) => format!("{label} ({id})"),
            (label, None) => label,
        };
        let parts = self.cost_parts();
        let names: Vec<String> = parts.iter().map(|part| full_name(part.candidate.worker)).collect();
        let weighed = parts.iter().zip(&names);
        let mut candidates: Vec<CandidateText<'_>> =
            weighed.map(|(part, name)| candidate_text(&part.candidate, name, decision.worker)).collect();
        let chosen = full_name(decision.worker);
        if candidates.is_empty() {
            candidates.push(CandidateText {
                worker: &chosen,
                overlap_blocks: self.overlap_blocks().map(|blocks| blocks as f64),
                prefill_blocks: None,
                decode_blocks: None,
                cost: self.chosen_cost(),
                probability: None,
                is_chosen: true,
            });
        }
        let sources: Vec<&str> = self.sources().map(DecisionSource::as_str).collect();
        let known_from = format!("{} ({})", sources.join(", "), self.known_words());
        let text = DecisionText {
            at,
            request_id: decision.request_id.as_deref(),
            isl_tokens: decision.isl_tokens,
            block_size_tokens: decision.block_size_tokens,
            settings: RouterSettings::of_decision(decision),
            are_settings_whole: false,
            candidates: &candidates,
            has_all_candidates: decision.completeness != Completeness::ChosenOnly && !parts.is_empty(),
            known_from: &known_from,
        };
        let short = |ix| worker(ix).0;
        let lost = self.why_affinity_was_lost(short).map_or_else(String::new, |lost| format!("- {lost}\n"));
        format!("{text}- {}\n{lost}", self.why(short))
    }
}

fn candidate_text<'a>(candidate: &Candidate, name: &'a str, chosen: WorkerIx) -> CandidateText<'a> {
    CandidateText {
        worker: name,
        overlap_blocks: Some(candidate.overlap_blocks.into()),
        prefill_blocks: Some(candidate.prefill_blocks),
        decode_blocks: Some(candidate.decode_blocks),
        cost: Some(candidate.cost),
        probability: None,
        is_chosen: candidate.worker == chosen,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::*;

    #[test]
    fn a_ticket_has_the_candidates_from_the_cheapest_on_and_the_reason() {
        let example = decided(Some(100), None, &[(20, 90.0), (75, 30.0), (80, 99.0)]);
        let label =
            |worker: WorkerIx| (format!("W{}", worker.0 + 1), Some(Worker::new(u64::from(worker.0), 0)));
        let ticket = example.ticket("2026-11-20 18:06:54 UTC", label);
        let rows: Vec<&str> = ticket.lines().filter(|line| line.starts_with("| W")).collect();
        assert_eq!(rows[0], "| W2 (1/0) | 75 | 25 | 5 | 30 | unknown | chosen |");
        assert_eq!(rows.len(), 3);
        for wanted in
            ["Margin: 60 blocks", "W2 was chosen: it holds 75", "W3 held 5 blocks more", "log (all cand"]
        {
            assert!(ticket.contains(wanted), "{wanted}: {ticket}");
        }
        let alone = decided(Some(9), Some(3), &[]).ticket("now", label);
        assert!(alone.contains("| W2 (1/0) | 3 | unknown |") && alone.contains("Margin: unknown"), "{alone}");
    }
}
