//! Many clusters beside each other: a row each with the figures of its overview, in the order that the reader chose. Knows no request.

mod row;
mod sort;
mod spark;

use radixscope_export::ClusterSummary;
use radixscope_export::fleet::{FleetPoint, FleetReport, MemberReport, MemberState};
use radixscope_model::range::TargetComparison;

pub use row::{AxesOf, Cell, MemberRow, age_cell, cell_id, neighbour, state_cell};
pub use sort::{Column, KEY as SORT_KEY, Order};
pub use spark::{SIZE as SPARK_SIZE, SparkAxes, SparkPaths};

use crate::format;

/// Columns with their name on screen and what they show.
pub const COLUMNS: [(Column, &str, &str); 8] = [
    (Column::Name, "Cluster", "Its name, and whether it answers"),
    (Column::Worst, "Findings", "Sorted by urgency: not answering, critical, above target, warning"),
    (Column::HitRate, "KV hit rate", "Cached ÷ prompt blocks over all pools, decisions of the last 60 s"),
    (Column::Ttft, "TTFT p95", "Of the last 60 s, against the target of that cluster"),
    (
        Column::Reuse,
        "Reuse lost most to",
        "The cause that most prompt tokens were computed anew for, decisions of the last 60 s",
    ),
    (Column::Workers, "Workers", "Workers that are there, and of which all cached blocks are known"),
    (Column::Requests, "Requests/s", "Requests that ended, mean of the last 60 s"),
    (Column::Age, "Answered", "Time since its last answer"),
];

/// The figures in the head: members that answer, that have a critical finding, and whose TTFT p95 is above its target. `None`: nothing
/// came yet.
pub fn totals(report: Option<&FleetReport>) -> [String; 3] {
    let Some(report) = report else { return [(); 3].map(|()| format::UNKNOWN.to_owned()) };
    [
        format!("{} of {}", report.answering, report.members.len()),
        urgent(report, |now| now.findings.critical > 0),
        urgent(report, |now| now.ttft.standing == TargetComparison::Above),
    ]
}

/// How many members answer and have something.
fn urgent(report: &FleetReport, is: impl Fn(&ClusterSummary) -> bool) -> String {
    let is_asked = report.members.iter().any(|member| member.state != MemberState::Waiting);
    if !is_asked {
        return format::UNKNOWN.to_owned();
    }
    report.members.iter().filter_map(MemberReport::current).filter(|now| is(now)).count().to_string()
}

/// Places in the report of the members whose names contain `find`, in their order.
pub fn listed(report: &FleetReport, order: Order, find: &str) -> Vec<usize> {
    let find = find.to_lowercase();
    let is_meant = |at: &usize| report.members[*at].name.to_lowercase().contains(&find);
    let mut listed: Vec<usize> = (0..report.members.len()).filter(is_meant).collect();
    listed.sort_by(|a, b| order.compare(&report.members[*a], &report.members[*b]));
    listed
}

/// Where no name contains what the reader looks for.
pub fn none_found(find: &str) -> String {
    format!("No cluster's name contains “{find}”")
}

/// What the lines are.
pub fn caption(axes: &AxesOf) -> String {
    format!(
        "Lines: the last {} min, hit rate 0–100 %, TTFT {}, the same for all. Grey: last values of a cluster that does not answer.",
        axes.minutes(),
        axes.ttft_text(),
    )
}

/// The state of the page itself: its class, and in a word. `fault` is empty while responses come.
pub fn connection(fault: &str, has_report: bool) -> (&'static str, &'static str) {
    match (fault, has_report) {
        ("", false) => ("wait", "Loading"),
        ("", true) => ("live", "Live"),
        _ => ("bad", "Not current"),
    }
}

/// Puts the points that are known before those that came.
pub fn keep_points(report: &mut FleetReport, before: &FleetReport) {
    let oldest = report.at_ms.0.saturating_sub(report.points_s * 1_000);
    for (member, old) in report.members.iter_mut().zip(&before.members) {
        if member.name != old.name {
            continue;
        }
        let known = old.points.iter().filter(|point| point.at_ms.0 >= oldest);
        let mut points: Vec<FleetPoint> = known.cloned().collect();
        let last = points.last().map(|point| point.at_ms);
        points.extend(member.points.drain(..).filter(|point| last.is_none_or(|last| point.at_ms > last)));
        member.points = points;
    }
}
