//! The part that a report is about: by the ids of its request if they are known, else by worker and time ([`super::nearest`]). Must
//! not know which report counts more.

use super::slots::ReportTime;
use super::{RequestBook, RequestIx, RequestPart};
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::record::{DecisionSource, Role};

/// What a report contains that shows which choice it is about.
#[derive(Clone, Copy, Debug)]
pub(in crate::routing) struct CorrelationKey<'a> {
    /// A choice has one report of each source.
    pub(in crate::routing) source: DecisionSource,
    /// When the router decided, by the report.
    pub(in crate::routing) time: ReportTime,
    /// Whether its log names every request that runs, and named none here: a query, which other sources do not report.
    pub(in crate::routing) is_query: bool,
    /// The chosen worker.
    pub(in crate::routing) worker: WorkerIx,
    /// The pool it is in.
    pub(in crate::routing) pool: PoolIx,
    /// What the report says that it does. Before messages name pools, it keeps choices of two pools apart.
    pub(in crate::routing) role: Option<Role>,
    /// The router's id of the request.
    pub(in crate::routing) request_id: Option<&'a str>,
    /// The id of the HTTP span of the request.
    pub(in crate::routing) http_id: Option<&'a str>,
    /// Blocks that the worker held, by the router's count.
    pub(in crate::routing) overlap_blocks: Option<u64>,
    /// Prompt length in blocks, rounded up.
    pub(in crate::routing) isl_blocks: Option<u64>,
}

impl CorrelationKey<'_> {
    pub(super) fn has_id(&self) -> bool {
        self.request_id.is_some() || self.http_id.is_some()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            source: self.source,
            worker: self.worker,
            time: self.time,
            overlap_blocks: self.overlap_blocks,
            isl_blocks: self.isl_blocks,
            has_id: self.has_id(),
        }
    }

    /// Up to 1.3 only the second line of a choice names the request.
    pub(super) fn is_later_line(&self) -> bool {
        self.source == DecisionSource::Log && self.request_id.is_some()
    }
}

/// That a source reported a choice, with what such reports are joined by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) source: DecisionSource,
    /// The worker that it names.
    pub(super) worker: WorkerIx,
    pub(super) time: ReportTime,
    pub(super) overlap_blocks: Option<u64>,
    pub(super) isl_blocks: Option<u64>,
    /// Named by its own source, so that it is about no other request.
    pub(super) has_id: bool,
}

impl RequestBook {
    /// The part that a report is about: one that is known, or a new one.
    pub(in crate::routing) fn join(&mut self, key: &CorrelationKey<'_>, received_ms: Millis) -> DecisionId {
        let request = self.find_request(key.request_id, key.http_id);
        let known = request.and_then(|ix| self.part_in(ix, (key.worker, key.pool), key.role));
        let id = match known.or_else(|| self.join_by_time(key)) {
            Some(id) => id,
            None => self.begin(key, request, received_ms),
        };
        if known.is_none() && key.has_id() {
            self.name(id, key.request_id, key.http_id, received_ms);
        }
        if let Some(part) = self.part_mut(id) {
            let mark = key.mark();
            part.role = part.role.or(key.role);
            match part.marks.iter_mut().find(|mark| mark.source == key.source) {
                // A request that failed was routed again. Its first choice is the decision.
                Some(known) if known.worker != mark.worker => {
                    if mark.time.at < known.time.at {
                        *known = mark;
                        part.slots.take_choice(key.source);
                    }
                }
                Some(known) => {
                    known.has_id |= mark.has_id;
                    known.overlap_blocks = known.overlap_blocks.or(mark.overlap_blocks);
                    known.isl_blocks = known.isl_blocks.or(mark.isl_blocks);
                }
                None => part.marks.push(mark),
            }
            if part.worker != key.worker {
                self.update_worker(id);
            }
        }
        self.changed.insert(id);
        id
    }

    /// A line of a choice for a worker of this role was written. A router that may skip the prefill pool looks at a decode worker and
    /// perhaps at a prefill worker before it chooses, and its log's lines of that are those of choices: a decode worker comes before any
    /// prefill worker. What was only looked at gives way to the choice that follows. Gives whether the line may be that of a look alone.
    pub(in crate::routing) fn pass_look(&mut self, key: &CorrelationKey<'_>) -> bool {
        let Some(role) = key.role.filter(|_| key.source == DecisionSource::Log) else { return false };
        let found = self.find_request(key.request_id, key.http_id);
        let Some(request) = found.and_then(|ix| self.requests.get_mut(&ix)) else {
            return role == Role::Decode;
        };
        let logged = |part: &RequestPart, of: Role| {
            let is_before = part.slots.choice.is_some_and(|choice| choice.time.at <= key.time.at);
            is_before && part.role == Some(of) && part.slots.routed.is_none()
        };
        let has_prefill = request.parts.iter().any(|part| logged(part, Role::Prefill));
        let mut looked_at = None;
        if role == Role::Prefill && !has_prefill {
            looked_at = Some(Role::Decode);
            request.way.is_previewed |= request.parts.iter().any(|part| logged(part, Role::Decode));
        } else if request.way.is_previewed {
            looked_at = Some(role);
        }
        let may_be_look = request.way.is_previewed || (role == Role::Decode && !has_prefill);
        let Some(looked_at) = looked_at else { return may_be_look };
        for part in request.parts.iter_mut().filter(|part| logged(part, looked_at)) {
            part.slots.take_choice(DecisionSource::Log);
            part.marks.retain(|mark| mark.source != DecisionSource::Log);
            self.changed.insert(part.id);
        }
        may_be_look
    }

    /// Where reports of a part name several workers, it is of the one that was chosen first, by the reports' own times. A trace
    /// names the one that responded.
    fn update_worker(&mut self, id: DecisionId) {
        let Some(part) = self.part_mut(id).filter(|part| part.slots.restored.is_none()) else { return };
        let rank = |mark: &&Mark| (mark.source == DecisionSource::RequestTrace, mark.time.at);
        let Some(&Mark { worker, time, .. }) = part.marks.iter().min_by_key(rank) else { return };
        if worker == part.worker {
            return;
        }
        let before =
            (std::mem::replace(&mut part.worker, worker), std::mem::replace(&mut part.begun, time.at));
        self.unindex(id, before);
        self.by_choice.entry(worker).or_default().insert((time.at, id));
    }

    pub(super) fn begin(
        &mut self,
        key: &CorrelationKey<'_>,
        request: Option<RequestIx>,
        received_ms: Millis,
    ) -> DecisionId {
        let ix = request.unwrap_or_else(|| self.request(key.request_id, key.http_id, received_ms));
        self.last += 1;
        let id = DecisionId(self.last);
        let mut part = self.new_part(id, key.worker, key.pool, key.source);
        part.is_query = key.is_query;
        part.begun = key.time.at;
        self.by_choice.entry(key.worker).or_default().insert((key.time.at, id));
        part.role = key.role;
        part.marks.push(key.mark());
        self.add_part(ix, part);
        if key.source == DecisionSource::ActiveSequences {
            self.attract(id, key);
        }
        id
    }

    /// The part of a request on `worker`, else in `pool`: a request that failed on one worker goes to another of its pool.
    pub(super) fn part_in(
        &self,
        ix: RequestIx,
        (worker, pool): (WorkerIx, PoolIx),
        role: Option<Role>,
    ) -> Option<DecisionId> {
        let parts = &self.requests.get(&ix)?.parts;
        let is_apart = |part: &RequestPart| role.is_some() && part.role.is_some() && part.role != role;
        let on_worker = parts.iter().find(|part| part.worker == worker);
        on_worker
            .or_else(|| parts.iter().find(|part| part.pool == pool && !is_apart(part)))
            .map(|part| part.id)
    }
}
