//! `radixscope sources`: a capability probe. Listens to the given or detected sources for three seconds, prints what is there,
//! what data is available, and the command that shows it. It is `serve` without HTTP and without queries to workers, plus one
//! read of discovery and of the frontends' worker lists. It writes nothing.

mod endpoints;
mod registered;
mod report;
mod topics;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::watch;

use radixscope_insight::check::{Checks, Targets};

use super::in_kubernetes::InKubernetes;
use super::server::{Feeds, listen};
use super::{Failure, in_kubernetes, sources};
use crate::config::{Sources, SourcesProbe, TreeDumps};
use crate::shutdown::{Shutdown, over};
use crate::source::discovery::DiscoverySource;
use crate::source::gate::Gate;
use crate::source::prometheus;
use registered::Registered;
use report::ProbeReport;

/// Exit code if the available data is not enough to show caches.
const EXIT_NOTHING: u8 = 1;
/// How long to listen. A deployment with traffic publishes on every topic within a second or two.
const LISTEN_FOR: Duration = Duration::from_secs(3);
/// Messages of history that are read: enough to see the publishers.
const HISTORY_MESSAGES: u64 = 10_000;

/// Listens, then prints the report.
pub(super) async fn run(options: SourcesProbe, mut stopped: Shutdown) -> Result<ExitCode, Failure> {
    let SourcesProbe { mut from, json, limits, .. } = options;
    let mut found = in_kubernetes::find(&mut from).await?;
    if let Some(found) = &mut found {
        found.forget_missing();
    }
    let table = found.as_ref().map(InKubernetes::table);
    // In a cluster other variables and this machine say nothing.
    let endpoints = match &found {
        Some(_) => endpoints::given(&from),
        None => endpoints::find(&mut from).await,
    };
    from.trees.tree_dumps = TreeDumps::Off;
    from.nats.history_messages = from.nats.history_messages.min(HISTORY_MESSAGES);
    let gate = Gate::new(&from);
    let gate = match &found {
        Some(found) => found.gate(gate),
        None => gate,
    };
    let of_cluster = found.as_ref().map(|found| found.discovery(&from)).transpose()?.flatten();
    let feeds = match sources::is_nothing(&from) {
        true => Feeds::only(Vec::new()),
        false => sources::feeds(from.clone(), found)?,
    };
    let (end, ended) = watch::channel(false);
    let checks = Checks::new(Targets { ttft_ms: 0.0, tpot_ms: 0.0 });
    let listening = listen(&limits, checks, feeds, None, &ended)?;
    let look = async {
        let (registered, ()) =
            tokio::join!(registered(&from, of_cluster, &gate), tokio::time::sleep(LISTEN_FOR));
        registered
    };
    let registered = tokio::select! {
        () = over(&mut stopped) => return Err(Failure::Failed(anyhow!("stopped before the probe was done"))),
        registered = look => registered?,
    };
    let report = listening
        .hub
        .read(move |view| ProbeReport::of((&from, table), endpoints, &registered, view.cluster))
        .await;
    let report = report.map_err(|error| Failure::Failed(error.into()))?;
    end.send_replace(true);
    listening.end().await;
    let text = match json {
        true => serde_json::to_string_pretty(&report).map_err(|error| Failure::Failed(error.into()))? + "\n",
        false => report.to_string(),
    };
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::Failed(anyhow!(error).context("writing the report")))?;
    Ok(if report.shows_caches() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOTHING) })
}

/// What is registered. An endpoint that cannot be read reports that in its source status.
async fn registered(
    from: &Sources,
    of_cluster: Option<DiscoverySource>,
    gate: &Gate,
) -> Result<Registered, Failure> {
    let mut registered = Registered::default();
    let source = DiscoverySource::new(from.discovery.clone(), from.nats.namespace.clone());
    let listed = async {
        match source.map_err(|error| Failure::Usage(error.into()))?.or(of_cluster) {
            Some(source) => Ok(source.list().await.ok()),
            None => Ok(None),
        }
    };
    let (listed, answers) = tokio::join!(listed, prometheus::health(&from.prometheus));
    if let Some(entries) = listed? {
        registered.add_entries(&entries);
    }
    let answers = answers.map_err(|error| Failure::Usage(error.into()))?;
    answers.iter().for_each(|(frontend, response)| registered.add_health(frontend, response));
    registered.try_queries(gate).await;
    Ok(registered)
}
