//! Version 11, of release 0.2: scrapes and processes had no engine, remedies were of no engine, and rules had no finding to
//! come.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{
    CheckStatus, Counter, Evidence, Finding, Fix, Gauge, Histogram, HistogramKind, ModelFigures, PanelRef,
    Phase, ProcessRole, QueueFigures, RankFigures, Record, RuleStatus, Scrape, Severity, WorkerFigures,
};

use super::v12;

/// Numbers of the kinds of records that were different.
const SCRAPE: u32 = 34;
const FINDING: u32 = 36;
const CHECKED: u32 = 37;

/// Reads a record of one of those kinds; `None`: the record of this kind has not changed.
pub(super) fn record(kind: u32, bytes: &[u8]) -> Option<postcard::Result<(Record<'static>, &[u8])>> {
    fn read<'b, T: Deserialize<'b>>(
        bytes: &'b [u8],
        next: impl FnOnce(T) -> Record<'static>,
    ) -> postcard::Result<(Record<'static>, &'b [u8])> {
        postcard::take_from_bytes(bytes).map(|(of, rest)| (next(of), rest))
    }
    match kind {
        SCRAPE => Some(read(bytes, |scrape: ScrapeV11| Record::Scrape(Box::new(scrape.next())))),
        FINDING => Some(read(bytes, |finding: FindingV11| Record::Finding(Box::new(finding.next())))),
        CHECKED => Some(read(bytes, |rules: Vec<RuleStatusV11>| {
            Record::Checked(rules.into_iter().map(RuleStatusV11::next).collect())
        })),
        _ => None,
    }
}

#[derive(Deserialize)]
struct ScrapeV11 {
    process: String,
    role: ProcessRole,
    restarts: u32,
    instance: Option<u64>,
    is_whole: bool,
    gauges: Vec<(Gauge, f64)>,
    counters: Vec<(Counter, f64)>,
    histograms: Vec<Histogram>,
    models: Vec<ModelFigures>,
    workers: Vec<WorkerFigures>,
    ranks: Vec<RankFigures>,
    queues: Vec<QueueFigures>,
}

impl ScrapeV11 {
    fn next(self) -> Scrape {
        let Self { process, role, restarts, instance, is_whole, gauges, counters, .. } = self;
        let Self { histograms, models, workers, ranks, queues, .. } = self;
        let engine = None;
        Scrape {
            process,
            role,
            engine,
            restarts,
            instance,
            is_whole,
            gauges,
            counters,
            histograms,
            models,
            workers,
            ranks,
            queues,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct FindingV11 {
    code: Cow<'static, str>,
    severity: Severity,
    phase: Phase,
    title: Cow<'static, str>,
    cause: Cow<'static, str>,
    explanation: Cow<'static, str>,
    evidence: Vec<Evidence>,
    fix: Vec<FixV11>,
    workers: Vec<WorkerIx>,
    panel: PanelRef,
    selects_worker: bool,
    first_ms: Millis,
    last_ms: Millis,
}

impl FindingV11 {
    fn next(self) -> Finding {
        let Self { code, severity, phase, title, cause, explanation, evidence, fix, workers, .. } = self;
        let Self { panel, selects_worker, first_ms, last_ms, .. } = self;
        let fix = fix.into_iter().map(FixV11::next).collect();
        Finding {
            code,
            severity,
            phase,
            title,
            cause,
            explanation,
            evidence,
            fix,
            workers,
            panel,
            selects_worker,
            first_ms,
            last_ms,
        }
    }
}

#[derive(Deserialize)]
struct FixV11 {
    text: Cow<'static, str>,
    setting: Cow<'static, str>,
    value: Cow<'static, str>,
}

impl FixV11 {
    fn next(self) -> Fix {
        let Self { text, setting, value } = self;
        Fix { text, setting, value, engine: None }
    }
}

#[derive(Deserialize)]
pub(super) struct RuleStatusV11 {
    code: Cow<'static, str>,
    subject: Cow<'static, str>,
    status: CheckStatus,
    missing: Cow<'static, str>,
    explained_by: Cow<'static, str>,
}

impl RuleStatusV11 {
    fn next(self) -> RuleStatus {
        let Self { code, subject, status, missing, explained_by } = self;
        RuleStatus { code, subject, status, missing, explained_by, pending: None }
    }
}

/// What checks found, in a keyframe.
#[derive(Deserialize)]
pub(super) struct FindingsV11 {
    found: Vec<FindingV11>,
    checked: Vec<RuleStatusV11>,
}

impl From<FindingsV11> for v12::Findings {
    fn from(FindingsV11 { found, checked }: FindingsV11) -> Self {
        Self {
            found: found.into_iter().map(FindingV11::next).collect(),
            checked: checked.into_iter().map(RuleStatusV11::next).collect(),
        }
    }
}

/// A process, in a keyframe.
#[derive(Deserialize)]
pub(super) struct ProcessV11 {
    name: String,
    role: ProcessRole,
    first_ms: Millis,
    last_ms: Millis,
    restarts: u32,
    restarted_ms: Option<Millis>,
    instance: Option<u64>,
    gauges: Vec<(Gauge, f64)>,
    models: Vec<ModelFigures>,
    workers: Vec<WorkerFigures>,
    ranks: Vec<RankFigures>,
    bounds: Vec<(HistogramKind, Vec<f64>)>,
    first: v12::Sums,
    steps: VecDeque<(Millis, v12::Sums)>,
    older: VecDeque<(Millis, v12::Sums)>,
}

impl From<ProcessV11> for v12::Process {
    fn from(of: ProcessV11) -> Self {
        let ProcessV11 { name, role, first_ms, last_ms, restarts, restarted_ms, instance, gauges, .. } = of;
        let ProcessV11 { models, workers, ranks, bounds, first, steps, older, .. } = of;
        Self {
            name,
            role,
            engine: None,
            first_ms,
            last_ms,
            restarts,
            restarted_ms,
            instance,
            gauges,
            models,
            workers,
            ranks,
            bounds,
            first,
            steps,
            older,
        }
    }
}
