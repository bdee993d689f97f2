//! Which decisions the table lists: those of the state or those held since Pause, filtered and in order, with the counts of every filter.

use radixscope_export::panel::session;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, PoolIx, Slot, WorkerIx};
use radixscope_state::cluster::{Cluster, Column, DecisionEntry, DecisionKind, Filter, Picked, Sort};

use super::Search;
use crate::format;
use crate::url::Address;

/// What stands where no decision is listed.
pub const NONE_LISTED: &str =
    "No retained decision matches these filters: choose another outcome, worker or text";

/// What the reader looks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecisionQuery {
    /// Filters and order.
    pub filter: Filter,
    /// Only decisions of this session; empty: of all.
    pub session: String,
    /// Only decisions with this text; empty: all.
    pub text: String,
}

impl DecisionQuery {
    /// As the address says; `worker`: the one that is picked, `pool`: the one that is shown alone.
    pub fn of(
        address: &Address,
        worker: Option<WorkerIx>,
        pool: Option<PoolIx>,
        ttft_target_ms: f64,
    ) -> Self {
        let ttft_target_us = (ttft_target_ms * 1_000.0).round() as u64;
        let Address { outcome: kind, by, client, sort, .. } = *address;
        Self {
            filter: Filter { pool, worker, kind, by, client, ttft_target_us, sort },
            session: address.session.clone(),
            text: address.find.clone(),
        }
    }
}

/// What is shown while paused: a copy, because the state forgets.
#[derive(Debug)]
pub struct PausedDecisions {
    /// Newest first.
    decisions: Vec<DecisionEntry>,
    /// Decisions received so far, then.
    ever: u64,
}

impl PausedDecisions {
    /// What is retained now.
    pub fn of(cluster: &Cluster) -> Self {
        Self {
            decisions: cluster.decisions().newest_first().cloned().collect(),
            ever: cluster.decisions().totals().count,
        }
    }

    /// What happened since.
    pub fn since(&self, cluster: &Cluster) -> SincePause {
        let oldest = cluster.decisions().newest_first().next_back().map(|d| d.decision.id);
        let still = self.decisions.partition_point(|d| oldest.is_some_and(|oldest| d.decision.id >= oldest));
        SincePause {
            newer: cluster.decisions().totals().count.saturating_sub(self.ever),
            dropped: (self.decisions.len() - still) as u64,
        }
    }

    /// As the table shows them.
    pub fn listed(&self) -> Listed<'_> {
        Listed::Paused(&self.decisions)
    }
}

/// Since Pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SincePause {
    /// Decisions received.
    pub newer: u64,
    /// Decisions shown that the state no longer has.
    pub dropped: u64,
}

impl SincePause {
    /// In the head of the panel.
    pub fn to_text(self) -> String {
        let dropped = match self.dropped {
            0 => String::new(),
            n => format!(", {} of those shown dropped by the server since", format::count(n)),
        };
        format!("Paused, {} newer{dropped}", format::count(self.newer))
    }
}

/// What the query picks out of what is shown now.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DecisionList {
    /// Places of those listed, sums over them, and how many each filter would list.
    pub picked: Picked,
    /// Decisions that were looked through.
    pub retained: u64,
    /// Decisions received so far.
    pub ever: u64,
    /// Sessions with colours.
    pub sessions: Vec<(Box<str>, Slot)>,
    /// Record that the state was at: equal lists show the same.
    seq: u64,
    query: DecisionQuery,
}

impl DecisionList {
    /// Of what is shown, or of what was when the list was paused. `search` keeps what was found before.
    pub fn of(
        shown: &ViewContext<'_>,
        paused: Option<&PausedDecisions>,
        query: &DecisionQuery,
        search: &mut Search,
    ) -> Self {
        let coloured = session::coloured(shown.cluster).into_iter();
        let sessions = coloured.map(|(name, slot)| (name.into(), slot)).collect();
        let mut list = Self { query: query.clone(), sessions, ..Self::default() };
        let DecisionQuery { filter, session, text } = query;
        let is_of_session = |decided: &DecisionEntry| {
            session.is_empty() || decided.decision.session.as_ref() == Some(session)
        };
        let mut pass = search.pass(shown, text, filter);
        let is_found = |decided: &DecisionEntry| is_of_session(decided) && pass.is_found(decided);
        match paused {
            Some(paused) => {
                list.picked = Picked::of(filter, paused.decisions.iter(), is_found);
                (list.retained, list.ever) = (paused.decisions.len() as u64, paused.ever);
            }
            None => {
                let decisions = shown.decisions();
                list.picked = Picked::of(filter, decisions.newest_first(), is_found);
                (list.retained, list.ever) =
                    (decisions.newest_first().len() as u64, decisions.totals().count);
                list.seq = shown.seq().0;
            }
        }
        list
    }

    /// Whether it is a list of the state, not of a pause, and answers `query`.
    pub fn is_live_for(&self, query: &DecisionQuery) -> bool {
        self.query == *query && self.seq > 0
    }

    /// Decisions received since it was made; `None`: the state is another one than it was made of.
    pub fn newer(&self, cluster: &Cluster) -> Option<u64> {
        cluster.decisions().totals().count.checked_sub(self.ever)
    }

    /// How many decisions are listed.
    pub fn len(&self) -> usize {
        self.picked.at.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.picked.at.is_empty()
    }

    /// The decisions of the state, as this list counts their places.
    pub fn live<'c>(&self, cluster: &'c Cluster) -> Listed<'c> {
        let newer = cluster.decisions().totals().count.saturating_sub(self.ever);
        Listed::Live(cluster, usize::try_from(newer).unwrap_or(usize::MAX))
    }

    /// Line of a decision. In order of time, that of the next older one if it is not listed.
    pub fn line_of(&self, listed: Listed<'_>, id: DecisionId) -> Option<usize> {
        if self.query.filter.sort == Sort::default() {
            let is_newer = |&place: &u32| listed.at(place).is_some_and(|d| d.decision.id > id);
            return Some(self.picked.at.partition_point(is_newer));
        }
        let place = listed.place_of(id)?;
        self.picked.at.iter().position(|&at| at as usize == place)
    }

    /// The decision in a line.
    pub fn id_at(&self, listed: Listed<'_>, line: usize) -> Option<DecisionId> {
        listed.at(*self.picked.at.get(line)?).map(|d| d.decision.id)
    }

    /// The decisions listed, in their order.
    pub fn entries<'a>(&'a self, listed: Listed<'a>) -> impl Iterator<Item = &'a DecisionEntry> + use<'a> {
        self.picked.at.iter().filter_map(move |&place| listed.at(place))
    }

    /// How many decisions there are of a kind, or of all, whichever is listed.
    pub fn count_of(&self, kind: Option<DecisionKind>) -> u32 {
        match kind {
            Some(kind) => self.picked.of_kind[kind as usize],
            None => self.picked.of_any_kind,
        }
    }

    /// How many are listed of how many, and what they add up to.
    pub fn summary(&self, shown: &ViewContext<'_>) -> String {
        let sums = shown.sums(&self.picked.of_pool);
        let prompts = match sums.prompts {
            Some((prompts, _, unit)) => {
                format!("the {} prompt {}", format::count(prompts), unit.to_text())
            }
            None => "the prompts".to_owned(),
        };
        format!(
            "{} shown of {} retained of {} received; KV hit rate {} of {prompts} of those shown",
            format::count(sums.count),
            format::count(self.retained),
            format::count(self.ever),
            sums.rate_text(),
        )
    }
}

/// That the list stays as it is while the reader is in it, and how many decisions came since.
pub fn held_back_text(newer: u64) -> String {
    match newer {
        0 => " · held while you are in the list".to_owned(),
        newer => format!(" · held while you are in the list, {} newer", format::count(newer)),
    }
}

/// On the button that leads to the newest: how many lines are above those in sight.
pub fn above_text(lines: usize) -> String {
    format!("↑ {} newer", format::count(lines as u64))
}

/// How a column orders the lines, for `aria-sort`.
pub fn order_of(column: Column, sort: Sort) -> &'static str {
    match (sort.column == column, sort.is_descending) {
        (false, _) => "none",
        (true, true) => "descending",
        (true, false) => "ascending",
    }
}

/// The decisions that are shown, newest first.
#[derive(Clone, Copy)]
pub enum Listed<'a> {
    /// Those of the state, and how many came since they were looked through.
    Live(&'a Cluster, usize),
    /// Those held since Pause.
    Paused(&'a [DecisionEntry]),
}

impl<'a> Listed<'a> {
    /// The one so many places behind the newest.
    pub fn at(self, place: u32) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster, newer) => cluster.decisions().newest((place as usize).checked_add(newer)?),
            Listed::Paused(decisions) => decisions.get(place as usize),
        }
    }

    /// One by its id.
    pub fn find(self, id: DecisionId) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster, _) => cluster.decisions().get(id),
            Listed::Paused(decisions) => decisions.get(self.place_of(id)?),
        }
    }

    /// How many places behind the newest a decision is.
    fn place_of(self, id: DecisionId) -> Option<usize> {
        match self {
            Listed::Live(cluster, newer) => cluster.decisions().newer_than(id)?.checked_sub(newer),
            Listed::Paused(decisions) => decisions.binary_search_by(|d| id.cmp(&d.decision.id)).ok(),
        }
    }
}
