//! Decisions as CSV by RFC 4180: a header, a line each, CRLF, quotes where needed. Unknown is an empty field.

use std::fmt::Write as _;

use super::decisions::{finite, ms};
use radixscope_insight::baseline::csv_guard::is_formula;
use radixscope_model::formula::Formula;
use radixscope_model::record::{DecisionSource, Outcome};
use radixscope_state::cluster::{Cluster, Decided};

const HEADER: &str = "decision_id,seq,at_ms,decided_ms,request_id,router_id,worker_id,dp_rank,isl_tokens,isl_blocks,\
    block_size_tokens,overlap_blocks,overlap_share,verdict,tie,lost_affinity_blocks,cost_blocks,margin_blocks,formula,\
    overlap_score_weight,prefill_load_scale,candidates,completeness,sources,first_token_ms,ended_ms,outcome,ttft_ms,itl_ms,output_tokens,cached_tokens";

/// `decisions` in their order. Those whose worker the state does not know are left out, as in the API.
pub fn decisions<'a>(cluster: &Cluster, decisions: impl Iterator<Item = &'a Decided>) -> String {
    let mut csv = format!("{HEADER}\r\n");
    for decided in decisions {
        line(&mut csv, cluster, decided);
    }
    csv
}

fn line(csv: &mut String, cluster: &Cluster, decided: &Decided) {
    let (decision, progress) = (&decided.decision, &decided.progress);
    let Some(worker) = cluster.worker(decision.worker) else { return };
    let sources: Vec<&str> = decided.sources().map(DecisionSource::as_str).collect();
    let is_a = decision.formula == Some(Formula::A);
    let factor = decision.prefill_factor.and_then(finite);
    let mut fields = Fields { csv, is_first: true };
    fields.id(Some(decision.id.0));
    fields.plain(Some(decided.seq));
    fields.plain(Some(decided.at_ms));
    fields.plain(decision.decided_ms);
    fields.text(decision.request_id.as_deref().unwrap_or_default());
    fields.id(decision.router);
    fields.id(Some(worker.id.id.0));
    fields.plain(Some(worker.id.dp_rank));
    fields.plain(decision.isl_tokens);
    fields.plain(decision.isl_blocks);
    fields.plain(decision.block_size_tokens);
    fields.plain(decided.overlap_blocks());
    fields.plain(decided.overlap_share());
    fields.text(decided.verdict().as_str());
    fields.plain(Some(decided.is_tie()));
    fields.plain(decided.lost_affinity().map(|lost| lost.more_blocks));
    fields.plain(decided.chosen_cost().and_then(finite));
    fields.plain(decided.margin_blocks().ok().and_then(finite));
    fields.text(decision.formula.map_or("", Formula::as_str));
    fields.plain(factor.filter(|_| is_a));
    fields.plain(factor.filter(|_| !is_a));
    fields.plain(Some(decision.candidates.len()).filter(|&known| known > 0));
    fields.text(decision.completeness.as_str());
    fields.text(&sources.join(" "));
    fields.plain(progress.first_token_ms);
    fields.plain(progress.ended_ms);
    fields.text(progress.outcome.map_or("", Outcome::as_str));
    fields.plain(progress.ttft_us.map(ms));
    fields.plain(progress.itl_us.map(ms));
    fields.plain(progress.output_tokens);
    fields.plain(progress.cached_tokens);
    csv.push_str("\r\n");
}

struct Fields<'a> {
    csv: &'a mut String,
    is_first: bool,
}

impl Fields<'_> {
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.csv.push(',');
        }
    }

    /// A number or word that needs no quotes.
    fn plain(&mut self, value: Option<impl std::fmt::Display>) {
        self.separate();
        if let Some(value) = value {
            let _ = write!(self.csv, "{value}");
        }
    }

    /// A full-range id, in quotes: text, not a number to be rounded.
    fn id(&mut self, id: Option<u64>) {
        self.separate();
        if let Some(id) = id {
            let _ = write!(self.csv, "\"{id}\"");
        }
    }

    /// Text from anywhere. What a spreadsheet would take for a formula begins with an apostrophe: request ids come from
    /// clients.
    fn text(&mut self, text: &str) {
        self.separate();
        let guard = if is_formula(text) { "'" } else { "" };
        if guard.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
            self.csv.push_str(text);
        } else {
            let _ = write!(self.csv, "\"{guard}{}\"", text.replace('"', "\"\""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
    use radixscope_model::record::{Decision, Entry, Record};

    fn field(text: &str) -> String {
        let mut csv = String::new();
        let mut fields = Fields { csv: &mut csv, is_first: true };
        fields.text(text);
        fields.id(Some(u64::MAX));
        csv
    }

    #[test]
    fn only_what_needs_quotes_is_quoted_and_quotes_are_doubled() {
        assert_eq!(field("r-1"), "r-1,\"18446744073709551615\"");
        assert_eq!(field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\",\"18446744073709551615\"");
    }

    #[test]
    fn nothing_that_a_client_sends_becomes_a_formula() {
        assert!(field("=HYPERLINK(\"x\")").starts_with("\"'=HYPERLINK(\"\"x\"\")\","));
        assert!(field("-1").starts_with("\"'-1\","));
    }

    #[test]
    fn every_line_has_the_header_s_fields_and_unknown_ones_are_empty() {
        let mut cluster = Cluster::default();
        let heard = [
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
            Record::Decision(Decision::new(
                DecisionId(7),
                WorkerIx(0),
                radixscope_model::record::DecisionSource::KvHitRate,
            )),
        ];
        for (at, record) in heard.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(5), record });
        }
        let csv = decisions(&cluster, cluster.decisions().newest_first());
        let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1].split(',').count(), HEADER.split(',').count());
        assert!(
            lines[1].starts_with("\"7\",3,5,,,,\"18446744073709551615\",3,,,,,,unknown,false,,"),
            "{}",
            lines[1]
        );
    }
}
