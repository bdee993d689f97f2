//! A cluster in a few figures, as `GET /api/v1/summary` gives it and `radixscope fleet` reads it: the figures of the overview, each with
//! what it is of, or why it is unknown.

use radixscope_insight::latency::{self, Quantity, WINDOW_MS};
use radixscope_insight::reuse::{Funnel, Step};
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_model::id::Millis;
use radixscope_model::number_format::plural;
use radixscope_model::range::{Range, TargetComparison};
use radixscope_model::record::{Finding, LinkState, Severity};
use radixscope_state::cluster::Cluster;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::panel::findings;
use crate::{FindingFilter, Summary};

/// What every figure of a window is taken over, seconds.
const WINDOW_S: u64 = WINDOW_MS / 1_000;

/// A cluster in a few figures. `why` of a figure is `None` where the figure is known.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClusterSummary {
    /// Version of the Radixscope that reports.
    pub version: String,
    /// Its clock.
    pub at_ms: Millis,
    /// Whether it replays a recording, whose clock stands still.
    pub is_replay: bool,
    /// The earliest moment that its page can go back to; `None`: it keeps no history.
    pub history_from_ms: Option<Millis>,
    /// Workers that are there.
    pub workers: WorkerCounts,
    /// What is listened to.
    pub sources: SourceCounts,
    /// KV hit rate over all pools.
    pub hit_rate: HitRate,
    /// 95th percentile of the time to first token.
    pub ttft: TtftFigure,
    /// Requests that ended.
    pub requests: RequestRate,
    /// Where most of the reuse of prompts is lost.
    pub reuse: ReuseLoss,
    /// What is wrong.
    pub findings: FindingCounts,
}

/// Workers that are there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// All of them.
    pub present: u32,
    /// Of which every cached block is known.
    pub complete: u32,
    /// Of which blocks are known to be missing.
    pub incomplete: u32,
}

/// Sources, outputs not included.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SourceCounts {
    /// All of them.
    pub all: u32,
    /// Those that are connected and current, or have ended as a recording does.
    pub up: u32,
}

/// KV hit rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HitRate {
    /// Cached ÷ prompt blocks, 0 … 1.
    pub share: Option<f64>,
    /// Over so many decisions.
    pub decisions: u64,
    /// Of so many seconds.
    pub window_s: u64,
    /// Numerator and denominator in words.
    pub of: String,
    /// Why `share` is unknown.
    pub why: Option<String>,
}

/// TTFT p95 and its target.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TtftFigure {
    /// A range where only the bucket of a histogram is known.
    pub p95_ms: Option<Range>,
    /// The target of the checks (`--slo-ttft-ms`).
    pub target_ms: f64,
    /// How the one stands to the other.
    pub standing: TargetComparison,
    /// Samples known.
    pub samples: u64,
    /// Samples that there were.
    pub of: u64,
    /// Of so many seconds.
    pub window_s: u64,
    /// Where it is known from.
    pub source: String,
    /// Why `p95_ms` or `standing` is unknown.
    pub why: Option<String>,
}

/// Requests that ended per second.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RequestRate {
    /// The mean of the window.
    pub per_s: Option<f64>,
    /// Of so many seconds.
    pub window_s: u64,
    /// Where it is known from.
    pub source: String,
    /// Why `per_s` is unknown.
    pub why: Option<String>,
}

/// Where most of the reuse of prompts is lost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReuseLoss {
    /// The cause that costs most.
    pub worst: Option<WorstLoss>,
    /// Over so many decisions whose prompts are visible.
    pub decisions: u32,
    /// Of so many seconds.
    pub window_s: u64,
    /// Why `worst` is unknown; `None` also where nothing was lost.
    pub why: Option<String>,
}

/// A cause of lost reuse.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstLoss {
    /// Its name in JSON and in metrics.
    pub cause: String,
    /// The same in words.
    pub text: String,
    /// Of the prompts' tokens, 0 … 1.
    pub share: f64,
    /// Tokens that had to be computed for it.
    pub tokens: u64,
}

/// Active findings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FindingCounts {
    /// Critical ones.
    pub critical: u64,
    /// Warnings.
    pub warning: u64,
    /// Notes.
    pub info: u64,
    /// What has to be mended first.
    pub worst: Option<WorstFinding>,
    /// How much was checked, in words.
    pub checked: String,
    /// Whether every check ran and found nothing.
    pub is_good: bool,
}

/// A finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstFinding {
    /// Name of its rule.
    pub code: String,
    /// How bad the worst of its incident is.
    #[serde(deserialize_with = "severity")]
    pub severity: Severity,
    /// What is wrong, in words.
    pub title: String,
    /// Since when.
    pub since_ms: Millis,
}

/// Severities are names in JSON.
fn severity<'de, D: Deserializer<'de>>(from: D) -> Result<Severity, D::Error> {
    let name = String::deserialize(from)?;
    let found = findings::SEVERITIES.iter().find(|(severity, ..)| severity.as_str() == name);
    found.map(|(severity, ..)| *severity).ok_or_else(|| de::Error::custom("unknown severity"))
}

impl ClusterSummary {
    /// Of `cluster` at `now`. The page of this state can go back to `history_from_ms`.
    pub fn of(cluster: &Cluster, now: Millis, is_replay: bool, history_from_ms: Option<Millis>) -> Self {
        let shown = ViewContext::new(cluster, ShownPools::of(cluster, &PoolQuery::default()));
        let coverage = shown.coverage();
        let sources = || cluster.sources().iter().filter(|source| !source.kind.is_output());
        let up = sources().filter(|source| matches!(source.state, LinkState::Live | LinkState::Ended));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_ms: now,
            is_replay,
            history_from_ms,
            workers: WorkerCounts {
                present: coverage.workers,
                complete: coverage.complete,
                incomplete: coverage.incomplete,
            },
            sources: SourceCounts { all: sources().count() as u32, up: up.count() as u32 },
            hit_rate: HitRate::of(&shown, now),
            ttft: TtftFigure::of(cluster, now, cluster.targets().ttft_ms),
            requests: RequestRate::of(cluster, now),
            reuse: ReuseLoss::of(cluster, now),
            findings: FindingCounts::of(cluster),
        }
    }
}

impl HitRate {
    fn of(shown: &ViewContext<'_>, now: Millis) -> Self {
        let sums = shown.recent_sums(now, WINDOW_MS);
        let share = sums.hit_rate();
        let why = match share {
            Some(_) => None,
            None if sums.count == 0 => Some(format!("no decision in {WINDOW_S} s")),
            None if sums.apart.is_empty() => Some("prompts not visible".to_owned()),
            None => Some(format!("pools differ in block size: {}", sums.rate_text())),
        };
        let of = sums.explain(&format!("in the last {WINDOW_S} s"));
        Self { share, decisions: sums.count, window_s: WINDOW_S, of, why }
    }
}

impl TtftFigure {
    fn of(cluster: &Cluster, now: Millis, target_ms: f64) -> Self {
        let all = latency::latest(cluster, Quantity::Ttft, now);
        let unknown = |why: String| Self {
            p95_ms: None,
            target_ms,
            standing: TargetComparison::Unknown,
            samples: 0,
            of: 0,
            window_s: WINDOW_S,
            source: String::new(),
            why: Some(why),
        };
        let Some(times) = all.iter().find(|times| times.samples > 0) else {
            return unknown(match all.is_empty() {
                true => "not reported: set --prometheus or --logs".to_owned(),
                false => format!("no request got a first token in {WINDOW_S} s"),
            });
        };
        Self {
            p95_ms: times.quantiles.map(|[_, p95, _]| p95),
            target_ms,
            standing: times.standing(target_ms),
            samples: times.samples,
            of: times.of,
            window_s: WINDOW_S,
            source: times.source.to_text(),
            why: times.why_unknown(Quantity::Ttft, target_ms),
        }
    }
}

impl RequestRate {
    fn of(cluster: &Cluster, now: Millis) -> Self {
        let found = latency::counts(cluster, now).throughput;
        Self {
            per_s: found.as_ref().map(|found| found.requests_per_s),
            window_s: WINDOW_S,
            source: found.as_ref().map_or(String::new(), |found| found.source.to_owned()),
            why: found.is_none().then(|| "not reported: set --prometheus or --logs".to_owned()),
        }
    }
}

impl ReuseLoss {
    fn of(cluster: &Cluster, now: Millis) -> Self {
        let decisions = cluster.decisions().newest_first();
        let recent = || decisions.take_while(|decided| now.since(decided.at_ms) <= WINDOW_MS);
        let funnel = Funnel::of(recent());
        let all = funnel.steps[Step::Prompt as usize];
        let worst = funnel.worst().filter(|_| all > 0).map(|loss| WorstLoss {
            cause: loss.cause.as_str().to_owned(),
            text: loss.cause.label().to_owned(),
            share: loss.tokens as f64 / all as f64,
            tokens: loss.tokens,
        });
        let why = match (funnel.decisions, funnel.left_out.iter().max_by_key(|(_, count)| *count)) {
            (0, Some((why, count))) => {
                Some(format!("{} that {}", plural((*count).into(), "decision", "decisions"), why.label()))
            }
            (0, None) => Some(format!("no decision in {WINDOW_S} s")),
            _ => None,
        };
        Self { worst, decisions: funnel.decisions, window_s: WINDOW_S, why }
    }
}

impl FindingCounts {
    fn of(cluster: &Cluster) -> Self {
        let active = findings::active(cluster, None);
        let [critical, warning, info] = findings::counts(&active);
        let summary = Summary::of(cluster);
        let incidents = FindingFilter::default().incidents(cluster);
        let checked = match summary.rules {
            0 => "nothing was checked yet".to_owned(),
            _ => summary.coverage(),
        };
        Self {
            critical,
            warning,
            info,
            worst: incidents.first().map(|of| WorstFinding::of(of.cause, of.severity())),
            checked,
            is_good: summary.rules > 0 && summary.is_good(),
        }
    }
}

impl WorstFinding {
    fn of(finding: &Finding, severity: Severity) -> Self {
        Self {
            code: finding.code.to_string(),
            severity,
            title: finding.title.to_string(),
            since_ms: finding.first_ms,
        }
    }
}
