//! What the reader asks, a signal a field.

use leptos::prelude::*;
use radixscope_insight::whatif::{Blocks, WorkerChanges};
use radixscope_model::id::{BlockHash, DecisionId, Worker};
use radixscope_panels::paste::Pasted;
use radixscope_panels::whatif::{self, FetchedPrompt, Mode, Query, TokenIds};
use radixscope_router::{RouterSettings, example};

use crate::store::Store;
use crate::view::prompt_text::PromptTextState;

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
    pub tokens: RwSignal<TokenIds>,
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
    /// Token ids as blocks.
    token_blocks: Memo<Option<Blocks>>,
}

impl QueryState {
    pub(super) fn new(store: Store) -> Self {
        let Query { mode, live_tree, new_tokens, is_chain, length, options, .. } = Query::default();
        let text = || RwSignal::new(String::new());
        let (tokens, block_size, lora_name, cache_salt) =
            (RwSignal::new(TokenIds::default()), text(), text(), text());
        let of_cluster = Memo::new(move |_| store.on_beat(|shown| shown.block_tokens()));
        let token_blocks = Memo::new(move |_| {
            let (typed, of_cluster) = (block_size.get(), of_cluster.get());
            let (lora_name, cache_salt) = (lora_name.get(), cache_salt.get());
            tokens.with(|tokens| {
                whatif::token_blocks(&tokens.ids, &typed, of_cluster, (&lora_name, &cache_salt))
            })
        });
        Self {
            mode: RwSignal::new(mode),
            decision: text(),
            live_tree: RwSignal::new(live_tree),
            fetched: RwSignal::new(FetchedPrompt::Nothing),
            prefix_worker: text(),
            prefix_block: text(),
            new_tokens: RwSignal::new(new_tokens),
            text: PromptTextState::new(),
            tokens,
            lora_name,
            cache_salt,
            hashes: RwSignal::new(Pasted::default()),
            is_chain: RwSignal::new(is_chain),
            length: RwSignal::new(length),
            block_size,
            options: RwSignal::new(options),
            changes: RwSignal::new(WorkerChanges::default()),
            token_blocks,
        }
    }

    /// The form as it stands. Tracked, as far as its mode asks for it.
    pub(super) fn query(self) -> Query {
        let mode = self.mode.get();
        let mut query = Query {
            mode,
            block_size: self.block_size.get(),
            options: self.options.get(),
            changes: self.changes.get(),
            ..Query::default()
        };
        match mode {
            Mode::Recorded => {
                query.decision = self.decision.get();
                query.live_tree = self.live_tree.get();
                if query.live_tree {
                    query.fetched = self.fetched.get();
                }
            }
            Mode::Prefix => {
                query.prefix_worker = self.prefix_worker.get();
                query.prefix_block = self.prefix_block.get();
                query.new_tokens = self.new_tokens.get();
            }
            Mode::Text | Mode::Tokens => {
                query.has_token_ids = self.tokens.with(|tokens| !tokens.ids.is_empty());
                if query.has_token_ids {
                    query.token_blocks = self.token_blocks.get();
                }
            }
            Mode::Hashes => {
                query.hashes = self.hashes.with(|pasted| pasted.numbers.clone());
                query.is_chain = self.is_chain.get();
            }
            Mode::Length => query.length = self.length.get(),
            Mode::Example => {}
        }
        query
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
        self.options.set(store.peek(|shown| whatif::settings_known_for(shown, id)));
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
}
