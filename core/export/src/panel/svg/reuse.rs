//! Where the reuse of prompts is lost: a bar for each step, and the causes below.

use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{clock, plural};

use super::super::reuse::{self, CAPTION, LossLine, ReusePanel, StepLine, TITLE};
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const ROW_PX: f64 = 18.0;
/// Room for a step's name, its share and its tokens beside the bar, in a wide and in a narrow picture.
const NAME_PX: [f64; 2] = [216.0, 120.0];
const SHARE_PX: f64 = 44.0;
const TOKENS_PX: [f64; 2] = [190.0, 0.0];
/// Room for a loss's share and tokens.
const LOSS_PX: [f64; 2] = [60.0, 80.0];

struct Reuse(ReusePanel);

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest) -> Content {
    let is_meant = |decided: &radixscope_state::cluster::DecisionEntry| {
        request.worker.is_none_or(|worker| worker == decided.decision.worker)
    };
    let panel = ReusePanel::of(shown, request.span, is_meant, |at: Millis| clock(at.0, 0));
    if panel.decisions == 0 {
        return Content::empty(TITLE, &reuse::empty(shown.has_no_router()));
    }
    let of = plural(panel.decisions.into(), "decision", "decisions");
    Content::new(TITLE, format!("{CAPTION}. Of the prompts of {of}."), Reuse(panel))
}

impl Body for Reuse {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let mut y = area.y + 12.0;
        for line in &self.0.steps {
            draw_step(line, paper, area, y);
            y += ROW_PX;
        }
        y += 10.0;
        if y < area.bottom() {
            paper.text(area.x, y, paper.quiet(), "Why tokens were computed");
        }
        for line in &self.0.losses {
            y += LINE_PX + 2.0;
            if y > area.bottom() {
                return;
            }
            draw_loss(line, paper, area, y);
        }
    }
}

fn draw_step(line: &StepLine, paper: &mut ChartArea<'_>, area: Area, y: f64) {
    if y > area.bottom() {
        return;
    }
    let (name, tokens) = (area.fitting(NAME_PX), area.fitting(TOKENS_PX));
    paper.text_within(area.x, y, name - 8.0, paper.plain(), line.step.label());
    let width = (area.width - name - SHARE_PX - tokens - 8.0).max(8.0);
    let fill = css(paper.theme.edge);
    paper.meter(Area { x: area.x + name, y: y - 9.0, width, height: 10.0 }, line.share, &fill);
    let share = area.x + name + width + SHARE_PX;
    paper.text(share, y, paper.plain().bold().right(), &line.text);
    if tokens > 0.0 {
        paper.text_within(share + 10.0, y, tokens - 10.0, paper.quiet(), &line.tokens);
    }
}

fn draw_loss(line: &LossLine, paper: &mut ChartArea<'_>, area: Area, y: f64) {
    let [share, tokens] = LOSS_PX;
    paper.text(area.x + share - 14.0, y, paper.plain().bold().right(), &line.share);
    paper.text(area.x + share + tokens - 14.0, y, paper.plain().right(), &line.tokens);
    let x = area.x + share + tokens;
    let text = format!("{}. {}", line.cause.label(), line.cause.sentence());
    paper.text_within(x, y, area.right() - x, paper.quiet(), &text);
}
