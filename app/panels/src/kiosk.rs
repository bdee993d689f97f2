//! The kiosk: what a screen on a wall says to those who stand before it.

use radixscope_export::finding_ticket::{severity_mark, severity_word};
use radixscope_export::panel::decisions::NO_DECISION;
use radixscope_export::{FindingFilter, Summary};
use radixscope_icicle::palette::label;
use radixscope_insight::latency;
use radixscope_insight::round_robin::RoundRobin;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::number_format;
use radixscope_state::cluster::DecisionEntry;

use crate::findings::with_labels;
use crate::format::{self, UNKNOWN};
use crate::overview::{Tile, to_come};
use crate::time_zone::TimeZone;

/// So many turns a pool stays, where there are several: a reason of it and the next.
const TURNS_PER_POOL: usize = 2;

/// The overview's figures by their place there, as far as there is room for them; each with its name for tests.
pub const FIGURES: [(usize, &str); 4] =
    [(0, "kiosk-ttft"), (1, "kiosk-itl"), (2, "kiosk-hit-rate"), (4, "kiosk-in-flight")];

/// Where several pools are shown, the tree and the latest decision are of one after the other.
pub fn pool_at(shown: &ViewContext<'_>, turn: usize) -> Option<PoolIx> {
    let mut pools = shown.pool_list();
    pools.retain(|&pool| shown.cluster.tree(pool).totals().nodes > 0);
    pools.get((turn / TURNS_PER_POOL) % pools.len().max(1)).copied()
}

/// The pool that is shown and its model; of several how many there are.
pub fn pool_label(shown: &ViewContext<'_>) -> String {
    let pools = shown.pool_list().len();
    if pools > 1 && shown.only.is_none() {
        return format!(
            "{pools} pools, {}",
            format::plural(shown.workers().len() as u64, "worker", "workers")
        );
    }
    let name = shown.cluster.pool(shown.pool).map(|pool| pool.name());
    let models = Some(shown.models_in(shown.pool).join(", ")).filter(|models| !models.is_empty());
    [name, models].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The latest decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatestDecision {
    /// The chosen worker.
    pub worker: WorkerIx,
    /// Why it was chosen.
    pub why: String,
    /// What round-robin would have done, where that is known.
    pub instead: Option<String>,
    /// When it was decided, and for what prompt.
    pub at: String,
}

impl LatestDecision {
    /// In the pool whose tree is drawn.
    pub fn of(shown: &ViewContext<'_>, zone: TimeZone) -> Option<Self> {
        let mut newest = shown.decisions().newest_first().filter(|decided| decided.pool == shown.pool);
        newest.next().map(|decided| Self::of_entry(shown, decided, zone))
    }

    fn of_entry(shown: &ViewContext<'_>, decided: &DecisionEntry, zone: TimeZone) -> Self {
        let blocks = |isl| format!(", a prompt of {}", format::plural(isl, "block", "blocks"));
        let prompt = decided.decision.isl_blocks.map_or(String::new(), blocks);
        Self {
            worker: decided.decision.worker,
            why: decided.why(label),
            instead: RoundRobin::of(shown.cluster, decided).ok().map(|found| found.sentence(label)),
            at: format!("at {}{prompt}", zone.time_of_day(decided.decided_ms())),
        }
    }
}

/// What stands there before the first decision.
pub fn no_decision(shown: &ViewContext<'_>) -> String {
    shown.decisions_hint().map_or(NO_DECISION.to_owned(), |hint| hint.to_string())
}

/// The worst finding; where there is none, how much was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorstFinding {
    /// How bad it is, for the style sheet.
    pub class: &'static str,
    /// The same as mark and word.
    pub head: String,
    /// How many there are, or how much was checked.
    pub more: String,
    /// What it is.
    pub text: String,
}

impl WorstFinding {
    /// With the overview's figures, one of which may be above its target.
    pub fn of(shown: &ViewContext<'_>, tiles: &[Tile]) -> Self {
        let found = FindingFilter::default().of(shown);
        if let Some(worst) = found.first() {
            return Self {
                class: worst.severity.as_str(),
                head: format!("{} {}", severity_mark(worst.severity), severity_word(worst.severity)),
                more: if found.len() > 1 { format!("1 of {} findings", found.len()) } else { String::new() },
                text: with_labels(shown, worst, &worst.title),
            };
        }
        let summary = Summary::of(shown);
        let (class, head, text) = match to_come(&summary, shown.now_ms(), tiles) {
            Some(text) => ("warning", "◆ No finding yet", text),
            None if summary.rules == 0 => ("", "Findings", "Nothing was checked yet".to_owned()),
            None => ("", "Findings", "No findings".to_owned()),
        };
        Self { class, head: head.to_owned(), more: summary.coverage(), text }
    }
}

/// Figures of the present: for tests, what is looked up.
pub type KioskFigure = (&'static str, fn(&ViewContext<'_>, Millis) -> FigureText);

/// What the cluster holds and does, beside what requests see.
pub const NOW: [KioskFigure; 3] =
    [("kiosk-fullest", fullest), ("kiosk-throughput", throughput), ("kiosk-shared", shared)];

/// A figure and what it is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FigureText {
    /// The figure.
    pub value: String,
    /// What it is of.
    pub of: String,
}

impl FigureText {
    fn unknown(of: &str) -> Self {
        Self { value: UNKNOWN.to_owned(), of: of.to_owned() }
    }
}

fn fullest(shown: &ViewContext<'_>, _: Millis) -> FigureText {
    let of = |worker: WorkerIx| {
        let capacity = shown.capacity(worker).filter(|capacity| capacity.value > 0)?.value;
        let held =
            shown.blocks(worker).filter(|_| shown.worker(worker).is_some_and(|w| w.departure.is_none()))?;
        Some((worker, held as f64 / capacity as f64))
    };
    let fullest = shown.worker_list().filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1));
    match fullest {
        Some((worker, share)) => FigureText {
            value: format::percent(share),
            of: format!("of {}'s KV blocks are cached: the fullest worker", label(worker)),
        },
        None => FigureText::unknown("of the fullest worker's KV blocks are cached"),
    }
}

fn throughput(shown: &ViewContext<'_>, now: Millis) -> FigureText {
    let Some(all) = latency::counts(shown, now).throughput else {
        return FigureText::unknown("requests/s, last 60 s");
    };
    let tokens = all.output_tokens_per_s.map(|n| format!(", {} output tokens/s", number_format::digits(n)));
    FigureText {
        value: number_format::digits(all.requests_per_s).to_string(),
        of: format!("requests/s{}, last 60 s", tokens.unwrap_or_default()),
    }
}

fn shared(shown: &ViewContext<'_>, _: Millis) -> FigureText {
    const OF: &str = "of distinct blocks cached on two workers or more";
    let totals = shown.tree().totals();
    if totals.nodes == 0 || shown.trust().withheld().is_some() {
        return FigureText::unknown(OF);
    }
    FigureText { value: format::percent(totals.shared as f64 / totals.nodes as f64), of: OF.to_owned() }
}
