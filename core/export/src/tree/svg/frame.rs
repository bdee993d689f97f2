//! What is round the boxes: heading, axes, legend.

use std::fmt::Write as _;

use super::boxes::{Boxes, blocks, fill_of};
use super::colours::{HEAT, ReplicaScale, Theme, replicas_to_text};
use super::text::{Escaped, Px, cut, width_px, wrap};
use super::{Drawing, Heat, label};
use crate::colour::css;
use crate::tree::recency;
use crate::tree::sessions::{BoxSession, SessionBoxes};
use radixscope_model::id::WorkerIx;
use radixscope_model::number_format::{count, plural};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Forest, Order, Width};

const HEADING_PX: f64 = 58.0;
/// What a note adds to it.
const NOTE_PX: f64 = 16.0;
const LEGEND_PX: f64 = 30.0;
const AXIS_PX: f64 = 60.0;
const MARGIN_PX: f64 = 12.0;
/// Room for `1,000 more` behind a legend.
const MORE_PX: f64 = 66.0;
/// A block is never drawn higher than this: a shallow tree needs no more.
const MAX_BLOCK_PX: f64 = 40.0;
/// Least distance of two numbers of an axis.
const AXIS_STEP_PX: f64 = 44.0;

/// Height of what is above the boxes.
fn heading_px(drawing: &Drawing<'_>) -> f64 {
    if drawing.note.is_some() { HEADING_PX + NOTE_PX } else { HEADING_PX }
}

/// Where the boxes are, in pixels.
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) px_per_unit: f64,
    pub(super) px_per_block: f64,
    x0: f64,
    y0: f64,
}

impl Plot {
    pub(super) fn of(drawing: &Drawing<'_>) -> Self {
        let region = drawing.region;
        let right = if drawing.block_size_tokens.is_some() { AXIS_PX } else { MARGIN_PX };
        let width = f64::from(drawing.width_px) - AXIS_PX - right;
        let height = f64::from(drawing.height_px) - heading_px(drawing) - LEGEND_PX;
        let (units, depth) = ((region.x1 - region.x0).max(1.0), (region.bottom - region.top).max(1.0));
        Self {
            left: AXIS_PX,
            top: heading_px(drawing),
            width,
            height,
            px_per_unit: width / units,
            px_per_block: (height / depth).min(MAX_BLOCK_PX),
            x0: region.x0,
            y0: region.top,
        }
    }

    pub(super) fn x(&self, units: f64) -> f64 {
        self.left + (units - self.x0) * self.px_per_unit
    }

    pub(super) fn y(&self, position: f64) -> f64 {
        self.top + (position - self.y0) * self.px_per_block
    }
}

/// What the picture shows, in words.
pub(super) fn facts(tree: &Tree, forest: &Forest, drawing: &Drawing<'_>, left_out: usize) -> String {
    let (totals, sums) = (tree.totals(), forest.sums());
    let width = match forest.arrangement().width {
        Width::Blocks => "blocks",
        Width::Hits => "hits",
    };
    let order = match forest.arrangement().order {
        Order::LeftHeavy => "largest first",
        Order::Stable => "by tokens hash",
    };
    let mut facts = format!(
        "{}. {} in the tree, {} on two workers or more, {}. Shown {} of {} resident blocks. \
         Width: {width} at and below, {order}.",
        drawing.at,
        blocks(sums.blocks),
        count(sums.shared.into()),
        plural(sums.copies, "duplicate", "duplicates"),
        count(totals.resident - totals.hidden),
        count(totals.resident),
    );
    if left_out > 0 {
        let _ = write!(facts, " {} boxes are excluded: too many for one picture.", count(left_out as u64));
    }
    facts
}

pub(super) fn heading(drawing: &Drawing<'_>, facts: &str, svg: &mut String) {
    let room = f64::from(drawing.width_px) - 2.0 * MARGIN_PX;
    let (text, quiet) = (css(drawing.theme.text), css(drawing.theme.quiet));
    let _ = writeln!(
        svg,
        "<text x=\"{MARGIN_PX}\" y=\"18\" font-size=\"14\" font-weight=\"600\" fill=\"{text}\">{}</text>\n\
         <text x=\"{MARGIN_PX}\" y=\"35\" fill=\"{quiet}\">{}</text>",
        Escaped(&cut(drawing.title, room * 0.75)),
        Escaped(&cut(facts, room)),
    );
    if let Some(note) = drawing.note {
        let warn = css(drawing.theme.warn_text);
        let note = Escaped(&cut(note, room)).to_string();
        let _ = writeln!(svg, "<text x=\"{MARGIN_PX}\" y=\"51\" fill=\"{warn}\">{note}</text>");
    }
}

/// Positions in blocks at the left, in tokens at the right.
pub(super) fn axes(drawing: &Drawing<'_>, plot: &Plot, svg: &mut String) {
    let (line, quiet) = (css(drawing.theme.line), css(drawing.theme.quiet));
    let region = drawing.region;
    let step = axis_step(AXIS_STEP_PX / plot.px_per_block);
    let right = plot.left + plot.width;
    let _ = write!(svg, "<g fill=\"{quiet}\"><text x=\"{MARGIN_PX}\" y=\"{}\">", Px(plot.top - 3.0));
    svg.push_str("blocks</text>");
    if drawing.block_size_tokens.is_some() {
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\">tokens</text>", Px(right + 6.0), Px(plot.top - 3.0));
    }
    let mut position = (region.top / step as f64).ceil() as u64 * step;
    let mut lines = String::new();
    while (position as f64) <= region.bottom {
        let y = plot.y(position as f64);
        let _ = write!(lines, "M{} {}H{}", Px(plot.left - 4.0), Px(y), Px(right));
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            Px(plot.left - 8.0),
            Px(y + 9.0),
            count(position)
        );
        if let Some(size) = drawing.block_size_tokens {
            let tokens = position.saturating_mul(size.into());
            let _ =
                write!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", Px(right + 6.0), Px(y + 9.0), count(tokens));
        }
        position += step;
    }
    let _ = writeln!(svg, "</g>\n<path d=\"{lines}\" stroke=\"{line}\" fill=\"none\"/>");
}

/// The least of 1, 2, 5, 10, 20 … that is not below `least`.
fn axis_step(least: f64) -> u64 {
    let mut decade = 1u64;
    loop {
        for step in [1, 2, 5].map(|n| n * decade) {
            if step as f64 >= least || decade >= 1_000_000_000 {
                return step;
            }
        }
        decade *= 10;
    }
}

/// Fills of workers whose hue another worker has.
pub(super) fn patterns(drawing: &Drawing<'_>, svg: &mut String) {
    let workers = drawing.workers.iter().map(|(worker, _)| *worker);
    let patterned = workers.filter(|worker| worker.slot().at() >= drawing.theme.many.len());
    patterned.for_each(|worker| pattern(drawing.theme, worker, drawing.slots, svg));
}

/// The fill of a worker whose hue another worker has, one of `workers`.
pub(crate) fn pattern(theme: &Theme, worker: WorkerIx, workers: usize, svg: &mut String) {
    let marks = match worker.slot().at() / theme.many.len() {
        1 => "M0 6L6 0",
        2 => "M2 3h2",
        _ => "M0 3h6",
    };
    let _ = writeln!(
        svg,
        "<pattern id=\"{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"M0 0h6v6h-6Z\" fill=\"{}\"/>\
         <path d=\"{marks}\" stroke=\"{}\" stroke-width=\"1.5\"/></pattern>",
        label(worker),
        css(theme.worker(worker, workers)),
        css(theme.ground),
    );
}

pub(super) fn legend(tree: &Tree, forest: &Forest, drawing: &Drawing<'_>, boxes: &Boxes, svg: &mut String) {
    let y = f64::from(drawing.height_px) - LEGEND_PX / 2.0 + 4.0;
    let _ = write!(svg, "<g fill=\"{}\">", css(drawing.theme.text));
    if forest.width() == 0 {
        let text = match forest.arrangement().width {
            Width::Blocks => drawing.empty,
            Width::Hits => "No request found a cached block in these minutes",
        };
        let room = f64::from(drawing.width_px) - AXIS_PX - MARGIN_PX;
        for (line, text) in (0..).zip(wrap(text, room, 11.0, 8)) {
            let y = heading_px(drawing) + 24.0 + 15.0 * f64::from(line);
            let _ = write!(svg, "<text x=\"{AXIS_PX}\" y=\"{}\">{}</text>", Px(y), Escaped(&text));
        }
    }
    match drawing.heat {
        Heat::Owner => workers(drawing, y, svg),
        Heat::Recency => {
            let end = recency::end_to_text(boxes.oldest_ms);
            scale("last stored or used, or below it", &end, "just now", y, svg);
        }
        Heat::Hits => {
            let most = count(boxes.most_hits.into());
            let what = match tree.hits().len() {
                0 => "requests that found it cached: not reported",
                _ => "requests that found it cached, last 15 min",
            };
            scale(what, "0", &most, y, svg);
        }
        Heat::Sessions => sessions(drawing, y, svg),
        Heat::Owners => scale("replica count", "1", &count(drawing.workers.len() as u64), y, svg),
    }
    svg.push_str("</g>\n");
}

fn workers(drawing: &Drawing<'_>, y: f64, svg: &mut String) {
    let replicas =
        ReplicaScale::of(drawing.pool_workers).steps().enumerate().map(|(at, (shade, replicas))| {
            let range = replicas_to_text(&replicas, drawing.pool_workers);
            let text = if at == 0 { format!("on {range} workers, a tick each") } else { range };
            (css(drawing.theme.replicas[shade]), text)
        });
    let shared: Vec<(String, String)> = replicas.collect();
    let own = drawing.workers.iter().map(|(worker, name)| {
        let text = format!("{} {name}", label(*worker));
        (fill_of(drawing.theme, *worker, drawing.slots), text)
    });
    keys(drawing, &shared, own, y, svg);
}

fn sessions(drawing: &Drawing<'_>, y: f64, svg: &mut String) {
    let theme = drawing.theme;
    let key = |session, text: &str| (css(theme.session(session)), text.to_owned());
    let coloured = drawing.sessions.map_or(&[][..], SessionBoxes::coloured);
    let own = coloured.iter().map(|(name, slot)| key(Some(BoxSession::One(*slot)), name));
    let others = [key(Some(BoxSession::Other), "another session"), key(None, "no session reported")];
    let own: Vec<(String, String)> = own.chain(others).collect();
    keys(drawing, &[key(Some(BoxSession::Several), "several sessions")], own.into_iter(), y, svg);
}

/// Colours with what they mean, in a line; the last says how many there is no room for.
fn keys(
    drawing: &Drawing<'_>,
    first: &[(String, String)],
    own: impl ExactSizeIterator<Item = (String, String)>,
    y: f64,
    svg: &mut String,
) {
    let room = f64::from(drawing.width_px) - MARGIN_PX;
    let mut x = MARGIN_PX;
    let mut entry = |(fill, text): &(String, String), is_last: bool| {
        let width = 22.0 + width_px(text);
        // Room for saying how many more there are is kept.
        let retained = if is_last { 0.0 } else { MORE_PX };
        let fits = x + width + retained <= room;
        if fits {
            let _ = write!(
                svg,
                "<path d=\"M{} {}h10v10h-10Z\" fill=\"{fill}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                Px(x),
                Px(y - 9.0),
                Px(x + 14.0),
                Px(y),
                Escaped(text)
            );
            x += width + 6.0;
        }
        fits
    };
    for key in first {
        entry(key, false);
    }
    let all = own.len();
    for (ix, key) in own.enumerate() {
        let is_last = ix + 1 == all;
        if !entry(&key, is_last) {
            let _ = write!(svg, "<text x=\"{}\" y=\"{}\">", Px(x), Px(y));
            let _ = write!(svg, "{} more</text>", if is_last { 1 } else { all - ix });
            return;
        }
    }
}

/// A scale of colours from `least` to `most`.
fn scale(what: &str, least: &str, most: &str, y: f64, svg: &mut String) {
    svg.push_str("<linearGradient id=\"heat\">");
    for (i, &stop) in HEAT.iter().enumerate() {
        let offset = i as f64 / (HEAT.len() - 1) as f64;
        let _ = write!(svg, "<stop offset=\"{offset}\" stop-color=\"{}\"/>", css(stop));
    }
    svg.push_str("</linearGradient>");
    let begin = MARGIN_PX + width_px(least) + 6.0;
    let _ = write!(
        svg,
        "<text x=\"{MARGIN_PX}\" y=\"{0}\">{1}</text><path d=\"M{2} {3}h120v10h-120Z\" fill=\"url(#heat)\"/>\
         <text x=\"{4}\" y=\"{0}\">{5}: {6}</text>",
        Px(y),
        Escaped(least),
        Px(begin),
        Px(y - 9.0),
        Px(begin + 126.0),
        Escaped(most),
        Escaped(what),
    );
}
