//! One request of an exporter: its body within bounds, what is read of it, and the response that OTLP asks for. Whoever is refused gets
//! the reason, and so does the state of the source.

use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use radixscope_dynamo::otlp::{self, Signal};
use radixscope_dynamo::subject::{self, Subject};
use radixscope_dynamo::trace::TraceKind;
use radixscope_intake::Payload;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{count, plural};

use crate::http::{BODY_WITHIN, BodyError, Peer, discard_body, read_body};
use crate::hub::SourceHandle;
use crate::time::now;

/// Largest body as it is sent. The batches of exporters and collectors stay below 4 MiB.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
/// Largest body once decompressed.
const MAX_PLAIN_BYTES: usize = 16 * 1024 * 1024;
/// Bodies that are received and read at a time: 24 MiB each.
const MAX_BODIES: usize = 4;
/// How long the hub may take for one request; longer, and the exporter sends it again.
const HUB_WITHIN: Duration = Duration::from_secs(5);
/// How much of the body of a refused request is read, so that its sender reads the response. One that says it is longer is refused at once.
const DISCARDED_BYTES: usize = 2 * MAX_BODY_BYTES;
/// Requests that ended longer before the start are not delivered: an exporter that was held up sends old ones, as in files of traces.
const RECENT_MS: u64 = 10 * 60_000;
/// When a sender may try again, in seconds.
const RETRY_AFTER_S: &str = "2";

const PROTOBUF: &str = "application/x-protobuf";
/// What a client of gRPC is told, and the operator.
const NO_GRPC: &str = "gRPC is not served here: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, or use the collector's exporter otlphttp";

/// Receives requests; all clones are one.
#[derive(Clone)]
pub(super) struct Receiver(Arc<Shared>);

struct Shared {
    to: SourceHandle,
    subject: Arc<Subject>,
    since: Millis,
    bodies: Semaphore,
    counts: Mutex<Counts>,
    changed: Notify,
}

/// What was received so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Counts {
    requests: u64,
    traces: u64,
    routes: u64,
    not_read: u64,
    older: u64,
    refused_records: u64,
    refused_requests: u64,
    /// Why something was refused last, and whose it was.
    last: Option<String>,
}

/// What a request carries, as far as it is read.
struct Carried {
    payloads: Vec<Payload>,
    counts: Counts,
    fault: Option<String>,
}

/// Why a request is refused.
struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// As OTLP asks for: a `google.rpc.Status`, if the sender speaks Protocol Buffers.
    fn response(self, is_protobuf: bool) -> Response {
        let code = match self.status {
            StatusCode::REQUEST_TIMEOUT => 4,
            StatusCode::PAYLOAD_TOO_LARGE => 8,
            StatusCode::SERVICE_UNAVAILABLE => 14,
            _ => 3,
        };
        let mut response = match is_protobuf {
            true => (self.status, [(header::CONTENT_TYPE, PROTOBUF)], otlp::status(code, &self.why))
                .into_response(),
            false => (self.status, self.why).into_response(),
        };
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response
    }
}

impl Receiver {
    /// `None` cannot be: the subject of request traces is one.
    pub(super) fn new(to: SourceHandle) -> Option<Self> {
        Self::since(to, Millis(now().0.saturating_sub(RECENT_MS)))
    }

    /// The same, without what ended before `since`.
    pub(super) fn since(to: SourceHandle, since: Millis) -> Option<Self> {
        Some(Self(Arc::new(Shared {
            to,
            subject: Arc::new(subject::parse(subject::REQUEST_TRACE)?),
            since,
            bodies: Semaphore::new(MAX_BODIES),
            counts: Mutex::default(),
            changed: Notify::new(),
        })))
    }

    /// Waits until something was received or refused.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Handles a request.
    pub(super) async fn export(&self, signal: Signal, request: Request) -> Response {
        let from = peer(&request);
        let is_protobuf = media_type(request.headers()).as_deref() == Some(PROTOBUF);
        match self.receive(signal, request, from).await {
            Ok(body) => (StatusCode::OK, [(header::CONTENT_TYPE, PROTOBUF)], body).into_response(),
            Err(refusal) => {
                self.refuse(from, &refusal.why);
                refusal.response(is_protobuf)
            }
        }
    }

    /// Handles a request for another path, or one that is no POST.
    pub(super) fn unknown(&self, request: &Request) -> Response {
        let why = "OTLP is received by POST at /v1/logs, /v1/traces and /v1/metrics";
        self.refuse(peer(request), why);
        (StatusCode::NOT_FOUND, why).into_response()
    }

    /// Counts a client of HTTP/2, as those of gRPC are. Returns the frames that tell it why its connection is closed.
    pub(super) fn refuse_http2(&self, from: IpAddr) -> Vec<u8> {
        self.refuse(Some(from), NO_GRPC);
        go_away(NO_GRPC)
    }

    /// What was received, in words.
    pub(super) fn detail(&self, at: SocketAddr) -> String {
        self.counts().detail(at)
    }

    /// The body of the response.
    async fn receive(
        &self,
        signal: Signal,
        request: Request,
        from: Option<IpAddr>,
    ) -> Result<Vec<u8>, Refusal> {
        let (head, body) = request.into_parts();
        let (is_gzip, _place) = match self.admitted(&head.headers) {
            Ok(admitted) => admitted,
            Err(refusal) => {
                if length(&head.headers).is_none_or(|length| length <= DISCARDED_BYTES as u64) {
                    discard_body(body, DISCARDED_BYTES).await;
                }
                return Err(refusal);
            }
        };
        let zipped = (is_gzip, body_of(body).await?);
        let shared = Arc::clone(&self.0);
        // Decompressing and reading take tens of milliseconds at most.
        let read = tokio::task::spawn_blocking(move || shared.read(signal, zipped)).await;
        let failed =
            |error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("reading failed: {error}"));
        let Carried { payloads, counts, fault } = read.map_err(failed)??;
        let delivered = async {
            for payload in payloads {
                self.0.to.deliver(now(), payload).await?;
            }
            Ok::<_, crate::hub::HubEnded>(())
        };
        let behind = "Radixscope is behind with what it received; send it again";
        match tokio::time::timeout(HUB_WITHIN, delivered).await {
            Ok(Ok(())) => {}
            Ok(Err(ended)) => return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, ended.to_string())),
            Err(_) => return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, behind)),
        }
        let refused = counts.refused_records;
        let body = match &fault {
            Some(why) if refused > 0 => otlp::partial_success(refused, why),
            _ => Vec::new(),
        };
        self.count(|all| all.add(&counts, fault.map(|why| whose(from, &why))));
        Ok(body)
    }

    /// Whether a request's body is compressed, and the place in which it may be read.
    fn admitted(&self, headers: &HeaderMap) -> Result<(bool, SemaphorePermit<'_>), Refusal> {
        let is_gzip = encoding(headers)?;
        if length(headers).is_some_and(|length| length > MAX_BODY_BYTES as u64) {
            return Err(too_large());
        }
        let place = self.0.bodies.try_acquire().map_err(|_| {
            let why = format!("{MAX_BODIES} requests are being read; send it again");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)
        })?;
        Ok((is_gzip, place))
    }

    fn refuse(&self, from: Option<IpAddr>, why: &str) {
        tracing::debug!(?from, why, "a request of OTLP is refused");
        self.count(|counts| {
            counts.refused_requests += 1;
            counts.last = Some(whose(from, why));
        });
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts());
        self.0.changed.notify_one();
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn read(&self, signal: Signal, (is_gzip, body): (bool, Bytes)) -> Result<Carried, Refusal> {
        let plain = if is_gzip { unzipped(&body)? } else { body };
        let export = otlp::read(signal, &plain)
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let mut counts = Counts {
            requests: 1,
            not_read: export.not_read,
            refused_records: export.refused,
            ..Counts::default()
        };
        let mut payloads = Vec::with_capacity(export.traces.len() + export.routes.len());
        for json in export.traces {
            match TraceKind::of(json) {
                TraceKind::At(at) if at < self.since.0 => counts.older += 1,
                // Tools, and payloads with the text of prompts.
                TraceKind::Other => counts.not_read += 1,
                TraceKind::At(_) | TraceKind::Unknown => {
                    counts.traces += 1;
                    // A copy, so that a small record does not keep the whole body.
                    let message = Bytes::copy_from_slice(json);
                    payloads.push(Payload::Nats { subject: Arc::clone(&self.subject), message });
                }
            }
        }
        for span in export.routes {
            match span.line().at_ms() {
                Some(at) if at < self.since => counts.older += 1,
                _ => {
                    counts.routes += 1;
                    payloads.push(Payload::RouteSpan(Box::new(span)));
                }
            }
        }
        Ok(Carried { payloads, counts, fault: export.fault.map(|fault| fault.detail) })
    }
}

impl Counts {
    fn add(&mut self, more: &Counts, last: Option<String>) {
        self.requests += more.requests;
        self.traces += more.traces;
        self.routes += more.routes;
        self.not_read += more.not_read;
        self.older += more.older;
        self.refused_records += more.refused_records;
        self.last = last.or(self.last.take());
    }

    fn detail(&self, at: SocketAddr) -> String {
        let mut detail = format!("Listening for OTLP at {at}: ");
        match self.requests {
            0 => detail.push_str("nothing received yet"),
            _ => detail.push_str(&format!(
                "{} and {} read, {} not read",
                plural(self.traces, "request trace", "request traces"),
                plural(self.routes, "routed request", "routed requests"),
                plural(self.not_read, "other record", "other records"),
            )),
        }
        if self.older > 0 {
            let older = count(self.older);
            detail.push_str(&format!("; {older} that ended more than 10 min before the start left out"));
        }
        detail.push('.');
        if let Some(last) = &self.last {
            let requests = plural(self.refused_requests, "request", "requests");
            let records = plural(self.refused_records, "record", "records");
            detail.push_str(&format!(" Refused: {requests} and {records}; the last {last}."));
        }
        detail
    }
}

/// Why something of a sender was refused.
fn whose(from: Option<IpAddr>, why: &str) -> String {
    match from {
        Some(from) => format!("of {from}: {why}"),
        None => format!("({why})"),
    }
}

fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().map(|peer| peer.address)
}

/// The media type without its parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next()?.trim().to_ascii_lowercase())
}

/// Whether a body of Protocol Buffers is compressed.
fn encoding(headers: &HeaderMap) -> Result<bool, Refusal> {
    let unsupported = |why: String| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
    let shown = |text: &str| text.chars().take(80).collect::<String>();
    match media_type(headers).as_deref() {
        Some(PROTOBUF) => {}
        Some("application/grpc") => return Err(unsupported(NO_GRPC.to_owned())),
        Some(other) => {
            let other = shown(other);
            return Err(unsupported(format!("content type {other:?} is not read; send {PROTOBUF}")));
        }
        None => return Err(unsupported(format!("the content type is missing; send {PROTOBUF}"))),
    }
    match headers.get(header::CONTENT_ENCODING).map(|of| of.to_str().unwrap_or("?")) {
        None | Some("" | "identity") => Ok(false),
        Some("gzip") => Ok(true),
        Some(other) => {
            let other = shown(other);
            Err(unsupported(format!("content encoding {other:?} is not read; send gzip or none")))
        }
    }
}

/// How long a body is, as its sender says.
fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large() -> Refusal {
    let why = format!("the body is too large; at most {MAX_BODY_BYTES} bytes are read");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

/// A body within bounds.
async fn body_of(body: Body) -> Result<Bytes, Refusal> {
    read_body(body, MAX_BODY_BYTES).await.map_err(|error| match error {
        BodyError::TooLarge => too_large(),
        BodyError::TooSlow => {
            let why = format!("the body did not arrive within {} s", BODY_WITHIN.as_secs());
            Refusal::new(StatusCode::REQUEST_TIMEOUT, why)
        }
        BodyError::Broken(error) => {
            Refusal::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))
        }
    })
}

/// A body decompressed, within bounds.
fn unzipped(body: &[u8]) -> Result<Bytes, Refusal> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body).take(MAX_PLAIN_BYTES as u64 + 1).read_to_end(&mut plain);
    if plain.len() > MAX_PLAIN_BYTES {
        let why =
            format!("the body is too large; at most {MAX_PLAIN_BYTES} bytes are read once decompressed");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    match read {
        Ok(_) => Ok(plain.into()),
        Err(error) => Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body is no gzip: {error}"))),
    }
}

/// The two frames that end a connection of HTTP/2 (RFC 9113, 6.5 and 6.8): empty settings, and GOAWAY with the error `HTTP_1_1_REQUIRED` and
/// `why`, which clients of gRPC print.
fn go_away(why: &str) -> Vec<u8> {
    // A stream and an error code lie before the text, which is a constant.
    let len = 8 + why.len() as u32;
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    frames.extend_from_slice(&len.to_be_bytes()[1..]);
    frames.extend_from_slice(&[7, 0, 0, 0, 0, 0]);
    frames.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xd]);
    frames.extend_from_slice(why.as_bytes());
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_for_http2_are_as_long_as_they_say() {
        let frames = go_away("no");
        assert_eq!(frames[9..18], [0, 0, 10, 7, 0, 0, 0, 0, 0]);
        assert_eq!(frames.len(), 9 + 9 + 10);
    }
}
