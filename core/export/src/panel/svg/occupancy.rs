//! How full each worker is with cached blocks, and what runs on it.

use radixscope_insight::view_context::{Unit, ViewContext};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{plural, short};

use super::super::workers::{WorkerFigures, capacity_note, empty};
use super::chart_area::{Area, ChartArea, LINE_PX, Style};
use super::lanes::more;
use super::{Body, Content, PanelRequest, present_workers};

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
    figures: WorkerFigures,
}

struct Rows(Vec<OccupancyRow>);

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, now: Millis) -> Content {
    let workers = present_workers(shown, request);
    if workers.is_empty() {
        return Content::empty(TITLE, &empty());
    }
    let note = capacity_note(shown.cluster, workers.iter().copied());
    let row =
        |worker| Some(OccupancyRow { worker, figures: WorkerFigures::of(shown.cluster, worker, now, true)? });
    let rows = workers.into_iter().filter_map(row).collect();
    let held = match shown.held() {
        Some((held, _, Unit::Blocks)) => {
            format!("{} summed over the workers", plural(held, "cached block", "cached blocks"))
        }
        Some((held, _, Unit::Tokens)) => {
            format!("{} tokens in cached blocks, summed over the workers", short(held))
        }
        None => "pools have blocks of different size, and the size of some is unknown".to_owned(),
    };
    let facts = format!("{held}; by KV events: stored and not removed ÷ KV blocks there are");
    let facts = [Some(facts), note].into_iter().flatten().collect::<Vec<_>>().join(". ");
    Content::new(TITLE, facts, Rows(rows))
}

/// How wide the columns are, in the order of the constants above.
fn columns_px(area: Area) -> [f64; 4] {
    [NAME_PX, HELD_PX, SHARE_PX, IN_FLIGHT_PX].map(|widths| area.fitting(widths))
}

impl OccupancyRow {
    fn height(&self) -> f64 {
        if self.figures.lacks.is_some() { ROW_PX + LINE_PX } else { ROW_PX }
    }

    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = area.y + 15.0;
        let chip = paper.chip(area.x, y, self.worker);
        let [name_px, held_px, share_px, in_flight_px] = columns_px(area);
        if area.is_wide() {
            paper.text_within(area.x + chip, y, name_px - chip - 6.0, paper.quiet(), &self.figures.tail);
        }
        let meter = Area {
            x: area.x + name_px,
            y: area.y + 5.0,
            width: (area.width - name_px - held_px - share_px - in_flight_px).max(10.0),
            height: 12.0,
        };
        let fill = paper.fill(self.worker);
        let figures = &self.figures;
        paper.meter(meter, figures.occupancy.share, &fill);
        let plain = paper.plain();
        paper.text(area.right() - in_flight_px - share_px, y, plain.right(), &figures.occupancy.to_text());
        paper.text(area.right() - in_flight_px, y, plain.bold().right(), &figures.share_text());
        let queued = if area.is_wide() { figures.queued.as_str() } else { "" };
        let in_flight = format!("{} {queued}", figures.in_flight);
        paper.text(area.right(), y, plain.right(), in_flight.trim_end());
        if let Some(lacks) = &figures.lacks {
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
                let text = format!("{} not shown: the picture is too low", more(self.0.len() - done));
                paper.text(area.x, at.y + 12.0, quiet, &text);
                return;
            }
            row.draw(paper, at);
            at.y += row.height();
        }
    }
}
