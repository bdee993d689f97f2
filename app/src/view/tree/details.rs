//! What the box under the pointer or the focus is: hashes, place, owners, size, age.

use leptos::prelude::*;
use radixscope_model::id::{BlockHash, Millis, TokensHash, WorkerIx};
use radixscope_state::cluster::{Cluster, touched_ms};
use radixscope_state::tree::forest::{ChainId, Forest};

use crate::draw::palette::label;
use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;

/// Owners named in the bar; more would make it grow. All are named in its title and to those who hear the page.
const OWNERS: usize = 3;

/// A block in a box.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Detail {
    /// Engine's hash of the block.
    pub hash: BlockHash,
    tokens: TokensHash,
    /// Position of the block in its prompt.
    pub position: u32,
    block_tokens: Option<u32>,
    /// Who holds it.
    pub owners: Vec<WorkerIx>,
    /// Blocks in its box.
    pub len: u32,
    /// Held blocks in the box and below.
    pub blocks: u32,
    /// Of those, the ones above the block.
    pub above: u32,
    /// When a worker last stored the block.
    touched: Millis,
    names_differ: bool,
}

impl Detail {
    /// The tokens that the block stands for, first to last; `None` where a block's size is not known.
    pub(crate) fn tokens_of(&self) -> Option<String> {
        let (size, position) = (u64::from(self.block_tokens?), u64::from(self.position));
        Some(format!("{}–{}", format::count(position * size), format::count((position + 1) * size - 1)))
    }

    /// For those who hear the page.
    pub(crate) fn sentence(&self, store: Store) -> String {
        let names: Vec<String> = self.owners.iter().map(|&w| label(w)).collect();
        let holders = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        let age = format::ago(store.now_ms().since(self.touched));
        format!(
            "Block {} of the prompt, {} in a row, held by {holders}, {} in the subtree, last stored {age}, hash {}",
            self.position,
            format::plural(u64::from(self.len), "block", "blocks"),
            format::plural(u64::from(self.blocks), "block", "blocks"),
            self.hash
        )
    }
}

/// The block at `position` of a box.
pub(crate) fn of(cluster: &Cluster, forest: &Forest, id: ChainId, position: u32) -> Detail {
    let (tree, chain) = (cluster.tree(), forest.chain(id));
    let position = position.max(chain.position).min(chain.end().saturating_sub(1));
    let node = tree.block_at(chain, position);
    Detail {
        hash: tree.block_hash(node),
        tokens: tree.tokens_hash(node),
        position,
        block_tokens: cluster.block_tokens(),
        owners: tree.owners(node).iter().collect(),
        len: chain.len,
        blocks: chain.sums.blocks,
        above: if tree.chain_owners(chain).is_empty() { 0 } else { position - chain.position },
        touched: touched_ms(tree.touched(node)),
        names_differ: !tree.hashes_agree(node),
    }
}

/// The bar below the tree. It keeps its height, so that nothing jumps.
#[component]
pub(super) fn DetailBar(store: Store, detail: RwSignal<Option<Detail>>) -> impl IntoView {
    view! {
        <div class="detail" data-testid="tree-detail">
            {move || match detail.get() {
                Some(detail) => view! { <Told store detail/> }.into_any(),
                None => view! { <Legend store/> }.into_any(),
            }}
        </div>
    }
}

#[component]
fn Told(store: Store, detail: Detail) -> impl IntoView {
    let position = format::count(u64::from(detail.position));
    let place = match detail.tokens_of() {
        Some(tokens) => format!("{position} (tokens {tokens})"),
        None => position,
    };
    let touched = detail.touched;
    let age = Memo::new(move |_| {
        let now = store.on_beat(|_| store.now_ms());
        format::ago(now.since(touched))
    });
    let all = detail.owners.iter().map(|&w| label(w)).collect::<Vec<_>>().join(" ");
    let more = detail.owners.len().saturating_sub(OWNERS);
    let more = (more > 0).then(|| format!("+{more}"));
    let owners =
        detail.owners.iter().take(OWNERS).map(|&worker| view! { <Chip store worker/> }).collect_view();
    let nobody = detail.owners.is_empty().then_some("nobody");
    view! {
        <dl>
            <div class="w-owners" title=all><dt>"Held by"</dt><dd>{owners}{more}{nobody}</dd></div>
            <div class="w-place"><dt>"Position"</dt><dd>{place}</dd></div>
            <div><dt>"Chain"</dt><dd>{format::count(u64::from(detail.len))}</dd></div>
            <div><dt>"Subtree"</dt><dd>{format::count(u64::from(detail.blocks))}</dd></div>
            <div class="w-age"><dt>"Last stored"</dt><dd>{age}</dd></div>
            <div class="w-hash"><dt>{if detail.names_differ { "Block hash (one of several)" } else { "Block hash" }}</dt>
                <dd class="mono"><span data-testid="detail-hash">{detail.hash.to_string()}</span><span class="quiet">{format::hex(detail.hash.0)}</span></dd></div>
            <div class="w-tokens"><dt>"Tokens hash"</dt><dd class="mono">{detail.tokens.to_string()}</dd></div>
        </dl>
    }
}

#[component]
fn Legend(store: Store) -> impl IntoView {
    let unit =
        Memo::new(move |_| if store.on_beat(|c| c.block_tokens().is_some()) { "tokens" } else { "blocks" });
    view! {
        <p class="legend">
            <span><i class="key one"></i>"Held by one worker"</span>
            <span><i class="key many"></i>"Held by several, one tick each"</span>
            <span>"Down: " {unit} " into the prompt"</span>
        </p>
    }
}
