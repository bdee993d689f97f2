//! Findings and what was checked, as `GET /api/v1/findings` and `radixscope check --output json` give them.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::{Value, json};

use radixscope_model::id::{Millis, Seq, WorkerIx};
use radixscope_model::record::{CheckStatus, Finding, Pending, Phase, RuleStatus, Severity};
use radixscope_state::cluster::Cluster;

/// The findings that are asked for, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FindingFilter {
    /// At least as bad.
    pub severity: Severity,
    /// Also those that are over.
    pub cleared: bool,
}

impl Default for FindingFilter {
    fn default() -> Self {
        Self { severity: Severity::Info, cleared: false }
    }
}

impl FindingFilter {
    /// The findings meant, incident by incident: the worst first, those that are over last; in each its cause, then its
    /// symptoms.
    pub fn of(self, cluster: &Cluster) -> Vec<&Finding> {
        self.incidents(cluster)
            .into_iter()
            .flat_map(|of| std::iter::once(of.cause).chain(of.symptoms))
            .collect()
    }

    /// The findings meant, each with those that it causes. The worst incident comes first, by the worst of its findings; of
    /// equals the newest; those that are over last.
    pub fn incidents(self, cluster: &Cluster) -> Vec<Incident<'_>> {
        let is_meant = |finding: &&Finding| {
            finding.severity >= self.severity && (self.cleared || finding.phase != Phase::Cleared)
        };
        let mut findings: Vec<_> = cluster.findings().iter().filter(is_meant).collect();
        findings.sort_by_key(|f| (is_over(f), Reverse((f.severity, f.first_ms))));
        let (causes, symptoms): (Vec<&Finding>, Vec<&Finding>) = findings.iter().partition(|finding| {
            let first = cause_of(finding, &findings);
            // Findings that name each other are causes, so that none is lost.
            std::ptr::eq(first, **finding) || !std::ptr::eq(cause_of(first, &findings), first)
        });
        let incident = |cause: &Finding| {
            let is_its = |symptom: &&&Finding| std::ptr::eq(cause_of(symptom, &findings), cause);
            symptoms.iter().filter(is_its).copied().collect()
        };
        let mut incidents: Vec<Incident<'_>> =
            causes.into_iter().map(|cause| Incident { symptoms: incident(cause), cause }).collect();
        incidents.sort_by_key(|of| (is_over(of.cause), Reverse((of.severity(), of.cause.first_ms))));
        incidents
    }
}

/// Most findings between a symptom and its first cause: there are fewer rules that name one.
const MAX_CAUSES: usize = 8;

fn is_over(finding: &Finding) -> bool {
    finding.phase == Phase::Cleared
}

/// The first cause of a finding among those listed; itself where it names none that is.
fn cause_of<'f>(finding: &'f Finding, listed: &[&'f Finding]) -> &'f Finding {
    let mut first = finding;
    for _ in 0..MAX_CAUSES {
        let is_cause = |other: &&&Finding| {
            !first.cause.is_empty() && other.code == first.cause && is_over(other) == is_over(finding)
        };
        match listed.iter().find(is_cause) {
            Some(cause) if !std::ptr::eq(*cause, finding) => first = cause,
            _ => break,
        }
    }
    first
}

/// A finding and those that follow from it.
#[derive(Clone, PartialEq, Debug)]
pub struct Incident<'c> {
    /// What has to be mended.
    pub cause: &'c Finding,
    /// What follows from it, the worst first; these have no remedies of their own.
    pub symptoms: Vec<&'c Finding>,
}

impl Incident<'_> {
    /// The worst of its findings.
    pub fn severity(&self) -> Severity {
        self.symptoms.iter().map(|of| of.severity).fold(self.cause.severity, Severity::max)
    }
}

/// Findings with their evidence and remedies, and what was checked.
#[derive(Serialize, Debug)]
pub struct Findings {
    /// The last record folded.
    seq: Seq,
    at_ms: Millis,
    findings: Vec<Value>,
    /// Every rule, in the order in which they run; empty before the first check.
    checked: Vec<RuleStatus>,
    summary: Summary,
}

/// How much of what could be checked was, and what came of it.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct Summary {
    /// Rules.
    pub rules: u64,
    /// Rules that had the data to judge.
    pub judged: u64,
    /// Rules without.
    pub no_data: u64,
    /// Findings that are active.
    pub findings: u64,
    /// Findings to come: what shows and has not held for long enough.
    pub pending: Vec<Pending>,
}

impl Summary {
    /// Of the last check.
    pub fn of(cluster: &Cluster) -> Self {
        let checked = cluster.checked();
        let no_data = checked.iter().filter(|rule| rule.status == CheckStatus::NoData).count() as u64;
        let rules = checked.len() as u64;
        let active = cluster.findings().iter().filter(|finding| !is_over(finding));
        Self {
            rules,
            judged: rules - no_data,
            no_data,
            findings: active.count() as u64,
            pending: checked.iter().filter_map(|rule| rule.pending.clone()).collect(),
        }
    }

    /// Whether nothing is found, nothing is to come, and every rule had the data to judge.
    pub fn is_good(&self) -> bool {
        self.findings == 0 && self.pending.is_empty() && self.no_data == 0
    }

    /// How many rules were judged: `24 of 35 checks ran, 11 without data`.
    pub fn coverage(&self) -> String {
        match self.no_data {
            0 => format!("all {} checks ran", self.rules),
            n => format!("{} of {} checks ran, {n} without data", self.judged, self.rules),
        }
    }
}

/// A finding to come, in words: `TTFT p95 above target for 22 s, a finding from 45 s`.
pub fn pending_text(pending: &Pending, now: Millis) -> String {
    let held_s = now.since(pending.since_ms) / 1_000;
    let due_s = pending.due_ms.since(pending.since_ms) / 1_000;
    format!("{} for {held_s} s, a finding from {due_s} s", pending.title)
}

impl Findings {
    /// The findings of `cluster` that are `wanted`, at `at_ms`.
    pub fn of(cluster: &Cluster, wanted: FindingFilter, at_ms: Millis) -> Self {
        Self {
            seq: cluster.seq(),
            at_ms,
            findings: wanted.of(cluster).into_iter().map(|finding| json(cluster, finding)).collect(),
            checked: cluster.checked().to_vec(),
            summary: Summary::of(cluster),
        }
    }
}

/// A finding with its workers by their ids, which only the cluster knows. There are no more findings than rules.
fn json(cluster: &Cluster, finding: &Finding) -> Value {
    let id = |&ix: &WorkerIx| Some(cluster.worker(ix)?.id);
    // Plain data always becomes JSON.
    let mut json = serde_json::to_value(finding).unwrap_or_default();
    json["workers"] = finding.workers.iter().filter_map(id).map(|id| json!(id)).collect();
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::Worker;
    use radixscope_model::record::{Entry, PanelRef, Record};

    fn finding(code: &'static str, severity: Severity, phase: Phase, first: u64) -> Record<'static> {
        Record::Finding(Box::new(Finding {
            code: code.into(),
            severity,
            phase,
            title: "A title".into(),
            cause: "".into(),
            explanation: "What it means.".into(),
            evidence: Vec::new(),
            fix: Vec::new(),
            workers: vec![WorkerIx(0)],
            panel: PanelRef::Overview,
            selects_worker: false,
            first_ms: Millis(first),
            last_ms: Millis(first),
        }))
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        let id = Worker::new(u64::MAX, 1);
        let worker = Record::new_worker(WorkerIx(0), id, "", "");
        let records = [
            worker,
            finding("late", Severity::Warning, Phase::Warn, 2),
            finding("over", Severity::Critical, Phase::Cleared, 1),
            finding("worst", Severity::Critical, Phase::Recheck, 3),
            finding("note", Severity::Info, Phase::Warn, 1),
            finding("early", Severity::Warning, Phase::Warn, 1),
        ];
        for record in records {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(9), record });
        }
        cluster
    }

    fn codes(wanted: FindingFilter) -> Vec<String> {
        wanted.of(&cluster()).iter().map(|finding| finding.code.to_string()).collect()
    }

    #[test]
    fn the_worst_come_first_and_what_is_over_comes_last_if_it_is_requested() {
        assert_eq!(codes(FindingFilter::default()), ["worst", "late", "early", "note"]);
        assert_eq!(
            codes(FindingFilter { severity: Severity::Warning, cleared: true }),
            ["worst", "late", "early", "over"]
        );
    }

    #[test]
    fn a_cause_comes_before_its_symptoms_whatever_their_severity() {
        let mut cluster = cluster();
        let mut caused_by = |code: &'static str, cause: &'static str, severity| {
            let Record::Finding(found) = finding(code, severity, Phase::Warn, 9) else { return };
            let record = Record::Finding(Box::new(Finding { cause: cause.into(), ..*found }));
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(9), record });
        };
        caused_by("symptom_of_note", "note", Severity::Critical);
        caused_by("symptom_of_symptom", "symptom_of_note", Severity::Warning);
        caused_by("cause_is_over", "over", Severity::Info);
        caused_by("circle", "square", Severity::Info);
        caused_by("square", "circle", Severity::Info);
        let codes: Vec<&str> =
            FindingFilter::default().of(&cluster).iter().map(|finding| &*finding.code).collect();
        assert_eq!(codes[..6], ["worst", "note", "symptom_of_note", "symptom_of_symptom", "late", "early"]);
        assert_eq!(codes.len(), 9, "each once: {codes:?}");
    }

    #[test]
    fn the_summary_says_how_much_was_judged_and_what_is_to_come() {
        let mut cluster = cluster();
        let rule = |status, pending| RuleStatus {
            code: "".into(),
            subject: "".into(),
            status,
            missing: "".into(),
            explained_by: "".into(),
            pending,
        };
        let pending = Pending {
            title: "TTFT p95 above target".into(),
            severity: Severity::Warning,
            since_ms: Millis(10_000),
            due_ms: Millis(55_000),
        };
        let rules = vec![
            rule(CheckStatus::Ok, None),
            rule(CheckStatus::NoData, None),
            rule(CheckStatus::Pending, Some(pending)),
        ];
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(9), record: Record::Checked(rules) });
        let summary = Summary::of(&cluster);
        assert_eq!(summary.coverage(), "2 of 3 checks ran, 1 without data");
        assert_eq!(
            pending_text(&summary.pending[0], Millis(32_000)),
            "TTFT p95 above target for 22 s, a finding from 45 s"
        );
    }

    #[test]
    fn workers_are_named_by_decimal_strings() {
        let json =
            serde_json::to_value(Findings::of(&cluster(), FindingFilter::default(), Millis(7))).unwrap();
        let worker = &json["findings"][0]["workers"][0];
        assert_eq!((&worker["worker_id"], &worker["dp_rank"]), (&"18446744073709551615".into(), &1.into()));
        assert_eq!((&json["seq"], &json["at_ms"]), (&6.into(), &7.into()));
    }
}
