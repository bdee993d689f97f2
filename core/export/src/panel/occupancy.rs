//! How full each worker is with cached blocks, and what runs on it.

use radixscope_insight::completeness::{known_text, why_text};
use radixscope_insight::occupancy::Occupancy;
use radixscope_insight::queues;
use radixscope_insight::view_context::{Unit, ViewContext};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count, percent, plural, short, tail};

use super::chart_area::{Area, ChartArea, LINE_PX, Style};
use super::lanes::more;
use super::{Body, Content, PanelRequest, workers};

const TITLE: &str = "KV cache occupancy by worker";
/// Height of a worker's row, and of a line about its missing blocks.
const ROW_PX: f64 = 24.0;
/// Widths of columns in wide and in narrow pictures. The first is a worker's label and the end of its id; in narrow ones
/// the label alone.
const NAME_PX: [f64; 2] = [110.0, 46.0];
const HELD_PX: [f64; 2] = [108.0, 84.0];
const SHARE_PX: [f64; 2] = [44.0, 44.0];
/// In wide pictures with how many of them are queued.
const IN_FLIGHT_PX: [f64; 2] = [106.0, 56.0];

struct OccupancyRow {
    worker: WorkerIx,
    name: String,
    held: Occupancy,
    in_flight: String,
    /// Those of them that wait there; empty: none does, or it is not reported.
    queued: String,
    /// What is missing of it.
    lacks: Option<String>,
}

struct Rows(Vec<OccupancyRow>);

pub(super) fn content(shown: &ViewContext<'_>, asked: &PanelRequest, now: Millis) -> Content {
    let workers = workers(shown, asked);
    if workers.is_empty() {
        return super::no_worker(TITLE);
    }
    let rows: Vec<OccupancyRow> =
        workers.into_iter().filter_map(|worker| OccupancyRow::of(shown, worker, now)).collect();
    let held = match shown.held() {
        Some((held, _, Unit::Blocks)) => {
            format!("{} summed over the workers", plural(held, "cached block", "cached blocks"))
        }
        Some((held, _, Unit::Tokens)) => {
            format!("{} tokens in cached blocks, summed over the workers", short(held))
        }
        None => "pools have blocks of different size, and the size of some is unknown".to_owned(),
    };
    let unsized_workers =
        rows.iter().filter(|row| row.held.blocks.is_some() && row.held.capacity.is_none()).count();
    let mut facts = format!("{held}; by KV events: stored and not removed ÷ KV blocks there are");
    if unsized_workers > 0 {
        facts.push_str(&format!(
            ". Capacity unknown for {}: total_kv_blocks of the model card, read with --discovery, reports it; bars compare with \
             the worker with most blocks",
            plural(unsized_workers as u64, "worker", "workers")
        ));
    }
    Content::new(TITLE, facts, Rows(rows))
}

/// How wide the columns are, in the order of the constants above.
fn columns_px(area: Area) -> [f64; 4] {
    [NAME_PX, HELD_PX, SHARE_PX, IN_FLIGHT_PX].map(|widths| area.fitting(widths))
}

impl OccupancyRow {
    fn of(shown: &ViewContext<'_>, worker: WorkerIx, now: Millis) -> Option<Self> {
        let state = shown.worker(worker)?;
        let in_flight = state.in_flight.now().map_or(UNKNOWN.to_owned(), |n| count(n.into()));
        let queued = queues::on_worker(shown.cluster, worker, now).filter(|queued| queued.requests > 0);
        let queued = queued.map_or(String::new(), |queued| format!(" ({} queued)", count(queued.requests)));
        let rank = if state.id.dp_rank > 0 { format!(" dp {}", state.id.dp_rank) } else { String::new() };
        let why =
            || format!("Known {}: {}", known_text(shown.cluster, worker), why_text(state.knowledge.why));
        Some(Self {
            worker,
            name: format!("{}{rank}", tail(state.id.id.0)),
            held: Occupancy::of(shown.cluster, worker),
            in_flight,
            queued,
            lacks: shown.is_incomplete(worker).then(why),
        })
    }

    fn height(&self) -> f64 {
        if self.lacks.is_some() { ROW_PX + LINE_PX } else { ROW_PX }
    }

    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = area.y + 15.0;
        let chip = paper.chip(area.x, y, self.worker);
        let [name_px, held_px, share_px, in_flight_px] = columns_px(area);
        if area.is_wide() {
            paper.text_within(area.x + chip, y, name_px - chip - 6.0, paper.quiet(), &self.name);
        }
        let figures = held_px + share_px + in_flight_px;
        let meter = Area {
            x: area.x + name_px,
            y: area.y + 5.0,
            width: (area.width - name_px - figures).max(10.0),
            height: 12.0,
        };
        let fill = paper.fill(self.worker);
        paper.meter(meter, self.held.share, &fill);
        let plain = paper.plain();
        paper.text(area.right() - in_flight_px - share_px, y, plain.right(), &self.held.to_text());
        let share =
            self.held.share.filter(|_| self.held.capacity.is_some()).map_or(UNKNOWN.to_owned(), percent);
        paper.text(area.right() - in_flight_px, y, plain.bold().right(), &share);
        let queued = if area.is_wide() { self.queued.as_str() } else { "" };
        paper.text(area.right(), y, plain.right(), &[&self.in_flight, queued].concat());
        if let Some(lacks) = &self.lacks {
            paper.text_within(
                area.x + name_px,
                y + LINE_PX,
                area.width - name_px,
                Style::of(paper.theme.warn_text),
                lacks,
            );
        }
    }
}

impl Body for Rows {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = area.y + 8.0;
        let quiet = paper.quiet();
        paper.text(area.x, y, quiet, "Worker");
        let [name_px, .., in_flight_px] = columns_px(area);
        let held = if area.is_wide() { "Cached blocks" } else { "Blocks" };
        paper.text(area.x + name_px, y, quiet, held);
        paper.text(area.right() - in_flight_px, y, quiet.right(), "of capacity");
        paper.text(area.right(), y, quiet.right(), "In flight");
        let mut at = Area { y: y + 4.0, ..area };
        for (done, row) in self.0.iter().enumerate() {
            let is_last = done + 1 == self.0.len();
            let needed = row.height() + if is_last { 0.0 } else { LINE_PX };
            if at.y + needed > area.bottom() + 4.0 {
                let words = format!("{} not shown: the picture is too low", more(self.0.len() - done));
                paper.text(area.x, at.y + 12.0, quiet, &words);
                return;
            }
            row.draw(paper, at);
            at.y += row.height();
        }
    }
}
