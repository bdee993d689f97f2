//! `active_sequences_events`: the life of requests, as routers and workers publish it (reference §3.3).

use std::borrow::Cow;

use super::envelope::Format;
use super::error::Faults;
use super::typed::{self, Bounded, Hash, TextOrOther};
use super::wire::{Fault, InField, Json, MsgPack, Wire};
use radixscope_model::id::Worker;
use radixscope_model::record::{Role, SequenceStep, Topic};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

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
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct AddRequest {
    /// Chain hashes of the prompt's full blocks (reference §5.10).
    #[serde(default, deserialize_with = "token_sequence")]
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
    #[serde(default, rename = "prefill_load_hint", deserialize_with = "prefill_load_hint")]
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
    if is_batch(body, format) {
        return batch(body, format, into);
    }
    match typed::read::<Step<'_>>(body, format) {
        Ok(step) => into.push(step.into()),
        // Dynamo writes `events` first; whoever writes it later sends a batch all the same.
        Err(_) if has_events(body, format) => return batch(body, format, into),
        Err(fault) => return Err(typed::describe::<Step<'_>>(TOPIC, body, format, fault, 0).into()),
    }
    Ok(())
}

const TOPIC: &str = Topic::ActiveSequences.as_str();

/// Whether the first key is `events`, which a single step does not have.
fn is_batch(body: &[u8], format: Format) -> bool {
    fn first_key<'a, W: Wire<'a>>(mut wire: W) -> Result<bool, Fault> {
        let mut left = wire.map()?;
        Ok(wire.next_key(&mut left)?.is_some_and(|key| key == b"events"))
    }
    let is_first = match format {
        Format::Json => first_key(Json::new(body)),
        Format::MsgPack => first_key(MsgPack::new(body)),
    };
    is_first.unwrap_or(false)
}

/// Whether any key is `events`.
fn has_events(body: &[u8], format: Format) -> bool {
    fn any_key<'a, W: Wire<'a>>(mut wire: W) -> Result<bool, Fault> {
        let mut left = wire.map()?;
        while let Some(key) = wire.next_key(&mut left)? {
            if key == b"events" {
                return Ok(true);
            }
            wire.skip()?;
        }
        Ok(false)
    }
    let has_key = match format {
        Format::Json => any_key(Json::new(body)),
        Format::MsgPack => any_key(MsgPack::new(body)),
    };
    has_key.unwrap_or(false)
}

/// Reads each step of a batch apart from its neighbours: serde does not find its place again after a bad one.
fn batch<'a>(body: &'a [u8], format: Format, into: &mut Vec<ActiveSequence<'a>>) -> Result<(), Faults> {
    fn each<'a, W: Wire<'a>>(mut wire: W, read: &mut impl FnMut(&'a [u8], usize)) -> Result<(), Fault> {
        let (mut left, mut found) = (wire.map()?, false);
        while let Some(key) = wire.next_key(&mut left)? {
            if key != b"events" || found {
                wire.skip()?;
                continue;
            }
            found = true;
            let mut elements = wire.array().field("events")?;
            while wire.next_element(&mut elements)? {
                let (mark, at) = (wire.mark(), wire.at());
                wire.skip()?;
                read(mark.get(..wire.at() - at).unwrap_or_default(), at);
            }
        }
        wire.end()
    }
    let mut faults = Faults::default();
    let mut step = |step: &'a [u8], at: usize| match typed::read::<Step<'_>>(step, format) {
        Ok(step) => into.push(step.into()),
        Err(fault) => {
            let reason = fault.reason;
            faults.count(reason, || typed::describe::<Step<'_>>(TOPIC, step, format, fault, at));
        }
    };
    let walked = match format {
        Format::Json => each(Json::new(body), &mut step),
        Format::MsgPack => each(MsgPack::new(body), &mut step),
    };
    if let Err(fault) = walked {
        faults.count(fault.reason, || fault.into_error(TOPIC));
    }
    faults.into_result()
}

/// A step as it is sent.
#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    worker: WorkerFields,
    router_id: Option<RouterId>,
    data: StepData,
    /// Nothing else depends on it: in a form that is not known it costs no message.
    #[serde(borrow)]
    lora_name: Option<TextOrOther<'a>>,
}

#[derive(Deserialize)]
struct WorkerFields {
    worker_id: u64,
    dp_rank: Option<u32>,
}

/// `"Free"`, `"MarkPrefillCompleted"`, or `{"AddRequest":{…}}`.
#[derive(Deserialize)]
enum StepData {
    AddRequest(AddRequest),
    MarkPrefillCompleted,
    Free,
}

impl<'a> From<Step<'a>> for ActiveSequence<'a> {
    fn from(step: Step<'a>) -> Self {
        let worker = Worker::new(step.worker.worker_id, step.worker.dp_rank.unwrap_or(0));
        let router = step.router_id.unwrap_or(RouterId::Text);
        Self {
            request_id: step.request_id,
            worker,
            router,
            step: match step.data {
                StepData::AddRequest(request) => SequenceChange::Added(request),
                StepData::MarkPrefillCompleted => SequenceChange::PrefillCompleted,
                StepData::Free => SequenceChange::Freed,
            },
            by_worker: router == RouterId::Number(worker.id.0),
            lora_name: step.lora_name.and_then(TextOrOther::text).filter(|name| !name.is_empty()),
        }
    }
}

impl<'de> Deserialize<'de> for RouterId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = RouterId;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or an integer that is not negative")
            }

            fn visit_str<E: Error>(self, _: &str) -> Result<RouterId, E> {
                Ok(RouterId::Text)
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<RouterId, E> {
                Ok(RouterId::Number(id))
            }
        }
        from.deserialize_any(TextOrNumber)
    }
}

/// Hashes of a prompt's blocks, at most [`MAX_TOKEN_SEQUENCE`].
pub(super) fn token_sequence<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u64>>, D::Error> {
    let hashes = Option::<Bounded<Hash, MAX_TOKEN_SEQUENCE>>::deserialize(from)?;
    Ok(hashes.map(|Bounded(hashes)| hashes.into_iter().map(|Hash(hash)| hash).collect()))
}

fn prefill_load_hint<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    struct Hint {
        initial_effective_prefill_tokens: Option<u64>,
    }
    let hint = Option::<Hint>::deserialize(from)?;
    Ok(hint.and_then(|hint| hint.initial_effective_prefill_tokens))
}
