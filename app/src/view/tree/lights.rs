//! Requests in flight on the tree: elements over the picture that the browser moves by itself, so that nothing of the picture is drawn
//! anew for them.

use leptos::prelude::*;
use radixscope_icicle::lanes::Lanes;
use radixscope_icicle::lights::{Beam, Lights, beam};
use radixscope_icicle::palette::{label, token};
use radixscope_icicle::viewport::Viewport;
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_panels::tree::{RequestsInFlight, lights_text, lights_title};
use radixscope_state::tree::forest::Forest;

use super::state::{TreePlacement, TreeView};
use crate::store::{TrackUntilDropped as _, ViewContext, now_ms};
use crate::theme;
use crate::view::control::view;

/// A light as it is shown.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Lit {
    id: DecisionId,
    worker: WorkerIx,
    cached: u32,
    /// CSS pixels from the left and the top of the picture, and down to the last cached block.
    place: (f64, f64, f64),
    is_fading: bool,
}

/// What the layer shows.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct LightsShown {
    lit: Vec<Lit>,
    /// Requests that are computed and have none: too many at once, and those of which no path is known.
    unlit: usize,
    without_path: usize,
    /// Nothing moves: the reader wants less motion, or looks at a moment.
    is_still: bool,
    /// The tree is paused, and its lights with it.
    is_paused: bool,
}

/// What the picture keeps of lights between frames.
#[derive(Default)]
pub(super) struct LightsOnStage {
    lights: Lights,
    without_path: usize,
    unlit: usize,
    /// Where each stood in the last frame.
    beams: Vec<(DecisionId, WorkerIx, Beam)>,
    is_still: bool,
}

impl LightsOnStage {
    /// Another tree is drawn.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// Takes what was received, as of a frame, and shows it.
    pub(super) fn update(
        &mut self,
        tree: TreeView,
        (cluster, forest): (&ViewContext<'_>, &Forest),
        view: &Viewport,
        lanes: Option<&Lanes>,
    ) {
        if tree.form == TreePlacement::Changes {
            return;
        }
        if cluster.paused_tree.is_none() {
            let store = tree.store;
            let is_at_moment = store.at.get_untracked() != 0 && store.speed.get_untracked() == 0;
            self.is_still = theme::less_motion() || is_at_moment;
            let requests = RequestsInFlight::of(cluster);
            self.lights.update(&requests.known, now_ms(), self.is_still);
            self.unlit = self.lights.unlit(&requests.known);
            self.without_path = requests.without_path;
        }
        self.beams.clear();
        for light in self.lights.alive() {
            let request = &light.request;
            let worker = cluster.workers().in_slot(request.worker);
            let place = beam(cluster.tree(), forest, view, lanes, request);
            self.beams.extend(worker.zip(place).map(|(worker, place)| (request.id, worker, place)));
        }
        self.show(tree, cluster.paused_tree.is_some());
    }

    /// Time passed, and nothing was received. Says whether that is so again.
    pub(super) fn go_on(&mut self, tree: TreeView) -> bool {
        let now = now_ms();
        let goes_on = self.lights.goes_on(now);
        if goes_on {
            self.lights.pass(now, self.is_still);
            self.show(tree, false);
        }
        goes_on
    }

    fn show(&self, tree: TreeView, is_paused: bool) {
        // The browser's pixels: where text is larger the picture's are not.
        let scale = window().device_pixel_ratio().max(0.1);
        let css = |px: f64| (px / scale * 10.0).round() / 10.0;
        let lit = self.lights.alive().iter().filter_map(|light| {
            let (_, worker, beam) = self.beams.iter().find(|(id, ..)| *id == light.request.id)?;
            Some(Lit {
                id: light.request.id,
                worker: *worker,
                cached: light.request.cached,
                place: (css(beam.x), css(beam.top), css(beam.bottom - beam.top)),
                is_fading: light.fades_ms.is_some(),
            })
        });
        let (unlit, without_path, is_still) = (self.unlit, self.without_path, self.is_still);
        let shown = LightsShown { lit: lit.collect(), unlit, without_path, is_still, is_paused };
        if tree.lights.with_untracked(|before| *before != shown) {
            tree.lights.set(shown);
        }
    }
}

/// The elements.
#[component]
pub(super) fn Layer(tree: TreeView) -> impl IntoView {
    let shown = tree.lights;
    let ids = Memo::new(move |_| shown.with(|shown| shown.lit.iter().map(|lit| lit.id).collect::<Vec<_>>()));
    let one = move |id: DecisionId| {
        // It outlives its entry by a moment.
        let of = Memo::new(move |before: Option<&Option<Lit>>| {
            shown.track_until_dropped();
            let now = shown.with_untracked(|shown| shown.lit.iter().find(|lit| lit.id == id).copied());
            now.or(before.copied().flatten())
        });
        let style = move || {
            let Some(Lit { worker, place: (x, y, height), .. }) = of.get() else { return String::new() };
            let colour = token(worker.slot(), tree.store.worker_slots());
            format!("left:{x}px;top:{y}px;height:{height}px;--run:{height}px;--c:var({colour})")
        };
        let is_fading = move || of.with(|lit| lit.is_some_and(|lit| lit.is_fading));
        let worker = move || of.with(|lit| lit.map(|lit| label(lit.worker)));
        let cached = move || of.with(|lit| lit.map(|lit| lit.cached.to_string()));
        view! {
            <i class="light" class:over=is_fading style=style data-testid="light" data-decision=id.to_string()
                data-worker=worker data-cached=cached></i>
        }
    };
    view! {
        <div class="lights" aria-hidden="true" class:still=move || shown.with(|shown| shown.is_still)
            class:paused=move || shown.with(|shown| shown.is_paused)>
            <For each=move || ids.get() key=|id| *id let:id>{one(id)}</For>
        </div>
    }
}

/// What the lights are, how many there are, and how many requests have none.
#[component]
pub(super) fn Key(tree: TreeView) -> impl IntoView {
    let counts = Memo::new(move |_| {
        tree.lights.with(|shown| {
            let lit = shown.lit.iter().filter(|lit| !lit.is_fading).count();
            (lit, shown.unlit, shown.without_path)
        })
    });
    let text = move || {
        let (lit, unlit, without_path) = counts.get();
        lights_text(lit, unlit, without_path)
    };
    view! {
        <span title=lights_title() data-testid="legend-lights"><i class="key light-key" aria-hidden="true"></i>{text}</span>
    }
}
