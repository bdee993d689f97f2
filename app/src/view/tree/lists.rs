//! Prefixes worth a look, the largest or the most used first. A line moves the camera to its prefix.

use leptos::prelude::*;
use radixscope_icicle::crumb::Crumb;
use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::candidates_hint;
use radixscope_state::tree::forest::{ChainId, Forest};

use super::side;
use super::state::TreeView;
use crate::format;
use crate::store::{ViewContext, now_ms};
use crate::view::control::view;
use crate::view::hint::HintList;
use crate::view_context::DrawnTree;

/// Lines at first, and by how many more there are at a press.
const LINES: usize = 10;
/// Most lines: who looks for more wants the table.
const MOST_LINES: usize = 100;
/// Holders named in a line.
const HOLDERS: usize = 3;
/// Shortest time between two computations: a list that moves faster cannot be clicked.
const PACE_MS: f64 = 1_000.0;

/// By what prefixes are ranked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ranked {
    /// Blocks at and below them.
    Largest,
    /// Requests that found them held.
    Hottest,
}

#[derive(Clone, PartialEq)]
struct ListedBox {
    crumb: Crumb,
    /// Position of the box's last block.
    last: u32,
    owners: Vec<WorkerIx>,
    blocks: u32,
    hits: u32,
    copies: u64,
}

#[derive(Clone, PartialEq, Default)]
struct Lines {
    lines: Vec<ListedBox>,
    is_cut: bool,
    /// Blocks of the whole picture.
    blocks: u32,
    /// Requests of the window of which is known what was held.
    requests: u32,
}

/// A list.
#[component]
pub(super) fn List(tree: TreeView, by: Ranked) -> impl IntoView {
    let store = tree.store;
    let most = RwSignal::new(LINES);
    let computed = StoredValue::new((f64::NEG_INFINITY, (0, DrawnTree::default())));
    let lines = Memo::new(move |before: Option<&Lines>| {
        let most = most.get();
        let wanted = (most, store.pools.get().drawn());
        store.on_beat(|_| ());
        let (at, what) = computed.get_value();
        match before {
            Some(before) if now_ms() - at < PACE_MS && what == wanted && !before.lines.is_empty() => {
                before.clone()
            }
            _ => {
                computed.set_value((now_ms(), wanted));
                store.look(|cluster, forest| of(cluster, forest, by, most)).unwrap_or_default()
            }
        }
    });
    let keys = Memo::new(move |_| {
        lines.with(|l| l.lines.iter().map(|line| (line.crumb.hash, line.crumb.tokens)).collect::<Vec<_>>())
    });
    let row = move |key| {
        let line = Memo::new(move |before: Option<&Option<ListedBox>>| {
            let now = lines
                .with(|l| l.lines.iter().find(|line| (line.crumb.hash, line.crumb.tokens) == key).cloned());
            now.or_else(|| before.cloned().flatten())
        });
        view! { <Row tree by line lines/> }
    };
    let is_empty = Memo::new(move |_| lines.with(|l| l.lines.is_empty()));
    let is_cut = Memo::new(move |_| lines.with(|l| l.is_cut) && most.get() < MOST_LINES);
    let head = move || match by {
        Ranked::Largest => "By cached blocks at and below. Near-duplicates hidden.".to_owned(),
        Ranked::Hottest => format!(
            "By requests of the last 5 min that found them cached, of {} known.",
            lines.with(|l| format::plural(l.requests.into(), "request", "requests"))
        ),
    };
    let list_id = if by == Ranked::Largest { "list-largest" } else { "list-hottest" };
    view! {
        <Show when=move || !is_empty.get() fallback=move || view! { <Nothing tree by lines/> }>
            <p class="caption">{move || head()}</p>
            <ol class="prefixes" data-testid=list_id>
                <For each=move || keys.get() key=|key| *key children=row/>
            </ol>
            <Show when=move || is_cut.get()>
                <button class="plain" data-testid="list-more" on:click=move |_| most.update(|n| *n += LINES)>"More"</button>
            </Show>
        </Show>
    }
}

fn of(cluster: &ViewContext<'_>, forest: &Forest, by: Ranked, most: usize) -> Lines {
    let tree = cluster.tree();
    // Boxes that are cached nowhere cannot be selected; a few more than wanted make up for them.
    let ranked = match by {
        Ranked::Largest => forest.largest(most + LINES),
        Ranked::Hottest => forest.hottest(most + LINES),
    };
    let line = |id: ChainId| {
        let chain = forest.chain(id);
        ListedBox {
            crumb: Crumb::of(tree, forest, id),
            last: chain.end() - 1,
            owners: cluster.owners(tree.chain_owners(chain)).collect(),
            blocks: chain.sums.blocks,
            hits: chain.sums.hits,
            copies: chain.sums.copies,
        }
    };
    let mut lines: Vec<ListedBox> =
        ranked.into_iter().map(line).filter(|line| !line.owners.is_empty()).collect();
    let is_cut = lines.len() > most;
    lines.truncate(most);
    Lines { lines, is_cut, blocks: forest.sums().blocks, requests: forest.requests() }
}

#[component]
fn Row(tree: TreeView, by: Ranked, line: Memo<Option<ListedBox>>, lines: Memo<Lines>) -> impl IntoView {
    let store = tree.store;
    let go = move |_| {
        if let Some(line) = line.get_untracked() {
            tree.go_to(line.crumb);
        }
    };
    let text = move |of: fn(&ListedBox, &Lines) -> String| {
        move || line.with(|line| line.as_ref().map(|line| lines.with(|lines| of(line, lines))))
    };
    let is_on = move || line.with(|line| line.as_ref().map(|line| line.crumb) == tree.selected.get());
    let owners = Memo::new(move |_| {
        line.with(|line| line.as_ref().map(|line| line.owners.clone())).unwrap_or_default()
    });
    let main = match by {
        Ranked::Largest => text(blocks_of),
        Ranked::Hottest => text(hits_of),
    };
    let other = match by {
        Ranked::Largest => text(hits_of),
        Ranked::Hottest => text(blocks_of),
    };
    let share = text(match by {
        Ranked::Largest => |line, lines| format::width(block_share(line, lines)),
        Ranked::Hottest => |line, lines| format::width(hit_share(line, lines)),
    });
    let bar = move || format!("--share:{}", share().unwrap_or_default());
    let hint = move || {
        format!("Go there. At and below it: {}", text(|line, _| copies(line.copies))().unwrap_or_default())
    };
    view! {
        <li>
            <button class="prefix" data-testid="prefix" data-hash=move || line.with(|l| l.as_ref().map(|l| l.crumb.hash.to_string()))
                aria-current=move || is_on().then_some("true") title=hint style=bar on:click=go>
                <span class="p-line">
                    <span class="p-main">{main}</span>
                    <span class="p-quiet">{text(|line, _| place(line.crumb.position, line.last))}</span>
                </span>
                <span class="p-line">
                    <span class="p-quiet">{other}</span>
                    <span class="p-owners">{move || owners.with(|owners| side::chips(store, owners, HOLDERS))}</span>
                </span>
            </button>
        </li>
    }
}

/// Of the blocks of the whole picture.
fn block_share(line: &ListedBox, lines: &Lines) -> f64 {
    f64::from(line.blocks) / f64::from(lines.blocks.max(1))
}

/// Of the requests of which is known what was cached.
fn hit_share(line: &ListedBox, lines: &Lines) -> f64 {
    f64::from(line.hits) / f64::from(lines.requests.max(1))
}

fn blocks_of(line: &ListedBox, lines: &Lines) -> String {
    let blocks = format::plural(line.blocks.into(), "block", "blocks");
    format!("{blocks}, {}", format::percent(block_share(line, lines)))
}

fn hits_of(line: &ListedBox, lines: &Lines) -> String {
    if lines.requests == 0 {
        return "hits unknown".to_owned();
    }
    let hits = format::plural(line.hits.into(), "hit", "hits");
    format!("{hits}, {}", format::percent(hit_share(line, lines)))
}

fn copies(copies: u64) -> String {
    if copies == 0 { "no duplicates".to_owned() } else { format::plural(copies, "duplicate", "duplicates") }
}

/// Positions of blocks in their prompt.
fn place(first: u32, last: u32) -> String {
    if first == last {
        return format!("block {}", format::count(first.into()));
    }
    format!("blocks {}–{}", format::count(first.into()), format::count(last.into()))
}

#[component]
fn Nothing(tree: TreeView, by: Ranked, lines: Memo<Lines>) -> impl IntoView {
    let requests = Memo::new(move |_| lines.with(|lines| lines.requests));
    let blocks = Memo::new(move |_| lines.with(|lines| lines.blocks));
    move || match (by, requests.get(), blocks.get()) {
        (_, _, 0) => {
            view! { <p class="caption" data-testid="list-empty">"No cached block. The list fills with the first stored one."</p> }
        }
        (Ranked::Hottest, 0, _) => {
            let hint = tree.store.peek(|shown| shown.decisions_hint()).unwrap_or(candidates_hint());
            view! {
                <div class="caption hot-unknown" data-testid="list-empty">
                    <p>"Prompts are not visible: no request of the last 5 min is known with its cached blocks. A source that shows prompts:"</p>
                    <HintList hint/>
                </div>
            }
        }
        (Ranked::Hottest, requests, _) => {
            let text = format!(
                "None of {} in the last 5 min found a cached block.",
                format::plural(requests.into(), "request", "requests")
            );
            view! { <p class="caption" data-testid="list-empty">{text}</p> }
        }
        (Ranked::Largest, ..) => {
            view! { <p class="caption" data-testid="list-empty">"No prefix is known from its beginning."</p> }
        }
    }
}
