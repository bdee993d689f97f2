//! Decisions of other routers than Dynamo's in words and as a table: what each worker scored, and why one was chosen. Must not know how
//! workers are named.

use std::fmt::{self, Write as _};

use super::DecisionEntry;
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Arithmetic, ScoredCandidate, Scores};
use radixscope_router::explain::Short;

/// Scores of two workers that differ by less are equal: weighted sums are rounded in their last digits.
const SCORE_ROUNDING: f64 = 1e-9;

impl DecisionEntry {
    /// Whether another router than Dynamo's decided.
    pub fn is_of_other_router(&self) -> bool {
        self.decision.arithmetic != Arithmetic::Dynamo
    }

    /// Why another router chose the worker `who`, in a sentence or two.
    pub(super) fn why_by_scores(&self, who: &str, name: impl Fn(WorkerIx) -> String) -> String {
        let router = self.decision.arithmetic.to_text();
        let mut text = format!("{who} was chosen by {router}");
        let Some(scores) = self.decision.scores.as_deref() else {
            text.push('.');
            return text;
        };
        if let Some(profile) = &scores.profile {
            let _ = write!(text, " for its profile {profile}");
        }
        let own = scores.of(self.decision.worker).and_then(|chosen| chosen.score);
        match (own, scores.next_best(self.decision.worker)) {
            (Some(own), Some((next, more))) if more.abs() <= SCORE_ROUNDING => {
                let _ = write!(
                    text,
                    ": its score of {} is the highest, and {} has it too, so that chance decided",
                    Short(own),
                    name(next)
                );
            }
            (Some(own), Some((next, more))) if more < 0.0 => {
                let _ = write!(
                    text,
                    ": its score of {} is the highest of {}; next best {} has {}",
                    Short(own),
                    scores.candidates.len(),
                    name(next),
                    Short(own + more)
                );
            }
            (Some(own), Some((next, more))) => {
                let _ = write!(
                    text,
                    " with a score of {}, though {} has {}",
                    Short(own),
                    name(next),
                    Short(own + more)
                );
                text += match &scores.picker {
                    Some(_) => ": its picker does not always take the highest",
                    None => "",
                };
            }
            (Some(own), None) if scores.candidates.len() == 1 => {
                let _ = write!(text, ": it was the only one, with a score of {}", Short(own));
            }
            (None, _) if self.decision.arithmetic == Arithmetic::SglangGateway => {
                let chosen =
                    scores.of(self.decision.worker).and_then(|of| of.by_scorer.first().copied().flatten());
                text += &match chosen {
                    Some(share) => format!(
                        ": its tree matched {} % of the prompt",
                        Short((share * 1_000.0).round() / 10.0)
                    ),
                    None => String::new(),
                };
            }
            _ => {}
        }
        if let Some(picker) = &scores.picker {
            let what = match self.decision.arithmetic {
                Arithmetic::SglangGateway => "branch",
                Arithmetic::EndpointPicker | Arithmetic::Dynamo => "picker",
            };
            let _ = write!(text, " ({what} {picker})");
        }
        text.push('.');
        if scores.candidates.is_empty() && self.candidates_forgotten() {
            text += " Its candidates are no longer retained.";
        } else if scores.candidates.is_empty() && self.decision.arithmetic == Arithmetic::EndpointPicker {
            text += " What the others scored is in the picker's log at DEBUG (-v=4).";
        }
        if scores.omitted > 0 {
            let _ = write!(text, " {} more were scored for which there was no room.", scores.omitted);
        }
        text
    }

    /// By how much the chosen worker won, in a few words that follow its name.
    pub(super) fn score_gap_text(&self, name: impl Fn(WorkerIx) -> String) -> String {
        let next = self.decision.scores.as_ref().and_then(|scores| scores.next_best(self.decision.worker));
        match next {
            Some((who, more)) if more.abs() <= SCORE_ROUNDING => format!("has the score of {}", name(who)),
            Some((who, more)) if more < 0.0 => format!("{} above the score of {}", Short(-more), name(who)),
            Some((who, more)) => format!("{} below the score of {}", Short(more), name(who)),
            None => "scores of the others unknown".to_owned(),
        }
    }

    /// Its candidates as a table in Markdown. `worker` writes a worker's name into its cell.
    pub(super) fn write_scores(
        &self,
        ticket: &mut String,
        scores: &Scores,
        worker: impl Fn(WorkerIx) -> String,
    ) -> fmt::Result {
        ticket.push_str("\n| worker | score");
        for scorer in &scores.scorers {
            write!(ticket, " | {}", super::ticket::one_line(scorer))?;
        }
        ticket.push_str(" | running | waiting | KV cache in use | |\n|---|---:");
        scores.scorers.iter().for_each(|_| ticket.push_str("|---:"));
        ticket.push_str("|---:|---:|---:|---|\n");
        for of in &scores.candidates {
            let ScoredCandidate { worker: who, score, by_scorer, running, waiting, kv_usage } = of;
            write!(ticket, "| {} | {}", worker(*who), known(score.map(Short)))?;
            for at in 0..scores.scorers.len() {
                write!(ticket, " | {}", known(by_scorer.get(at).copied().flatten().map(Short)))?;
            }
            let usage = kv_usage.map(|share| format!("{} %", Short((share * 1_000.0).round() / 10.0)));
            write!(ticket, " | {} | {} | {}", known(*running), known(*waiting), known(usage))?;
            writeln!(ticket, " | {} |", if *who == self.decision.worker { "chosen" } else { "" })?;
        }
        ticket.push('\n');
        Ok(())
    }
}

fn known(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::*;
    use radixscope_model::id::Worker;
    use radixscope_model::record::DecidedBy;

    fn candidate(worker: u32, score: f64, by_scorer: &[Option<f64>]) -> ScoredCandidate {
        ScoredCandidate {
            worker: WorkerIx(worker),
            score: Some(score),
            by_scorer: by_scorer.to_vec(),
            running: Some(worker),
            waiting: None,
            kv_usage: Some(0.125),
        }
    }

    /// Of the worker W2.
    fn scored(candidates: Vec<ScoredCandidate>) -> DecisionEntry {
        let mut entry = decided(Some(100), None, &[]);
        entry.decision.worker = WorkerIx(1);
        entry.decision.arithmetic = Arithmetic::EndpointPicker;
        entry.decision.decided_by = Some(DecidedBy::Scores);
        entry.decision.scores = Some(Box::new(Scores {
            profile: Some("decode".to_owned()),
            picker: Some("max-score-picker".to_owned()),
            scorers: vec!["prefix|x".to_owned(), "queue-scorer".to_owned()],
            candidates,
            omitted: 0,
        }));
        entry
    }

    fn label(worker: WorkerIx) -> String {
        format!("W{}", worker.0 + 1)
    }

    #[test]
    fn the_reason_names_the_router_the_scores_and_who_came_next() {
        let scores =
            |own: f64, other: f64| scored(vec![candidate(1, own, &[]), candidate(0, other, &[])]).why(label);
        let router = "an endpoint picker (EPP) of llm-d or the Gateway API Inference Extension";
        assert_eq!(
            scores(3.8, 2.5),
            format!(
                "W2 was chosen by {router} for its profile decode: its score of 3.8 is the highest of 2; next best W1 has 2.5 \
                 (picker max-score-picker)."
            )
        );
        assert!(
            scores(2.5, 2.5).contains("and W1 has it too, so that chance decided"),
            "{}",
            scores(2.5, 2.5)
        );
        assert!(
            scores(1.0, 2.5).contains("with a score of 1, though W1 has 2.5: its picker does not always")
        );
    }

    #[test]
    fn nothing_in_blocks_is_said_of_another_router_s_choice() {
        let entry = scored(vec![candidate(1, 1.0, &[]), candidate(0, 1.0, &[])]);
        assert!(!entry.is_tie() && entry.lost_affinity().is_none() && entry.cost_gap_blocks().is_err());
        assert_eq!(entry.chosen_cost(), None);
    }

    #[test]
    fn a_ticket_has_the_scores_by_scorer_and_no_cost() {
        let entry =
            scored(vec![candidate(1, 3.8, &[Some(0.9), None]), candidate(0, 2.5, &[Some(0.0), Some(1.0)])]);
        let ticket = entry.ticket("now", |worker| (label(worker), Some(Worker::new(u64::from(worker.0), 0))));
        let rows: Vec<&str> = ticket.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            rows[0],
            "| worker | score | prefix\\|x | queue-scorer | running | waiting | KV cache in use | |"
        );
        assert_eq!(rows[2], "| W2 (1/0) | 3.8 | 0.9 | unknown | 1 | unknown | 12.5 % | chosen |");
        assert_eq!(rows[3], "| W1 (0/0) | 2.5 | 0 | 1 | 0 | unknown | 12.5 % |  |");
        assert!(!ticket.contains("cost, blocks") && !ticket.contains("Cost gap"), "{ticket}");
    }
}
