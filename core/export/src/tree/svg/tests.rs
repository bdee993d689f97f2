//! Pictures of known small trees, read by an XML reader.

use proptest::prelude::*;
use roxmltree::{Document, Node};

use super::super::TreeSnapshot;
use super::colours::{HEAT, ramp};
use super::*;
use crate::colour::{css, ink};
use radixscope_model::id::{BlockHash, Millis, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::forest::{Arrangement, Order};

fn w(i: u16) -> Slot {
    Slot(i)
}

fn names(workers: u32) -> Vec<(WorkerIx, String)> {
    (0..workers).map(|i| (WorkerIx(i), i.to_string())).collect()
}

fn blocks(tokens: impl IntoIterator<Item = u64>) -> Vec<Block> {
    let block = |t| Block { block_hash: BlockHash(t * 100), tokens_hash: TokensHash(t) };
    tokens.into_iter().map(block).collect()
}

proptest! {
    #[test]
    fn lengths_are_written_as_the_shortest_number_of_hundredths(px in -1e9f64..1e9) {
        let rounded = (px * 100.0).round() / 100.0 + 0.0;
        prop_assert_eq!(text::Px(px).to_string(), rounded.to_string());
    }
}

#[test]
fn lengths_at_the_edges_are_written_too() {
    let written = |px: f64| text::Px(px).to_string();
    assert_eq!(
        [0.0, -0.0, -0.004, 0.05, 0.5, -12.34, 1_600.0].map(written),
        ["0", "0", "0", "0.05", "0.5", "-12.34", "1600"]
    );
    assert_eq!(written(f64::NAN), "0");
    assert!(written(f64::MIN).starts_with("-92233720368547758"));
}

/// Worker 0 holds 1 2 3 4, worker 1 holds 1 2 and 5 below it, worker 2 holds 9.
fn forked() -> Tree {
    let mut tree = Tree::default();
    tree.store(w(0), None, &blocks(1..=4), 10);
    tree.store(w(1), None, &blocks([1, 2, 5]), 20);
    tree.store(w(2), None, &blocks([9]), 30);
    tree
}

const NAMES: [&str; 3] = ["7", "8/1", "<9> & \"more\""];

struct Shot {
    tree: Tree,
    names: Vec<(WorkerIx, String)>,
    only: Option<Vec<Slot>>,
    heat: Heat,
    theme: Theme,
    title: String,
    block_size: Option<u32>,
    height_px: u32,
}

impl Shot {
    fn of(tree: Tree) -> Self {
        Self {
            tree,
            names: (0..).map(WorkerIx).zip(NAMES.map(str::to_owned)).collect(),
            only: None,
            heat: Heat::Owner,
            theme: Theme::LIGHT,
            title: "The prefix tree".to_owned(),
            block_size: Some(16),
            height_px: 400,
        }
    }

    fn take(&self) -> String {
        let forest = Forest::of(&self.tree, Arrangement::default());
        let drawing = Drawing {
            width_px: 640,
            height_px: self.height_px,
            theme: &self.theme,
            region: Region::all(&forest),
            heat: self.heat,
            sessions: None,
            title: &self.title,
            at: "2026-01-01T00:00:00Z",
            note: None,
            empty: EMPTY,
            now: 30,
            workers: &self.names,
            slots: self.names.len(),
            pool_workers: self.names.len(),
            only: self.only.as_deref(),
            block_size_tokens: self.block_size,
        };
        draw(&self.tree, &forest, &drawing)
    }
}

/// Left edge, top and fill of every box.
fn boxes(svg: &str) -> Vec<(String, String, String)> {
    let document = Document::parse(svg).expect("XML");
    let rects = document.descendants().filter(|node| node.has_tag_name("rect"));
    let of = |node: &Node<'_, '_>, name: &str| node.attribute(name).expect(name).to_owned();
    rects.map(|rect| (of(&rect, "x"), of(&rect, "y"), of(&rect, "fill"))).collect()
}

fn texts(svg: &str, tag: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("XML");
    let all = document.descendants().filter(|node| node.has_tag_name(tag));
    all.filter_map(|node| node.text().map(str::to_owned)).collect()
}

#[test]
fn every_box_is_drawn_once_where_it_stands_in_the_colour_of_who_holds_it() {
    let svg = Shot::of(forked()).take();
    // 6 blocks on 520 pixels; 40 pixels a block downward, from the heading on.
    let expected = [
        ("493.33", "58", css(Theme::LIGHT.few[2])),
        ("60.5", "58.5", css(Theme::LIGHT.replicas[0])),
        ("60", "138", css(Theme::LIGHT.few[0])),
        ("233.33", "138", css(Theme::LIGHT.few[1])),
    ];
    let mut found = boxes(&svg);
    let number = |text: &str| text.parse::<f64>().expect("a number");
    found.sort_by(|a, b| {
        (number(&a.1), number(&a.0)).partial_cmp(&(number(&b.1), number(&b.0))).expect("numbers")
    });
    assert_eq!(found, expected.map(|(x, y, fill)| (x.to_owned(), y.to_owned(), fill)));
    let frame = format!("stroke=\"{}\" stroke-width=\"1\"", css(Theme::LIGHT.shared));
    assert_eq!(svg.matches(&frame).count(), 1, "what several workers hold has a frame");
}

#[test]
fn labels_ticks_axes_and_legend_say_what_is_seen() {
    let svg = Shot::of(forked()).take();
    let labels = texts(&svg, "text");
    for expected in ["×2", "W1 ×2", "W2", "W3", "blocks", "tokens", "0", "2", "32", "W2 8/1"] {
        assert!(labels.iter().any(|text| text == expected), "{expected} in {labels:?}");
    }
    for owner in [0, 1] {
        let tick = format!("<path fill=\"{}\" d=\"M", css(Theme::LIGHT.few[owner]));
        assert_eq!(svg.matches(&tick).count(), 1, "{svg}");
    }
    assert!(
        !svg.contains(&format!("<path fill=\"{}\" d=\"M", css(Theme::LIGHT.few[2]))),
        "one owner needs no tick"
    );
    let titles = texts(&svg, "title");
    let shared = "Block 100 at position 0, 2 blocks in the chain, 5 blocks at and below it, on W1, W2";
    assert!(titles.iter().any(|title| title == shared), "{titles:?}");
    let facts = texts(&svg, "desc").concat();
    assert!(facts.contains("6 blocks in the tree, 2 on two workers or more, 2 duplicates"), "{facts}");
    assert!(facts.contains("Shown 8 of 8 resident blocks") && facts.starts_with("2026-01-01"), "{facts}");
}

#[test]
fn text_from_outside_stays_text() {
    let title = "</title><script>alert(1)</script> & \"so\" \u{1}".to_owned();
    let svg = Shot { title: title.clone(), ..Shot::of(forked()) }.take();
    assert!(!svg.contains("<script"), "{svg}");
    assert_eq!(texts(&svg, "title")[0], title.replace('\u{1}', "\u{fffd}"));
    assert!(texts(&svg, "text").iter().any(|text| text == "W3 <9> & \"more\""));
}

#[test]
fn the_same_tree_gives_the_same_text() {
    let build = |order: &[usize]| {
        let mut tree = Tree::default();
        let stores: [(u16, Vec<u64>); 3] = [(0, (1..=4).collect()), (1, vec![1, 2, 5]), (2, vec![9])];
        for &i in order {
            tree.store(w(stores[i].0), None, &blocks(stores[i].1.iter().copied()), 10);
        }
        Shot::of(tree).take()
    };
    assert_eq!(build(&[0, 1, 2]), build(&[2, 1, 0]));
}

#[test]
fn one_workers_picture_has_its_boxes_where_everybodys_has_them() {
    let all = boxes(&Shot::of(forked()).take());
    let own = boxes(&Shot { only: Some(vec![w(1)]), ..Shot::of(forked()) }.take());
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|found| all.contains(found)), "{own:?} in {all:?}");
}

#[test]
fn heat_has_the_colours_of_its_scale_and_a_legend() {
    let colours = |heat| {
        let svg = Shot { heat, ..Shot::of(forked()) }.take();
        assert!(svg.contains("linearGradient"), "{heat:?}");
        let mut fills: Vec<String> = boxes(&svg).into_iter().map(|(.., fill)| fill).collect();
        fills.dedup();
        fills
    };
    let (cold, hot) = (css(HEAT[0]), css(HEAT[8]));
    assert!(colours(Heat::Recency).contains(&hot), "what was touched now is hottest");
    assert_eq!(colours(Heat::Hits), std::slice::from_ref(&cold), "no request is known");
    let by_owners = colours(Heat::Owners);
    assert!(by_owners.contains(&cold) && by_owners.len() > 1, "{by_owners:?}");
}

#[test]
fn an_empty_tree_says_what_would_fill_it() {
    let svg = Shot { block_size: None, ..Shot::of(Tree::default()) }.take();
    assert_eq!(boxes(&svg), []);
    assert!(texts(&svg, "text").iter().any(|text| text.contains("No cached block")), "{svg}");
}

#[test]
fn boxes_too_narrow_are_drawn_together_and_counted() {
    let mut tree = Tree::default();
    for i in 0..30_000 {
        tree.store(w((i % 20) as u16), None, &blocks([i + 1]), 0);
    }
    let names = names(20);
    let svg = Shot { names, ..Shot::of(tree) }.take();
    let drawn = boxes(&svg).len();
    assert!((100..=640).contains(&drawn), "{drawn}");
    let titles = texts(&svg, "title");
    assert!(titles.iter().any(|title| title.contains("30,000 boxes too narrow")), "{titles:?}");
    assert!(titles.iter().any(|title| title.ends_with("on 20 workers")), "{titles:?}");
}

/// Paths of 60,000 blocks, of which every other block has two owners.
fn deep(paths: u64) -> Tree {
    let mut tree = Tree::default();
    for path in 0..paths {
        let tokens: Vec<u64> = (1..=60_000).map(|t| t * paths + path).collect();
        tree.store(w(0), None, &blocks(tokens.iter().copied()), 0);
        tree.store(w(1), None, &blocks(tokens.iter().copied()), 0);
        tokens.iter().step_by(2).for_each(|t| assert!(tree.remove(w(1), BlockHash(t * 100))));
    }
    tree
}

#[test]
fn boxes_lower_than_a_row_of_pixels_are_drawn_once_a_row() {
    let svg = Shot::of(deep(1)).take();
    let drawn = boxes(&svg).len();
    assert!((600..=1_304).contains(&drawn), "{drawn}");
    assert!(!texts(&svg, "desc").concat().contains("excluded"));
}

#[test]
fn a_picture_of_any_tree_is_bounded_and_says_what_it_leaves_out() {
    let svg = Shot { height_px: 8_192, ..Shot::of(deep(2)) }.take();
    assert_eq!(boxes(&svg).len(), MAX_BOXES);
    assert!(texts(&svg, "desc").concat().contains("boxes are excluded: too many for one picture"));
    assert!(svg.len() < 4_000_000, "{} bytes", svg.len());
}

#[test]
fn workers_beyond_the_hues_have_patterns() {
    let mut tree = Tree::default();
    for i in 0..20u16 {
        tree.store(w(i), None, &blocks([u64::from(i) + 1]), 0);
    }
    let names = names(20);
    let svg = Shot { names, ..Shot::of(tree) }.take();
    let document = Document::parse(&svg).expect("XML");
    let patterns: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("pattern"))
        .filter_map(|node| node.attribute("id"))
        .collect();
    assert_eq!((patterns.len(), patterns[0]), (12, "W9"));
    assert!(boxes(&svg).iter().any(|(.., fill)| fill == "url(#W20)"));
}

#[test]
fn colours_are_those_of_the_design_tokens() {
    let sheet = include_str!("../../../../../style/tokens.css");
    let token = |name: &str| {
        let line = sheet.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("{name} is no token")).trim_end_matches(';').to_owned()
    };
    let pair = |light, dark| format!("light-dark({}, {})", css(light), css(dark));
    let (light, dark) = (Theme::LIGHT, Theme::DARK);
    for (name, l, d) in [
        ("--panel", light.ground, dark.ground),
        ("--text", light.text, dark.text),
        ("--text-quiet", light.quiet, dark.quiet),
        ("--line", light.line, dark.line),
        ("--tree-shared", light.shared, dark.shared),
        ("--tree-no-worker", light.no_worker, dark.no_worker),
    ] {
        assert_eq!(token(name), pair(l, d), "{name}");
    }
    for i in 0..4 {
        assert_eq!(token(&format!("--series-few-{}", i + 1)), pair(light.few[i], dark.few[i]));
    }
    for i in 0..8 {
        assert_eq!(token(&format!("--series-{}", i + 1)), pair(light.many[i], dark.many[i]));
    }
    for (i, &stop) in HEAT.iter().enumerate() {
        assert_eq!(token(&format!("--heat-{i}")), css(stop));
    }
}

#[test]
fn the_ramp_goes_through_its_stops_and_no_further() {
    assert_eq!([ramp(-1.0), ramp(0.0), ramp(f64::NAN)], [HEAT[0]; 3]);
    assert_eq!([ramp(0.5), ramp(1.0), ramp(9.0)], [HEAT[4], HEAT[8], HEAT[8]]);
    assert_eq!([ink(HEAT[0]), ink(HEAT[8])], [[255; 3], [0; 3]]);
}

proptest! {
    #[test]
    fn any_window_of_any_tree_is_sound_xml(
        stores in proptest::collection::vec((0u16..70, proptest::collection::vec(1u64..9, 1..9)), 0..20),
        heat in 0..4usize, x0 in 0.0..20.0f64, width in 0.0..40.0f64, top in 0.0..8.0f64, only in 0u16..70,
    ) {
        let mut tree = Tree::default();
        for (worker, path) in &stores {
            let path = path.iter().scan(0u64, |above, step| { *above = *above * 10 + step; Some(*above) });
            tree.store(w(*worker), None, &blocks(path), 0);
        }
        let forest = Forest::of(&tree, Arrangement { order: Order::Stable, ..Arrangement::default() });
        let workers = names(70);
        let only = [w(only)];
        let drawing = Drawing {
            width_px: 1,
            height_px: u32::MAX,
            theme: &Theme::DARK,
            region: Region { x0, x1: x0 + width, top, bottom: top + 3.0 },
            heat: [Heat::Owner, Heat::Recency, Heat::Hits, Heat::Owners][heat],
            sessions: None,
            title: "",
            at: "",
            note: None,
            empty: EMPTY,
            now: 0,
            workers: &workers,
            slots: workers.len(),
            pool_workers: workers.len(),
            only: (only[0].0.is_multiple_of(2)).then_some(&only[..]),
            block_size_tokens: None,
        };
        let svg = draw(&tree, &forest, &drawing);
        let document = Document::parse(&svg).expect("XML");
        for rect in document.descendants().filter(|node| node.has_tag_name("rect")) {
            for name in ["width", "height"] {
                let size: f64 = rect.attribute(name).expect(name).parse().expect("a number");
                prop_assert!(size >= 0.0, "{name} {size}");
            }
        }
    }
}

#[test]
fn a_copy_of_a_cluster_can_be_drawn() {
    let picture =
        TreeSnapshot::of(&Cluster::default(), radixscope_model::id::PoolIx(0), Millis(1_800_000_000_000));
    let svg = picture.svg(&super::super::DrawOptions::default()).expect("the top");
    assert!(Document::parse(&svg).is_ok());
}
