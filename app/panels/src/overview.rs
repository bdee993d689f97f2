//! The overview's first lines: is it fast, does routing help, and what is wrong. Five figures, each a link to the panel
//! that explains it, and the worst finding with its fix.

use radixscope_export::finding_ticket::{setting_line, severity_mark, severity_word, summary};
use radixscope_export::panel::latency::NO_SAMPLE;
use radixscope_export::{FindingFilter, Summary, pending_text};
use radixscope_icicle::palette::label;
use radixscope_insight::latency::{
    self, ENABLE_FRONTEND, MIN_SAMPLES, Quantity, Side, TimingSource, WINDOW_MS,
};
use radixscope_insight::queues::Queues;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format;
use radixscope_model::range::{Range, TargetComparison};
use radixscope_model::record::{Finding, Phase};
use radixscope_state::cluster::Cluster;

use crate::findings::with_labels;
use crate::format::{self, UNKNOWN};
use crate::round_robin::RoundRobinRun;
use crate::time_zone::TimeZone;
use crate::url::Panel;

const NO_METRICS: &str = "no data: set --prometheus";
/// How far back it is looked for since when a figure has been above its target: what lasts longer is a finding.
const ABOVE_MS: u64 = 300_000;

/// A figure with what it is held against.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tile {
    /// The figure with its unit.
    pub value: String,
    /// How it stands to its target, for the style sheet.
    pub state: &'static str,
    /// The same as text, or what else is to be known beside it.
    pub status_text: String,
    /// What belongs to the figure and is no part of it.
    pub more: String,
    /// What would stand there, where that is not known yet.
    pub hint: &'static str,
    /// How long it has been above its target, milliseconds.
    pub above_ms: Option<u64>,
    /// Window, source and denominator.
    pub title: String,
}

impl Tile {
    /// What stands below the figure.
    pub fn more_text(&self) -> &str {
        if self.more.is_empty() { self.hint } else { &self.more }
    }
}

/// Where a figure stands, its name on screen and for tests, and the panel that explains it.
pub const TILES: [(usize, &str, &str, Panel); 5] = [
    (0, "TTFT p95", "summary-ttft", Panel::Latency),
    (1, "ITL p95", "summary-itl", Panel::Latency),
    (2, "KV hit rate", "summary-hit-rate", Panel::Decisions),
    (3, "Throughput", "summary-throughput", Panel::Latency),
    (4, "In flight", "summary-in-flight", Panel::Latency),
];

/// What the figures depend on beside the state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TileSettings {
    /// Targets of TTFT and ITL, milliseconds.
    pub targets_ms: [f64; 2],
    /// Whether scraped metrics are current.
    pub is_current: bool,
    /// The simulation of round-robin, if there was one.
    pub round_robin: Option<RoundRobinRun>,
    /// The reader's.
    pub zone: TimeZone,
}

/// The figures at `now`.
pub fn tiles(shown: &ViewContext<'_>, now: Millis, settings: &TileSettings) -> [Tile; 5] {
    let [ttft, itl] = settings.targets_ms;
    [
        latency_tile(shown, Quantity::Ttft, ttft, now, settings.is_current),
        latency_tile(shown, Quantity::Tpot, itl, now, settings.is_current),
        hit_rate(shown, now, settings),
        throughput(shown, now),
        in_flight(shown, now),
    ]
}

fn latency_tile(
    shown: &ViewContext<'_>,
    quantity: Quantity,
    target: f64,
    now: Millis,
    is_current: bool,
) -> Tile {
    let all = latency::latest(shown, quantity, now);
    let found = all.iter().find(|times| times.samples > 0);
    let Some((times, [_, p95, _])) = found.and_then(|times| Some((times, times.quantiles?))) else {
        let (status_text, title) = match all.is_empty() {
            true => (
                NO_METRICS,
                format!(
                    "Not reported. Scrape a frontend's metrics: {ENABLE_FRONTEND}, or read a frontend's log: --logs FILE (Dynamo ≥ 1.5)"
                ),
            ),
            false => (NO_SAMPLE, "No request ended in the last 60 s".to_owned()),
        };
        return Tile {
            value: UNKNOWN.to_owned(),
            status_text: status_text.to_owned(),
            title,
            ..Tile::default()
        };
    };
    let target_text = quantity.to_text(target);
    let comparison = if is_current { times.standing(target) } else { TargetComparison::Unknown };
    let status_text = match comparison {
        TargetComparison::Within => format!("✓ within target {target_text}"),
        TargetComparison::Above => format!("◆ above target {target_text}"),
        TargetComparison::Unknown if !is_current => "not current".to_owned(),
        TargetComparison::Unknown if times.samples < MIN_SAMPLES => {
            format!("{} of {MIN_SAMPLES} samples", times.samples)
        }
        TargetComparison::Unknown => format!("target {target_text} in range"),
    };
    let why = times.why_unknown(quantity, target).map_or(String::new(), |why| format!(". {why}"));
    let above_ms = match comparison {
        TargetComparison::Above => above_since(shown, quantity, target, now).map(|at| now.since(at)),
        TargetComparison::Within | TargetComparison::Unknown => None,
    };
    let title = format!(
        "95th percentile over the last 60 s, all pools: {}{}",
        latency::source_text(&all, quantity).trim_end_matches('.'),
        why
    );
    let (value, state) = (quantity.range_text(&p95), comparison.as_str());
    // A histogram has all samples: its range says enough.
    let is_exact = !matches!(times.source, TimingSource::Histograms { .. });
    let more = if is_exact { times.share_text() } else { String::new() };
    Tile { value, state, status_text, more, above_ms, title, ..Tile::default() }
}

/// Since when the 95th percentile has been above its target without a break, as far as [`ABOVE_MS`] reach.
fn above_since(shown: &ViewContext<'_>, quantity: Quantity, target: f64, now: Millis) -> Option<Millis> {
    let from = Millis(now.0.saturating_sub(ABOVE_MS));
    let points: Vec<_> =
        latency::trend(shown, quantity, Side::Frontend, (from, now), now)?.points().collect();
    let is_above = |p95: Option<Range>| p95.is_some_and(|p95| p95.against(target) == TargetComparison::Above);
    points.into_iter().rev().take_while(|(_, p95)| is_above(*p95)).last().map(|(at, _)| at)
}

fn hit_rate(shown: &ViewContext<'_>, now: Millis, settings: &TileSettings) -> Tile {
    let sums = shown.recent_sums(now, WINDOW_MS);
    let mut title = sums.explain("in the last 60 s");
    let status_text = if sums.count == 0 {
        "no decision in 60 s".to_owned()
    } else if sums.prompts.is_none_or(|(prompts, ..)| prompts == 0) && sums.apart.is_empty() {
        "prompts not visible".to_owned()
    } else {
        format::plural(sums.count, "decision", "decisions")
    };
    let (more, hint) = match &settings.round_robin {
        Some(run) => {
            title.push_str(&round_robin_title(run, settings.zone));
            (format!("round-robin ≈ {}", format::tenths(run.hit_rate)), "")
        }
        None => {
            title.push_str(
                ". round-robin not simulated yet: Counterfactual simulates it with the recorded requests",
            );
            (String::new(), "round-robin –")
        }
    };
    Tile { value: sums.rate_text(), status_text, more, hint, title, ..Tile::default() }
}

/// What the simulated figure rests on.
fn round_robin_title(run: &RoundRobinRun, zone: TimeZone) -> String {
    format!(
        ". Round-robin, simulated at {} with {}: {} of prompt tokens found in the engines' caches, {} under the recorded setting",
        zone.time_of_day(run.at_ms),
        format::plural(run.requests, "recorded request", "recorded requests"),
        format::tenths(run.hit_rate),
        format::tenths(run.recorded_hit_rate),
    )
}

fn throughput(shown: &ViewContext<'_>, now: Millis) -> Tile {
    let Some(found) = latency::counts(shown, now).throughput else {
        let title =
            format!("Not reported. {ENABLE_FRONTEND}, or a log that reports when requests end: --logs FILE");
        return Tile {
            value: UNKNOWN.to_owned(),
            status_text: NO_METRICS.to_owned(),
            title,
            ..Tile::default()
        };
    };
    let tokens = found.output_tokens_per_s.map_or(UNKNOWN.to_owned(), number_format::digits);
    let title = format!(
        "Requests that ended and output tokens per second, mean of the last 60 s, all pools, {}",
        found.source
    );
    let value = format!("{} req/s", number_format::digits(found.requests_per_s));
    Tile { value, status_text: format!("{tokens} tokens/s"), title, ..Tile::default() }
}

fn in_flight(shown: &ViewContext<'_>, now: Millis) -> Tile {
    let known = shown.worker_list().filter_map(|ix| Some((ix, shown.worker(ix)?.in_flight.now()?)));
    let known: Vec<(WorkerIx, u32)> = known.collect();
    let Some(&most) = known.iter().max_by_key(|(_, requests)| *requests) else {
        if shown.has_no_router() {
            let title = "Engines report no single requests, and there is no router. How many they run is in their own metrics (Workers)";
            let status_text = "no data: no router".to_owned();
            return Tile {
                value: UNKNOWN.to_owned(),
                status_text,
                title: title.to_owned(),
                ..Tile::default()
            };
        }
        let title = "Not reported: when requests begin and end on a worker. Known from active_sequences_events (routers with --router-replica-sync), or from a frontend's log: --logs FILE (Dynamo ≥ 1.5)";
        let status_text = "no data: set --logs".to_owned();
        return Tile { value: UNKNOWN.to_owned(), status_text, title: title.to_owned(), ..Tile::default() };
    };
    let sum = known.iter().map(|(_, requests)| u64::from(*requests)).sum();
    let queued = Queues::of(shown, shown.worker_list(), now);
    let title = format!(
        "Tracked from decision to end, sum over {}; most loaded: {} with {}. {}: {}. The table of workers has each worker's",
        format::plural(known.len() as u64, "worker", "workers"),
        label(most.0),
        most.1,
        queued.to_text(),
        queued.explain(),
    );
    let status_text = format!("max {} on {}", most.1, label(most.0));
    Tile { value: format::count(sum), status_text, more: queued.to_text(), title, ..Tile::default() }
}

/// What the line below the figures says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StatusLine {
    /// How bad it is, for the style sheet.
    pub level: &'static str,
    /// The worst finding, or what was checked.
    pub text: String,
    /// Since when that is so; empty: nothing is found.
    pub since: String,
    /// The first setting to change, ready to be copied; empty: none.
    pub setting: String,
    /// Why.
    pub fix: String,
    /// The other findings.
    pub more: String,
    /// What its link is called.
    pub link: &'static str,
    /// Whether it is about what was checked, and not about a finding.
    pub is_check: bool,
}

/// So many findings are named.
const NAMED: usize = 3;

impl StatusLine {
    /// The worst findings in the order that all of the page has; that there are none, where something was checked. `is_old`: what was
    /// checked when data came is not known to be so now.
    pub fn of(cluster: &Cluster, tiles: &[Tile], is_old: bool, zone: TimeZone) -> Self {
        let held = FindingFilter::default().of(cluster);
        let mut line = match held.split_first() {
            Some((worst, others)) => of_findings(cluster, worst, others, zone),
            None => no_finding(cluster, tiles),
        };
        if line.is_check && is_old {
            line.level = "info";
            line.text = format!("Last check: {}", line.text.trim_start_matches("✓ "));
        }
        line
    }

    /// What the setting to copy says of itself.
    pub fn setting_title(&self) -> String {
        format!("{} {}", self.fix, self.setting)
    }
}

fn of_findings(cluster: &Cluster, worst: &Finding, others: &[&Finding], zone: TimeZone) -> StatusLine {
    let note = |finding: &Finding| {
        // Its figures are of then, and others may stand above already.
        let until = match finding.phase {
            Phase::Recheck => format!(", until {}", zone.time_of_day(finding.last_ms)),
            Phase::Warn | Phase::Cleared => String::new(),
        };
        let (mark, word) = (severity_mark(finding.severity), severity_word(finding.severity));
        format!("{mark} {word}: {}{until}", with_labels(cluster, finding, &finding.title))
    };
    let mut line = StatusLine {
        level: ["info", "warn", "bad"][worst.severity as usize],
        text: note(worst),
        since: format!("since {}", zone.time_of_day(worst.first_ms)),
        link: "Open findings",
        ..StatusLine::default()
    };
    // The setting itself is what is copied; a fix without one is in the panel.
    if let Some(fix) = worst.fix.iter().find(|fix| !setting_line(fix).is_empty()) {
        line.setting = setting_line(fix);
        line.fix = fix.text.to_string();
    }
    for other in others.iter().take(NAMED - 1) {
        line.more.push_str(&note(other));
        line.more.push_str("   ");
    }
    if others.len() >= NAMED {
        line.more.push_str(&format!("and {} more", others.len() + 1 - NAMED));
    }
    line
}

/// Good only where every check ran, nothing is to come, and no figure is above its target.
fn no_finding(cluster: &Cluster, tiles: &[Tile]) -> StatusLine {
    let text = summary(cluster);
    let summary = Summary::of(cluster);
    if summary.rules == 0 {
        return StatusLine { text, link: "Open findings", ..StatusLine::default() };
    }
    let link = if summary.no_data == 0 { "Open findings" } else { "What is missing" };
    let line = StatusLine { link, is_check: true, ..StatusLine::default() };
    match to_come(&summary, cluster.now_ms(), tiles) {
        Some(text) => {
            StatusLine { level: "warn", text: format!("◆ {text}"), more: summary.coverage(), ..line }
        }
        None if summary.is_good() => StatusLine { level: "good", text: format!("✓ {text}"), ..line },
        None => StatusLine { level: "info", text, ..line },
    }
}

/// What will be a finding if it lasts, or else a figure above its target: nothing is found, and not all is well.
pub(crate) fn to_come(summary: &Summary, now: Millis, tiles: &[Tile]) -> Option<String> {
    if let Some(first) = summary.pending.first() {
        return Some(pending_text(first, now));
    }
    let above = tiles.iter().zip(&TILES).find_map(|(tile, (_, name, ..))| Some((name, tile.above_ms?)));
    above.map(|(name, ms)| format!("{name} above target for {}", format::age(ms)))
}
