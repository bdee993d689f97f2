//! The sources that the command line names, for `serve`, `record` and `check`.

use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::watch;

use radixscope_model::record::SourceKind;

use super::in_kubernetes::InKubernetes;
use super::server::{Feed, Feeds};
use super::{Failure, policy_file};
use crate::config::{EngineAt, IndexerUrl, LogFile, MetricsUrl, Sources, TreeDumps};
use crate::source::gate::Gate;
use crate::source::traces::TraceFiles;
use crate::source::{discovery, indexer, logs, nats, otlp, prometheus, traces, trees, zmq};

/// Whether no source is given.
pub(super) fn is_nothing(from: &Sources) -> bool {
    let Sources { kubernetes, nats, discovery, zmq, engines, logs, traces, prometheus, .. } = from;
    let has_plane = kubernetes.kubernetes
        || !nats.nats.is_empty()
        || discovery.discovery.is_some()
        || !zmq.zmq_broker.is_empty()
        || !engines.engine_events.is_empty()
        || !engines.indexer.is_empty();
    let has_traces = !traces.request_trace.is_empty() || traces.otlp.is_some();
    !has_plane && logs.logs.is_empty() && !has_traces && prometheus.prometheus.is_empty()
}

/// A feed for each. `found`: what `--kubernetes` found, see [`in_kubernetes::find`].
pub(super) fn feeds(from: Sources, found: Option<InKubernetes>) -> Result<Feeds, Failure> {
    if is_nothing(&from) {
        return Err(Failure::Usage(anyhow!(
            "nothing to listen to: give --kubernetes, --discovery, --nats, --zmq-broker, --engine-events, --indexer, --prometheus, --logs, --request-trace or --otlp; `radixscope sources` detects \
             what is there and prints the command"
        )));
    }
    let gate = Gate::new(&from);
    let gate = Arc::new(match &found {
        Some(found) => found.gate(gate),
        None => gate,
    });
    let Sources {
        nats: listen_to,
        discovery,
        zmq,
        engines,
        logs,
        traces,
        prometheus: mut scraped,
        trees: asked,
        policy,
        ..
    } = from.clone();
    scraped.prometheus.extend(engines.engine_events.iter().filter_map(|engine| engine.metrics.clone()));
    let settings = policy_file::settings(policy.policy.as_deref())?;
    let namespace = listen_to.namespace.clone();
    let conflict = LogFile::conflict(&logs.logs).or_else(|| MetricsUrl::conflict(&scraped.prometheus));
    let conflict = conflict.or_else(|| EngineAt::conflict(&engines.engine_events));
    let conflict = conflict.or_else(|| IndexerUrl::conflict(&engines.indexer));
    if let Some(conflict) = conflict {
        return Err(Failure::Usage(anyhow!(conflict)));
    }
    let of_cluster = found.as_ref().and_then(InKubernetes::nats);
    let request_plane = match listen_to.nats.is_empty() {
        true => of_cluster,
        false => {
            let target = nats::Target::new(&listen_to.nats, &listen_to.login);
            Some(target.map_err(|error| Failure::Usage(error.into()))?.fixed())
        }
    };
    let asks = trees::TreeSource::new(asked.callback, request_plane, &gate);
    let mut feeds = Vec::new();
    // Discovery comes first, so that workers are known before their events arrive.
    let given = discovery::DiscoverySource::new(discovery, namespace.clone());
    let given = given.map_err(|error| Failure::Usage(error.into()))?;
    let source = match (given, &found) {
        (None, Some(found)) => found.discovery(&from)?,
        (given, _) => given,
    };
    let is_found = source.is_some();
    let has_events = is_found
        || found.is_some()
        || !listen_to.nats.is_empty()
        || !zmq.zmq_broker.is_empty()
        || !engines.engine_events.is_empty();
    let lists = (!has_events && !engines.indexer.is_empty()).then(|| watch::Sender::new(zmq::Lists::new()));
    feeds.extend(source.map(|source| {
        let name = source.name().to_owned();
        Feed::new(name, SourceKind::Discovery, |to, stopped| source.run(to, stopped))
    }));
    if !has_events && lists.is_none() {
        tracing::warn!(
            "no source of KV events: cached blocks stay unknown without --nats, --discovery, --zmq-broker, --engine-events or --indexer"
        );
    }
    if !listen_to.nats.is_empty() {
        let source = nats::NatsSource::new(listen_to, &gate).map_err(|error| Failure::Usage(error.into()))?;
        let name = source.name().to_owned();
        feeds.push(Feed::new(name, SourceKind::Nats, |to, stopped| source.run(to, stopped)));
    }
    // Brokers are connected at once, other publishers as discovery names them.
    if is_found || !zmq.zmq_broker.is_empty() {
        let source = zmq::ZmqSource::new(zmq.zmq_broker, namespace, &gate);
        feeds.push(Feed::new(source.name(), SourceKind::Zmq, |to, stopped| source.run(to, stopped)));
    }
    if !engines.engine_events.is_empty() {
        let source = zmq::EngineSource::new(engines.engine_events, &gate);
        let source = source.map_err(|error| Failure::Usage(error.into()))?;
        feeds.push(Feed::new(source.name(), SourceKind::Engines, |to, stopped| source.run(to, stopped)));
    }
    if let Some(lists) = &lists {
        let source = zmq::ListedEngines::new(lists.subscribe(), &gate);
        let name = zmq::ListedEngines::NAME.to_owned();
        feeds.push(Feed::new(name, SourceKind::Engines, |to, stopped| source.run(to, stopped)));
    }
    let sources = indexer::IndexerSource::all(engines.indexer, engines.indexer_interval, lists.as_ref());
    feeds.extend(sources.map_err(|error| Failure::Usage(error.into()))?.into_iter().map(|source| {
        Feed::new(source.name().to_owned(), SourceKind::Indexer, |to, stopped| source.run(to, stopped))
    }));
    let sources = prometheus::PrometheusSource::all(scraped).map_err(|error| Failure::Usage(error.into()))?;
    feeds.extend(sources.into_iter().map(|source| {
        Feed::new(source.name().to_owned(), SourceKind::Prometheus, |to, stopped| source.run(to, stopped))
    }));
    feeds.extend(logs.logs.into_iter().map(|log| {
        let source = logs::LogSource::new(log);
        Feed::new(source.name().to_owned(), SourceKind::Logs, |to, stopped| source.run(to, stopped))
    }));
    if let Some(found) = found {
        feeds.extend(found.feeds(&from, &gate)?);
    }
    feeds.extend(traces.otlp.map(|address| {
        let source = otlp::OtlpSource::new(address);
        Feed::new(source.name().to_owned(), SourceKind::Otlp, |to, stopped| source.run(to, stopped))
    }));
    for (files, kind, paths) in [
        (TraceFiles::RequestTraces, SourceKind::RequestTraces, traces.request_trace),
        (TraceFiles::ClientResults, SourceKind::ClientResults, traces.client_results),
    ] {
        let sources = traces::TraceSource::all(files, paths);
        let sources = sources.map_err(|error| Failure::Usage(anyhow!(error)))?;
        feeds.extend(
            sources.into_iter().map(|source| {
                Feed::new(source.name().to_owned(), kind, |to, stopped| source.run(to, stopped))
            }),
        );
    }
    // Without events the blocks from a query would go stale.
    let by_dynamo = |feed: &Feed| feed.kind().is_event_plane() && feed.kind() != SourceKind::Engines;
    let has_events = feeds.iter().any(by_dynamo);
    let tree_dumps = if has_events { asked.tree_dumps } else { TreeDumps::Off };
    if tree_dumps != TreeDumps::Off {
        feeds.push(Feed::new(trees::NAME.to_owned(), SourceKind::WorkerTrees, |to, stopped| {
            asks.run(to, stopped)
        }));
    }
    let refusals = Arc::clone(gate.refusals());
    Ok(Feeds {
        feeds,
        tree_dumps: tree_dumps.into(),
        verify_every: asked.verify_every,
        refusals,
        settings,
        stage: None,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::config::{Cli, Command};

    fn feeds_of(args: &[&str]) -> Result<Feeds, Failure> {
        let cli = Cli::try_parse_from(["radixscope", "serve"].iter().chain(args)).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("not serve") };
        feeds(serve.from, None)
    }

    #[test]
    fn nothing_to_listen_to_is_an_error_that_names_the_options() {
        let Err(Failure::Usage(error)) = feeds_of(&[]) else { panic!("an error of usage") };
        let text = error.to_string();
        for option in [
            "--kubernetes",
            "--discovery",
            "--nats",
            "--zmq-broker",
            "--engine-events",
            "--prometheus",
            "--logs",
            "--request-trace",
            "--otlp",
        ] {
            assert!(text.contains(option), "{text}");
        }
        assert!(feeds_of(&["--prometheus", "http://a:8000/metrics"]).is_ok());
    }
}
