//! Beside each lane: whose it is, how much that worker holds, and what it stored and removed in the last minute. The
//! column scrolls, and the lanes follow it.

use std::sync::Arc;

use leptos::html;
use leptos::prelude::*;
use radixscope_export::panel::lanes::LaneFigures;
use radixscope_icicle::lanes::Lanes;
use radixscope_icicle::palette::token;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_panels::tree::{LaneContent, highest_rate};

use super::state::TreeView;
use crate::draw::strip::area;
use crate::format;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::resize;

/// Height of each half of it in its own units.
const HALF: f64 = 10.0;

/// The column.
#[component]
pub(super) fn Heads(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let frame = NodeRef::<html::Div>::new();
    let stage = RwSignal::new(0.0);
    Effect::new(move |_| {
        let Some(frame) = frame.get() else { return };
        frame.set_scroll_top(tree.scrolled.get_untracked() as i32);
        let measured = frame.clone();
        resize::observe(&frame, move || stage.set(f64::from(measured.client_height())));
    });
    // The wheel over the picture scrolls too. What is too far comes back from the browser as far as it goes.
    Effect::new(move |_| {
        let to = tree.scrolled.get();
        if let Some(frame) = frame.get_untracked().filter(|frame| f64::from(frame.scroll_top()) != to) {
            frame.set_scroll_top(to as i32);
            tree.scrolled.set(f64::from(frame.scroll_top()));
        }
    });
    let scrolled = move |_| {
        let Some(frame) = frame.get_untracked() else { return };
        tree.scrolled.set(f64::from(frame.scroll_top()));
    };
    let workers = Memo::new(move |_| store.on_beat(|shown| shown.drawn_workers().collect::<Arc<[_]>>()));
    let count = move || workers.with(|workers| workers.len());
    let height = Memo::new(move |_| Lanes::height_css(stage.get(), count()));
    let seen = Memo::new(move |_| {
        let all = workers.get();
        let slots = all.iter().map(|worker: &WorkerIx| worker.slot()).collect();
        let lanes = Lanes { workers: slots, height: height.get(), scrolled: tree.scrolled.get() };
        let seen = lanes.visible(stage.get());
        seen.filter_map(|lane| Some((lane, *all.get(lane)?))).collect::<Vec<_>>()
    });
    // Full seconds: the curve moves on with them.
    let second = Memo::new(move |_| store.on_beat(|_| Millis(store.received_ms().0 / 1000 * 1000)));
    let most = Memo::new(move |_| {
        let second = second.get();
        store.pools.track();
        store.peek(|shown| highest_rate(shown, second))
    });
    let all = move || format!("height:{}px", height.get() * count() as f64);
    view! {
        <div class="lane-heads" node_ref=frame on:scroll=scrolled tabindex="0" role="region"
            aria-label="Workers of the lanes" data-testid="lane-heads">
            <ul style=move || all()>
                <For each=move || seen.get() key=|at| *at let:at>
                    <LaneHead tree second most height lane=at.0 worker=at.1/>
                </For>
            </ul>
        </div>
    }
}

#[component]
fn LaneHead(
    tree: TreeView,
    second: Memo<Millis>,
    most: Memo<f64>,
    height: Memo<f64>,
    lane: usize,
    worker: WorkerIx,
) -> impl IntoView {
    let store = tree.store;
    let head = Memo::new(move |_| {
        let now = second.get();
        store.on_beat(|shown| LaneContent::of(shown, worker, now))
    });
    let text = move |part: fn(&LaneContent) -> String| {
        move || head.with(|head| head.as_ref().map(part).unwrap_or_default())
    };
    let curve = move |of: fn(&LaneContent) -> &[Option<f64>]| {
        move || {
            let most = most.get();
            head.with(|head| head.as_ref().map(|head| area(of(head).iter().copied(), most, HALF)))
        }
    };
    let is = move |part: fn(&LaneFigures) -> bool| {
        move || head.with(|head| head.as_ref().is_some_and(|head| part(&head.figures)))
    };
    let description = text(|head| head.description.clone());
    let title = move || match store.pool_label(worker) {
        Some((_, pool)) => format!("{} ({pool})", description()),
        None => description(),
    };
    let picked = move || store.picked() == Some(worker);
    let place = move || {
        let height = height.get();
        format!(
            "top:{}px;height:{height}px;--c:var({})",
            height * lane as f64,
            token(worker.slot(), store.worker_slots())
        )
    };
    view! {
        <li class="lane-head" class:picked=move || picked() class:other=move || store.picked().is_some_and(|p| p != worker) style=move || place()
            data-testid="lane-head" data-worker=text(|head| head.id.clone())>
            <button aria-pressed=move || picked().to_string() title=title
                on:click=move |_| store.pick(worker)>
                <span class="lane-line">
                    <Chip store worker/>
                    <span class="lane-sign">{text(|head| head.figures.sign.to_owned())}</span>
                    <b data-testid="lane-held">{text(|head| head.figures.blocks_text())}</b>
                </span>
                <span class="lane-line quiet">
                    <span class="meter" aria-hidden="true" class:lacks=is(|figures| figures.is_incomplete) class:unknown=is(|figures| figures.share.is_none())>
                        <i style=text(|head| format!("width:{}", format::width(head.figures.share.unwrap_or(0.0))))></i>
                    </span>
                    <span title=text(|head| head.figures.occupancy.clone()) data-testid="lane-occupancy">{text(|head| head.figures.occupancy.clone())}</span>
                </span>
                <svg viewBox="0 0 60 20" preserveAspectRatio="none" aria-hidden="true">
                    <path class="stored" d=curve(|head| &head.stored)/>
                    <path class="removed" d=curve(|head| &head.removed) transform="matrix(1 0 0 -1 0 20)"/>
                    <path class="zero" d="M0 10H60"/>
                </svg>
            </button>
        </li>
    }
}
