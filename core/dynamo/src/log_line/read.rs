//! From a message and its fields to an event. One function per phrase; the phrases are Dynamo's (reference §7.3).

use super::event::{
    Dispatched, Ending, Formula, LogEvent, OverlapRefreshed, PrefillBypassed, RequestDone, RequestIds,
    RequestReceived, RouteDone, RoutedDirectly, RoutingBest, RoutingInput, Selected, SelectedWithoutKv,
    SessionLookup, Terms, Tie, Unreachable, UnreachableWhy,
};
use super::fields::{FieldKey, Fields};
use super::printed::Printed;
use super::scan::Scan;
use super::sign::sign;
use super::started;
use crate::error::Reason;
use crate::wire::{Fault, InField};
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{MAX_SESSION_BYTES, Role, RoutingMode};

/// Spans of this name are written by the KV-aware mode; other modes write the same words.
const ROUTE_SPAN: &str = "kv_router.route_request";
/// Of the same, by the other modes.
const PLAIN_ROUTE_SPAN: &str = "router.route_request";

/// A message with what is known around it.
pub(super) struct LogMessage<'a> {
    /// Spans and target of a line of text, the target of JSONL.
    pub(super) scope: &'a str,
    /// In text together with the fields behind it.
    pub(super) text: &'a str,
    /// Fields of JSONL; in text they are read when they are needed.
    pub(super) fields: Option<Fields<'a>>,
}

impl<'a> LogMessage<'a> {
    /// The fields, `behind` the words of the message.
    pub(super) fn fields(self, behind: &'a str) -> Fields<'a> {
        self.fields.unwrap_or_else(|| Fields::of_text(behind))
    }

    /// What follows `phrase`, if these are all words of the message and only fields follow.
    fn after(&self, phrase: &str) -> Option<&'a str> {
        let rest = self.text.strip_prefix(phrase)?;
        let first = rest.strip_prefix(' ').unwrap_or_default().split(' ').next().unwrap_or_default();
        (rest.trim().is_empty() || first.contains('=')).then_some(rest)
    }

    /// Whether it was written in the span in which a request is given to its worker.
    fn is_of_route(&self) -> bool {
        self.is_of(ROUTE_SPAN)
    }

    fn is_of(&self, span: &str) -> bool {
        match &self.fields {
            Some(fields) => fields.get(FieldKey::SpanName) == Some(span),
            None => self.scope.split([':', ' ']).any(|of| of == span),
        }
    }

    /// Whether the frontend's measurements say it, and no other part in the same words.
    fn is_of_metrics(&self) -> bool {
        self.scope.trim_end_matches([':', ' ']).ends_with("::metrics")
    }
}

/// Reads a message; `None` if it is not about routing.
pub(super) fn event(message: LogMessage<'_>) -> Result<Option<LogEvent<'_>>, Fault> {
    let text = message.text;
    if let Some(rest) = text.strip_prefix("Multiple workers tied with same logit") {
        return Ok(Some(LogEvent::Tie(Tie { ids: message.fields(rest).take_ids() })));
    }
    if let Some((pinned, rest)) = either(text, "Formula for ", "Pinned formula for ") {
        return formula(message, rest, pinned)
            .field("formula")
            .map(|formula| Some(LogEvent::Formula(formula)));
    }
    if let Some((pinned, rest)) = either(text, "Selected worker", "Selected pinned worker") {
        return selected(message, rest, pinned).field("selection");
    }
    if let Some(rest) = message.after("Session affinity hit: reusing pinned worker") {
        return session_lookup(message.fields(rest), true).field("session").map(Some);
    }
    if let Some(rest) = message.after("session affinity miss: new session, pinning after worker selection") {
        return session_lookup(message.fields(rest), false).field("session").map(Some);
    }
    if let Some(rest) = text.strip_prefix("[ROUTING] Best: ") {
        return routing_best(message, rest).field("best worker").map(Some);
    }
    if let Some(rest) = text.strip_prefix("[ROUTING_INPUT] request local hashes") {
        return routing_input(message.fields(rest)).field("routing input").map(Some);
    }
    if let Some(rest) = message.after("Conditional disagg routing to decode worker") {
        let mut fields = message.fields(rest);
        let bypassed = fields
            .worker()
            .map(|worker| LogEvent::PrefillBypassed(PrefillBypassed { worker, ids: fields.take_ids() }));
        return bypassed.field("bypass").map(Some);
    }
    if let Some(rest) = message.after("refreshed overlap scores after long queue wait") {
        return overlap_refreshed(message.fields(rest)).field("queue wait").map(Some);
    }
    for (phrase, ending) in [
        ("route request completed", Ending::Completed),
        ("route request cancelled", Ending::Cancelled),
        ("route request failed", Ending::Failed),
    ] {
        if let Some(rest) = message.after(phrase) {
            return route_done(message, rest, ending).field("route");
        }
    }
    if let Some(rest) = message.after("request completed").filter(|_| message.is_of_metrics()) {
        return request_done(message.fields(rest)).field("request").map(Some);
    }
    if let Some(rest) = message.after("request received").filter(|_| message.is_of_metrics()) {
        return request_received(message.fields(rest)).field("request").map(Some);
    }
    // In text its first word passes for a target.
    let is_dump = message.scope.trim_end().ends_with("CONFIG_DUMP:");
    if let Some(dump) = text.strip_prefix("CONFIG_DUMP: ").or(is_dump.then_some(text)) {
        return Ok(started::dumped(dump).map(LogEvent::StartedWith));
    }
    if let Some(rest) = message.after("Activating prefill router") {
        let printed = match &message.fields {
            Some(fields) => fields.get(FieldKey::KvTuning).unwrap_or_default(),
            // It is printed with spaces in it.
            None => rest,
        };
        return Ok(started::printed(printed).map(LogEvent::StartedWith));
    }
    if let Some(rest) = text.strip_prefix("Adding worker WorkerWithDpRank ") {
        return worker_with_rank(rest).field("worker").map(|worker| Some(LogEvent::WorkerAdded(worker)));
    }
    if let Some(rest) = text.strip_prefix("Removing worker WorkerWithDpRank ") {
        return worker_with_rank(rest).field("worker").map(|worker| Some(LogEvent::WorkerRemoved(worker)));
    }
    if text.starts_with("Runtime shutdown initiated") {
        return Ok(Some(LogEvent::Stopping));
    }
    // In text its first word passes for a target.
    let phrase = text.strip_prefix("DISCOVERY: ").unwrap_or(text);
    if let Some(rest) = phrase.strip_prefix("Generate endpoint instance removed, removing worker ") {
        let id = Scan::new(rest).u64().field("worker")?;
        return Ok(Some(LogEvent::InstanceRemoved(WorkerId(id))));
    }
    sign(message)
}

/// Whether a message begins with the second of two phrases, and what follows.
fn either<'a>(message: &'a str, usual: &str, pinned: &str) -> Option<(bool, &'a str)> {
    let usual = message.strip_prefix(usual).map(|rest| (false, rest));
    usual.or_else(|| message.strip_prefix(pinned).map(|rest| (true, rest)))
}

fn formula<'a>(message: LogMessage<'a>, text: &'a str, pinned: bool) -> Result<Formula<'a>, Fault> {
    let mut scan = Scan::new(text);
    let worker = worker_and_rank(&mut scan)?;
    scan.expect(" with ")?;
    let cached_blocks = scan.number()?;
    scan.expect(" ")?;
    scan.one_of(&["cached blocks", "effective cached blocks"])?;
    let shared = match scan.one_of(&[", ", ": "])? {
        0 => {
            let shared = shared(&mut scan)?;
            scan.expect(": ")?;
            Some(shared)
        }
        _ => None,
    };
    let logit = scan.number()?;
    scan.expect(" = ")?;
    let terms = match scan.choose(&[
        "prefill_load_scale * adjusted_prefill_blocks + decode_blocks",
        "max(0, decode_blocks - overlap_credit_blocks) + active_request_cost_blocks = ",
    ])? {
        Some(0) => scaled_terms(&mut scan, shared),
        Some(_) => decode_terms(&mut scan),
        None => weighted_terms(&mut scan),
    }?;
    scan.end()?;
    let ids = message.fields(scan.rest()).take_ids();
    Ok(Formula { ids, worker, pinned, cached_blocks, logit, terms })
}

fn shared(scan: &mut Scan<'_>) -> Result<(u64, Printed), Fault> {
    let blocks = scan.u64()?;
    scan.expect(" shared blocks beyond device (multiplier=")?;
    let multiplier = scan.number()?;
    scan.expect(")")?;
    Ok((blocks, multiplier))
}

fn weighted_terms(scan: &mut Scan<'_>) -> Result<Terms, Fault> {
    let weight = scan.number()?;
    scan.expect(" * prefill_blocks + decode_blocks = ")?;
    let again = scan.number()?;
    scan.expect(" * ")?;
    if again != weight {
        return Err(scan.fault(Reason::Malformed, "two different weights"));
    }
    let prefill_blocks = scan.number()?;
    scan.expect(" + ")?;
    Ok(Terms::Weighted { weight, prefill_blocks, decode_blocks: scan.number()? })
}

fn scaled_terms(scan: &mut Scan<'_>, shared: Option<(u64, Printed)>) -> Result<Terms, Fault> {
    let with_active = scan.one_of(&[" + active_request_cost_blocks = ", " = "])? == 0;
    let scale = scan.number()?;
    scan.expect(" * ")?;
    let adjusted_prefill_blocks = scan.number()?;
    scan.expect(" + ")?;
    let decode_blocks = scan.number()?;
    let active_request_blocks = match with_active {
        true => {
            scan.expect(" + ")?;
            Some(scan.number()?)
        }
        false => None,
    };
    scan.expect(" (raw_prefill_blocks: ")?;
    let raw_prefill_blocks = scan.number()?;
    scan.expect(", overlap_credit_blocks: ")?;
    let overlap_credit_blocks = scan.number()?;
    let overlap_credit_decay = match scan.one_of(&[", overlap_credit_decay: ", ")"])? {
        0 => {
            let decay = scan.number()?;
            scan.expect(")")?;
            Some(decay)
        }
        _ => None,
    };
    Ok(Terms::Scaled {
        scale,
        adjusted_prefill_blocks,
        decode_blocks,
        active_request_blocks,
        raw_prefill_blocks,
        overlap_credit_blocks,
        overlap_credit_decay,
        shared,
    })
}

fn decode_terms(scan: &mut Scan<'_>) -> Result<Terms, Fault> {
    scan.expect("max(0, ")?;
    let decode_blocks = scan.number()?;
    scan.expect(" - ")?;
    let overlap_credit_blocks = scan.number()?;
    scan.expect(") + ")?;
    Ok(Terms::Decode { decode_blocks, overlap_credit_blocks, active_request_blocks: scan.number()? })
}

/// In words up to 1.2, with fields from 1.3 on; the latter are also written by other modes of routing, and by the
/// KV-aware one a second time, as `direct`, when it gives the request to the worker that it chose.
fn selected<'a>(message: LogMessage<'a>, rest: &'a str, pinned: bool) -> Result<Option<LogEvent<'a>>, Fault> {
    if let Some(phrase) = rest.strip_prefix(": ") {
        return selected_to_text(message, phrase, pinned).map(|selected| Some(LogEvent::Selected(selected)));
    }
    if !rest.is_empty() && !rest.starts_with(' ') {
        return Ok(None);
    }
    let is_of_route = message.is_of_route();
    let mut fields = message.fields(rest);
    if is_of_route && fields.get(FieldKey::RouterMode) == Some("direct") {
        return dispatched(fields).map(|dispatched| dispatched.map(LogEvent::Dispatched));
    }
    if let Some(mode) = fields.get(FieldKey::RouterMode).filter(|mode| *mode != "kv") {
        let mode = RoutingMode::of(mode);
        // Whatever the span: what has an overlap was chosen by KV.
        let is_by_kv = is_of_route || fields.get(FieldKey::OverlapBlocks).is_some();
        return if is_by_kv { Ok(None) } else { without_kv(fields, mode).map(Some) };
    }
    Ok(Some(LogEvent::Selected(Selected {
        worker: fields.worker()?,
        pinned,
        logit: fields.need_number(FieldKey::Logit)?,
        cached_blocks: fields.number(FieldKey::EffectiveCachedBlocks)?,
        tree_size_blocks: None,
        total_blocks: fields.u64(FieldKey::TotalKvBlocks)?,
        host_pinned_blocks: fields.u64(FieldKey::HostPinnedBlocks)?,
        disk_blocks: fields.u64(FieldKey::DiskBlocks)?,
        ids: fields.take_ids(),
        worker_type: fields.role(FieldKey::WorkerType),
    })))
}

fn session_lookup(mut fields: Fields<'_>, is_bound: bool) -> Result<LogEvent<'_>, Fault> {
    let session_id = fields.need(FieldKey::SessionId)?;
    if session_id.is_empty() || session_id.len() > MAX_SESSION_BYTES {
        return Err(Fault::new(Reason::TooLarge, "expected 1 to 256 bytes", 0)).field("session_id");
    }
    let bound_to = if is_bound { Some(fields.worker()?) } else { None };
    Ok(LogEvent::SessionLookup(SessionLookup { ids: fields.take_ids(), session_id, bound_to }))
}

fn without_kv(mut fields: Fields<'_>, mode: RoutingMode) -> Result<LogEvent<'_>, Fault> {
    Ok(LogEvent::SelectedWithoutKv(SelectedWithoutKv {
        worker: WorkerId(fields.need_u64(FieldKey::WorkerId)?),
        mode,
        candidate_count: fields.u64(FieldKey::CandidateCount)?,
        occupancy: fields.u64(FieldKey::Occupancy)?,
        ids: fields.take_ids(),
    }))
}

/// `None`: the span has no overlap: the worker was chosen without one.
fn dispatched(mut fields: Fields<'_>) -> Result<Option<Dispatched<'_>>, Fault> {
    let Some(overlap_blocks) = fields.u64(FieldKey::OverlapBlocks)? else { return Ok(None) };
    let (worker, ids) = (fields.worker()?, fields.take_ids());
    Ok(Some(Dispatched { ids, worker, overlap_blocks, phase: fields.role(FieldKey::Phase) }))
}

fn selected_to_text<'a>(
    message: LogMessage<'a>,
    phrase: &'a str,
    pinned: bool,
) -> Result<Selected<'a>, Fault> {
    let mut scan = Scan::new(phrase);
    let worker_type = match scan.choose(&["worker_type="])? {
        Some(_) => {
            Some(scan.until(", ").ok_or(scan.fault(Reason::Truncated, "the worker's type has no end"))?)
        }
        None => None,
    };
    let worker = worker_and_rank(&mut scan)?;
    scan.expect(", logit: ")?;
    let mut selected = Selected {
        ids: RequestIds::default(),
        worker,
        worker_type: worker_type.and_then(Role::of),
        pinned,
        logit: scan.number()?,
        cached_blocks: None,
        tree_size_blocks: None,
        total_blocks: None,
        host_pinned_blocks: None,
        disk_blocks: None,
    };
    while !scan.rest().is_empty() && scan.choose(&[", "])?.is_some() {
        let name = scan.until(": ").ok_or(scan.fault(Reason::Truncated, "a name without a number"))?;
        match name {
            "cached blocks" | "effective cached blocks" => selected.cached_blocks = Some(scan.number()?),
            "tree size" => selected.tree_size_blocks = Some(scan.u64()?),
            "total blocks" => selected.total_blocks = Some(scan.u64()?),
            "host_pinned blocks" => selected.host_pinned_blocks = Some(scan.u64()?),
            "disk blocks" => selected.disk_blocks = Some(scan.u64()?),
            _ => _ = scan.number()?,
        }
    }
    scan.end()?;
    selected.ids = message.fields(scan.rest()).take_ids();
    Ok(selected)
}

fn routing_best<'a>(message: LogMessage<'a>, rest: &'a str) -> Result<LogEvent<'a>, Fault> {
    let mut scan = Scan::new(rest);
    scan.expect("worker_")?;
    let id = scan.u64()?;
    scan.expect(" dp_rank=")?;
    let worker = Worker::new(id, scan.u32()?);
    scan.expect(" with ")?;
    let overlap_blocks = scan.u64()?;
    scan.expect("/")?;
    let total_blocks = scan.u64()?;
    scan.expect(" blocks overlap")?;
    scan.end()?;
    let ids = message.fields(scan.rest()).take_ids();
    Ok(LogEvent::RoutingBest(RoutingBest { ids, worker, overlap_blocks, total_blocks }))
}

fn routing_input(mut fields: Fields<'_>) -> Result<LogEvent<'_>, Fault> {
    Ok(LogEvent::RoutingInput(RoutingInput {
        isl_tokens: fields.need_u64(FieldKey::IslTokens)?,
        block_size_tokens: fields.need_u64(FieldKey::BlockSize)?,
        num_blocks: fields.need_u64(FieldKey::NumBlocks)?,
        local_hashes: fields.hashes(FieldKey::LocalHashes)?,
        request_id: fields.need(FieldKey::RequestId)?,
        http_id: fields.take_http_id(),
    }))
}

fn route_done<'a>(
    mut message: LogMessage<'a>,
    rest: &'a str,
    ending: Ending,
) -> Result<Option<LogEvent<'a>>, Fault> {
    let is_by_kv = message.is_of_route();
    if !is_by_kv && !message.is_of(PLAIN_ROUTE_SPAN) {
        return Ok(None);
    }
    let mut fields = message.fields.take().unwrap_or_else(|| Fields::of_route_text(rest));
    if !is_by_kv {
        let is_direct = fields.get(FieldKey::RouterMode).map(RoutingMode::of) == Some(RoutingMode::Direct);
        return match ending {
            Ending::Failed => unreachable(fields),
            // Of other modes the line of the choice says it all.
            _ if is_direct => routed_directly(fields, ending),
            _ => Ok(None),
        };
    }
    Ok(Some(LogEvent::RouteDone(RouteDone {
        worker: fields.worker()?,
        overlap_blocks: fields.u64(FieldKey::OverlapBlocks)?,
        request_id: fields.need(FieldKey::RequestId)?,
        http_id: fields.take_http_id(),
        phase: fields.role(FieldKey::Phase),
        ending,
        outcome: fields.take(FieldKey::Outcome),
    })))
}

/// `None`: the request named no worker.
fn routed_directly(mut fields: Fields<'_>, ending: Ending) -> Result<Option<LogEvent<'_>>, Fault> {
    let worker = fields.worker_id(FieldKey::WorkerId)?;
    let ids = fields.take_ids();
    Ok(worker.map(|worker| LogEvent::RoutedDirectly(RoutedDirectly { ids, worker, ending })))
}

fn overlap_refreshed(mut fields: Fields<'_>) -> Result<LogEvent<'_>, Fault> {
    let wait_ms = fields.need_u64(FieldKey::WaitMs)?;
    Ok(LogEvent::OverlapRefreshed(OverlapRefreshed {
        request_id: fields.need(FieldKey::RequestId)?,
        wait_ms,
    }))
}

/// `None`: the request failed for another reason, or before a worker was chosen.
fn unreachable(mut fields: Fields<'_>) -> Result<Option<LogEvent<'_>>, Fault> {
    let why = fields.get(FieldKey::Outcome).and_then(UnreachableWhy::of);
    let worker = fields.worker_id(FieldKey::WorkerId)?;
    let event = |(why, worker)| LogEvent::Unreachable(Unreachable { ids: fields.take_ids(), worker, why });
    Ok(why.zip(worker).map(event))
}

fn request_done(mut fields: Fields<'_>) -> Result<LogEvent<'_>, Fault> {
    Ok(LogEvent::RequestDone(RequestDone {
        input_tokens: fields.u64(FieldKey::InputTokens)?,
        output_tokens: fields.u64(FieldKey::OutputTokens)?,
        ttft_ms: fields.ms(FieldKey::TtftMs)?,
        avg_itl_ms: fields.ms(FieldKey::AvgItlMs)?,
        elapsed_ms: fields.ms(FieldKey::ElapsedMs)?,
        prefill_worker: fields.worker_id(FieldKey::PrefillWorkerId)?,
        decode_worker: fields.worker_id(FieldKey::DecodeWorkerId)?,
        request_id: fields.need(FieldKey::RequestId)?,
        http_id: fields.take_http_id(),
        model: fields.take(FieldKey::Model),
        status: fields.take(FieldKey::Status),
    }))
}

fn request_received(mut fields: Fields<'_>) -> Result<LogEvent<'_>, Fault> {
    let (request_id, http_id) = (fields.need(FieldKey::RequestId)?, fields.take_http_id());
    Ok(LogEvent::RequestReceived(RequestReceived {
        request_id,
        http_id,
        model: fields.take(FieldKey::Model),
    }))
}

/// `worker_id=7 dp_rank=0`
fn worker_and_rank(scan: &mut Scan<'_>) -> Result<Worker, Fault> {
    scan.expect("worker_id=")?;
    let id = scan.u64()?;
    scan.expect(" dp_rank=")?;
    Ok(Worker::new(id, scan.u32()?))
}

/// `{ worker_id: 7, dp_rank: 0 }`
fn worker_with_rank(text: &str) -> Result<Worker, Fault> {
    let mut scan = Scan::new(text);
    scan.expect("{ worker_id: ")?;
    let id = scan.u64()?;
    scan.expect(", dp_rank: ")?;
    let worker = Worker::new(id, scan.u32()?);
    scan.expect(" }")?;
    scan.end()?;
    Ok(worker)
}
