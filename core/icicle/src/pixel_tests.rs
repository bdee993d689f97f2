//! Known small trees, pixel by pixel.

use radixscope_model::id::{BlockHash, Millis, Slot};
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, Order, Width};

use crate::heat::{ByHeat, Measure, Scale};
use radixscope_export::tree::recency::NEWEST_MS;

/// Where the scale of last use ends here.
const OLDEST_MS: u64 = 60 * 60 * 1_000;
use crate::palette::{Palette, Pattern, ReplicaScale, blend, contrast, ink, parse};
use crate::raster::{ByOwner, DIMMED, Drawn, Fills, Pixels, raster};
use crate::testing::{palette, store, store_at, token_text};
use crate::viewport::{Region, Viewport};

/// The whole tree, arranged, on so many pixels.
fn draw(tree: &mut Tree, arrangement: Arrangement, size: (u32, u32), fills: &dyn Fills) -> (Pixels, Drawn) {
    tree.build_forest(arrangement);
    tree.update_forest();
    let region = Region::all(tree.forest().expect("grown"));
    let view = Viewport { region, width: size.0, height: size.1, scale: 1.0 };
    let mut pixels = Pixels::default();
    let drawn = raster(tree, &view, &palette(), fills, &mut pixels);
    (pixels, drawn)
}

fn by_owner(tree: &mut Tree, arrangement: Arrangement, size: (u32, u32)) -> (Pixels, Drawn) {
    draw(
        tree,
        arrangement,
        size,
        &ByOwner { palette: &palette(), picked: None, replicas: ReplicaScale::of(3) },
    )
}

/// Worker 0 holds one block, worker 1 nine, under tokens hashes in this order.
fn one_and_nine() -> Tree {
    let mut tree = Tree::default();
    store(&mut tree, 0, [1]);
    store(&mut tree, 1, 11..=19);
    tree
}

fn colours(pixels: &Pixels, y: usize, at: &[usize]) -> Vec<[u8; 3]> {
    at.iter().map(|&x| pixels.at(x, y)).collect()
}

#[test]
fn siblings_stand_by_size_or_by_hash() {
    let w = |i| palette().worker(Slot(i));
    let (heavy, _) = by_owner(&mut one_and_nine(), Arrangement::default(), (100, 9));
    assert_eq!(colours(&heavy, 0, &[5, 85, 95]), [w(1), w(1), w(0)]);
    let stable = Arrangement { order: Order::Stable, ..Arrangement::default() };
    let (stable, _) = by_owner(&mut one_and_nine(), stable, (100, 9));
    assert_eq!(colours(&stable, 0, &[5, 15, 95]), [w(0), w(1), w(1)]);
}

#[test]
fn with_hits_as_width_a_box_is_as_wide_as_its_hits_and_gone_without() {
    let mut tree = one_and_nine();
    store(&mut tree, 2, [101, 102]);
    let end = |tree: &Tree, hash| tree.find_any(BlockHash(hash)).expect("it is there");
    let (one, nine) = (end(&tree, 1), end(&tree, 12));
    (0..3).for_each(|_| tree.hit(one, 0));
    tree.hit(nine, 0);
    let hits = Arrangement { width: Width::Hits, ..Arrangement::default() };
    let (pixels, _) = by_owner(&mut tree, hits, (100, 9));
    let w = |i| palette().worker(Slot(i));
    assert_eq!(colours(&pixels, 0, &[5, 70, 80, 98]), [w(0), w(0), w(1), w(1)]);
    assert_eq!(colours(&pixels, 8, &[5, 98]), [palette().ground, w(1)], "as deep as they are, nine blocks");
}

#[test]
fn many_narrow_boxes_are_one_run_that_says_how_many_and_whose() {
    let mut tree = Tree::default();
    store(&mut tree, 0, 1..=100);
    store(&mut tree, 0, 201..=9_800);
    (0..300).for_each(|i| store(&mut tree, 1 + i % 2, [20_000 + u64::from(i)]));
    let (pixels, drawn) = by_owner(&mut tree, Arrangement::default(), (100, 100));
    let [run] = drawn.runs[..] else { panic!("{:?}", drawn.runs) };
    assert_eq!((run.chains, run.blocks, run.workers), (300, 300, 0b110));
    assert_eq!(pixels.at(99, 0), palette().replicas[0], "of two workers, in one column");
}

#[test]
fn a_hue_that_repeats_is_drawn_with_its_pattern() {
    let mut tree = Tree::default();
    store(&mut tree, 4, 1..=30);
    store(&mut tree, 12, 101..=120);
    let (pixels, _) = by_owner(&mut tree, Arrangement::default(), (50, 30));
    let colour = palette().worker(Slot(4));
    let mark = blend(colour, palette().ground, 0.45);
    assert_eq!((Pattern::of(Slot(4)), Pattern::of(Slot(12))), (Pattern::Plain, Pattern::Stripes));
    assert_eq!(palette().worker(Slot(12)), colour, "the same hue");
    let row = |from: usize| (from..from + 12).map(|x| pixels.at(x, 5)).collect::<Vec<_>>();
    assert!(row(5).iter().all(|&pixel| pixel == colour));
    assert_eq!(row(34).iter().filter(|&&pixel| pixel == mark).count(), 4, "two pixels of six");
}

#[test]
fn a_pattern_goes_through_from_box_to_box() {
    let mut tree = Tree::default();
    // Worker 16 has dots, worker 24 has bars, worker 8 stripes; each has a box of 30 pixels and 30 blocks.
    for (i, worker) in [8, 16, 24].into_iter().enumerate() {
        store(&mut tree, worker, 100 * i as u64 + 1..100 * i as u64 + 31);
    }
    let stable = Arrangement { order: Order::Stable, ..Arrangement::default() };
    let (pixels, _) = by_owner(&mut tree, stable, (90, 30));
    let mark = |worker| blend(palette().worker(Slot(worker)), palette().ground, 0.45);
    for y in 0..29 {
        for x in 0..29 {
            assert_eq!(pixels.at(x, y) == mark(8), (x + y) % 6 < 2, "stripes at {x}, {y}");
        }
        for x in 30..59 {
            assert_eq!(pixels.at(x, y) == mark(16), x % 5 < 2 && y % 5 < 2, "dots at {x}, {y}");
        }
        for x in 60..89 {
            assert_eq!(pixels.at(x, y) == mark(24), y % 5 < 2, "bars at {x}, {y}");
        }
    }
}

#[test]
fn a_box_of_more_owners_than_ticks_has_room_for_their_number_from_15_pixels_on() {
    for (width, labels) in [(15, 1), (14, 0)] {
        let mut tree = Tree::default();
        (0..17).for_each(|worker| store(&mut tree, worker, [1]));
        let (_, drawn) = by_owner(&mut tree, Arrangement::default(), (width, 14));
        assert_eq!(drawn.labelled.len(), labels, "{width} pixels");
    }
}

/// A scale from `#000000` to `#888888`.
fn scale() -> Scale {
    Scale::read(|name| format!("#{0}{0}{0}{0}{0}{0}", &name[7..]), true)
}

fn heated(tree: &mut Tree, measure: Measure, picked: Option<u16>) -> Pixels {
    let (palette, scale) = (palette(), scale());
    let fills = ByHeat { palette: &palette, scale: &scale, measure, picked: picked.map(Slot) };
    let stable = Arrangement { order: Order::Stable, ..Arrangement::default() };
    draw(tree, stable, (90, 30), &fills).0
}

/// Three boxes of 30 pixels and blocks each, stored at these times in the tree's own units.
fn stored_at(times: [u32; 3]) -> Tree {
    let mut tree = Tree::default();
    for (i, at) in times.into_iter().enumerate() {
        let first = 100 * i as u64 + 1;
        store_at(&mut tree, i as u16, first..first + 30, at);
    }
    tree
}

#[test]
fn recency_goes_from_an_hour_to_a_second() {
    let now = 1_000_000;
    let ticks = |ms: u64| (ms / 100) as u32;
    let mut tree = stored_at([now - ticks(OLDEST_MS), now - ticks(60_000), now - ticks(NEWEST_MS)]);
    let pixels = heated(&mut tree, Measure::Recency { now: touched_ms(now), oldest_ms: OLDEST_MS }, None);
    let scale = scale();
    assert_eq!(colours(&pixels, 10, &[10, 40, 70]), [scale.at(0.0), scale.at(0.5), scale.at(1.0)]);
    let later = heated(
        &mut tree,
        Measure::Recency { now: Millis(touched_ms(now).0 + 2 * OLDEST_MS), oldest_ms: OLDEST_MS },
        None,
    );
    assert_eq!(colours(&later, 10, &[10, 40, 70]), [scale.at(0.0); 3]);
}

#[test]
fn hits_go_from_none_to_the_end_of_the_scale_and_are_nothing_while_unknown() {
    let mut tree = stored_at([0; 3]);
    let second = tree.find_any(BlockHash(130)).expect("it is there");
    let third = tree.find_any(BlockHash(230)).expect("it is there");
    tree.hit(second, 0);
    (0..3).for_each(|_| tree.hit(third, 0));
    let pixels = heated(&mut tree, Measure::Hits { end: Some(3) }, None);
    let scale = scale();
    assert_eq!(colours(&pixels, 10, &[10, 40, 70]), [scale.at(0.0), scale.at(0.5), scale.at(1.0)]);
    let unknown = heated(&mut tree, Measure::Hits { end: None }, None);
    assert_eq!(colours(&unknown, 10, &[10, 40, 70]), [palette().evicted_parent; 3]);
}

#[test]
fn owners_are_counted_in_colour_without_ticks_and_dimmed_for_who_is_picked_out() {
    let mut tree = stored_at([0; 3]);
    store(&mut tree, 2, 101..=130);
    [0, 1].into_iter().for_each(|worker| store(&mut tree, worker, 201..=230));
    let (scale, workers) = (scale(), 3);
    let pixels = heated(&mut tree, Measure::Owners { workers }, None);
    let expected = [0.0, 0.5, 1.0].map(|share| scale.at(share));
    assert_eq!(colours(&pixels, 10, &[10, 40, 70]), expected);
    assert_eq!(colours(&pixels, 0, &[10, 40, 70]), expected, "no ticks along the upper edge");
    let pixels = heated(&mut tree, Measure::Owners { workers }, Some(1));
    let dimmed = blend(palette().ground, expected[0], DIMMED);
    assert_eq!(colours(&pixels, 10, &[10, 40, 70]), [dimmed, expected[1], expected[2]]);
}

#[test]
fn slivers_have_the_heat_of_what_they_gather() {
    let mut tree = Tree::default();
    store(&mut tree, 0, 1..=5000);
    [1, 2].into_iter().for_each(|worker| store(&mut tree, worker, [9001]));
    let (palette, scale) = (palette(), scale());
    let measure = Measure::Owners { workers: 3 };
    let fills = ByHeat { palette: &palette, scale: &scale, measure, picked: None };
    let (pixels, _) = draw(&mut tree, Arrangement::default(), (100, 5000), &fills);
    assert_eq!(pixels.at(99, 0), scale.at(0.5), "two of three");
    assert_eq!(pixels.at(50, 0), scale.at(0.0));
}

#[test]
fn labels_are_read_on_every_shade_of_the_scale() {
    for dark in [false, true] {
        let (scale, palette) = (Scale::read(token_text, dark), Palette::read(token_text, dark, 8));
        assert_ne!(parse(&token_text("--heat-0"), dark), parse(&token_text("--heat-8"), dark));
        for shade in (0..=255).map(|i| scale.at(f64::from(i) / 255.0)) {
            for ground in [shade, blend(palette.ground, shade, DIMMED)] {
                let ratio = contrast(ink(ground), ground);
                assert!(ratio >= 4.5, "{ground:?}, dark {dark}: {ratio:.2}");
            }
        }
    }
}

#[test]
fn the_scale_grows_brighter_from_end_to_end() {
    let black = [0; 3];
    let scale = Scale::read(token_text, true);
    let brightness: Vec<f64> = (0..=16).map(|i| contrast(scale.at(f64::from(i) / 16.0), black)).collect();
    assert!(brightness.is_sorted(), "{brightness:?}");
}
