//! What is wrong, why, and what to set.

use radixscope_insight::shown::Shown;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{clock, plural};
use radixscope_model::record::{Finding, Phase, Severity};

use super::paper::{Area, LINE_PX, Paper, Style};
use super::{Asked, Body, Content};
use crate::Wanted;
use crate::colour::css;
use crate::finding_ticket::{setting_line, severity_mark, severity_word, summary, unknown};

const TITLE: &str = "Findings";
/// Lines of an explanation.
const EXPLAINED: usize = 2;
/// Height of a finding without its explanation.
const CARD_PX: f64 = 3.0 * LINE_PX;

struct Card {
    severity: Severity,
    head: String,
    explanation: String,
    since: String,
    setting: String,
}

/// Those that hold, and what is said where none does.
struct Findings {
    cards: Vec<Card>,
    healthy: Option<(String, String)>,
}

pub(super) fn content(shown: &Shown<'_>, asked: &Asked, _: Millis) -> Content {
    let cluster = shown.cluster;
    if cluster.checked().is_empty() {
        let text = "Rules run once a second as soon as a source is connected and its history is read.";
        return Content::empty(TITLE, "Nothing was checked yet", text);
    }
    let is_meant = |finding: &&&Finding| {
        asked.worker.is_none_or(|worker| finding.workers.is_empty() || finding.workers.contains(&worker))
    };
    let held = Wanted::default().of(cluster);
    let cards: Vec<Card> = held.iter().filter(is_meant).map(|finding| Card::of(finding)).collect();
    let of = |severity: Severity| cards.iter().filter(|card| card.severity == severity).count() as u64;
    let without = unknown(cluster).len() as u64;
    let judged = match without {
        0 => "every rule had the data that it needs".to_owned(),
        n => format!("{} without data", plural(n, "rule", "rules")),
    };
    let facts = format!(
        "{} critical, {}, {} active; {} checked, {judged}",
        of(Severity::Critical),
        plural(of(Severity::Warning), "warning", "warnings"),
        plural(of(Severity::Info), "note", "notes"),
        plural(cluster.checked().len() as u64, "rule", "rules"),
    );
    let healthy = cards.is_empty().then(|| (format!("✓ {}", summary(cluster)), String::new()));
    Content::new(TITLE, facts, Findings { cards, healthy })
}

impl Card {
    fn of(finding: &Finding) -> Self {
        let setting = finding.fix.iter().map(setting_line).find(|setting| !setting.is_empty());
        let last = if finding.phase == Phase::Warn { "last seen" } else { "seen until" };
        Self {
            severity: finding.severity,
            head: finding.title.to_string(),
            explanation: finding.explanation.to_string(),
            since: format!("since {}, {last} {}", clock(finding.first_ms.0, 0), clock(finding.last_ms.0, 0)),
            setting: setting.unwrap_or_default(),
        }
    }

    fn draw(&self, paper: &mut Paper<'_>, area: Area) -> f64 {
        let (text, edge) = match self.severity {
            Severity::Critical => (paper.theme.bad_text, paper.theme.bad),
            Severity::Warning => (paper.theme.warn_text, paper.theme.warn),
            Severity::Info => (paper.theme.text, paper.theme.focus),
        };
        let x = area.x + 10.0;
        let mut y = area.y + 12.0;
        let word = format!("{} {}", severity_mark(self.severity), severity_word(self.severity));
        paper.text(x, y, Style::of(text).bold(), &word);
        let title = x + 76.0;
        paper.text_within(title, y, area.right() - title, paper.plain().bold(), &self.head);
        y = paper.lines((x, y + LINE_PX), area.right() - x, paper.quiet(), &self.explanation, EXPLAINED);
        if self.setting.is_empty() {
            paper.text(x, y, paper.quiet(), &self.since);
        } else {
            paper.text_within(x, y, (area.right() - x) * 0.68, paper.plain().mono(), &self.setting);
            paper.text(area.right(), y, paper.quiet().right(), &clipped(&self.since, area.width * 0.3));
        }
        let height = y - area.y + 5.0;
        paper.rect(Area { width: 3.0, height, ..area }, &css(edge));
        height + 8.0
    }
}

fn clipped(words: &str, width: f64) -> String {
    crate::tree::svg::text::cut(words, width)
}

impl Body for Findings {
    fn draw(&self, paper: &mut Paper<'_>, area: Area) {
        if let Some((head, text)) = &self.healthy {
            let good = Style::of(paper.theme.good_text).bold().size(13.0);
            let y = paper.lines((area.x, area.y + 16.0), area.width, good, head, 2);
            paper.lines((area.x, y), area.width, paper.quiet(), text, 3);
            return;
        }
        let mut at = area;
        for (done, card) in self.cards.iter().enumerate() {
            let needed = CARD_PX + LINE_PX * EXPLAINED as f64;
            if done > 0 && at.y + needed > area.bottom() {
                let words = format!("and {} more", self.cards.len() - done);
                return paper.text(area.x, (at.y + 10.0).min(area.bottom()), paper.quiet(), &words);
            }
            at.y += card.draw(paper, at);
        }
    }
}
