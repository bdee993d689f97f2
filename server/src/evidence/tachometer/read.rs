//! Reads the samples of a file. Columns by Tachometer's public source: `scraper_endpoint`, `metric_name` (with labels, without `_bucket`),
//! `metric_value`, `histogram_bucket_upper`, `histogram_sum`, `histogram_count`, `time_since_start` in seconds; newer files have
//! `timestamp_ns`.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use radixscope_model::id::Millis;

use super::{ROW_BYTES, Sample};
use crate::evidence::file::{FileReport, LATEST, Reading};
use crate::evidence::kind::Kind;

const ENDPOINT: &str = "scraper_endpoint";
const NAME: &str = "metric_name";
const VALUE: &str = "metric_value";
const UPPER: &str = "histogram_bucket_upper";
const SUM: &str = "histogram_sum";
const COUNT: &str = "histogram_count";
const SINCE_START: &str = "time_since_start";
const TIMESTAMP: &str = "timestamp_ns";
/// The columns that are read, as far as a file has them.
const COLUMNS: [&str; 8] = [ENDPOINT, NAME, VALUE, UPPER, SUM, COUNT, SINCE_START, TIMESTAMP];
/// Without one of these a file is of another kind.
const NEEDED: [&str; 3] = [ENDPOINT, NAME, VALUE];
/// After so many rows it is asked whether to stop.
const ROWS_A_TURN: u64 = 1 << 16;

/// Reads the samples of a file. What is wrong with it stands in its report.
///
/// # Errors
/// The spool cannot be written, or it was stopped.
pub(in crate::evidence) fn read(
    ix: usize,
    file: File,
    modified: Option<Millis>,
    with: &mut Reading<'_>,
    report: &mut FileReport,
) -> io::Result<()> {
    let mut samples = match Samples::open(&file, modified) {
        Ok(samples) => samples,
        Err(why) => {
            report.kind = Kind::Other;
            report.notes.push(why);
            return Ok(());
        }
    };
    report.notes.push(samples.clock.to_owned());
    let reader = match SerializedFileReader::new(file) {
        Ok(reader) => reader,
        Err(error) => {
            report.notes.push(error.to_string());
            return Ok(());
        }
    };
    let rows = match reader.get_row_iter(Some(samples.projection.clone())) {
        Ok(rows) => rows,
        Err(error) => {
            report.notes.push(error.to_string());
            return Ok(());
        }
    };
    for row in rows {
        if report.records.is_multiple_of(ROWS_A_TURN) && (with.is_stopped)() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        let row = match row {
            Ok(row) => row,
            Err(error) => {
                report.notes.push(format!("{error}; the rest is not read"));
                break;
            }
        };
        let Some((at, sample)) = samples.sample(&row) else {
            report.bad += 1;
            continue;
        };
        if let Err(error) = with.budget.take(sample.series.len() + ROW_BYTES) {
            report.notes.push(format!("{error}; the rest is not read"));
            break;
        }
        let bytes = postcard::to_allocvec(&sample).map_err(io::Error::other)?;
        report.records += 1;
        let (from, to) = report.range.unwrap_or((at, at));
        report.range = Some((from.min(at), to.max(at)));
        with.spool.push(ix, at, &bytes)?;
    }
    Ok(())
}

/// Where the columns of a row are, and how its time is told.
struct Samples {
    projection: Type,
    /// For each of [`COLUMNS`], its place in a row.
    at: [Option<usize>; COLUMNS.len()],
    /// The time at which `time_since_start` is 0, milliseconds.
    began_ms: f64,
    /// How times are told, in words.
    clock: &'static str,
}

impl Samples {
    /// `Err`: why it is none of Tachometer's, or cannot be read.
    fn open(file: &File, modified: Option<Millis>) -> Result<Self, String> {
        let not_read = |error: ParquetError| format!("Parquet that cannot be read: {error}");
        let reader = SerializedFileReader::new(file.try_clone().map_err(|error| error.to_string())?);
        let reader = reader.map_err(not_read)?;
        let schema = reader.metadata().file_metadata().schema().clone();
        let has = |name: &str| schema.get_fields().iter().any(|field| field.name() == name);
        if NEEDED.iter().any(|&name| !has(name)) || !(has(SINCE_START) || has(TIMESTAMP)) {
            let aiperf = has("endpoint_url") && has(NAME);
            return Err(match aiperf {
                true => "aiperf's server metrics: they are differences since the begin of its run and not read; metrics as Prometheus \
                         text are"
                    .to_owned(),
                false => format!("Parquet without the columns of Tachometer ({})", NEEDED.join(", ")),
            });
        }
        let fields: Vec<_> = schema
            .get_fields()
            .iter()
            .filter(|field| COLUMNS.contains(&field.name()) && field.is_primitive())
            .cloned()
            .collect();
        let at = COLUMNS.map(|name| fields.iter().position(|field| field.name() == name));
        let projection = group(&schema, fields).map_err(not_read)?;
        let (began_ms, clock) = match (at_of(&at, TIMESTAMP), modified.filter(|at| *at < LATEST)) {
            (Some(_), _) => (0.0, "time by its samples"),
            (None, None) => {
                return Err("no time: its samples have none, nor is known when it was changed".to_owned());
            }
            (None, Some(modified)) => {
                let only = schema.get_fields().iter().filter(|field| field.name() == SINCE_START).cloned();
                let rows = reader
                    .get_row_iter(Some(group(&schema, only.collect()).map_err(not_read)?))
                    .map_err(not_read)?;
                let seconds = rows.map_while(Result::ok).filter_map(|row| number(&row, Some(0)));
                let last_s = seconds.filter(|s| s.is_finite()).fold(0.0, f64::max);
                (
                    modified.0 as f64 - last_s * 1_000.0,
                    "time by when the file was changed, which is that of its last sample",
                )
            }
        };
        Ok(Self { projection, at, began_ms, clock })
    }

    /// `None`: it is not understood, or has no time.
    fn sample<'r>(&mut self, row: &'r Row) -> Option<(Millis, Sample<'r>)> {
        let at = |name| at_of(&self.at, name);
        let since_start_ms = number(row, at(SINCE_START)).map(|s| self.began_ms + s * 1_000.0);
        let ms = number(row, at(TIMESTAMP)).map(|ns| ns / 1e6).or(since_start_ms)?;
        if !(0.0..LATEST.0 as f64).contains(&ms) {
            return None;
        }
        let series = text(row, at(NAME)?)?;
        let sample = Sample {
            endpoint: text(row, at(ENDPOINT)?)?,
            series,
            value: number(row, at(VALUE))?,
            is_bucket: number(row, at(UPPER)).is_some() || series.contains("le=\""),
            sum: number(row, at(SUM)),
            count: number(row, at(COUNT)),
        };
        Some((Millis(ms as u64), sample))
    }
}

/// Some fields of a schema, for the reader.
fn group(schema: &Type, fields: Vec<Arc<Type>>) -> Result<Type, ParquetError> {
    Type::group_type_builder(schema.name()).with_fields(fields).build()
}

fn at_of(at: &[Option<usize>; COLUMNS.len()], name: &str) -> Option<usize> {
    COLUMNS.iter().position(|&column| column == name).and_then(|column| at[column])
}

fn field(row: &Row, at: usize) -> Option<&Field> {
    row.get_column_iter().nth(at).map(|(_, field)| field)
}

fn text(row: &Row, at: usize) -> Option<&str> {
    match field(row, at)? {
        Field::Str(text) => Some(text),
        _ => None,
    }
}

fn number(row: &Row, at: Option<usize>) -> Option<f64> {
    match field(row, at?)? {
        Field::Float(value) => Some(f64::from(*value)),
        Field::Double(value) => Some(*value),
        Field::Long(value) => Some(*value as f64),
        _ => None,
    }
}
