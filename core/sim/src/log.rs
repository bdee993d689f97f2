//! The logs of a pool's processes: the lines that Dynamo writes at INFO about a decision (reference §7.3), letter by letter,
//! 0.9's here and 1.6's in [`request`], and its lines about faults. Must not know why a worker was chosen, only what from.

mod request;

use std::fmt::Write as _;

use time::OffsetDateTime;

pub(super) use self::request::{LogContext, LoggedOutcome, Measured, uuid};
use super::config::WorkerSelection;
use super::metrics::frontend_name;
use super::router::SimulatedCandidate;
use super::topology::{Pool, Release};
use super::wire::{Channel, WireMessage, WireOut};
use radixscope_model::id::Millis;
use radixscope_router::{Role, RouterMode};

/// What writes the lines of decisions.
const SCHEDULER: &str = "dynamo_llm::kv_router::scheduler";
/// Time from one line of a decision to the next, in microseconds, about as in a real log.
const LINE_US: u64 = 4;

/// What a decision was made from.
pub(super) struct DecisionInput<'a> {
    pub(super) worker: u16,
    /// Workers in discovery.
    pub(super) workers: &'a [u16],
    /// By worker.
    pub(super) candidates: &'a [SimulatedCandidate],
}

/// The level of a line, as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Writes the logs.
#[derive(Debug)]
pub(super) struct Log {
    /// Whether anybody reads them.
    on: bool,
    /// Weight of the prefill term, and whether ties are resolved, which a temperature above 0 leaves to chance.
    mode: Option<(f64, bool)>,
    blocks_per_worker: u32,
    role: Role,
    /// What the router calls what its workers do.
    phase: &'static str,
    /// Name of the model.
    model: &'static str,
    /// What the router credits for a block in host memory.
    host_weight: f64,
    selection: WorkerSelection,
    line: String,
}

impl Log {
    pub(super) fn new(pool: &Pool) -> Self {
        let config = &pool.config;
        Self {
            on: config.log,
            mode: Self::mode(pool),
            blocks_per_worker: config.engine_blocks(),
            role: pool.role,
            phase: pool.phase(),
            model: pool.model.display_name,
            host_weight: config.router.host_cache_hit_weight,
            selection: config.selection,
            line: String::new(),
        }
    }

    /// The frontends of a pool begin again with other settings.
    pub(super) fn set_router(&mut self, pool: &Pool) {
        self.mode = Self::mode(pool);
        self.host_weight = pool.config.router.host_cache_hit_weight;
    }

    fn mode(pool: &Pool) -> Option<(f64, bool)> {
        let router = pool.config.router;
        let speaks = pool.release() == Release::V0_9 && router.router_mode == RouterMode::Kv;
        (pool.config.log && speaks).then_some((router.prefill_factor(), router.router_temperature == 0.0))
    }

    /// Writes `message` to the log of `process`, at `at_us` of Unix time.
    pub(super) fn write_line(
        &mut self,
        process: &str,
        at_us: u64,
        (level, target): (Level, &str),
        message: std::fmt::Arguments<'_>,
        out: WireOut<'_>,
    ) {
        if self.on {
            self.write(process, (Millis(at_us / 1_000), at_us), (level, target), message, out);
        }
    }

    /// A line that arrives at `at_ms` and carries the time `at_us`.
    fn write(
        &mut self,
        process: &str,
        (at_ms, at_us): (Millis, u64),
        (level, target): (Level, &str),
        message: std::fmt::Arguments<'_>,
        out: WireOut<'_>,
    ) {
        let level = match level {
            Level::Debug => "DEBUG",
            Level::Info => " INFO",
            Level::Warn => " WARN",
            Level::Error => "ERROR",
        };
        self.line.clear();
        // Writing to a String cannot fail.
        let _ = stamp(&mut self.line, at_us);
        let _ = write!(self.line, " {level} {target}: {message}");
        out(WireMessage { at_ms, channel: Channel::Log, name: process, payload: self.line.as_bytes() });
    }

    /// Writes a decision made at `at_us` of Unix time: a line for each worker, perhaps one about a tie, and the choice.
    pub(super) fn decided(
        &mut self,
        frontend: u8,
        at_us: u64,
        decided: &DecisionInput<'_>,
        worker_id: impl Fn(u16) -> u64,
        out: WireOut<'_>,
    ) {
        let Some((weight, breaks_ties)) = self.mode else { return };
        let process = frontend_name(frontend);
        let at_ms = Millis(at_us / 1_000);
        let blocks_per_worker = self.blocks_per_worker;
        let mut times = (0..).map(|line| at_us + line * LINE_US);
        let mut log = |message: std::fmt::Arguments<'_>| {
            let Some(at_us) = times.next() else { return };
            self.write(&process, (at_ms, at_us), (Level::Info, SCHEDULER), message, out);
        };
        let candidate = |worker: u16| decided.candidates.get(usize::from(worker)).map(|of| &of.candidate);
        let known = || decided.workers.iter().filter_map(|&worker| Some((worker, candidate(worker)?)));
        for (worker, candidate) in known() {
            log(format_args!(
                "Formula for worker_id={} dp_rank=0 with {} cached blocks: {:.3} = {weight:.1} * prefill_blocks + \
                 decode_blocks = {weight:.1} * {:.3} + {:.3}",
                worker_id(worker),
                candidate.overlap_blocks,
                candidate.cost,
                candidate.prefill_blocks,
                candidate.decode_blocks,
            ));
        }
        let least = known().map(|(_, c)| c.cost).fold(f64::INFINITY, f64::min);
        if breaks_ties && known().filter(|(_, c)| c.cost == least).count() > 1 {
            log(format_args!("Multiple workers tied with same logit, using tree size as tie-breaker"));
        }
        if let Some(chosen) = candidate(decided.worker) {
            log(format_args!(
                "Selected worker: worker_id={} dp_rank=0, logit: {:.3}, cached blocks: {}, tree size: {}, total \
                 blocks: {}",
                worker_id(decided.worker),
                chosen.cost,
                chosen.overlap_blocks,
                chosen.tree_size.unwrap_or(0),
                blocks_per_worker,
            ));
        }
    }
}

/// RFC 3339 with microseconds, as the first part of a line.
fn stamp(line: &mut String, at_us: u64) -> std::fmt::Result {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_us) * 1_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (at.date(), at.time());
    write!(
        line,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        clock.microsecond()
    )
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use radixscope_model::id::WorkerIx;
    use radixscope_router::{Formula, RouterSettings, Terms};

    /// What a decision among `candidates` at B = 16 logs.
    fn lines(router: RouterSettings, worker: u16, candidates: &[SimulatedCandidate]) -> Vec<String> {
        let config = Config { router, block_size_tokens: 16, blocks_per_worker: 1_600, ..Config::default() };
        let mut lines = Vec::new();
        let workers: Vec<u16> = (0..candidates.len() as u16).collect();
        let decided = DecisionInput { worker, workers: &workers, candidates };
        Log::new(&config.pools()[0]).decided(
            0,
            1_795_198_427_080_747,
            &decided,
            |w| 7668682361323730182 + u64::from(w),
            &mut |m| {
                lines.push(String::from_utf8(m.payload.to_vec()).expect("text"));
            },
        );
        lines
    }

    /// A worker with so many blocks to prefill and to decode.
    fn weighed(
        overlap_blocks: u32,
        tree_size: u64,
        (prefill_blocks, decode_blocks): (f64, f64),
    ) -> SimulatedCandidate {
        let terms =
            Terms { prefill_blocks, decode_blocks, cost: prefill_blocks + decode_blocks, ..Terms::default() };
        let overlap = radixscope_router::Overlap::device(overlap_blocks);
        let candidate = terms.candidate(WorkerIx(0), overlap, Some(tree_size));
        SimulatedCandidate { candidate, prefill_tokens: 0, decode_blocks: 0, new_blocks: 0 }
    }

    const KV: RouterSettings = RouterSettings::new(Formula::A);

    #[test]
    fn a_decision_reads_as_in_a_real_log() {
        let tied = [weighed(0, 0, (241.125, 241.0)); 2];
        assert_eq!(
            lines(KV, 0, &tied),
            [
                "2026-11-20T18:13:47.080747Z  INFO dynamo_llm::kv_router::scheduler: Formula for worker_id=7668682361323730182 dp_rank=0 with 0 cached blocks: 482.125 = 1.0 * prefill_blocks + decode_blocks = 1.0 * 241.125 + 241.000",
                "2026-11-20T18:13:47.080751Z  INFO dynamo_llm::kv_router::scheduler: Formula for worker_id=7668682361323730183 dp_rank=0 with 0 cached blocks: 482.125 = 1.0 * prefill_blocks + decode_blocks = 1.0 * 241.125 + 241.000",
                "2026-11-20T18:13:47.080755Z  INFO dynamo_llm::kv_router::scheduler: Multiple workers tied with same logit, using tree size as tie-breaker",
                "2026-11-20T18:13:47.080759Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: worker_id=7668682361323730182 dp_rank=0, logit: 482.125, cached blocks: 0, tree size: 0, total blocks: 1600",
            ]
        );
    }

    #[test]
    fn overlap_and_tree_are_those_of_the_chosen_worker() {
        let written = lines(KV, 0, &[weighed(243, 1_600, (12.0625, 631.0))]);
        assert!(written[0].ends_with(
            "with 243 cached blocks: 643.062 = 1.0 * prefill_blocks + decode_blocks = 1.0 * 12.062 + 631.000"
        ));
        assert!(
            written[1].ends_with("logit: 643.062, cached blocks: 243, tree size: 1600, total blocks: 1600")
        );
    }

    #[test]
    fn only_the_cost_router_logs_and_only_the_cold_choice_speaks_of_ties() {
        let tied = [weighed(0, 0, (2.625, 2.0)); 2];
        let hot = RouterSettings {
            overlap_score_weight: 0.25,
            router_temperature: 0.5,
            ..RouterSettings::new(Formula::A)
        };
        let written = lines(hot, 1, &tied);
        assert_eq!(written.len(), 3);
        assert!(written[0].contains("= 0.2 * prefill_blocks"), "one decimal, half to even: {}", written[0]);
        assert_eq!(lines(RouterSettings::round_robin(), 1, &[]), [""; 0]);
    }
}
