//! What the reader asks, field by field, and the question that follows from it, or the field that stands in the way.

use radixscope_insight::view_context::ViewContext;
use radixscope_insight::whatif::{Blocks, Hashes, Prompt, WhatIfRequest, WorkerChanges};
use radixscope_model::id::{BlockHash, DecisionId, PoolIx};
use radixscope_router::RouterSettings;
use radixscope_router::hash::Seed;

use super::worker_of;
use crate::format;
use crate::paste;

/// In which form the prompt is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// A decision that was taken.
    #[default]
    Recorded,
    /// Going on where a held prefix ends.
    Prefix,
    /// Text, with a tokenizer.
    Text,
    /// Token ids.
    Tokens,
    /// Block hashes.
    Hashes,
    /// Only a length.
    Length,
    /// The worked example.
    Example,
}

impl Mode {
    /// All of them in their order, each with its id and its name.
    pub const ALL: [(Mode, &'static str, &'static str); 7] = [
        (Mode::Recorded, "recorded", "Recorded decision"),
        (Mode::Prefix, "prefix", "Prefix in the tree"),
        (Mode::Text, "text", "Prompt as text"),
        (Mode::Tokens, "tokens", "Token ids"),
        (Mode::Hashes, "hashes", "Hashes"),
        (Mode::Length, "length", "Length"),
        (Mode::Example, "example", "Example"),
    ];
}

/// Why there is no response, and the field to look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputFault {
    /// As in the API: `decision`, `after`, `prompt`, `block_size_tokens`, `options`, `workers`.
    pub field: &'static str,
    /// For the reader.
    pub message: String,
    /// Nothing was typed yet: what to do next, no fault.
    pub is_hint: bool,
}

impl InputFault {
    /// A fault of a field.
    pub fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), is_hint: false }
    }

    fn hint(field: &'static str, message: &str) -> Self {
        Self { is_hint: true, ..Self::new(field, message) }
    }
}

/// The text beside one of `fields`; `None` where the fault is another's, or only a hint, which stands where the response will.
pub fn fault_of(fault: Option<&InputFault>, fields: &[&str]) -> Option<String> {
    fault.filter(|fault| !fault.is_hint && fields.contains(&fault.field)).map(|fault| fault.message.clone())
}

/// Token ids and where they come from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TokenIds {
    /// The ids, in their order.
    pub ids: Vec<u32>,
    /// Where they come from, for the reader.
    pub described: String,
    /// What was not understood, as text.
    pub complaint: Option<String>,
}

impl TokenIds {
    /// Those in a text that was pasted.
    pub fn pasted(text: &str) -> Self {
        let pasted = paste::numbers::<u32>(text);
        let complaint = pasted.complaint();
        let described = format!("{} pasted token ids", format::count(pasted.numbers.len() as u64));
        Self { ids: pasted.numbers, described, complaint }
    }
}

/// Token ids as blocks of the size that was typed, else of the cluster's; `None`: the size is unknown. Hashing them anew for every
/// touch of a slider would be felt: the result is to be kept.
pub fn token_blocks(
    ids: &[u32],
    block_size: &str,
    of_cluster: Option<u32>,
    (lora_name, cache_salt): (&str, &str),
) -> Option<Blocks> {
    let typed = block_size.trim().parse::<u32>().ok();
    let size = typed.or(of_cluster).filter(|&size| size > 0)?;
    Some(Blocks::of_tokens(ids, size, Seed::of(Some(lora_name), Some(cache_salt))))
}

/// The prompt of a recorded decision, which only the server keeps: where fetching it stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum FetchedPrompt {
    /// Nothing was requested.
    #[default]
    Nothing,
    /// Under way.
    Waiting(DecisionId),
    /// It came, or why it did not.
    Done(DecisionId, Result<Blocks, String>),
}

impl FetchedPrompt {
    /// Whose prompt it is.
    pub fn id(&self) -> Option<DecisionId> {
        match self {
            FetchedPrompt::Nothing => None,
            FetchedPrompt::Waiting(id) | FetchedPrompt::Done(id, _) => Some(*id),
        }
    }

    /// The prompt of `wanted`.
    fn blocks(&self, wanted: DecisionId) -> Result<Blocks, InputFault> {
        match self {
            FetchedPrompt::Done(id, Ok(blocks)) if *id == wanted => Ok(blocks.clone()),
            FetchedPrompt::Done(id, Err(why)) if *id == wanted => {
                Err(InputFault::new("decision", why.clone()))
            }
            _ => Err(InputFault::hint("decision", "Fetching the prompt's hashes from the server …")),
        }
    }
}

/// The form as it stands. Of what its mode does not ask for, nothing is looked at.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    /// In which form the prompt is given.
    pub mode: Mode,
    /// As typed.
    pub decision: String,
    /// Whether the prompt of the decision meets the live tree instead of what its router saw.
    pub live_tree: bool,
    /// That prompt, once it was fetched.
    pub fetched: FetchedPrompt,
    /// `ID/RANK`, as typed.
    pub prefix_worker: String,
    /// As typed.
    pub prefix_block: String,
    /// Tokens that follow the prefix.
    pub new_tokens: u64,
    /// Whether there are token ids, pasted or of the text.
    pub has_token_ids: bool,
    /// Those ids as blocks, see [`token_blocks`].
    pub token_blocks: Option<Blocks>,
    /// Hashes of the prompt's full blocks.
    pub hashes: Vec<u64>,
    /// Whether the hashes are of each block with everything before it.
    pub is_chain: bool,
    /// Prompt tokens.
    pub length: u64,
    /// As typed; empty: the cluster's.
    pub block_size: String,
    /// The router's settings.
    pub options: RouterSettings,
    /// How the cluster differs.
    pub changes: WorkerChanges,
}

impl Default for Query {
    /// The form as it is opened.
    fn default() -> Self {
        Self {
            mode: Mode::Recorded,
            decision: String::new(),
            live_tree: false,
            fetched: FetchedPrompt::Nothing,
            prefix_worker: String::new(),
            prefix_block: String::new(),
            new_tokens: 1_000,
            has_token_ids: false,
            token_blocks: None,
            hashes: Vec::new(),
            is_chain: false,
            length: 4_000,
            block_size: String::new(),
            options: RouterSettings::default(),
            changes: WorkerChanges::default(),
        }
    }
}

impl Query {
    /// The question, or why there is none yet.
    pub fn question(mut self, shown: &ViewContext<'_>) -> Result<WhatIfRequest, InputFault> {
        let block_size_tokens = match self.block_size.trim() {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                InputFault::new(
                    "block_size_tokens",
                    format!("“{text}” is not a block size: expected a whole number of tokens"),
                )
            })?),
        };
        let (mut actual, mut pool) = (None, Some(shown.pool));
        let prompt = match self.mode {
            Mode::Recorded => {
                let id = self.recorded()?;
                // A decision is scored in its own pool, whichever is shown.
                (actual, pool) = (Some(id), None);
                if self.live_tree { Prompt::Blocks(self.fetched.blocks(id)?) } else { Prompt::Recorded(id) }
            }
            Mode::Prefix => self.prefix(shown)?,
            Mode::Text | Mode::Tokens => self.tokens()?,
            Mode::Hashes => {
                if self.hashes.is_empty() {
                    let message = "Paste block hashes to see where their prompt would go";
                    return Err(InputFault::hint("prompt", message));
                }
                let hashes =
                    if self.is_chain { Hashes::Chain(self.hashes) } else { Hashes::Local(self.hashes) };
                Prompt::Blocks(Blocks { hashes, isl_tokens: None, block_size_tokens: None })
            }
            Mode::Length => Prompt::Length { isl_tokens: self.length },
            Mode::Example => Prompt::Example,
        };
        let (options, changes) = (self.options, self.changes);
        Ok(WhatIfRequest { prompt, pool, actual, options, block_size_tokens, router: None, changes })
    }

    fn recorded(&self) -> Result<DecisionId, InputFault> {
        let typed = self.decision.trim();
        typed.parse().map(DecisionId).map_err(|_| match typed {
            "" => InputFault::hint(
                "decision",
                "Choose a decision: it appears here once the router places a request",
            ),
            _ => InputFault::new(
                "decision",
                format!("“{}” is not a decision: expected its number, as Decisions shows it", self.decision),
            ),
        })
    }

    fn prefix(&self, shown: &ViewContext<'_>) -> Result<Prompt, InputFault> {
        let worker = worker_of(self.prefix_worker.trim()).and_then(|worker| shown.worker_ix(worker));
        let worker = worker
            .ok_or_else(|| InputFault::hint("after", "Choose a worker on which the prefix is cached"))?;
        let block = self.prefix_block.trim();
        let block_hash = block.parse().map(BlockHash).map_err(|_| {
            let message = "Enter the block hash of the prefix's last block in decimal, as the tree shows it";
            InputFault { is_hint: block.is_empty(), ..InputFault::new("after", message) }
        })?;
        Ok(Prompt::After { worker, block_hash, new_tokens: self.new_tokens })
    }

    fn tokens(&mut self) -> Result<Prompt, InputFault> {
        if !self.has_token_ids {
            let message = match self.mode {
                Mode::Text => "The text has no token ids yet: choose a tokenizer and enter a text",
                _ => "Paste token ids to see where their prompt would go",
            };
            return Err(InputFault::hint("prompt", message));
        }
        self.token_blocks.take().map(Prompt::Blocks).ok_or_else(|| {
            let message = "Tokens per block are unknown: no model card was read; enter them below";
            InputFault::new("block_size_tokens", message)
        })
    }
}

/// The pool whose workers are weighed: that of the decision asked about, else the one shown.
pub fn pool(shown: &ViewContext<'_>, mode: Mode, decision: &str) -> PoolIx {
    let recorded = (mode == Mode::Recorded).then(|| decision.trim().parse().ok().map(DecisionId)).flatten();
    let decided = recorded.and_then(|id| shown.decisions().get(id));
    decided.map_or(shown.pool, |decided| decided.pool)
}
