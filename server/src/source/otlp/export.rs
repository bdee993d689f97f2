//! Decisions as log records of OpenTelemetry, sent to a collector over HTTP in Protocol Buffers (`--otlp-export`): each once, when its
//! request has ended or timed out. Records wait in memory until they are accepted; what is dropped is counted, and the state of the export is
//! shown among the sources.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use radixscope_export::rows::{DECISION_COLUMNS, DecisionFields, ReadColumn};
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::number_format::{count, plural};
use radixscope_model::record::LinkState;
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::config::{InvalidOption, OtlpExportArgs};
use crate::hub::{Hub, SourceHandle};
use crate::recording::FinishedDecisions;
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::http_client::{Bounds, HttpClient};
use crate::source::link::{LastStatus, doubled, with_jitter};
use crate::time::now;

/// What the records are named.
const EVENT: &str = "radixscope.decision";
/// How often it is looked for requests that have ended.
const EVERY: Duration = Duration::from_secs(1);
/// Most records of a request, some hundred kilobytes.
const MAX_BATCH: u64 = 512;
/// Most records that wait, and their bytes as they are sent; beyond either the oldest batches are dropped.
const MAX_WAITING: u64 = 16_384;
const MAX_WAITING_BYTES: usize = 32 << 20;
/// How long a collector may take, and how large its response may be.
const BOUNDS: Bounds = Bounds { within: Duration::from_secs(10), most_bytes: 64 << 10 };
/// After a failure it is tried again so soon, then twice as late each time up to the longest.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// How long the last records may take when the process ends.
const LAST_WITHIN: Duration = Duration::from_millis(500);

/// Where decisions are sent.
pub struct OtlpExport {
    url: Url,
    name: String,
    http: HttpClient,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// How many records came to what.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Counts {
    sent: u64,
    /// The collector refused them.
    refused: u64,
    /// There was no room while the collector could not be reached.
    dropped: u64,
}

/// The records that are not accepted yet, as they are sent.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    records: u64,
    bytes: usize,
    counts: Counts,
}

/// The body of a request.
struct Batch {
    body: Vec<u8>,
    records: u64,
}

/// Decisions whose requests have not ended.
struct Unfinished {
    decisions: FinishedDecisions,
    /// The last one that was seen, and how many the state had ever received then.
    last: Option<(DecisionId, u64)>,
    /// Before any was seen: earlier ones are of a recording that the process began with.
    since: Millis,
}

/// The collector does not take anything at present.
struct Failing {
    /// Attempts in a row.
    times: u32,
    again_at: Instant,
    why: SourceStatus,
}

impl Failing {
    fn after(times: u32, why: SourceStatus) -> Self {
        let wait = with_jitter(doubled(RETRY_FIRST, times, RETRY_LONGEST));
        Self { times: times + 1, again_at: Instant::now() + wait, why }
    }
}

/// What became of an attempt.
enum Attempt {
    /// All but so many were accepted.
    Taken { refused: u64 },
    /// The same would be refused again.
    Refused(String),
    /// It may work later.
    Failed(SourceStatus),
}

impl OtlpExport {
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(url: Url, headers: Vec<(HeaderName, HeaderValue)>) -> Result<Self, InvalidOption> {
        Ok(Self { name: format!("otlp-export/{url}"), http: HttpClient::new()?, url, headers })
    }

    /// The one that the command line asks for.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn of(args: &OtlpExportArgs) -> Result<Option<Self>, InvalidOption> {
        let Some(to) = &args.otlp_export else { return Ok(None) };
        let headers = args.otlp_export_headers.iter().map(|header| header.0.clone());
        Self::new(to.logs(), headers.collect()).map(Some)
    }

    /// Its name among the sources.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends until the process ends.
    pub async fn run(self, hub: Hub, to: SourceHandle, shutdown: Shutdown) {
        let mut waiting = Waiting::default();
        let mut end = shutdown;
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            () = self.send_again_and_again(&hub, &to, &mut waiting) => {}
        }
        // Once more, as far as it is quick.
        let _ = timeout(LAST_WITHIN, self.send_all(&mut waiting)).await;
    }

    async fn send_again_and_again(&self, hub: &Hub, to: &SourceHandle, waiting: &mut Waiting) {
        let mut unfinished = Unfinished { decisions: FinishedDecisions::default(), last: None, since: now() };
        let mut last = LastStatus::default();
        let mut failing: Option<Failing> = None;
        loop {
            let read = hub.read(move |view| {
                let ended = unfinished.ended(now(), view.cluster);
                (unfinished, ended)
            });
            let Ok((still_unfinished, (records, missed))) = read.await else { return };
            unfinished = still_unfinished;
            waiting.add(records, missed);
            if failing.as_ref().is_none_or(|failing| failing.again_at <= Instant::now()) {
                let times = failing.map_or(0, |failing| failing.times);
                failing = self.send_all(waiting).await.map(|why| Failing::after(times, why));
            }
            let counts = waiting.counts;
            let status = match &failing {
                None => SourceStatus::new(LinkState::Live, counts.to_string()),
                Some(Failing { why: SourceStatus { state, detail }, .. }) => {
                    let waiting = plural(waiting.records, "decision waits", "decisions wait");
                    SourceStatus::new(*state, format!("{detail}. {waiting} and will be sent again. {counts}"))
                }
            };
            if last.report(to, &self.name, status).await.is_err() {
                return;
            }
            sleep(EVERY).await;
        }
    }

    /// Sends what waits. `Some`: why it could not.
    async fn send_all(&self, waiting: &mut Waiting) -> Option<SourceStatus> {
        while let Some(Batch { body, records }) = waiting.batches.front() {
            let records = *records;
            match self.attempt(Bytes::copy_from_slice(body)).await {
                Attempt::Taken { refused } => {
                    let refused = refused.min(records);
                    waiting.counts.sent += records - refused;
                    waiting.counts.refused += refused;
                    if refused > 0 {
                        tracing::warn!(url = %self.url, refused, "the collector refused decisions");
                    }
                }
                Attempt::Refused(why) => {
                    waiting.counts.refused += records;
                    tracing::warn!(url = %self.url, decisions = records, why, "the collector refused decisions");
                }
                Attempt::Failed(status) => return Some(status),
            }
            waiting.remove_oldest();
        }
        None
    }

    async fn attempt(&self, body: Bytes) -> Attempt {
        let content_type = HeaderValue::from_static("application/x-protobuf");
        let (status, response) =
            match self.http.post(&self.url, content_type, &self.headers, body, BOUNDS).await {
                Ok(response) => response,
                Err(failed) => return Attempt::Failed(failed),
            };
        match status {
            StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                // A collector that takes everything may leave the response empty.
                let response = ExportLogsServiceResponse::decode(response).unwrap_or_default();
                let refused = response.partial_success.map_or(0, |partial| partial.rejected_log_records);
                Attempt::Taken { refused: refused.try_into().unwrap_or(0) }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Attempt::Failed(SourceStatus::refused(format!(
                    "{} responds with {status}: set --otlp-export-headers (RADIXSCOPE_OTLP_EXPORT_HEADERS)",
                    self.url
                )))
            }
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Attempt::Failed(SourceStatus::refused(
                format!("{} responds with {status}: is it OTLP over HTTP (often port 4318)?", self.url),
            )),
            // As OpenTelemetry's specification has it, only these are tried again.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Attempt::Failed(SourceStatus::connecting(format!("{} responds with {status}", self.url)))
            }
            _ => Attempt::Refused(status.to_string()),
        }
    }
}

impl Waiting {
    /// Adds records. `missed`: decisions that were forgotten before they could be read.
    fn add(&mut self, mut records: Vec<LogRecord>, missed: u64) {
        self.counts.dropped += missed;
        while !records.is_empty() {
            let room = self.batches.back().map_or(0, |last| MAX_BATCH - last.records);
            if room == 0 {
                self.batches.push_back(Batch { body: Vec::new(), records: 0 });
            }
            let Some(last) = self.batches.back_mut() else { return };
            let more: Vec<LogRecord> =
                records.drain(..records.len().min((MAX_BATCH - last.records) as usize)).collect();
            let (count, before) = (more.len() as u64, last.body.len());
            // Two messages one after the other are one with the elements of both, as Protocol Buffers has it.
            last.body.extend(request(more).encode_to_vec());
            last.records += count;
            self.records += count;
            self.bytes += last.body.len() - before;
        }
        while self.records > MAX_WAITING || self.bytes > MAX_WAITING_BYTES {
            self.counts.dropped += self.remove_oldest();
        }
    }

    /// Gives how many records it had.
    fn remove_oldest(&mut self) -> u64 {
        let Some(Batch { body, records }) = self.batches.pop_front() else { return 0 };
        self.records -= records;
        self.bytes -= body.len();
        records
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sent, refused, dropped } = *self;
        write!(f, "Decisions sent: {}.", count(sent))?;
        if refused > 0 {
            write!(f, " Refused by the collector: {}.", count(refused))?;
        }
        if dropped > 0 {
            write!(f, " Dropped, because too many waited: {}.", count(dropped))?;
        }
        Ok(())
    }
}

impl Unfinished {
    /// The decisions whose requests have ended since, and how many were forgotten before they were seen here or had ended.
    fn ended(&mut self, now: Millis, cluster: &Cluster) -> (Vec<LogRecord>, u64) {
        let is_new = |decided: &&DecisionEntry| match self.last {
            Some((last, _)) => decided.decision.id > last,
            None => decided.at_ms >= self.since,
        };
        let new: Vec<(DecisionId, Millis)> = cluster
            .decisions()
            .newest_first()
            .take_while(is_new)
            .map(|decided| (decided.decision.id, decided.at_ms))
            .collect();
        let received = cluster.decisions().totals().count;
        let mut missed = match self.last {
            Some((_, before)) => received.saturating_sub(before).saturating_sub(new.len() as u64),
            None => 0,
        };
        if let Some(&(newest, _)) = new.first() {
            self.last = Some((newest, received));
        }
        for (id, at_ms) in new.into_iter().rev() {
            self.decisions.push(id, at_ms);
        }
        let mut records = Vec::new();
        missed +=
            self.decisions.drain_finished(now, cluster, |decided| records.extend(record(cluster, decided)));
        (records, missed)
    }
}

/// The records of one request.
fn request(log_records: Vec<LogRecord>) -> ExportLogsServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = vec![text("service.name", "radixscope"), text("service.version", version)];
    let scope = InstrumentationScope {
        name: "radixscope".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, ..ScopeLogs::default() }];
    let resource = Some(Resource { attributes, ..Resource::default() });
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }],
    }
}

/// A decision, with an attribute for each column that tables of decisions have; what is unknown is left out.
fn record(cluster: &Cluster, decided: &DecisionEntry) -> Option<LogRecord> {
    let of = DecisionFields::of(cluster, decided)?;
    let attributes = DECISION_COLUMNS.iter().filter_map(|&(name, column)| {
        let value = match column {
            // Ids use all 64 bits, and an attribute has 63.
            ReadColumn::Whole(read) => {
                let whole = read(of)?;
                i64::try_from(whole).map_or_else(|_| Value::StringValue(whole.to_string()), Value::IntValue)
            }
            ReadColumn::Real(read) => Value::DoubleValue(read(of).filter(|value| value.is_finite())?),
            ReadColumn::Text(read) => Value::StringValue(read(of)?.into_owned()),
            ReadColumn::Flag(read) => Value::BoolValue(read(of)),
        };
        Some(attribute(format!("radixscope.{name}"), value))
    });
    let nanos = |at: Millis| at.0.saturating_mul(1_000_000);
    let trace_id = decided.decision.trace_id.as_deref().and_then(trace_id).unwrap_or_default();
    Some(LogRecord {
        time_unix_nano: nanos(decided.decided_ms()),
        observed_time_unix_nano: nanos(decided.at_ms),
        severity_number: SeverityNumber::Info.into(),
        event_name: EVENT.to_owned(),
        body: Some(AnyValue { value: Some(Value::StringValue("routing decision".to_owned())) }),
        attributes: attributes.collect(),
        trace_id,
        ..LogRecord::default()
    })
}

/// The 16 bytes of a trace id. `None`: it is none.
fn trace_id(text: &str) -> Option<Vec<u8>> {
    let digits =
        Some(text).filter(|text| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u128::from_str_radix(digits, 16).ok().map(|id| id.to_be_bytes().to_vec())
}

fn text(name: &str, value: &str) -> KeyValue {
    attribute(name.to_owned(), Value::StringValue(value.to_owned()))
}

fn attribute(key: String, value: Value) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: usize) -> Vec<LogRecord> {
        (0..count).map(|at| LogRecord { time_unix_nano: at as u64, ..LogRecord::default() }).collect()
    }

    #[test]
    fn what_waits_is_in_few_batches_and_bounded_and_what_is_dropped_is_counted() {
        let mut waiting = Waiting::default();
        // Second by second, as they end.
        for _ in 0..400 {
            waiting.add(records(3), 0);
        }
        let sizes: Vec<u64> = waiting.batches.iter().map(|batch| batch.records).collect();
        assert_eq!((sizes, waiting.records), (vec![512, 512, 176], 1_200));
        let first = ExportLogsServiceRequest::decode(&*waiting.batches[0].body).unwrap();
        let of_resource =
            |of: &ResourceLogs| of.scope_logs.iter().map(|of| of.log_records.len()).sum::<usize>();
        assert_eq!(first.resource_logs.iter().map(of_resource).sum::<usize>(), 512);
        waiting.add(records(16_384), 7);
        // The two full batches and the third, which was filled up, had to go.
        assert_eq!((waiting.records, waiting.counts.dropped), (16_384 + 1_200 - 3 * 512, 3 * 512 + 7));
        let long = LogRecord { event_name: "x".repeat(4 << 20), ..LogRecord::default() };
        waiting.add(vec![long; 6], 0);
        assert!(waiting.bytes <= MAX_WAITING_BYTES, "{}", waiting.bytes);
        assert_eq!(waiting.bytes, waiting.batches.iter().map(|batch| batch.body.len()).sum::<usize>());
    }
}
