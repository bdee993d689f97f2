//! Panels as pictures in SVG, for places that let in neither frames nor scripts: text that stays crisp at any size.
//!
//! A picture is made in two steps. [`Panel::of`] copies from the state what the panel shows, quickly, because the owner of the
//! state cannot wait; [`Panel::svg`] draws it, anywhere. Everything shown is of the moment of the first step, which the picture
//! names. What a panel shows is described in [`super`], for the page too. Knows no request and no clock.
//!
//! The tree and the lanes are drawn from a [`TreeSnapshot`], a copy of the tree.

mod axis;
mod chart_area;
mod decisions;
mod findings;
mod in_flight;
mod lanes;
mod latency;
mod occupancy;
mod rates;
mod reuse;
#[cfg(test)]
mod tests;
mod tree;

use std::sync::Arc;

use radixscope_insight::completeness::coverage_text;
use radixscope_insight::feed::Feed;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::clock;
use radixscope_state::cluster::Cluster;

use super::EmptyText;
use super::workers;
use crate::tree::TreeSnapshot;
use crate::tree::svg::SIZE_PX;
use crate::tree::svg::colours::Theme;
use chart_area::{Area, ChartArea, TextBody};

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PanelKind {
    /// The prefix tree.
    Tree,
    /// The prefix tree once per worker.
    Lanes,
    /// How full each worker is.
    Occupancy,
    /// Blocks stored and removed.
    Rates,
    /// TTFT and ITL.
    Latency,
    /// The latest decisions.
    Decisions,
    /// What is wrong.
    Findings,
    /// Requests in flight on each worker.
    Spread,
    /// Where the reuse of prompts is lost.
    Reuse,
}

impl PanelKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Tree,
        Self::Lanes,
        Self::Occupancy,
        Self::Rates,
        Self::Latency,
        Self::Decisions,
        Self::Findings,
        Self::Spread,
        Self::Reuse,
    ];

    /// Its name in addresses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Lanes => "lanes",
            Self::Occupancy => "occupancy",
            Self::Rates => "rates",
            Self::Latency => "latency",
            Self::Decisions => "decisions",
            Self::Findings => "findings",
            Self::Spread => "spread",
            Self::Reuse => "reuse",
        }
    }

    /// Whether it is drawn from a copy of the tree.
    pub const fn needs_tree(self) -> bool {
        matches!(self, Self::Tree | Self::Lanes)
    }

    /// What its figures come from.
    const fn feed(self) -> Feed {
        match self {
            Self::Tree | Self::Lanes | Self::Occupancy | Self::Rates => Feed::Events,
            Self::Latency => Feed::Metrics,
            Self::Decisions | Self::Findings | Self::Spread | Self::Reuse => Feed::Any,
        }
    }
}

/// Which panel is requested, and how it is to look.
#[derive(Clone, PartialEq, Debug)]
pub struct PanelRequest {
    /// What is shown.
    pub kind: PanelKind,
    /// Dark colours instead of light ones.
    pub is_dark: bool,
    /// Width in pixels, within [`SIZE_PX`].
    pub width_px: u32,
    /// Height in pixels.
    pub height_px: u32,
    /// Only this worker.
    pub worker: Option<WorkerIx>,
    /// The time that charts show.
    pub span: TimeSpan,
    /// Targets of TTFT and of ITL, milliseconds.
    pub targets_ms: [f64; 2],
}

/// Title and words above a picture.
#[derive(Clone, PartialEq, Default, Debug)]
struct PanelHeading {
    title: String,
    /// Figures with unit, source and window.
    facts: String,
    /// What is missing.
    notes: Vec<String>,
}

/// What is drawn below the head.
trait Body: Send + Sync {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area);
}

/// What one step of reading the state gives.
struct Content {
    head: PanelHeading,
    body: Box<dyn Body>,
}

impl Content {
    fn new(title: &str, facts: String, body: impl Body + 'static) -> Self {
        let head = PanelHeading { title: title.to_owned(), facts, notes: Vec::new() };
        Self { head, body: Box::new(body) }
    }

    /// Why there is nothing to draw, and what would change that.
    fn empty(title: &str, text: &EmptyText) -> Self {
        Self::new(title, String::new(), TextBody { head: text.head.to_owned(), text: text.plain() })
    }
}

/// A panel with the figures of one moment.
pub struct Panel {
    request: PanelRequest,
    at: Millis,
    /// Workers there are, by which hues are chosen.
    workers: usize,
    head: PanelHeading,
    body: Box<dyn Body>,
}

impl Panel {
    /// Copies what is shown at `now`. `picture`: of the pool that `shown` draws, where [`PanelKind::needs_tree`].
    pub fn of(
        shown: &ViewContext<'_>,
        picture: Option<Arc<TreeSnapshot>>,
        request: PanelRequest,
        now: Millis,
    ) -> Self {
        let Content { mut head, body } = match request.kind {
            PanelKind::Tree => tree::content(shown, picture, &request),
            PanelKind::Lanes => lanes::content(shown, picture, &request, now),
            PanelKind::Occupancy => occupancy::content(shown, &request, now),
            PanelKind::Rates => rates::content(shown, &request, now),
            PanelKind::Latency => latency::content(shown, &request, now),
            PanelKind::Decisions => decisions::content(shown, &request, now),
            PanelKind::Findings => findings::content(shown, &request, now),
            PanelKind::Spread => in_flight::content(shown, &request, now),
            PanelKind::Reuse => reuse::content(shown, &request),
        };
        head.title.push_str(&of_what(shown, &request));
        head.notes.extend(notes(shown, request.kind));
        Self { at: now, workers: shown.cluster.workers().len(), head, body, request }
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let size = |px: u32| f64::from(px.clamp(*SIZE_PX.start(), *SIZE_PX.end()));
        let theme = if self.request.is_dark { &Theme::DARK } else { &Theme::LIGHT };
        let mut paper =
            ChartArea::new(theme, self.workers, size(self.request.width_px), size(self.request.height_px));
        let area = paper.head(&self.head, &as_of(self.at));
        self.body.draw(&mut paper, area);
        paper.finish(&self.head, &as_of(self.at))
    }
}

/// Words that say why there is no panel, as a picture of the requested size: all that an image can show.
pub fn refusal(is_dark: bool, (width_px, height_px): (u32, u32), message: &str) -> String {
    let size = |px: u32| f64::from(px.clamp(*SIZE_PX.start(), *SIZE_PX.end()));
    let theme = if is_dark { &Theme::DARK } else { &Theme::LIGHT };
    let head = PanelHeading { title: "No panel".to_owned(), ..PanelHeading::default() };
    let mut paper = ChartArea::new(theme, 0, size(width_px), size(height_px));
    let area = paper.head(&head, "");
    TextBody { head: String::new(), text: message.to_owned() }.draw(&mut paper, area);
    paper.finish(&head, message)
}

fn as_of(at: Millis) -> String {
    format!("as of {} UTC", clock(at.0, 0))
}

/// The pool and the worker shown, behind a title.
fn of_what(shown: &ViewContext<'_>, request: &PanelRequest) -> String {
    let obeys_pool = !matches!(request.kind, PanelKind::Findings | PanelKind::Latency);
    let pool = shown.only.or(request.kind.needs_tree().then_some(shown.pool)).filter(|_| obeys_pool);
    let is_choice = shown.pool_list().len() > 1;
    let pool = pool.filter(|_| is_choice).and_then(|pool| Some(shown.pool(pool)?.name()));
    let worker = request.worker.map(|worker| crate::finding_ticket::worker_name(shown.cluster, worker));
    let all = [pool, worker].into_iter().flatten().map(|name| format!(" · {name}"));
    all.collect()
}

/// What is missing, for who reads the picture: a source that is away, blocks that are not known.
fn notes(shown: &ViewContext<'_>, kind: PanelKind) -> Vec<String> {
    let down = kind.feed().down_since(shown.sources());
    let down = down.map(|at| format!("Source not connected: figures as of {} UTC", clock(at.0, 0)));
    let coverage = shown.coverage();
    let is_of_blocks = kind.feed() == Feed::Events && kind != PanelKind::Rates;
    let partial = (is_of_blocks && !coverage.is_whole())
        .then(|| format!("Blocks are missing: {}", coverage_text(&coverage)));
    down.into_iter().chain(partial).collect()
}

/// The workers shown that are still there, in order of first sight; the one requested also after it left.
fn present_workers(shown: &ViewContext<'_>, request: &PanelRequest) -> Vec<WorkerIx> {
    let is_there = |cluster: &Cluster, worker| cluster.worker(worker).is_some_and(|w| w.departure.is_none());
    let is_meant = |worker: &WorkerIx| match request.worker {
        Some(only) => only == *worker,
        None => is_there(shown.cluster, *worker),
    };
    shown.worker_list().filter(is_meant).collect()
}
