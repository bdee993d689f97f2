//! Decisions, one by one: whatever routers report of a decision has to be shown, and nothing that is reported nowhere.

use serde_json::Value;

use super::Ratio;
use super::pairs::{pairs, worker_of};
use crate::capture::Happened;
use crate::discovery::Role;
use crate::recording::Recording;
use crate::router::{Decision, Fact, HALF_A_DECIMAL, HOST_WEIGHT};

/// Decisions that show no candidates but the chosen worker.
const CHOSEN_ONLY: &str = "chosen only";
/// Decisions whose candidates' costs were computed.
const RECONSTRUCTED: &str = "reconstructed";
/// Times in ms are shown to the microsecond; the log has two decimals.
const SAME_MS: f64 = 0.000_6;
/// Times of day are whole milliseconds.
const SAME_TIME_MS: f64 = 1.0;
/// A replay through sockets moves them.
const SAME_REPLAYED_MS: f64 = 25.0;
/// Two programs on a busy machine receive the same message so far apart.
const SAME_RECEIVED_MS: f64 = 250.0;
/// The decode worker of a request is chosen so soon after its prefill worker.
const DECODES_WITHIN_S: f64 = 1.0;
/// Two means of the same shares differ by no more than their rounding.
const SAME_SHARE: f64 = 1e-12;

/// How many are right, of how many that are reported.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Choices that are shown.
    pub decisions: Ratio,
    /// Choices of which everything that is reported is shown right, and nothing else.
    pub right: Ratio,
    /// Decisions that are shown and were none, or twice.
    pub surplus: usize,
    /// Ids of requests.
    pub request_ids: Ratio,
    /// Prompt lengths.
    pub isl: Ratio,
    /// Blocks that the chosen worker held.
    pub overlap: Ratio,
    /// The chosen worker's cost.
    pub logits: Ratio,
    /// Costs and overlaps of candidates that routers logged.
    pub candidates: Ratio,
    /// Decisions called reconstructed whose chosen worker costs what the router reports, and held what it reports.
    pub reconstructed: Ratio,
    /// Of decisions that could be reconstructed, and are not logged whole, those that are.
    pub reconstructible: Ratio,
    /// Decisions with costs of all candidates whose chosen worker is the cheapest.
    pub cheapest: Ratio,
    /// Decisions with a known prompt and overlap that name where in the tree the prompt's held part ends.
    pub paths: Ratio,
    /// The mean hit rate and the routers' histogram.
    pub hit_rate: HitRate,
    /// Times to the first token.
    pub ttft: Ratio,
    /// Mean times between tokens, and lengths of responses.
    pub itl: Ratio,
    /// First tokens.
    pub first_tokens: Ratio,
    /// Ends of requests.
    pub ends: Ratio,
    /// Choices of a request with two that name each other.
    pub linked: Ratio,
    /// Costs of the chosen worker as the messages alone add up.
    pub message_costs: Ratio,
    /// The same that are not what the router logged: the recount itself is wrong.
    pub miscounted: usize,
    /// Values that are shown and that are reported nowhere, by name.
    pub unreported: Vec<&'static str>,
    /// Choices that the client's notes contradict: the recount itself is wrong.
    pub contradicted: usize,
    /// What is wrong, a line each, for whoever looks for the reason.
    pub differences: Vec<String>,
}

/// How the response came about.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Given {
    /// What leads from the recording's times to those of the response, seconds.
    pub shift_s: f64,
    /// How much later than in the recording messages were received, seconds.
    pub nats_late_s: f64,
    /// Whether the lines with every candidate's cost were kept back: what is reconstructed is then held against them.
    pub are_formulas_hidden: bool,
}

/// How the mean hit rate compares.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum HitRate {
    /// No histogram, or none that holds just the decisions known.
    #[default]
    NotReported,
    /// The mean is not known, because so many of these decisions have no overlap or length.
    Unknown(usize, usize),
    /// Equal.
    Equal(f64),
    /// Shown, and by the routers.
    Differs(f64, f64),
}

impl Agreement {
    /// Compares a response of `/api/v1/decisions` that holds all of them.
    pub fn of(recording: &Recording, response: &Value, given: Given) -> Self {
        let shift_s = given.shift_s;
        let none = Vec::new();
        let shown = response["decisions"].as_array().unwrap_or(&none);
        let (of, surplus) = pairs(&recording.decisions, shown, shift_s);
        let mut agreement = Self { surplus, contradicted: recording.contradicted().0, ..Self::default() };
        for (decision, row) in recording.decisions.iter().zip(&of) {
            let wrong_before = agreement.wrong();
            agreement.decisions.add(row.is_some());
            agreement.link(recording, decision, &of);
            let row = row.unwrap_or(&Value::Null);
            agreement.compare_texts(decision, row, given);
            agreement.costs(decision, row, given);
            let is_right = agreement.wrong() == wrong_before;
            agreement.right.add(is_right);
        }
        agreement.hit_rate = hit_rate(recording, &of);
        agreement
    }

    /// Whether nothing is missing, wrong or made up.
    pub fn is_whole(&self) -> bool {
        self.wrong() == 0
            && self.surplus == 0
            && matches!(self.hit_rate, HitRate::NotReported | HitRate::Equal(_))
    }

    /// How much of what is reported of single decisions is missing, wrong or made up.
    fn wrong(&self) -> usize {
        let ratios = [
            self.decisions,
            self.request_ids,
            self.isl,
            self.overlap,
            self.logits,
            self.candidates,
            self.reconstructed,
            self.cheapest,
            self.paths,
            self.ttft,
            self.itl,
            self.first_tokens,
            self.ends,
            self.linked,
            self.message_costs,
        ];
        ratios.iter().map(|ratio| ratio.m - ratio.n).sum::<usize>() + self.unreported.len()
    }

    fn compare_texts(&mut self, decision: &Decision, row: &Value, given: Given) {
        let shift_s = given.shift_s;
        let Self {
            request_ids, isl, overlap, ttft, itl, first_tokens, ends, unreported, differences, ..
        } = self;
        let mut judge = |ratio: &mut Ratio,
                         what: &'static str,
                         reported: Option<f64>,
                         is_unreported: bool,
                         shown: &Value,
                         by: f64| {
            match (reported, shown.as_f64()) {
                (Some(reported), shown_value) => {
                    let is_right = shown_value.is_some_and(|shown| (shown - reported).abs() <= by);
                    ratio.add(is_right);
                    if !is_right && !row.is_null() {
                        differences.push(format!("{:.6} {what}: {shown}, not {reported}", decision.at_s));
                    }
                }
                (None, Some(_)) if is_unreported => unreported.push(what),
                (None, _) => {}
            }
        };
        let count =
            |fact: &Fact<u64>| (fact.reported().map(|value| *value as f64), *fact == Fact::NotReported);
        let time = |fact: &Fact<f64>| (fact.reported().copied(), *fact == Fact::NotReported);
        let progress = &row["progress"];
        let (reported, is_unreported) = count(&decision.isl_tokens);
        let (blocks, are_blocks_unreported) = count(&decision.isl_blocks);
        // In tokens where those are reported, else in blocks: one prompt counts once.
        match reported {
            Some(_) => judge(isl, "isl_tokens", reported, is_unreported, &row["isl_tokens"], 0.0),
            None => judge(
                isl,
                "isl_blocks",
                blocks,
                are_blocks_unreported && is_unreported,
                &row["isl_blocks"],
                0.0,
            ),
        }
        // Of a query a formula may be all that reports it.
        let is_hidden = given.are_formulas_hidden && decision.is_dispatched != Some(true);
        let (reported, is_unreported) =
            if is_hidden { (None, false) } else { count(&decision.overlap_blocks) };
        judge(overlap, "overlap_blocks", reported, is_unreported, &row["overlap_blocks"], 0.0);
        let (reported, is_unreported) = time(&decision.ttft_ms);
        judge(ttft, "ttft_ms", reported, is_unreported, &progress["ttft_ms"], SAME_MS);
        let (reported, is_unreported) = time(&decision.itl_ms);
        judge(itl, "itl_ms", reported, is_unreported, &progress["itl_ms"], SAME_MS);
        let (reported, is_unreported) = count(&decision.output_tokens);
        judge(itl, "output_tokens", reported, is_unreported, &progress["output_tokens"], 0.0);
        let mut moment = |ratio: &mut Ratio, what: &'static str, fact: &Fact<Happened>, or_s: &[f64]| {
            let at = fact.reported();
            let is_published = at.is_some_and(|at| at.is_published);
            let late_s = if is_published { 0.0 } else { given.nats_late_s };
            let mut at_ms = at.map(|at| (at.at_s + shift_s + late_s) * 1_000.0);
            let by_ms = match (is_published, shift_s == 0.0) {
                (true, true) => SAME_TIME_MS,
                (true, false) => SAME_REPLAYED_MS,
                (false, _) => SAME_RECEIVED_MS,
            };
            // Two sources tell it: either is right.
            let is_shown =
                |or_ms: &f64| progress[what].as_f64().is_some_and(|ms| (ms - or_ms).abs() <= by_ms);
            let or_ms = or_s.iter().map(|at_s| (at_s + shift_s) * 1_000.0).find(is_shown);
            at_ms = at_ms.map(|at_ms| or_ms.unwrap_or(at_ms));
            judge(ratio, what, at_ms, false, &progress[what], by_ms);
        };
        moment(first_tokens, "first_token_ms", &decision.first_token, &[]);
        moment(ends, "ended_ms", &decision.ended, &decision.log_ended_s);
        match (&decision.request_id, row["request_id"].as_str()) {
            (Fact::Reported(id), shown) => request_ids.add(shown == Some(id)),
            (Fact::NotReported, Some(_)) => unreported.push("request_id"),
            _ => {}
        }
    }

    /// The two choices of a request, and only those, name each other.
    fn link(&mut self, recording: &Recording, decision: &Decision, of: &[Option<&Value>]) {
        let row_of = |wanted: &Decision| {
            let at = recording.decisions.iter().position(|one| std::ptr::eq(one, wanted))?;
            of[at]
        };
        let Some(row) = row_of(decision) else { return };
        let Some(worker) = decision.other_part else {
            let is_said = decision.request_id.reported().is_some();
            // The other choice may be one whose request is not sure.
            let is_uncertain = |one: &Decision| one.request_id == Fact::Unsure;
            if row["other_part"].is_null() || recording.decisions.iter().any(is_uncertain) {
                return;
            }
            // Nothing names the request: then both have to be able to be of one.
            let other = recording
                .decisions
                .iter()
                .find(|one| row_of(one).is_some_and(|shown| shown["id"] == row["other_part"]));
            let is_right = !is_said
                && other.is_some_and(|other| {
                    row_of(other).is_some_and(|shown| shown["other_part"] == row["id"])
                        && can_be_one(decision, other)
                });
            if is_said {
                self.unreported.push("other_part");
            } else {
                self.linked.add(is_right);
            }
            return;
        };
        let is_other = |one: &&Decision| one.request_id == decision.request_id && one.worker == worker;
        let other = recording.decisions.iter().rev().find(is_other).and_then(row_of);
        let is_linked = other.is_some_and(|other| other["id"] == row["other_part"]);
        self.linked.add(is_linked);
        if !is_linked {
            let shown = &row["other_part"];
            self.differences.push(format!("{:.6} other_part: {shown}, not on {worker:?}", decision.at_s));
        }
    }

    fn costs(&mut self, decision: &Decision, row: &Value, given: Given) {
        self.logits.add(row["logit"].as_f64().is_some_and(|cost| decision.is_logit(cost)));
        self.miscounted += usize::from(decision.message_cost.is_some_and(|cost| !decision.is_logit(cost)));
        // Messages may come in another order than the router did what they report: its own log counts more.
        if let Some(cost) = decision.message_cost.filter(|&cost| decision.is_logit(cost)) {
            let shown = row["cost"].as_f64();
            let is_same = shown.is_some_and(|shown| (shown - cost).abs() <= HALF_A_DECIMAL);
            self.message_costs.add(is_same);
            if !is_same {
                let logit = decision.logit;
                let what = format!("cost: {}, not {cost} (logged {logit})", row["cost"]);
                self.differences.push(format!("{:.6} {what}", decision.at_s));
            }
        }
        let none = Vec::new();
        let shown = row["candidates"].as_array().unwrap_or(&none);
        let completeness = row["completeness"].as_str().unwrap_or(CHOSEN_ONLY);
        let is_reconstructed = completeness == RECONSTRUCTED;
        let is_logged = !decision.candidates.is_empty() && !given.are_formulas_hidden;
        let compared = decision.candidates.iter().filter(|_| is_logged || is_reconstructed);
        for formula in compared {
            let of = shown.iter().find(|candidate| worker_of(candidate) == Some(formula.worker));
            let is_same = of.is_some_and(|candidate| {
                let near = |key: &str, reported: f64, by| {
                    candidate[key].as_f64().is_some_and(|v| (v - reported).abs() <= by)
                };
                near("cost", formula.cost, HALF_A_DECIMAL)
                    && near("overlap_blocks", formula.overlap_blocks, HALF_A_DECIMAL)
            });
            self.candidates.add(is_same);
            if !is_same && !row.is_null() {
                let shown = of.map_or(&Value::Null, |candidate| candidate).to_string();
                self.differences.push(format!("{:.6} candidate {formula:?}: {shown}", decision.at_s));
            }
        }
        if !is_logged && decision.is_prompt_known {
            self.reconstructible.add(is_reconstructed);
        }
        // The hashes of a prefill choice's prompt may be in the message about the decode choice.
        let is_sure = decision.request_id != Fact::Unsure && decision.other_part.is_none();
        if !is_logged && is_sure && !decision.is_prompt_known && shown.len() > 1 {
            self.unreported.push("candidates");
        }
        let chosen = shown.iter().find(|candidate| candidate["selected"] == true).unwrap_or(&Value::Null);
        if is_reconstructed {
            let held = decision.overlap_blocks.reported();
            let is_right = chosen["cost"].as_f64().is_some_and(|cost| decision.is_logit(cost))
                && held.is_none_or(|held| chosen["overlap_blocks"].as_u64() == Some(*held));
            self.reconstructed.add(is_right);
            if !is_right {
                self.differences.push(format!("{:.6} logit {}: {chosen}", decision.at_s, decision.logit));
            }
        }
        if completeness != CHOSEN_ONLY && shown.len() > 1 && shown.iter().all(|c| c["cost"].is_number()) {
            let costs = shown.iter().filter_map(|candidate| candidate["cost"].as_f64());
            let least = costs.fold(f64::INFINITY, f64::min);
            self.cheapest.add(chosen["cost"].as_f64().is_some_and(|cost| cost <= least + HALF_A_DECIMAL));
        }
        if decision.is_prompt_known && decision.overlap_blocks.reported().is_some_and(|held| *held > 0) {
            self.paths.add(!row["path"].is_null());
        }
    }
}

/// Whether two choices can be of one request: a prompt of the same length is computed before it is decoded.
fn can_be_one(one: &Decision, other: &Decision) -> bool {
    let (prefill, decode) = match (one.role, other.role) {
        (Role::Prefill, Role::Decode) => (one, other),
        (Role::Decode, Role::Prefill) => (other, one),
        _ => return false,
    };
    let is_next = (0.0..DECODES_WITHIN_S).contains(&(decode.at_s - prefill.at_s));
    let is_same = |a: &Fact<u64>, b: &Fact<u64>| a.reported().zip(b.reported()).is_none_or(|(a, b)| a == b);
    is_next
        && is_same(&prefill.isl_blocks, &decode.isl_blocks)
        && is_same(&prefill.isl_tokens, &decode.isl_tokens)
}

fn hit_rate(recording: &Recording, of: &[Option<&Value>]) -> HitRate {
    let Some((count, histogram)) = recording.hit_rate() else { return HitRate::NotReported };
    let Some(reported) = histogram.mean() else { return HitRate::NotReported };
    let share = |row: &Option<&Value>| {
        let row = (*row)?;
        let below = HOST_WEIGHT * row["lower_tier_blocks"].as_u64().unwrap_or(0) as f64;
        let held = row["overlap_blocks"].as_u64()? as f64 + below;
        Some(held / row["isl_blocks"].as_u64().filter(|&isl| isl > 0)? as f64)
    };
    let shares: Vec<f64> = of[..count].iter().filter_map(share).collect();
    if shares.len() < count {
        return HitRate::Unknown(count - shares.len(), count);
    }
    let mean = shares.iter().sum::<f64>() / count as f64;
    if (mean - reported).abs() <= SAME_SHARE {
        HitRate::Equal(reported)
    } else {
        HitRate::Differs(mean, reported)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::discovery::Discovery;
    use crate::router;

    /// One request: its prompt is computed on worker 1, its tokens on worker 2.
    fn recording() -> Recording {
        let line = |worker: u64, role: &str, logit: f64| {
            format!(
                "2026-11-21T21:59:48.479823Z  INFO a::b: Selected worker router_mode=\"kv\" request_id=\"r\" \
                 worker_id={worker} worker_type={role} dp_rank=0 logit={logit} effective_cached_blocks=0.0"
            )
        };
        let decisions = router::read([line(1, "prefill", 3.5), line(2, "decode", 7.0)]);
        let mut recording = Recording { decisions, ..Recording::default() };
        let card = |pool: &str, id: u64, role: &str| {
            json!({"key": format!("v1/mdc/n/{pool}/generate/{id:x}"),
                "value": {"instance_id": id, "card_json": {"display_name": "m", "worker_type": role}}})
        };
        recording.discovery =
            Discovery::of(&json!({"kvs": [card("p", 1, "prefill"), card("d", 2, "decode")]}));
        let pools = [((1, 0), "n/p".to_owned()), ((2, 0), "n/d".to_owned())].into();
        router::link(&mut recording.decisions, &pools, &recording.discovery);
        for (decision, cost) in recording.decisions.iter_mut().zip([3.5, 7.0]) {
            decision.message_cost = Some(cost);
            decision.part_only();
        }
        recording
    }

    fn response() -> Value {
        let row = |id: u64, worker: &str, cost: f64, overlap: Value| {
            json!({"id": id, "request_id": "r", "worker_id": worker, "dp_rank": 0, "other_part": 1 - id, "cost": cost,
                "logit": cost, "overlap_blocks": overlap, "at_ms": 1_795_298_388_479_u64})
        };
        json!({"decisions": [row(1, "2", 7.0, Value::Null), row(0, "1", 3.5, 0.into())]})
    }

    #[test]
    fn both_choices_of_a_request_are_held_against_what_is_shown() {
        let agreement = Agreement::of(&recording(), &response(), Given::default());
        assert!(agreement.is_whole(), "{agreement:?}");
        assert_eq!((agreement.linked, agreement.message_costs), (Ratio { n: 2, m: 2 }, Ratio { n: 2, m: 2 }));
        assert_eq!((agreement.right, agreement.miscounted), (Ratio { n: 2, m: 2 }, 0));
    }

    #[test]
    fn a_choice_that_is_not_linked_or_costs_something_else_is_named() {
        let mut shown = response();
        shown["decisions"][0]["other_part"] = Value::Null;
        shown["decisions"][1]["cost"] = 4.5.into();
        let agreement = Agreement::of(&recording(), &shown, Given::default());
        assert!(!agreement.is_whole());
        assert_eq!((agreement.linked.n, agreement.message_costs.n), (1, 1));
        assert_eq!((agreement.right, agreement.differences.len()), (Ratio { n: 0, m: 2 }, 2));
    }
}
