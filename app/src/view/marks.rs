//! What happened, as marks on the time axis of a chart: findings from begin to end, workers that left or came back, processes
//! that restarted, and settings of routers that changed. Each says what it is and leads there.

use leptos::prelude::*;
use radixscope_export::FindingFilter;
use radixscope_icicle::palette::label;
use radixscope_insight::changes::changed_numbers;
use radixscope_model::id::{Millis, Worker};
use radixscope_model::record::{Finding, Phase, RouterNumbers, Severity};
use web_sys::MouseEvent;

use super::figure::severity_mark;
use super::nav;
use crate::keys;
use crate::store::{Store, ViewContext, time_of_day};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::control::view;

/// More marks cannot be distinguished; the latest are drawn.
const MAX_MARKS: usize = 40;
/// Marks nearer to each other than this share of the axis stand above each other.
const APART: f64 = 0.03;
/// So many at most.
const MAX_ABOVE: usize = 4;

/// A mark.
#[derive(Clone, PartialEq)]
struct ChartMark {
    /// Which one, whatever its text.
    id: String,
    from: Millis,
    /// Its end; `None`: it is still so.
    until: Option<Millis>,
    /// Never the colour alone.
    icon: &'static str,
    class: &'static str,
    text: String,
    to: MarkTarget,
}

/// Where it leads.
#[derive(Clone, PartialEq)]
enum MarkTarget {
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
    const fn panel(&self) -> (Panel, Option<Worker>) {
        match self {
            Self::Finding(_) => (Panel::Findings, None),
            Self::Worker(worker) => (Panel::Workers, Some(*worker)),
            Self::Latency => (Panel::Latency, None),
            Self::Decisions => (Panel::Decisions, None),
        }
    }
}

/// Those that lie within `span`, in order of their begin.
fn marks(shown: &ViewContext<'_>, span: TimeSpan) -> Vec<ChartMark> {
    let mut all: Vec<ChartMark> = FindingFilter { severity: Severity::Info, cleared: true }
        .of(shown)
        .into_iter()
        .map(of_finding)
        .collect();
    for worker in shown.worker_list() {
        let Some(state) = shown.worker(worker) else { continue };
        let mut add = |at: Option<Millis>, icon, what| {
            let text = |at| format!("{} {what}, {}", label(worker), time_of_day(at));
            all.extend(at.map(|at| at_once(at, icon, text(at), MarkTarget::Worker(state.id))));
        };
        add(state.last_departure.map(|departure| departure.at_ms), "×", "left");
        add(state.returned_ms, "↺", "came back");
    }
    for process in shown.processes() {
        let text = |at| format!("{} restarted, {}", process.name, time_of_day(at));
        all.extend(process.restarted_ms.map(|at| at_once(at, "↻", text(at), MarkTarget::Latency)));
    }
    for state in shown.settings() {
        let mut before: Option<&RouterNumbers> = None;
        for step in state.steps() {
            let changes = before.map(|before| changed(before, &step.numbers)).unwrap_or_default();
            before = Some(&step.numbers);
            if !changes.is_empty() {
                let text = format!("{}: {changes}, {}", state.of.reporter, time_of_day(step.by_ms));
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

fn of_finding(finding: &Finding) -> ChartMark {
    let until = (finding.phase == Phase::Cleared).then_some(finding.last_ms);
    let from = time_of_day(finding.first_ms);
    let time = match until {
        Some(until) => format!("{from} to {}", time_of_day(until)),
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

/// The marks of a chart's area.
#[component]
pub(super) fn Marks(store: Store, span: Memo<TimeSpan>) -> impl IntoView {
    let all = Memo::new(move |_| {
        let span = span.get();
        store.on_beat(|shown| marks(shown, span))
    });
    // Each keeps its element while it moves, and with it the focus and the pointer.
    view! {
        <div class="time-marks">
            <For each=move || all.get() key=|mark| (mark.from, mark.id.clone()) let:mark><MarkAt store mark all span/></For>
        </div>
    }
}

/// Place of a mark on the axis, and how many others stand below it.
fn place(mark: &ChartMark, all: &[ChartMark], span: TimeSpan) -> (f64, f64, usize) {
    let at = |at: Millis| span.share(at).clamp(0.0, 1.0);
    let from = at(mark.from);
    let before =
        all.iter().take_while(|other| other.id != mark.id).filter(|other| from - at(other.from) < APART);
    (from, mark.until.map_or(1.0, at), before.count() % MAX_ABOVE)
}

#[component]
fn MarkAt(store: Store, mark: ChartMark, all: Memo<Vec<ChartMark>>, span: Memo<TimeSpan>) -> impl IntoView {
    let ChartMark { icon, class, .. } = mark;
    let id = mark.id.clone();
    let text = move || all.with(|all| all.iter().find(|mark| mark.id == id).map(|mark| mark.text.clone()));
    let is_over = mark.until.is_some();
    let (panel, worker) = mark.to.panel();
    let target = move || store.address.with(|address| address.of_panel(panel, worker));
    let to = StoredValue::new(mark.to.clone());
    let placed = Memo::new(move |_| all.with(|all| place(&mark, all, span.get())));
    let go = move |event: MouseEvent| {
        if !nav::stays_here(&event) {
            return;
        }
        store.address.set(untrack(target));
        to.with_value(|to| match to {
            MarkTarget::Finding(code) => show_card(store, format!("finding-{code}"), CARD_FRAMES),
            MarkTarget::Worker(_) | MarkTarget::Latency | MarkTarget::Decisions => {}
        });
    };
    // What it says stands where there is room.
    let side = move || if placed.get().0 > 0.5 { "before" } else { "after" };
    let style = move || {
        let (from, until, above) = placed.get();
        format!("left: {:.2}%; width: {:.2}%; --above: {above}", from * 100.0, (until - from) * 100.0)
    };
    view! {
        <div class=format!("time-mark {class}") class:ended=is_over style=move || style()>
            <a class=move || side() href=move || format!("./{}", target().query()) on:click=go
                on:pointerdown=|event| event.stop_propagation() aria-label=move || text() data-testid="time-mark">{icon}</a>
        </div>
    }
}

/// Frames that a finding's card is waited for: its panel may have to be loaded, over a slow line.
const CARD_FRAMES: u32 = 1_800;

/// Brings the card of a finding into sight once its panel is in the document, also among those that are over. Gives up when
/// another panel is opened, or after so many frames.
fn show_card(store: Store, id: String, frames: u32) {
    request_animation_frame(move || {
        if frames == 0 || store.address.with_untracked(|address| address.panel) != Panel::Findings {
            return;
        }
        if document().get_element_by_id(&id).is_none() {
            return show_card(store, id, frames - 1);
        }
        if let Ok(Some(over)) = document().query_selector("[data-testid=findings-over]") {
            let _ = over.set_attribute("open", "");
        }
        keys::focus(&id);
    });
}
