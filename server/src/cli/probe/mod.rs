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
use url::Url;

use radixscope_insight::check::Checks;
use radixscope_model::record::LatencyTargets;
use radixscope_state::cluster::Cluster;

use super::in_kubernetes::{InKubernetes, Table};
use super::server::{Feeds, Listening, listen};
use super::{Failure, in_kubernetes, sources};
use crate::config::{Limits, Sources, SourcesProbe, TreeDumps};
use crate::shutdown::{Shutdown, over};
use crate::source::discovery::DiscoverySource;
use crate::source::gate::Gate;
use crate::source::prometheus;
use endpoints::Endpoints;
use registered::Registered;
pub(super) use report::{ProbeReport, in_shell};

/// Exit code if the available data is not enough to show caches.
const EXIT_NOTHING: u8 = 1;
/// How long to listen. A deployment with traffic publishes on every topic within a second or two.
const LISTEN_FOR: Duration = Duration::from_secs(3);
/// Messages of history that are read: enough to see the publishers.
const HISTORY_MESSAGES: u64 = 10_000;

/// Listens, then prints the report.
pub(super) async fn run(options: SourcesProbe, stopped: Shutdown) -> Result<ExitCode, Failure> {
    let SourcesProbe { from, json, limits, .. } = options;
    let seen = look(from, &limits, stopped).await?;
    let (text, shows_caches) = seen
        .read(move |report, _| {
            let text = match json {
                true => serde_json::to_string_pretty(&report).map(|text| text + "\n"),
                false => Ok(report.to_string()),
            };
            (text, report.shows_caches())
        })
        .await?;
    let text = text.map_err(|error| Failure::Failed(error.into()))?;
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::Failed(anyhow!(error).context("writing the report")))?;
    Ok(if shows_caches { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOTHING) })
}

/// A deployment that was listened to for a while.
pub(super) struct Seen {
    from: Sources,
    table: Option<Table>,
    endpoints: Endpoints,
    registered: Registered,
    listening: Listening,
    end: watch::Sender<bool>,
}

impl Seen {
    /// The processes whose metrics were scraped: name and address.
    pub(super) fn scraped(&self) -> Vec<(String, Url)> {
        self.from.prometheus.prometheus.iter().map(|of| (of.name.clone(), of.url.clone())).collect()
    }

    /// What `of` makes of it; ends listening.
    pub(super) async fn read<T: Send + 'static>(
        self,
        of: impl FnOnce(&ProbeReport, &Cluster) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let Self { from, table, endpoints, registered, listening, end } = self;
        let read = listening
            .hub
            .read(move |view| {
                let report = ProbeReport::of((&from, table), endpoints, &registered, view.cluster);
                of(&report, view.cluster)
            })
            .await;
        let read = read.map_err(|error| Failure::Failed(error.into()))?;
        end.send_replace(true);
        listening.end().await;
        Ok(read)
    }
}

/// Listens to the given or detected sources.
pub(super) async fn look(mut from: Sources, limits: &Limits, mut stopped: Shutdown) -> Result<Seen, Failure> {
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
    let checks = Checks::new(LatencyTargets { ttft_ms: 0.0, itl_ms: 0.0 });
    let listening = listen(limits, checks, feeds, None, &ended)?;
    let look = async {
        let (registered, ()) =
            tokio::join!(registered(&from, of_cluster, &gate), tokio::time::sleep(LISTEN_FOR));
        registered
    };
    let registered = tokio::select! {
        () = over(&mut stopped) => return Err(Failure::Failed(anyhow!("stopped before the probe was done"))),
        registered = look => registered?,
    };
    Ok(Seen { from, table, endpoints, registered, listening, end })
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
