//! What is written on the tree: names and lengths in boxes, the axis beside them.

use radixscope_core::id::WorkerIx;
use radixscope_core::tree::Tree;
use radixscope_core::tree::forest::Forest;

use super::palette::{Palette, Pattern, blend, ink, label};
use super::raster::{Labelled, MAX_TICKS};
use super::surface::Surface;
use super::viewport::{Viewport, marks};
use crate::format;

/// Width of the axis, CSS pixels.
pub const GUTTER: f64 = 46.0;
/// Distance of the axis's marks, CSS pixels.
const MARK_GAP: f64 = 36.0;

/// Writes into boxes who holds them and how many blocks they are, as far as there is room.
pub fn labels(surface: &Surface, tree: &Tree, forest: &Forest, boxes: &[Labelled], picked: Option<WorkerIx>) {
    surface.font(600);
    boxes.iter().for_each(|labelled| write_label(surface, tree, forest, labelled, picked));
}

fn write_label(
    surface: &Surface,
    tree: &Tree,
    forest: &Forest,
    labelled: &Labelled,
    picked: Option<WorkerIx>,
) {
    let chain = forest.chain(labelled.id);
    let owners = tree.chain_owners(chain);
    let len =
        if chain.len > 1 { format!("×{}", format::count(u64::from(chain.len))) } else { String::new() };
    let names = match owners.len() {
        0 => "held by nobody".to_owned(),
        n if n > MAX_TICKS => format!("{n} workers"),
        _ => owners.iter().map(label).collect::<Vec<_>>().join(" "),
    };
    let few = format!("{} workers", owners.len());
    let scale = surface.scale;
    let room = labelled.rect.right - labelled.rect.left - 10.0 * scale;
    let candidates = [format!("{names} {len}"), format!("{few} {len}"), len, names];
    let text = candidates.iter().map(|t| t.trim()).find(|t| !t.is_empty() && surface.measure(t) <= room);
    let Some(text) = text else { return };
    let strong = ink(labelled.fill.colour);
    let dimmed = picked.is_some_and(|picked| !owners.contains(picked));
    let colour = if dimmed { blend(labelled.fill.colour, strong, 0.75) } else { strong };
    let ticks = if owners.len() > 1 { 5.0 * scale } else { 0.0 };
    let y = labelled.rect.top + ticks + 9.0 * scale;
    if y + 5.0 * scale <= labelled.rect.bottom {
        let x = labelled.rect.left + 5.0 * scale;
        if labelled.fill.pattern != Pattern::Plain {
            surface.plate(text, x, y, labelled.fill.colour);
        }
        surface.text(text, x, y, colour, false);
    }
}

/// Writes how far into the prompt what is shown lies: in tokens where a block's size is known, else in blocks.
pub fn axis(surface: &Surface, view: &Viewport, palette: &Palette, block_tokens: Option<u32>) {
    let scale = surface.scale;
    let height = f64::from(view.height);
    let region = view.region;
    surface.font(400);
    for mark in marks(region.top, region.bottom, height, MARK_GAP * scale) {
        let y = view.y(mark as f64);
        surface.tick(y.min(height - scale), palette.quiet);
        let text = match block_tokens {
            Some(tokens) => format::short(mark * u64::from(tokens)),
            None => format::short(mark),
        };
        // Not `clamp`, which panics where there is no room, and brings the formatting of fractions for saying so.
        let y = y.min(height - 7.0 * scale).max(7.0 * scale);
        surface.text(&text, -8.0 * scale, y, palette.quiet, true);
    }
}
