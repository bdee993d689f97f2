//! Decisions as a Parquet file: the columns of the CSV, with types. Unknown is null. Integers are unsigned, 64 bits; text is
//! written as received.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use radixscope_model::formula::Formula;
use radixscope_model::id::Worker;
use radixscope_model::record::{DecisionSource, Outcome};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// Rows of a row group; they are buffered until it is written.
const GROUP_ROWS: usize = 16 * 1024;

/// A column's accessor, which determines its type.
#[derive(Clone, Copy)]
enum Of {
    Whole(fn(Row<'_>) -> Option<u64>),
    Real(fn(Row<'_>) -> Option<f64>),
    Text(fn(Row<'_>) -> Option<String>),
    Flag(fn(Row<'_>) -> bool),
}

/// A decision and the chosen worker.
#[derive(Clone, Copy)]
struct Row<'a> {
    decided: &'a DecisionEntry,
    worker: Worker,
}

/// Names as in the CSV.
const COLUMNS: [(&str, Of); 34] = [
    ("decision_id", Of::Whole(|row| Some(row.decided.decision.id.0))),
    ("seq", Of::Whole(|row| Some(row.decided.seq.0))),
    ("at_ms", Of::Whole(|row| Some(row.decided.at_ms.0))),
    ("decided_ms", Of::Whole(|row| row.decided.decision.decided_ms.map(|at| at.0))),
    ("request_id", Of::Text(|row| row.decided.decision.request_id.as_ref().map(ToString::to_string))),
    ("router_id", Of::Whole(|row| row.decided.decision.router)),
    ("worker_id", Of::Whole(|row| Some(row.worker.id.0))),
    ("dp_rank", Of::Whole(|row| Some(row.worker.dp_rank.into()))),
    ("isl_tokens", Of::Whole(|row| row.decided.decision.isl_tokens)),
    ("isl_blocks", Of::Whole(|row| row.decided.decision.isl_blocks)),
    ("block_size_tokens", Of::Whole(|row| row.decided.decision.block_size_tokens.map(u64::from))),
    ("overlap_blocks", Of::Whole(|row| row.decided.overlap_blocks())),
    ("overlap_share", Of::Real(|row| row.decided.overlap_share())),
    ("verdict", Of::Text(|row| Some(row.decided.cache_outcome().as_str().to_owned()))),
    ("tie", Of::Flag(|row| row.decided.is_tie())),
    (
        "lost_affinity_blocks",
        Of::Whole(|row| row.decided.lost_affinity().map(|lost| lost.more_blocks.into())),
    ),
    ("cost_blocks", Of::Real(|row| row.decided.chosen_cost())),
    ("margin_blocks", Of::Real(|row| row.decided.cost_gap_blocks().ok())),
    ("formula", Of::Text(|row| row.decided.decision.formula.map(|formula| formula.as_str().to_owned()))),
    ("overlap_score_weight", Of::Real(|row| row.prefill_factor(true))),
    ("prefill_load_scale", Of::Real(|row| row.prefill_factor(false))),
    (
        "candidates",
        Of::Whole(|row| Some(row.decided.decision.candidates.len() as u64).filter(|&count| count > 0)),
    ),
    ("completeness", Of::Text(|row| Some(row.decided.decision.completeness.as_str().to_owned()))),
    ("partial_tree", Of::Flag(|row| row.decided.partial)),
    ("sources", Of::Text(|row| Some(row.sources()))),
    ("first_token_ms", Of::Whole(|row| row.decided.progress.first_token_ms.map(|at| at.0))),
    ("ended_ms", Of::Whole(|row| row.decided.progress.ended_ms.map(|at| at.0))),
    ("outcome", Of::Text(|row| row.decided.progress.outcome.map(Outcome::as_str).map(str::to_owned))),
    ("ttft_ms", Of::Real(|row| ms(row.decided.progress.ttft_us))),
    ("queue_ms", Of::Real(|row| ms(row.decided.progress.queue_us))),
    ("prefill_ms", Of::Real(|row| ms(row.decided.progress.prefill_us))),
    ("itl_ms", Of::Real(|row| ms(row.decided.progress.itl_us))),
    ("output_tokens", Of::Whole(|row| row.decided.progress.output_tokens)),
    ("cached_tokens", Of::Whole(|row| row.decided.progress.cached_tokens)),
];

fn ms(us: Option<u64>) -> Option<f64> {
    us.map(|us| us as f64 / 1_000.0)
}

impl Row<'_> {
    /// Formula A names this factor differently from later formulas.
    fn prefill_factor(self, of_a: bool) -> Option<f64> {
        let decision = &self.decided.decision;
        decision.prefill_factor.filter(|_| (decision.formula == Some(Formula::A)) == of_a)
    }

    fn sources(self) -> String {
        self.decided.sources().map(DecisionSource::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Buffered values of a column.
enum Values {
    Whole(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    Flag(Vec<bool>),
}

impl Values {
    fn of(of: Of) -> Self {
        match of {
            Of::Whole(_) => Self::Whole(Vec::new()),
            Of::Real(_) => Self::Real(Vec::new()),
            Of::Text(_) => Self::Text(Vec::new()),
            Of::Flag(_) => Self::Flag(Vec::new()),
        }
    }

    fn push(&mut self, of: Of, row: Row<'_>) {
        match (self, of) {
            (Self::Whole(values), Of::Whole(of)) => values.push(of(row)),
            // Infinity and NaN are null, as in JSON.
            (Self::Real(values), Of::Real(of)) => values.push(of(row).filter(|value| value.is_finite())),
            (Self::Text(values), Of::Text(of)) => values.push(of(row)),
            (Self::Flag(values), Of::Flag(of)) => values.push(of(row)),
            _ => {}
        }
    }

    fn write<W: Write + Send>(self, to: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let none = || ParquetError::General("the schema has too few columns".to_owned());
        let mut column = to.next_column()?.ok_or_else(none)?;
        match self {
            // Parquet stores unsigned integers in the signed physical type, with the same bits.
            Self::Whole(values) => optional::<Int64Type, _>(column.untyped(), values, |value| value as i64)?,
            Self::Real(values) => optional::<DoubleType, _>(column.untyped(), values, |value| value)?,
            Self::Text(values) => {
                optional::<parquet::data_type::ByteArrayType, _>(column.untyped(), values, |value| {
                    ByteArray::from(value.into_bytes())
                })?;
            }
            Self::Flag(values) => _ = column.typed::<BoolType>().write_batch(&values, None, None)?,
        }
        column.close()
    }
}

/// Writes the values of an optional column.
fn optional<T: DataType, V>(
    column: &mut ColumnWriter<'_>,
    values: Vec<Option<V>>,
    plain: fn(V) -> T::T,
) -> Result<(), ParquetError> {
    let is_known: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let known: Vec<T::T> = values.into_iter().flatten().map(plain).collect();
    let column = parquet::column::writer::get_typed_column_writer_mut::<T>(column);
    column.write_batch(&known, Some(&is_known), None).map(drop)
}

/// A Parquet file that is being written.
pub(super) struct Decisions<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

impl<W: Write + Send> Decisions<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn begin(to: W) -> anyhow::Result<Self> {
        let file = SerializedFileWriter::new(to, Arc::new(schema()?), Arc::new(WriterProperties::default()));
        Ok(Self { file: file.context("the Parquet file cannot be started")?, columns: empty(), rows: 0 })
    }

    /// Adds a decision. It is skipped if the state does not know its worker, as in the API.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn push(&mut self, cluster: &Cluster, decided: &DecisionEntry) -> std::io::Result<()> {
        let Some(worker) = cluster.worker(decided.decision.worker) else { return Ok(()) };
        let row = Row { decided, worker: worker.id };
        for (values, (_, of)) in self.columns.iter_mut().zip(COLUMNS) {
            values.push(of, row);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.group().map_err(std::io::Error::other) } else { Ok(()) }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn end(mut self) -> anyhow::Result<W> {
        if self.rows > 0 {
            self.group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        self.rows = 0;
        let mut group = self.file.next_row_group()?;
        for values in std::mem::replace(&mut self.columns, empty()) {
            values.write(&mut group)?;
        }
        group.close().map(drop)
    }
}

fn empty() -> Vec<Values> {
    COLUMNS.iter().map(|(_, of)| Values::of(*of)).collect()
}

fn schema() -> Result<Type, ParquetError> {
    let column = |(name, of): (&str, Of)| {
        let (physical, logical) = match of {
            Of::Whole(_) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            Of::Real(_) => (PhysicalType::DOUBLE, None),
            Of::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Of::Flag(_) => (PhysicalType::BOOLEAN, None),
        };
        let repetition = if matches!(of, Of::Flag(_)) { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        column.with_logical_type(logical).build().map(Arc::new)
    };
    let columns: Result<Vec<_>, _> = COLUMNS.map(column).into_iter().collect();
    Type::group_type_builder("decisions").with_fields(columns?).build()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::Value;

    use radixscope_export::decision_row;
    use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, WorkerIx};
    use radixscope_model::record::{Decision, Entry, Record, SourceKind};

    use super::*;

    #[test]
    fn the_columns_are_those_of_the_csv() {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        assert_eq!(radixscope_export::csv::header().trim_end(), names.join(","));
    }

    fn decided() -> Cluster {
        let (namespace, component) = ("dynamo".into(), "backend".into());
        let all = Decision {
            request_id: Some("=a,\"b\"".into()),
            router: Some(u64::MAX - 1),
            isl_tokens: Some(3_700),
            isl_blocks: Some(116),
            overlap_blocks: Some(29),
            logit: Some(87.25),
            ..Decision::new(DecisionId(7), WorkerIx(0), DecisionSource::KvHitRate)
        };
        let records = [
            Record::Source { source: SourceIx(0), name: "x".into(), kind: SourceKind::Nats },
            Record::Worker { worker: WorkerIx(0), id: Worker::new(u64::MAX, 3), namespace, component },
            Record::Decision(all),
            Record::Decision(Decision::new(DecisionId(8), WorkerIx(0), DecisionSource::KvHitRate)),
        ];
        let mut cluster = Cluster::default();
        for (at, record) in records.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(5), record });
        }
        cluster
    }

    /// The value of a column in `/api/v1/decisions`; ids are decimal strings there.
    fn api_value<'a>(json: &'a Value, column: &str) -> &'a Value {
        match column {
            "decision_id" => &json["id"],
            "cost_blocks" => &json["cost"],
            "partial_tree" => &json["partial"],
            column => json.get(column).unwrap_or(&json["progress"][column]),
        }
    }

    #[test]
    fn what_is_read_back_is_what_the_api_says() {
        let cluster = decided();
        let mut file = Decisions::begin(Vec::new()).unwrap();
        let decisions: Vec<_> = cluster.decisions().newest_first().collect();
        decisions.iter().for_each(|decided| file.push(&cluster, decided).unwrap());
        let file = SerializedFileReader::new(Bytes::from(file.end().unwrap())).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        let computed = ["overlap_share", "tie", "candidates", "sources"];
        for (row, decided) in rows.iter().zip(decisions) {
            let json = serde_json::to_value(decision_row(&cluster, decided).unwrap()).unwrap();
            let columns = row.get_column_iter().filter(|(name, _)| !computed.contains(&name.as_str()));
            for (name, field) in columns {
                let api_value = api_value(&json, name);
                let is_same = match field {
                    Field::Null => api_value.is_null(),
                    Field::ULong(value) => {
                        api_value.as_u64() == Some(*value) || api_value.as_str() == Some(&value.to_string())
                    }
                    Field::Double(value) => api_value.as_f64() == Some(*value),
                    Field::Str(value) => api_value.as_str() == Some(value),
                    Field::Bool(value) => api_value.as_bool() == Some(*value),
                    _ => false,
                };
                assert!(is_same, "{name}: {field}, but {api_value} in {json}");
            }
            assert_eq!(row.get_column_iter().count(), COLUMNS.len());
        }
        let share = |at: usize| rows[at].get_column_iter().find(|(name, _)| *name == "overlap_share");
        assert_eq!(share(1).map(|(_, share)| share), Some(&Field::Double(0.25)));
        assert_eq!(share(0).map(|(_, share)| share), Some(&Field::Null));
    }
}
