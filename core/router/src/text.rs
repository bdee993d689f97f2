//! A decision in words and a table, to paste into a ticket. Must not know where the decision was found.

use std::fmt;

use super::cost::Terms;
use super::explain::Short;
use super::numbers::TEMPERATURE;
use super::settings::{Role, RouterMode, RouterSettings};

/// A candidate as a ticket shows it; `None` is written as unknown.
#[derive(Clone, Copy, Debug)]
pub struct CandidateText<'a> {
    /// The worker's name.
    pub worker: &'a str,
    /// Blocks of the prompt it held.
    pub overlap_blocks: Option<f64>,
    /// Prompt blocks to compute after overlap or credit.
    pub prefill_blocks: Option<f64>,
    /// Blocks in use with those of the request.
    pub decode_blocks: Option<f64>,
    /// Cost in blocks.
    pub cost: Option<f64>,
    /// Chance to be chosen, 0 … 1.
    pub probability: Option<f64>,
    /// Whether it was chosen.
    pub is_chosen: bool,
}

impl<'a> CandidateText<'a> {
    /// From worked-out terms.
    pub fn of(
        worker: &'a str,
        overlap_blocks: f64,
        terms: &Terms,
        probability: f64,
        is_chosen: bool,
    ) -> Self {
        Self {
            worker,
            overlap_blocks: Some(overlap_blocks),
            prefill_blocks: Some(terms.prefill_blocks),
            decode_blocks: Some(terms.decode_blocks),
            cost: Some(terms.cost),
            probability: Some(probability),
            is_chosen,
        }
    }
}

/// A decision as a ticket shows it.
#[derive(Clone, Copy, Debug)]
pub struct DecisionText<'a> {
    /// When, written out with its zone.
    pub at: &'a str,
    /// The request's id, if known.
    pub request_id: Option<&'a str>,
    /// Length of the prompt, if known.
    pub isl_tokens: Option<u64>,
    /// The router's block size, if known.
    pub block_size_tokens: Option<u32>,
    /// What the router ran with, if known.
    pub settings: Option<RouterSettings>,
    /// Whether all of these are known, or formula and factor of the prefill term alone.
    pub are_settings_whole: bool,
    /// The candidates in the order to show.
    pub candidates: &'a [CandidateText<'a>],
    /// Whether these are all workers that were weighed.
    pub has_all_candidates: bool,
    /// How this is known: sources and completeness, in words.
    pub known_from: &'a str,
}

impl fmt::Display for DecisionText<'_> {
    /// Markdown that reads well as plain text too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Routing decision of {}", OneLine(self.at))?;
        if let Some(id) = self.request_id {
            write!(f, ", request {}", OneLine(id))?;
        }
        f.write_str("\n\n")?;
        match (self.isl_tokens, self.block_size_tokens.filter(|&size| size > 0)) {
            (Some(isl), Some(size)) => {
                let blocks = isl.div_ceil(size.into());
                writeln!(f, "- Prompt: {isl} tokens, {blocks} blocks of {size} tokens")?;
            }
            (Some(isl), None) => writeln!(f, "- Prompt: {isl} tokens, block size unknown")?,
            (None, _) => writeln!(f, "- Prompt: length unknown")?,
        }
        match self.settings {
            Some(settings) if self.are_settings_whole => {
                writeln!(f, "- Router: formula {}, {settings}", settings.formula.as_str())?;
            }
            Some(settings) => {
                let (formula, factor) = (settings.formula.as_str(), settings.prefill_factor_number().name);
                let value = Short(settings.prefill_factor());
                writeln!(f, "- Router: formula {formula}, {factor} {value}, {} unknown", TEMPERATURE.name)?;
            }
            None => writeln!(f, "- Router: formula and settings unknown")?,
        }
        f.write_str("\n| worker | overlap, blocks | prefill, blocks | decode, blocks | cost, blocks | probability | |\n")?;
        f.write_str("|---|---:|---:|---:|---:|---:|---|\n")?;
        for c in self.candidates {
            let chosen = if c.is_chosen { "chosen" } else { "" };
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {chosen} |",
                OneLine(c.worker),
                Known(c.overlap_blocks),
                Known(c.prefill_blocks),
                Known(c.decode_blocks),
                Known(c.cost),
                Percent(c.probability),
            )?;
        }
        f.write_str("\n")?;
        self.margin(f)?;
        writeln!(f, "- Known from: {}", OneLine(self.known_from))
    }
}

impl DecisionText<'_> {
    fn margin(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let costs = || self.candidates.iter().filter_map(|c| c.cost);
        let all_known = self.has_all_candidates && self.candidates.iter().all(|c| c.cost.is_some());
        if !all_known || self.candidates.is_empty() {
            return writeln!(f, "- Margin: unknown, not every worker's cost is known");
        }
        let least = costs().fold(f64::INFINITY, f64::min);
        let tied = costs().filter(|&cost| cost == least).count();
        let second = costs().filter(|&cost| cost > least).fold(f64::INFINITY, f64::min);
        if tied > 1 {
            writeln!(f, "- Tie: {tied} workers share the lowest cost of {} blocks", Short(least))?;
        } else if second.is_finite() {
            writeln!(f, "- Margin: {} blocks to the second lowest cost", Short(second - least))?;
        } else {
            writeln!(f, "- Margin: none, there was one worker")?;
        }
        let chosen = self.candidates.iter().find(|c| c.is_chosen).and_then(|c| c.cost);
        match chosen {
            Some(cost) if cost > least => {
                writeln!(f, "- The chosen worker cost {} blocks more than the cheapest", Short(cost - least))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for RouterSettings {
    /// In one line: the factor of the prefill term, what differs from Dynamo's defaults and matters to the formula, and
    /// the temperature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.router_mode == RouterMode::RoundRobin {
            return f.write_str("round-robin");
        }
        let factor = self.prefill_factor_number();
        write!(f, "{} {}", factor.name, self.prefill_factor())?;
        for (number, value) in self.numbers() {
            let is_shown = number == TEMPERATURE || value != number.default;
            if is_shown && number != factor && number.formulas.contains(&self.formula) {
                write!(f, ", {} {value}", number.name)?;
            }
        }
        if self.role != Role::Aggregated {
            write!(f, ", {} pool", self.role.worker_type())?;
        }
        if !self.track_prefill_tokens {
            f.write_str(", prefill tokens not tracked")?;
        }
        Ok(())
    }
}

/// Names come from outside: they must not break out of a line or a cell.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '|' => f.write_str("\\|")?,
                c if c.is_control() => f.write_str(" ")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

struct Known(Option<f64>);

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => Short(value).fmt(f),
            None => f.write_str("unknown"),
        }
    }
}

struct Percent(Option<f64>);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{:.1} %", value * 100.0),
            None => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scores, example, score};

    #[test]
    fn a_decision_reads_as_a_table_with_its_margin() {
        let mut scores = Scores::default();
        let workers = example::workers();
        score(&example::SETTINGS, &example::REQUEST, &workers, &mut scores);
        let names = ["1", "2", "3"];
        let candidates: Vec<_> = (0..3)
            .map(|at| {
                let score = scores.get(at).unwrap();
                let overlap = f64::from(workers[at].overlap.device);
                CandidateText::of(names[at], overlap, &score.terms, score.probability, at == example::CHOSEN)
            })
            .collect();
        let text = DecisionText {
            at: "2026-11-20 18:06:54 UTC",
            request_id: Some("r-1"),
            isl_tokens: Some(1600),
            block_size_tokens: Some(16),
            settings: Some(example::SETTINGS),
            are_settings_whole: true,
            candidates: &candidates,
            has_all_candidates: true,
            known_from: "the router's log",
        };
        expect_test::expect![[r#"
            Routing decision of 2026-11-20 18:06:54 UTC, request r-1

            - Prompt: 1600 tokens, 100 blocks of 16 tokens
            - Router: formula A, overlap_score_weight 1, router_temperature 0

            | worker | overlap, blocks | prefill, blocks | decode, blocks | cost, blocks | probability | |
            |---|---:|---:|---:|---:|---:|---|
            | 1 | 20 | 80 | 10 | 90 | 0.0 % |  |
            | 2 | 75 | 25 | 5 | 30 | 100.0 % | chosen |
            | 3 | 10 | 90 | 9 | 99 | 0.0 % |  |

            - Margin: 60 blocks to the second lowest cost
            - Known from: the router's log
        "#]]
        .assert_eq(&text.to_string());
    }

    #[test]
    fn what_is_unknown_is_said_and_names_stay_in_their_cell() {
        let candidates = [CandidateText {
            worker: "a|b\n| c",
            overlap_blocks: Some(3.0),
            prefill_blocks: None,
            decode_blocks: None,
            cost: None,
            probability: None,
            is_chosen: true,
        }];
        let text = DecisionText {
            at: "now",
            request_id: None,
            isl_tokens: None,
            block_size_tokens: None,
            settings: None,
            are_settings_whole: false,
            candidates: &candidates,
            has_all_candidates: false,
            known_from: "kv-hit-rate, chosen worker only",
        };
        expect_test::expect![[r#"
            Routing decision of now

            - Prompt: length unknown
            - Router: formula and settings unknown

            | worker | overlap, blocks | prefill, blocks | decode, blocks | cost, blocks | probability | |
            |---|---:|---:|---:|---:|---:|---|
            | a\|b \| c | 3 | unknown | unknown | unknown | unknown | chosen |

            - Margin: unknown, not every worker's cost is known
            - Known from: kv-hit-rate, chosen worker only
        "#]]
        .assert_eq(&text.to_string());
    }
}
