//! Which part of the tree is looked at, and how that changes. Pure arithmetic: the time comes from outside.

use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::Forest;

use crate::crumb::Crumb;
use crate::viewport::Region;
use crate::visible;

/// How long a journey takes.
const JOURNEY_MS: f64 = 220.0;
/// Nothing smaller than this is looked at: units.
const LEAST_UNITS: f64 = 4.0;
/// The same for blocks.
const LEAST_BLOCKS: f64 = 2.0;
/// Blocks that are left when zooming both axes has come to the least units.
const CLOSE_BLOCKS: f64 = 8.0;
/// How far beyond the tree one may look, as a share of the window, when looking closely.
const MARGIN: f64 = 0.1;
/// Boxes that are remembered to hold a free camera in its place.
const ANCHORS: usize = 24;

/// What is to be looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Goal {
    /// Everything.
    #[default]
    All,
    /// A block, the rest of its box, and everything below it; follows them when the tree changes.
    Block(Crumb),
    /// The way from the top to a block, with what stands beside its end; follows it when the tree changes.
    Path(Crumb),
    /// Where the reader's hand has moved it.
    Free,
}

/// What a zoom changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axes {
    /// Both, in such a way that both come to their closest together.
    Both,
    /// Across alone.
    Across,
}

/// A box and where its left edge stood when it was last looked at.
struct Anchor {
    crumb: Crumb,
    left: f64,
}

struct Journey {
    from: Region,
    began_ms: Option<f64>,
}

/// The camera.
#[derive(Default)]
pub struct Camera {
    goal: Goal,
    /// Where a free camera looks.
    free: Option<Region>,
    shown: Option<Region>,
    /// Where the journey goes, or what is shown.
    heading: Option<Region>,
    all: Option<Region>,
    /// Boxes above what is looked at, the deepest first. A free camera moves with the deepest one that is still there;
    /// a block that is gone leaves its place to the deepest one.
    anchors: Vec<Anchor>,
    has_moved: bool,
    journey: Option<Journey>,
    moves: u32,
}

impl Camera {
    /// Sets out for `goal`.
    pub fn go(&mut self, goal: Goal) {
        self.goal = goal;
        if goal == Goal::Free {
            self.free = self.heading;
        }
        self.set_out();
    }

    /// What is looked at.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// What is shown now. `None` before the first frame.
    pub fn region(&self) -> Option<Region> {
        self.shown
    }

    /// What is shown once a journey is over.
    pub fn heading(&self) -> Option<Region> {
        self.heading
    }

    /// Rises whenever somebody moves the camera; not when it follows the tree.
    pub fn moves(&self) -> u32 {
        self.moves
    }

    /// Zooms in by `factor` (out below 1) around a place given as shares of the window. `eased`: by a journey.
    pub fn zoom(&mut self, factor: f64, at: (f64, f64), axes: Axes, eased: bool) {
        let (Some(base), Some(all)) = (if eased { self.heading } else { self.shown }, self.all) else {
            return;
        };
        let down = match axes {
            Axes::Both => factor.powf(depth_exponent(all)),
            Axes::Across => 1.0,
        };
        let (x0, x1) = scaled(base.x0, base.x1, factor, at.0, all.x1, LEAST_UNITS);
        let (top, bottom) = scaled(base.top, base.bottom, down, at.1, all.bottom, LEAST_BLOCKS);
        self.look(Region { x0, x1, top, bottom }, eased);
    }

    /// Moves what is looked at by shares of the window: to the right, downward.
    pub fn pan(&mut self, right: f64, down: f64) {
        let Some(r) = self.shown else { return };
        let (dx, dy) = (right * (r.x1 - r.x0), down * (r.bottom - r.top));
        self.look(Region { x0: r.x0 + dx, x1: r.x1 + dx, top: r.top + dy, bottom: r.bottom + dy }, false);
    }

    /// Moves the middle of the window to a place.
    pub fn centre_on(&mut self, x: f64, position: f64) {
        let Some(r) = self.shown else { return };
        let (across, down) = ((r.x1 - r.x0) / 2.0, (r.bottom - r.top) / 2.0);
        let region = Region { x0: x - across, x1: x + across, top: position - down, bottom: position + down };
        self.look(region, false);
    }

    /// Sets out so that `place` is seen, if it is not: no farther than that takes, and closer if it would be narrower
    /// than a hundredth of the window.
    pub fn reveal(&mut self, place: Region) {
        let Some(r) = self.heading else { return };
        let (width, span) = (place.x1 - place.x0, r.x1 - r.x0);
        let new_span = if width < span / 100.0 { (width * 20.0).max(LEAST_UNITS) } else { span };
        let (x0, x1) = if new_span < span {
            let middle = (place.x0 + place.x1) / 2.0;
            (middle - new_span / 2.0, middle + new_span / 2.0)
        } else {
            seen(r.x0, r.x1, place.x0, place.x1)
        };
        let (top, bottom) = seen(r.top, r.bottom, place.top, place.bottom);
        let region = Region { x0, x1, top, bottom };
        if region != r {
            self.look(region, true);
        }
    }

    /// Follows the tree, moves on, and gives what is to be shown now and whether the movement goes on. `still`: without
    /// journeys.
    pub fn step(&mut self, tree: &Tree, forest: &Forest, now_ms: f64, still: bool) -> (Region, bool) {
        let all = Region::all(forest);
        self.all = Some(all);
        self.follow(tree, forest);
        let target = match self.goal {
            Goal::All => all,
            Goal::Block(crumb) => {
                crumb.chain(tree).map_or(all, |id| bounded(Region::of(forest, id, crumb.position), all))
            }
            Goal::Path(crumb) => {
                crumb.chain(tree).map_or(all, |id| bounded(Region::to(forest, id, crumb.position), all))
            }
            Goal::Free => bounded(self.free.unwrap_or(all), all),
        };
        let share = match &mut self.journey {
            Some(journey) if !still => {
                let began_ms = *journey.began_ms.get_or_insert(now_ms);
                ((now_ms - began_ms) / JOURNEY_MS).clamp(0.0, 1.0)
            }
            _ => 1.0,
        };
        // Ease out: fast away, gently in.
        let eased = 1.0 - (1.0 - share).powi(3);
        let region = match &self.journey {
            Some(journey) if share < 1.0 => journey.from.towards(target, eased),
            _ => target,
        };
        if share >= 1.0 {
            self.journey = None;
        }
        (self.shown, self.heading) = (Some(region), Some(target));
        if std::mem::take(&mut self.has_moved) {
            self.anchor(tree, forest, target);
        }
        (region, self.journey.is_some())
    }

    fn set_out(&mut self) {
        self.journey = self.shown.map(|from| Journey { from, began_ms: None });
        self.has_moved = true;
        self.moves = self.moves.wrapping_add(1);
    }

    fn look(&mut self, region: Region, eased: bool) {
        let Some(all) = self.all else { return };
        let region = bounded(region, all);
        // Steps in and out again come back but for the last digits.
        let is_whole = |span: f64, whole: f64| span >= whole * 0.999;
        let is_all =
            is_whole(region.x1 - region.x0, all.x1) && is_whole(region.bottom - region.top, all.bottom);
        (self.goal, self.free) = if is_all { (Goal::All, None) } else { (Goal::Free, Some(region)) };
        self.set_out();
        // Further inputs of the same frame build on this one.
        self.heading = Some(region);
        if !eased {
            self.journey = None;
            self.shown = Some(region);
        }
    }

    /// Shifts a free camera with the deepest box above it that is still there; goes up from a block that is gone.
    fn follow(&mut self, tree: &Tree, forest: &Forest) {
        if let Goal::Block(crumb) | Goal::Path(crumb) = self.goal
            && crumb.chain(tree).is_none()
        {
            let left = self.anchors.iter().find(|anchor| anchor.crumb.chain(tree).is_some());
            self.goal = left.map_or(Goal::All, |anchor| Goal::Block(anchor.crumb));
            self.journey = self.shown.map(|from| Journey { from, began_ms: None });
            self.has_moved = true;
        }
        let Some(free) = &mut self.free else { return };
        let alive = self.anchors.iter().position(|anchor| anchor.crumb.chain(tree).is_some());
        let gone = alive.unwrap_or(self.anchors.len());
        self.anchors.drain(..gone);
        let mut shift = None;
        for anchor in &mut self.anchors {
            let Some(id) = anchor.crumb.chain(tree) else { continue };
            let left = f64::from(forest.left(id));
            shift.get_or_insert(left - anchor.left);
            anchor.left = left;
        }
        let shift = shift.unwrap_or(0.0);
        for region in
            [Some(free), self.journey.as_mut().map(|journey| &mut journey.from)].into_iter().flatten()
        {
            region.x0 += shift;
            region.x1 += shift;
        }
    }

    /// Takes note of the boxes over the middle of `region` that are at least half as wide as it is: those that span it,
    /// and where none does, the one that fills most of it.
    fn anchor(&mut self, tree: &Tree, forest: &Forest, region: Region) {
        let middle = (region.x0 + region.x1) / 2.0;
        let half = (region.x1 - region.x0) / 2.0;
        let mut path = visible::over(forest, middle, middle, region.bottom);
        if let Goal::Block(crumb) | Goal::Path(crumb) = self.goal {
            path = crumb.chain(tree).map(|id| forest.up(id).skip(1).collect()).unwrap_or_default();
            path.reverse();
        } else {
            path.retain(|&id| f64::from(forest.chain(id).width()) >= half);
        }
        let held = path.into_iter().rev().filter(|&id| tree.held_in(forest.chain(id)) > 0);
        let anchor = |id| Anchor { crumb: Crumb::of(tree, forest, id), left: f64::from(forest.left(id)) };
        self.anchors = held.take(ANCHORS).map(anchor).collect();
    }
}

/// The power to which a zoom across is taken downward.
fn depth_exponent(all: Region) -> f64 {
    let across = (all.x1 / LEAST_UNITS).ln();
    let down = (all.bottom / CLOSE_BLOCKS).ln();
    if across <= 0.0 { 1.0 } else { (down / across).clamp(0.0, 1.0) }
}

/// `from … to` smaller by `factor`, so that what is at `share` of it stays there.
fn scaled(from: f64, to: f64, factor: f64, share: f64, whole: f64, least: f64) -> (f64, f64) {
    let span = to - from;
    let new = (span / factor).min(whole).max(least.min(whole));
    let from = from + share * (span - new);
    (from, from + new)
}

/// `from … to` moved as little as it takes to see `place_from … place_to`, or its beginning where it is too long.
fn seen(from: f64, to: f64, place_from: f64, place_to: f64) -> (f64, f64) {
    let span = to - from;
    let air = (span * 0.05).min((span - (place_to - place_from)).max(0.0) / 2.0);
    let is_seen_enough = place_from < to - span * 0.1 && place_to > from + span * 0.1;
    let shift = if place_to - place_from >= span {
        if is_seen_enough { 0.0 } else { place_from - from - air }
    } else if place_from < from {
        place_from - from - air
    } else if place_to > to {
        place_to - to + air
    } else {
        0.0
    };
    (from + shift, to + shift)
}

/// `region` within the tree and no smaller than anything needs to be.
fn bounded(region: Region, all: Region) -> Region {
    let (x0, x1) = axis(region.x0, region.x1, all.x1, LEAST_UNITS);
    let (top, bottom) = axis(region.top, region.bottom, all.bottom, LEAST_BLOCKS);
    Region { x0, x1, top, bottom }
}

fn axis(from: f64, to: f64, whole: f64, least: f64) -> (f64, f64) {
    let span = (to - from).max(least).min(whole);
    let margin = MARGIN * span * (1.0 - span / whole);
    let from = ((from + to - span) / 2.0).min(whole - span + margin).max(-margin);
    (from, from + span)
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{BlockHash, Slot, TokensHash};
    use radixscope_model::record::Block;
    use radixscope_state::tree::forest::{Arrangement, Order};

    use super::*;

    fn blocks(tokens: impl IntoIterator<Item = u64>) -> Vec<Block> {
        let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        tokens.into_iter().map(block).collect()
    }

    /// In the fixed order: 100 blocks from 1000 on, 300 from 2000 on of which 2100 … has a second branch of 100 blocks.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.build_forest(Arrangement { order: Order::Stable, ..Arrangement::default() });
        tree.store(Slot(0), None, &blocks(1000..1100), 0);
        tree.store(Slot(0), None, &blocks(2000..2300), 0);
        tree.store(Slot(0), Some(BlockHash(2099)), &blocks(3000..3100), 0);
        tree.update_forest();
        tree
    }

    fn crumb(tree: &Tree, token: u64) -> Crumb {
        let node = tree.find_any(BlockHash(token)).expect("it is there");
        Crumb::at(tree, node, tree.position(node))
    }

    fn step(camera: &mut Camera, tree: &Tree, now_ms: f64) -> (Region, bool) {
        camera.step(tree, tree.forest().expect("grown"), now_ms, false)
    }

    fn after_journey(camera: &mut Camera, tree: &Tree) -> Region {
        camera.step(tree, tree.forest().expect("grown"), 0.0, true).0
    }

    /// First tokens hash of the box at a share of the window, at a block position.
    fn under(camera: &Camera, tree: &Tree, share: f64, position: f64) -> (u64, f64) {
        let r = camera.region().expect("shown");
        let forest = tree.forest().expect("grown");
        let id = forest.at(r.x0 + share * (r.x1 - r.x0), position).expect("a box");
        let left = (f64::from(forest.left(id)) - r.x0) / (r.x1 - r.x0);
        (tree.tokens_hash(forest.chain(id).first).0, left)
    }

    #[test]
    fn what_is_under_the_pointer_stays_there_while_zooming() {
        let (tree, mut camera) = (tree(), Camera::default());
        let before = after_journey(&mut camera, &tree);
        let at = (0.3, 0.6);
        let place = |r: Region| (r.x0 + at.0 * (r.x1 - r.x0), r.top + at.1 * (r.bottom - r.top));
        camera.zoom(1.7, at, Axes::Both, false);
        let after = after_journey(&mut camera, &tree);
        let ((x, y), (x_now, y_now)) = (place(before), place(after));
        assert!((x - x_now).abs() < 1e-9 && (y - y_now).abs() < 1e-9, "{before:?} {after:?}");
        assert!((before.x1 / 1.7 - (after.x1 - after.x0)).abs() < 1e-9);
        assert!(after.bottom - after.top < before.bottom);
        camera.zoom(2.0, at, Axes::Across, false);
        let across = after_journey(&mut camera, &tree);
        assert_eq!((across.top, across.bottom), (after.top, after.bottom));
    }

    #[test]
    fn both_axes_come_to_their_closest_together_and_no_closer() {
        let (tree, mut camera) = (tree(), Camera::default());
        let all = after_journey(&mut camera, &tree);
        camera.zoom(all.x1 / LEAST_UNITS, (0.0, 0.0), Axes::Both, false);
        let r = after_journey(&mut camera, &tree);
        assert!(
            (r.x1 - r.x0 - LEAST_UNITS).abs() < 1e-6 && (r.bottom - r.top - CLOSE_BLOCKS).abs() < 1e-6,
            "{r:?}"
        );
        camera.zoom(1e9, (0.5, 0.5), Axes::Both, false);
        let r = after_journey(&mut camera, &tree);
        assert_eq!((r.x1 - r.x0, r.bottom - r.top), (LEAST_UNITS, LEAST_BLOCKS));
        camera.go(Goal::All);
        after_journey(&mut camera, &tree);
        for factor in [1.8, 1.8, 1.0 / 1.8, 1.0 / 1.8] {
            camera.zoom(factor, (0.4, 0.4), Axes::Both, true);
        }
        assert_eq!((after_journey(&mut camera, &tree), camera.goal()), (all, Goal::All));
        camera.zoom(1e9, (0.5, 0.5), Axes::Both, false);
        camera.zoom(1e-9, (0.9, 0.9), Axes::Both, false);
        assert_eq!((after_journey(&mut camera, &tree), camera.goal()), (all, Goal::All));
    }

    #[test]
    fn nothing_is_seen_far_beyond_the_tree() {
        let (tree, mut camera) = (tree(), Camera::default());
        let all = after_journey(&mut camera, &tree);
        camera.pan(3.0, -3.0);
        assert_eq!(after_journey(&mut camera, &tree), all, "everything has no outside");
        camera.zoom(4.0, (0.5, 0.5), Axes::Both, false);
        camera.pan(30.0, 30.0);
        let r = after_journey(&mut camera, &tree);
        assert!(r.x1 > all.x1 && r.x1 < all.x1 * 1.05, "{r:?}");
        assert!(r.bottom > all.bottom && r.bottom < all.bottom * 1.1, "{r:?}");
    }

    #[test]
    fn a_free_camera_keeps_its_place_when_blocks_come_and_go_at_the_left() {
        let (mut tree, mut camera) = (tree(), Camera::default());
        after_journey(&mut camera, &tree);
        camera.zoom(10.0, (0.45, 0.1), Axes::Both, false);
        after_journey(&mut camera, &tree);
        let before = under(&camera, &tree, 0.5, 5.0);
        assert_eq!(before.0, 2000);
        tree.store(Slot(1), None, &blocks(500..777), 0);
        tree.update_forest();
        after_journey(&mut camera, &tree);
        assert_eq!(under(&camera, &tree, 0.5, 5.0), before);
        for token in 1000..1100 {
            tree.remove(Slot(0), BlockHash(token));
        }
        tree.update_forest();
        after_journey(&mut camera, &tree);
        assert_eq!(under(&camera, &tree, 0.5, 5.0), before);
    }

    #[test]
    fn when_the_box_above_is_gone_the_next_one_holds_the_place() {
        let (mut tree, mut camera) = (tree(), Camera::default());
        after_journey(&mut camera, &tree);
        camera.go(Goal::Block(crumb(&tree, 3000)));
        after_journey(&mut camera, &tree);
        camera.zoom(4.0, (0.5, 0.5), Axes::Both, false);
        let before = after_journey(&mut camera, &tree);
        for token in 3000..3100 {
            tree.remove(Slot(0), BlockHash(token));
        }
        tree.store(Slot(1), None, &blocks(500..600), 0);
        tree.update_forest();
        let after = after_journey(&mut camera, &tree);
        assert_eq!(after.x0 - before.x0, 100.0, "it moves with the box of block 2000");
    }

    #[test]
    fn a_block_is_followed_and_leaves_its_place_to_what_is_above() {
        let (mut tree, mut camera) = (tree(), Camera::default());
        after_journey(&mut camera, &tree);
        camera.go(Goal::Block(crumb(&tree, 3000)));
        let r = after_journey(&mut camera, &tree);
        let x0 = r.x0;
        assert_eq!((r.x1 - r.x0, r.top, r.bottom), (100.0, 100.0, 200.0));
        tree.store(Slot(1), None, &blocks(500..600), 0);
        tree.store(Slot(0), Some(BlockHash(3099)), &blocks(3100..3110), 0);
        tree.update_forest();
        let r = after_journey(&mut camera, &tree);
        assert_eq!((r.x0, r.x1 - r.x0, r.bottom), (x0 + 100.0, 110.0, 210.0));
        for token in 3000..3110 {
            tree.remove(Slot(0), BlockHash(token));
        }
        tree.update_forest();
        let r = after_journey(&mut camera, &tree);
        assert_eq!(camera.goal(), Goal::Block(crumb(&tree, 2000)));
        assert_eq!((r.x1 - r.x0, r.top, r.bottom), (300.0, 0.0, 300.0));
    }

    #[test]
    fn a_path_is_seen_from_the_top_to_its_end_with_what_stands_beside() {
        let (tree, mut camera) = (tree(), Camera::default());
        after_journey(&mut camera, &tree);
        camera.go(Goal::Path(crumb(&tree, 3000)));
        let r = after_journey(&mut camera, &tree);
        assert_eq!((r.x0, r.x1, r.top), (200.0, 500.0, 0.0));
        assert!(r.bottom > 101.0 && r.bottom < 120.0, "{r:?}");
    }

    #[test]
    fn a_journey_begins_where_it_was_and_an_input_takes_over() {
        let (tree, mut camera) = (tree(), Camera::default());
        let all = step(&mut camera, &tree, 0.0).0;
        camera.go(Goal::Block(crumb(&tree, 3000)));
        assert_eq!(step(&mut camera, &tree, 1000.0), (all, true));
        let (half, goes_on) = step(&mut camera, &tree, 1000.0 + JOURNEY_MS / 2.0);
        assert!(goes_on && half.top > 50.0 && half.top < 100.0, "{half:?}");
        camera.pan(0.0, 0.1);
        let (taken, goes_on) = step(&mut camera, &tree, 1000.0 + JOURNEY_MS / 2.0);
        assert!(!goes_on && taken.x0 == half.x0 && taken.top > half.top, "{taken:?}");
        camera.zoom(2.0, (0.5, 0.5), Axes::Both, true);
        camera.zoom(2.0, (0.5, 0.5), Axes::Both, true);
        step(&mut camera, &tree, 2000.0);
        let (r, goes_on) = step(&mut camera, &tree, 2000.0 + JOURNEY_MS);
        assert!(
            !goes_on && ((taken.x1 - taken.x0) / 4.0 - (r.x1 - r.x0)).abs() < 1e-9,
            "two steps add up: {r:?}"
        );
    }

    #[test]
    fn a_box_outside_comes_into_sight_and_one_inside_moves_nothing() {
        let (tree, mut camera) = (tree(), Camera::default());
        after_journey(&mut camera, &tree);
        camera.zoom(4.0, (0.0, 0.0), Axes::Both, false);
        let before = after_journey(&mut camera, &tree);
        camera.reveal(Region { x0: 10.0, x1: 60.0, top: 5.0, bottom: 20.0 });
        assert_eq!(after_journey(&mut camera, &tree), before);
        camera.reveal(Region { x0: 400.0, x1: 450.0, top: 150.0, bottom: 170.0 });
        let r = after_journey(&mut camera, &tree);
        assert!(r.x0 <= 400.0 && r.x1 >= 450.0 && r.top <= 150.0 && r.bottom >= 170.0, "{r:?}");
        assert!((r.x1 - r.x0 - (before.x1 - before.x0)).abs() < 1e-9);
        camera.reveal(Region { x0: 420.0, x1: 421.0, top: 150.0, bottom: 170.0 });
        let r = after_journey(&mut camera, &tree);
        assert!((r.x1 - r.x0 - 20.0).abs() < 1e-9, "what is too narrow is approached: {r:?}");
    }
}
