//! What happened, as marks on the time axis of a chart: findings from begin to end, workers that left or came back, processes
//! that restarted, and settings of routers that changed. Each says what it is and leads there.

use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::severity_mark;
use radixscope_icicle::palette::label;
use radixscope_insight::changes::changed_numbers;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, Worker};
use radixscope_model::record::{Finding, Phase, RouterNumbers, Severity};

use crate::time_zone::TimeZone;
use crate::url::Panel;

/// More marks cannot be distinguished; the latest are drawn.
const MAX_MARKS: usize = 40;
/// Marks nearer to each other than this share of the axis stand above each other.
const APART: f64 = 0.03;
/// So many at most.
const MAX_ABOVE: usize = 4;

/// A mark.
#[derive(Clone, PartialEq, Debug)]
pub struct ChartMark {
    /// Which one, whatever its text.
    pub id: String,
    /// Its begin.
    pub from: Millis,
    /// Its end; `None`: it is still so.
    pub until: Option<Millis>,
    /// Never the colour alone.
    pub icon: &'static str,
    /// What kind it is, for the style sheet.
    pub class: &'static str,
    /// What happened.
    pub text: String,
    /// Where it leads.
    pub to: MarkTarget,
}

/// Where it leads.
#[derive(Clone, PartialEq, Debug)]
pub enum MarkTarget {
    /// The card of the finding with this code.
    Finding(String),
    /// A worker in the table.
    Worker(Worker),
    /// What the processes report.
    Latency,
    /// What routers chose.
    Decisions,
}

impl MarkTarget {
    /// The panel, and the worker to select there.
    pub const fn panel(&self) -> (Panel, Option<Worker>) {
        match self {
            Self::Finding(_) => (Panel::Findings, None),
            Self::Worker(worker) => (Panel::Workers, Some(*worker)),
            Self::Latency => (Panel::Latency, None),
            Self::Decisions => (Panel::Decisions, None),
        }
    }
}

/// Those that lie within `span`, in order of their begin.
pub fn marks(shown: &ViewContext<'_>, span: TimeSpan, zone: TimeZone) -> Vec<ChartMark> {
    let mut all: Vec<ChartMark> = FindingFilter { severity: Severity::Info, cleared: true }
        .of(shown)
        .into_iter()
        .map(|finding| of_finding(finding, zone))
        .collect();
    for worker in shown.worker_list() {
        let Some(state) = shown.worker(worker) else { continue };
        let mut add = |at: Option<Millis>, icon, what| {
            let text = |at| format!("{} {what}, {}", label(worker), zone.time_of_day(at));
            all.extend(at.map(|at| at_once(at, icon, text(at), MarkTarget::Worker(state.id))));
        };
        add(state.last_departure.map(|departure| departure.at_ms), "×", "left");
        add(state.returned_ms, "↺", "came back");
    }
    for process in shown.processes() {
        let text = |at| format!("{} restarted, {}", process.name, zone.time_of_day(at));
        all.extend(process.restarted_ms.map(|at| at_once(at, "↻", text(at), MarkTarget::Latency)));
    }
    for state in shown.settings() {
        let mut before: Option<&RouterNumbers> = None;
        for step in state.steps() {
            let changes = before.map(|before| changed(before, &step.numbers)).unwrap_or_default();
            before = Some(&step.numbers);
            if !changes.is_empty() {
                let text = format!("{}: {changes}, {}", state.of.reporter, zone.time_of_day(step.by_ms));
                all.push(at_once(step.by_ms, "≠", text, MarkTarget::Decisions));
            }
        }
    }
    all.retain(|mark| mark.from <= span.until && mark.until.is_none_or(|until| until >= span.from));
    all.sort_by_key(|mark| mark.from);
    all.split_off(all.len().saturating_sub(MAX_MARKS))
}

/// The numbers that changed: `prefill_load_scale 1 → 2`.
fn changed(before: &RouterNumbers, after: &RouterNumbers) -> String {
    let all: Vec<String> = changed_numbers(before, after).iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn of_finding(finding: &Finding, zone: TimeZone) -> ChartMark {
    let until = (finding.phase == Phase::Cleared).then_some(finding.last_ms);
    let from = zone.time_of_day(finding.first_ms);
    let time = match until {
        Some(until) => format!("{from} to {}", zone.time_of_day(until)),
        None => format!("active since {from}"),
    };
    ChartMark {
        id: format!("{} {}", finding.code, until.is_some()),
        from: finding.first_ms,
        until,
        icon: severity_mark(finding.severity),
        class: finding.severity.as_str(),
        text: format!("{}: {}, {time}", finding.severity.as_str(), finding.title),
        to: MarkTarget::Finding(finding.code.to_string()),
    }
}

fn at_once(at: Millis, icon: &'static str, text: String, to: MarkTarget) -> ChartMark {
    ChartMark { id: text.clone(), from: at, until: Some(at), icon, class: "event", text, to }
}

/// Begin and end of a mark on the axis, 0 … 1, and how many others stand below it.
pub fn place(mark: &ChartMark, all: &[ChartMark], span: TimeSpan) -> (f64, f64, usize) {
    let at = |at: Millis| span.share(at).clamp(0.0, 1.0);
    let from = at(mark.from);
    let before =
        all.iter().take_while(|other| other.id != mark.id).filter(|other| from - at(other.from) < APART);
    (from, mark.until.map_or(1.0, at), before.count() % MAX_ABOVE)
}
