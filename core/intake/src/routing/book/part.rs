//! A request with its parts, each a decision in one pool, as the book has them.

use std::sync::Arc;

use super::join::Mark;
use super::slots::{Completed, LoggedChoice, PromptHashes, Session, Slots, Steps, TracedCosts};
use crate::routing::reconstruct::RouterReport;
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{ClientMeasured, DecisionSource, Role};

/// A request in one pool: a decision.
pub(in crate::routing) struct RequestPart {
    pub(in crate::routing) id: DecisionId,
    pub(in crate::routing) worker: WorkerIx,
    pub(in crate::routing) pool: PoolIx,
    /// What its worker does, by a report.
    pub(super) role: Option<Role>,
    /// The source that reported it first.
    pub(super) source: DecisionSource,
    pub(in crate::routing) slots: Slots,
    /// While costs may be computed from it.
    pub(in crate::routing) prompt: Option<PromptHashes>,
    /// Whether a router's message or a log named the prompt, also if it was dropped since.
    pub(in crate::routing) was_named: bool,
    /// What the router names the prompt by in its messages, where that is something else: its loads are of such hashes.
    pub(in crate::routing) tracked: Option<Arc<[u64]>>,
    /// From when loads count it, and whether that is the time of the log's line of its choice.
    pub(in crate::routing) counted: Option<(Micros, bool)>,
    /// What its costs were computed from.
    pub(in crate::routing) computed_from: Option<RouterReport>,
    /// When the prompt was received.
    pub(super) prompt_ms: Millis,
    /// Under which time its worker's choices have it.
    pub(super) begun: Micros,
    pub(super) marks: Vec<Mark>,
    pub(super) is_query: bool,
    /// The other choice for its request, if only their times show it.
    pub(super) paired: Option<DecisionId>,
}

impl RequestPart {
    /// The source that reported it first.
    pub(in crate::routing) fn source(&self) -> DecisionSource {
        self.source
    }

    /// What its worker does, by a report: `decode` also of a worker that does both.
    pub(in crate::routing) fn role(&self) -> Option<Role> {
        self.role
    }

    /// From when the router counts it, and whether its log has that time. Where a router looks at both pools first, its messages alone
    /// tell. `is_decode`: whether its pool decodes alone.
    pub(in crate::routing) fn counted_from(&self, is_decode: bool) -> Option<(Micros, bool)> {
        let is_apart = is_decode || self.role == Some(Role::Prefill);
        let is_choice = |of: &LoggedChoice| !(of.time.is_received || of.may_be_look && is_apart);
        let by_line = self.slots.choice.filter(is_choice).map(|of| (of.time.at, true));
        by_line.or_else(|| self.slots.sequence.as_ref().map(|of| (of.time.at, false)))
    }

    /// When the prompt was received.
    pub(in crate::routing) fn prompt_ms(&self) -> Millis {
        self.prompt_ms
    }

    pub(super) fn mark(&self, source: DecisionSource) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.source == source)
    }

    pub(super) fn has_id(&self) -> bool {
        self.marks.iter().any(|mark| mark.has_id)
    }

    /// Blocks of the prompt as it is kept.
    pub(super) fn prompt_blocks(&self) -> usize {
        let tracked = self.tracked.as_ref().map_or(0, |chain| chain.len());
        tracked + self.prompt.as_ref().map_or(0, |prompt| prompt.prompt().len())
    }

    /// Drops the prompt; gives how many blocks it had.
    pub(super) fn drop_prompt(&mut self) -> usize {
        let blocks = self.prompt_blocks();
        (self.prompt, self.tracked) = (None, None);
        blocks
    }
}

/// The way of a request to its workers, by lines of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::routing) struct RequestWay {
    /// When the frontend received it.
    pub(in crate::routing) arrived: Option<Micros>,
    /// The router skipped the prefill pool.
    pub(in crate::routing) is_bypassed: bool,
    /// The router looked up what workers hold once more, when the request had waited.
    pub(in crate::routing) is_refreshed: bool,
    /// The router looked at both pools before it chose ([`RequestBook::pass_look`](super::RequestBook::pass_look)).
    pub(in crate::routing) is_previewed: bool,
}

impl RequestWay {
    /// Adds what other lines say.
    pub(super) fn add(&mut self, more: Self) {
        self.arrived = self.arrived.or(more.arrived);
        self.is_bypassed |= more.is_bypassed;
        self.is_refreshed |= more.is_refreshed;
        self.is_previewed |= more.is_previewed;
    }
}

/// A request with its parts, in the order in which they were received.
pub(super) struct JoinedRequest {
    pub(super) request_id: Option<Box<str>>,
    pub(super) http_ids: Vec<Box<str>>,
    pub(super) parts: Vec<RequestPart>,
    pub(super) completed: Option<Completed>,
    /// The session that it is of.
    pub(super) session: Option<Session>,
    /// What its client measured.
    pub(super) client: Option<ClientMeasured>,
    /// Whether that was recorded: the state may have forgotten the decision since.
    pub(super) is_client_recorded: bool,
    /// The id of its trace, by its log.
    pub(super) trace_id: Option<Box<str>>,
    /// What candidates cost, by the router's trace: of each pool, and of choices that were made again.
    pub(super) traced_costs: Vec<TracedCosts>,
    /// What lines about the whole request say of its way.
    pub(super) way: RequestWay,
    /// Steps in pools in which no choice is known.
    pub(super) steps: Vec<(PoolIx, Steps)>,
    pub(super) received_ms: Millis,
    pub(super) due: Option<Millis>,
}
