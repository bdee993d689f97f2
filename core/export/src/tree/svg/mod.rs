//! A view of the tree as SVG: the same boxes that the page draws, as text that any browser shows without a script.
//!
//! Boxes are as wide as their subtrees have units, see [`Forest`]. Colours stand in attributes, so that the picture needs
//! no style sheet and a strict content security policy changes nothing. Its size is bounded however large the tree is: what
//! is too narrow is drawn together, ever more coarsely until there are at most [`MAX_BOXES`] boxes, and what even then is
//! what exceeds the limits is left out, with a note.

pub(crate) mod boxes;
#[cfg(test)]
mod cam02;
pub mod colours;
pub(crate) mod frame;
pub(crate) mod text;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::colour::css;
use crate::tree::sessions::SessionBoxes;
use boxes::Boxes;
use colours::Theme;
use radixscope_model::id::{Slot, WorkerIx};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Forest, Region};
use text::Escaped;

/// Most boxes in a picture.
pub const MAX_BOXES: usize = 20_000;
/// Least and most width and height in pixels.
pub const SIZE_PX: std::ops::RangeInclusive<u32> = 240..=8_192;

/// What a box's colour means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Heat {
    /// Who holds it.
    #[default]
    Owner,
    /// How long ago it, or what is below it, was stored or used.
    Recency,
    /// How many requests found it held.
    Hits,
    /// How many workers hold it.
    Owners,
    /// Whose requests found it held, by [`Drawing::sessions`].
    Sessions,
}

impl Heat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Owner, Self::Recency, Self::Hits, Self::Owners, Self::Sessions];
    /// Those that a tree shows without decisions.
    pub const OF_TREE: [Self; 4] = [Self::Owner, Self::Recency, Self::Hits, Self::Owners];

    /// Its value in addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Recency => "recency",
            Self::Hits => "hits",
            Self::Owners => "owners",
            Self::Sessions => "sessions",
        }
    }
}

/// What is drawn, and how.
#[derive(Clone, Debug)]
pub struct Drawing<'a> {
    /// Width in pixels, within [`SIZE_PX`].
    pub width_px: u32,
    /// Height in pixels, within [`SIZE_PX`].
    pub height_px: u32,
    /// Colours.
    pub theme: &'a Theme,
    /// What is shown.
    pub region: Region,
    /// What colours say.
    pub heat: Heat,
    /// Whose the boxes are, for [`Heat::Sessions`].
    pub sessions: Option<&'a SessionBoxes>,
    /// What it is a picture of, in words.
    pub title: &'a str,
    /// As of when, in words.
    pub at: &'a str,
    /// What is missing in it, in words; `None`: nothing.
    pub note: Option<&'a str>,
    /// What stands in the place of a tree without a block.
    pub empty: &'a str,
    /// The same in the units of [`Tree::touched`].
    pub now: u32,
    /// What each worker is called beside its short label.
    pub workers: &'a [(WorkerIx, String)],
    /// How many slots of workers there are.
    pub slots: usize,
    /// Workers of the pool that have not left: what replicas are counted of.
    pub pool_workers: usize,
    /// Only what one of these holds, where it stands among everything; `None`: what anyone holds.
    pub only: Option<&'a [Slot]>,
    /// Tokens of a block, if known: the axis then counts tokens too.
    pub block_size_tokens: Option<u32>,
}

impl Drawing<'_> {
    /// Who has a slot.
    fn worker(&self, slot: Slot) -> WorkerIx {
        let known = self.workers.iter().find(|(worker, _)| worker.slot() == slot);
        known.map_or(WorkerIx::first(slot), |(worker, _)| *worker)
    }
}

/// What stands in the place of a tree without a block, where nothing more is known.
pub const EMPTY: &str = "No cached block: stored events of workers appear here";

/// Short label of a worker, always drawn beside its colour.
pub fn label(worker: WorkerIx) -> String {
    worker.to_string()
}

/// The picture.
pub fn draw(tree: &Tree, forest: &Forest, drawing: &Drawing<'_>) -> String {
    let size = |px: u32| px.clamp(*SIZE_PX.start(), *SIZE_PX.end());
    let drawing =
        Drawing { width_px: size(drawing.width_px), height_px: size(drawing.height_px), ..drawing.clone() };
    let plot = frame::Plot::of(&drawing);
    let boxes = Boxes::of(tree, forest, &drawing, &plot);
    let facts = frame::facts(tree, forest, &drawing, boxes.left_out);
    let (width, height) = (drawing.width_px, drawing.height_px);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-labelledby=\"title desc\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n",
        Escaped(drawing.title),
        Escaped(&facts),
    );
    frame::patterns(&drawing, &mut svg);
    let _ = writeln!(svg, "<path d=\"M0 0H{width}V{height}H0Z\" fill=\"{}\"/>", css(drawing.theme.ground));
    frame::heading(&drawing, &facts, &mut svg);
    frame::axes(&drawing, &plot, &mut svg);
    boxes.write(drawing.theme, &plot, &mut svg);
    frame::legend(tree, forest, &drawing, &boxes, &mut svg);
    svg.push_str("</svg>\n");
    svg
}
