//! Requests in flight as lights: each runs down its path to the last block that its worker has cached, stays there while the rest of
//! the prompt is computed, and fades. Knows no canvas and no clock.
//!
//! A box of the icicle spans all boxes below it, so the path to a block is a straight line down the middle of that block's box.

use std::collections::VecDeque;

use radixscope_model::id::{DecisionId, Slot};
use radixscope_state::tree::forest::Forest;
use radixscope_state::tree::{NodeId, Tree};

use crate::lanes::Lanes;
use crate::viewport::Viewport;

/// Lights at a time: more could not be told apart.
pub const MOST: usize = 32;
/// Lights that begin within a second at most.
pub const MOST_A_SECOND: usize = 16;
/// From the top to the last cached block, ms; the style sheet's animation takes as long.
pub const RUN_MS: f64 = 450.0;
/// How long a light fades, ms, likewise.
pub const FADE_MS: f64 = 600.0;
/// Longest stay at the last cached block, ms: the report of a first token may be lost.
const STAY_MS: f64 = 30_000.0;

/// A request whose path is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// Which.
    pub id: DecisionId,
    /// The worker that was chosen.
    pub worker: Slot,
    /// The last block of its path that any worker had cached.
    pub end: NodeId,
    /// Blocks from the top that the chosen worker had cached.
    pub cached: u32,
    /// Whether its prompt is still being computed, as far as is reported.
    pub is_computed: bool,
}

/// A light.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Light {
    /// Whose it is.
    pub request: InFlight,
    /// When it began.
    pub began_ms: f64,
    /// When it began to fade.
    pub fades_ms: Option<f64>,
}

/// Where a light stands, device pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Beam {
    /// Its middle.
    pub x: f64,
    /// Where it begins.
    pub top: f64,
    /// Where it ends: behind the last cached block, or at the picture's edge if that is below.
    pub bottom: f64,
}

/// What is lit now.
#[derive(Default)]
pub struct Lights {
    alive: Vec<Light>,
    /// When the latest ones began.
    begins: VecDeque<f64>,
    /// Those of the last look, in order; `None` before the first.
    seen: Option<Vec<DecisionId>>,
}

impl Lights {
    /// Takes the latest requests whose path is known: those of before the last time once more. What is new begins, and of the first time
    /// what is in flight.
    /// `still`: none runs, each is where it belongs at once.
    pub fn update(&mut self, requests: &[InFlight], now_ms: f64, still: bool) {
        for Light { request, .. } in &mut self.alive {
            let now = requests.iter().find(|now| now.id == request.id);
            *request = now.copied().unwrap_or(InFlight { is_computed: false, ..*request });
        }
        self.pass(now_ms, still);
        self.begins.retain(|began| now_ms - began < 1_000.0);
        let seen = self.seen.take();
        for request in requests {
            let begins = match &seen {
                Some(seen) => seen.binary_search(&request.id).is_err(),
                None => request.is_computed,
            };
            if begins {
                self.begin(*request, now_ms);
            }
        }
        let mut seen = seen.unwrap_or_default();
        seen.clear();
        seen.extend(requests.iter().map(|request| request.id));
        seen.sort_unstable();
        self.seen = Some(seen);
    }

    /// Time passes: what has run and is computed no more fades, and goes.
    pub fn pass(&mut self, now_ms: f64, still: bool) {
        for Light { request, began_ms, fades_ms } in &mut self.alive {
            let age_ms = now_ms - *began_ms;
            let is_over = (still || age_ms >= RUN_MS) && (!request.is_computed || age_ms >= STAY_MS);
            *fades_ms = fades_ms.or(is_over.then_some(now_ms));
        }
        let is_there = |since: f64| !still && now_ms - since < FADE_MS;
        self.alive.retain(|light| light.fades_ms.is_none_or(is_there));
    }

    fn begin(&mut self, request: InFlight, now_ms: f64) {
        if self.alive.len() < MOST && self.begins.len() < MOST_A_SECOND {
            self.begins.push_back(now_ms);
            self.alive.push(Light { request, began_ms: now_ms, fades_ms: None });
        }
    }

    /// All of them, the oldest first.
    pub fn alive(&self) -> &[Light] {
        &self.alive
    }

    /// Whether a light changes though nothing is received: it runs, or is about to fade, or fades.
    pub fn goes_on(&self, now_ms: f64) -> bool {
        let changes = |light: &Light| {
            light.fades_ms.is_some() || !light.request.is_computed || now_ms - light.began_ms < RUN_MS
        };
        self.alive.iter().any(changes)
    }

    /// Requests that are computed and have no light.
    pub fn unlit(&self, requests: &[InFlight]) -> usize {
        let is_lit = |id| self.alive.iter().any(|light| light.request.id == id);
        requests.iter().filter(|request| request.is_computed && !is_lit(request.id)).count()
    }
}

/// Where the light of a request stands, in the lane of its worker where there are lanes; `None`: out of sight, or its blocks are gone.
pub fn beam(
    tree: &Tree,
    forest: &Forest,
    view: &Viewport,
    lanes: Option<&Lanes>,
    request: &InFlight,
) -> Option<Beam> {
    let inner = lanes.map_or(*view, |lanes| lanes.lane_view(view));
    let chain = forest.chain_of(request.end).filter(|_| tree.is_attached(request.end))?;
    let mut rect = inner.rect_of(forest, chain);
    (rect.top, rect.bottom) = (inner.y(0.0), inner.y(f64::from(request.cached)));
    let rect = match lanes {
        None => rect,
        Some(lanes) => lanes.place(view, request.worker, rect)?,
    };
    let x = (rect.left + rect.right) / 2.0;
    let (width, height) = (f64::from(view.width), f64::from(view.height));
    let is_seen = (0.0..=width).contains(&x) && rect.bottom >= 0.0 && rect.top <= height;
    is_seen.then_some(Beam { x, top: rect.top.max(0.0), bottom: rect.bottom.min(height) })
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::BlockHash;
    use radixscope_state::tree::forest::{Arrangement, Order};

    use super::*;
    use crate::testing::store;
    use crate::viewport::Region;

    /// Worker 0 has 40 blocks and 20 more of another prompt below the first ten; worker 1 has the first 5.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=40);
        store(&mut tree, 0, (1..=10).chain(101..=120));
        store(&mut tree, 1, 1..=5);
        tree.build_forest(Arrangement { order: Order::LeftHeavy, ..Arrangement::default() });
        tree
    }

    fn request(tree: &Tree, id: u64, end: u64, cached: u32) -> InFlight {
        let end = tree.find_any(BlockHash(end)).expect("stored");
        InFlight { id: DecisionId(id), worker: Slot(0), end, cached, is_computed: true }
    }

    fn view(tree: &Tree) -> Viewport {
        let region = Region::all(tree.forest().expect("grown"));
        Viewport { region, width: 600, height: 400, scale: 1.0 }
    }

    #[test]
    fn a_light_runs_through_every_box_of_its_path_to_the_last_cached_block() {
        let tree = tree();
        let (forest, view) = (tree.forest().expect("grown"), view(&tree));
        for (end, cached) in [(40, 40), (120, 30), (120, 12), (40, 5)] {
            let request = request(&tree, 1, end, cached);
            let beam = beam(&tree, forest, &view, None, &request).expect("in sight");
            assert_eq!((beam.top, beam.bottom), (0.0, f64::from(cached) * 10.0), "ten pixels a block");
            for id in forest.up(forest.chain_of(request.end).expect("drawn")) {
                let rect = view.rect_of(forest, id);
                assert!(rect.left < beam.x && beam.x < rect.right, "{beam:?} misses {rect:?}");
            }
        }
    }

    #[test]
    fn nothing_cached_is_a_light_at_the_top_and_no_light_is_out_of_sight() {
        let tree = tree();
        let (forest, mut view) = (tree.forest().expect("grown"), view(&tree));
        let cold = beam(&tree, forest, &view, None, &request(&tree, 1, 40, 0)).expect("in sight");
        assert_eq!((cold.top, cold.bottom), (0.0, 0.0));
        view.region = Region { top: 20.0, bottom: 30.0, ..view.region };
        let through = beam(&tree, forest, &view, None, &request(&tree, 1, 40, 40)).expect("in sight");
        assert_eq!((through.top, through.bottom), (0.0, 400.0), "cut at the edges");
        assert_eq!(
            beam(&tree, forest, &view, None, &request(&tree, 1, 40, 5)),
            None,
            "ends above the window"
        );
        view.region = Region { x0: view.region.x1 - 5.0, ..view.region };
        assert_eq!(beam(&tree, forest, &view, None, &request(&tree, 1, 40, 40)), None, "beside the window");
    }

    #[test]
    fn in_lanes_a_light_is_in_the_lane_of_the_worker_chosen() {
        let tree = tree();
        let (forest, view) = (tree.forest().expect("grown"), view(&tree));
        let lanes = Lanes { workers: (0..2).map(Slot).collect(), height: 200.0, scrolled: 0.0 };
        let second = InFlight { worker: Slot(1), ..request(&tree, 1, 40, 5) };
        let beam = |request: &InFlight| super::beam(&tree, forest, &view, Some(&lanes), request);
        let (first, second) = (beam(&request(&tree, 1, 40, 40)), beam(&second));
        assert!(first.is_some_and(|beam| beam.bottom <= 200.0), "{first:?}");
        assert!(second.is_some_and(|beam| beam.top == 200.0 && beam.bottom < 230.0), "{second:?}");
        assert_eq!(beam(&InFlight { worker: Slot(7), ..request(&tree, 1, 40, 5) }), None, "it has no lane");
    }

    #[test]
    fn a_light_runs_stays_while_it_is_computed_and_fades() {
        let tree = tree();
        let (mut lights, mut one) = (Lights::default(), request(&tree, 1, 40, 40));
        lights.update(&[one], 0.0, false);
        assert!(lights.goes_on(0.0) && lights.alive().len() == 1);
        lights.update(&[one], RUN_MS, false);
        assert_eq!(lights.alive()[0].fades_ms, None);
        assert!(!lights.goes_on(RUN_MS), "it only stays: nothing to do");
        one.is_computed = false;
        lights.update(&[one], 2_000.0, false);
        assert_eq!(lights.alive()[0].fades_ms, Some(2_000.0));
        lights.update(&[one], 2_000.0 + FADE_MS, false);
        assert!(lights.alive().is_empty() && !lights.goes_on(3_000.0));
        lights.update(&[one], 4_000.0, false);
        assert!(lights.alive().is_empty(), "each request begins once");
    }

    #[test]
    fn what_is_computed_at_once_still_runs_and_what_ended_before_the_first_look_does_not() {
        let tree = tree();
        let done = InFlight { is_computed: false, ..request(&tree, 1, 40, 40) };
        let mut lights = Lights::default();
        lights.update(&[done], 0.0, false);
        assert!(lights.alive().is_empty());
        lights.update(&[done, InFlight { id: DecisionId(2), ..done }], 100.0, false);
        assert_eq!(lights.alive().len(), 1);
        lights.update(&[], 100.0 + RUN_MS, false);
        assert_eq!(lights.alive()[0].fades_ms, Some(100.0 + RUN_MS));
    }

    #[test]
    fn what_is_still_neither_runs_nor_fades() {
        let tree = tree();
        let (mut lights, one) = (Lights::default(), request(&tree, 1, 40, 40));
        lights.update(&[one], 0.0, true);
        assert_eq!(lights.alive().len(), 1);
        lights.update(&[InFlight { is_computed: false, ..one }], 1.0, true);
        assert!(lights.alive().is_empty());
    }

    #[test]
    fn a_lost_report_ends_a_light_all_the_same() {
        let tree = tree();
        let (mut lights, one) = (Lights::default(), request(&tree, 1, 40, 40));
        lights.update(&[one], 0.0, false);
        lights.update(&[one], STAY_MS, false);
        assert_eq!(lights.alive()[0].fades_ms, Some(STAY_MS));
    }

    #[test]
    fn a_storm_lights_no_more_than_its_bound_and_says_how_many_it_does_not() {
        let tree = tree();
        let storm: Vec<InFlight> = (1..=100).map(|id| request(&tree, id, 40, 40)).collect();
        let mut lights = Lights::default();
        lights.update(&storm[..50], 0.0, false);
        assert_eq!((lights.alive().len(), lights.unlit(&storm[..50])), (MOST_A_SECOND, 50 - MOST_A_SECOND));
        lights.update(&storm[..90], 1_000.0, false);
        assert_eq!(lights.alive().len(), MOST);
        lights.update(&storm, 2_000.0, false);
        assert_eq!((lights.alive().len(), lights.unlit(&storm)), (MOST, 100 - MOST));
    }
}
