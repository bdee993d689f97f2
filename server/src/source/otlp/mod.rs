//! The source of what exporters and collectors of OpenTelemetry send here (`--otlp`): OTLP over HTTP, in Protocol Buffers. Request traces and
//! spans of routed requests are delivered, everything else is counted: a collector sends all that it has. gRPC is refused in words. The other way, `export` sends decisions to a collector.

#[cfg_attr(not(feature = "otlp-export"), path = "without_export.rs")]
mod export;
mod receive;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::routing::post;
use tokio::net::TcpListener;

use radixscope_dynamo::otlp::Signal;
use radixscope_model::record::LinkState;

use crate::http::Listener;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::link::LastStatus;
pub use export::OtlpExport;
use receive::Receiver;

/// Maximum connections. A collector has few, and so has each frontend.
const MAX_CONNECTIONS: usize = 256;
/// How often it is tried to listen.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Minimum interval of updates of the counts in the state.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// An address at which to receive.
pub struct OtlpSource {
    address: SocketAddr,
    name: String,
}

impl OtlpSource {
    /// Receives at `address` once it runs.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, name: format!("otlp/{address}") }
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Receives until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown.clone();
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = self.listen(&to, &shutdown) => {}
        }
    }

    async fn listen(&self, to: &SourceHandle, shutdown: &Shutdown) -> Result<(), HubEnded> {
        let mut last = LastStatus::default();
        let socket = loop {
            match TcpListener::bind(self.address).await {
                Ok(socket) => break socket,
                Err(error) => {
                    let detail = format!("Cannot listen for OTLP at {}: {error}.", self.address);
                    last.report(to, &self.name, SourceStatus::refused(detail)).await?;
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        };
        let at = socket.local_addr().unwrap_or(self.address);
        let Some(receiver) = Receiver::new(to.clone()) else { return Ok(()) };
        let refusing = receiver.clone();
        let listener = Listener::new(socket, MAX_CONNECTIONS, None)
            .refusing_http2(move |address| refusing.refuse_http2(address));
        let served = listener.serve(routes(receiver.clone()), shutdown.clone());
        let reported = async {
            loop {
                let detail = receiver.detail(at);
                last.report(to, &self.name, SourceStatus::new(LinkState::Live, detail)).await?;
                receiver.changed().await;
                tokio::time::sleep(REPORT_EVERY).await;
            }
        };
        tokio::select! {
            () = served => Ok(()),
            ended = reported => ended,
        }
    }
}

fn routes(receiver: Receiver) -> Router {
    let of = |signal: Signal| {
        post(move |State(receiver): State<Receiver>, request: Request| async move {
            receiver.export(signal, request).await
        })
    };
    Router::new()
        .route("/v1/logs", of(Signal::Logs))
        .route("/v1/traces", of(Signal::Traces))
        .route("/v1/metrics", of(Signal::Metrics))
        .fallback(
            |State(receiver): State<Receiver>, request: Request| async move { receiver.unknown(&request) },
        )
        .method_not_allowed_fallback(|State(receiver): State<Receiver>, request: Request| async move {
            receiver.unknown(&request)
        })
        .with_state(receiver)
}

#[cfg(test)]
mod tests;
