//! Findings and what was checked, as `GET /api/v1/findings` and `radixscope check --output json` give them.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::{Value, json};

use radixscope_model::id::{Millis, Seq, WorkerIx};
use radixscope_model::record::{Finding, Phase, RuleStatus, Severity};
use radixscope_model::sort;
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
        sort::sort_by_key(&mut findings, |f| {
            (is_over(f), Reverse((f.severity, !f.cause.is_empty(), f.first_ms)))
        });
        findings
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
}

impl Findings {
    /// The findings of `cluster` that are `wanted`, at `at_ms`.
    pub fn of(cluster: &Cluster, wanted: Wanted, at_ms: Millis) -> Self {
        Self {
            seq: cluster.seq(),
            at_ms,
            findings: wanted.of(cluster).into_iter().map(|finding| json(cluster, finding)).collect(),
            checked: cluster.checked().to_vec(),
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
            panel: PanelRef::Overview,
            selects_worker: false,
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
        let json = serde_json::to_value(Findings::of(&cluster(), Wanted::default(), Millis(7))).unwrap();
        let worker = &json["findings"][0]["workers"][0];
        assert_eq!((&worker["worker_id"], &worker["dp_rank"]), (&"18446744073709551615".into(), &1.into()));
        assert_eq!((&json["seq"], &json["at_ms"]), (&6.into(), &7.into()));
    }
}
