//! How the cluster differs in the question: workers left out, made busier, added.

use radixscope_insight::view_context::ViewContext;
use radixscope_insight::whatif::{Adjustment, Busy, CandidateRef, MAX_ADDED, WorkerChanges};
use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_router::{Formula, example};

use super::query::Mode;

/// Workers listed: more could not be worked with by hand.
const LISTED: usize = 64;

/// What of a load is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadPart {
    /// Prompt tokens queued.
    Prefill,
    /// Blocks in use.
    Decode,
    /// Active requests.
    Requests,
}

impl LoadPart {
    /// How much more, or less, it is.
    pub fn of(self, busy: &Busy) -> i64 {
        let adjust = match self {
            LoadPart::Prefill => busy.prefill_tokens,
            LoadPart::Decode => busy.decode_blocks,
            LoadPart::Requests => busy.active_requests,
        };
        match adjust {
            Adjustment::Add(by) => by,
            Adjustment::Keep | Adjustment::Set(_) => 0,
        }
    }

    fn set(self, busy: &mut Busy, by: i64) {
        let part = match self {
            LoadPart::Prefill => &mut busy.prefill_tokens,
            LoadPart::Decode => &mut busy.decode_blocks,
            LoadPart::Requests => &mut busy.active_requests,
        };
        *part = if by == 0 { Adjustment::Keep } else { Adjustment::Add(by) };
    }
}

/// Whether a candidate is left out.
pub fn is_excluded(changes: &WorkerChanges, who: CandidateRef) -> bool {
    changes.left_out.contains(&who)
}

/// Leaves a candidate out, or no longer.
pub fn exclude(changes: &mut WorkerChanges, who: CandidateRef, is_out: bool) {
    changes.left_out.retain(|other| *other != who);
    if is_out {
        changes.left_out.push(who);
    }
}

/// How much busier a candidate was made.
pub fn busy(changes: &WorkerChanges, who: CandidateRef) -> Busy {
    changes.busy.iter().find(|(of, _)| *of == who).map(|(_, busy)| *busy).unwrap_or_default()
}

/// Changes a part of a candidate's load by what was typed; 0 and what is no number leave it as it is.
pub fn set_busy(changes: &mut WorkerChanges, who: CandidateRef, part: LoadPart, typed: &str) {
    let by = typed.trim().parse().unwrap_or(0);
    let at = changes.busy.iter().position(|(of, _)| *of == who).unwrap_or_else(|| {
        changes.busy.push((who, Busy::default()));
        changes.busy.len() - 1
    });
    part.set(&mut changes.busy[at].1, by);
    changes.busy.retain(|(_, busy)| !busy.is_nothing());
}

/// The table of candidates and its buttons.
#[derive(Clone, PartialEq, Debug)]
pub struct FleetTable {
    /// In their order.
    pub listed: Vec<CandidateRef>,
    /// What is said of those that are not listed.
    pub unlisted: Option<String>,
    /// Whether the formula counts active requests.
    pub counts_requests: bool,
    /// Whether one more may be added.
    pub can_add: bool,
    /// Whether there is an added one to remove.
    pub can_remove: bool,
    /// Whether anything differs.
    pub can_reset: bool,
}

impl FleetTable {
    /// `workers`: see [`FleetTable::workers`].
    pub fn of(workers: &[WorkerIx], mode: Mode, formula: Formula, changes: &WorkerChanges) -> Self {
        let listed = match mode {
            Mode::Example => (0..example::COSTS.len() as u32).map(CandidateRef::Example).collect(),
            _ => workers
                .iter()
                .take(LISTED)
                .map(|&worker| CandidateRef::Worker(worker))
                .chain((0..changes.added).map(CandidateRef::Added))
                .collect(),
        };
        let unlisted = workers.len().saturating_sub(LISTED);
        Self {
            listed,
            unlisted: (unlisted > 0).then(|| format!("{unlisted} more workers are weighed but not listed")),
            counts_requests: matches!(formula, Formula::D | Formula::E),
            can_add: changes.added != MAX_ADDED,
            can_remove: changes.added != 0,
            can_reset: *changes != WorkerChanges::default(),
        }
    }

    /// The workers of the pool that is asked about.
    pub fn workers(shown: &ViewContext<'_>, pool: PoolIx) -> Vec<WorkerIx> {
        ViewContext { pool, ..*shown }.drawn_workers().collect()
    }
}
