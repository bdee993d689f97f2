//! What is wrong, why, and what to set; and what was checked to say so. Renders the results of the checks, and judges nothing.

pub mod card;
pub mod checked;

use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::{severity_mark, severity_word};
use radixscope_export::panel::EmptyText;
use radixscope_export::panel::findings::{self, SEVERITIES, concerns};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Finding, Phase, Severity};
use radixscope_state::cluster::Cluster;

use crate::format;
use crate::time_zone::TimeZone;
use crate::url::Address;

/// Key of the address that picks a severity.
pub const SEVERITY: &str = "severity";
/// What stands below the heading.
pub const SUBTITLE: &str = "What is wrong, why, and what to set. Nothing is changed from here.";

/// A finding's title or the label of its evidence as the page writes it: workers by their labels, which have their colours everywhere
/// else. What is copied from the page has their ids.
pub fn with_labels(cluster: &Cluster, finding: &Finding, text: &str) -> String {
    format::labelled(text, |id| cluster.worker_ix(id).filter(|worker| finding.workers.contains(worker)))
}

/// A time of day, and how long ago that was.
pub fn moment(at: Millis, now: Millis, zone: TimeZone) -> String {
    format!("{} ({})", zone.time_of_day(at), format::ago(now.since(at)))
}

/// Which findings are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListedFindings {
    /// Only those of this severity.
    pub severity: Option<Severity>,
    /// Only those about this worker, or about all.
    pub worker: Option<WorkerIx>,
}

impl ListedFindings {
    /// As the address says; `worker`: the one that is picked.
    pub fn of(address: &Address, worker: Option<WorkerIx>) -> Self {
        let name = address.other(SEVERITY);
        let mut severities = SEVERITIES.iter().map(|(severity, ..)| *severity);
        let severity = severities.find(|severity| name.as_deref() == Some(severity.as_str()));
        Self { severity, worker }
    }

    /// The codes of the active findings, or of those that are resolved, in their order.
    pub fn codes(self, cluster: &Cluster, is_over: bool) -> Vec<String> {
        let all = FindingFilter { severity: Severity::Info, cleared: true }.of(cluster);
        let meant = all.into_iter().filter(|f| (f.phase == Phase::Cleared) == is_over && self.has(f));
        meant.map(|finding| finding.code.to_string()).collect()
    }

    fn has(self, finding: &Finding) -> bool {
        self.severity.is_none_or(|severity| severity == finding.severity)
            && self.worker.is_none_or(|worker| concerns(finding, worker))
    }
}

/// A button that lists findings of one severity, or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeverityChoice {
    /// `None`: all.
    pub severity: Option<Severity>,
    /// In the address; `None`: all.
    pub value: Option<&'static str>,
    /// On screen.
    pub text: String,
}

/// The buttons, all first, then the worst first.
pub fn severity_choices() -> Vec<SeverityChoice> {
    let text = |s| format!("{} {}", severity_mark(s), severity_word(s));
    let choice = |severity: Option<Severity>| SeverityChoice {
        severity,
        value: severity.map(Severity::as_str),
        text: severity.map_or("All".to_owned(), text),
    };
    std::iter::once(None).chain(SEVERITIES.map(|(severity, ..)| Some(severity))).map(choice).collect()
}

/// How many findings are active, by severity as the heading has them: number and name.
pub fn counts(shown: &ViewContext<'_>) -> [(String, &'static str); 3] {
    let counts = findings::counts(&findings::active(shown, None));
    std::array::from_fn(|at| {
        let (_, one, more) = SEVERITIES[at];
        (format::count(counts[at]), if counts[at] == 1 { one } else { more })
    })
}

/// Above the findings that are resolved.
pub fn resolved_text(count: usize) -> String {
    format!("Resolved: {count}")
}

/// Findings that need an eye: how many, and the worst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FindingBadge {
    /// Active warnings and critical findings.
    pub count: u32,
    /// The worst of them.
    pub worst: Severity,
}

impl FindingBadge {
    /// Of the active findings; `None`: there is none but notes.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let is_bad = |f: &&Finding| f.phase != Phase::Cleared && f.severity > Severity::Info;
        let bad = cluster.findings().iter().filter(is_bad).map(|f| f.severity);
        let (count, worst) =
            bad.fold((0, Severity::Info), |(count, worst), severity| (count + 1, worst.max(severity)));
        (count > 0).then_some(Self { count, worst })
    }
}

/// Code and title of each active finding.
pub fn active_titles(cluster: &Cluster) -> Vec<(String, String)> {
    let all = FindingFilter::default().of(cluster);
    all.into_iter().map(|f| (f.code.to_string(), f.title.to_string())).collect()
}

/// What is read out when findings came that were not there before; `before`: their codes.
pub fn news(before: &[String], now: &[(String, String)]) -> Option<String> {
    let new: Vec<&str> =
        now.iter().filter(|(code, _)| !before.contains(code)).map(|(_, title)| title.as_str()).collect();
    (!new.is_empty()).then(|| format!("New finding: {}", new.join("; ")))
}

/// What stands where no finding is listed.
#[derive(Clone, PartialEq, Debug)]
pub enum NoFinding {
    /// Nothing was checked.
    Unchecked(EmptyText),
    /// There may be others.
    Filtered(&'static str),
    /// Nothing was found.
    Healthy {
        /// How much was checked, and what is to come.
        text: String,
        /// Whether every rule had its data, and nothing is to come: only this has a check mark.
        is_good: bool,
        /// Since when sources are listened to.
        since: String,
    },
}

impl NoFinding {
    /// By the last check.
    pub fn of(cluster: &Cluster, listed: ListedFindings, now: Millis, zone: TimeZone) -> Self {
        if let Some(text) = findings::empty(cluster) {
            return Self::Unchecked(text);
        }
        if listed != ListedFindings::default() {
            return Self::Filtered("No finding of this kind");
        }
        let since = cluster.sources().iter().map(|source| source.since_ms).min();
        let found = findings::NoFindings::of(cluster);
        Self::Healthy {
            text: found.text,
            is_good: found.is_good,
            since: since.map_or(String::new(), |at| format!("Listening since {}.", moment(at, now, zone))),
        }
    }
}
