//! The overview's first lines: is it fast, does routing help, and what is wrong. Five figures, each a link to the panel
//! that explains it, and the worst finding with its fix. All keep their place and their height, whatever they say.

use leptos::prelude::*;
use radixscope_export::finding_ticket::{setting_line, severity_word, summary};
use radixscope_export::panel::latency::NO_SAMPLE;
use radixscope_export::{FindingFilter, Summary, pending_text};
use radixscope_icicle::palette::label;
use radixscope_insight::latency::{
    self, ENABLE_FRONTEND, MIN_SAMPLES, Quantity, Side, TimingSource, WINDOW_MS,
};
use radixscope_insight::queues::Queues;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format;
use radixscope_model::range::{Range, TargetComparison};
use radixscope_model::record::{Finding, Phase};
use radixscope_state::cluster::Cluster;

use super::chip::with_labels;
use super::clipboard::CopyButton;
use super::figure::severity_mark;
use super::latency::goals::{LatencyTarget, TPOT, TTFT};
use super::nav;
use crate::format::{self, UNKNOWN};
use crate::store::{Feed, RoundRobinRun, Store, ViewContext, time_of_day};
use crate::url::Panel;
use crate::view::control::view;

const NO_METRICS: &str = "no data: set --prometheus";
/// How far back it is looked for since when a figure has been above its target: what lasts longer is a finding.
const ABOVE_MS: u64 = 300_000;

/// A figure with what it is held against.
#[derive(Clone, PartialEq, Default)]
pub(super) struct Tile {
    pub(super) value: String,
    /// How it stands to its target, for the style sheet.
    pub(super) state: &'static str,
    /// The same as text, or what else is to be known beside it.
    pub(super) status_text: String,
    /// What belongs to the figure and is no part of it.
    pub(super) more: String,
    /// What would stand there, where that is not known yet.
    hint: &'static str,
    /// How long it has been above its target, milliseconds.
    above_ms: Option<u64>,
    /// Window, source and denominator.
    title: String,
}

/// Where a figure stands, its name on screen and for tests, and the panel that explains it.
pub(super) const TILES: [(usize, &str, &str, Panel); 5] = [
    (0, "TTFT p95", "summary-ttft", Panel::Latency),
    (1, "ITL p95", "summary-itl", Panel::Latency),
    (2, "KV hit rate", "summary-hit-rate", Panel::Decisions),
    (3, "Throughput", "summary-throughput", Panel::Latency),
    (4, "In flight", "summary-in-flight", Panel::Latency),
];

/// The figures, once a second.
pub(super) fn tiles(store: Store) -> Memo<[Tile; 5]> {
    let second = store.second();
    let goals = [LatencyTarget::of(store, TTFT), LatencyTarget::of(store, TPOT)].map(|goal| goal.ms);
    Memo::new(move |_| {
        let (now, goals) = (second.get(), goals.map(|ms| ms.get()));
        let is_current = store.as_of(Feed::Metrics).is_none();
        store.pools.track();
        let round_robin = store.simulated_round_robin();
        match store.ready() {
            true => store.peek(|shown| look(shown, now, goals, is_current, round_robin)),
            false => Default::default(),
        }
    })
}

/// The figures, and below them the worst finding.
#[component]
pub(super) fn Summary(store: Store) -> impl IntoView {
    let tiles = tiles(store);
    let tile = move |(at, label, id, panel): (usize, &'static str, &'static str, Panel)| {
        let of = move |part: fn(&Tile) -> &String| move || tiles.with(|all| part(&all[at]).clone());
        view! {
            <a class=move || tiles.with(|all| format!("tile {}", all[at].state)) data-testid=id
                href=move || nav::href(store, panel) on:click=move |event| { nav::open(store, panel, &event); }
                title=of(|tile| &tile.title)>
                <span class="tile-label">{label}</span>
                <b>{of(|tile| &tile.value)}</b>
                <span class="tile-status">{of(|tile| &tile.status_text)}</span>
                <span class="tile-more">{move || tiles.with(|all| match all[at].more.as_str() {
                    "" => all[at].hint.to_owned(),
                    more => more.to_owned(),
                })}</span>
            </a>
        }
    };
    view! {
        <section class="summary" aria-label="Summary" data-testid="summary">
            <div class="tiles">{TILES.map(tile).collect_view()}</div>
            <Worst store tiles/>
        </section>
    }
}

fn look(
    shown: &ViewContext<'_>,
    now: Millis,
    goals: [f64; 2],
    is_current: bool,
    round_robin: Option<RoundRobinRun>,
) -> [Tile; 5] {
    [
        latency_tile(shown, Quantity::Ttft, goals[0], now, is_current),
        latency_tile(shown, Quantity::Tpot, goals[1], now, is_current),
        hit_rate(shown, now, round_robin),
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

fn hit_rate(shown: &ViewContext<'_>, now: Millis, round_robin: Option<RoundRobinRun>) -> Tile {
    let sums = shown.recent_sums(now, WINDOW_MS);
    let mut title = sums.explain("in the last 60 s");
    let status_text = if sums.count == 0 {
        "no decision in 60 s".to_owned()
    } else if sums.prompts.is_none_or(|(prompts, ..)| prompts == 0) && sums.apart.is_empty() {
        "prompts not visible".to_owned()
    } else {
        format::plural(sums.count, "decision", "decisions")
    };
    let (more, hint) = match round_robin {
        Some(run) => {
            title.push_str(&round_robin_title(&run));
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
fn round_robin_title(run: &RoundRobinRun) -> String {
    format!(
        ". Round-robin, simulated at {} with {}: {} of prompt tokens found in the engines' caches, {} under the recorded setting",
        time_of_day(run.at_ms),
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
#[derive(Clone, PartialEq, Default)]
struct StatusLine {
    level: &'static str,
    text: String,
    /// Since when that is so; empty: nothing is found.
    since: String,
    /// The first setting to change, ready to be copied; empty: none.
    setting: String,
    /// Why.
    fix: String,
    /// The other findings.
    more: String,
    /// What its link is called.
    link: &'static str,
    /// Whether it is about what was checked, and not about a finding.
    is_check: bool,
}

/// So many findings are named.
const NAMED: usize = 3;

/// The worst finding on one line, its fix to copy, and the others after it.
#[component]
fn Worst(store: Store, tiles: Memo<[Tile; 5]>) -> impl IntoView {
    let line = Memo::new(move |_| {
        let mut line = tiles.with(|tiles| store.on_beat(|shown| line_of(shown, tiles)));
        // What was checked when data came is not known to be so now.
        if line.is_check && !super::old(store).is_empty() {
            line.level = "info";
            line.text = format!("Last check: {}", line.text.trim_start_matches("✓ "));
        }
        line
    });
    let of = move |part: fn(&StatusLine) -> &String| Memo::new(move |_| line.with(|line| part(line).clone()));
    let (text, since, setting) = (of(|l| &l.text), of(|l| &l.since), of(|l| &l.setting));
    let (fix, more) = (of(|l| &l.fix), of(|l| &l.more));
    let has_setting = Memo::new(move |_| setting.with(|setting| !setting.is_empty()));
    view! {
        <div class=move || line.with(|line| format!("worst {}", line.level)) role="status" data-testid="notice-findings">
            <span class="worst-text" title=text>{text}</span>
            <span class="worst-since">{since}</span>
            <Show when=move || has_setting.get()>
                <code title=move || format!("{} {}", fix.get(), setting.get()) data-testid="worst-setting">{setting}</code>
                <CopyButton label="Copy fix" id="copy-fix" text=Callback::new(move |()| setting.get_untracked())/>
            </Show>
            <span class="worst-more" title=more>{more}</span>
            <a class="plain" data-testid="show-findings" href=move || nav::href(store, Panel::Findings)
                on:click=move |event| { nav::open(store, Panel::Findings, &event); }>{move || line.with(|line| line.link)}</a>
        </div>
    }
}

/// The worst findings in the order that all of the page has; that there are none, where something was checked.
fn line_of(cluster: &Cluster, tiles: &[Tile]) -> StatusLine {
    let held = FindingFilter::default().of(cluster);
    let Some((worst, others)) = held.split_first() else { return no_finding(cluster, tiles) };
    let note = |finding: &Finding| {
        // Its figures are of then, and others may stand above already.
        let until = match finding.phase {
            Phase::Recheck => format!(", until {}", time_of_day(finding.last_ms)),
            Phase::Warn | Phase::Cleared => String::new(),
        };
        let (mark, word) = (severity_mark(finding.severity), severity_word(finding.severity));
        format!("{mark} {word}: {}{until}", with_labels(cluster, finding, &finding.title))
    };
    let mut line = StatusLine {
        level: ["info", "warn", "bad"][worst.severity as usize],
        text: note(worst),
        since: format!("since {}", time_of_day(worst.first_ms)),
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
    if held.len() > NAMED {
        line.more.push_str(&format!("and {} more", held.len() - NAMED));
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
pub(super) fn to_come(summary: &Summary, now: Millis, tiles: &[Tile]) -> Option<String> {
    if let Some(first) = summary.pending.first() {
        return Some(pending_text(first, now));
    }
    let above = tiles.iter().zip(&TILES).find_map(|(tile, (_, name, ..))| Some((name, tile.above_ms?)));
    above.map(|(name, ms)| format!("{name} above target for {}", format::age(ms)))
}
