//! The stage: what a bar shows of what can be steered, what each control sends, and what is said of it. Knows nothing of the state: what a
//! change does is seen in the panels.

use radixscope_export::stage::{Mend, Restart, StageChange, StageFault, StageReport, Steered};
use radixscope_model::id::Decimal;
use radixscope_router::RouterMode;

use crate::format;
use crate::url::Address;

/// Key in the address: `0` folds the bar, any other value shows it also where the page is bare.
pub const KEY: &str = "stage";
/// Windows below this width begin with the bar folded, CSS pixels.
const NARROW_PX: f64 = 900.0;

/// Whether the bar is shown where the server has a stage.
pub fn is_wanted(address: &Address) -> bool {
    !address.is_bare() || address.other(KEY).is_some_and(|value| value != "0")
}

/// Whether it begins folded, in a window of a width.
pub fn is_folded_at_first(address: &Address, window_px: f64) -> bool {
    address.other(KEY).map_or(window_px < NARROW_PX, |value| value == "0")
}

/// Notes in the address whether the bar is folded. On a bare page the address says whether there is a bar at all.
pub fn note_fold(address: &mut Address, is_folded: bool) {
    if !address.is_bare() {
        address.set_other(KEY, is_folded.then_some("0"));
    }
}

/// What is steered, in a line.
pub fn summary(report: &StageReport) -> String {
    let users = format::plural(report.concurrency.value.into(), "user", "users");
    let router = report.router.map(|router| match router.mode {
        RouterMode::Kv => "KV-aware",
        RouterMode::RoundRobin => "round-robin",
    });
    let paused = report.paused.then_some("paused");
    let broken = report.fault.as_deref();
    [Some(users.as_str()), router, paused, broken].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// What happened last, or why it did not. `fault`: why the last change was not made; empty: it was.
pub fn news(report: Option<&StageReport>, fault: &str) -> String {
    match report {
        _ if !fault.is_empty() => fault.to_owned(),
        Some(report) if report.is_ready => {
            report.latest.as_ref().map(|latest| latest.text.clone()).unwrap_or_default()
        }
        _ => "Warming up: it can be steered in a moment".to_owned(),
    }
}

/// Which controls there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Controls {
    /// The router's.
    pub has_router: bool,
    /// Something can be broken.
    pub has_faults: bool,
    /// It can be restarted with a seed.
    pub has_seed: bool,
    /// It stands still.
    pub is_paused: bool,
    /// Changes are taken.
    pub is_ready: bool,
}

impl Controls {
    /// Of what the server says.
    pub fn of(report: &StageReport) -> Self {
        Self {
            has_router: report.router.is_some(),
            has_faults: !report.faults.is_empty(),
            has_seed: report.seed.is_some(),
            is_paused: report.paused,
            is_ready: report.is_ready,
        }
    }

    /// What the button that pauses says.
    pub const fn pause_button(&self) -> &'static str {
        if self.is_paused { "Run" } else { "Pause" }
    }
}

/// How many users there are to be, as typed; `None`: no number. What is out of bounds goes to the next bound.
pub fn users(typed: &str, of: Steered<u32>) -> Option<u32> {
    typed.parse::<u32>().ok().map(|users| users.clamp(of.min, of.max))
}

/// What is broken.
pub fn broken(report: &StageReport) -> Option<&StageFault> {
    report.fault_named(report.fault.as_deref()?)
}

/// What can be broken while it runs, or only from the beginning.
pub fn faults(report: &StageReport, needs_restart: bool) -> impl Iterator<Item = &StageFault> {
    report.faults.iter().filter(move |fault| fault.needs_restart == needs_restart)
}

/// A seed for the same traffic as now.
fn seed(report: Option<&StageReport>) -> Decimal {
    report.and_then(|report| report.seed).unwrap_or(Decimal(1))
}

/// Breaks something.
pub fn break_it(report: Option<&StageReport>, fault: &StageFault) -> StageChange {
    match fault.needs_restart {
        true => StageChange::Restart(Restart { seed: seed(report), fault: Some(fault.name.clone()) }),
        false => StageChange::Break(fault.name.clone()),
    }
}

/// Mends it.
pub fn mend(report: Option<&StageReport>, fault: &StageFault) -> StageChange {
    match fault.needs_restart {
        true => StageChange::Restart(Restart { seed: seed(report), fault: None }),
        false => StageChange::Mend(Mend {}),
    }
}

/// What the button that mends says.
pub const fn mend_button(fault: &StageFault) -> &'static str {
    if fault.needs_restart { "Restart without it" } else { "Mend" }
}

/// The seed that a form asks for: what is typed, or where nothing is the one that is at work; `None`: no seed. A seed has 64 bits: it is
/// text, and no JavaScript number.
pub fn typed_seed(report: Option<&StageReport>, typed: &str) -> Option<u64> {
    match typed.trim() {
        "" => Some(report?.seed?.0),
        typed => typed.parse().ok(),
    }
}

/// Everything anew, with a seed and without a fault.
pub fn restart(seed: u64) -> StageChange {
    StageChange::Restart(Restart { seed: Decimal(seed), fault: None })
}
