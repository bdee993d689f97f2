//! What is written on the tree: names and lengths in boxes, the axis beside them.

use radixscope_icicle::lanes::Lanes;
use radixscope_icicle::palette::{Palette, Pattern, blend, ink};
use radixscope_icicle::raster::{Fills, Labelled, MAX_TICKS, TICKS_HEIGHT, has_ticks};
use radixscope_icicle::viewport::{Viewport, marks};
use radixscope_model::id::Slot;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::Forest;

use super::surface::Surface;
use crate::format;

/// Width of the axis, CSS pixels.
pub const GUTTER: f64 = 46.0;
/// What is free at both sides of a label, CSS pixels; of a count in a narrow box.
const PAD: f64 = 5.0;
const TIGHT_PAD: f64 = 2.0;
/// Distance of the axis's marks, CSS pixels.
const MARK_GAP: f64 = 36.0;
/// The same in a lane.
const LANE_MARK_GAP: f64 = 18.0;

/// Writes into boxes who holds them and how many blocks they are, as far as there is room.
pub fn labels(
    surface: &Surface,
    tree: &Tree,
    forest: &Forest,
    boxes: &[Labelled],
    fills: &dyn Fills,
    (picked, name): (Option<Slot>, &dyn Fn(Slot) -> String),
) {
    surface.label_font();
    boxes.iter().for_each(|labelled| write_label(surface, tree, forest, labelled, fills, (picked, name)));
}

fn write_label(
    surface: &Surface,
    tree: &Tree,
    forest: &Forest,
    labelled: &Labelled,
    fills: &dyn Fills,
    (picked, name): (Option<Slot>, &dyn Fn(Slot) -> String),
) {
    let chain = forest.chain(labelled.id);
    let owners = tree.chain_owners(chain);
    let len =
        if chain.len > 1 { format!("×{}", format::count(u64::from(chain.len))) } else { String::new() };
    let word = fills.word(tree, chain);
    // Without a word ticks say who they are, where there is room for them.
    let has_ticks = word.is_none() && has_ticks(labelled.rect, owners.len(), surface.scale);
    // What only the label can say, a count, goes before the length, and without its unit where there is no room.
    let mut bare = String::new();
    let candidates = match (word, owners.len()) {
        (Some(word), _) => {
            word.split(' ').next().unwrap_or_default().clone_into(&mut bare);
            [format!("{word} {len}"), word, if bare.is_empty() { len } else { String::new() }, String::new()]
        }
        (None, n) if n > MAX_TICKS => {
            bare = n.to_string();
            [format!("{n} workers {len}"), format!("{n} workers"), String::new(), String::new()]
        }
        (None, n) if n > 1 && !has_ticks => {
            bare = n.to_string();
            [String::new(), String::new(), String::new(), String::new()]
        }
        (None, n) => {
            let names = match n {
                0 => "evicted parent".to_owned(),
                _ => owners.iter().map(name).collect::<Vec<_>>().join(" "),
            };
            [format!("{names} {len}"), format!("{n} workers {len}"), len, names]
        }
    };
    let scale = surface.scale;
    let width = labelled.rect.right - labelled.rect.left;
    let fits = |text: &str, pad: f64| !text.is_empty() && surface.measure(text) <= width - 2.0 * pad * scale;
    let texts = candidates.iter().map(|text| (text.trim(), PAD)).chain([(bare.as_str(), TIGHT_PAD)]);
    let Some((text, pad)) = texts.into_iter().find(|&(text, pad)| fits(text, pad)) else { return };
    let strong = ink(labelled.fill.colour);
    let dimmed = picked.is_some_and(|picked| !owners.contains(picked));
    let colour = if dimmed { blend(labelled.fill.colour, strong, 0.75) } else { strong };
    let ticks = if has_ticks { TICKS_HEIGHT as f64 * scale } else { 0.0 };
    let y = labelled.rect.top + ticks + 9.0 * scale;
    if y + 5.0 * scale <= labelled.rect.bottom {
        let x = labelled.rect.left + pad * scale;
        if labelled.fill.pattern != Pattern::Plain {
            surface.plate(text, x, y, labelled.fill.colour);
        }
        surface.text(text, x, y, colour);
    }
}

/// Writes how far into the prompt what is shown lies: in tokens where a block's size is known, else in blocks.
pub fn axis(surface: &Surface, view: &Viewport, palette: &Palette, block_tokens: Option<u32>) {
    let scale = surface.scale;
    let height = f64::from(view.height);
    let region = view.region;
    surface.axis_font();
    for mark in marks(region.top, region.bottom, height, MARK_GAP * scale) {
        write_mark(surface, view.y(mark as f64), (0.0, height), mark, palette, block_tokens);
    }
}

/// The first and the last mark of every lane.
pub fn lanes_axis(
    surface: &Surface,
    view: &Viewport,
    lanes: &Lanes,
    palette: &Palette,
    block_tokens: Option<u32>,
) {
    let inner = lanes.lane_view(view);
    let (region, height) = (inner.region, f64::from(inner.height));
    let marks = marks(region.top, region.bottom, height, LANE_MARK_GAP * surface.scale);
    let (Some(&first), Some(&last)) = (marks.first(), marks.last()) else { return };
    surface.axis_font();
    for lane in lanes.visible(f64::from(view.height)) {
        let top = lanes.top(lane);
        for mark in if first == last { vec![first] } else { vec![first, last] } {
            let y = top + inner.y(mark as f64);
            write_mark(surface, y, (top, top + height), mark, palette, block_tokens);
        }
    }
}

/// A mark at `y` and its text, both within `from … to`.
fn write_mark(
    surface: &Surface,
    y: f64,
    (from, to): (f64, f64),
    mark: u64,
    palette: &Palette,
    block_tokens: Option<u32>,
) {
    let scale = surface.scale;
    surface.tick(y.min(to - scale), palette.quiet);
    let text = match block_tokens {
        Some(tokens) => format::short(mark * u64::from(tokens)),
        None => format::short(mark),
    };
    let y = y.min(to - 7.0 * scale).max(from + 7.0 * scale);
    surface.axis_text(&text, y, palette.quiet);
}
