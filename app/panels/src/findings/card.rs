//! One finding: what it is, the numbers it rests on, what to set, and where to see it.

use radixscope_export::finding_ticket::{phase_word, setting_line, severity_mark, severity_word};
use radixscope_export::panel::findings::last_word;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Finding, Phase};
use radixscope_state::cluster::Cluster;

use super::{moment, with_labels};
use crate::time_zone::TimeZone;
use crate::url::Panel;

/// A finding as its card shows it, apart from its times, which grow older.
#[derive(Clone, PartialEq, Debug)]
pub struct FindingCard {
    /// How bad it is, for the style sheet.
    pub class: &'static str,
    /// The same as mark and word.
    pub severity: String,
    /// What it is, workers by their labels.
    pub title: String,
    /// The same with their ids.
    pub full_title: String,
    /// Active, resolved.
    pub phase: &'static str,
    /// What it means.
    pub explanation: String,
    /// Code of the finding that causes it; empty: none.
    pub cause: String,
    /// The numbers it rests on.
    pub evidence: Vec<EvidenceRow>,
    /// When they were taken, unless that was just now.
    pub taken_ms: Option<Millis>,
    /// What to do.
    pub fixes: Vec<FixRow>,
    /// The workers that it is about.
    pub workers: Vec<WorkerIx>,
    /// The panel that shows it, and the worker to select there.
    pub shown_by: (Panel, Option<WorkerIx>),
}

/// A number that a finding rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvidenceRow {
    /// What it is of.
    pub label: String,
    /// The number.
    pub value: String,
    /// Its unit.
    pub unit: String,
}

/// Something to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixRow {
    /// In a sentence.
    pub text: String,
    /// The setting to copy; empty: none.
    pub setting: String,
}

impl FindingCard {
    /// Of a finding.
    pub fn of(cluster: &Cluster, finding: &Finding) -> Self {
        let evidence = finding.evidence.iter().map(|row| EvidenceRow {
            label: with_labels(cluster, finding, &row.label),
            value: row.value.to_string(),
            unit: row.unit.to_string(),
        });
        let fixes =
            finding.fix.iter().map(|fix| FixRow { text: fix.text.to_string(), setting: setting_line(fix) });
        let selected = finding.workers.first().copied().filter(|_| finding.selects_worker);
        Self {
            class: finding.severity.as_str(),
            severity: format!("{} {}", severity_mark(finding.severity), severity_word(finding.severity)),
            title: with_labels(cluster, finding, &finding.title),
            full_title: finding.title.to_string(),
            phase: phase_word(finding.phase),
            explanation: finding.explanation.to_string(),
            cause: finding.cause.to_string(),
            evidence: evidence.collect(),
            taken_ms: (finding.phase != Phase::Warn).then_some(finding.last_ms),
            fixes: fixes.collect(),
            workers: finding.workers.clone(),
            shown_by: (Panel::from(finding.panel), selected),
        }
    }

    /// Above the fixes.
    pub fn fixes_title(fixes: &[FixRow]) -> &'static str {
        if fixes.len() > 1 { "What to do, one of these" } else { "What to do" }
    }
}

/// Above the evidence, where it was not taken just now.
pub fn evidence_time(taken: Millis, now: Millis, zone: TimeZone) -> String {
    format!("Evidence at {}", moment(taken, now, zone))
}

/// Since when a finding holds, and when it was last seen.
pub fn times(finding: &Finding, now: Millis, zone: TimeZone) -> String {
    let (first, last) = (moment(finding.first_ms, now, zone), moment(finding.last_ms, now, zone));
    format!("since {first}, {} {last}", last_word(finding.phase))
}

/// What the cause of a finding is called: its title while it holds, else its code.
pub fn cause_title(cluster: &Cluster, code: &str) -> String {
    let found = cluster.findings().iter().find(|f| f.code == code && f.phase != Phase::Cleared);
    found.map_or_else(|| code.to_owned(), |f| with_labels(cluster, f, &f.title))
}
