//! Wheel, pointers and keys: what they do to camera and selection.

use radixscope_export::tree::svg::Heat;
use radixscope_icicle::camera::{Axes, Camera, Goal};
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::heat::{Measure, most_hits};
use radixscope_icicle::lanes::Lanes;
use radixscope_icicle::raster::Drawn;
use radixscope_icicle::viewport::{Region, Viewport};
use radixscope_model::id::Slot;
use radixscope_panels::tree::{
    Choice, Click, Hands, Hovered, How, LanePlace, Leave, Looked, Move, Narrow, Painting, PointerMove,
    StagePlace, Steer, TreeKey, TreePlacement, Wheel, WheelCommand, WheelUnit, box_at, goal_text, is_held,
    path_to, step, zoom_step,
};
use radixscope_sim::Topology;
use radixscope_state::tree::forest::{Arrangement, Holder, NarrowBoxes};

use super::{as_on_page, with_forest};
use crate::folded::Folded;

/// 800 × 400 CSS pixels beside an axis of 50.
const STAGE: StagePlace<'static> = StagePlace { width: 800.0, height: 400.0, axis: 50.0, lanes: None };

fn wheel(by: (f64, f64)) -> Wheel {
    Wheel {
        by,
        unit: WheelUnit::Pixel,
        has_ctrl: false,
        has_shift: false,
        has_alt: false,
        at: (450.0, 100.0),
    }
}

fn zoomed(command: WheelCommand) -> (f64, (f64, f64), Axes) {
    match command {
        WheelCommand::Steer(Steer::Zoom { factor, at, axes, is_eased: false }) => (factor, at, axes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_wheel_zooms_around_the_pointer_and_moves_sideways() {
    let (factor, at, axes) = zoomed(wheel((0.0, -48.0)).command(&STAGE));
    assert!((factor - 0.1_f64.exp()).abs() < 1e-12, "a tenth of a notch of e");
    assert_eq!((at, axes), ((0.5, 0.25), Axes::Both));
    let (out, ..) = zoomed(wheel((0.0, 48.0)).command(&STAGE));
    assert!((factor * out - 1.0).abs() < 1e-12, "back again");
    let (most, ..) = zoomed(wheel((0.0, -1e6)).command(&STAGE));
    assert!((most - 0.7_f64.exp()).abs() < 1e-12, "no event zooms more");
    let lines = Wheel { unit: WheelUnit::Line, ..wheel((0.0, -1.0)) };
    assert!((zoomed(lines.command(&STAGE)).0 - (33.0_f64 / 480.0).exp()).abs() < 1e-12);
    let pages = Wheel { unit: WheelUnit::Page, ..wheel((0.0, -0.5)) };
    assert!((zoomed(pages.command(&STAGE)).0 - (200.0_f64 / 480.0).exp()).abs() < 1e-12);
    // A pinch on a trackpad comes as a wheel with Ctrl, and is finer.
    let pinch = Wheel { has_ctrl: true, ..wheel((30.0, -10.0)) };
    assert!((zoomed(pinch.command(&STAGE)).0 - 0.1_f64.exp()).abs() < 1e-12);
    assert_eq!(zoomed(Wheel { has_alt: true, ..wheel((0.0, -48.0)) }.command(&STAGE)).2, Axes::Across);
    let pan = |wheel: Wheel| match wheel.command(&STAGE) {
        WheelCommand::Steer(Steer::Pan(right, 0.0)) => right,
        other => panic!("{other:?}"),
    };
    assert_eq!(pan(wheel((80.0, 20.0))), 0.1);
    assert_eq!(pan(Wheel { has_shift: true, ..wheel((0.0, 40.0)) }), 0.05, "Shift turns a wheel sideways");
    let lanes = Lanes { workers: [Slot(0), Slot(1)].into_iter().collect(), height: 100.0, scrolled: 0.0 };
    let stage = StagePlace::of((850.0, 400.0), 50.0, Some(&lanes));
    assert_eq!((stage.width, stage.height), (800.0, 100.0));
    let scroll = Wheel { has_shift: true, ..wheel((0.0, 40.0)) }.command(&stage);
    assert_eq!(scroll, WheelCommand::ScrollLanes(40.0));
}

#[test]
fn short_press_selects_instead_of_dragging() {
    let mut hands = Hands::default();
    assert_eq!(hands.moved(1, (300.0, 300.0), &STAGE), PointerMove::Hovers);
    hands.down(1, (300.0, 300.0));
    assert_eq!(hands.moved(1, (302.0, 303.0), &STAGE), PointerMove::Rests, "less than 4 pixels");
    assert!(hands.up(1) && !hands.is_dragging(), "a click follows");

    hands.down(1, (300.0, 300.0));
    let moved = hands.moved(1, (280.0, 320.0), &STAGE);
    assert_eq!(
        moved,
        PointerMove::Drags { begins: true, pan: Steer::Pan(20.0 / 800.0, -20.0 / 400.0), zoom: None }
    );
    let moved = hands.moved(1, (281.0, 320.0), &STAGE);
    assert_eq!(
        moved,
        PointerMove::Drags { begins: false, pan: Steer::Pan(-1.0 / 800.0, 0.0), zoom: None },
        "then by any step"
    );
    assert!(hands.up(1) && hands.is_dragging(), "no click follows a drag");
    hands.down(1, (300.0, 300.0));
    assert!(!hands.is_dragging(), "the next press begins anew");
}

#[test]
fn two_fingers_spread_the_tree_around_their_middle() {
    let mut hands = Hands::default();
    hands.down(1, (350.0, 200.0));
    hands.down(2, (450.0, 200.0));
    let moved = hands.moved(2, (550.0, 200.0), &STAGE);
    let PointerMove::Drags { begins: true, pan, zoom: Some(zoom) } = moved else { panic!("{moved:?}") };
    // Their middle went from 400 to 450, and they are twice as far apart.
    assert_eq!(pan, Steer::Pan(-50.0 / 800.0, 0.0));
    assert_eq!(zoom, Steer::Zoom { factor: 2.0, at: (0.5, 0.5), axes: Axes::Both, is_eased: false });
    assert!(!hands.up(1), "the other is still down");
    let moved = hands.moved(2, (540.0, 200.0), &STAGE);
    assert_eq!(moved, PointerMove::Drags { begins: false, pan: Steer::Pan(10.0 / 800.0, 0.0), zoom: None });
    assert!(hands.up(2));
}

/// A camera that looks at everything, one that has come to rest.
fn at_rest(shown: &radixscope_insight::view_context::ViewContext<'_>, goal: Goal) -> Camera {
    let (tree, mut camera) = (shown.tree(), Camera::default());
    let forest = tree.forest().unwrap();
    camera.step(tree, forest, 0.0, true);
    camera.go(goal);
    camera.step(tree, forest, 0.0, true);
    camera
}

fn looked<'a>(camera: &Camera, path: &'a [Crumb], selected: Option<Crumb>) -> Looked<'a> {
    Looked { goal: camera.goal(), region: camera.region(), heading: camera.heading(), path, selected }
}

#[test]
fn a_click_selects_the_block_under_it_and_in_the_overview_zooms_to_its_box_and_back() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 40);
    with_forest(&mut folded, Arrangement::default(), |shown, forest| {
        let tree = shown.tree();
        let camera = at_rest(shown, Goal::All);
        let all = Region::all(forest);
        let first = forest.children(None)[0];
        let chain = forest.chain(first);
        let across = (f64::from(forest.left(first)) + 0.5) / all.x1;
        let at = (across, 2.5 / all.bottom);
        let seen = (tree, forest);
        let click = |form, announced, looked: &Looked<'_>| Click::of(form, at, announced, looked, seen);
        let page = looked(&camera, &[], None);
        let block = Crumb::at(tree, tree.block_at(chain, 2), 2);
        assert_eq!(click(TreePlacement::Page, None, &page), Click::Select(Some(block)));
        assert_eq!(box_at(at, camera.region(), seen), Some(Crumb::of(tree, forest, first)));
        // A pointer that rests there was told of another block meanwhile: that is meant.
        let other = Crumb::of(tree, forest, forest.children(None)[1]);
        assert_eq!(
            click(TreePlacement::Page, Some(Hovered::Block(other)), &page),
            Click::Select(Some(other))
        );
        let below = Click::of(
            TreePlacement::Page,
            (0.5, 1.0),
            None,
            &Looked { region: Some(Region { bottom: all.bottom * 9.0, ..all }), ..page },
            seen,
        );
        assert_eq!(below, Click::Select(None), "beside the tree it lets go");
        let narrow = Hovered::NarrowBoxes(Narrow { boxes: 3, blocks: 5, workers: 1, hits: 0 });
        let into = Click::Steer(Steer::Zoom { factor: 4.0, at, axes: Axes::Both, is_eased: true });
        assert_eq!(click(TreePlacement::Page, Some(narrow), &page), into);

        let crumb = Crumb::of(tree, forest, first);
        assert_eq!(click(TreePlacement::Overview, None, &page), Click::ZoomTo(crumb));
        let zoomed = at_rest(shown, Goal::Block(crumb));
        let again =
            Click::of(TreePlacement::Overview, (0.01, 0.0), None, &looked(&zoomed, &[crumb], None), seen);
        assert_eq!(again, Click::Leave);
    });
}

#[test]
fn keys_walk_from_box_to_box_and_out_again() {
    let key = |name| TreeKey::of(name);
    assert_eq!(
        ["+", "=", "-"].map(key),
        [Some(TreeKey::Zoom(1)), Some(TreeKey::Zoom(1)), Some(TreeKey::Zoom(-1))]
    );
    assert_eq!(
        [key("Escape"), key("Backspace"), key("Home"), key("q")],
        [
            Some(TreeKey::Move(Move::Out)),
            Some(TreeKey::Move(Move::Out)),
            Some(TreeKey::Move(Move::Home)),
            None
        ]
    );
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 40);
    with_forest(&mut folded, Arrangement::default(), |shown, forest| {
        let (tree, camera) = (shown.tree(), at_rest(shown, Goal::All));
        let seen = (tree, forest);
        let go = |selected, to| step(to, &looked(&camera, &[], selected), seen).map(|(crumb, _)| crumb);
        let id = |crumb: Crumb| crumb.chain(tree).unwrap();
        let first = go(None, Move::Right).expect("the keyboard begins with the leftmost box");
        assert_eq!(id(first), forest.children(None)[0]);
        let second = go(Some(first), Move::Right).unwrap();
        assert_eq!(id(second), forest.children(None)[1]);
        assert_eq!(go(Some(second), Move::Left), Some(first));
        assert_eq!([go(Some(first), Move::Left), go(Some(first), Move::Above)], [None, None]);
        let parent =
            forest.children(None).iter().copied().find(|&id| !forest.children(Some(id)).is_empty()).unwrap();
        let parent = Crumb::of(tree, forest, parent);
        let child = go(Some(parent), Move::Below).unwrap();
        assert_eq!(forest.chain(id(child)).parent(), Some(id(parent)));
        assert!(is_held(tree, forest, id(child)));
        assert_eq!(go(Some(child), Move::Above), Some(parent));
        let path = [parent, child];
        assert_eq!(
            step(Move::Right, &looked(&camera, &path, None), seen).map(|(crumb, _)| crumb),
            Some(child),
            "from where one looks"
        );

        let leave = |goal, path: &[Crumb], selected, picked| {
            Leave::of(&Looked { goal, ..looked(&camera, path, selected) }, picked)
        };
        assert_eq!(leave(Goal::Block(child), &path, None, false), Some(Leave::LookAt(Goal::Block(parent))));
        assert_eq!(leave(Goal::Block(parent), &path[..1], None, false), Some(Leave::LookAt(Goal::All)));
        assert_eq!(leave(Goal::Free, &path, Some(child), true), Some(Leave::LookAt(Goal::Block(child))));
        assert_eq!(leave(Goal::Free, &[], None, false), Some(Leave::LookAt(Goal::All)));
        assert_eq!(leave(Goal::All, &[], Some(child), true), Some(Leave::Deselect));
        assert_eq!(leave(Goal::All, &[], None, true), Some(Leave::Unpick));
        assert_eq!(leave(Goal::All, &[], None, false), None, "the key keeps its ordinary meaning");

        let zoom = |steps, selected| zoom_step(steps, &looked(&camera, &[], selected), Some(seen));
        let Steer::Zoom { factor, at, is_eased: true, .. } = zoom(2, None) else { panic!("a journey") };
        assert!((factor - 1.8 * 1.8).abs() < 1e-12 && at == (0.5, 0.5));
        let Steer::Zoom { factor, at, .. } = zoom(-1, Some(first)) else { panic!("a zoom") };
        let all = Region::all(forest);
        let width = f64::from(forest.chain(id(first)).width());
        assert!((factor - 1.0 / 1.8).abs() < 1e-12);
        assert!(
            (at.0 - width / 2.0 / all.x1).abs() < 1e-9 && (at.1 - 0.5 / all.bottom).abs() < 1e-9,
            "{at:?}"
        );
    });
}

#[test]
fn a_pointer_over_the_picture_means_the_box_there_or_its_narrow_neighbours() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let now = folded.now;
    with_forest(&mut folded, as_on_page(), |shown, forest| {
        let (tree, all) = (shown.tree(), Region::all(forest));
        let view = Viewport { region: all, width: 800, height: 400, scale: 1.0 };
        let mut painting = Painting::default();
        let place = LanePlace { height: 400.0, scale: 2.0, scrolled: 10.0 };
        let mut how = |heat, lanes, picked| {
            let choice = Choice { heat, lanes, ..Choice::default() };
            painting.how((shown, forest), (&choice, picked, now), place)
        };
        let plain = how(Heat::Owner, false, None);
        assert!(
            plain.measure.is_none()
                && plain.sessions.is_none()
                && plain.lanes.is_none()
                && !plain.is_of_changes
        );
        let worker = shown.drawn_workers().nth(1).unwrap();
        assert_eq!(how(Heat::Owner, false, Some(worker)).picked, shown.slot(worker));
        let measure = |how: How| how.measure.unwrap();
        let Measure::Hits { end: Some(end) } = measure(how(Heat::Hits, false, None)) else {
            panic!("hits are known")
        };
        assert!(end >= most_hits(forest));
        assert!(matches!(measure(how(Heat::Owners, false, None)), Measure::Owners { workers: 3 }));
        assert!(matches!(measure(how(Heat::Recency, false, None)), Measure::Recency { .. }));
        let lanes = how(Heat::Owner, true, None);
        let of = lanes.lanes.as_ref().unwrap();
        assert_eq!((of.workers.len(), of.scrolled), (3, 20.0), "in device pixels");

        let first = forest.children(None)[0];
        assert_eq!(plain.places(tree, forest, &view, first).len(), 1);
        let owners = tree.chain_owners(forest.chain(first)).len();
        assert!(lanes.places(tree, forest, &view, first).len() <= owners);
        let x = (f64::from(forest.left(first)) + 0.5) / all.x1 * 800.0;
        let y = 1.5 / all.bottom * 400.0;
        let mut drawn = Drawn::default();
        let (hovered, block) = plain.hovered((tree, forest), &view, &drawn, (x, y)).unwrap();
        assert_eq!(block, Some((first, 1)));
        assert_eq!(hovered, Hovered::Block(Crumb::at(tree, tree.block_at(forest.chain(first), 1), 1)));
        assert_eq!(plain.hovered((tree, forest), &view, &drawn, (x, 1e6)), None, "below the tree");
        drawn.runs.push(NarrowBoxes {
            x0: 0.0,
            x1: all.x1,
            top: 0,
            bottom: 9,
            parent: None,
            first,
            chains: 5,
            blocks: 7,
            hits: 2,
            holder: Holder::Several,
            workers: 1,
        });
        let (hovered, block) = plain.hovered((tree, forest), &view, &drawn, (x, y)).unwrap();
        assert_eq!(
            (hovered, block),
            (Hovered::NarrowBoxes(Narrow { boxes: 5, blocks: 7, workers: 1, hits: 2 }), None)
        );
    });
}

#[test]
fn the_path_leads_from_the_top_to_what_is_looked_at() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 40);
    with_forest(&mut folded, Arrangement::default(), |shown, forest| {
        let seen = (shown.tree(), forest);
        let parent =
            forest.children(None).iter().copied().find(|&id| !forest.children(Some(id)).is_empty()).unwrap();
        let child =
            forest.children(Some(parent)).iter().copied().find(|&id| is_held(seen.0, forest, id)).unwrap();
        let [parent, top] = [parent, child].map(|id| Crumb::of(seen.0, forest, id));
        let all = Region::all(forest);
        assert_eq!(path_to(Goal::All, all, seen), []);
        assert_eq!(path_to(Goal::Block(top), all, seen), [parent, top]);
        assert_eq!(path_to(Goal::Path(top), all, seen), [parent, top]);
        // Within a box: its own block ends the path.
        let within =
            Crumb::at(seen.0, seen.0.block_at(forest.chain(child), top.position + 1), top.position + 1);
        if forest.chain(child).len > 1 {
            assert_eq!(path_to(Goal::Block(within), all, seen), [parent, within]);
        }
        let texts = [Goal::All, Goal::Free, Goal::Block(top), Goal::Path(top)].map(goal_text);
        assert_eq!(
            texts,
            ["all".to_owned(), "free".to_owned(), top.hash.to_string(), format!("path to {}", top.hash)]
        );
    });
}
