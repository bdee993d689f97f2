//! From the lines of one log to decisions. What names no request belongs to the decision it stands beside.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use regex::Regex;

use super::{Decision, Fact, Formula};
use crate::Worker;
use crate::discovery::Role;
use crate::log::{Line, pattern};

/// A line that follows its decision directly is written within this many seconds.
const FOLLOWS_WITHIN_S: f64 = 0.5;

static FORMULA: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Pinned f|F)ormula for worker_id=(\d+) dp_rank=(\d+) with ([\d.]+) (?:effective )?cached blocks.*?: (-?[\d.]+) = ",
    )
});
static SELECTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^Selected (?:pinned )?worker: .*?worker_id=(\d+) dp_rank=(\d+), logit: (-?[\d.]+)(?:, (?:effective )?cached blocks: ([\d.]+))?",
    )
});
static BEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\[ROUTING\] Best: worker_(\d+) dp_rank=(\d+) with (\d+)/(\d+) blocks overlap")
});

/// What later lines report of a request by its id.
#[derive(Default)]
struct OfRequest {
    input_tokens: Option<u64>,
    input_blocks: Option<u64>,
    overlap_blocks: Option<u64>,
    total_blocks: Option<u64>,
    prompt_tokens: Option<u64>,
    ttft_ms: Option<f64>,
    itl_ms: Option<f64>,
    output_tokens: Option<u64>,
    is_dispatched: bool,
    is_completed: bool,
    /// When its response was whole.
    answered_s: Option<f64>,
    /// On which worker, and when.
    ended: Vec<(Worker, f64)>,
}

#[derive(Default)]
struct Reader {
    decisions: Vec<Decision>,
    /// Formulas whose decision has not come, by the id that they name.
    pending: HashMap<Option<String>, Vec<Formula>>,
    requests: BTreeMap<String, OfRequest>,
    /// The router's id by that of the HTTP request.
    ids: HashMap<String, String>,
    /// Whether the log reports which requests are dispatched.
    reports_dispatch: bool,
}

/// The decisions in the log of one router, in order.
pub fn read(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Decision> {
    let mut reader = Reader::default();
    for line in lines.into_iter().filter_map(|line| Line::read(line.as_ref())) {
        reader.line(&line);
    }
    reader.finish()
}

/// Time to first token and mean time between tokens, in milliseconds, of every request that ended: also of those whose
/// choice no line reports.
pub fn times(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<(Option<f64>, Option<f64>)> {
    let lines = lines.into_iter().filter_map(|line| Line::read(line.as_ref()));
    let ended = lines.filter(|line| line.message.starts_with("request completed"));
    ended.map(|line| (line.number("ttft_ms"), line.number("avg_itl_ms"))).collect()
}

impl Reader {
    fn line(&mut self, line: &Line) {
        let message = line.message.as_str();
        if let Some(parts) = FORMULA.captures(message) {
            let formula = Formula {
                worker: (number(&parts[1]), number(&parts[2])),
                overlap_blocks: decimal(&parts[3]),
                cost: decimal(&parts[4]),
            };
            let of = line.first("request_id").map(str::to_owned);
            self.pending.entry(of).or_default().push(formula);
        } else if let Some(parts) = SELECTED.captures(message) {
            let cached = parts.get(4).map(|blocks| decimal(blocks.as_str()) as u64);
            let worker = (number(&parts[1]), number(&parts[2]));
            self.selected(line, worker, decimal(&parts[3]), false, cached);
        } else if message.starts_with("Selected") && line.first("router_mode") == Some("kv") {
            let cached: Option<f64> = line.number("effective_cached_blocks");
            let (Some(worker), Some(logit)) = (worker(line), line.number("logit")) else { return };
            self.selected(line, worker, logit, true, cached.map(|blocks| blocks as u64));
        } else if message.starts_with("Selected worker") && line.first("router_mode") == Some("direct") {
            self.dispatched(line, line.number("overlap_blocks"), None);
        } else if let Some(parts) = BEST.captures(message) {
            self.dispatched(line, Some(number(&parts[3])), Some(number(&parts[4])));
        } else if message.starts_with("route request ") && line.first("overlap_blocks").is_some() {
            self.reports_dispatch = true;
            let Some(id) = line.last("request_id") else { return };
            let request = self.requests.entry(id.to_owned()).or_default();
            request.overlap_blocks = request.overlap_blocks.or(line.number("overlap_blocks"));
            request.is_dispatched = true;
            if let Some(worker) = worker(line) {
                request.ended.push((worker, line.at_s));
            }
        } else if message.starts_with("[ROUTING_INPUT]") {
            let Some(request) = self.request(line) else { return };
            request.input_tokens = line.number("isl_tokens");
            let size: Option<u64> = line.number("block_size");
            request.input_blocks = request.input_tokens.zip(size).map(|(tokens, size)| tokens.div_ceil(size));
        } else if message.starts_with("request completed") {
            let Some(request) = self.request(line) else { return };
            // A request that ran nothing reports 0.
            request.prompt_tokens = line.number("input_tokens").filter(|&tokens: &u64| tokens > 0);
            request.output_tokens = line.number("output_tokens");
            request.ttft_ms = line.number("ttft_ms");
            request.itl_ms = line.number("avg_itl_ms");
            request.is_completed = true;
            request.answered_s = Some(line.at_s);
        } else if message.starts_with("request received") {
            self.request(line);
        }
    }

    /// The request of a line that names the router's id first and, in text, that of the HTTP request behind it.
    fn request(&mut self, line: &Line) -> Option<&mut OfRequest> {
        let id = line.first("request_id")?;
        if let Some(http) = line.last("request_id").filter(|http| *http != id) {
            self.ids.insert(http.to_owned(), id.to_owned());
        }
        Some(self.requests.entry(id.to_owned()).or_default())
    }

    fn selected(&mut self, line: &Line, worker: Worker, logit: f64, is_exact: bool, cached: Option<u64>) {
        let id = line.first("request_id").map(str::to_owned);
        let candidates = self.pending.remove(&id).unwrap_or_default();
        let chosen = candidates.iter().find(|candidate| candidate.worker == worker);
        let overlap = cached.or(chosen.map(|candidate| candidate.overlap_blocks as u64));
        // In text the id of a line that has a method is that of the HTTP request around it.
        let is_http = !line.is_json && line.first("method").is_some();
        let (http_id, request_id) = if is_http { (id, None) } else { (None, id) };
        self.decisions.push(Decision {
            at_s: line.at_s,
            worker,
            logit,
            is_exact,
            request_id: request_id.map_or(Fact::NotReported, Fact::Reported),
            overlap_blocks: overlap.map_or(Fact::NotReported, Fact::Reported),
            isl_tokens: Fact::NotReported,
            isl_blocks: Fact::NotReported,
            below: line.number("host_pinned_blocks").zip(line.number("disk_blocks").or(Some(0))),
            candidates,
            is_prompt_known: false,
            ttft_ms: Fact::NotReported,
            itl_ms: Fact::NotReported,
            output_tokens: Fact::NotReported,
            first_token: Fact::NotReported,
            ended: Fact::NotReported,
            log_ended_s: Vec::new(),
            pool: None,
            role: Role::default(),
            other_part: None,
            message_cost: None,
            is_dispatched: None,
            http_id,
        });
    }

    /// A line that names request and worker right after the decision.
    fn dispatched(&mut self, line: &Line, overlap_blocks: Option<u64>, total_blocks: Option<u64>) {
        self.reports_dispatch = true;
        let is_direct = total_blocks.is_none();
        let id = if is_direct { line.last("request_id") } else { line.first("request_id") };
        let Some(id) = id.map(str::to_owned) else { return };
        if !is_direct {
            self.request(line);
        }
        let request = self.requests.entry(id.clone()).or_default();
        request.overlap_blocks = overlap_blocks.or(request.overlap_blocks);
        request.total_blocks = total_blocks.or(request.total_blocks);
        request.is_dispatched = true;
        let names =
            |decision: &Decision| decision.request_id.reported() == Some(&id) || decision.http_id.is_some();
        let Some(worker) = worker(line) else { return };
        if self
            .decisions
            .iter()
            .rev()
            .take_while(|decision| line.at_s - decision.at_s < FOLLOWS_WITHIN_S)
            .any(names)
        {
            return;
        }
        self.name(&id, worker, line.at_s, overlap_blocks);
    }

    /// Gives a decision that names no request (1.0, 1.3) the id of the line that follows it.
    fn name(&mut self, id: &str, worker: Worker, at_s: f64, overlap_blocks: Option<u64>) {
        let is_before = |decision: &&mut Decision| (0.0..FOLLOWS_WITHIN_S).contains(&(at_s - decision.at_s));
        let open = self.decisions.iter_mut().rev().take(64).filter(is_before);
        let mut open: Vec<&mut Decision> = open
            .filter(|decision| decision.request_id.reported().is_none() && decision.worker == worker)
            .filter(|decision| {
                decision.overlap_blocks.reported().is_none_or(|held| Some(*held) == overlap_blocks)
            })
            .collect();
        match open.as_mut_slice() {
            [one] if one.request_id == Fact::NotReported => one.request_id = Fact::Reported(id.to_owned()),
            several => several.iter_mut().for_each(|decision| decision.request_id = Fact::Unsure),
        }
    }

    fn finish(mut self) -> Vec<Decision> {
        for decision in &mut self.decisions {
            if let Some(http) = decision.http_id.take() {
                decision.request_id = self.ids.get(&http).cloned().map_or(Fact::Unsure, Fact::Reported);
            }
            let Some(id) = decision.request_id.reported() else {
                if decision.request_id == Fact::Unsure {
                    decision.doubt();
                }
                continue;
            };
            let Some(request) = self.requests.get(id) else { continue };
            decision.isl_tokens.or_reported(request.prompt_tokens.or(request.input_tokens));
            decision.isl_blocks.or_reported(request.total_blocks.or(request.input_blocks));
            decision.overlap_blocks.or_reported(request.overlap_blocks);
            decision.is_prompt_known = request.input_tokens.is_some();
            decision.ttft_ms.or_reported(request.ttft_ms);
            decision.itl_ms.or_reported(request.itl_ms);
            decision.output_tokens.or_reported(request.output_tokens);
            let on_worker = request.ended.iter().find(|(worker, _)| *worker == decision.worker);
            decision.log_ended_s =
                on_worker.map(|(_, at_s)| *at_s).into_iter().chain(request.answered_s).collect();
            decision.is_dispatched = if request.is_dispatched {
                Some(true)
            } else if request.is_completed && (self.reports_dispatch || request.prompt_tokens.is_none()) {
                Some(false)
            } else {
                None
            };
        }
        self.decisions
    }
}

impl Decision {
    /// Leaves unjudged what lines report of the request as a whole, where this is one choice of two: a decode choice does
    /// not look for held blocks, and tokens come from the decode worker.
    pub(crate) fn part_only(&mut self) {
        match self.role {
            Role::Aggregated => {}
            Role::Prefill => {
                self.log_ended_s.truncate(1);
                self.ttft_ms = Fact::Unsure;
                self.itl_ms = Fact::Unsure;
                self.output_tokens = Fact::Unsure;
            }
            Role::Decode => self.overlap_blocks = Fact::Unsure,
        }
    }

    /// It may be reported which request this is, so nothing that depends on it is judged.
    pub(super) fn doubt(&mut self) {
        fn doubt<T>(fact: &mut Fact<T>) {
            if fact.reported().is_none() {
                *fact = Fact::Unsure;
            }
        }
        doubt(&mut self.overlap_blocks);
        doubt(&mut self.isl_tokens);
        doubt(&mut self.isl_blocks);
        doubt(&mut self.ttft_ms);
        doubt(&mut self.itl_ms);
        doubt(&mut self.output_tokens);
        doubt(&mut self.first_token);
        doubt(&mut self.ended);
    }
}

fn worker(line: &Line) -> Option<Worker> {
    Some((line.number("worker_id")?, line.number("dp_rank").unwrap_or(0)))
}

/// A number that a pattern found.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

fn decimal(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
