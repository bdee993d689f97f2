//! A decision taken apart: each candidate's cost in parts, and why the chosen one was chosen, in a sentence. Must not
//! know how workers are shown: their names are given.

use std::fmt::Write as _;

use super::DecisionEntry;
use super::cache_outcome::NoCostGap;
use radixscope_model::id::WorkerIx;
use radixscope_model::number_format::duration;
use radixscope_model::record::{Candidate, Completeness, DecidedBy, RoutingMode};
use radixscope_router::explain::Short;
use radixscope_router::{Formula, Terms};

/// What is left of a cost after its known terms counts as rounding up to this share of it: logs print weights with one
/// decimal.
const ROUNDING_SHARE: f64 = 0.02;

/// A request that was held back by less was not queued: it was tokenised.
pub const LONG_WAIT_US: u64 = 50_000;

/// A candidate's cost in parts, all in blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostParts {
    /// Who, and the numbers that were compared.
    pub candidate: Candidate,
    /// Factor × blocks to prefill.
    pub prefill_cost: f64,
    /// What the cost has beyond prefill and decode: active requests, preferred taints. Below 0 for a credit.
    pub other_cost: f64,
    /// What the blocks that it held made it cheaper: factor × overlap.
    pub saved: f64,
    /// Factor of the prefill blocks.
    pub prefill_factor: f64,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// Whether it shares the lowest cost.
    pub is_lowest: bool,
    formula: Formula,
}

impl CostParts {
    /// The sum as text: `30 = 1.0 × 25 prefill + 5 decode`.
    pub fn sum(&self) -> String {
        let terms = Terms {
            formula: self.formula,
            prefill_blocks: self.candidate.prefill_blocks,
            prefill_factor: self.prefill_factor,
            decode_blocks: self.candidate.decode_blocks,
            cost: self.candidate.cost,
            ..Terms::default()
        };
        let mut sum = terms.sum().to_string();
        if self.other_cost != 0.0 {
            let sign = if self.other_cost < 0.0 { '−' } else { '+' };
            let _ = write!(sum, " {sign} {} other terms", Short(self.other_cost.abs()));
        }
        sum
    }
}

impl DecisionEntry {
    /// Every known candidate, cheapest first; of equal ones the chosen one first, then in order of first sight.
    pub fn cost_parts(&self) -> Vec<CostParts> {
        let decision = &self.decision;
        let least = decision.candidates.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
        let of = |&candidate: &Candidate| {
            // Where only the numbers are known, the factor follows from them.
            let left = candidate.cost - candidate.decode_blocks;
            let factor = decision.prefill_factor.unwrap_or_else(|| ratio(left, candidate.prefill_blocks));
            let prefill_cost = factor * candidate.prefill_blocks;
            let other = candidate.cost - prefill_cost - candidate.decode_blocks;
            let is_rounding = other.abs() <= ROUNDING_SHARE * candidate.cost.abs() || !other.is_finite();
            CostParts {
                candidate,
                prefill_cost,
                other_cost: if is_rounding { 0.0 } else { other },
                saved: factor * f64::from(candidate.overlap_blocks),
                prefill_factor: factor,
                is_chosen: candidate.worker == decision.worker,
                is_lowest: candidate.cost == least,
                formula: decision.formula.unwrap_or(Formula::A),
            }
        };
        let mut parts: Vec<CostParts> = decision.candidates.iter().map(of).collect();
        parts.sort_by(|a, b| {
            let cost = a.candidate.cost.total_cmp(&b.candidate.cost);
            cost.then(b.is_chosen.cmp(&a.is_chosen)).then(a.candidate.worker.cmp(&b.candidate.worker))
        });
        parts
    }

    /// Why the chosen worker was chosen, in a sentence, and what was special on the way there.
    pub fn why(&self, name: impl Fn(WorkerIx) -> String) -> String {
        let mut text = self.why_chosen(name);
        if self.decision.prefill_bypassed == Some(true) {
            text += match self.decision.dispatched {
                Some(false) => {
                    " The prefill pool was skipped after this look at it: the decode worker computes the prompt."
                }
                _ => {
                    " The prefill pool was skipped (conditional disaggregation, or no prefill worker was there): this worker \
                     computes the prompt too."
                }
            };
        }
        if let Some(us) = self.progress.queue_us.filter(|&us| us >= LONG_WAIT_US) {
            let waited = duration(us as f64 / 1_000.0);
            let _ = write!(
                text,
                " The request had waited {waited} before this choice, which is part of its TTFT."
            );
        }
        text
    }

    fn why_chosen(&self, name: impl Fn(WorkerIx) -> String) -> String {
        let who = name(self.decision.worker);
        if let Some(by) = self.decision.decided_by.filter(|_| !self.is_by_cost()) {
            return self.why_not_by_cost(by, &who, name);
        }
        let (Some(chosen), Ok(next)) = (self.chosen(), self.next_best()) else {
            return self.why_alone(&who);
        };
        let mut text = format!("{who} was chosen");
        let tied = self.tied_at_lowest();
        let least = self.decision.candidates.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
        if chosen.cost > least {
            let less = Short(chosen.cost - next.cost);
            let _ = write!(text, " though {} cost {less} blocks less: ", name(next.worker));
            text += match self.decision.completeness {
                Completeness::Reconstructed => {
                    "the costs of the others are reconstructed here and may differ from the router's, or its temperature \
                     is above 0 and the draw went another way."
                }
                _ => "with a temperature above 0 the router draws, and the lowest cost does not always win.",
            };
            return text;
        }
        if tied > 1 {
            let _ = write!(text, " among {tied} that tie at {} blocks", Short(least));
        }
        text += ": ";
        text += &self.held_and_loaded(chosen, next);
        if tied <= 1 {
            let more = Short(tenth(next.cost - chosen.cost));
            let _ = write!(text, "; next best {} costs {more} blocks more", name(next.worker));
        }
        text.push('.');
        text
    }

    /// Why it was chosen although the cost did not decide, and what that cost.
    fn why_not_by_cost(&self, by: DecidedBy, who: &str, name: impl Fn(WorkerIx) -> String) -> String {
        if by == DecidedBy::Scores {
            return self.why_by_scores(who, name);
        }
        let mut text = match (by, self.decision.session.as_deref(), self.decision.mode) {
            (DecidedBy::SessionAffinity, Some(session), _) => {
                format!("{who} was chosen by session affinity: session {session} is bound to it.")
            }
            (DecidedBy::SessionAffinity, None, _) => {
                format!("{who} was chosen by session affinity: the request's session is bound to it.")
            }
            (DecidedBy::Pinned, ..) => format!(
                "{who} was chosen because the request was bound to it: by its session, its client or a gateway."
            ),
            (DecidedBy::Policy, ..) => format!(
                "{who} was chosen by another worker-selection policy than the cost formula (--router-policy-config)."
            ),
            (_, _, Some(RoutingMode::Direct)) => format!(
                "{who} was named by the request: the frontend runs in direct mode, and whoever is before it chose. Behind an Inference \
                 Gateway that is its endpoint picker (EPP)."
            ),
            (_, _, Some(mode)) => format!("{who} was chosen by the routing mode {}.", mode.as_str()),
            (_, _, None) => format!("{who} was chosen by another routing mode than KV."),
        };
        if let (Some(held), Some(isl)) =
            (self.overlap_blocks().filter(|_| !self.ignores_cache), self.decision.isl_blocks)
        {
            let _ = write!(text, " {held} of {isl} prompt blocks were cached there.");
        }
        if let (Ok(cost_gap), Ok(next)) = (self.cost_gap_blocks(), self.next_best()) {
            text += &match cost_gap {
                gap if gap < 0.0 => {
                    format!(
                        " By cost it would have been {}, {} less.",
                        name(next.worker),
                        blocks(-tenth(gap))
                    )
                }
                gap if gap > 0.0 => " It also had the lowest cost.".to_owned(),
                _ => format!(" By cost it ties with {}.", name(next.worker)),
            };
        }
        text
    }

    fn why_alone(&self, who: &str) -> String {
        let mut text = match (self.decision.candidates.len(), self.overlap_blocks(), self.decision.isl_blocks)
        {
            (1, ..) => return format!("{who} was chosen: it was the only candidate."),
            (2.., ..) if self.partial => {
                return format!(
                    "{who} was chosen. The tree lacked blocks at that time: the others may have had more of the prompt cached \
                     and cost less than computed here, so no reason is given."
                );
            }
            _ if self.ignores_cache => format!(
                "{who} was chosen by the blocks in use; decode decisions ignore cached blocks. The cost of the \
                 others is unknown."
            ),
            (_, Some(held), Some(isl)) => format!(
                "{who} was chosen; {held} of {isl} prompt blocks were cached there. The cost of the others is unknown."
            ),
            _ => format!("{who} was chosen. The cost of the others is unknown."),
        };
        if let Some(missing) = self.decision.not_reconstructed {
            let _ = write!(text, " {}", missing.sentence());
        }
        if self.partial {
            text += " The tree lacked blocks at that time.";
        }
        text
    }

    /// How its costs are known, in a few words.
    pub fn known_text(&self) -> String {
        let mut text = self.known_by_text();
        if self.partial {
            text += ", on a tree that lacked blocks";
        }
        text
    }

    fn known_by_text(&self) -> String {
        let decision = &self.decision;
        let how = decision.completeness.as_str();
        match (decision.completeness, decision.not_reconstructed) {
            (Completeness::ChosenOnly, Some(missing)) => format!("{how}: {}", missing.to_text()),
            (Completeness::Reconstructed, _) if decision.logit.is_some() => {
                format!("{how}, cost as the router reported")
            }
            (Completeness::Reconstructed, _) if decision.overlap_blocks.is_some() => {
                format!("{how}, overlap as the router reported")
            }
            (Completeness::Reconstructed, _) => format!("{how}, not verified: the router reported no cost"),
            _ => how.to_owned(),
        }
    }

    /// The advantages of the chosen worker over the next best.
    fn held_and_loaded(&self, chosen: &Candidate, next: &Candidate) -> String {
        let of = self.decision.isl_blocks.map_or(String::new(), |isl| format!(" of {isl}"));
        let decode = Short(tenth(chosen.decode_blocks));
        let prefill = Short(tenth(chosen.prefill_blocks));
        if self.ignores_cache {
            return format!("with this prompt {decode} blocks are in use there, and no worker has fewer");
        }
        match chosen.overlap_blocks {
            0 => format!(
                "it has none{of} prompt blocks cached, but the least to do, {prefill} blocks to prefill and {decode} \
                 decode blocks"
            ),
            held if held > next.overlap_blocks && chosen.decode_blocks > next.decode_blocks => {
                format!("it has {held}{of} prompt blocks cached, which outweighs its {decode} decode blocks")
            }
            held => format!(
                "it has {held}{of} prompt blocks cached, {prefill} blocks to prefill and {decode} decode blocks"
            ),
        }
    }

    /// By how much the chosen worker won, in a few words that follow its name.
    pub fn cost_gap_text(&self, name: impl Fn(WorkerIx) -> String) -> String {
        let (cost_gap, next) = match (self.cost_gap_blocks(), self.next_best()) {
            (Ok(cost_gap), Ok(next)) => (cost_gap, name(next.worker)),
            (Err(NoCostGap::Alone), _) => return "the only candidate".to_owned(),
            (Err(NoCostGap::OtherRouter), _) => return self.score_gap_text(name),
            (Err(why), _) | (_, Err(why)) => return format!("cost gap unknown: {}", why.as_str()),
        };
        match cost_gap {
            0.0 => format!("ties with {next}"),
            less if less < 0.0 => format!("{} above the cost of {next}", blocks(-tenth(less))),
            more => format!("{} below the cost of {next}", blocks(tenth(more))),
        }
    }

    /// The worker with more cached blocks and why it was not chosen; `None` if there is none.
    pub fn why_affinity_was_lost(&self, name: impl Fn(WorkerIx) -> String) -> Option<String> {
        let lost = self.lost_affinity()?;
        let chosen = self.chosen()?;
        let (who, other) = (name(lost.candidate.worker), lost.candidate);
        let mut text = format!(
            "{who} had {} more of the prompt cached ({} against {})",
            blocks(f64::from(lost.more_blocks)),
            other.overlap_blocks,
            chosen.overlap_blocks
        );
        let excess = other.cost - chosen.cost;
        if excess <= 0.0 || excess.is_nan() {
            text += " and did not cost more: a tie or a draw decided.";
            return Some(text);
        }
        let _ = write!(text, " but costs {} more", blocks(excess));
        let decode = other.decode_blocks - chosen.decode_blocks;
        let prefill = other.prefill_blocks - chosen.prefill_blocks;
        let decode = (decode > 0.0).then(|| format!("{} more decode blocks", Short(decode)));
        let prefill = (prefill > 0.0).then(|| format!("{} more blocks to prefill", Short(prefill)));
        let reasons: Vec<String> = [decode, prefill].into_iter().flatten().collect();
        if !reasons.is_empty() {
            let _ = write!(text, ": {}", reasons.join(" and "));
        }
        text.push('.');
        Some(text)
    }
}

fn ratio(of: f64, over: f64) -> f64 {
    let ratio = of / over;
    if ratio.is_finite() { ratio } else { 1.0 }
}

/// To a tenth, as the ledger shows margins; what is smaller keeps its digits, so that no difference reads as none.
fn tenth(n: f64) -> f64 {
    if n.abs() < 0.1 { n } else { (n * 10.0).round() / 10.0 }
}

fn blocks(n: f64) -> String {
    format!("{} {}", Short(n), if n == 1.0 { "block" } else { "blocks" })
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::*;
    use radixscope_model::record::NotReconstructed;

    fn name(worker: WorkerIx) -> String {
        format!("W{}", worker.0 + 1)
    }

    #[test]
    fn a_choice_for_decode_is_explained_by_load_alone() {
        let mut choice = example();
        choice.ignores_cache = true;
        assert_eq!(
            choice.why(name),
            "W2 was chosen: with this prompt 5 blocks are in use there, and no worker has fewer; next best W1 costs 60 \
             blocks more."
        );
        choice.decision.candidates.clear();
        assert!(!choice.why(name).contains("held"), "{}", choice.why(name));
        assert_eq!(choice.why_affinity_was_lost(name), None);
    }

    #[test]
    fn a_choice_that_the_cost_did_not_decide_says_what_did_and_what_it_cost() {
        let mut choice = decided(Some(100), Some(75), &[(20, 18.0), (75, 30.0)]);
        let mut why = |by, session: Option<&str>| {
            choice.decision.decided_by = Some(by);
            choice.decision.session = session.map(str::to_owned);
            choice.why(name)
        };
        assert_eq!(
            why(DecidedBy::SessionAffinity, Some("s-1")),
            "W2 was chosen by session affinity: session s-1 is bound to it. 75 of 100 prompt blocks were cached there. By cost it \
             would have been W1, 12 blocks less."
        );
        assert!(why(DecidedBy::SessionAffinity, None).contains("the request's session is bound to it"));
        assert!(why(DecidedBy::Pinned, None).contains("by its session, its client or a gateway"));
        assert!(why(DecidedBy::Policy, Some("s-1")).contains("another worker-selection policy"));
        assert!(why(DecidedBy::Cost, Some("s-1")).contains("W2 was chosen though W1 cost 12 blocks less"));
    }

    #[test]
    fn the_cost_gap_names_the_next_best() {
        let text = |candidates: &[(u32, f64)]| decided(Some(100), None, candidates).cost_gap_text(name);
        assert_eq!(text(&[(20, 90.04), (75, 30.0)]), "60 blocks below the cost of W1");
        assert_eq!(text(&[(20, 30.0), (75, 30.0), (1, 31.0)]), "ties with W1");
        assert_eq!(text(&[(20, 29.0), (75, 30.0)]), "1 block above the cost of W1");
        assert_eq!(text(&[(20, 30.01), (75, 30.0)]), "0.01 blocks below the cost of W1");
        assert_eq!(text(&[]), "cost gap unknown: only the chosen worker's part is known");
    }

    /// The example everybody knows, with its loads.
    fn example() -> DecisionEntry {
        let mut example = decided(Some(100), None, &[(20, 90.0), (75, 30.0), (10, 99.0)]);
        (example.decision.formula, example.decision.prefill_factor) = (Some(Formula::A), Some(1.0));
        for (candidate, (prefill, decode)) in
            example.decision.candidates.iter_mut().zip([(80.0, 10.0), (25.0, 5.0), (90.0, 9.0)])
        {
            (candidate.prefill_blocks, candidate.decode_blocks) = (prefill, decode);
        }
        example
    }

    #[test]
    fn the_example_everybody_knows_is_listed_from_the_cheapest_on() {
        let parts = example().cost_parts();
        let sums: Vec<String> = parts.iter().map(CostParts::sum).collect();
        assert_eq!(
            sums,
            [
                "30 = 1.0 × 25 prefill + 5 decode",
                "90 = 1.0 × 80 prefill + 10 decode",
                "99 = 1.0 × 90 prefill + 9 decode"
            ]
        );
        assert!(parts[0].is_chosen && parts[0].is_lowest && !parts[1].is_lowest);
        assert_eq!((parts[0].saved, parts[0].other_cost), (75.0, 0.0));
    }

    #[test]
    fn the_sentence_names_what_was_held_and_the_cost_gap() {
        assert_eq!(
            example().why(name),
            "W2 was chosen: it has 75 of 100 prompt blocks cached, 25 blocks to prefill and 5 decode blocks; next \
             best W1 costs 60 blocks more."
        );
        let mut loaded = example();
        loaded.decision.candidates[0].decode_blocks = 4.0;
        assert_eq!(
            loaded.why(name),
            "W2 was chosen: it has 75 of 100 prompt blocks cached, which outweighs its 5 decode blocks; next best W1 \
             costs 60 blocks more."
        );
        assert_eq!(loaded.why_affinity_was_lost(name), None);
    }

    #[test]
    fn a_tie_a_draw_and_unknown_candidates_are_explained_as_such() {
        let tie = decided(Some(9), None, &[(0, 9.0), (0, 9.0)]);
        assert!(tie.why(name).starts_with("W2 was chosen among 2 that tie at 9 blocks: it has none of 9"));
        let drawn = decided(Some(9), None, &[(0, 7.0), (0, 9.0)]);
        assert!(
            drawn.why(name).starts_with("W2 was chosen though W1 cost 2 blocks less: with a temperature")
        );
        let alone = decided(Some(9), Some(3), &[]);
        assert_eq!(
            alone.why(name),
            "W2 was chosen; 3 of 9 prompt blocks were cached there. The cost of the others is unknown."
        );
    }

    #[test]
    fn the_source_of_costs_or_the_reason_for_none_is_shown() {
        let mut alone = decided(Some(9), Some(3), &[]);
        assert_eq!(alone.known_text(), "chosen only");
        alone.decision.not_reconstructed = Some(NotReconstructed::State);
        assert_eq!(alone.known_text(), "chosen only: state at that time unknown");
        assert!(alone.why(name).ends_with("is unknown for that time."), "{}", alone.why(name));
        let mut known = example();
        known.decision.completeness = Completeness::Reconstructed;
        known.decision.overlap_blocks = Some(75);
        assert_eq!(known.known_text(), "reconstructed, overlap as the router reported");
        known.decision.logit = Some(30.0);
        assert_eq!(known.known_text(), "reconstructed, cost as the router reported");
        (known.decision.logit, known.decision.overlap_blocks) = (None, None);
        assert_eq!(known.known_text(), "reconstructed, not verified: the router reported no cost");
    }

    #[test]
    fn who_held_more_lost_by_its_terms() {
        let mut lost = example();
        lost.decision.candidates[0] = Candidate {
            overlap_blocks: 95,
            prefill_blocks: 5.0,
            decode_blocks: 85.0,
            ..lost.decision.candidates[0]
        };
        assert_eq!(
            lost.why_affinity_was_lost(name).unwrap(),
            "W1 had 20 blocks more of the prompt cached (95 against 75) but costs 60 blocks more: 80 more decode blocks."
        );
    }

    #[test]
    fn terms_that_the_line_does_not_name_are_shown_as_such() {
        let mut more = example();
        more.decision.candidates[1].cost = 42.0;
        let parts = more.cost_parts();
        assert_eq!(parts[0].sum(), "42 = 1.0 × 25 prefill + 5 decode + 12 other terms");
    }
}
