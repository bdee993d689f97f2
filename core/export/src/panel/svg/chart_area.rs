//! What pictures are drawn on: text, boxes and lines in the page's colours, and the words above every picture.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use radixscope_model::id::WorkerIx;

use super::{Body, PanelHeading};
use crate::colour::{Rgb, blend, css};
use crate::tree::svg::boxes::fill_of;
use crate::tree::svg::colours::Theme;
use crate::tree::svg::frame::pattern;
use crate::tree::svg::label;
use crate::tree::svg::text::{Escaped, Px, cut, width_px, wrap};

/// Room at the edges.
pub(super) const MARGIN_PX: f64 = 12.0;
/// From one line of text to the next.
pub(super) const LINE_PX: f64 = 15.0;
/// Size of text.
const TEXT_PX: f64 = 11.0;
const TITLE_PX: f64 = 14.0;
/// Below this width tables have fewer and narrower columns.
const WIDE_PX: f64 = 420.0;
/// The fonts of the page, which every system has one of.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
pub(super) const MONO: &str =
    "ui-monospace, 'SF Mono', 'Cascadia Mono', 'Roboto Mono', 'DejaVu Sans Mono', monospace";

/// A rectangle, in pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    /// Whether it has room for every column of a table.
    pub(super) fn is_wide(&self) -> bool {
        self.width >= WIDE_PX
    }

    /// Which of two sizes fits it: one for wide pictures and one for narrow ones.
    pub(super) fn fitting(&self, [wide, narrow]: [f64; 2]) -> f64 {
        if self.is_wide() { wide } else { narrow }
    }
}

/// How text looks.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) colour: Rgb,
    pub(super) size_px: f64,
    pub(super) is_bold: bool,
    /// Whether it ends at its place instead of beginning there.
    pub(super) is_right: bool,
    pub(super) is_mono: bool,
}

impl Style {
    pub(super) const fn of(colour: Rgb) -> Self {
        Self { colour, size_px: TEXT_PX, is_bold: false, is_right: false, is_mono: false }
    }

    pub(super) const fn bold(self) -> Self {
        Self { is_bold: true, ..self }
    }

    pub(super) const fn right(self) -> Self {
        Self { is_right: true, ..self }
    }

    pub(super) const fn size(self, size_px: f64) -> Self {
        Self { size_px, ..self }
    }

    pub(super) const fn mono(self) -> Self {
        Self { is_mono: true, ..self }
    }

    /// How much wider than plain text it is.
    const fn widening(self) -> f64 {
        // Letters of one width are narrower than the widest and wider than the mean of others.
        if self.is_mono || self.is_bold { 1.1 } else { 1.0 }
    }

    pub(super) fn width(self, text: &str) -> f64 {
        width_px(text) * self.widening() * self.size_px / TEXT_PX
    }
}

/// A picture that is being drawn.
pub(super) struct ChartArea<'a> {
    pub(super) theme: &'a Theme,
    workers: usize,
    width: f64,
    height: f64,
    svg: String,
    patterns: BTreeSet<WorkerIx>,
    /// A whole picture that takes the place of this one.
    pub(super) whole: Option<String>,
}

impl<'a> ChartArea<'a> {
    pub(super) fn new(theme: &'a Theme, workers: usize, width: f64, height: f64) -> Self {
        let (svg, patterns) = (String::new(), BTreeSet::new());
        Self { theme, workers, width, height, svg, patterns, whole: None }
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    pub(super) fn quiet(&self) -> Style {
        Style::of(self.theme.quiet)
    }

    pub(super) fn plain(&self) -> Style {
        Style::of(self.theme.text)
    }

    /// Writes title, time and words; gives what is free below them.
    pub(super) fn head(&mut self, head: &PanelHeading, at: &str) -> Area {
        let room = self.width - 2.0 * MARGIN_PX;
        let is_wide = room >= WIDE_PX;
        let title = self.plain().bold().size(TITLE_PX);
        let most = if self.height < 300.0 { 1 } else { 2 };
        // Where both do not fit beside each other, the time begins the words.
        let (title_room, facts, lines) = if is_wide || at.is_empty() {
            self.text(self.width - MARGIN_PX, 18.0, self.quiet().right(), at);
            let at_width = if at.is_empty() { 0.0 } else { width_px(at) + 8.0 };
            (room - at_width, head.facts.clone(), most)
        } else {
            (room, [at, &head.facts].join(". "), most + 1)
        };
        self.text_within(MARGIN_PX, 18.0, title_room, title, &head.title);
        let mut y = 18.0;
        for line in wrap(&facts, room, TEXT_PX, lines) {
            y += LINE_PX + 2.0;
            self.text(MARGIN_PX, y, self.quiet(), &line);
        }
        for note in &head.notes {
            for line in wrap(note, room, TEXT_PX, lines.min(2)) {
                y += LINE_PX + 1.0;
                self.text(MARGIN_PX, y, Style::of(self.theme.warn_text), &line);
            }
        }
        let top = y + 10.0;
        Area { x: MARGIN_PX, y: top, width: room, height: (self.height - top - 8.0).max(0.0) }
    }

    /// Text whose line begins, or ends, at `x` and stands on `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        let _ = write!(self.svg, "<text x=\"{}\" y=\"{}\" fill=\"{}\"", Px(x), Px(y), css(style.colour));
        if style.size_px != TEXT_PX {
            let _ = write!(self.svg, " font-size=\"{}\"", style.size_px);
        }
        if style.is_bold {
            self.svg.push_str(" font-weight=\"600\"");
        }
        if style.is_right {
            self.svg.push_str(" text-anchor=\"end\"");
        }
        if style.is_mono {
            let _ = write!(self.svg, " font-family=\"{MONO}\"");
        }
        let _ = writeln!(self.svg, ">{}</text>", Escaped(text));
    }

    /// As much of a text as fits.
    pub(super) fn text_within(&mut self, x: f64, y: f64, room: f64, style: Style, text: &str) {
        self.text(x, y, style, &cut(text, room.max(0.0) * TEXT_PX / (style.size_px * style.widening())));
    }

    /// Text in at most `most` lines from `y` on; gives where the next line would stand.
    pub(super) fn lines(
        &mut self,
        (x, y): (f64, f64),
        room: f64,
        style: Style,
        text: &str,
        most: usize,
    ) -> f64 {
        let step = style.size_px + 4.0;
        wrap(text, room / style.widening(), style.size_px, most).iter().fold(y, |y, line| {
            self.text(x, y, style, line);
            y + step
        })
    }

    pub(super) fn rect(&mut self, area: Area, fill: &str) {
        let Area { x, y, width, height } = area;
        let _ = writeln!(
            self.svg,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\"/>",
            Px(x),
            Px(y),
            Px(width.max(0.0)),
            Px(height.max(0.0))
        );
    }

    /// A closed shape.
    pub(super) fn shape(&mut self, outline: &str, fill: &str, opacity: f64) {
        if !outline.is_empty() {
            let _ = writeln!(
                self.svg,
                "<path d=\"{outline}\" fill=\"{fill}\" fill-opacity=\"{opacity}\" stroke=\"none\"/>"
            );
        }
    }

    pub(super) fn line(&mut self, way: &str, colour: Rgb, width: f64, is_dashed: bool) {
        if !way.is_empty() {
            let dash = if is_dashed { " stroke-dasharray=\"4 3\"" } else { "" };
            let _ = writeln!(
                self.svg,
                "<path d=\"{way}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"{dash}/>",
                css(colour)
            );
        }
    }

    /// Something drawn elsewhere.
    pub(super) fn raw(&mut self, svg: &str) {
        self.svg.push_str(svg);
    }

    /// A worker's colour, with the pattern that tells it from the one with the same hue.
    pub(super) fn fill(&mut self, worker: WorkerIx) -> String {
        if worker.slot().at() >= self.theme.many.len() {
            self.patterns.insert(worker);
        }
        fill_of(self.theme, worker, self.workers)
    }

    /// The same in `strength` of the full colour, where the worker has no pattern; with one, its fill and how opaque.
    pub(super) fn weak_fill(&mut self, worker: WorkerIx, strength: f64) -> (String, f64) {
        match worker.slot().at() < self.theme.many.len() {
            true => {
                let hue = self.theme.worker(worker, self.workers);
                (css(blend(self.theme.ground, hue, strength)), 1.0)
            }
            false => (self.fill(worker), strength),
        }
    }

    /// Colour and short label of a worker on a line of text; gives its width.
    pub(super) fn chip(&mut self, x: f64, y: f64, worker: WorkerIx) -> f64 {
        let fill = self.fill(worker);
        self.rect(Area { x, y: y - 9.0, width: 10.0, height: 10.0 }, &fill);
        let (style, label) = (self.plain().bold(), label(worker));
        self.text(x + 14.0, y, style, &label);
        14.0 + style.width(&label) + 8.0
    }

    /// A bar that is filled to `share`; `None`: not known.
    pub(super) fn meter(&mut self, area: Area, share: Option<f64>, fill: &str) {
        self.rect(area, &css(self.theme.raised));
        if let Some(share) = share {
            self.rect(Area { width: area.width * share.clamp(0.0, 1.0), ..area }, fill);
        }
    }

    /// The whole as a document.
    pub(super) fn finish(self, head: &PanelHeading, at: &str) -> String {
        if let Some(whole) = self.whole {
            return whole;
        }
        let (width, height) = (self.width, self.height);
        let desc: Vec<&str> =
            [at, &head.facts].into_iter().chain(head.notes.iter().map(String::as_str)).collect();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-labelledby=\"title desc\" font-family=\"{FONT}\" font-size=\"{TEXT_PX}\">\n\
             <title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n",
            Escaped(&head.title),
            Escaped(&desc.join(". ")),
        );
        for &worker in &self.patterns {
            pattern(self.theme, worker, self.workers, &mut svg);
        }
        let ground = css(self.theme.ground);
        let _ = writeln!(svg, "<path d=\"M0 0H{width}V{height}H0Z\" fill=\"{ground}\"/>");
        svg.push_str(&self.svg);
        svg.push_str("</svg>\n");
        svg
    }
}

/// Words in the place of a picture.
pub(super) struct TextBody {
    pub(super) head: String,
    pub(super) text: String,
}

impl Body for TextBody {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = paper.lines((area.x, area.y + 14.0), area.width, paper.plain().bold(), &self.head, 2);
        let most = ((area.bottom() - y) / LINE_PX).max(1.0) as usize;
        paper.lines((area.x, y + 2.0), area.width, paper.quiet(), &self.text, most);
    }
}
