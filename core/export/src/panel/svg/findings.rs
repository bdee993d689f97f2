//! What is wrong, why, and what to set.

use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{clock, plural};
use radixscope_model::record::{Finding, Severity};

use super::super::findings::{self, NoFindings, SEVERITIES, TITLE};
use super::chart_area::{Area, ChartArea, LINE_PX, Style};
use super::{Body, Content, PanelRequest};
use crate::Summary;
use crate::colour::css;
use crate::finding_ticket::{setting_line, severity_mark, severity_word};
use crate::tree::svg::text::cut;

/// Least and most lines of an explanation.
const EXPLAINED: (usize, usize) = (2, 6);
/// Height of a finding without its explanation, wide and narrow.
const CARD_PX: [f64; 2] = [3.0 * LINE_PX, 5.0 * LINE_PX];

struct Card {
    severity: Severity,
    head: String,
    explanation: String,
    since: String,
    setting: String,
}

/// The active findings; without any, that there are none.
struct Findings {
    cards: Vec<Card>,
    none: Option<NoFindings>,
}

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, _: Millis) -> Content {
    let cluster = shown.cluster;
    if let Some(text) = findings::empty(cluster) {
        return Content::empty(TITLE, &text);
    }
    let active = findings::active(cluster, request.worker);
    let counts = findings::counts(&active);
    let counts: Vec<String> =
        SEVERITIES.iter().zip(counts).map(|((_, one, many), n)| plural(n, one, many)).collect();
    let facts = format!("{} active; {}", counts.join(", "), Summary::of(cluster).coverage());
    let none = active.is_empty().then(|| NoFindings::of(cluster));
    let cards = active.into_iter().map(Card::of).collect();
    Content::new(TITLE, facts, Findings { cards, none })
}

impl Card {
    fn of(finding: &Finding) -> Self {
        let setting = finding.fix.iter().map(setting_line).find(|setting| !setting.is_empty());
        let last = findings::last_word(finding.phase);
        Self {
            severity: finding.severity,
            head: finding.title.to_string(),
            explanation: finding.explanation.to_string(),
            since: format!("since {}, {last} {}", clock(finding.first_ms.0, 0), clock(finding.last_ms.0, 0)),
            setting: setting.unwrap_or_default(),
        }
    }

    fn draw(&self, paper: &mut ChartArea<'_>, area: Area, explained: usize) -> f64 {
        let (text, edge) = match self.severity {
            Severity::Critical => (paper.theme.bad_text, paper.theme.bad),
            Severity::Warning => (paper.theme.warn_text, paper.theme.warn),
            Severity::Info => (paper.theme.text, paper.theme.focus),
        };
        let is_wide = area.is_wide();
        let x = area.x + 10.0;
        let room = area.right() - x;
        let mark = severity_mark(self.severity);
        let (word, title) = match is_wide {
            true => (format!("{mark} {}", severity_word(self.severity)), x + 76.0),
            false => (mark.to_owned(), x + 16.0),
        };
        let mut y = area.y + 12.0;
        paper.text(x, y, Style::of(text).bold(), &word);
        let titles = if is_wide { 1 } else { 2 };
        y = paper.lines((title, y), area.right() - title - 6.0, paper.plain().bold(), &self.head, titles);
        y = paper.lines((x, y), room, paper.quiet(), &self.explanation, explained);
        let [setting, since] = [&self.setting, &self.since];
        if setting.is_empty() {
            paper.text_within(x, y, room, paper.quiet(), since);
        } else if is_wide {
            paper.text_within(x, y, room * 0.6, paper.plain().mono(), setting);
            paper.text(area.right(), y, paper.quiet().right(), &cut(since, room * 0.38));
        } else {
            paper.text_within(x, y, room, paper.plain().mono(), setting);
            y += LINE_PX;
            paper.text_within(x, y, room, paper.quiet(), since);
        }
        let height = y - area.y + 5.0;
        paper.rect(Area { width: 3.0, height, ..area }, &css(edge));
        height + 8.0
    }
}

impl Body for Findings {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        if let Some(none) = &self.none {
            let (mark, colour) = match none.is_good {
                true => ("✓ ", paper.theme.good_text),
                false => ("", paper.theme.text),
            };
            let style = Style::of(colour).bold().size(13.0);
            paper.lines((area.x, area.y + 16.0), area.width, style, &format!("{mark}{}", none.text), 3);
            return;
        }
        let card_px = area.fitting(CARD_PX);
        let per_card = area.height / self.cards.len().max(1) as f64 - card_px;
        let explained = ((per_card / LINE_PX) as usize).clamp(EXPLAINED.0, EXPLAINED.1);
        let mut at = area;
        for (done, card) in self.cards.iter().enumerate() {
            let needed = card_px + LINE_PX * explained as f64;
            if done > 0 && at.y + needed > area.bottom() {
                let text = format!("and {} more", self.cards.len() - done);
                return paper.text(area.x, (at.y + 10.0).min(area.bottom()), paper.quiet(), &text);
            }
            at.y += card.draw(paper, at, explained);
        }
    }
}
