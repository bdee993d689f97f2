//! Findings in Markdown, for a ticket. Knows no rule and no screen.

use std::fmt::Write;

use time::OffsetDateTime;

use super::tree::svg::label;
use super::{FindingFilter, Summary, pending_text};
use radixscope_insight::reuse::{Funnel, Step};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count, percent, plural};
use radixscope_model::record::{CheckStatus, Finding, Fix, Phase, RuleStatus, Severity};
use radixscope_state::cluster::Cluster;

/// For people, as against its name in the API.
pub const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "Note",
        Severity::Warning => "Warning",
        Severity::Critical => "Critical",
    }
}

/// The symbol of a severity: severity is never shown by colour alone.
pub const fn severity_mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "●",
        Severity::Warning => "▲",
        Severity::Critical => "◆",
    }
}

/// For people, as against its name in the API.
pub const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Warn => "Active",
        Phase::Recheck => "Rechecking",
        Phase::Cleared => "Resolved",
    }
}

/// What a cause or an explanation is called: the title of its finding, while it holds, and its code. `None`: there is no
/// cause.
pub fn cause_text(cluster: &Cluster, code: &str) -> Option<String> {
    let is_it = |finding: &&Finding| finding.code == code && finding.phase != Phase::Cleared;
    let title = cluster.findings().iter().find(is_it).map(|finding| format!("{} (`{code}`)", finding.title));
    (!code.is_empty()).then(|| title.unwrap_or_else(|| format!("`{code}`")))
}

/// The setting with its value as one line to copy: `--flag value`, `VARIABLE=value`; empty: nothing to set.
pub fn setting_line(fix: &Fix) -> String {
    let (setting, value) = (fix.setting.trim(), fix.value.trim());
    // What a shell would take apart.
    let quoted = format!("'{value}'");
    let needs_quotes =
        setting.starts_with('-') && value.contains(['{', '"', ' ', '*', '$']) && !value.contains('\'');
    let value = if needs_quotes { quoted.as_str() } else { value };
    let is_variable = !setting.is_empty()
        && setting.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    match (setting, value) {
        (setting, "") => setting.to_owned(),
        ("", value) => value.to_owned(),
        (setting, value) if is_variable => format!("{setting}={value}"),
        (setting, value) if setting.ends_with('=') => format!("{setting}{value}"),
        (setting, value) => format!("{setting} {value}"),
    }
}

/// Short label and full name of a worker: `W2 (7587892345/0)`.
pub fn worker_name(cluster: &Cluster, worker: WorkerIx) -> String {
    let label = label(worker);
    match cluster.worker(worker) {
        Some(state) => format!("{label} ({})", state.id),
        None => label,
    }
}

/// A time as people write it in tickets: `2026-11-21 11:34:18 UTC`.
pub fn utc(at: Millis) -> String {
    let seconds = i64::try_from(at.0 / 1000).unwrap_or(0);
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// One finding in Markdown. What came from outside stands in it as it came, but on one line.
pub fn finding_ticket(cluster: &Cluster, finding: &Finding) -> String {
    let mut text = format!("### {}: {}\n\n", severity_word(finding.severity), line(&finding.title));
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{}\n", line(&finding.explanation));
    if !finding.workers.is_empty() {
        let names: Vec<String> = finding.workers.iter().map(|&w| worker_name(cluster, w)).collect();
        let _ = writeln!(text, "- Workers: {}", names.join(", "));
    }
    if let Some(cause) = cause_text(cluster, &finding.cause) {
        let _ = writeln!(text, "- Caused by: {}", line(&cause));
    }
    let _ = writeln!(
        text,
        "- {}, since {}, last seen {} (code `{}`)",
        phase_word(finding.phase),
        utc(finding.first_ms),
        utc(finding.last_ms),
        line(&finding.code)
    );
    if !finding.evidence.is_empty() {
        let at = utc(finding.last_ms);
        let _ = writeln!(text, "\n| Evidence at {at} | Value | Unit |\n|---|---:|---|");
        for e in &finding.evidence {
            let _ = writeln!(text, "| {} | {} | {} |", cell(&e.label), cell(&e.value), cell(&e.unit));
        }
    }
    if !finding.fix.is_empty() {
        let one_of = if finding.fix.len() > 1 { ", one of these" } else { "" };
        let _ = writeln!(text, "\nWhat to do{one_of}:\n");
        for fix in &finding.fix {
            let _ = write!(text, "- {}", line(&fix.text));
            let setting = setting_line(fix);
            if !setting.is_empty() {
                let _ = write!(text, ": `{}`", line(&setting));
            }
            text.push('\n');
        }
    }
    text
}

/// All findings that are not over in Markdown, with what was checked and what could not be judged.
pub fn findings_ticket(cluster: &Cluster) -> String {
    let mut text = format!("## Radixscope findings at {}\n\n{}\n", utc(cluster.now_ms()), summary(cluster));
    for finding in FindingFilter::default().of(cluster) {
        text.push('\n');
        text.push_str(&finding_ticket(cluster, finding));
    }
    text.push_str(&lost_reuse(cluster));
    let unknown = unknown(cluster);
    if !unknown.is_empty() {
        text.push_str("\n### Could not be judged\n\n");
        for rule in unknown {
            let _ = writeln!(text, "- {}: {}", line(&rule.subject), line(&rule.missing));
        }
    }
    text
}

/// Where the reuse of the retained decisions' prompts was lost, as a section; empty: no prompts are visible.
fn lost_reuse(cluster: &Cluster) -> String {
    let funnel = Funnel::of(cluster.decisions().newest_first());
    let all = funnel.steps[Step::Prompt as usize];
    if all == 0 {
        return String::new();
    }
    let share = |tokens: u64| percent(tokens as f64 / all as f64);
    let of = plural(funnel.decisions.into(), "decision", "decisions");
    let mut text = format!("\n### Where reuse is lost\n\nOf the prompts of {of}:\n\n");
    text.push_str("| Step | Tokens | Share |\n|---|---:|---:|\n");
    for (step, tokens) in Step::ALL.into_iter().zip(funnel.steps) {
        let _ = writeln!(text, "| {} | {} | {} |", step.label(), count(tokens), share(tokens));
    }
    if let (1.., _, reused) = funnel.reported {
        let share = funnel.share(Step::Reused).map_or(UNKNOWN.to_owned(), percent);
        let _ = writeln!(text, "| {} | {} | {share} |", Step::Reused.label(), count(reused));
    }
    text.push_str("\n| Why tokens were computed | Tokens | Share | Decisions |\n|---|---:|---:|---:|\n");
    for loss in &funnel.losses {
        let (label, tokens, decisions) =
            (loss.cause.label(), count(loss.tokens), count(loss.decisions.into()));
        let _ = writeln!(text, "| {label} | {tokens} | {} | {decisions} |", share(loss.tokens));
    }
    text
}

/// How many findings there are, what is to come, and how much was judged: `No findings · 24 of 35 checks ran, 11 without
/// data`. Before the first check it is a note.
pub fn summary(cluster: &Cluster) -> String {
    let summary = Summary::of(cluster);
    if summary.rules == 0 {
        return "Nothing was checked yet".to_owned();
    }
    let found = match (summary.findings, summary.pending.first()) {
        (0, Some(first)) => format!("No findings yet: {}", pending_text(first, cluster.now_ms())),
        (0, None) => "No findings".to_owned(),
        (1, _) => "1 finding".to_owned(),
        (n, _) => format!("{n} findings"),
    };
    format!("{found} · {}", summary.coverage())
}

/// Rules without data.
pub fn unknown(cluster: &Cluster) -> Vec<&RuleStatus> {
    cluster.checked().iter().filter(|rule| rule.status == CheckStatus::NoData).collect()
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use radixscope_model::id::{DecisionId, Seq, Worker};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Evidence, PanelRef, Record, Reuse};

    const NOW: u64 = 1_700_000_000_000;

    fn finding(code: &'static str, severity: Severity, phase: Phase, first: u64) -> Finding {
        Finding {
            code: code.into(),
            severity,
            phase,
            title: "No events from a\nworker".into(),
            cause: "".into(),
            explanation: "Its cache is unknown. Requests go elsewhere.".into(),
            evidence: vec![Evidence {
                label: "KV events | last 60 s".into(),
                value: "0 of 412".into(),
                unit: "events".into(),
            }],
            fix: vec![
                Fix {
                    text: "vLLM".into(),
                    setting: "--kv-events-config".into(),
                    value: "'{…}'".into(),
                    engine: None,
                },
                Fix { text: "Restart it".into(), setting: "".into(), value: "".into(), engine: None },
            ],
            workers: vec![WorkerIx(0)],
            panel: PanelRef::Workers,
            selects_worker: false,
            first_ms: Millis(first),
            last_ms: Millis(NOW + 61_000),
        }
    }

    fn cluster(records: Vec<Record<'static>>) -> Cluster {
        let mut cluster = Cluster::default();
        let worker = Record::new_worker(WorkerIx(0), Worker::new(42, 0), "", "");
        for record in [worker].into_iter().chain(records) {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(NOW), record });
        }
        cluster
    }

    #[test]
    fn a_finding_reads_as_a_ticket() {
        let cluster = cluster(Vec::new());
        let text = finding_ticket(&cluster, &finding("no_events", Severity::Critical, Phase::Warn, NOW));
        expect![[r#"
            ### Critical: No events from a worker

            Its cache is unknown. Requests go elsewhere.

            - Workers: W1 (42/0)
            - Active, since 2023-11-14 22:13:20 UTC, last seen 2023-11-14 22:14:21 UTC (code `no_events`)

            | Evidence at 2023-11-14 22:14:21 UTC | Value | Unit |
            |---|---:|---|
            | KV events \| last 60 s | 0 of 412 | events |

            What to do, one of these:

            - vLLM: `--kv-events-config '{…}'`
            - Restart it
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn the_worst_come_first_then_the_newest_and_what_is_over_not_at_all() {
        let all = [
            finding("old_warning", Severity::Warning, Phase::Warn, NOW),
            finding("note", Severity::Info, Phase::Warn, NOW + 9),
            finding("critical", Severity::Critical, Phase::Recheck, NOW),
            finding("over", Severity::Critical, Phase::Cleared, NOW),
            finding("new_warning", Severity::Warning, Phase::Warn, NOW + 5),
        ];
        let cluster = cluster(all.iter().cloned().map(|one| Record::Finding(Box::new(one))).collect());
        let codes: Vec<&str> = FindingFilter::default().of(&cluster).iter().map(|f| &*f.code).collect();
        assert_eq!(codes, ["critical", "new_warning", "old_warning", "note"]);
    }

    #[test]
    fn all_findings_report_what_could_not_be_judged() {
        let status = |code: &'static str, status, missing: &'static str| RuleStatus {
            code: code.into(),
            subject: "Latency against its target".into(),
            status,
            missing: missing.into(),
            explained_by: "".into(),
            pending: None,
        };
        let checked = Record::Checked(vec![
            status("slo", CheckStatus::NoData, "no process is scraped: --prometheus frontend=URL"),
            status("gaps", CheckStatus::Ok, ""),
        ]);
        let text = findings_ticket(&cluster(vec![checked]));
        assert!(text.contains("No findings · 1 of 2 checks ran, 1 without data"), "{text}");
        assert!(
            text.contains("- Latency against its target: no process is scraped: --prometheus frontend=URL\n")
        );
        assert_eq!(summary(&cluster(Vec::new())), "Nothing was checked yet");
        let every = Record::Checked(vec![status("gaps", CheckStatus::Ok, "")]);
        assert_eq!(summary(&cluster(vec![every])), "No findings · all 1 checks ran");
    }

    #[test]
    fn all_findings_report_where_reuse_is_lost() {
        let mut decision = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::Log);
        (decision.isl_tokens, decision.block_size_tokens) = (Some(1_005), Some(10));
        let reuse = Reuse {
            decision: DecisionId(1),
            prompt_blocks: 100,
            seen_blocks: 80,
            held_blocks: 80,
            eligible_blocks: 80,
            chosen_blocks: 80,
            holder: Some(WorkerIx(0)),
            gone: None,
            known_since_ms: Millis(NOW),
            lacked_blocks: false,
            displaced_by: None,
        };
        let records = vec![Record::Decision(Box::new(decision)), Record::Reuse(Box::new(reuse))];
        let text = findings_ticket(&cluster(records));
        for line in [
            "| ever cached | 800 | 80 % |",
            "| first time seen | 200 | 20 % | 1 |",
            "| below one block | 5 | <1 % | 1 |",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert!(!findings_ticket(&cluster(Vec::new())).contains("Where reuse is lost"));
    }

    #[test]
    fn a_setting_is_written_as_its_owner_would() {
        let fix = |setting: &'static str, value: &'static str| {
            setting_line(&Fix { text: "".into(), setting: setting.into(), value: value.into(), engine: None })
        };
        assert_eq!(fix("DYN_KV_CACHE_BLOCK_SIZE", "32"), "DYN_KV_CACHE_BLOCK_SIZE=32");
        assert_eq!(fix("--block-size", "32"), "--block-size 32");
        assert_eq!(fix("--config", r#"{"a":1}"#), r#"--config '{"a":1}'"#);
        assert_eq!(fix("max_batch_size:", "48"), "max_batch_size: 48");
        assert_eq!(fix("--enable-local-indexer", ""), "--enable-local-indexer");
        assert_eq!(fix("", ""), "");
    }
}
