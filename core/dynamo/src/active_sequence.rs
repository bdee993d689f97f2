//! `active_sequences_events`: the life of requests, as routers and workers publish it (reference §3.3).

use std::borrow::Cow;

use super::envelope::Format;
use super::error::{DecodeError, Faults, Reason};
use super::wire::{Fault, InField, Json, Kind, MsgPack, Wire, once, pass, required};
use radixscope_model::id::Worker;
use radixscope_model::record::{Role, SequenceStep, Topic};

/// Longest `token_sequence`: a prompt of a million tokens in blocks of one. Beyond it the message is refused.
pub const MAX_TOKEN_SEQUENCE: usize = 1 << 20;

/// A step in the life of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActiveSequence<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// Where it runs.
    pub worker: Worker,
    /// Its publisher.
    pub router: RouterId,
    /// What happened.
    pub step: SequenceChange,
    /// Whether the worker itself published it (≥ 1.5), not a router.
    pub by_worker: bool,
    /// The LoRA adapter that the request asks for (≥ 1.0). `None`: the message names none.
    pub lora_name: Option<Cow<'a, str>>,
}

/// Who published an [`ActiveSequence`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RouterId {
    /// A discovery instance id (≥ 0.9).
    Number(u64),
    /// The text of a UUID (0.8), or not given.
    Text,
}

/// What happened to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SequenceChange {
    /// Routed to the worker.
    Added(AddRequest),
    /// First output token.
    PrefillCompleted,
    /// Finished or given up.
    Freed,
}

impl SequenceChange {
    /// Which step, without its details.
    pub const fn kind(&self) -> SequenceStep {
        match self {
            SequenceChange::Added(_) => SequenceStep::Added,
            SequenceChange::PrefillCompleted => SequenceStep::PrefillCompleted,
            SequenceChange::Freed => SequenceStep::Freed,
        }
    }
}

/// A router's message about a request that it routes. Which fields are set depends on the version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AddRequest {
    /// Chain hashes of the prompt's full blocks (reference §5.10).
    pub token_sequence: Option<Vec<u64>>,
    /// Length of the prompt in tokens (0.8 – 1.1).
    pub isl: Option<u64>,
    /// Blocks that the worker held already (0.8 – 1.1).
    pub overlap: Option<u64>,
    /// Output tokens expected.
    pub expected_output_tokens: Option<u64>,
    /// Whether the router counts the prefill (≥ 1.1).
    pub track_prefill_tokens: Option<bool>,
    /// Prompt tokens that the worker has to prefill (≥ 1.1).
    pub initial_effective_prefill_tokens: Option<u64>,
}

impl AddRequest {
    /// The chosen worker's role, as far as the form of the message shows it, in a disaggregated deployment.
    ///
    /// The router of prefill workers does not count blocks of active requests and gives no `token_sequence`; that of decode
    /// workers does not count prompts to prefill. A router of aggregated workers with `router_track_active_blocks` or
    /// `router_track_prefill_tokens` off sends the same form: it is a sign, and model cards, metrics and logs go before it. `None`: it is the form of aggregated workers, or of decode workers up to 1.0.
    pub const fn role_sign(&self) -> Option<Role> {
        if matches!(self.track_prefill_tokens, Some(false)) {
            return Some(Role::Decode);
        }
        let has_length =
            self.initial_effective_prefill_tokens.is_some() || self.isl.is_some() || self.overlap.is_some();
        if self.token_sequence.is_none() && has_length { Some(Role::Prefill) } else { None }
    }
}

/// Appends the contents of an `active_sequences_events` message to `into`: one step (NATS) or a batch
/// (`{"events":[…]}`, ZMQ).
///
/// # Errors
/// What was not understood; in a batch a bad step costs none of its neighbours.
pub fn decode<'a>(body: &'a [u8], format: Format, into: &mut Vec<ActiveSequence<'a>>) -> Result<(), Faults> {
    match format {
        Format::Json => message(&mut Json::new(body), into),
        Format::MsgPack => message(&mut MsgPack::new(body), into),
    }
}

fn message<'a, W: Wire<'a>>(wire: &mut W, into: &mut Vec<ActiveSequence<'a>>) -> Result<(), Faults> {
    let mut faults = Faults::default();
    let read = one_or_batch(wire, into, &mut faults).and_then(|()| wire.end());
    if let Err(fault) = read {
        faults.count(fault.reason, || to_decode_error(fault));
    }
    faults.into_result()
}

/// The batch is known by its key `events`, which a single step does not have.
fn one_or_batch<'a, W: Wire<'a>>(
    wire: &mut W,
    into: &mut Vec<ActiveSequence<'a>>,
    faults: &mut Faults,
) -> Result<(), Fault> {
    let (start, mut found, mut batch) = (wire.at(), Parts::default(), false);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        if key == b"events" && !batch {
            batch = true;
            steps(wire, into, faults).field("events")?;
        } else {
            found.take(key, wire)?;
        }
    }
    if !batch {
        into.push(found.finish(start)?);
    }
    Ok(())
}

fn steps<'a, W: Wire<'a>>(
    wire: &mut W,
    into: &mut Vec<ActiveSequence<'a>>,
    faults: &mut Faults,
) -> Result<(), Fault> {
    let mut left = wire.array()?;
    while wire.next_element(&mut left)? {
        let mark = wire.mark();
        match step_of_batch(wire) {
            Ok(step) => into.push(step),
            Err(fault) => {
                wire.rewind(mark);
                pass(wire, fault, faults, to_decode_error)?;
            }
        }
    }
    Ok(())
}

fn step_of_batch<'a, W: Wire<'a>>(wire: &mut W) -> Result<ActiveSequence<'a>, Fault> {
    let (start, mut found) = (wire.at(), Parts::default());
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        found.take(key, wire)?;
    }
    found.finish(start)
}

/// The fields of a step while they come in, in any order.
#[derive(Default)]
struct Parts<'a> {
    request_id: Option<Cow<'a, str>>,
    worker: Option<Worker>,
    router: Option<RouterId>,
    step: Option<SequenceChange>,
    lora_name: Option<Cow<'a, str>>,
}

impl<'a> Parts<'a> {
    fn take<W: Wire<'a>>(&mut self, key: &[u8], wire: &mut W) -> Result<(), Fault> {
        let at = wire.at();
        match key {
            b"request_id" => once(&mut self.request_id, wire.text().field("request_id")?, "request_id", at),
            b"worker" => once(&mut self.worker, worker(wire).field("worker")?, "worker", at),
            b"router_id" => once(&mut self.router, router(wire).field("router_id")?, "router_id", at),
            b"data" => once(&mut self.step, step(wire).field("data")?, "data", at),
            // Nothing else depends on it: in a form that is not known it costs no message.
            b"lora_name" if wire.kind()? == Kind::Text => {
                self.lora_name = Some(wire.text().field("lora_name")?).filter(|name| !name.is_empty());
                Ok(())
            }
            _ => wire.skip(),
        }
    }

    fn finish(self, start: usize) -> Result<ActiveSequence<'a>, Fault> {
        let worker = required(self.worker, "worker", start)?;
        let router = self.router.unwrap_or(RouterId::Text);
        Ok(ActiveSequence {
            request_id: required(self.request_id, "request_id", start)?,
            worker,
            router,
            step: required(self.step, "data", start)?,
            by_worker: router == RouterId::Number(worker.id.0),
            lora_name: self.lora_name,
        })
    }
}

fn worker<'a, W: Wire<'a>>(wire: &mut W) -> Result<Worker, Fault> {
    let (start, mut worker_id, mut dp_rank) = (wire.at(), None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"worker_id" => once(&mut worker_id, wire.u64().field("worker_id")?, "worker_id", at)?,
            b"dp_rank" => once(&mut dp_rank, wire.optional(W::u32).field("dp_rank")?, "dp_rank", at)?,
            _ => wire.skip()?,
        }
    }
    Ok(Worker::new(required(worker_id, "worker_id", start)?, dp_rank.flatten().unwrap_or(0)))
}

fn router<'a, W: Wire<'a>>(wire: &mut W) -> Result<RouterId, Fault> {
    if matches!(wire.kind()?, Kind::Text | Kind::Nil) {
        return wire.skip().map(|()| RouterId::Text);
    }
    wire.u64().map(RouterId::Number)
}

/// `"Free"`, `"MarkPrefillCompleted"`, or `{"AddRequest":{…}}`.
fn step<'a, W: Wire<'a>>(wire: &mut W) -> Result<SequenceChange, Fault> {
    const KINDS: &str = "expected AddRequest, MarkPrefillCompleted or Free";
    let start = wire.at();
    if wire.kind()? == Kind::Text {
        return match wire.word()? {
            b"Free" => Ok(SequenceChange::Freed),
            b"MarkPrefillCompleted" => Ok(SequenceChange::PrefillCompleted),
            _ => Err(Fault::new(Reason::UnknownKind, KINDS, start)),
        };
    }
    let mut left = wire.map()?;
    let step = match wire.next_key(&mut left)? {
        Some(b"AddRequest") => SequenceChange::Added(add_request(wire).field("AddRequest")?),
        Some(b"Free") => wire.skip().map(|()| SequenceChange::Freed)?,
        Some(b"MarkPrefillCompleted") => wire.skip().map(|()| SequenceChange::PrefillCompleted)?,
        Some(_) => return Err(Fault::new(Reason::UnknownKind, KINDS, start)),
        None => return Err(Fault::missing("AddRequest, MarkPrefillCompleted or Free", start)),
    };
    if wire.next_key(&mut left)?.is_some() {
        return Err(Fault::new(Reason::Malformed, "has more than one kind", start));
    }
    Ok(step)
}

fn add_request<'a, W: Wire<'a>>(wire: &mut W) -> Result<AddRequest, Fault> {
    let mut request = AddRequest::default();
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"token_sequence" => {
                request.token_sequence = wire.optional(token_sequence).field("token_sequence")?;
            }
            b"isl" => request.isl = wire.optional(W::u64).field("isl")?,
            b"overlap" => request.overlap = wire.optional(W::u64).field("overlap")?,
            b"expected_output_tokens" => {
                request.expected_output_tokens = wire.optional(W::u64).field("expected_output_tokens")?;
            }
            b"track_prefill_tokens" => {
                request.track_prefill_tokens = wire.optional(W::bool).field("track_prefill_tokens")?;
            }
            b"prefill_load_hint" => {
                let hint = wire.optional(prefill_load_hint).field("prefill_load_hint")?;
                request.initial_effective_prefill_tokens = hint.flatten();
            }
            _ => wire.skip()?,
        }
    }
    Ok(request)
}

/// Hashes of a prompt's blocks, at most [`MAX_TOKEN_SEQUENCE`].
pub(super) fn token_sequence<'a, W: Wire<'a>>(wire: &mut W) -> Result<Vec<u64>, Fault> {
    let mut hashes = Vec::new();
    let mut left = wire.array()?;
    while wire.next_element(&mut left)? {
        if hashes.len() == MAX_TOKEN_SEQUENCE {
            return Err(Fault::new(Reason::TooLarge, "more than 2^20 hashes in a request", wire.at()));
        }
        hashes.push(wire.hash()?);
    }
    Ok(hashes)
}

fn prefill_load_hint<'a, W: Wire<'a>>(wire: &mut W) -> Result<Option<u64>, Fault> {
    const TOKENS: &str = "initial_effective_prefill_tokens";
    let mut tokens = None;
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"initial_effective_prefill_tokens" => tokens = wire.optional(W::u64).field(TOKENS)?,
            _ => wire.skip()?,
        }
    }
    Ok(tokens)
}

#[cold]
fn to_decode_error(fault: Fault) -> DecodeError {
    fault.into_error(Topic::ActiveSequences.as_str())
}
