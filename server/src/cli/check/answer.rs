//! What a check says at its end: the findings, what was looked at, and the exit code that sums it up.

use serde::Serialize;
use serde_json::{Map, Value, json};

use radixscope_export::finding_ticket::finding_ticket;
use radixscope_export::{Findings, Wanted};
use radixscope_model::number_format::count;
use radixscope_model::record::{CheckStatus, LinkState, Phase, RuleStatus, Severity, SourceKind};
use radixscope_state::cluster::{Cluster, SourceState};

use super::{EXIT_BLIND, Listened};
use crate::hub::View;

/// Exit codes of findings; information is none.
const EXIT_WARNING: u8 = 1;
const EXIT_CRITICAL: u8 = 2;

/// Everything that is printed.
pub(super) struct Answer {
    /// Why nothing can be said of the cluster.
    blind: Option<String>,
    listened: Listened,
    worst: Option<Severity>,
    findings: Vec<String>,
    counts: [usize; 3],
    workers: usize,
    received: u64,
    checked: Vec<RuleStatus>,
    sources: Vec<Source>,
    of_api: Findings,
}

#[derive(Serialize)]
struct Source {
    name: String,
    kind: SourceKind,
    state: LinkState,
    detail: String,
    received: u64,
}

impl Answer {
    pub(super) fn of(view: &View<'_>, listened: Listened) -> Self {
        let cluster = view.cluster;
        let all = Wanted { cleared: true, ..Wanted::default() };
        let findings = all.of(cluster);
        let present = || findings.iter().filter(|finding| finding.phase != Phase::Cleared);
        let number = |severity| present().filter(|finding| finding.severity == severity).count();
        Self {
            blind: blind(cluster, listened),
            listened,
            worst: present().map(|finding| finding.severity).max(),
            findings: findings.iter().map(|finding| finding_ticket(cluster, finding)).collect(),
            counts: [Severity::Critical, Severity::Warning, Severity::Info].map(number),
            workers: cluster.workers().len(),
            received: received(cluster),
            checked: cluster.checked().to_vec(),
            sources: cluster.sources().iter().map(Source::of).collect(),
            of_api: Findings::of(cluster, all, view.at_ms),
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self.worst {
            _ if self.blind.is_some() => EXIT_BLIND,
            Some(Severity::Critical) => EXIT_CRITICAL,
            Some(Severity::Warning) => EXIT_WARNING,
            Some(Severity::Info) | None => 0,
        }
    }

    /// The answer of `/api/v1/findings?state=all` and how it came about.
    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        let mut object = Map::new();
        object.insert("exit_code".to_owned(), self.exit_code().into());
        object.insert("could_not_look".to_owned(), self.blind.clone().into());
        object.insert("listened_ms".to_owned(), json!(self.listened.whole.as_millis() as u64));
        object.insert("sources".to_owned(), serde_json::to_value(&self.sources)?);
        if let Value::Object(of_api) = serde_json::to_value(&self.of_api)? {
            object.extend(of_api);
        }
        Ok(serde_json::to_string_pretty(&object)? + "\n")
    }

    pub(super) fn text(&self) -> String {
        let mut out = self.headline();
        for finding in &self.findings {
            out += "\n";
            out += finding;
        }
        if self.blind.is_none() {
            let with = |status| self.checked.iter().filter(move |rule| rule.status == status);
            let list = |title: &str, lines: Vec<String>| match lines.is_empty() {
                true => String::new(),
                false => format!("\n{title}\n  {}\n", lines.join("\n  ")),
            };
            let subject = |rule: &RuleStatus| rule.subject.to_string();
            out += &list("Ok:", with(CheckStatus::Ok).map(subject).collect());
            let missing = |rule: &RuleStatus| format!("{}: {}", rule.subject, rule.missing);
            out += &list("No data:", with(CheckStatus::NoData).map(missing).collect());
            let explained =
                |rule: &RuleStatus| format!("{}: explained by {}", rule.subject, rule.explained_by);
            out +=
                &list("Explained by another finding:", with(CheckStatus::Explained).map(explained).collect());
            let away = self.sources.iter().filter(|source| !source.is_live());
            let away = away.map(|source| format!("{}: {}", source.name, source.detail));
            out += &list("Not connected at the end:", away.collect());
        }
        out
    }

    fn headline(&self) -> String {
        if let Some(why) = &self.blind {
            return format!("Could not look. {why}\n");
        }
        let [critical, warnings, notes] = self.counts;
        let listened = format!(
            "Listened for {} s to {} {} ({} messages)",
            self.listened.whole.as_secs(),
            self.workers,
            words(self.workers, "worker", "workers"),
            count(self.received)
        );
        if critical + warnings + notes == 0 {
            return format!("{listened}: no findings.\n");
        }
        format!(
            "{listened}: {critical} critical, {warnings} {}, {notes} {}.\n",
            words(warnings, "warning", "warnings"),
            words(notes, "note", "notes")
        )
    }
}

impl Source {
    fn of(source: &SourceState) -> Self {
        Self {
            name: source.name.clone(),
            kind: source.kind,
            state: source.state,
            detail: source.detail.clone(),
            received: source.received,
        }
    }

    fn is_live(&self) -> bool {
        matches!(self.state, LinkState::Live | LinkState::Ended)
    }
}

/// Why nothing can be said of the cluster; `None`: it can.
fn blind(cluster: &Cluster, listened: Listened) -> Option<String> {
    let said = || {
        let each = cluster.sources().iter().map(|s| format!("\n  {}: {}", s.name, s.detail));
        each.collect::<String>()
    };
    if !listened.any_live {
        return Some(format!("No source was reached:{}", said()));
    }
    if received(cluster) == 0 {
        let hint = "Is there traffic, and is --namespace, if given, the right one?";
        return Some(format!("Nothing was received. {hint}{}", said()));
    }
    // The rules wait for the end of history.
    cluster
        .checked()
        .is_empty()
        .then(|| format!("It ended before anything could be judged; give it longer with --for.{}", said()))
}

fn received(cluster: &Cluster) -> u64 {
    cluster.sources().iter().map(|source| source.received).sum()
}

fn words<'w>(n: usize, one: &'w str, many: &'w str) -> &'w str {
    if n == 1 { one } else { many }
}
