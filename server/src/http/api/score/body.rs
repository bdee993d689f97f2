//! The request body. Errors name the field, its value and what was expected. Knows no state.

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use serde_json::Value;

use radixscope_insight::whatif::{Adjustment, Blocks, Busy, Hashes, Prompt};
use radixscope_model::id::{BlockHash, DecisionId, Worker};
use radixscope_router::hash::Seed;
use radixscope_router::{RouterOverrides, RouterSettings};

use crate::http::api::posted::bad;
use crate::http::error::ApiError;

/// Fields with the prompt, of which at most one is given.
const PROMPTS: [&str; 5] = ["token_ids", "block_hashes", "chain_hashes", "after", "example"];
/// Maximum workers in one list.
const MAX_WORKERS: usize = 4_096;

/// The body. `null` is the same as a missing field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http::api) struct ScoreBody {
    decision: Option<Id>,
    #[serde(rename = "as")]
    as_: Option<As>,
    token_ids: Option<Vec<u32>>,
    lora_name: Option<String>,
    cache_salt: Option<String>,
    block_hashes: Option<Vec<Id>>,
    chain_hashes: Option<Vec<Id>>,
    after: Option<After>,
    example: Option<bool>,
    isl_tokens: Option<Id>,
    block_size_tokens: Option<u32>,
    router_id: Option<Id>,
    /// `NAMESPACE/COMPONENT` of the candidate workers.
    pool: Option<String>,
    /// Fields of [`RouterOverrides`], and `version`.
    options: Option<serde_json::Map<String, Value>>,
    workers: Option<Workers>,
}

/// The request, validated without the state.
pub(super) struct ScoreRequest {
    pub(super) prompt: PromptForm,
    pub(super) decision: Option<DecisionId>,
    pub(super) block_size_tokens: Option<u32>,
    pub(super) router: Option<u64>,
    pub(super) pool: Option<String>,
    pub(super) options: Overrides,
    pub(super) without: Vec<Worker>,
    pub(super) added: u32,
    pub(super) busy: Vec<(Worker, Busy)>,
}

/// The prompt.
pub(super) enum PromptForm {
    /// Does not depend on the state.
    Ready(Prompt),
    /// Token ids, to be split into blocks of the cluster's size.
    Tokens(Vec<u32>, Seed),
    /// A recorded decision, on the state that its router saw.
    Recorded(DecisionId),
    /// The prompt of a recorded decision, against the live tree.
    Live(DecisionId),
    /// Continues a cached prefix.
    After { worker: Worker, block_hash: BlockHash, new_tokens: u64 },
}

impl ScoreRequest {
    pub(super) fn of(mut body: ScoreBody) -> Result<Self, ApiError> {
        let decision = body.decision.map(|Id(id)| DecisionId(id));
        let workers = body.workers.take().unwrap_or_default();
        if workers.without.len().max(workers.busy.len()) > MAX_WORKERS {
            return Err(bad(format!("workers: a list has at most {MAX_WORKERS} workers")));
        }
        let busy = |one: BusyWorker| {
            let BusyWorker { prefill_tokens, decode_blocks, active_requests, .. } = one;
            let busy = Busy { prefill_tokens, decode_blocks, active_requests };
            (Worker::new(one.worker_id.0, one.dp_rank), busy)
        };
        Ok(Self {
            decision,
            block_size_tokens: body.block_size_tokens,
            router: body.router_id.map(|Id(id)| id),
            pool: body.pool.take(),
            options: Overrides::read(body.options.take())?,
            without: workers.without.iter().map(|one| Worker::new(one.worker_id.0, one.dp_rank)).collect(),
            added: workers.added,
            busy: workers.busy.into_iter().map(busy).collect(),
            prompt: form(body, decision)?,
        })
    }

    /// The same with token ids hashed in blocks of `size` tokens, if that is known.
    pub(super) fn hashed(mut self, size: Option<u32>) -> Self {
        if let (PromptForm::Tokens(tokens, seed), Some(size)) = (&self.prompt, size) {
            self.prompt = PromptForm::Ready(Prompt::Blocks(Blocks::of_tokens(tokens, size, *seed)));
        }
        self
    }
}

fn form(body: ScoreBody, decision: Option<DecisionId>) -> Result<PromptForm, ApiError> {
    let given = [
        body.token_ids.is_some(),
        body.block_hashes.is_some(),
        body.chain_hashes.is_some(),
        body.after.is_some(),
        body.example.is_some(),
    ];
    let mut given = PROMPTS.iter().zip(given).filter_map(|(name, is_given)| is_given.then_some(name));
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(bad(format!(
            "give {one} or {other}, not both; a prompt is one of {}",
            PROMPTS.join(", ")
        )));
    }
    let isl_tokens: Option<u64> = body.isl_tokens.map(|Id(tokens)| tokens);
    let hashes =
        |hashes| PromptForm::Ready(Prompt::Blocks(Blocks { hashes, isl_tokens, block_size_tokens: None }));
    let ids = |ids: Vec<Id>| ids.into_iter().map(|Id(id)| id).collect();
    if body.token_ids.is_none() && (body.lora_name.is_some() || body.cache_salt.is_some()) {
        return Err(bad("lora_name and cache_salt are only for token_ids: hashes already contain them"));
    }
    if let Some(tokens) = body.token_ids {
        if isl_tokens.is_some_and(|isl| isl != tokens.len() as u64) {
            return Err(bad(format!(
                "isl_tokens: differs from the number of token_ids, {}; omit it",
                tokens.len()
            )));
        }
        return Ok(PromptForm::Tokens(
            tokens,
            Seed::of(body.lora_name.as_deref(), body.cache_salt.as_deref()),
        ));
    }
    if let Some(own) = body.block_hashes {
        return Ok(hashes(Hashes::Local(ids(own))));
    }
    if let Some(chain) = body.chain_hashes {
        return Ok(hashes(Hashes::Chain(ids(chain))));
    }
    if let Some(after) = body.after {
        let worker = Worker::new(after.worker_id.0, after.dp_rank);
        let (block_hash, new_tokens) = (BlockHash(after.block_hash.0), after.new_tokens.0);
        return Ok(PromptForm::After { worker, block_hash, new_tokens });
    }
    if body.example == Some(true) {
        return Ok(PromptForm::Ready(Prompt::Example));
    }
    match (decision, body.as_, isl_tokens) {
        (Some(id), None | Some(As::Recorded), None) => Ok(PromptForm::Recorded(id)),
        (Some(id), Some(As::Live), None) => Ok(PromptForm::Live(id)),
        (_, None, Some(isl_tokens)) => Ok(PromptForm::Ready(Prompt::Length { isl_tokens })),
        (_, Some(_), _) => Err(bad("as: only for a decision, without another prompt")),
        (None, None, None) => {
            let prompts = PROMPTS.join(", ");
            Err(bad(format!("no prompt; expected decision, isl_tokens or one of {prompts}")))
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum As {
    Recorded,
    Live,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    worker_id: Id,
    #[serde(default)]
    dp_rank: u32,
    block_hash: Id,
    #[serde(default)]
    new_tokens: Id,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Workers {
    without: Vec<NamedWorker>,
    added: u32,
    busy: Vec<BusyWorker>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedWorker {
    worker_id: Id,
    #[serde(default)]
    dp_rank: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BusyWorker {
    worker_id: Id,
    #[serde(default)]
    dp_rank: u32,
    #[serde(default, deserialize_with = "adjust")]
    prefill_tokens: Adjustment,
    #[serde(default, deserialize_with = "adjust")]
    decode_blocks: Adjustment,
    #[serde(default, deserialize_with = "adjust")]
    active_requests: Adjustment,
}

/// `{"set":N}`, `{"add":N}` or `{}`.
fn adjust<'de, D: Deserializer<'de>>(from: D) -> Result<Adjustment, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PromptForm {
        set: Option<Id>,
        add: Option<i64>,
    }
    let PromptForm { set, add } = PromptForm::deserialize(from)?;
    match (set, add) {
        (None, None) => Ok(Adjustment::Keep),
        (Some(Id(to)), None) => Ok(Adjustment::Set(to)),
        (None, Some(more)) => Ok(Adjustment::Add(more)),
        (Some(_), Some(_)) => Err(de::Error::custom("expected set or add, not both")),
    }
}

/// The given settings. A version implies its formula and tie-breaking.
#[derive(Default)]
pub(super) struct Overrides {
    version: Option<RouterSettings>,
    given: RouterOverrides,
}

impl Overrides {
    fn read(given: Option<serde_json::Map<String, Value>>) -> Result<Self, ApiError> {
        let Some(mut given) = given else { return Ok(Self::default()) };
        // The error may quote a key of any length.
        let wrong = |error: serde_json::Error| {
            bad(format!("options: {}", error.to_string().chars().take(400).collect::<String>()))
        };
        let version = given.remove("version").map(serde_json::from_value::<Option<String>>);
        let version = version.transpose().map_err(wrong)?.flatten();
        let overrides: RouterOverrides = serde_json::from_value(Value::Object(given)).map_err(wrong)?;
        if version.is_some() && overrides.formula.is_some() {
            return Err(bad("options: expected version or formula, not both"));
        }
        let known = |version: String| {
            RouterSettings::of_version(&version).ok_or_else(|| {
                let shown: String = version.chars().take(40).collect();
                bad(format!("options.version={shown:?} is not known; expected 0.8 to 1.7, as 0.9.1"))
            })
        };
        overrides.validate().map_err(|error| bad(format!("options: {error}")))?;
        Ok(Self { version: version.map(known).transpose()?, given: overrides })
    }

    /// These over `start`; a version or formula starts from its own defaults.
    pub(super) fn over(&self, start: RouterSettings) -> RouterSettings {
        self.given.over(self.version.unwrap_or(start))
    }
}

/// A 64-bit number: a decimal string, or a JSON number up to 2^53.
#[derive(Clone, Copy, Default)]
pub(in crate::http::api) struct Id(pub(in crate::http::api) u64);

/// JavaScript represents integers exactly up to here.
const EXACT: u64 = 1 << 53;

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Id;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number of at most 64 bits as a decimal string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Id, E> {
                let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let read = if is_decimal { text.parse().ok() } else { None };
                read.map(Id).ok_or_else(|| E::invalid_value(de::Unexpected::Str(shorten(text)), &self))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Id, E> {
                if number > EXACT {
                    return Err(E::custom(format!(
                        "{number} is above 2^53, which JSON readers may round; write it as the string \"{number}\""
                    )));
                }
                Ok(Id(number))
            }
        }
        from.deserialize_any(Read)
    }
}

fn shorten(text: &str) -> &str {
    text.char_indices().nth(80).map_or(text, |(at, _)| &text[..at])
}
