//! `/metrics`: Radixscope's own metrics, read from the state at scrape time. Unknown values are absent, never 0. OpenMetrics if
//! the client accepts it, as Prometheus does, else the classic text format.

mod cluster;
mod server;
mod workers;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::App;
use super::error::{ApiError, code};
use crate::hub::{View, ViewerCounts};
pub(super) use workers::Listed;

const OPEN_METRICS: &str = "application/openmetrics-text";
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Prefix of every name.
const PREFIX: &str = "radixscope";

pub(super) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let (viewers, listed) = (Arc::clone(app.hub.viewers()), Arc::clone(&app.listed));
    let read = move |view: &mut View<'_>| Families::of(view, &viewers, &listed);
    let mut families = app.hub.read(read).await?;
    families.of_refusals(app.hub.refusals());
    if let Some(slots) = &app.slots {
        families.of_connections(slots);
    }
    families.of_logins(&app.failed_logins);
    families.of_readers(&app.readers);
    response(families, &headers)
}

/// Families as the client accepts them.
pub(super) fn response(families: Families, headers: &HeaderMap) -> Result<Response, ApiError> {
    let counters = families.counter_names();
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(families));
    let mut text = String::new();
    encode(&mut text, &registry)
        .map_err(|_| ApiError::new(code::INTERNAL, "the metrics could not be encoded"))?;
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (content_type, text) = if accepted.contains(OPEN_METRICS) {
        (CONTENT_TYPE, text)
    } else {
        (CLASSIC_CONTENT_TYPE, classic(&text, &counters))
    };
    Ok(([(header::CONTENT_TYPE, content_type), (header::VARY, "accept")], text).into_response())
}

/// Converts OpenMetrics to the classic text format: counter families have the name of their samples, and there is no EOF mark.
fn classic(text: &str, counters: &HashSet<String>) -> String {
    let mut classic = String::with_capacity(text.len() + 2_048);
    for line in text.lines().filter(|line| *line != "# EOF") {
        let named = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
        match named.and_then(|rest| rest.split_once(' ')) {
            Some((name, rest)) if counters.contains(name) => {
                classic.extend([&line[.."# HELP ".len()], name, "_total ", rest]);
            }
            _ => classic.push_str(line),
        }
        classic.push('\n');
    }
    classic
}

/// The families of one scrape. The library requires a `'static` collector, so they are copied from the state, and encoded
/// outside the hub.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, Number)>,
}

/// Label names and values, shared by several samples.
pub(super) type Labels = Arc<[(&'static str, String)]>;

#[derive(Clone, Copy, Debug)]
enum Number {
    Gauge(f64),
    Counter(u64),
}

pub(super) fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.map(|(name, value)| (name, value.to_owned())).into()
}

impl Families {
    fn of(view: &View<'_>, viewers: &ViewerCounts, listed: &Mutex<Listed>) -> Self {
        let mut all = Self::default();
        all.of_server(view, viewers);
        all.of_sources(view);
        all.of_tree(view.cluster);
        all.of_pools(view.cluster, view.at_ms);
        all.of_reuse(view.cluster, view.at_ms);
        all.of_workers(view.cluster, &mut listed.lock().unwrap_or_else(PoisonError::into_inner));
        all.of_processes(view);
        all.of_latency(view.cluster, view.at_ms);
        all.of_findings(view.cluster);
        all
    }

    /// Names of counters in OpenMetrics, without `_total`.
    fn counter_names(&self) -> HashSet<String> {
        let counters = self.0.iter().filter(|family| matches!(family.kind, MetricType::Counter));
        counters.map(|family| format!("{PREFIX}_{}", family.name)).collect()
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.gauges(name, help, [(Labels::default(), value)]);
    }

    pub(super) fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.counters(name, help, [(Labels::default(), value)]);
    }

    pub(super) fn gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| (labels, Number::Gauge(value))).collect();
        self.0.push(Family { name, help, kind: MetricType::Gauge, samples });
    }

    pub(super) fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| (labels, Number::Counter(value))).collect();
        self.0.push(Family { name, help, kind: MetricType::Counter, samples });
    }
}

impl Collector for Families {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, kind, samples } in &self.0 {
            let mut family = to.encode_descriptor(name, help, None, *kind)?;
            for (labels, number) in samples {
                if labels.is_empty() {
                    number.encode(family)?;
                    break;
                }
                number.encode(family.encode_family(&&labels[..])?)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn encode(self, to: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Gauge(value) => ConstGauge::new(value).encode(to),
            Self::Counter(value) => ConstCounter::new(value).encode(to),
        }
    }
}
