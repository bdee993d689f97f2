//! Decisions as CSV by RFC 4180: a header, a record each, CRLF, quotes where needed. Unknown is an empty field.

use std::io::{self, Write};

use radixscope_insight::csv_text::{is_formula, to_text, writer};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::{DECISION_COLUMNS, DecisionFields, ReadColumn};

type Record = [String; DECISION_COLUMNS.len()];

/// `decisions` in their order, with a header. Those whose worker the state does not know are left out, as in the API.
pub fn decisions_csv<'a>(cluster: &Cluster, decisions: impl Iterator<Item = &'a DecisionEntry>) -> String {
    to_text(std::iter::once(header()).chain(decisions.filter_map(|entry| record(cluster, entry))))
}

/// The same, written while decisions come in.
pub struct DecisionsCsv<W: Write>(csv::Writer<W>);

impl<W: Write> DecisionsCsv<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(to: W) -> io::Result<Self> {
        let mut writer = writer(to);
        writer.write_record(header())?;
        Ok(Self(writer))
    }

    /// Adds a decision. It is skipped if the state does not know its worker, as in the API.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push(&mut self, cluster: &Cluster, entry: &DecisionEntry) -> io::Result<()> {
        let Some(record) = record(cluster, entry) else { return Ok(()) };
        Ok(self.0.write_record(record)?)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn header() -> Record {
    DECISION_COLUMNS.map(|(name, _)| name.to_owned())
}

fn record(cluster: &Cluster, entry: &DecisionEntry) -> Option<Record> {
    let fields = DecisionFields::of(cluster, entry)?;
    Some(DECISION_COLUMNS.map(|(_, read)| match read {
        ReadColumn::Whole(read) => known(read(fields)),
        ReadColumn::Real(read) => known(read(fields).filter(|value| value.is_finite())),
        ReadColumn::Text(read) => text(&read(fields).unwrap_or_default()),
        ReadColumn::Flag(read) => read(fields).to_string(),
    }))
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Text from anywhere. What a spreadsheet would run as a formula begins with an apostrophe: request ids come from clients.
fn text(text: &str) -> String {
    let guard = if is_formula(text) { "'" } else { "" };
    format!("{guard}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Record};

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
            Record::new_worker(WorkerIx(0), Worker::new(u64::MAX, 3), "", ""),
            Record::Decision(Box::new(Decision {
                request_id: Some("a,\"b\"".into()),
                ..Decision::new(DecisionId(7), WorkerIx(0), DecisionSource::KvHitRate)
            })),
        ];
        for (at, record) in records.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(5), record });
        }
        let csv = decisions_csv(&cluster, cluster.decisions().newest_first());
        let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], header().join(","));
        assert_eq!(lines[1].split(',').count(), DECISION_COLUMNS.len() + 1, "one comma is quoted");
        assert!(
            lines[1].starts_with("7,3,5,,\"a,\"\"b\"\"\",,18446744073709551615,3,,,,,,unknown,false,,"),
            "{}",
            lines[1]
        );
        let mut written = Vec::new();
        let mut writer = DecisionsCsv::begin(&mut written).unwrap();
        cluster.decisions().newest_first().for_each(|entry| writer.push(&cluster, entry).unwrap());
        writer.end().unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), csv);
    }
}
