//! Findings and what was checked, as `GET /api/v1/findings` and `radixscope check --output json` give them.

use std::cmp::Reverse;

use serde::Serialize;

use super::Decimal;
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Finding, Phase, RuleStatus, Severity};
use radixscope_state::cluster::Cluster;

/// The findings that are asked for, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// At least as bad.
    pub severity: Severity,
    /// Also those that are over.
    pub cleared: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { severity: Severity::Info, cleared: false }
    }
}

impl Wanted {
    /// The findings meant: the worst first; of equals what users feel before what causes it, then the newest.
    pub fn of(self, cluster: &Cluster) -> Vec<&Finding> {
        let is_meant = |finding: &&Finding| {
            finding.severity >= self.severity && (self.cleared || finding.phase != Phase::Cleared)
        };
        let mut findings: Vec<_> = cluster.findings().iter().filter(is_meant).collect();
        let is_over = |finding: &Finding| finding.phase == Phase::Cleared;
        findings.sort_by_key(|f| (is_over(f), Reverse((f.severity, !f.cause.is_empty(), f.first_ms))));
        findings
    }
}

/// Findings with their evidence and remedies, and what was checked.
#[derive(Serialize, Debug)]
pub struct FindingsDto {
    /// The last record folded.
    seq: u64,
    at_ms: u64,
    findings: Vec<FindingDto>,
    /// Every rule, in the order in which they run; empty before the first check.
    checked: Vec<CheckedDto>,
}

impl FindingsDto {
    /// The findings of `cluster` that are `wanted`, at `at_ms`.
    pub fn of(cluster: &Cluster, wanted: Wanted, at_ms: u64) -> Self {
        Self {
            seq: cluster.seq().0,
            at_ms,
            findings: wanted
                .of(cluster)
                .into_iter()
                .map(|finding| FindingDto::of(cluster, finding))
                .collect(),
            checked: cluster.checked().iter().map(CheckedDto::of).collect(),
        }
    }
}

#[derive(Serialize, Debug)]
struct FindingDto {
    code: String,
    severity: &'static str,
    title: String,
    /// Code of the finding that causes it; `null`: none is known.
    cause: Option<String>,
    explanation: String,
    evidence: Vec<EvidenceDto>,
    fix: Vec<FixDto>,
    /// Empty: it is about the whole deployment.
    workers: Vec<WorkerDto>,
    first_seen_ms: u64,
    last_seen_ms: u64,
    /// `warn`, `recheck` or `cleared`.
    state: &'static str,
    /// Query of the panel that shows it.
    link: String,
}

#[derive(Serialize, Debug)]
struct EvidenceDto {
    label: String,
    value: String,
    unit: String,
}

#[derive(Serialize, Debug)]
struct FixDto {
    text: String,
    /// `null`: there is nothing to set.
    setting: Option<String>,
    value: Option<String>,
}

#[derive(Serialize, Debug)]
struct WorkerDto {
    worker_id: Decimal,
    dp_rank: u32,
}

#[derive(Serialize, Debug)]
struct CheckedDto {
    code: String,
    subject: String,
    /// `ok`, `info`, `warning`, `critical`, `no_data` or `explained`.
    status: &'static str,
    /// What is missing to judge; `null` unless the status is `no_data`.
    missing: Option<String>,
    /// Code of the finding that explains what shows; `null` unless the status is `explained`.
    explained_by: Option<String>,
}

impl FindingDto {
    fn of(cluster: &Cluster, finding: &Finding) -> Self {
        let worker = |&ix: &WorkerIx| {
            let id = cluster.worker(ix)?.id;
            Some(WorkerDto { worker_id: Decimal(id.id.0), dp_rank: id.dp_rank })
        };
        let evidence = finding.evidence.iter().map(|evidence| EvidenceDto {
            label: evidence.label.to_string(),
            value: evidence.value.to_string(),
            unit: evidence.unit.to_string(),
        });
        let fix = finding.fix.iter().map(|fix| FixDto {
            text: fix.text.to_string(),
            setting: some(&fix.setting),
            value: some(&fix.value),
        });
        Self {
            code: finding.code.to_string(),
            severity: finding.severity.as_str(),
            title: finding.title.to_string(),
            cause: some(&finding.cause),
            explanation: finding.explanation.to_string(),
            evidence: evidence.collect(),
            fix: fix.collect(),
            workers: finding.workers.iter().filter_map(worker).collect(),
            first_seen_ms: finding.first_ms.0,
            last_seen_ms: finding.last_ms.0,
            state: finding.phase.as_str(),
            link: finding.link.to_string(),
        }
    }
}

impl CheckedDto {
    fn of(rule: &RuleStatus) -> Self {
        Self {
            code: rule.code.to_string(),
            subject: rule.subject.to_string(),
            status: rule.status.as_str(),
            missing: some(&rule.missing),
            explained_by: some(&rule.explained_by),
        }
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Millis, Seq, Worker};
    use radixscope_model::record::{Entry, Record};

    fn finding(code: &'static str, severity: Severity, phase: Phase, first: u64) -> Record<'static> {
        Record::Finding(Finding {
            code: code.into(),
            severity,
            phase,
            title: "A title".into(),
            cause: "".into(),
            explanation: "What it means.".into(),
            evidence: Vec::new(),
            fix: Vec::new(),
            workers: vec![WorkerIx(0)],
            link: "".into(),
            first_ms: Millis(first),
            last_ms: Millis(first),
        })
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        let id = Worker::new(u64::MAX, 1);
        let worker = Record::Worker { worker: WorkerIx(0), id, namespace: "".into(), component: "".into() };
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

    fn codes(wanted: Wanted) -> Vec<String> {
        wanted.of(&cluster()).iter().map(|finding| finding.code.to_string()).collect()
    }

    #[test]
    fn the_worst_come_first_and_what_is_over_comes_last_if_it_is_asked_for() {
        assert_eq!(codes(Wanted::default()), ["worst", "late", "early", "note"]);
        assert_eq!(
            codes(Wanted { severity: Severity::Warning, cleared: true }),
            ["worst", "late", "early", "over"]
        );
    }

    #[test]
    fn workers_are_named_by_decimal_strings() {
        let json = serde_json::to_value(FindingsDto::of(&cluster(), Wanted::default(), 7)).unwrap();
        let worker = &json["findings"][0]["workers"][0];
        assert_eq!((&worker["worker_id"], &worker["dp_rank"]), (&"18446744073709551615".into(), &1.into()));
        assert_eq!((&json["seq"], &json["at_ms"]), (&6.into(), &7.into()));
    }
}
