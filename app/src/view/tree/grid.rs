//! The tree as a table whose lines open: what the picture shows, for the keyboard and for those who hear the page.
//!
//! Lines are put in order anew at a readable pace; the line that the reader is on stays where it is on the screen.

use std::collections::HashSet;
use std::ops::Range;

use leptos::attr::custom::custom_attribute;
use leptos::prelude::*;
use radixscope_icicle::crumb::Crumb;
use radixscope_panels::tree::{
    COLUMNS, Column, GridMove, GridRow, RowKey, edge_after, is_sideways, line_of, lines, sideways,
};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Forest, RowOrder};
use web_sys::KeyboardEvent;

use super::state::TreeView;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::virtual_table::{Scroll, VirtualTable};

/// Id of what takes the focus.
const GRID_ID: &str = "tree-grid";
/// What the table's parts share.
#[derive(Clone, Copy)]
struct Grid {
    tree: TreeView,
    scroll: Scroll,
    order: RwSignal<RowOrder>,
    /// Engine's hashes of the boxes whose lines are open.
    open: StoredValue<HashSet<u64>>,
    lines: RwSignal<Vec<RowKey>>,
    /// The line that the keyboard is on.
    cursor: RwSignal<Option<Crumb>>,
    /// Raised when lines are opened, closed or ordered otherwise.
    refreshes: RwSignal<u32>,
}

impl Grid {
    fn line_of(self, crumb: Crumb) -> Option<usize> {
        self.lines.with_untracked(|lines| line_of(lines, crumb))
    }

    /// Puts the cursor on a line and scrolls as little as brings it into sight.
    fn step_to(self, at: usize) {
        let Some(line) = self.lines.with_untracked(|lines| lines.get(at).copied()) else { return };
        self.cursor.set(Some(line.crumb));
        self.tree.selected.set(Some(line.crumb));
        self.scroll.show(at);
    }

    fn toggle(self, crumb: Crumb, open: bool) {
        self.open.update_value(|set| {
            if open {
                set.insert(crumb.hash.0);
            } else {
                set.remove(&crumb.hash.0);
            }
        });
        self.refreshes.update(|n| *n += 1);
    }

    /// Makes the lines anew and keeps the one that the reader is on where it is.
    fn refill(self, tree: &Tree, forest: &Forest) {
        let order = self.order.get_untracked();
        let lines = self.open.with_value(|open| lines(tree, forest, order, open));
        if self.lines.with_untracked(|before| *before == lines) {
            return;
        }
        let (first, cut) = self.scroll.at_edge();
        let is_seen = |crumb: &Crumb| self.line_of(*crumb).is_some_and(|at| self.scroll.is_in_sight(at));
        let cursor = self.cursor.get_untracked().filter(is_seen);
        let edge = (first, first == 0 && cut < 1.0);
        let line = self.lines.with_untracked(|before| edge_after(before, &lines, edge, cursor));
        self.lines.set(lines);
        if let Some(line) = line {
            // The height of all lines is in the document with the next frame; without it there is nowhere to scroll to.
            request_animation_frame(move || self.scroll.to((line, cut)));
        }
    }
}

/// The table.
#[component]
pub(super) fn TreeGrid(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let grid = Grid {
        tree,
        scroll: Scroll::new(),
        order: RwSignal::new(RowOrder::Blocks),
        open: StoredValue::new(HashSet::new()),
        lines: RwSignal::new(Vec::new()),
        cursor: RwSignal::new(tree.selected.get_untracked()),
        refreshes: RwSignal::new(0),
    };
    store.keep_forest();
    Effect::new(move |_| {
        grid.refreshes.track();
        grid.order.track();
        let arrangement = tree.choice.with(|choice| choice.arrangement);
        store.on_tree_beat(arrangement, |cluster, forest| grid.refill(cluster.tree(), forest));
    });
    let count = Memo::new(move |_| grid.lines.with(Vec::len));
    let head =
        COLUMNS.map(|Column { class, name, title, order }| view! { <HeadCell grid class name title order/> });
    let active = Memo::new(move |_| grid.cursor.get().map(row_id));
    view! {
        <VirtualTable scroll=grid.scroll id=GRID_ID role="treegrid" columns=COLUMNS.len() count active
            label="Prefix tree, one row per run of blocks. Right opens a row, Left closes it, Enter shows it as a picture"
            head=head.into_iter().collect_view().into_any() rows=move |lines| look_up(grid, lines)
            line=move |line| view! { <GridLine grid line/> }
            on_scroll=move |()| grid.scroll.follow() on_key=move |event| key(grid, &event)/>
    }
}

#[component]
fn HeadCell(
    grid: Grid,
    class: &'static str,
    name: &'static str,
    title: &'static str,
    order: Option<RowOrder>,
) -> impl IntoView {
    let Some(order) = order else {
        return view! { <span class=class role="columnheader" title=title>{name}</span> };
    };
    let is_by = Memo::new(move |_| grid.order.get() == order);
    let sort = move || if is_by.get() { "descending" } else { "none" };
    view! {
        <span class=class role="columnheader" aria-sort=move || sort()>
            <button class="plain" title=format!("{title}. Sorts by it") aria-pressed=move || is_by.get().to_string()
                on:click=move |_| grid.order.set(order)>
                {name}<span aria-hidden="true">{move || if is_by.get() { " ↓" } else { "" }}</span>
            </button>
        </span>
    }
}

/// What the lines in sight show now; `None` beyond the last.
fn look_up(grid: Grid, lines: Range<usize>) -> Vec<Option<GridRow>> {
    let keys: Vec<(usize, Option<RowKey>)> =
        grid.lines.with(|all| lines.map(|at| (at, all.get(at).copied())).collect());
    let arrangement = grid.tree.choice.with(|choice| choice.arrangement);
    let store = grid.tree.store;
    let mut found = Vec::new();
    store.on_tree_beat(arrangement, |cluster, _| {
        let now = store.now_ms();
        let line = |(at, key): (usize, Option<RowKey>)| GridRow::of(cluster, now, at, key?);
        found = keys.into_iter().map(line).collect();
    });
    found
}

fn row_id(crumb: Crumb) -> String {
    format!("tree-line-{}", crumb.hash)
}

/// One line in sight; it shows one box after the other.
#[component]
fn GridLine(grid: Grid, line: RwSignal<Option<GridRow>>) -> impl IntoView {
    let store = grid.tree.store;
    let of = move |part: fn(&GridRow) -> &str| {
        move || line.with(|line| line.as_ref().map_or_else(String::new, |line| part(line).to_owned()))
    };
    // Leptos has no method of this name.
    let level =
        custom_attribute("aria-level", move || line.with(|line| line.as_ref().map(|line| line.key.level)));
    let number = move |part: fn(&GridRow) -> u32| move || line.with(|line| line.as_ref().map(part));
    let key = Memo::new(move |_| line.with(|line| line.as_ref().map(|line| line.key)));
    let crumb = Memo::new(move |_| key.get().map(|key| key.crumb));
    let has_children =
        Memo::new(move |_| line.with(|line| line.as_ref().is_some_and(|line| line.has_children)));
    let is_open = Memo::new(move |_| key.get().is_some_and(|key| key.is_open));
    let is_cursor = move || crumb.get().is_some() && grid.cursor.get() == crumb.get();
    let is_selected = move || crumb.get().is_some() && grid.tree.selected.get() == crumb.get();
    let owners = Memo::new(move |_| {
        line.with(|line| {
            let line = line.as_ref()?;
            let (named, more) = line.named_owners();
            Some((named.to_vec(), more, line.owner_labels()))
        })
    });
    let names = move || owners.with(|owners| owners.as_ref().map(|(_, _, labels)| labels.clone()));
    let chips = move || {
        owners.get().map(|(named, more, _)| {
            let no_worker = named.is_empty().then_some("no worker");
            let chips = named.into_iter().map(|worker| view! { <Chip store worker/> }).collect_view();
            (chips, more, no_worker)
        })
    };
    let indent = move || key.get().map(|key| key.indent());
    let click = move |_| {
        if let Some(at) = line.with_untracked(|line| line.as_ref().map(|line| line.at)) {
            grid.step_to(at);
        }
    };
    let twist = move |event: web_sys::MouseEvent| {
        event.stop_propagation();
        if let Some(crumb) = crumb.get_untracked() {
            grid.toggle(crumb, !is_open.get_untracked());
        }
    };
    let show = move |_| {
        if let Some(crumb) = crumb.get_untracked() {
            show_in_picture(grid, crumb);
        }
    };
    view! {
        <div class="virtual-row" role="row" {..level} class:vacant=move || crumb.get().is_none() class:cursor=move || is_cursor() class:open=move || is_selected()
            id=move || crumb.get().map(row_id) aria-selected=move || is_selected().to_string()
            aria-expanded=move || has_children.get().then(|| is_open.get().to_string())
            aria-posinset=number(|line| line.key.place)
            aria-setsize=number(|line| line.key.siblings) aria-rowindex=number(|line| line.at as u32 + 2)
            data-testid="tree-line" data-hash=move || crumb.get().map(|crumb| crumb.hash.to_string())
            on:click=click on:dblclick=show>
            <span class="g-prefix" role="gridcell" style=move || indent()>
                <i class="twist" aria-hidden="true" class:on=move || has_children.get() on:click=twist>{move || if is_open.get() { "▾" } else { "▸" }}</i>
                {of(|line| &line.prefix)}
            </span>
            <span class="g-hash mono" role="gridcell">{move || crumb.get().map(|crumb| crumb.hash.to_string())}</span>
            <span class="g-owners" role="gridcell" title=move || names()>{move || chips()}</span>
            <span class="g-blocks n" role="gridcell">{of(|line| &line.blocks)}</span>
            <span class="g-copies n" role="gridcell">{of(|line| &line.copies)}</span>
            <span class="g-hits n" role="gridcell">{of(|line| &line.hits)}</span>
            <span class="g-used n" role="gridcell">{of(|line| &line.used)}</span>
        </div>
    }
}

/// Back to the picture, at this box.
fn show_in_picture(grid: Grid, crumb: Crumb) {
    grid.tree.go_to(crumb);
    grid.tree.store.address.update(|address| address.set_other(super::state::key::TABLE, None));
}

fn key(grid: Grid, event: &KeyboardEvent) {
    let lines = grid.lines.with_untracked(Vec::len);
    if lines == 0 || event.ctrl_key() || event.meta_key() || event.alt_key() {
        return;
    }
    let at = grid.cursor.get_untracked().and_then(|crumb| grid.line_of(crumb));
    let key = event.key();
    if is_sideways(&key) {
        event.prevent_default();
        let to = at.and_then(|at| grid.lines.with_untracked(|lines| sideways(lines, at, &key)));
        match to {
            None => {}
            Some(GridMove::Open(crumb)) => grid.toggle(crumb, true),
            Some(GridMove::Close(crumb)) => grid.toggle(crumb, false),
            Some(GridMove::To(at)) => grid.step_to(at),
            Some(GridMove::Show(crumb)) => show_in_picture(grid, crumb),
        }
    } else if let Some(to) = grid.scroll.line_after(&key, at, lines) {
        event.prevent_default();
        grid.step_to(to);
    }
}
