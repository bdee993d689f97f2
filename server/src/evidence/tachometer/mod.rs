//! Metrics as Tachometer, the scraper of NVIDIA's srt-slurm, leaves them: `final.parquet`, a row for each sample, sorted by metric. They
//! are put together again as the responses that they were, so that the decoder of metrics reads them.

#[cfg_attr(not(feature = "parquet"), path = "without_parquet.rs")]
mod read;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use radixscope_intake::MAX_PAYLOAD_BYTES;
use radixscope_model::id::Millis;

pub(super) use read::read;

/// Samples of one response are at most so far apart: Tachometer asks twice a second and notes the time of each sample.
const WITHIN_MS: u64 = 200;
/// Most endpoints that have samples at once.
const MAX_ENDPOINTS: usize = 1_024;
/// Longest response: a frontend of a thousand workers has some megabytes.
const MAX_RESPONSE_BYTES: usize = MAX_PAYLOAD_BYTES / 2;
/// Rows are counted against the bound of text by so many bytes beside their own.
const ROW_BYTES: usize = 64;

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
