//! What a check says at its end: the findings, what was looked at, and the exit code that sums it up.

use serde::Serialize;

use radixscope_export::finding_ticket::finding_ticket;
use radixscope_export::{FindingFilter, Findings, Summary, pending_text};
use radixscope_model::id::Millis;
use radixscope_model::number_format::{count, plural};
use radixscope_model::record::{CheckStatus, LinkState, RuleStatus, Severity, SourceKind};
use radixscope_state::cluster::{Cluster, SourceState};

use super::{EXIT_BLIND, Listened};
use crate::config::Output;

/// Exit codes of findings; information is none.
const EXIT_WARNING: u8 = 1;
const EXIT_CRITICAL: u8 = 2;

/// What is printed, and the exit code that sums it up.
pub(super) struct Answer {
    pub(super) exit_code: u8,
    pub(super) text: String,
}

/// The answer of `/api/v1/findings?state=all` and how it came about.
#[derive(Serialize)]
struct Json<'a> {
    exit_code: u8,
    could_not_look: Option<&'a str>,
    listened_ms: u64,
    sources: Vec<Source<'a>>,
    #[serde(flatten)]
    of_api: Findings,
}

#[derive(Serialize)]
struct Source<'a> {
    name: &'a str,
    kind: SourceKind,
    state: LinkState,
    detail: &'a str,
    received: u64,
}

impl Answer {
    pub(super) fn of(
        cluster: &Cluster,
        at_ms: Millis,
        listened: Listened,
        output: Output,
    ) -> Result<Self, serde_json::Error> {
        let blind = blind(cluster, listened);
        let worst = FindingFilter::default().of(cluster).iter().map(|finding| finding.severity).max();
        let exit_code = match worst {
            _ if blind.is_some() => EXIT_BLIND,
            Some(Severity::Critical) => EXIT_CRITICAL,
            Some(Severity::Warning) => EXIT_WARNING,
            Some(Severity::Info) | None => 0,
        };
        let text = match output {
            Output::Text => text(cluster, listened, blind.as_deref()),
            Output::Json => {
                let sources = cluster.sources().iter().map(|source| Source {
                    name: &source.name,
                    kind: source.kind,
                    state: source.state,
                    detail: &source.detail,
                    received: source.received,
                });
                let json = Json {
                    exit_code,
                    could_not_look: blind.as_deref(),
                    listened_ms: listened.whole.as_millis() as u64,
                    sources: sources.collect(),
                    of_api: Findings::of(cluster, ALL, at_ms),
                };
                serde_json::to_string_pretty(&json)? + "\n"
            }
        };
        Ok(Self { exit_code, text })
    }
}

/// Those that are over too.
const ALL: FindingFilter = FindingFilter { severity: Severity::Info, cleared: true };

fn text(cluster: &Cluster, listened: Listened, blind: Option<&str>) -> String {
    let mut out = match blind {
        Some(why) => format!("Could not look. {why}\n"),
        None => headline(cluster, listened),
    };
    for finding in ALL.of(cluster) {
        out += "\n";
        out += &finding_ticket(cluster, finding);
    }
    if blind.is_some() {
        return out;
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out += &format!("\n{title}\n  {}\n", lines.join("\n  "));
        }
    };
    let with = |status, line: fn(&RuleStatus) -> String| {
        cluster.checked().iter().filter(|rule| rule.status == status).map(line).collect()
    };
    let pending = Summary::of(cluster).pending;
    let pending = pending.iter().map(|pending| pending_text(pending, cluster.now_ms()));
    list("Pending:", pending.collect());
    list("Ok:", with(CheckStatus::Ok, |rule| rule.subject.to_string()));
    list("No data:", with(CheckStatus::NoData, |rule| format!("{}: {}", rule.subject, rule.missing)));
    let explained = |rule: &RuleStatus| format!("{}: explained by {}", rule.subject, rule.explained_by);
    list("Explained by another finding:", with(CheckStatus::Explained, explained));
    let is_away = |source: &&SourceState| !matches!(source.state, LinkState::Live | LinkState::Ended);
    let away = cluster.sources().iter().filter(is_away);
    let away = away.map(|source| format!("{}: {}", source.name, source.detail));
    list("Not connected at the end:", away.collect());
    out
}

fn headline(cluster: &Cluster, listened: Listened) -> String {
    let (how, what) = if listened.is_recorded { ("Recorded", "of") } else { ("Listened for", "to") };
    let listened = format!(
        "{how} {} s {what} {} ({} messages)",
        listened.whole.as_secs(),
        plural(cluster.workers().len() as u64, "worker", "workers"),
        count(received(cluster))
    );
    let present = FindingFilter::default().of(cluster);
    let coverage = Summary::of(cluster).coverage();
    if present.is_empty() {
        return format!("{listened}: no findings; {coverage}.\n");
    }
    let number = |severity| present.iter().filter(|finding| finding.severity == severity).count() as u64;
    format!(
        "{listened}: {} critical, {}, {}; {coverage}.\n",
        number(Severity::Critical),
        plural(number(Severity::Warning), "warning", "warnings"),
        plural(number(Severity::Info), "note", "notes")
    )
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
        .then(|| format!("It ended before any check had enough data; give it longer with --for.{}", said()))
}

fn received(cluster: &Cluster) -> u64 {
    cluster.sources().iter().map(|source| source.received).sum()
}
