//! Bounds around Kubernetes' client, which has none: when a response begins and ends, how long it and a line of a watch are, and
//! how soon a watch may follow another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use kube::client::{Body, DynBody};
use tokio::time::{Instant, sleep_until, timeout_at};
use tower::{BoxError, Layer, Service};

/// Timeout until a response begins, and of each next part of one that is no stream.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// Timeout of a response that is no stream.
const WHOLE_WITHIN: Duration = Duration::from_secs(60);
/// Longest response that is no stream. The client holds it four times while it reads it.
pub(super) const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// Longest line of a watch: an object, of at most 1.5 MiB.
const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;
/// Least time between the beginnings of two watches of one kind: a server that ends each at once would be asked again at once.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// A response exceeds a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Exceeded {
    #[error("no response within 5 s")]
    Silent,
    #[error("a response takes longer than 60 s")]
    Late,
    #[error("a response is longer than 8 MiB")]
    Long,
    #[error("a line of a watch is longer than 4 MiB")]
    LongLine,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Bounds {
    /// When each watch may begin again, by its path.
    watches: Arc<Mutex<HashMap<String, Instant>>>,
}

impl<S> Layer<S> for Bounds {
    type Service = Bounded<S>;

    fn layer(&self, inner: S) -> Bounded<S> {
        Bounded { inner, bounds: self.clone() }
    }
}

/// A client within [`Bounds`].
pub(super) struct Bounded<S> {
    inner: S,
    bounds: Bounds,
}

/// What a response is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Whole when it is read.
    Document,
    /// Lines, as things change.
    Watch,
    /// A log, or a connection: bounded by who reads it.
    Stream,
}

impl Kind {
    fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let asks = |name: &str| {
            let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
            query.into_iter().any(|(key, value)| key == name && matches!(&*value, "true" | "1" | ""))
        };
        match uri.path().rsplit('/').next() {
            Some("log" | "portforward") => Self::Stream,
            _ if asks("watch") => Self::Watch,
            _ => Self::Document,
        }
    }
}

impl<S> Service<Request<Body>> for Bounded<S>
where
    S: Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let kind = Kind::of(&request);
        let begin_at = if kind == Kind::Watch { self.bounds.begin_at(request.uri().path()) } else { None };
        let responding = self.inner.call(request);
        Box::pin(async move {
            if let Some(begin_at) = begin_at {
                sleep_until(begin_at).await;
            }
            let response = timeout_at(Instant::now() + WITHIN, responding).await;
            let response = response.map_err(|_| BoxError::from(Exceeded::Silent))??;
            Ok(response.map(|body| bounded(body, kind)))
        })
    }
}

impl Bounds {
    /// When a watch may begin; `None`: now.
    fn begin_at(&self, path: &str) -> Option<Instant> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        watches.retain(|_, next| *next > now);
        let begin_at = watches.get(path).copied();
        watches.insert(path.to_owned(), begin_at.unwrap_or(now) + WATCH_EVERY);
        begin_at
    }
}

/// A response that is being read.
struct Reading {
    body: Box<DynBody>,
    kind: Kind,
    until: Instant,
    /// Of the document, or of the line.
    bytes: usize,
}

fn bounded(body: Box<DynBody>, kind: Kind) -> UnsyncBoxBody<Bytes, BoxError> {
    let reading = Reading { body, kind, until: Instant::now() + WHOLE_WITHIN, bytes: 0 };
    let frames = stream::unfold(Some(reading), |reading| async {
        let mut reading = reading?;
        match reading.next().await? {
            Ok(frame) => Some((Ok(frame), Some(reading))),
            Err(error) => Some((Err(error), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        let frame = match self.kind {
            Kind::Document => {
                let soon = Instant::now() + WITHIN;
                let late = if self.until < soon { Exceeded::Late } else { Exceeded::Silent };
                match timeout_at(soon.min(self.until), self.body.frame()).await {
                    Ok(frame) => frame?,
                    Err(_) => return Some(Err(late.into())),
                }
            }
            Kind::Watch | Kind::Stream => self.body.frame().await?,
        };
        let exceeded = frame.as_ref().ok().and_then(Frame::data_ref).and_then(|data| self.count(data));
        Some(exceeded.map_or(frame, |exceeded| Err(exceeded.into())))
    }

    fn count(&mut self, data: &[u8]) -> Option<Exceeded> {
        match self.kind {
            Kind::Document => {
                self.bytes = self.bytes.saturating_add(data.len());
                (self.bytes > MAX_RESPONSE_BYTES).then_some(Exceeded::Long)
            }
            Kind::Watch => {
                // A line that is whole was as long as it was: only what is held without an end is bounded.
                self.bytes = match memchr::memrchr(b'\n', data) {
                    Some(at) => data.len() - at - 1,
                    None => self.bytes.saturating_add(data.len()),
                };
                (self.bytes > MAX_LINE_BYTES).then_some(Exceeded::LongLine)
            }
            Kind::Stream => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::StreamExt as _;
    use tower::ServiceExt as _;

    use super::*;

    /// What becomes of a response in these parts, as its length or why it ended.
    async fn read(
        address: &str,
        parts: impl Iterator<Item = Bytes> + Send + 'static,
    ) -> Result<usize, Exceeded> {
        let parts = Mutex::new(Some(parts));
        let server = tower::service_fn(move |_: Request<Body>| {
            let parts = parts.lock().unwrap().take().unwrap();
            let frames = stream::iter(parts.map(|part| Ok::<_, Infallible>(Frame::data(part)))).boxed();
            let body: Box<DynBody> = Box::new(StreamBody::new(frames).map_err(BoxError::from));
            std::future::ready(Ok::<_, BoxError>(Response::new(body)))
        });
        let client = Bounds::default().layer(server);
        let request = Request::get(address).body(Body::empty()).unwrap();
        let response = client.oneshot(request).await.unwrap();
        match response.into_body().collect().await {
            Ok(body) => Ok(body.to_bytes().len()),
            Err(error) => Err(*error.downcast::<Exceeded>().unwrap()),
        }
    }

    #[tokio::test]
    async fn documents_and_lines_are_bounded_and_streams_are_not() {
        let part = || Bytes::from(vec![b'x'; 1024 * 1024]);
        let parts = move |count: usize| std::iter::repeat_with(part).take(count);
        assert_eq!(read("/api/v1/pods?limit=100", parts(8)).await, Ok(MAX_RESPONSE_BYTES));
        assert_eq!(read("/api/v1/pods?limit=100", parts(9)).await, Err(Exceeded::Long));
        assert_eq!(read("/api/v1/pods?&watch=true", parts(5)).await, Err(Exceeded::LongLine));
        let lines = move |count: usize| parts(count).flat_map(|part| [part, Bytes::from_static(b"\n")]);
        assert_eq!(read("/api/v1/pods?&watch=true", lines(50)).await, Ok(50 * (1024 * 1024 + 1)));
        let log = "/api/v1/namespaces/ns/pods/a/log?follow=true";
        assert_eq!(read(log, parts(20)).await, Ok(20 * 1024 * 1024));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_is_not_waited_for() {
        let silent = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Box<DynBody>>, BoxError>>()
        });
        let client = Bounds::default().layer(silent);
        let error = client.oneshot(Request::get("/version").body(Body::empty()).unwrap()).await.unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Exceeded::Silent));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_does_not_follow_another_at_once() {
        let bounds = Bounds::default();
        let start = Instant::now();
        assert_eq!(bounds.begin_at("/a"), None);
        assert_eq!(bounds.begin_at("/a"), Some(start + WATCH_EVERY));
        assert_eq!(bounds.begin_at("/b"), None);
        tokio::time::advance(3 * WATCH_EVERY).await;
        assert_eq!(bounds.begin_at("/a"), None);
    }
}
