//! The selected block, or the one under the pointer, in all its particulars.

use leptos::prelude::*;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_model::id::{BlockHash, Millis, WorkerIx};
use radixscope_state::cluster::touched_ms;
use radixscope_state::redundancy::{BlockSize, Redundancy, gib};
use radixscope_state::tree::forest::{Forest, Prefix};

use super::side;
use super::state::{Hovered, TreeView, key};
use crate::format::{self, UNKNOWN};
use crate::store::{Store, ViewContext};
use crate::view::clipboard::CopyButton;
use crate::view::control::view;

/// Holders named one by one; a cluster may have thousands.
const HOLDERS: usize = 64;

/// Begins at the block that a link names, and keeps the address at the one that is selected, so that the page's address is
/// such a link.
pub(super) fn begin_at(tree: TreeView) {
    let store = tree.store;
    let named = store.address.with_untracked(|address| address.other(key::BLOCK));
    let wanted = StoredValue::new(named.and_then(|hash| hash.parse().ok()).map(BlockHash));
    Effect::new(move |_| {
        let selected = tree.selected.get();
        if let Some(hash) = wanted.get_value().filter(|_| selected.is_none()) {
            store.on_beat(|_| ());
            // The state or its forest may not be there yet.
            let found = store.look(|cluster, _| {
                let tree = cluster.tree();
                let node = tree.find_any(hash).filter(|&node| tree.is_attached(node))?;
                Some(Crumb::at(tree, node, tree.position(node)))
            });
            if store.ready()
                && let Some(found) = found
            {
                wanted.set_value(None);
                if let Some(crumb) = found {
                    tree.go_to(crumb);
                }
            }
            return;
        }
        wanted.set_value(None);
        let hash = selected.map(|crumb| crumb.hash.to_string());
        if store.address.with_untracked(|address| address.other(key::BLOCK)) != hash {
            store.address.update(|address| address.set_other(key::BLOCK, hash.as_deref()));
        }
    });
}

/// What is known of a block.
#[derive(Clone, PartialEq)]
struct Detail {
    crumb: Crumb,
    prefix: Prefix,
    owners: Vec<WorkerIx>,
    /// What each holder calls it, where they differ.
    names: Vec<(WorkerIx, BlockHash)>,
    first_stored: Millis,
    last_stored: Millis,
    last_used: Millis,
    /// Requests of the window of which is known what was held.
    requests: u32,
    /// Blocks of the whole picture.
    all: u32,
    /// First block of the nearest box above that somebody holds.
    above: Option<Crumb>,
}

/// What there is to show.
#[derive(Clone, PartialEq)]
enum Subject {
    Nothing,
    /// It was there once.
    Evicted(Crumb),
    Block(Box<Detail>),
}

impl Subject {
    fn block(&self) -> Option<&Detail> {
        if let Subject::Block(detail) = self { Some(detail) } else { None }
    }
}

/// A part of what is known of the block; the type's own nothing where there is none. Tracked.
fn part<T: Default>(shown: Memo<Subject>, of: impl FnOnce(&Detail) -> T) -> T {
    shown.with(|shown| shown.block().map(of)).unwrap_or_default()
}

fn of(cluster: &ViewContext<'_>, forest: &Forest, crumb: Crumb) -> Option<Detail> {
    let tree = cluster.tree();
    let node = crumb.node(tree)?;
    let prefix = tree.prefix(node)?;
    let owners: Vec<WorkerIx> = cluster.owners(tree.owners(node)).collect();
    let names = if tree.hashes_agree(node) {
        Vec::new()
    } else {
        owners.iter().map(|&worker| (worker, tree.block_hash_by(node, worker.slot()))).collect()
    };
    let above = forest.up(prefix.chain).skip(1).find(|&id| tree.held_in(forest.chain(id)) > 0);
    Some(Detail {
        crumb,
        owners,
        names,
        first_stored: touched_ms(tree.first_stored(node)),
        last_stored: touched_ms(tree.touched(node)),
        last_used: touched_ms(prefix.touched),
        requests: forest.requests(),
        all: forest.sums().blocks,
        above: above.map(|id| Crumb::of(tree, forest, id)),
        prefix,
    })
}

/// The details.
#[component]
pub(super) fn Details(tree: TreeView, size: Memo<BlockSize>) -> impl IntoView {
    let store = tree.store;
    let shown = Memo::new(move |_| {
        let under = || match tree.hovered.get() {
            Some(Hovered::Block(crumb)) => Some(crumb),
            Some(Hovered::NarrowBoxes(_)) | None => None,
        };
        let Some(crumb) = tree.selected.get().or_else(under) else { return Subject::Nothing };
        store.on_beat(|_| ());
        match store.look(|cluster, forest| of(cluster, forest, crumb)).flatten() {
            Some(detail) => Subject::Block(Box::new(detail)),
            // What is cached nowhere can be pointed at, but has no name.
            None if tree.selected.get().is_some() => Subject::Evicted(crumb),
            None => Subject::Nothing,
        }
    });
    let is_block = Memo::new(move |_| shown.with(|shown| shown.block().is_some()));
    let head =
        move || if tree.selected.get().is_some() { "Selected block" } else { "Block under the pointer" };
    view! {
        <section class="side-block" aria-label="Block" data-testid="block-details"
            data-hash=move || part(shown, |d| Some(d.crumb.hash.to_string()))>
            <Show when=move || is_block.get() fallback=move || view! { <Other tree shown/> }>
                <header>
                    <h3>{move || head()}</h3>
                    <Show when=move || tree.selected.get().is_some()>
                        <button class="plain quiet" data-testid="block-let-go" on:click=move |_| tree.selected.set(None)>"Clear"</button>
                    </Show>
                </header>
                <Rows store shown size/>
                <Actions tree shown/>
            </Show>
        </section>
    }
}

#[component]
fn Other(tree: TreeView, shown: Memo<Subject>) -> impl IntoView {
    move || match shown.get() {
        Subject::Evicted(crumb) => {
            let text = format!(
                "Block {} at position {} was evicted from every worker.",
                crumb.hash,
                format::count(crumb.position.into())
            );
            view! {
                <header><h3>"Selected block"</h3>
                    <button class="plain quiet" data-testid="block-let-go" on:click=move |_| tree.selected.set(None)>"Clear"</button></header>
                <p class="caption" data-testid="block-gone">{text}</p>
            }
        }
        _ => view! {
            <header><h3>"Block"</h3></header>
            <p class="caption" data-testid="block-none">
                "Point at a box to see its block here, click it to keep it, or search with " <kbd>"/"</kbd> ": hashes, workers, age, hits and the memory of the copies below it."
            </p>
        },
    }
}

/// Lines of figures that stay where they are while the figures change.
#[component]
fn Rows(store: Store, shown: Memo<Subject>, size: Memo<BlockSize>) -> impl IntoView {
    let text = move |of: fn(&Detail) -> String| Memo::new(move |_| part(shown, of));
    let age = move |of: fn(&Detail) -> Millis| {
        Memo::new(move |_| {
            let now = store.on_beat(|_| store.now_ms());
            part(shown, |d| format::ago(now.since(of(d))))
        })
    };
    let owners = Memo::new(move |_| part(shown, |d| d.owners.clone()));
    let names = Memo::new(move |_| part(shown, |d| d.names.clone()));
    let holders = move || {
        let n = owners.with(Vec::len) as u64;
        format!(
            "{} of {}",
            format::count(n),
            format::plural(store.drawn.with(Vec::len) as u64, "worker", "workers")
        )
    };
    let place = Memo::new(move |_| {
        let tokens = size.get().tokens;
        part(shown, |d| position(d.crumb.position, tokens))
    });
    let copies = Memo::new(move |_| {
        let size = size.get();
        part(shown, |d| copies_of(d, size))
    });
    view! {
        <dl class="block-facts">
            <Hash name="Block hash" id="block-hash" copy=["Copy the block hash in decimal", "Copy the block hash in hexadecimal"]
                value=Memo::new(move |_| part(shown, |d| d.crumb.hash.0))/>
            <Show when=move || names.with(|names| !names.is_empty())>
                <div class="wide"><dt>"Named differently"</dt><dd class="names" data-testid="block-names">
                    {move || names.get().into_iter().take(HOLDERS).map(|(worker, hash)| view! {
                        <span>{label(worker)} " " <span class="mono">{hash.to_string()}</span></span>
                    }).collect_view()}
                </dd></div>
            </Show>
            <Hash name="Tokens hash" id="block-tokens" copy=["Copy the tokens hash in decimal", "Copy the tokens hash in hexadecimal"]
                value=Memo::new(move |_| part(shown, |d| d.crumb.tokens.0))/>
            <Fact name="Position" id="block-position" title="From 0, in its prompt" value=place/>
            <Fact name="Box" id="block-chain" title="Blocks with one successor each and the same workers are one box"
                value=text(|d| format!("block {} of {}", format::count(u64::from(d.prefix.place) + 1), format::count(d.prefix.chain_len.into())))/>
            <div class="wide"><dt>"Cached on"</dt><dd data-testid="block-owners">
                {move || owners.with(|owners| side::chips(store, owners, HOLDERS))} <span class="quiet">{move || holders()}</span>
            </dd></div>
            <Fact name="First stored" id="block-first" title="Since it is in the tree" value=age(|d| d.first_stored)/>
            <Fact name="Last stored" id="block-last" title="By any of its workers" value=age(|d| d.last_stored)/>
            <Fact name="Last used" id="block-used" title="When a worker last stored, or a request last used, a block of this box or below" value=age(|d| d.last_used)/>
            <Fact name="Hits" id="block-hits" title="Requests of the last 5 min that found this block cached, of those of which it is known" value=text(hits)/>
            <Fact name="Children" id="block-children" title="Blocks that follow this one" value=text(|d| format::count(d.prefix.children.into()))/>
            <Fact name="Subtree" id="block-subtree" title="Cached blocks at and below this one" value=text(subtree)/>
            <Fact name="Deepest" id="block-depth" title="Position of the deepest block at or below this one" value=text(|d| format!("block {}", format::count(u64::from(d.prefix.bottom.saturating_sub(1)))))/>
            <Fact name="Shared" id="block-shared" title="Blocks at and below this one that are cached on two workers or more" value=text(shared)/>
            <Fact name="Duplicate blocks" id="block-copies" title="Blocks of memory with a copy of another worker's block, at and below this one" value=copies/>
        </dl>
    }
}

#[component]
fn Fact(name: &'static str, id: &'static str, title: &'static str, value: Memo<String>) -> impl IntoView {
    view! { <div title=title><dt>{name}</dt><dd data-testid=id>{value}</dd></div> }
}

/// A hash in both forms, each to be copied.
#[component]
fn Hash(name: &'static str, id: &'static str, copy: [&'static str; 2], value: Memo<u64>) -> impl IntoView {
    let hex = move || format!("0x{}", format::hex(value.get()));
    let copies =
        if id == "block-hash" { ["copy-hash", "copy-hash-hex"] } else { ["copy-tokens", "copy-tokens-hex"] };
    let hex_id = format!("{id}-hex");
    view! {
        <div class="wide"><dt>{name}</dt>
            <dd class="hash"><span class="mono" data-testid=id>{move || value.get().to_string()}</span>
                <CopyButton label="Copy" id=copies[0] name=copy[0] text=move || value.get_untracked().to_string()/></dd>
            <dd class="hash"><span class="mono quiet" data-testid=hex_id>{move || hex()}</span>
                <CopyButton label="Copy" id=copies[1] name=copy[1] text=move || format!("0x{}", format::hex(value.get_untracked()))/></dd>
        </div>
    }
}

fn position(position: u32, block_tokens: Option<u32>) -> String {
    let at = format::count(position.into());
    let Some(size) = block_tokens.map(u64::from) else { return at };
    let first = u64::from(position) * size;
    format!("{at}, tokens {}–{}", format::count(first), format::count(first + size - 1))
}

fn hits(detail: &Detail) -> String {
    match detail.requests {
        0 => format!("{UNKNOWN} prompts not visible"),
        requests => {
            let share = f64::from(detail.prefix.hits) / f64::from(requests);
            format!(
                "{} of {}, {}",
                format::count(detail.prefix.hits.into()),
                format::plural(requests.into(), "request", "requests"),
                format::percent(share)
            )
        }
    }
}

fn subtree(detail: &Detail) -> String {
    let share = f64::from(detail.prefix.blocks) / f64::from(detail.all.max(1));
    format!(
        "{}, {} of all",
        format::plural(detail.prefix.blocks.into(), "block", "blocks"),
        format::percent(share)
    )
}

fn shared(detail: &Detail) -> String {
    let of = Redundancy::from(&detail.prefix);
    let share = of.shared_share().map_or(String::new(), |share| format!(", {}", format::percent(share)));
    format!("{}{share}", format::plural(of.shared, "block", "blocks"))
}

fn copies_of(detail: &Detail, size: BlockSize) -> String {
    let copies = detail.prefix.copies;
    let mut text = format::plural(copies, "block", "blocks");
    if let Some(tokens) = size.tokens(copies) {
        text += &format!(", {} tokens", format::short(tokens));
    }
    if let Some(bytes) = size.bytes(copies) {
        text += &format!(", {}", gib(bytes));
    }
    text
}

#[component]
fn Actions(tree: TreeView, shown: Memo<Subject>) -> impl IntoView {
    let crumb = move || shown.with_untracked(|shown| shown.block().map(|d| d.crumb));
    let above = Memo::new(move |_| part(shown, |d| d.above));
    view! {
        <p class="side-actions">
            <button class="plain" data-testid="block-zoom" on:click=move |_| if let Some(crumb) = crumb() { tree.go_to(crumb) }>"Zoom here"</button>
            <button class="plain" data-testid="block-parent" disabled=move || above.get().is_none()
                on:click=move |_| if let Some(above) = above.get_untracked() { tree.selected.set(Some(above)) }>"Select the box above"</button>
        </p>
    }
}
