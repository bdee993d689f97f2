//! The output of `radixscope check`: findings, sources, status of each check, exit code.

use serde::Serialize;

use radixscope_export::finding_ticket::finding_ticket;
use radixscope_export::{FindingFilter, Findings, Summary, pending_text};
use radixscope_model::id::Millis;
use radixscope_model::number_format::{count, plural};
use radixscope_model::record::{CheckStatus, LinkState, RuleStatus, Severity, SourceKind};
use radixscope_state::cluster::{Cluster, SourceState};

use super::{EXIT_NO_DATA, ObservedPeriod};
use crate::config::Output;

/// Exit codes by severity. Findings of severity info exit with 0.
const EXIT_WARNING: u8 = 1;
const EXIT_CRITICAL: u8 = 2;

/// The printed text and the exit code.
pub(super) struct CheckReport {
    pub(super) exit_code: u8,
    pub(super) text: String,
}

/// The body of `/api/v1/findings?state=all`, with the sources and the exit code.
#[derive(Serialize)]
struct Json<'a> {
    exit_code: u8,
    no_data_reason: Option<&'a str>,
    /// Former name of `no_data_reason`, kept for one release.
    could_not_look: Option<&'a str>,
    listened_ms: u64,
    sources: Vec<SourceRow<'a>>,
    #[serde(flatten)]
    findings: Findings,
}

#[derive(Serialize)]
struct SourceRow<'a> {
    name: &'a str,
    kind: SourceKind,
    state: LinkState,
    detail: &'a str,
    received: u64,
}

impl CheckReport {
    pub(super) fn of(
        cluster: &Cluster,
        at_ms: Millis,
        period: ObservedPeriod,
        output: Output,
    ) -> Result<Self, serde_json::Error> {
        let no_data_reason = no_data_reason(cluster, period);
        let worst = FindingFilter::default().of(cluster).iter().map(|finding| finding.severity).max();
        let exit_code = match worst {
            _ if no_data_reason.is_some() => EXIT_NO_DATA,
            Some(Severity::Critical) => EXIT_CRITICAL,
            Some(Severity::Warning) => EXIT_WARNING,
            Some(Severity::Info) | None => 0,
        };
        let text = match output {
            Output::Text => text(cluster, period, no_data_reason.as_deref()),
            Output::Json => {
                let sources = cluster.sources().iter().map(|source| SourceRow {
                    name: &source.name,
                    kind: source.kind,
                    state: source.state,
                    detail: &source.detail,
                    received: source.received,
                });
                let json = Json {
                    exit_code,
                    no_data_reason: no_data_reason.as_deref(),
                    could_not_look: no_data_reason.as_deref(),
                    listened_ms: period.duration.as_millis() as u64,
                    sources: sources.collect(),
                    findings: Findings::of(cluster, ALL, at_ms),
                };
                serde_json::to_string_pretty(&json)? + "\n"
            }
        };
        Ok(Self { exit_code, text })
    }
}

/// Active and resolved findings.
const ALL: FindingFilter = FindingFilter { severity: Severity::Info, cleared: true };

fn text(cluster: &Cluster, period: ObservedPeriod, no_data_reason: Option<&str>) -> String {
    let mut out = match no_data_reason {
        Some(why) => format!("No data. {why}\n"),
        None => headline(cluster, period),
    };
    for finding in ALL.of(cluster) {
        out += "\n";
        out += &finding_ticket(cluster, finding);
    }
    if no_data_reason.is_some() {
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

fn headline(cluster: &Cluster, period: ObservedPeriod) -> String {
    let (how, what) = if period.is_recorded { ("Recorded", "of") } else { ("Listened for", "to") };
    let period = format!(
        "{how} {} s {what} {} ({} messages)",
        period.duration.as_secs(),
        plural(cluster.workers().len() as u64, "worker", "workers"),
        count(received(cluster))
    );
    let present = FindingFilter::default().of(cluster);
    let coverage = Summary::of(cluster).coverage();
    if present.is_empty() {
        return format!("{period}: no findings; {coverage}.\n");
    }
    let number = |severity| present.iter().filter(|finding| finding.severity == severity).count() as u64;
    format!(
        "{period}: {} critical, {}, {}; {coverage}.\n",
        number(Severity::Critical),
        plural(number(Severity::Warning), "warning", "warnings"),
        plural(number(Severity::Info), "note", "notes")
    )
}

/// Why there is no data to check; `None`: there is data.
fn no_data_reason(cluster: &Cluster, period: ObservedPeriod) -> Option<String> {
    let sources = || {
        let each = cluster.sources().iter().map(|s| format!("\n  {}: {}", s.name, s.detail));
        each.collect::<String>()
    };
    if !period.any_live {
        return Some(format!("No source could be reached:{}", sources()));
    }
    if received(cluster) == 0 {
        let hint = "Is there traffic, and is --namespace, if given, the right one?";
        return Some(format!("Nothing was received. {hint}{}", sources()));
    }
    // The rules start only after the history was read.
    cluster
        .checked()
        .is_empty()
        .then(|| format!("Time ran out before any check had enough data; increase --for.{}", sources()))
}

fn received(cluster: &Cluster) -> u64 {
    cluster.sources().iter().map(|source| source.received).sum()
}
