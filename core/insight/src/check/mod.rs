//! Findings: what is wrong with the cluster, why, and what to set. One file a rule.
//!
//! A rule is a pure function of the state and of a short history of its totals ([`View`]); it proposes and never acts.
//! [`Checks`] runs all of them once a second and keeps their phases: a fault has to hold for a while before it is
//! reported, and to be away for a while before it is over. What changed is a record, so that viewers, the API and
//! recordings show the same findings. Knows no source and no screen.
//!
//! # How it works
//!
//! A rule is a pure function of the state and of a short history of its totals. Once a second `Checks` runs all of
//! them, keeps their phases (active, rechecked, resolved) and reports changes as records, so that viewers, the API and
//! recordings show the same findings and the page only renders them. What was published before we came is read first and
//! counts as before: the history of totals begins when every source has caught up. A rule that sees the consequence
//! of another fault checks that rule and leaves the report to it, so that one fault is one finding. A worker of which we did
//! not receive the first event, or which left and came back, holds blocks that were not reported; unknown parents are then
//! never held against it, unknown removals only beyond what its cache can have held. An idle hour mends nothing: a
//! worker without events in the last minute is evaluated by all its events, as long as no other worker sent events for five
//! minutes more. `docs/findings.md` has every condition and its sample.

mod advice;
mod causes;
mod chains;
mod criteria;
mod fixes;
mod history;
mod latency;
mod loads;
mod missing;
mod pace;
mod report;
mod rule;
mod rules;
mod spikes;
mod view;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::baseline::Baseline;
use radixscope_model::id::Millis;
use radixscope_model::record::{
    CheckStatus, Engine, Entry, Finding, LatencyTargets, LinkState, Pending, Phase, Record, RuleStatus,
    SourceKind,
};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink;

pub use criteria::Criteria;
pub use history::{History, Totals};
pub use rule::{Rule, RuleOutcome};
pub use view::View;

/// Numbers of a finding that holds are reported again at most this often.
const RENEW_MS: u64 = 5_000;

/// All rules with their phases.
pub struct Checks {
    rules: Vec<RuleState>,
    criteria: Criteria,
    history: History,
    /// Whether the last look fell into the reading of history.
    caught_up: bool,
    last: Vec<RuleStatus>,
}

struct RuleState {
    rule: &'static Rule,
    /// Since when it was found without a break.
    found_since: Option<Millis>,
    /// Since when it was not found without a break.
    away_since: Option<Millis>,
    /// What was last reported, and when.
    last: Option<(Finding, Millis)>,
    status: CheckStatus,
    missing: Cow<'static, str>,
    explained_by: &'static str,
    pending: Option<Pending>,
}

impl Default for Checks {
    fn default() -> Self {
        let running = |&rule: &&'static Rule| RuleState {
            rule,
            found_since: None,
            away_since: None,
            last: None,
            status: CheckStatus::NoData,
            missing: Cow::Borrowed(""),
            explained_by: "",
            pending: None,
        };
        Self {
            rules: rules::ALL.iter().map(running).collect(),
            criteria: Criteria::default(),
            history: History::default(),
            caught_up: true,
            last: Vec::new(),
        }
    }
}

impl Checks {
    /// With latency targets other than the default.
    pub fn new(targets: LatencyTargets) -> Self {
        Self { criteria: Criteria { targets, ..Criteria::default() }, ..Self::default() }
    }

    /// With measured sweeps to compare live figures with.
    #[must_use]
    pub fn with_baselines(mut self, baselines: Vec<Baseline>) -> Self {
        self.set_baselines(baselines);
        self
    }

    /// From the next look on, with these sweeps.
    pub fn set_baselines(&mut self, baselines: Vec<Baseline>) {
        self.criteria.baselines = baselines;
    }

    /// With the engine whose settings are advised; `None`: those that run, as far as that shows.
    #[must_use]
    pub fn with_engine(mut self, engine: Option<Engine>) -> Self {
        self.criteria.engine = engine;
        self
    }

    /// Continues from a retained state: its findings stay until they are checked again.
    pub fn resume(&mut self, cluster: &Cluster) {
        self.history.begin(cluster);
        let found = cluster.findings().iter().filter(|finding| finding.phase != Phase::Cleared);
        for finding in found {
            if let Some(running) = self.rules.iter_mut().find(|running| running.rule.code == finding.code) {
                running.found_since = Some(finding.first_ms);
                running.last = Some((finding.clone(), finding.last_ms));
            }
        }
    }

    /// Runs every rule on the state of `sink` at `at_ms` and appends what changed. Call it about once a second, after what that
    /// second brought is summed up, so that a loss is judged at once.
    pub fn run(&mut self, at_ms: Millis, sink: &mut impl RecordSink) {
        for record in self.tick(sink.cluster(), at_ms) {
            sink.append(&Entry { at_ms, record });
        }
    }

    /// Runs every rule on the state at `now` and gives what changed. Call it about once a second. Gives no findings while a
    /// source still reads history: what it reports is not now. The targets are a record too, where others hold so far.
    pub fn tick(&mut self, cluster: &Cluster, now: Millis) -> Vec<Record<'static>> {
        let targets = self.criteria.targets;
        let mut records: Vec<_> =
            (cluster.targets() != targets).then_some(Record::Targets(targets)).into_iter().collect();
        let catching_up = |s: &radixscope_state::cluster::SourceState| {
            s.state == LinkState::CatchingUp
                && !matches!(s.kind, SourceKind::Logs | SourceKind::RequestTraces | SourceKind::ClientResults)
        };
        if cluster.sources().iter().any(catching_up) {
            self.caught_up = false;
            return records;
        }
        if !std::mem::replace(&mut self.caught_up, true) {
            self.history.begin(cluster);
        }
        self.history.sample(cluster, now);
        let view = View { cluster, now, history: &self.history, criteria: &self.criteria };
        for running in &mut self.rules {
            running.forget_departed(cluster);
            let evaluate = advice::complete((running.rule.evaluate)(&view), &view);
            records.extend(running.apply(evaluate, now).map(|one| Record::Finding(Box::new(one))));
        }
        let statuses: Vec<_> = self.rules.iter().map(RuleState::status).collect();
        if statuses != self.last {
            self.last.clone_from(&statuses);
            records.push(Record::Checked(statuses));
        }
        records
    }
}

impl RuleState {
    /// Does not name a worker that has taken another's place since.
    fn forget_departed(&mut self, cluster: &Cluster) {
        if let Some((finding, at)) = &mut self.last {
            finding.workers.retain(|&ix| cluster.worker(ix).is_none_or(|worker| worker.first_ms <= *at));
        }
    }

    fn status(&self) -> RuleStatus {
        RuleStatus {
            code: Cow::Borrowed(self.rule.code),
            subject: Cow::Borrowed(self.rule.subject),
            status: self.status,
            missing: self.missing.clone(),
            explained_by: Cow::Borrowed(self.explained_by),
            pending: self.pending.clone(),
        }
    }

    fn apply(&mut self, evaluate: RuleOutcome, now: Millis) -> Option<Finding> {
        self.missing = Cow::Borrowed("");
        self.explained_by = "";
        let pending = self.pending.take();
        match evaluate {
            RuleOutcome::Found(found) => {
                self.away_since = None;
                let since = *self.found_since.get_or_insert(now);
                let is_known = self.last.as_ref().is_some_and(|(last, _)| last.phase != Phase::Cleared);
                if !is_known && now.since(since) < self.rule.hold_ms {
                    // Not yet: it may pass.
                    self.status = CheckStatus::Pending;
                    self.pending = Some(self.pending_of(found, since, pending));
                    return None;
                }
                self.status = found.severity.into();
                let first_ms = match &self.last {
                    Some((last, _)) if is_known => last.first_ms,
                    // A rule may know when it began.
                    _ if found.first_ms.0 > 0 => found.first_ms.min(since),
                    _ => since,
                };
                let code = Cow::Borrowed(self.rule.code);
                self.report(Finding { code, first_ms, last_ms: now, ..found }, now)
            }
            RuleOutcome::Ok => self.away(now, CheckStatus::Ok),
            RuleOutcome::Noted(note) => {
                self.missing = note;
                self.away(now, CheckStatus::Ok)
            }
            RuleOutcome::NoData(missing) => {
                self.missing = missing;
                self.away(now, CheckStatus::NoData)
            }
            RuleOutcome::Explained(by) => {
                self.explained_by = by;
                self.away(now, CheckStatus::Explained)
            }
        }
    }

    /// What is to come, with the title that it had first: numbers in it may change every second.
    fn pending_of(&self, found: Finding, since_ms: Millis, before: Option<Pending>) -> Pending {
        let (severity, due_ms) = (found.severity, Millis(since_ms.0.saturating_add(self.rule.hold_ms)));
        match before.filter(|before| before.severity == severity && before.since_ms == since_ms) {
            Some(before) => before,
            None => Pending { title: found.title, severity, since_ms, due_ms },
        }
    }

    fn away(&mut self, now: Millis, status: CheckStatus) -> Option<Finding> {
        self.found_since = None;
        let since = *self.away_since.get_or_insert(now);
        let Some((last, _)) = self.last.as_ref().filter(|(last, _)| last.phase != Phase::Cleared) else {
            self.status = status;
            return None;
        };
        let is_over = now.since(since) >= self.rule.clear_ms;
        if is_over {
            self.status = status;
        } else {
            // The finding is still active: what it explains is reported when it is resolved.
            self.missing = Cow::Borrowed("");
            self.explained_by = "";
        }
        let phase = if is_over { Phase::Cleared } else { Phase::Recheck };
        let finding = Finding { phase, ..last.clone() };
        self.report(finding, now)
    }

    /// Reports a finding if it is news: at once if more than its numbers changed, else now and then.
    fn report(&mut self, finding: Finding, now: Millis) -> Option<Finding> {
        if let Some((last, at)) = &self.last {
            let same = last.phase == finding.phase
                && last.severity == finding.severity
                && last.title == finding.title
                && last.cause == finding.cause
                && last.workers == finding.workers;
            let is_new = *last != finding;
            if !is_new || (same && now.since(*at) < RENEW_MS) {
                return None;
            }
        }
        self.last = Some((finding.clone(), now));
        Some(finding)
    }
}
