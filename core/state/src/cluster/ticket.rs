//! A decision in words and a table, to paste into a ticket, with why it was taken. Must not know how workers and times are
//! shown.

use std::fmt::{self, Write as _};

use super::DecisionEntry;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_model::record::{Completeness, DecisionSource};
use radixscope_router::RouterSettings;
use radixscope_router::explain::Short;

const TABLE_HEAD: &str = "\n| worker | overlap, blocks | prefill, blocks | decode, blocks | cost, blocks | probability | |\n\
    |---|---:|---:|---:|---:|---:|---|\n";

impl DecisionEntry {
    /// The whole decision in Markdown that reads well as plain text too. `at` is its time written out with its zone;
    /// `worker` gives a worker's short label and its id.
    pub fn ticket(&self, at: &str, worker: impl Fn(WorkerIx) -> (String, Option<Worker>)) -> String {
        let mut ticket = format!("Routing decision of {}", one_line(at));
        // Writing to a String cannot fail.
        let _ = self.write_ticket(&mut ticket, &worker);
        let short = |ix| worker(ix).0;
        let _ = writeln!(ticket, "- {}", one_line(&self.why(short)));
        if let Some(lost) = self.why_affinity_was_lost(short) {
            let _ = writeln!(ticket, "- {lost}");
        }
        ticket
    }

    fn write_ticket(
        &self,
        ticket: &mut String,
        worker: &impl Fn(WorkerIx) -> (String, Option<Worker>),
    ) -> fmt::Result {
        let decision = &self.decision;
        if let Some(id) = &decision.request_id {
            write!(ticket, ", request {}", one_line(id))?;
        }
        ticket.push_str("\n\n");
        match (decision.isl_tokens, decision.block_size_tokens.filter(|&size| size > 0)) {
            (Some(isl), Some(size)) => {
                let blocks = isl.div_ceil(size.into());
                writeln!(ticket, "- Prompt: {isl} tokens, {blocks} blocks of {size} tokens")?;
            }
            (Some(isl), None) => writeln!(ticket, "- Prompt: {isl} tokens, block size unknown")?,
            (None, _) => writeln!(ticket, "- Prompt: length unknown")?,
        }
        if self.is_of_other_router() {
            writeln!(ticket, "- Router: {}", decision.arithmetic.to_text())?;
            let cell = |ix| {
                let (label, id) = worker(ix);
                let id = id.map_or_else(String::new, |id| format!(" ({id})"));
                format!("{}{id}", one_line(&label))
            };
            if let Some(scores) = &decision.scores {
                self.write_scores(ticket, scores, cell)?;
            }
            return self.write_sources(ticket);
        }
        match RouterSettings::of_decision(decision) {
            Some(settings) => {
                let (formula, factor) = (settings.formula.as_str(), settings.prefill_factor_number().name);
                let value = Short(settings.prefill_factor());
                writeln!(
                    ticket,
                    "- Router: formula {formula}, {factor} {value}, router_temperature unknown"
                )?;
            }
            None => writeln!(ticket, "- Router: formula and settings unknown")?,
        }
        ticket.push_str(TABLE_HEAD);
        let parts = self.cost_parts();
        for part in &parts {
            let c = &part.candidate;
            let numbers = [f64::from(c.overlap_blocks), c.prefill_blocks, c.decode_blocks, c.cost];
            row(ticket, worker(c.worker), numbers.map(Some), part.is_chosen)?;
        }
        if parts.is_empty() {
            let held = self.overlap_blocks().map(|blocks| blocks as f64);
            row(ticket, worker(decision.worker), [held, None, None, self.chosen_cost()], true)?;
        }
        ticket.push('\n');
        self.write_cost_gap(ticket)?;
        self.write_sources(ticket)
    }

    /// What decided, and where that is known from.
    fn write_sources(&self, ticket: &mut String) -> fmt::Result {
        let decision = &self.decision;
        if let Some(by) = decision.decided_by {
            writeln!(ticket, "- Decided by: {}", by.to_text())?;
        }
        if let Some(session) = &decision.session {
            writeln!(ticket, "- Session: {}", one_line(session))?;
        }
        let sources: Vec<&str> = self.sources().map(DecisionSource::as_str).collect();
        writeln!(ticket, "- Known from: {} ({})", sources.join(", "), self.known_text())
    }

    fn write_cost_gap(&self, ticket: &mut String) -> fmt::Result {
        let candidates = &self.decision.candidates;
        if self.partial && candidates.len() > 1 {
            return writeln!(
                ticket,
                "- Cost gap: unknown, the tree lacked blocks when the costs were computed"
            );
        }
        if self.decision.completeness == Completeness::ChosenOnly || candidates.is_empty() {
            return writeln!(ticket, "- Cost gap: unknown, not every worker's cost is known");
        }
        let costs = || candidates.iter().map(|candidate| candidate.cost);
        let least = costs().fold(f64::INFINITY, f64::min);
        let tied = self.tied_at_lowest();
        let second = costs().filter(|&cost| cost > least).fold(f64::INFINITY, f64::min);
        if tied > 1 {
            writeln!(ticket, "- Tie: {tied} workers share the lowest cost of {} blocks", Short(least))?;
        } else if second.is_finite() {
            writeln!(ticket, "- Cost gap: {} blocks to the second lowest cost", Short(second - least))?;
        } else {
            writeln!(ticket, "- Cost gap: none, there was one worker")?;
        }
        match self.chosen() {
            Some(chosen) if chosen.cost > least => {
                let more = Short(chosen.cost - least);
                writeln!(ticket, "- The chosen worker cost {more} blocks more than the cheapest")
            }
            _ => Ok(()),
        }
    }
}

/// A worker's row: cached blocks, cost terms and cost. Its probability is not reported.
fn row(
    ticket: &mut String,
    (label, id): (String, Option<Worker>),
    numbers: [Option<f64>; 4],
    is_chosen: bool,
) -> fmt::Result {
    match id {
        Some(id) => write!(ticket, "| {} ({id})", one_line(&label))?,
        None => write!(ticket, "| {}", one_line(&label))?,
    }
    for number in numbers {
        match number {
            Some(number) => write!(ticket, " | {}", Short(number))?,
            None => ticket.push_str(" | unknown"),
        }
    }
    writeln!(ticket, " | unknown | {} |", if is_chosen { "chosen" } else { "" })
}

/// Names come from outside: they must not break out of a line or a cell.
pub(super) fn one_line(text: &str) -> impl fmt::Display + '_ {
    fmt::from_fn(|f| {
        text.chars().try_for_each(|c| match c {
            '|' => f.write_str("\\|"),
            c if c.is_control() => f.write_str(" "),
            c => f.write_char(c),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::*;
    use radixscope_router::Formula;

    fn label(worker: WorkerIx) -> (String, Option<Worker>) {
        (format!("W{}", worker.0 + 1), Some(Worker::new(u64::from(worker.0), 0)))
    }

    #[test]
    fn a_ticket_has_the_candidates_from_the_cheapest_on_and_the_reason() {
        let example = decided(Some(100), None, &[(20, 90.0), (75, 30.0), (80, 99.0)]);
        let ticket = example.ticket("2026-11-20 18:06:54 UTC", label);
        let rows: Vec<&str> = ticket.lines().filter(|line| line.starts_with("| W")).collect();
        assert_eq!(rows[0], "| W2 (1/0) | 75 | 25 | 5 | 30 | unknown | chosen |");
        assert_eq!(rows.len(), 3);
        for wanted in
            ["Cost gap: 60 blocks", "W2 was chosen: it has 75", "W3 had 5 blocks more", "log (all cand"]
        {
            assert!(ticket.contains(wanted), "{wanted}: {ticket}");
        }
        let alone = decided(Some(9), Some(3), &[]).ticket("now", label);
        assert!(
            alone.contains("| W2 (1/0) | 3 | unknown |") && alone.contains("Cost gap: unknown"),
            "{alone}"
        );
    }

    #[test]
    fn a_decision_reads_as_a_table_with_its_cost_gap() {
        let mut example = decided(Some(100), None, &[(20, 90.0), (75, 30.0), (10, 99.0)]);
        let decision = &mut example.decision;
        decision.request_id = Some("r-1".to_owned());
        (decision.isl_tokens, decision.block_size_tokens) = (Some(1600), Some(16));
        (decision.formula, decision.prefill_factor) = (Some(Formula::A), Some(1.0));
        expect_test::expect![[r#"
            Routing decision of 2026-11-20 18:06:54 UTC, request r-1

            - Prompt: 1600 tokens, 100 blocks of 16 tokens
            - Router: formula A, overlap_score_weight 1, router_temperature unknown

            | worker | overlap, blocks | prefill, blocks | decode, blocks | cost, blocks | probability | |
            |---|---:|---:|---:|---:|---:|---|
            | W2 (1/0) | 75 | 25 | 5 | 30 | unknown | chosen |
            | W1 (0/0) | 20 | 85 | 5 | 90 | unknown |  |
            | W3 (2/0) | 10 | 94 | 5 | 99 | unknown |  |

            - Cost gap: 60 blocks to the second lowest cost
            - Known from: log (all candidates)
            - W2 was chosen: it has 75 of 100 prompt blocks cached, 25 blocks to prefill and 5 decode blocks; next best W1 costs 60 blocks more.
        "#]]
        .assert_eq(&example.ticket("2026-11-20 18:06:54 UTC", label));
    }

    #[test]
    fn unknown_values_are_named_and_names_stay_in_their_cell() {
        let ticket = decided(None, Some(3), &[]).ticket("now", |_| ("a|b\n| c".to_owned(), None));
        for wanted in [
            "Routing decision of now\n\n- Prompt: length unknown\n- Router: formula and settings unknown\n",
            "\n| a\\|b \\| c | 3 | unknown | unknown | unknown | unknown | chosen |\n\n",
            "- Cost gap: unknown, not every worker's cost is known\n- Known from: log (chosen only)\n",
        ] {
            assert!(ticket.contains(wanted), "{wanted}: {ticket}");
        }
    }
}
