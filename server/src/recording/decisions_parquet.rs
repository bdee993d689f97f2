//! Decisions as a Parquet file: the columns of the CSV, with types. Unknown is null. Integers are unsigned, 64 bits; text is
//! written as received.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use radixscope_export::rows::{DECISION_COLUMNS, ReadColumn};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::decision_values::{DecisionValues, Value};

/// Rows of a row group; they are buffered until it is written.
const GROUP_ROWS: usize = 16 * 1024;

/// Buffered values of a column.
enum Values {
    Whole(Vec<Option<u64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    Flag(Vec<bool>),
}

impl Values {
    fn of(column: ReadColumn) -> Self {
        match column {
            ReadColumn::Whole(_) => Self::Whole(Vec::new()),
            ReadColumn::Real(_) => Self::Real(Vec::new()),
            ReadColumn::Text(_) => Self::Text(Vec::new()),
            ReadColumn::Flag(_) => Self::Flag(Vec::new()),
        }
    }

    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Whole(values), Value::Whole(value)) => values.push(value),
            (Self::Real(values), Value::Real(value)) => values.push(value),
            (Self::Text(values), Value::Text(value)) => values.push(value),
            (Self::Flag(values), Value::Flag(value)) => values.push(value),
            // Of another release's columns: unknown, so that all columns stay of one length.
            (Self::Whole(values), _) => values.push(None),
            (Self::Real(values), _) => values.push(None),
            (Self::Text(values), _) => values.push(None),
            (Self::Flag(values), _) => values.push(false),
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
pub(crate) struct Decisions<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Values>,
    rows: usize,
}

impl<W: Write + Send> Decisions<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn begin(to: W) -> anyhow::Result<Self> {
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let file = SerializedFileWriter::new(to, Arc::new(schema()?), Arc::new(properties));
        Ok(Self { file: file.context("the Parquet file cannot be started")?, columns: empty(), rows: 0 })
    }

    /// Adds a decision. It is skipped if the state does not know its worker, as in the API.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn push(&mut self, cluster: &Cluster, decided: &DecisionEntry) -> std::io::Result<()> {
        DecisionValues::of(cluster, decided).map_or(Ok(()), |row| self.push_values(row))
    }

    /// Adds the values of a decision.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn push_values(&mut self, row: DecisionValues) -> std::io::Result<()> {
        for (values, value) in self.columns.iter_mut().zip(row.0) {
            values.push(value);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.group().map_err(std::io::Error::other) } else { Ok(()) }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn end(mut self) -> anyhow::Result<W> {
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
    DECISION_COLUMNS.iter().map(|(_, column)| Values::of(*column)).collect()
}

fn schema() -> Result<Type, ParquetError> {
    let column = |(name, column): (&str, ReadColumn)| {
        let (physical, logical) = match column {
            ReadColumn::Whole(_) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            ReadColumn::Real(_) => (PhysicalType::DOUBLE, None),
            ReadColumn::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ReadColumn::Flag(_) => (PhysicalType::BOOLEAN, None),
        };
        let repetition =
            if matches!(column, ReadColumn::Flag(_)) { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        column.with_logical_type(logical).build().map(Arc::new)
    };
    let columns: Result<Vec<_>, _> = DECISION_COLUMNS.map(column).into_iter().collect();
    Type::group_type_builder("decisions").with_fields(columns?).build()
}

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::Value as Json;

    use radixscope_export::decision_row;
    use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Record, SourceKind};

    use super::*;

    /// A state with one decision of which much is known, and one of which nothing is.
    pub(in crate::recording) fn decided() -> Cluster {
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
            Record::new_worker(WorkerIx(0), Worker::new(u64::MAX, 3), "dynamo", "backend"),
            Record::Decision(Box::new(all)),
            Record::Decision(Box::new(Decision::new(DecisionId(8), WorkerIx(0), DecisionSource::KvHitRate))),
        ];
        let mut cluster = Cluster::default();
        for (at, record) in records.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(5), record });
        }
        cluster
    }

    /// The value of a column in `/api/v1/decisions`; ids are decimal strings there.
    fn api_value<'a>(json: &'a Json, column: &str) -> &'a Json {
        match column {
            "decision_id" => &json["id"],
            "cost_blocks" => &json["cost"],
            "partial_tree" => &json["partial"],
            "client_ttft_ms" => &json["client"]["ttft_ms"],
            "client_itl_ms" => &json["client"]["itl_ms"],
            "client_duration_ms" => &json["client"]["duration_ms"],
            "client_output_tokens" => &json["client"]["output_tokens"],
            "client_outcome" => &json["client"]["outcome"],
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
        let computed = [
            "overlap_share",
            "tie",
            "candidates",
            "sources",
            "endpoint",
            "score",
            "next_best_score",
            "scores",
        ];
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
            assert_eq!(row.get_column_iter().count(), DECISION_COLUMNS.len());
        }
        let share = |at: usize| rows[at].get_column_iter().find(|(name, _)| *name == "overlap_share");
        assert_eq!(share(1).map(|(_, share)| share), Some(&Field::Double(0.25)));
        assert_eq!(share(0).map(|(_, share)| share), Some(&Field::Null));
    }
}
