//! The row of a cluster: each cell leads into its page, to the panel that explains the figure.

use leptos::prelude::*;
use radixscope_export::ClusterSummary;
use radixscope_export::finding_ticket::severity_mark;
use radixscope_export::fleet::{FleetReport, MemberReport, MemberState, Urgency};
use radixscope_export::panel::findings::SEVERITIES;
use radixscope_insight::latency::Quantity;
use radixscope_model::number_format::digits;
use radixscope_model::range::{Range, TargetComparison};

use super::poll::Feed;
use super::sort::Column;
use crate::draw::spark::{SIZE, SparkAxes, SparkPaths};
use crate::format;
use crate::view::control::view;

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
pub(super) struct AxesOf {
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
    pub(super) fn of(report: &FleetReport) -> Self {
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
    pub(super) fn minutes(&self) -> u64 {
        self.time_ms.1.saturating_sub(self.time_ms.0).div_ceil(60_000)
    }

    /// The axis of TTFT in words.
    pub(super) fn ttft_text(&self) -> String {
        let top = Quantity::Ttft.to_text(self.ttft_top_ms);
        if self.is_cut { format!("0–{top} (larger ones at the top)") } else { format!("0–{top}") }
    }

    const fn axes(&self, top: f64) -> SparkAxes {
        SparkAxes { time_ms: self.time_ms, top, gap_ms: GAP_MS }
    }
}

/// Id of the link in a row and column.
pub(super) fn cell_id((row, column): (usize, usize)) -> String {
    format!("fleet-{row}-{column}")
}

/// Where a key leads to from a cell of so many rows; `None` for other keys.
pub(super) fn neighbour(key: &str, (row, column): (usize, usize), rows: usize) -> Option<(usize, usize)> {
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
#[derive(Clone, PartialEq, Default)]
struct Cell {
    value: String,
    more: String,
    title: String,
    class: &'static str,
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

/// The row.
#[component]
pub(super) fn Row(
    member: Memo<Option<MemberReport>>,
    /// Which row it is now.
    place: Memo<usize>,
    /// The cell that the tabulator leads to.
    focused: RwSignal<(usize, usize)>,
    axes: Memo<AxesOf>,
    feed: Feed,
) -> impl IntoView {
    let of = move |read: fn(&MemberReport) -> Cell| {
        Memo::new(move |_| member.with(|member| member.as_ref().map(read).unwrap_or_default()))
    };
    let link = move |column: usize, view_name: &'static str, cell: Memo<Cell>| {
        let href = Memo::new(move |_| {
            member.with(|member| member.as_ref().map_or_else(String::new, |of| of.href(view_name)))
        });
        let here = move || (place.get(), column);
        view! {
            <a id=move || cell_id(here()) href=href rel="noreferrer" title=move || cell.with(|of| of.title.clone())
                tabindex=move || if focused.get() == here() { "0" } else { "-1" }
                on:focus=move |_| focused.set((place.get_untracked(), column)) class=move || cell.with(|of| of.class)>
                <b>{move || cell.with(|of| of.value.clone())}</b>
                <span class="cell-sub">{move || cell.with(|of| of.more.clone())}</span>
            </a>
        }
    };
    let state = Memo::new(move |_| {
        let now = feed.now_ms.get();
        member.with(|member| member.as_ref().map(|of| state_cell(of, now)).unwrap_or_default())
    });
    let age = Memo::new(move |_| {
        let now = feed.now_ms.get();
        member.with(|member| member.as_ref().map(|of| age_cell(of, now)).unwrap_or_default())
    });
    let class = move || member.with(|member| member.as_ref().map_or("", |of| row_class(of)));
    let name = move || member.with(|member| member.as_ref().map_or_else(String::new, |of| of.name.clone()));
    let hit_paths = Memo::new(move |_| {
        let axes = axes.with(|axes| axes.axes(1.0));
        member.with(|member| {
            let points = member.iter().flat_map(|of| &of.points);
            axes.paths(points.map(|point| (point.at_ms.0, point.hit_rate.map(Range::exact))))
        })
    });
    let ttft_paths = Memo::new(move |_| {
        let axes = axes.with(|axes| axes.axes(axes.ttft_top_ms));
        member.with(|member| {
            let points = member.iter().flat_map(|of| &of.points);
            axes.paths(points.map(|point| (point.at_ms.0, point.ttft_ms)))
        })
    });
    let target = Memo::new(move |_| {
        let axes = axes.with(|axes| axes.axes(axes.ttft_top_ms));
        member.with(|member| Some(axes.y(member.as_ref()?.summary.as_ref()?.ttft.target_ms)))
    });
    view! {
        <tr class=move || format!("fleet-row {}", class()) data-testid="fleet-row" data-name=move || name()
            data-state=move || member.with(|member| member.as_ref().map(|of| of.state.as_str()))>
            <th scope="row" class=Column::Name.class()>{link(0, "", state)}</th>
            <td class=Column::Worst.class() data-label="Findings">{link(1, "findings", of(findings_cell))}</td>
            <td class=Column::HitRate.class() data-label="KV hit rate">
                {link(2, "decisions", of(hit_cell))}<Spark paths=hit_paths target=Memo::new(|_| None)/>
            </td>
            <td class=Column::Ttft.class() data-label="TTFT p95">
                {link(3, "latency", of(ttft_cell))}<Spark paths=ttft_paths target/>
            </td>
            <td class=Column::Reuse.class() data-label="Reuse lost most to">{link(4, "reuse", of(reuse_cell))}</td>
            <td class=Column::Workers.class() data-label="Workers">{link(5, "workers", of(workers_cell))}</td>
            <td class=Column::Requests.class() data-label="Requests/s">{link(6, "rates", of(requests_cell))}</td>
            <td class=Column::Age.class() data-label="Answered">
                <span title=move || age.with(|of| of.title.clone())>{move || age.with(|of| of.value.clone())}</span>
            </td>
        </tr>
    }
}

/// A line over the last minutes. What it says stands beside it.
#[component]
fn Spark(paths: Memo<SparkPaths>, target: Memo<Option<f64>>) -> impl IntoView {
    let (width, height) = SIZE;
    view! {
        <svg class="fleet-line" viewBox=format!("0 0 {width} {height}") preserveAspectRatio="none" aria-hidden="true">
            {move || target.get().map(|y| view! { <path class="target" d=format!("M0 {y:.1}H{width}")/> })}
            <path class="band" d=move || paths.with(|of| of.band.clone())/>
            <path class="line" d=move || paths.with(|of| of.line.clone())/>
        </svg>
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

fn state_cell(member: &MemberReport, now_ms: u64) -> Cell {
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

fn age_cell(member: &MemberReport, now_ms: u64) -> Cell {
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
