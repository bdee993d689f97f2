//! Metrics as Tachometer, the scraper of NVIDIA's srt-slurm, leaves them: `final.parquet`, a row for each sample, sorted by metric. They
//! are put together again as the responses that they were, so that the decoder of metrics reads them. Columns by its public source:
//! `scraper_endpoint`, `metric_name` (with labels, without `_bucket`), `metric_value`, `histogram_bucket_upper`, `histogram_sum`,
//! `histogram_count`, `time_since_start` in seconds; newer files have `timestamp_ns`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde::{Deserialize, Serialize};

use radixscope_intake::MAX_PAYLOAD_BYTES;
use radixscope_model::id::Millis;

use super::file::{FileReport, LATEST, Reading};
use super::kind::Kind;

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

/// Samples of one response are at most so far apart: Tachometer asks twice a second and notes the time of each sample.
const WITHIN_MS: u64 = 200;
/// Most endpoints that have samples at once.
const MAX_ENDPOINTS: usize = 1_024;
/// Longest response: a frontend of a thousand workers has some megabytes.
const MAX_RESPONSE_BYTES: usize = MAX_PAYLOAD_BYTES / 2;
/// Rows are counted against the bound of text by so many bytes beside their own.
const ROW_BYTES: usize = 64;
/// After so many rows it is asked whether to stop.
const ROWS_A_TURN: u64 = 1 << 16;

/// A sample, as it is spooled.
#[derive(Serialize, Deserialize)]
struct Sample<'s> {
    endpoint: &'s str,
    /// Name and labels.
    series: &'s str,
    value: f64,
    /// Of a bucket.
    is_bucket: bool,
    /// Of a bucket: what the file has beside it, which is that of one set of labels.
    sum: Option<f64>,
    count: Option<f64>,
}

/// Reads the samples of a file. What is wrong with it stands in its report.
///
/// # Errors
/// The spool cannot be written, or it was stopped.
pub(super) fn read(
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

/// A response of a process, put together.
pub(super) struct Response {
    /// Of the file.
    pub(super) file: usize,
    pub(super) endpoint: Arc<str>,
    /// When its first sample was taken.
    pub(super) at: Millis,
    /// As Prometheus text.
    pub(super) text: String,
}

/// Puts samples together, which come by time.
pub(super) struct Responses {
    /// When the oldest open response began.
    oldest: Millis,
    /// By file and endpoint.
    open: BTreeMap<(usize, Arc<str>), OpenResponse>,
    /// Samples that were left out.
    pub(super) left_out: u64,
}

/// A response of which more samples may come.
struct OpenResponse {
    response: Response,
    /// Its histograms, by name and labels.
    histograms: BTreeMap<String, Histogram>,
    /// About how long its text becomes.
    bytes: usize,
}

/// A histogram of one set of labels.
#[derive(Default)]
struct Histogram {
    /// Samples in all buckets.
    all: Option<f64>,
    /// What the file has beside the buckets.
    sum: Option<f64>,
    count: Option<f64>,
    /// Its buckets, as text.
    buckets: String,
}

impl Default for Responses {
    fn default() -> Self {
        Self { oldest: Millis(u64::MAX), open: BTreeMap::new(), left_out: 0 }
    }
}

impl Responses {
    /// Takes a spooled sample; gives the responses that are over.
    pub(super) fn take(&mut self, file: usize, at: Millis, bytes: &[u8]) -> Vec<Response> {
        let over = self.over(at);
        let Ok(sample) = postcard::from_bytes::<Sample<'_>>(bytes) else {
            self.left_out += 1;
            return over;
        };
        let key = (file, Arc::<str>::from(sample.endpoint));
        if self.open.len() >= MAX_ENDPOINTS && !self.open.contains_key(&key) {
            self.left_out += 1;
            return over;
        }
        let endpoint = Arc::clone(&key.1);
        let new = || {
            let response = Response { file, endpoint, at, text: String::new() };
            OpenResponse { response, histograms: BTreeMap::new(), bytes: 0 }
        };
        let open = self.open.entry(key).or_insert_with(new);
        open.bytes += sample.series.len() + ROW_BYTES;
        if open.bytes > MAX_RESPONSE_BYTES {
            self.left_out += 1;
            return over;
        }
        self.oldest = self.oldest.min(open.response.at);
        let OpenResponse { response, histograms, .. } = open;
        if sample.is_bucket {
            bucket(histograms, &sample);
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(response.text, "{} {}", sample.series, sample.value);
        }
        over
    }

    /// All that are still open.
    pub(super) fn end(&mut self) -> Vec<Response> {
        self.over(Millis(u64::MAX))
    }

    fn over(&mut self, now: Millis) -> Vec<Response> {
        let is_over = |at: Millis| now.since(at) > WITHIN_MS;
        if !is_over(self.oldest) {
            return Vec::new();
        }
        let mut over: Vec<Response> = Vec::new();
        for (_, mut open) in self.open.extract_if(.., |_, open| is_over(open.response.at)) {
            for (series, of) in open.histograms {
                self.left_out += of.write(&series, &mut open.response.text);
            }
            over.push(open.response);
        }
        self.oldest = self.open.values().map(|open| open.response.at).min().unwrap_or(Millis(u64::MAX));
        over.sort_by_key(|response| response.at);
        over
    }
}

/// Adds a bucket to its histogram, which is that of the same labels without `le`.
fn bucket(histograms: &mut BTreeMap<String, Histogram>, sample: &Sample<'_>) {
    let (name, labels) = sample.series.split_once('{').unwrap_or((sample.series, ""));
    let labels = labels.strip_suffix('}').unwrap_or(labels);
    let of_bucket = |label: &&str| label.starts_with("le=\"");
    let others: Vec<&str> =
        labels.split(',').filter(|label| !label.is_empty() && !of_bucket(label)).collect();
    let key = format!("{name}{{{}}}", others.join(","));
    let of = histograms.entry(key).or_default();
    if labels.split(',').any(|label| label == "le=\"+Inf\"") {
        of.all = Some(sample.value);
    } else {
        of.sum = of.sum.or(sample.sum);
        of.count = of.count.or(sample.count);
    }
    let _ = writeln!(of.buckets, "{name}_bucket{{{labels}}} {}", sample.value);
}

impl Histogram {
    /// Writes it; how many samples are left out. The file has the sum of only one set of labels beside the buckets of all: it is that of
    /// this one if the count is too.
    fn write(self, series: &str, to: &mut String) -> u64 {
        let (Some(all), Some(sum)) = (self.all, self.sum.filter(|_| self.count == self.all)) else {
            return 1;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        to.push_str(&self.buckets);
        let _ = writeln!(to, "{name}_sum{{{labels} {sum}\n{name}_count{{{labels} {all}");
        0
    }
}
