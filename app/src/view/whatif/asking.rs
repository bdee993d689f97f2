//! What the reader asks, field by field, and the question that follows from it.

use leptos::prelude::*;
use radixscope_insight::whatif::{
    Adjustment, Blocks, Busy, CandidateRef, Hashes, Prompt, WhatIfRequest, WorkerChanges, deployed,
    settings_of,
};
use radixscope_model::id::{BlockHash, DecisionId, PoolIx, Worker};
use radixscope_router::hash::Seed;
use radixscope_router::{RouterSettings, example};
use radixscope_state::cluster::Cluster;

use super::fetch::FetchedPrompt;
use crate::paste::{self, Pasted};
use crate::store::{Store, ViewContext};
use crate::view::prompt_text::PromptTextState;

/// In which form the prompt is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Mode {
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
    pub(super) const ALL: [(Mode, &'static str, &'static str); 7] = [
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
pub(super) struct InputFault {
    /// As in the API: `decision`, `after`, `prompt`, `block_size_tokens`, `options`, `workers`.
    pub field: &'static str,
    pub message: String,
    /// Nothing was typed yet: what to do next, no fault.
    pub is_hint: bool,
}

impl InputFault {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), is_hint: false }
    }

    pub(super) fn hint(field: &'static str, message: &str) -> Self {
        Self { is_hint: true, ..Self::new(field, message) }
    }
}

/// Token ids and where they come from.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Tokens {
    ids: Vec<u32>,
    /// A text for the reader.
    pub described: String,
    /// What was not understood, as text.
    pub complaint: Option<String>,
}

/// All fields; copied freely.
#[derive(Clone, Copy)]
pub(super) struct QueryState {
    pub mode: RwSignal<Mode>,
    /// As typed.
    pub decision: RwSignal<String>,
    /// Whether the prompt of the decision meets the live tree instead of what its router saw.
    pub live_tree: RwSignal<bool>,
    /// That prompt, once it was fetched.
    pub fetched: RwSignal<FetchedPrompt>,
    /// `ID/RANK`, as typed.
    pub prefix_worker: RwSignal<String>,
    /// As typed.
    pub prefix_block: RwSignal<String>,
    pub new_tokens: RwSignal<u64>,
    /// The text, and the file that makes `tokens` of it.
    pub text: PromptTextState,
    pub tokens: RwSignal<Tokens>,
    pub lora_name: RwSignal<String>,
    pub cache_salt: RwSignal<String>,
    pub hashes: RwSignal<Pasted<u64>>,
    /// Whether the hashes are of each block with everything before it.
    pub is_chain: RwSignal<bool>,
    pub length: RwSignal<u64>,
    /// As typed; empty: the cluster's.
    pub block_size: RwSignal<String>,
    pub options: RwSignal<RouterSettings>,
    pub changes: RwSignal<WorkerChanges>,
    /// Token ids as blocks: hashing them anew for every touch of a slider would be felt.
    token_blocks: Memo<Option<Blocks>>,
}

impl QueryState {
    pub(super) fn new(store: Store) -> Self {
        let (tokens, block_size) = (RwSignal::new(Tokens::default()), RwSignal::new(String::new()));
        let (lora_name, cache_salt) = (RwSignal::new(String::new()), RwSignal::new(String::new()));
        let of_cluster = Memo::new(move |_| store.on_beat(|shown| shown.block_tokens()));
        let token_blocks = Memo::new(move |_| {
            let typed = block_size.with(|text| text.trim().parse::<u32>().ok());
            let size = typed.or_else(|| of_cluster.get()).filter(|&size| size > 0)?;
            let seed = Seed::of(Some(&lora_name.get()), Some(&cache_salt.get()));
            tokens.with(|tokens| Some(Blocks::of_tokens(&tokens.ids, size, seed)))
        });
        Self {
            mode: RwSignal::new(Mode::Recorded),
            decision: RwSignal::new(String::new()),
            live_tree: RwSignal::new(false),
            fetched: RwSignal::new(FetchedPrompt::Nothing),
            prefix_worker: RwSignal::new(String::new()),
            prefix_block: RwSignal::new(String::new()),
            new_tokens: RwSignal::new(1_000),
            text: PromptTextState::new(),
            tokens,
            lora_name,
            cache_salt,
            hashes: RwSignal::new(Pasted::default()),
            is_chain: RwSignal::new(false),
            length: RwSignal::new(4_000),
            block_size,
            options: RwSignal::new(RouterSettings::default()),
            changes: RwSignal::new(WorkerChanges::default()),
            token_blocks,
        }
    }

    /// Asks for the prompt of these token ids; `described` says where they come from.
    pub(super) fn set_token_ids(self, ids: Vec<u32>, described: String) {
        self.tokens.set(Tokens { ids, described, complaint: None });
    }

    /// The same from pasted text.
    pub(super) fn paste_token_ids(self, text: &str) {
        let pasted = paste::numbers::<u32>(text);
        let complaint = pasted.complaint();
        let described = format!("{} pasted token ids", crate::format::count(pasted.numbers.len() as u64));
        self.set_token_ids(pasted.numbers, described);
        self.tokens.update(|tokens| tokens.complaint = complaint);
    }

    /// Asks about a decision, as its router saw it and with the settings it is known to have had.
    pub(super) fn choose_decision(self, store: Store, id: DecisionId) {
        self.decision.set(id.to_string());
        self.mode.set(Mode::Recorded);
        self.use_deployed(store);
    }

    /// Asks how a request would go on from a block.
    pub(super) fn choose_prefix(self, worker: Worker, block: BlockHash) {
        self.prefix_worker.set(worker.to_string());
        self.prefix_block.set(block.to_string());
        self.mode.set(Mode::Prefix);
    }

    /// The settings of the decision that is scored, else of the latest one.
    pub(super) fn use_deployed(self, store: Store) {
        let id = self.decision_id();
        let options = store.peek(|shown| {
            let decided = id.and_then(|id| shown.decisions().get(id));
            let pool = decided.map_or(shown.pool, |decided| decided.pool);
            let known = decided.and_then(|decided| settings_of(shown, &decided.decision));
            known.or_else(|| deployed(shown, pool)).unwrap_or_default()
        });
        self.options.set(options);
    }

    /// The worked example, untouched.
    pub(super) fn use_example(self) {
        self.mode.set(Mode::Example);
        self.options.set(example::SETTINGS);
        self.changes.set(WorkerChanges::default());
        self.block_size.set(String::new());
    }

    pub(super) fn decision_id(self) -> Option<DecisionId> {
        self.decision.with_untracked(|text| text.trim().parse().ok().map(DecisionId))
    }

    /// Changes how busy a candidate is.
    pub(super) fn set_busy(self, who: CandidateRef, change: impl FnOnce(&mut Busy)) {
        self.changes.update(|changes| {
            let at = changes.busy.iter().position(|(of, _)| *of == who).unwrap_or_else(|| {
                changes.busy.push((who, Busy::default()));
                changes.busy.len() - 1
            });
            change(&mut changes.busy[at].1);
            changes.busy.retain(|(_, busy)| !busy.is_nothing());
        });
    }

    /// How much busier a candidate was made.
    pub(super) fn busy(self, who: CandidateRef) -> Busy {
        self.changes.with(|changes| {
            changes.busy.iter().find(|(of, _)| *of == who).map(|(_, busy)| *busy).unwrap_or_default()
        })
    }

    /// The pool whose workers are weighed. Tracked.
    pub(super) fn pool(self, shown: &ViewContext<'_>) -> PoolIx {
        let recorded = (self.mode.get() == Mode::Recorded)
            .then(|| self.decision.with(|text| text.trim().parse().ok().map(DecisionId)))
            .flatten();
        let decided = recorded.and_then(|id| shown.decisions().get(id));
        decided.map_or(shown.pool, |decided| decided.pool)
    }

    /// The question. Tracked.
    pub(super) fn question(self, cluster: &ViewContext<'_>) -> Result<WhatIfRequest, InputFault> {
        let typed = self.block_size.get();
        let block_size_tokens = match typed.trim() {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                InputFault::new(
                    "block_size_tokens",
                    format!("“{text}” is not a block size: expected a whole number of tokens"),
                )
            })?),
        };
        let (mut actual, mut pool) = (None, Some(cluster.pool));
        let prompt = match self.mode.get() {
            Mode::Recorded => {
                let typed = self.decision.get();
                let id = typed.trim().parse().map(DecisionId).map_err(|_| {
                    if typed.trim().is_empty() {
                        return InputFault::hint(
                            "decision",
                            "Choose a decision: it appears here once the router places a request",
                        );
                    }
                    let message =
                        format!("“{typed}” is not a decision: expected its number, as Decisions shows it");
                    InputFault::new("decision", message)
                })?;
                // A decision is scored in its own pool, whichever is shown.
                (actual, pool) = (Some(id), None);
                if self.live_tree.get() {
                    Prompt::Blocks(self.fetched.with(|fetched| fetched.blocks(id))?)
                } else {
                    Prompt::Recorded(id)
                }
            }
            Mode::Prefix => {
                let worker = self.prefix_worker.with(|text| worker(cluster, text));
                let worker = worker.ok_or_else(|| {
                    InputFault::hint("after", "Choose a worker on which the prefix is cached")
                })?;
                let block = self.prefix_block.get();
                let block_hash = block.trim().parse().map(BlockHash).map_err(|_| {
                    let message =
                        "Enter the block hash of the prefix's last block in decimal, as the tree shows it";
                    InputFault { is_hint: block.trim().is_empty(), ..InputFault::new("after", message) }
                })?;
                Prompt::After { worker, block_hash, new_tokens: self.new_tokens.get() }
            }
            mode @ (Mode::Text | Mode::Tokens) => {
                if self.tokens.with(|tokens| tokens.ids.is_empty()) {
                    let message = match mode {
                        Mode::Text => "The text has no token ids yet: choose a tokenizer and enter a text",
                        _ => "Paste token ids to see where their prompt would go",
                    };
                    return Err(InputFault::hint("prompt", message));
                }
                let unknown = || {
                    let message = "Tokens per block are unknown: no model card was read; enter them below";
                    InputFault::new("block_size_tokens", message)
                };
                Prompt::Blocks(self.token_blocks.get().ok_or_else(unknown)?)
            }
            Mode::Hashes => {
                let hashes = self.hashes.with(|pasted| pasted.numbers.clone());
                if hashes.is_empty() {
                    return Err(InputFault::hint(
                        "prompt",
                        "Paste block hashes to see where their prompt would go",
                    ));
                }
                let hashes = if self.is_chain.get() { Hashes::Chain(hashes) } else { Hashes::Local(hashes) };
                Prompt::Blocks(Blocks { hashes, isl_tokens: None, block_size_tokens: None })
            }
            Mode::Length => Prompt::Length { isl_tokens: self.length.get() },
            Mode::Example => Prompt::Example,
        };
        let (options, changes) = (self.options.get(), self.changes.get());
        Ok(WhatIfRequest { prompt, pool, actual, options, block_size_tokens, router: None, changes })
    }
}

/// `ID` or `ID/RANK`.
fn worker(cluster: &Cluster, text: &str) -> Option<radixscope_model::id::WorkerIx> {
    let (id, rank) = text.trim().split_once('/').unwrap_or((text.trim(), "0"));
    cluster.worker_ix(Worker::new(id.parse().ok()?, rank.parse().ok()?))
}

/// A load that is so much more; nothing for 0.
pub(super) fn more(by: i64) -> Adjustment {
    if by == 0 { Adjustment::Keep } else { Adjustment::Add(by) }
}
