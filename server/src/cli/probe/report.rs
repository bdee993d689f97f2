//! The output of `radixscope sources`, as text and as JSON.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use radixscope_export::engines::EngineRow;
use radixscope_insight::whatif;
use radixscope_model::id::PoolIx;
use radixscope_model::number_format::count;
use radixscope_model::record::{LinkState, SettingsSource, SourceKind};
use radixscope_state::cluster::{Cluster, SettingsState, SourcedNumber};

use super::endpoints::{Endpoints, FoundBy};
use super::registered::{EventPlane, Registered};
use super::topics::{Topic, topics};
use crate::cli::in_kubernetes::Table;
use crate::config::{DiscoveryAt, Sources, without_query};

/// The result of a probe.
#[derive(Serialize, Debug)]
pub(in crate::cli) struct ProbeReport {
    /// What was found in a cluster. `None`: without `--kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<Table>,
    endpoints: Vec<ProbedSource>,
    /// Dynamo's version, as far as it is known.
    dynamo: Option<&'static str>,
    request_plane: Option<String>,
    event_plane: Option<&'static str>,
    pools: Vec<Pool>,
    /// Engines that are listened to without Dynamo.
    engines: Vec<EngineRow>,
    topics: Vec<Topic>,
    /// The command that shows the deployment. `None`: no endpoint was found.
    command: Option<String>,
}

/// A probed endpoint.
#[derive(Serialize, Debug)]
struct ProbedSource {
    kind: SourceKind,
    name: String,
    why: Option<FoundBy>,
    state: LinkState,
    /// Status as a sentence.
    detail: String,
}

/// A pool of workers.
#[derive(Serialize, Debug)]
struct Pool {
    name: String,
    models: Vec<String>,
    workers: usize,
    block_size_tokens: Option<u32>,
    /// Smallest and largest capacity of its workers, in blocks.
    capacity_blocks: Option<(u64, u64)>,
    /// What its router runs with; empty: unknown.
    settings: Vec<Setting>,
    /// Whether its workers are engines that are listened to without Dynamo.
    has_no_router: bool,
}

/// A number of a router.
#[derive(Serialize, Debug)]
struct Setting {
    name: &'static str,
    value: f64,
    source: SettingsSource,
    /// What each router has, if they differ.
    unequal: Vec<OfReporter>,
}

/// The value of one router.
#[derive(Serialize, Debug)]
struct OfReporter {
    /// The frontend, log or file.
    reporter: String,
    value: f64,
}

impl ProbeReport {
    pub(super) fn of(
        (from, kubernetes): (&Sources, Option<Table>),
        endpoints: Endpoints,
        registered: &Registered,
        cluster: &Cluster,
    ) -> Self {
        Self {
            endpoints: ProbedSource::all(endpoints, cluster),
            dynamo: registered.version(),
            request_plane: registered.request_plane(),
            event_plane: registered.event_plane().map(EventPlane::to_text),
            pools: Pool::all(cluster),
            engines: EngineRow::all(cluster),
            topics: topics(from, registered, cluster),
            command: match &kubernetes {
                Some(table) => Some(in_kubernetes(from, table)),
                None => command(from, registered, cluster),
            },
            kubernetes,
        }
    }

    /// The models of all pools.
    pub(in crate::cli) fn models(&self) -> Vec<String> {
        let all: std::collections::BTreeSet<&String> =
            self.pools.iter().flat_map(|pool| &pool.models).collect();
        all.into_iter().cloned().collect()
    }

    /// The command that shows the deployment; `None`: no endpoint was found.
    pub(in crate::cli) fn command(&self) -> Option<String> {
        self.command.clone()
    }

    /// Whether there are workers and their KV events can be received.
    pub(super) fn shows_caches(&self) -> bool {
        let has_events = self.topics.first().is_some_and(|topic| topic.is_received != Some(false));
        has_events && self.pools.iter().any(|pool| pool.workers > 0)
    }
}

impl ProbedSource {
    fn all(endpoints: Endpoints, cluster: &Cluster) -> Vec<Self> {
        let place = |source: &radixscope_state::cluster::SourceState| Self {
            kind: source.kind,
            name: source.name.clone(),
            why: match source.kind {
                SourceKind::Discovery => endpoints.discovery,
                SourceKind::Nats => endpoints.nats,
                SourceKind::Prometheus => endpoints.frontend,
                _ => None,
            },
            state: source.state,
            detail: source.detail.clone(),
        };
        cluster.sources().iter().map(place).collect()
    }
}

impl Pool {
    fn all(cluster: &Cluster) -> Vec<Self> {
        let pool = |ix| {
            let there: Vec<_> = cluster
                .workers_in(ix)
                .filter(|worker| cluster.worker(*worker).is_some_and(|worker| worker.departure.is_none()))
                .collect();
            let capacities: Vec<u64> =
                there.iter().filter_map(|w| Some(cluster.capacity(*w)?.value)).collect();
            Self {
                name: cluster.pool(ix).map(|pool| pool.name()).unwrap_or_default(),
                models: cluster.models_in(ix).into_iter().map(str::to_owned).collect(),
                workers: there.len(),
                block_size_tokens: cluster.block_tokens(ix),
                capacity_blocks: capacities.iter().min().copied().zip(capacities.iter().max().copied()),
                settings: Setting::all(cluster, ix),
                has_no_router: cluster.is_without_router(ix),
            }
        };
        cluster.pools_in_use().into_iter().map(pool).filter(|pool| pool.workers > 0).collect()
    }
}

impl Setting {
    fn all(cluster: &Cluster, pool: PoolIx) -> Vec<Self> {
        let all = whatif::deployed_numbers(cluster, pool).into_iter();
        let setting = |of: SourcedNumber| Self {
            name: of.number.name,
            value: of.value,
            source: of.source,
            unequal: OfReporter::unequal(cluster, pool, &of),
        };
        all.map(setting).collect()
    }
}

impl OfReporter {
    /// The values of all routers of a pool that a source lists; empty if they are equal.
    fn unequal(cluster: &Cluster, pool: PoolIx, of: &SourcedNumber) -> Vec<Self> {
        let present = cluster.settings_of(pool, of.source).filter(|state| state.left_ms.is_none());
        let value = |state: &SettingsState| {
            let mut named = state.latest.numbers.named().into_iter();
            let (_, value) = named.find(|(name, _)| *name == of.number.name)?;
            Some(Self { reporter: state.of.reporter.clone(), value: value? })
        };
        let all: Vec<Self> = present.filter_map(value).collect();
        if all.windows(2).all(|pair| matches!(pair, [a, b] if a.value == b.value)) { Vec::new() } else { all }
    }
}

/// As one word for a shell.
pub(in crate::cli) fn in_shell(text: &str) -> Cow<'_, str> {
    // Only a zero byte cannot be quoted, and no argument can have one.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

/// The command that shows what is in a cluster.
fn in_kubernetes(from: &Sources, table: &Table) -> String {
    let context = from.kubernetes.context.as_ref().map_or(String::new(), |name| format!(" --context {name}"));
    let namespace = match table.namespace() {
        Some(namespace) => format!(" --namespace {namespace}"),
        None => " --all-namespaces".to_owned(),
    };
    format!("radixscope serve --kubernetes{context}{namespace}")
}

/// The command that shows the deployment, without secrets, which have variables.
fn command(from: &Sources, registered: &Registered, cluster: &Cluster) -> Option<String> {
    let is_live = |kind| {
        let mut sources = cluster.sources().iter().filter(|source| source.kind == kind);
        sources.any(|source| {
            matches!(source.state, LinkState::Live | LinkState::Partial | LinkState::CatchingUp)
        })
    };
    let mut args: Vec<String> = Vec::new();
    if is_live(SourceKind::Discovery) {
        match &from.discovery.discovery {
            Some(DiscoveryAt::Etcd(etcd)) => {
                let scheme =
                    if etcd.servers.iter().any(|url| url.scheme() == "https") { "etcds" } else { "etcd" };
                let host = |url: &url::Url| {
                    format!(
                        "{}:{}",
                        url.host_str().unwrap_or_default(),
                        url.port_or_known_default().unwrap_or(2379)
                    )
                };
                let hosts: Vec<String> = etcd.servers.iter().map(host).collect();
                args.push(format!("--discovery {scheme}://{}", hosts.join(",")));
            }
            Some(DiscoveryAt::Files(folder)) => args.push(format!("--discovery file:{}", folder.display())),
            Some(DiscoveryAt::Kubernetes(at)) => args.push(format!("--discovery {at}")),
            None => {}
        }
    }
    // If discovery shows only ZeroMQ publishers, NATS has no data.
    let is_elsewhere = registered.event_plane() == Some(EventPlane::Zmq) && registered.nats.is_empty();
    if is_live(SourceKind::Nats) && !is_elsewhere {
        let url = |url: &url::Url| {
            let mut url = url.clone();
            // Fails only for an address without a host.
            let _ = (url.set_username(""), url.set_password(None));
            url.to_string()
        };
        args.push(format!("--nats {}", from.nats.nats.iter().map(url).collect::<Vec<_>>().join(",")));
    }
    // Registered brokers are found by discovery.
    let brokers: Vec<String> = from.zmq.zmq_broker.iter().map(ToString::to_string).collect();
    if !brokers.is_empty() {
        args.push(format!("--zmq-broker {}", brokers.join(",")));
    }
    args.extend(from.engines.engine_events.iter().map(|engine| format!("--engine-events {engine}")));
    args.extend(from.engines.indexer.iter().map(|url| format!("--indexer {url}")));
    if is_live(SourceKind::Prometheus) {
        args.extend(from.prometheus.prometheus.iter().map(|of| {
            let is_named = of.url.host_str().is_some_and(|host| !of.name.starts_with(host));
            let name = if is_named { format!("{}=", of.name) } else { String::new() };
            // A query may contain a token.
            format!("--prometheus {name}{}", without_query(&of.url))
        }));
    }
    let path = |path: &PathBuf| path.display().to_string();
    let files = [
        ("--logs", from.logs.logs.iter().map(ToString::to_string).collect::<Vec<_>>()),
        ("--request-trace", from.traces.request_trace.iter().map(path).collect()),
        ("--client-results", from.traces.client_results.iter().map(path).collect()),
    ];
    for (option, paths) in files {
        args.extend(paths.iter().map(|path| format!("{option} {}", in_shell(path))));
    }
    args.extend(from.traces.otlp.iter().map(|at| format!("--otlp {at}")));
    // Otherwise the same targets would be refused.
    args.extend(from.trees.allow_target.iter().map(|network| format!("--allow-target {network}")));
    args.extend(from.nats.namespace.iter().map(|namespace| format!("--namespace {namespace}")));
    (!args.is_empty()).then(|| format!("radixscope serve {}", args.join(" ")))
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.kubernetes {
            writeln!(f, "{table}")?;
        }
        writeln!(f, "Sources")?;
        if self.endpoints.is_empty() {
            writeln!(
                f,
                "  none: no address is given, ETCD_ENDPOINTS, DYN_FILE_KV and NATS_SERVER are not set, and no process listens on \
                 port 2379 (etcd), 4222 (NATS) or 8000 (frontend) of this machine.\n  Give --discovery \
                 etcd://HOST:2379, kubernetes or file:FOLDER, --prometheus http://FRONTEND:8000, or --nats nats://HOST:4222."
            )?;
        }
        for ProbedSource { name, why, detail, .. } in &self.endpoints {
            let why = match why {
                Some(FoundBy::Variable(variable)) => format!(" (from {variable})"),
                Some(FoundBy::Default) => " (default port on this machine)".to_owned(),
                Some(FoundBy::Given) | None => String::new(),
            };
            writeln!(f, "  {name}{why}: {detail}")?;
        }
        if !self.engines.is_empty() {
            writeln!(f, "\nEngines without Dynamo")?;
        }
        for engine in &self.engines {
            writeln!(f, "  {}", engine.to_text())?;
        }
        let unknown = "unknown";
        writeln!(f, "\nDynamo         {}", self.dynamo.unwrap_or(unknown))?;
        writeln!(f, "Request plane  {}", self.request_plane.as_deref().unwrap_or(unknown))?;
        writeln!(f, "Event plane    {}", self.event_plane.unwrap_or(unknown))?;
        writeln!(f, "\nPools")?;
        if self.pools.is_empty() {
            writeln!(f, "  none: no workers found")?;
        }
        for pool in &self.pools {
            writeln!(f, "  {pool}")?;
        }
        writeln!(f, "\nRouter settings")?;
        for pool in &self.pools {
            let name = &pool.name;
            if pool.settings.is_empty() && pool.has_no_router {
                writeln!(f, "  {name}: no router")?;
            } else if pool.settings.is_empty() {
                writeln!(
                    f,
                    "  {name}: unknown; frontends of 1.7 report them, of 1.6 they are read from --policy FILE"
                )?;
            }
            for Setting { name: setting, value, source, unequal } in &pool.settings {
                let values: Vec<String> =
                    unequal.iter().map(|of| format!("{} by {}", of.value, of.reporter)).collect();
                let values = if values.is_empty() { value.to_string() } else { values.join(", ") };
                writeln!(f, "  {name}: {setting} {values} ({})", source.label())?;
            }
        }
        writeln!(f, "\nAvailable data")?;
        for Topic { name, is_received, how, setting } in &self.topics {
            let response = match is_received {
                Some(true) => "yes",
                Some(false) => "no",
                None => "?",
            };
            writeln!(f, "  {response:<3}  {name:<26}  {how}")?;
            if let Some(setting) = setting {
                writeln!(f, "{:35}{setting}", "")?;
            }
        }
        match &self.command {
            Some(command) => writeln!(f, "\nTo show it, run\n  {command}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "(no name)" } else { &self.name };
        let workers =
            if self.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", self.workers) };
        write!(f, "{name}: {workers}")?;
        match self.models.is_empty() {
            true => f.write_str(", model unknown")?,
            false => write!(f, ", model {}", self.models.join(", "))?,
        }
        match self.block_size_tokens {
            Some(tokens) => write!(f, ", blocks of {tokens} tokens")?,
            None => f.write_str(", block size unknown")?,
        }
        match self.capacity_blocks {
            Some((least, most)) if least == most => write!(f, ", {} blocks each", count(most)),
            Some((least, most)) => write!(f, ", {} to {} blocks each", count(least), count(most)),
            None => f.write_str(", capacity unknown"),
        }
    }
}
