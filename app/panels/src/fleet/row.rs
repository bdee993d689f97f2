//! The row of a cluster: each cell leads into its page, to the panel that explains the figure.

use radixscope_export::ClusterSummary;
use radixscope_export::finding_ticket::severity_mark;
use radixscope_export::fleet::{FleetReport, MemberReport, MemberState, Urgency};
use radixscope_export::panel::findings::SEVERITIES;
use radixscope_insight::latency::Quantity;
use radixscope_model::number_format::digits;
use radixscope_model::range::{Range, TargetComparison};

use super::spark::{SparkAxes, SparkPaths};
use crate::format;

/// Columns with links, from the left.
const LINKS: usize = 7;
/// Points further apart are not connected: four of them are missing.
const GAP_MS: u64 = 75_000;
/// The shortest axis of time.
const SHORTEST_MS: u64 = 120_000;
/// The axis of TTFT reaches at most so many times the largest target: one that is far above must not flatten all others.
const MOST_TARGETS: f64 = 4.0;

/// What all lines have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AxesOf {
    time_ms: (u64, u64),
    ttft_top_ms: f64,
    is_cut: bool,
}

impl Default for AxesOf {
    fn default() -> Self {
        Self { time_ms: (0, 1), ttft_top_ms: 1.0, is_cut: false }
    }
}

impl AxesOf {
    /// Of all members.
    pub fn of(report: &FleetReport) -> Self {
        let to = report.at_ms.0;
        let first =
            report.members.iter().filter_map(|member| member.points.first()).map(|point| point.at_ms.0).min();
        // From the first point of any on, so that the lines of a young process are no dots.
        let reach = first
            .map_or(0, |first| to.saturating_sub(first))
            .min(report.points_s.saturating_mul(1_000))
            .max(SHORTEST_MS);
        let summaries = || report.members.iter().filter_map(|member| member.summary.as_ref());
        let target = summaries().map(|of| of.ttft.target_ms).fold(0.0, f64::max);
        let points =
            report.members.iter().flat_map(|member| &member.points).filter_map(|point| point.ttft_ms);
        let largest = points.map(|ttft| ttft.high().unwrap_or(ttft.low())).fold(0.0, f64::max);
        let most = target * MOST_TARGETS;
        let top = largest.clamp(target * 1.25, most.max(target * 1.25)).max(1.0);
        Self { time_ms: (to.saturating_sub(reach), to), ttft_top_ms: top, is_cut: largest > top }
    }

    /// How long the axis of time is, minutes.
    pub fn minutes(&self) -> u64 {
        self.time_ms.1.saturating_sub(self.time_ms.0).div_ceil(60_000)
    }

    /// The axis of TTFT in words.
    pub fn ttft_text(&self) -> String {
        let top = Quantity::Ttft.to_text(self.ttft_top_ms);
        if self.is_cut { format!("0–{top} (larger ones at the top)") } else { format!("0–{top}") }
    }

    const fn axes(&self, top: f64) -> SparkAxes {
        SparkAxes { time_ms: self.time_ms, top, gap_ms: GAP_MS }
    }
}

/// Id of the link in a row and column.
pub fn cell_id((row, column): (usize, usize)) -> String {
    format!("fleet-{row}-{column}")
}

/// Where a key leads to from a cell of so many rows; `None` for other keys.
pub fn neighbour(key: &str, (row, column): (usize, usize), rows: usize) -> Option<(usize, usize)> {
    let last = rows.saturating_sub(1);
    Some(match key {
        "ArrowDown" => ((row + 1).min(last), column),
        "ArrowUp" => (row.saturating_sub(1), column),
        "ArrowRight" => (row, (column + 1).min(LINKS - 1)),
        "ArrowLeft" => (row, column.saturating_sub(1)),
        "Home" => (0, column),
        "End" => (last, column),
        _ => return None,
    })
}

/// What a cell says: the figure, what it is of, and the same at length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// The figure.
    pub value: String,
    /// What it is of.
    pub more: String,
    /// The same at length.
    pub title: String,
    /// For the style sheet.
    pub class: &'static str,
}

/// The row of a member.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MemberRow {
    /// Its name.
    pub name: String,
    /// Class of the row.
    pub class: &'static str,
    /// For tests.
    pub state: &'static str,
    /// Findings, KV hit rate, TTFT p95, reuse, workers and requests.
    pub cells: [Cell; 6],
    /// The line of its KV hit rate.
    pub hit_paths: SparkPaths,
    /// The line of its TTFT.
    pub ttft_paths: SparkPaths,
    /// Where its target lies in that.
    pub target_y: Option<f64>,
}

impl MemberRow {
    /// With lines on these axes.
    pub fn of(member: &MemberReport, axes: &AxesOf) -> Self {
        let (hit_axes, ttft_axes) = (axes.axes(1.0), axes.axes(axes.ttft_top_ms));
        let points = || member.points.iter();
        Self {
            name: member.name.clone(),
            class: row_class(member),
            state: member.state.as_str(),
            cells: [
                findings_cell(member),
                hit_cell(member),
                ttft_cell(member),
                reuse_cell(member),
                workers_cell(member),
                requests_cell(member),
            ],
            hit_paths: hit_axes
                .paths(points().map(|point| (point.at_ms.0, point.hit_rate.map(Range::exact)))),
            ttft_paths: ttft_axes.paths(points().map(|point| (point.at_ms.0, point.ttft_ms))),
            target_y: member.summary.as_ref().map(|of| ttft_axes.y(of.ttft.target_ms)),
        }
    }
}

impl Cell {
    fn unknown(why: &str) -> Self {
        Self {
            value: format::UNKNOWN.to_owned(),
            more: why.to_owned(),
            title: why.to_owned(),
            class: "unknown",
        }
    }
}

fn row_class(member: &MemberReport) -> &'static str {
    match (member.state, member.urgency()) {
        (MemberState::NotAnswering, _) if member.summary.is_none() => "dead empty-handed",
        (MemberState::NotAnswering, _) => "dead",
        (_, Urgency::Critical) => "critical",
        (_, Urgency::AboveTarget | Urgency::Warning) => "warning",
        (_, Urgency::Good) => "good",
        (_, Urgency::NotAnswering | Urgency::Unknown) if member.summary.is_none() => "unknown empty-handed",
        (_, Urgency::NotAnswering | Urgency::Unknown) => "unknown",
    }
}

/// Its name, and whether it answers, at `now_ms`.
pub fn state_cell(member: &MemberReport, now_ms: u64) -> Cell {
    let since = lasting(now_ms.saturating_sub(member.since_ms.0));
    let more = match member.state {
        MemberState::Waiting => "not asked yet".to_owned(),
        MemberState::NotAnswering => format!("not answering for {since}"),
        MemberState::NoSummary => member.detail.clone(),
        MemberState::Answering => match &member.summary {
            Some(of) if of.is_replay => "replay".to_owned(),
            Some(of) if of.sources.up < of.sources.all => {
                format!("{} of {} sources connected", of.sources.up, of.sources.all)
            }
            Some(of) if of.version != env!("CARGO_PKG_VERSION") => {
                format!("version {}, this page {}", of.version, env!("CARGO_PKG_VERSION"))
            }
            _ => String::new(),
        },
    };
    let version =
        member.version.as_ref().map_or("version unknown".to_owned(), |of| format!("Radixscope {of}"));
    let title = format!(
        "{} · {} for {since} · {version}{}",
        member.name,
        member.state.label(),
        match more.is_empty() {
            true => String::new(),
            false => format!(" · {more}"),
        }
    );
    Cell { value: member.name.clone(), more, title, class: "" }
}

/// How long something has lasted: `3 s`, `5 min`.
fn lasting(ms: u64) -> String {
    // The first seconds have no word of their own.
    if ms < 2_000 { "1 s".to_owned() } else { format::age(ms) }
}

/// How long ago its last answer came, at `now_ms`.
pub fn age_cell(member: &MemberReport, now_ms: u64) -> Cell {
    let Some(at) = member.answered_ms else {
        return Cell {
            value: "never".to_owned(),
            title: "It never sent a summary".to_owned(),
            ..Cell::default()
        };
    };
    let took = member.took_ms.map_or(String::new(), |ms| format!("Its last answer took {ms} ms"));
    Cell { value: format::age(now_ms.saturating_sub(at.0)), title: took, ..Cell::default() }
}

/// A cell of the last summary.
fn of_summary(member: &MemberReport, read: impl FnOnce(&ClusterSummary) -> Cell) -> Cell {
    match (&member.summary, member.state) {
        (Some(of), _) => read(of),
        (None, MemberState::NoSummary) => Cell::unknown("not reported"),
        (None, _) => Cell { title: "It never sent a summary".to_owned(), ..Cell::unknown("") },
    }
}

fn findings_cell(member: &MemberReport) -> Cell {
    if member.state == MemberState::NotAnswering {
        // Why nothing is known comes before what was found last.
        let worst = member.summary.as_ref().and_then(|of| of.findings.worst.as_ref());
        let more = worst.map_or(String::new(), |worst| {
            format!("last: {} {}", severity_mark(worst.severity), worst.title)
        });
        let title = member.detail.clone();
        return Cell { value: title.clone(), more, title, class: "why" };
    }
    of_summary(member, |of| {
        let found = &of.findings;
        let counts = [found.critical, found.warning, found.info];
        let words: Vec<String> = SEVERITIES
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|((_, one, many), count)| format!("{count} {}", if count == 1 { one } else { many }))
            .collect();
        match &found.worst {
            Some(worst) => Cell {
                value: format!("{} {}", severity_mark(worst.severity), worst.title),
                more: words.join(" · "),
                title: worst.title.clone(),
                class: worst.severity.as_str(),
            },
            None => Cell {
                value: if found.is_good { "✓ No findings".to_owned() } else { "No findings".to_owned() },
                more: found.checked.clone(),
                title: found.checked.clone(),
                class: if found.is_good { "within" } else { "" },
            },
        }
    })
}

fn hit_cell(member: &MemberReport) -> Cell {
    of_summary(member, |of| match of.hit_rate.share {
        Some(share) => Cell {
            value: format::tenths(share),
            more: format::plural(of.hit_rate.decisions, "decision", "decisions"),
            title: of.hit_rate.of.clone(),
            class: "",
        },
        None => Cell::unknown(of.hit_rate.why.as_deref().unwrap_or_default()),
    })
}

fn ttft_cell(member: &MemberReport) -> Cell {
    of_summary(member, |of| {
        let ttft = &of.ttft;
        let Some(p95) = ttft.p95_ms else { return Cell::unknown(ttft.why.as_deref().unwrap_or_default()) };
        let target = Quantity::Ttft.to_text(ttft.target_ms);
        let (more, class) = match ttft.standing {
            TargetComparison::Within => (format!("✓ within {target}"), "within"),
            TargetComparison::Above => (format!("◆ above {target}"), "above"),
            TargetComparison::Unknown => (format!("target {target}"), ""),
        };
        let why = ttft.why.as_ref().map_or(String::new(), |why| format!(". {why}"));
        let title = format!(
            "{} of {} samples of the last {} s, {}{why}",
            format::count(ttft.samples),
            format::count(ttft.of),
            ttft.window_s,
            ttft.source
        );
        Cell { value: Quantity::Ttft.range_text(&p95), more, title, class }
    })
}

fn reuse_cell(member: &MemberReport) -> Cell {
    of_summary(member, |of| match (&of.reuse.worst, &of.reuse.why) {
        (Some(worst), _) => Cell {
            value: worst.text.clone(),
            more: format!("{} of prompt tokens", format::tenths(worst.share)),
            title: format!(
                "{} tokens over {} of the last {} s",
                format::count(worst.tokens),
                format::plural(of.reuse.decisions.into(), "decision", "decisions"),
                of.reuse.window_s
            ),
            class: "",
        },
        (None, Some(why)) => Cell::unknown(why),
        (None, None) => Cell {
            value: "Nothing".to_owned(),
            more: format::plural(of.reuse.decisions.into(), "decision", "decisions"),
            ..Cell::default()
        },
    })
}

fn workers_cell(member: &MemberReport) -> Cell {
    of_summary(member, |of| {
        let workers = &of.workers;
        let (more, class) = match (workers.incomplete, workers.complete) {
            (0, complete) if complete == workers.present => ("complete".to_owned(), ""),
            (0, complete) => (format!("{complete} complete"), ""),
            (incomplete, _) => (format!("{incomplete} partial"), "partial"),
        };
        let title = format!(
            "{} workers: all cached blocks are known of {}, blocks are missing of {}",
            workers.present, workers.complete, workers.incomplete
        );
        Cell { value: workers.present.to_string(), more, title, class }
    })
}

fn requests_cell(member: &MemberReport) -> Cell {
    of_summary(member, |of| match of.requests.per_s {
        Some(per_s) => Cell {
            value: digits(per_s),
            more: format!("{} s mean", of.requests.window_s),
            title: format!("Mean of the last {} s, by {}", of.requests.window_s, of.requests.source),
            ..Cell::default()
        },
        None => Cell::unknown(of.requests.why.as_deref().unwrap_or_default()),
    })
}
