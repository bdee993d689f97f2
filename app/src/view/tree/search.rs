//! One field that finds a block, a worker or a decision by what the reader has at hand. What a text may mean and what the
//! state has of it is core's; this shows it and goes there.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_model::id::{DecisionId, PoolIx, WorkerIx};
use radixscope_state::search::{self, Query, SearchHit};
use radixscope_state::tree::NodeId;
use web_sys::KeyboardEvent;

use super::state::TreeView;
use crate::format;
use crate::keys;
use crate::store::ViewContext;
use crate::view::control::view;

/// Results shown at a time.
const MOST: usize = 20;
/// How long a text must stand before it is looked for: a tokens hash is looked for in the whole tree.
const REST: Duration = Duration::from_millis(150);
/// Id of the field, for the key that moves the focus there.
const FIELD: &str = "tree-search";

/// Where a result leads.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Block(PoolIx, Crumb),
    /// A block whose parent was never received: not in the picture.
    Nowhere,
    Worker(WorkerIx),
    Decision(DecisionId),
}

#[derive(Clone, PartialEq)]
struct SearchResult {
    group: &'static str,
    main: String,
    more: String,
    way: Way,
}

/// What was found for a text.
#[derive(Clone, PartialEq)]
struct SearchResults {
    text: String,
    understood: String,
    lines: Vec<SearchResult>,
    /// Number of results before those.
    from: usize,
    /// How many there are.
    total: usize,
    /// Where was looked.
    through: String,
}

impl SearchResults {
    /// For a text that is not empty, from one of its results on.
    fn of(cluster: &ViewContext<'_>, text: &str, from: usize) -> Self {
        let query = Query::parse(text);
        let results = search::find(cluster, &query, from..from + MOST);
        let lines = results.found.into_iter().filter_map(|found| SearchResult::of(cluster, found)).collect();
        Self {
            text: text.trim().to_owned(),
            understood: query.to_text(),
            lines,
            from,
            total: results.total,
            through: search::looked_through(cluster),
        }
    }

    /// The blocks in the tree of `shown`.
    fn blocks(&self, shown: PoolIx) -> Vec<Crumb> {
        let block = |line: &SearchResult| match line.way {
            Way::Block(pool, crumb) => (pool == shown).then_some(crumb),
            Way::Nowhere | Way::Worker(_) | Way::Decision(_) => None,
        };
        self.lines.iter().filter_map(block).collect()
    }

    /// For those who hear the page, and below the field.
    fn summary(&self) -> String {
        if self.understood.is_empty() {
            return "Not understood: a block hash or tokens hash (decimal, signed or 0x…, four digits of one or more), a \
                    worker (W3, its id, id/rank), #decision or the beginning of a request id"
                .to_owned();
        }
        if self.lines.is_empty() {
            return format!("Nothing found for {} as {}. {}", self.text, self.understood, self.through);
        }
        let results = format::plural(self.total as u64, "result", "results");
        let shown = self.is_part().then(|| {
            format!(", {}–{} shown", self.from + 1, format::count((self.from + self.lines.len()) as u64))
        });
        format!("{results} for {}{}", self.understood, shown.unwrap_or_default())
    }

    /// Whether there are more than are shown.
    fn is_part(&self) -> bool {
        self.lines.len() < self.total
    }

    /// Where the results after these, or before them, begin; `None`: there are none.
    fn beside(&self, is_next: bool) -> Option<usize> {
        if is_next {
            Some(self.from + MOST).filter(|&from| from < self.total)
        } else {
            (self.from > 0).then(|| self.from.saturating_sub(MOST))
        }
    }
}

impl SearchResult {
    fn of(cluster: &ViewContext<'_>, found: SearchHit) -> Option<Self> {
        Some(match found {
            SearchHit::Block { pool, node, workers } => {
                let named = if workers.len() > 3 {
                    format!("{} workers", workers.len())
                } else {
                    workers.into_iter().map(label).collect::<Vec<_>>().join(" ")
                };
                Self::block(cluster, (pool, node), "Blocks by engine hash", &format!("called so by {named}"))
            }
            SearchHit::Tokens { pool, node } => {
                let hash = cluster.cluster.tree(pool).block_hash(node);
                Self::block(cluster, (pool, node), "Blocks by tokens hash", &format!("block hash {hash}"))
            }
            SearchHit::Part { pool, node, hash, is_tokens } => {
                let which = if is_tokens { "tokens hash" } else { "block hash" };
                let name = format!("{which} {hash}, 0x{}", format::hex(hash));
                Self::block(cluster, (pool, node), "Blocks by a part of a hash", &name)
            }
            SearchHit::Worker(ix) => {
                let worker = cluster.worker(ix)?;
                let holds = cluster
                    .blocks(ix)
                    .map_or("blocks unknown".to_owned(), |n| format::plural(n, "block", "blocks"));
                Self {
                    group: "Workers",
                    main: format!("{}  {}", label(ix), worker.id),
                    more: holds,
                    way: Way::Worker(ix),
                }
            }
            SearchHit::Decision(id) => {
                let decided = cluster.decisions().get(id)?;
                let request = decided.decision.request_id.as_deref().unwrap_or("request id unknown");
                let held = decided.overlap_blocks().map_or("cached part unknown".to_owned(), |held| {
                    format!("{} cached", format::plural(held, "block", "blocks"))
                });
                Self {
                    group: "Decisions",
                    main: format!("#{id}  {request}"),
                    more: format!("for {}, {held}", label(decided.decision.worker)),
                    way: Way::Decision(id),
                }
            }
        })
    }

    fn block(
        cluster: &ViewContext<'_>,
        (pool, node): (PoolIx, NodeId),
        group: &'static str,
        name: &str,
    ) -> Self {
        let tree = cluster.cluster.tree(pool);
        let mut holders = format::plural(tree.owners(node).len() as u64, "worker", "workers");
        if let Some(other) = cluster.cluster.pool(pool).filter(|_| pool != cluster.pool) {
            holders += &format!(", in pool {}", other.name());
        }
        if !tree.is_attached(node) {
            let main = "Waits for a parent that was never received".to_owned();
            return Self { group, main, more: format!("{name}, {holders}; not drawn"), way: Way::Nowhere };
        }
        let crumb = Crumb::at(tree, node, tree.position(node));
        let main = format!("Block at position {}", format::count(crumb.position.into()));
        Self { group, main, more: format!("{name}, {holders}"), way: Way::Block(pool, crumb) }
    }
}

/// The field and its list.
#[component]
pub(super) fn Search(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let field = NodeRef::<html::Input>::new();
    let text = RwSignal::new(String::new());
    let results = RwSignal::new(None::<SearchResults>);
    let at = RwSignal::new(0usize);
    let is_open = RwSignal::new(false);
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let look_from = move |from: usize| {
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
        let now = text.get_untracked();
        let found =
            (!now.trim().is_empty()).then(|| store.peek(|cluster| SearchResults::of(cluster, &now, from)));
        let pool = store.pools.get_untracked().pool;
        tree.found.set(found.as_ref().map(|found| found.blocks(pool)).unwrap_or_default());
        tree.redraw_soon();
        at.set(0);
        results.set(found);
    };
    let look = move || look_from(0);
    let beside = move |is_next| results.with_untracked(|results| results.as_ref()?.beside(is_next));
    let turn = move |is_next| beside(is_next).map(look_from).is_some();
    let typed = move |event| {
        text.set(event_target_value(&event));
        is_open.set(true);
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
        waiting.set_value(set_timeout_with_handle(look, REST).ok());
    };
    on_cleanup(move || {
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
    });
    let go = move |way: Way| {
        match way {
            Way::Block(pool, crumb) => tree.go_in(pool, crumb),
            // Picking twice lets go, and who searches wants it picked.
            Way::Worker(ix)
                if store.address.with_untracked(|a| a.worker)
                    != store.peek(|c| c.worker(ix).map(|w| w.id)) =>
            {
                if let Some(pool) = store.peek(|shown| shown.pool_of(ix).filter(|&pool| !shown.has(pool))) {
                    store.show_pool(pool);
                }
                store.pick(ix);
            }
            Way::Worker(_) => {}
            Way::Decision(id) => store.address.update(|address| address.decision = Some(id)),
            Way::Nowhere => return,
        }
        is_open.set(false);
    };
    let lines =
        move || results.with_untracked(|results| results.as_ref().map_or(0, |results| results.lines.len()));
    let key = move |event: KeyboardEvent| {
        match event.key().as_str() {
            "ArrowDown" | "ArrowUp" if lines() > 0 => {
                let n = lines();
                let is_down = event.key() == "ArrowDown";
                let is_last = at.get_untracked() == if is_down { n - 1 } else { 0 };
                if is_open.get_untracked() && is_last && turn(is_down) {
                    at.set(if is_down { 0 } else { lines().saturating_sub(1) });
                } else if is_open.get_untracked() {
                    let step = if is_down { 1 } else { n - 1 };
                    at.update(|at| *at = (*at + step) % n);
                }
                is_open.set(true);
            }
            "PageDown" => _ = turn(true),
            "PageUp" => _ = turn(false),
            "Enter" => {
                let is_fresh = results
                    .with_untracked(|a| a.as_ref().is_some_and(|a| a.text == text.get_untracked().trim()));
                if !is_fresh {
                    look();
                }
                is_open.set(true);
                let way = results
                    .with_untracked(|a| a.as_ref()?.lines.get(at.get_untracked()).map(|line| line.way));
                way.into_iter().for_each(go);
            }
            "Escape" if is_open.get_untracked() => is_open.set(false),
            "Escape" => {
                text.set(String::new());
                look();
                keys::focus("tree");
            }
            _ => return,
        }
        event.prevent_default();
        event.stop_propagation();
    };
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "/" && !keys::is_elsewhere(&event) {
            keys::focus(FIELD);
            event.prevent_default();
        }
    });
    on_cleanup(move || handle.remove());
    let is_shown = Memo::new(move |_| is_open.get() && results.with(Option::is_some));
    let active = move || {
        (is_shown.get() && results.with(|a| a.as_ref().is_some_and(|a| !a.lines.is_empty())))
            .then(|| format!("found-{}", at.get()))
    };
    view! {
        <div class="search" role="search">
            <input id=FIELD node_ref=field type="search" class="search-field" data-testid="tree-search" spellcheck="false" autocomplete="off"
                placeholder="Search  /" title="Block hash or tokens hash (decimal, signed or 0x…) or four digits of one, worker (W3, id, id/rank), #decision, request id"
                aria-label="Search the tree: block hash, tokens hash, worker, decision or request id"
                role="combobox" aria-expanded=move || is_shown.get().to_string() aria-controls="found" aria-autocomplete="list"
                aria-activedescendant=move || active()
                prop:value=text on:input=typed on:keydown=key
                on:focus=move |_| is_open.set(true) on:blur=move |_| is_open.set(false)/>
            <div class="found-list" class:shown=move || is_shown.get()>
                <p class="caption" role="status" data-testid="found-summary">{move || results.with(|a| a.as_ref().map(SearchResults::summary))}</p>
                <p class="found-turn" class:shown=move || results.with(|a| a.as_ref().is_some_and(SearchResults::is_part))>
                    {[(false, "found-previous", "Previous"), (true, "found-next", "Next")].map(|(is_next, id, name)| view! {
                        <button type="button" class="plain" tabindex="-1" data-testid=id
                            disabled=move || results.with(|a| a.as_ref().and_then(|a| a.beside(is_next)).is_none())
                            on:mousedown=|event| event.prevent_default() on:click=move |_| { turn(is_next); }>{name}</button>
                    })}
                </p>
                <div id="found" role="listbox" aria-label="Found">
                    {move || results.with(|a| a.as_ref().map(|a| groups(a, at, go)))}
                </div>
            </div>
        </div>
    }
}

/// The results, those of a kind together.
fn groups(
    results: &SearchResults,
    at: RwSignal<usize>,
    go: impl Fn(Way) + Copy + Send + Sync + 'static,
) -> AnyView {
    let lines: Vec<(usize, SearchResult)> = results.lines.iter().cloned().enumerate().collect();
    let option = move |(i, line): (usize, SearchResult)| {
        let way = line.way;
        // Pressing must not take the focus from the field, or the list would close before the click.
        view! {
            <div role="option" id=format!("found-{i}") class="found-line" data-testid="found"
                aria-selected=move || (at.get() == i).to_string() aria-disabled=(way == Way::Nowhere).then_some("true")
                on:mousedown=|event| event.prevent_default() on:mousemove=move |_| if at.get_untracked() != i { at.set(i) }
                on:click=move |_| go(way)>
                <b>{line.main}</b> " " <span class="quiet">{line.more}</span>
            </div>
        }
    };
    lines
        .chunk_by(|(_, a), (_, b)| a.group == b.group)
        .map(|group| {
            let name = group.first().map_or("", |(_, line)| line.group);
            view! {
                <div role="group" aria-label=name>
                    <p class="found-group" aria-hidden="true">{name}</p>
                    {group.iter().cloned().map(option).collect_view()}
                </div>
            }
        })
        .collect_view()
        .into_any()
}
