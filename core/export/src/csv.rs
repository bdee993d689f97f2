//! Decisions as CSV by RFC 4180: a header, a line each, CRLF, quotes where needed. Unknown is an empty field.

use radixscope_insight::baseline::csv_guard::is_formula;
use radixscope_model::csv::push_line;
use radixscope_model::formula::Formula;
use radixscope_model::record::{DecisionSource, Outcome};
use radixscope_state::cluster::{Cluster, DecisionEntry};

const HEADER: [&str; 34] = [
    "decision_id",
    "seq",
    "at_ms",
    "decided_ms",
    "request_id",
    "router_id",
    "worker_id",
    "dp_rank",
    "isl_tokens",
    "isl_blocks",
    "block_size_tokens",
    "overlap_blocks",
    "overlap_share",
    "verdict",
    "tie",
    "lost_affinity_blocks",
    "cost_blocks",
    "margin_blocks",
    "formula",
    "overlap_score_weight",
    "prefill_load_scale",
    "candidates",
    "completeness",
    "partial_tree",
    "sources",
    "first_token_ms",
    "ended_ms",
    "outcome",
    "ttft_ms",
    "queue_ms",
    "prefill_ms",
    "itl_ms",
    "output_tokens",
    "cached_tokens",
];

/// `decisions` in their order. Those whose worker the state does not know are left out, as in the API.
pub fn decisions<'a>(cluster: &Cluster, decisions: impl Iterator<Item = &'a DecisionEntry>) -> String {
    let mut csv = header();
    for row in decisions.filter_map(|decided| row(cluster, decided)) {
        push_line(&mut csv, row);
    }
    csv
}

/// The header line.
pub fn header() -> String {
    let mut csv = String::new();
    push_line(&mut csv, HEADER);
    csv
}

/// The line of one decision; `None` if the state does not know its worker.
pub fn decision(cluster: &Cluster, decided: &DecisionEntry) -> Option<String> {
    let mut csv = String::new();
    push_line(&mut csv, row(cluster, decided)?);
    Some(csv)
}

fn row(cluster: &Cluster, decided: &DecisionEntry) -> Option<[String; HEADER.len()]> {
    let (decision, progress) = (&decided.decision, &decided.progress);
    let worker = cluster.worker(decision.worker)?;
    let sources: Vec<&str> = decided.sources().map(DecisionSource::as_str).collect();
    let is_a = decision.formula == Some(Formula::A);
    let finite = |value: Option<f64>| known(value.filter(|value| value.is_finite()));
    Some([
        decision.id.0.to_string(),
        decided.seq.to_string(),
        decided.at_ms.to_string(),
        known(decision.decided_ms),
        text(decision.request_id.as_deref().unwrap_or_default()),
        known(decision.router),
        worker.id.id.0.to_string(),
        worker.id.dp_rank.to_string(),
        known(decision.isl_tokens),
        known(decision.isl_blocks),
        known(decision.block_size_tokens),
        known(decided.overlap_blocks()),
        known(decided.overlap_share()),
        decided.cache_outcome().as_str().to_owned(),
        decided.is_tie().to_string(),
        known(decided.lost_affinity().map(|lost| lost.more_blocks)),
        finite(decided.chosen_cost()),
        finite(decided.cost_gap_blocks().ok()),
        decision.formula.map_or("", Formula::as_str).to_owned(),
        finite(decision.prefill_factor.filter(|_| is_a)),
        finite(decision.prefill_factor.filter(|_| !is_a)),
        known(Some(decision.candidates.len()).filter(|&candidates| candidates > 0)),
        decision.completeness.as_str().to_owned(),
        decided.partial.to_string(),
        sources.join(" "),
        known(progress.first_token_ms),
        known(progress.ended_ms),
        progress.outcome.map_or("", Outcome::as_str).to_owned(),
        ms(progress.ttft_us),
        ms(progress.queue_us),
        ms(progress.prefill_us),
        ms(progress.itl_us),
        known(progress.output_tokens),
        known(progress.cached_tokens),
    ])
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn ms(us: Option<u64>) -> String {
    known(us.map(|us| us as f64 / 1_000.0))
}

/// Text from anywhere. What a spreadsheet would take for a formula begins with an apostrophe: request ids come from
/// clients.
fn text(text: &str) -> String {
    let guard = if is_formula(text) { "'" } else { "" };
    format!("{guard}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
    use radixscope_model::record::{Decision, Entry, Record};

    #[test]
    fn nothing_that_a_client_sends_becomes_a_formula() {
        assert_eq!(text("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!((text("-1"), text("r-1")), ("'-1".to_owned(), "r-1".to_owned()));
    }

    #[test]
    fn every_line_has_the_header_s_fields_and_unknown_ones_are_empty() {
        let mut cluster = Cluster::default();
        let records = [
            Record::Source {
                source: SourceIx(0),
                name: "x".into(),
                kind: radixscope_model::record::SourceKind::Nats,
            },
            Record::Worker {
                worker: WorkerIx(0),
                id: Worker::new(u64::MAX, 3),
                namespace: "".into(),
                component: "".into(),
            },
            Record::Decision(Decision {
                request_id: Some("a,\"b\"".into()),
                ..Decision::new(DecisionId(7), WorkerIx(0), DecisionSource::KvHitRate)
            }),
        ];
        for (at, record) in records.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(5), record });
        }
        let csv = decisions(&cluster, cluster.decisions().newest_first());
        let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], HEADER.join(","));
        assert_eq!(lines[1].split(',').count(), HEADER.len() + 1, "one comma is quoted");
        assert!(
            lines[1].starts_with("7,3,5,,\"a,\"\"b\"\"\",,18446744073709551615,3,,,,,,unknown,false,,"),
            "{}",
            lines[1]
        );
    }
}
