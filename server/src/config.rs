//! Command line and environment: every option with its default, its unit and its variable. Knows no network.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, Resettable, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use radixscope_export::TraceUrl;
use radixscope_sim::{Fault, Topology};
use url::Url;

mod access;
mod base_path;
mod baseline_at;
mod check;
mod discovery_at;
mod engine_at;
mod fleet;
mod host;
mod http_base;
mod indexer_url;
mod invalid;
mod kubernetes;
mod kubernetes_at;
mod log_file;
mod metrics_url;
mod origin;
mod otlp_export;
mod plan;
mod probe;
mod proxy_header;
mod recording;
mod recording_at;
mod redacted;
mod secret;
mod slo_targets;
mod stage;
mod trees;
mod zmq_endpoint;

pub use access::Access;
pub(crate) use access::is_guessable;
pub use base_path::BasePath;
pub use baseline_at::BaselineAt;
pub use check::{Check, CheckMode, MinSeverity, Output};
pub use discovery_at::{DiscoveryAt, EtcdServers};
pub(crate) use engine_at::pool_of_model;
pub use engine_at::{EngineAddress, EngineAt};
pub use fleet::{Fleet, MemberAt, MemberLogin, Members, SecretAt};
pub use host::AllowedHost;
pub use indexer_url::IndexerUrl;
pub use invalid::InvalidOption;
pub use kubernetes::{Deploy, InKubernetes};
pub use kubernetes_at::KubernetesAt;
pub use log_file::LogFile;
pub use metrics_url::MetricsUrl;
pub(crate) use metrics_url::without_query;
pub use origin::{AllowedOrigin, FrameAncestors};
pub use otlp_export::OtlpExportArgs;
pub use plan::{Experiment, Plan};
pub use probe::SourcesProbe;
pub use recording::{BufferArgs, DecisionsAs, Export, Open, Record, RecordArgs, Replay};
pub use recording_at::{RecordingAt, StoreAt, StoreKind};
use redacted::Redacted;
pub(crate) use redacted::without_logins;
pub use secret::Secret;
pub use slo_targets::SloTargets;
pub use stage::{LoadArgs, Stage, TargetUrl};
pub use trees::{CallbackAddress, TreeDumps, Trees};
pub use zmq_endpoint::ZmqEndpoint;

/// A live, in-browser window into NVIDIA Dynamo's KV-cache-aware router.
///
/// Read-only: it changes nothing in the cluster. Each option can also be set by the environment variable named beside it. No
/// other variables are read, except that `sources` reads those of Dynamo that name addresses, and that recordings in buckets
/// take endpoint and credentials from those of the store's own tools (AWS_…, GOOGLE_…, AZURE_…).
#[derive(Parser, Debug)]
#[command(name = "radixscope", version, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads arguments and variables. An empty variable counts as unset, because a Kubernetes overlay cannot remove a variable
    /// that its base sets.
    ///
    /// # Errors
    /// Help, or an invalid option.
    pub fn read() -> Result<Self, clap::Error> {
        let unless_empty = |arg: clap::Arg| {
            let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
            if is_empty { arg.env(Resettable::Reset) } else { arg }
        };
        let command = Self::command().mut_subcommands(|command| command.mut_args(unless_empty));
        let mut matches = command.try_get_matches()?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Self::command()))
    }
}

/// What the binary can do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Show a running Dynamo deployment
    Serve(Box<Serve>),
    /// Show a simulated cluster; needs no Dynamo
    Demo(Box<Demo>),
    /// Show a running Dynamo deployment and hold conversations with its frontend meanwhile, so that there is something to see
    ///
    /// The one command that sends requests for inference: it says what it sends, where and how much, and waits for yes. It is a
    /// show, not a benchmark: to measure, see radixscope plan, which prints commands for aiperf. Example: radixscope stage --target
    /// frontend:8000 --model NAME --discovery etcd://etcd:2379 --logs frontend.log
    Stage(Box<Stage>),
    /// Listen to a Dynamo deployment for a while and report findings, without serving anything
    ///
    /// For recordings, it reports the findings in them, each with its times. Exit code 0: no finding at the end, or only info;
    /// 1: warnings; 2: critical findings; 3: no data, with the reason.
    Check(Box<Check>),
    /// Write everything received from a Dynamo deployment to a file, without serving anything
    Record(Box<Record>),
    /// Serve the page with a recording, to any number of viewers
    Replay(Box<Replay>),
    /// Open what was collected of a run of Dynamo: request traces, logs, metrics, clients' results, in folders and archives
    ///
    /// Puts it together as one recording on one time line, prints what each file was taken for, the clocks and what is absent, and serves
    /// the page with it. Example: radixscope open bundle.tar.gz
    Open(Box<Open>),
    /// Show many Radixscopes on one page, a row for each cluster
    ///
    /// Asks each of them for its figures every few seconds; stores nothing. Example: radixscope fleet --member
    /// eu=radixscope.eu.example:8321
    Fleet(Box<Fleet>),
    /// Convert a recording for other tools
    Export(Box<Export>),
    /// Listen to a Dynamo deployment for a few seconds and print what is there, which data is available, and the command that
    /// shows it
    ///
    /// Uses the given addresses; else those in ETCD_ENDPOINTS, DYN_FILE_KV and NATS_SERVER, and services on this machine. Exit
    /// code 0: caches can be shown; 1: they cannot, and the missing settings are printed.
    Sources(Box<SourcesProbe>),
    /// Print the commands that measure a deployment with KV-aware routing and then with round-robin, with aiperf; runs nothing
    ///
    /// Looks at the deployment as `radixscope sources` does, for the model, the frontends and the command that shows the result.
    Plan(Box<Plan>),
    /// Print the manifests with which Radixscope runs in Kubernetes: role, binding, Deployment and Service; applies nothing
    ///
    /// radixscope deploy --kubernetes --image REGISTRY/radixscope:TAG | kubectl apply -f -
    Deploy(Box<Deploy>),
    /// Print completions of commands and options for a shell
    ///
    /// For bash: radixscope completions bash > /etc/bash_completion.d/radixscope
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of Radixscope, or of one of its commands
    ///
    /// To read it: radixscope man serve | man -l -
    Man {
        /// The command
        #[arg(value_name = "COMMAND")]
        of: Option<String>,
    },
}

/// `radixscope serve`.
#[derive(Args, Debug)]
pub struct Serve {
    /// Sources.
    #[command(flatten)]
    pub from: Sources,
    /// SLO targets and baselines.
    #[command(flatten)]
    pub slo: SloTargets,
    /// Recording.
    #[command(flatten)]
    pub recorded: RecordArgs,
    /// Decisions to a collector of OpenTelemetry.
    #[command(flatten)]
    pub export: OtlpExportArgs,
    /// HTTP server.
    #[command(flatten)]
    pub http: Http,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// Sources.
#[derive(Args, Debug, Clone)]
pub struct Sources {
    /// Kubernetes.
    #[command(flatten)]
    pub kubernetes: InKubernetes,
    /// NATS.
    #[command(flatten)]
    pub nats: Nats,
    /// Discovery.
    #[command(flatten)]
    pub discovery: Discovery,
    /// ZeroMQ.
    #[command(flatten)]
    pub zmq: Zmq,
    /// Engines without Dynamo.
    #[command(flatten)]
    pub engines: Engines,
    /// Logs of Dynamo's processes.
    #[command(flatten)]
    pub logs: Logs,
    /// Files with request traces.
    #[command(flatten)]
    pub traces: Traces,
    /// Metrics to scrape.
    #[command(flatten)]
    pub prometheus: Prometheus,
    /// What routers run with.
    #[command(flatten)]
    pub policy: Policy,
    /// Queries to workers for their blocks.
    #[command(flatten)]
    pub trees: Trees,
}

/// The NATS server to listen to.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "NATS")]
pub struct Nats {
    /// NATS server that Dynamo uses; several, separated by commas, are servers of one cluster [default: none; then one of
    /// --discovery, --zmq-broker, --prometheus or --logs is needed]
    #[arg(long, env = "RADIXSCOPE_NATS", value_name = "URL", value_delimiter = ',', hide_env_values = true, value_parser = Redacted(nats_url))]
    pub nats: Vec<Url>,
    /// Credentials.
    #[command(flatten)]
    pub login: NatsLogin,
    /// Dynamo namespace to show [default: all]; with --kubernetes the namespace of Kubernetes [default: that of the context, or of
    /// the pod]
    #[arg(long, env = "RADIXSCOPE_NAMESPACE", value_name = "NS", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Maximum messages of JetStream history (Dynamo 0.8, 0.9) read per stream at startup; 0 reads none
    #[arg(long, env = "RADIXSCOPE_HISTORY_MESSAGES", value_name = "MESSAGES", default_value_t = 2_000_000)]
    pub history_messages: u64,
}

/// Dynamo's discovery.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Discovery")]
pub struct Discovery {
    #[allow(
        rustdoc::bare_urls,
        rustdoc::broken_intra_doc_links,
        reason = "it is help on the command line too"
    )]
    /// Where Dynamo's processes register: etcd://[user:password@]host:2379 (several hosts separated by commas; etcds:// with
    /// TLS), as in their ETCD_ENDPOINTS, file:FOLDER, as in their DYN_FILE_KV, or kubernetes[:NAMESPACE[@http://HOST:PORT]],
    /// as with Dynamo's operator (default: the namespace and the cluster of the pod; the address is that of kubectl proxy);
    /// provides workers, their capacities and departures, the publishers of the ZeroMQ event plane and the endpoints for
    /// queries [default: not read]
    #[arg(long, env = "RADIXSCOPE_DISCOVERY", value_name = "etcd://HOST:PORT|file:FOLDER|kubernetes[:NS]", hide_env_values = true, value_parser = Redacted(DiscoveryAt::from_str))]
    pub discovery: Option<DiscoveryAt>,
    /// User of etcd, unless the address names one
    #[arg(long, env = "RADIXSCOPE_DISCOVERY_USER", value_name = "NAME", requires = "discovery_password")]
    pub discovery_user: Option<String>,
    /// Password of that user; prefer the variable, as other users can read command lines
    #[arg(
        long,
        env = "RADIXSCOPE_DISCOVERY_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        requires = "discovery_user"
    )]
    pub discovery_password: Option<Secret>,
    /// Certificates of the authorities to trust, as a PEM file [default: the system's]
    #[arg(long, env = "RADIXSCOPE_DISCOVERY_TLS_CA", value_name = "FILE")]
    pub discovery_tls_ca: Option<PathBuf>,
    /// Client certificate for etcd or Kubernetes' API, as a PEM file
    #[arg(long, env = "RADIXSCOPE_DISCOVERY_TLS_CERT", value_name = "FILE", requires = "discovery_tls_key")]
    pub discovery_tls_cert: Option<PathBuf>,
    /// Key of that certificate, as a PEM file
    #[arg(long, env = "RADIXSCOPE_DISCOVERY_TLS_KEY", value_name = "FILE", requires = "discovery_tls_cert")]
    pub discovery_tls_key: Option<PathBuf>,
    /// File with a bearer token for Kubernetes' API, read again each minute and when it is refused [default: the service account's, in a pod;
    /// none if an address is given]
    #[arg(long, env = "RADIXSCOPE_DISCOVERY_TOKEN_FILE", value_name = "FILE")]
    pub discovery_token_file: Option<PathBuf>,
}

impl Discovery {
    /// The client certificate and its key: the option and the file of each.
    pub(crate) fn identity(&self) -> Option<[(&'static str, &Path); 2]> {
        let certificate = self.discovery_tls_cert.as_deref()?;
        let key = self.discovery_tls_key.as_deref()?;
        Some([("--discovery-tls-cert", certificate), ("--discovery-tls-key", key)])
    }
}

/// The ZeroMQ event plane, Dynamo's default from 1.3 on.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "ZeroMQ")]
pub struct Zmq {
    /// XPUB socket of the broker of Dynamo's event plane, the xpub part of DYN_ZMQ_BROKER_URL; several, separated by commas,
    /// are replicas that carry the same messages [default: none; publishers are found by --discovery]
    #[arg(long, env = "RADIXSCOPE_ZMQ_BROKER", value_name = "TCP://HOST:PORT", value_delimiter = ',')]
    pub zmq_broker: Vec<ZmqEndpoint>,
}

/// Engines without Dynamo: vLLM, SGLang, TensorRT-LLM.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Engines without Dynamo")]
pub struct Engines {
    #[allow(
        rustdoc::bare_urls,
        rustdoc::broken_intra_doc_links,
        reason = "it is help on the command line too"
    )]
    /// Engine whose own KV events are received over ZeroMQ, as its --kv-events-config has it: vllm, sglang, trtllm or auto, and
    /// its endpoint. replay=tcp://HOST:PORT, its replay_endpoint, brings what was published before; pool=NAME groups engines of one
    /// model; ranks=N for data-parallel ranks at the ports after it; metrics=URL, its own metrics; bind=true listens here for engines that connect. sglang=http://HOST:PORT
    /// asks SGLang for all of these. Can be repeated, or separated by semicolons [default: none; default pool: the engine's name]
    #[arg(long, env = "RADIXSCOPE_ENGINE_EVENTS", value_name = "ENGINE=ADDRESS[,KEY=VALUE…]", value_delimiter = ';', value_parser = Redacted(EngineAt::from_str))]
    pub engine_events: Vec<EngineAt>,
    /// Standalone KV indexer (python -m dynamo.indexer) or selection service: its index is read and compared with the tree, block by
    /// block. Without another source of KV events, the engines that it lists are listened to. Can be repeated, or separated by commas [default: none]
    #[arg(long, env = "RADIXSCOPE_INDEXER", value_name = "URL", value_delimiter = ',', value_parser = Redacted(IndexerUrl::from_str))]
    pub indexer: Vec<IndexerUrl>,
    /// Seconds between readings of an index, 0.2 to 3600
    #[arg(long, env = "RADIXSCOPE_INDEXER_INTERVAL", value_name = "SECONDS", default_value = "30", value_parser = seconds_to_hour)]
    pub indexer_interval: Duration,
}

/// Logs of Dynamo's frontends and workers.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Dynamo's logs")]
pub struct Logs {
    /// Log of a frontend (cost of each candidate) or of a worker (data that it does not publish); a file is read from its
    /// beginning and followed, also when it is rotated; - reads standard input; can be repeated, or separated by commas in the
    /// variable [default: none; default name: that of the file]
    #[arg(long, env = "RADIXSCOPE_LOGS", value_name = "[NAME=]FILE|-", value_delimiter = ',')]
    pub logs: Vec<LogFile>,
}

/// Request traces of Dynamo's frontends, as they write them to files by default (from 1.3 on, DYN_REQUEST_TRACE=1).
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Dynamo's request traces")]
pub struct Traces {
    /// DYN_REQUEST_TRACE_FILE_PATH of a frontend, a file of it (.jsonl, .jsonl.gz), or a folder with such files; followed as they grow
    /// and new ones are begun; can be repeated, or separated by commas in the variable [default: none]
    #[arg(long, env = "RADIXSCOPE_REQUEST_TRACE", value_name = "PATH", value_delimiter = ',')]
    pub request_trace: Vec<PathBuf>,
    /// What aiperf measures of each request at the client: its profile_export.jsonl, or a folder with it; finished or followed as it
    /// grows; joined with decisions by X-Request-ID, which the frontend's log (--logs) has; can be repeated, or separated by commas in
    /// the variable [default: none]
    #[arg(long, env = "RADIXSCOPE_CLIENT_RESULTS", value_name = "PATH", value_delimiter = ',')]
    pub client_results: Vec<PathBuf>,
    /// Address at which to receive request traces and spans of routed requests from OpenTelemetry: OTLP over HTTP in Protocol Buffers,
    /// from frontends or a collector; everyone who can reach it may add traces [default: none]
    #[arg(long, env = "RADIXSCOPE_OTLP", value_name = "ADDR")]
    pub otlp: Option<SocketAddr>,
}

/// Metrics of Dynamo's frontends and workers.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Dynamo's metrics")]
pub struct Prometheus {
    /// Frontend, or system port of a worker, to scrape: latency, memory, load, events applied; from frontends also the list of
    /// workers (up to 1.6) and the router's settings (1.7); can be repeated, or separated by commas in the variable [default: none;
    /// default name: host:port; default path: /metrics]
    #[arg(
        long,
        visible_alias = "frontend",
        env = "RADIXSCOPE_PROMETHEUS",
        value_name = "[NAME=]URL",
        value_delimiter = ',',
        hide_env_values = true,
        value_parser = Redacted(MetricsUrl::from_str)
    )]
    pub prometheus: Vec<MetricsUrl>,
    /// Scrape interval in seconds, 0.2 to 60; grows up to 10 after failures
    #[arg(long, env = "RADIXSCOPE_PROMETHEUS_INTERVAL", value_name = "SECONDS", default_value = "2", value_parser = seconds_to_minute)]
    pub prometheus_interval: Duration,
    /// Scrape timeout in seconds, 0.2 to 60
    #[arg(long, env = "RADIXSCOPE_PROMETHEUS_TIMEOUT", value_name = "SECONDS", default_value = "5", value_parser = seconds_to_minute)]
    pub prometheus_timeout: Duration,
    /// Bearer token sent with every scrape; prefer the variable, as other users can read command lines
    #[arg(long, env = "RADIXSCOPE_PROMETHEUS_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub prometheus_token: Option<Secret>,
    /// Certificates of the authorities to trust, as a PEM file [default: the system's]
    #[arg(long, env = "RADIXSCOPE_PROMETHEUS_TLS_CA", value_name = "FILE")]
    pub prometheus_tls_ca: Option<PathBuf>,
}

/// What routers run with, where no frontend reports it.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Router settings")]
pub struct Policy {
    /// File of the frontends' --router-policy-config (Dynamo 1.6 or later): its weights are used to compute costs, unless
    /// a frontend reports its own [default: none; Dynamo's defaults]
    #[arg(long, env = "RADIXSCOPE_POLICY", value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// Credentials for NATS.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "NATS")]
pub struct NatsLogin {
    /// Credentials file (JWT and seed)
    #[arg(long, env = "RADIXSCOPE_NATS_CREDS", value_name = "FILE", conflicts_with_all = ["nats_user", "nats_password", "nats_token"])]
    pub nats_creds: Option<PathBuf>,
    /// User [default: user, as Dynamo does, unless the URL names one]
    #[arg(long, env = "RADIXSCOPE_NATS_USER", value_name = "NAME", requires = "nats_password")]
    pub nats_user: Option<String>,
    /// Password; prefer the variable, as other users can read command lines [default: user, as Dynamo does]
    #[arg(
        long,
        env = "RADIXSCOPE_NATS_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        requires = "nats_user"
    )]
    pub nats_password: Option<Secret>,
    /// Token; prefer the variable
    #[arg(long, env = "RADIXSCOPE_NATS_TOKEN", value_name = "TOKEN", hide_env_values = true, conflicts_with_all = ["nats_user", "nats_password"])]
    pub nats_token: Option<Secret>,
    /// Certificates of the authorities to trust, as a PEM file [default: the system's]
    #[arg(long, env = "RADIXSCOPE_NATS_TLS_CA", value_name = "FILE")]
    pub nats_tls_ca: Option<PathBuf>,
}

/// `radixscope demo`.
#[derive(Args, Debug)]
pub struct Demo {
    /// Simulated cluster.
    #[command(flatten)]
    pub simulation: Simulation,
    /// Publish the simulated cluster's messages to this NATS server, on Dynamo's subjects, instead of serving
    #[arg(long, env = "RADIXSCOPE_DEMO_NATS", value_name = "URL", hide_env_values = true, value_parser = Redacted(nats_url), help_heading = "Publish instead of serving")]
    pub nats: Option<Url>,
    /// Publish even if the JetStream stream of that name already holds messages
    #[arg(long, env = "RADIXSCOPE_DEMO_YES", requires = "nats", help_heading = "Publish instead of serving")]
    pub yes: bool,
    /// Do not let readers steer the simulated cluster: without the stage, its bar and its routes
    #[arg(long, env = "RADIXSCOPE_NO_STAGE", help_heading = "Who may read")]
    pub no_stage: bool,
    /// Credentials.
    #[command(flatten)]
    pub login: NatsLogin,
    /// SLO targets and baselines.
    #[command(flatten)]
    pub slo: SloTargets,
    /// Recording.
    #[command(flatten)]
    pub recorded: RecordArgs,
    /// HTTP server.
    #[command(flatten)]
    pub http: Http,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// The simulated cluster.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Simulated cluster")]
pub struct Simulation {
    /// Seed; the same seed gives the same traffic
    #[arg(long, env = "RADIXSCOPE_SEED", default_value_t = 1)]
    pub seed: u64,
    /// Deployment to simulate
    #[arg(long, env = "RADIXSCOPE_DEMO_TOPOLOGY", value_name = "NAME", default_value = Topology::Aggregated.name(), value_parser = TopologyName)]
    pub topology: Topology,
    /// Workers in each pool: prefill and decode each, or each model
    #[arg(long, env = "RADIXSCOPE_WORKERS", default_value_t = 3)]
    pub workers: u16,
    /// KV blocks of each worker [default: as many as an H200 has with Llama 70B in FP8; half of them with the topology
    /// tiers]
    #[arg(long, env = "RADIXSCOPE_BLOCKS", value_name = "BLOCKS")]
    pub blocks: Option<u32>,
    /// Tokens per block
    #[arg(long, env = "RADIXSCOPE_BLOCK_SIZE", value_name = "TOKENS", default_value_t = 32)]
    pub block_size: u32,
    /// Users at once, each with one request in flight [default: 120; 90 with the topology tiers]
    #[arg(long, env = "RADIXSCOPE_CONCURRENCY", value_name = "USERS")]
    pub concurrency: Option<u32>,
    /// How the router chooses a worker
    #[arg(long, env = "RADIXSCOPE_ROUTER", value_enum, default_value_t = Router::Kv)]
    pub router: Router,
    /// Weight of the blocks to prefill in the router's cost
    #[arg(long, env = "RADIXSCOPE_OVERLAP_SCORE_WEIGHT", default_value_t = 1.0)]
    pub overlap_score_weight: f64,
    /// Temperature of the router; 0 always selects the lowest cost
    #[arg(long, env = "RADIXSCOPE_ROUTER_TEMPERATURE", default_value_t = 0.0)]
    pub router_temperature: f64,
    /// The turns of a conversation stay with the worker of the first one, as with --router-session-affinity-ttl-secs; topologies of
    /// Dynamo 1.6 only
    #[arg(long, env = "RADIXSCOPE_SESSION_AFFINITY")]
    pub session_affinity: bool,
    /// Simulated time before the start, in seconds [default: 120; 300 with a fault or a topology that has an effect only once
    /// blocks are evicted]
    #[arg(long, env = "RADIXSCOPE_WARM_UP", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub warm_up: Option<u64>,
    /// Simulated seconds per second; 0: after the warm-up the cluster and its clock stand still
    #[arg(long, env = "RADIXSCOPE_SPEED", value_name = "X", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
    /// Fault to simulate [default: none]
    #[arg(long, env = "RADIXSCOPE_FAULT", value_name = "NAME", value_parser = FaultName)]
    pub fault: Option<Fault>,
    /// When the fault begins: simulated time since the start, warm-up included, in seconds [default: 0; for faults that stop a
    /// process 30 s before the end of the warm-up]
    #[arg(long, env = "RADIXSCOPE_FAULT_AFTER", value_name = "SECONDS", requires = "fault", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub fault_after: Option<u64>,
    /// Component whose workers the fault affects, if there are several [default: the first in which it has an effect]
    #[arg(long, env = "RADIXSCOPE_FAULT_POOL", value_name = "COMPONENT", requires = "fault")]
    pub fault_pool: Option<String>,
}

/// Reads the name of a topology.
#[derive(Clone)]
struct TopologyName;

impl TypedValueParser for TopologyName {
    type Value = Topology;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Topology, clap::Error> {
        let named =
            PossibleValuesParser::new(Topology::ALL.map(Topology::name)).parse_ref(cmd, arg, value)?;
        let topology = Topology::ALL.into_iter().find(|topology| topology.name() == named);
        topology.ok_or_else(|| clap::Error::new(ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |topology: Topology| PossibleValue::new(topology.name()).help(topology.summary());
        Some(Box::new(Topology::ALL.into_iter().map(value)))
    }
}

/// Reads the name of a fault.
#[derive(Clone)]
struct FaultName;

impl TypedValueParser for FaultName {
    type Value = Fault;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Fault, clap::Error> {
        let named = PossibleValuesParser::new(Fault::ALL.map(Fault::name)).parse_ref(cmd, arg, value)?;
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == named);
        fault.ok_or_else(|| clap::Error::new(ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let value = |fault: Fault| PossibleValue::new(fault.name()).help(fault.summary());
        Some(Box::new(Fault::ALL.into_iter().map(value)))
    }
}

/// How the simulated router works.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Router {
    /// By cached prefix and load
    Kv,
    /// Round-robin
    RoundRobin,
}

/// HTTP server.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Serving")]
pub struct Http {
    /// Where and to whom.
    #[command(flatten)]
    pub serving: Serving,
    #[allow(rustdoc::bare_urls, reason = "it is help on the command line too")]
    /// Template of a link from each decision to its trace or to a search in logs: an http or https address with {request_id}, {trace_id}, {session}
    /// or {time_ms} behind the host, such as https://grafana.example.org/trace/{trace_id}; every reader sees it [default: none]
    #[arg(long, env = "RADIXSCOPE_TRACE_URL", value_name = "TEMPLATE", help_heading = "Serving")]
    pub trace_url: Option<TraceUrl>,
    /// Maximum viewers at a time; more get 503
    #[arg(
        long,
        env = "RADIXSCOPE_MAX_VIEWERS",
        value_name = "VIEWERS",
        default_value_t = 500,
        help_heading = "Serving"
    )]
    pub max_viewers: usize,
}

/// Where and to whom it is served.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Serving")]
pub struct Serving {
    /// Address to listen on; with 0.0.0.0 other machines can reach it, and everyone on the network may read unless a token or a
    /// proxy is set
    #[arg(long, env = "RADIXSCOPE_LISTEN", value_name = "ADDR", default_value = "127.0.0.1:8321")]
    pub listen: SocketAddr,
    /// Path below which a proxy serves the page; not needed if the proxy strips it and sends X-Forwarded-Prefix
    #[arg(long, env = "RADIXSCOPE_BASE_PATH", value_name = "/x/", default_value = "/")]
    pub base_path: BasePath,
    /// Sites that may frame the page: sources of the Content-Security-Policy directive frame-ancestors
    #[arg(long, env = "RADIXSCOPE_FRAME_ANCESTORS", value_name = "SRC …", default_value = "'self'")]
    pub frame_ancestors: FrameAncestors,
    #[allow(rustdoc::bare_urls, reason = "it is help on the command line too")]
    /// Other origins whose pages may open the WebSocket and read the API, such as https://example.org; null: frames without an
    /// origin; can be repeated
    #[arg(long, env = "RADIXSCOPE_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<AllowedOrigin>,
    /// Further names under which browsers reach the page, besides localhost and the address itself, such as
    /// radixscope.example.org or *.example.org; can be repeated
    #[arg(long, env = "RADIXSCOPE_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    pub allow_host: Vec<AllowedHost>,
    /// Maximum connections at a time, viewers and others; at the limit idle ones are closed, then new ones get 503 [default:
    /// 500 more than --max-viewers]
    #[arg(long, env = "RADIXSCOPE_MAX_CONNECTIONS", value_name = "CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: Option<u32>,
    /// Access control.
    #[command(flatten)]
    pub access: Access,
}

impl Serving {
    /// Default number of connections beyond viewers.
    const MORE_CONNECTIONS: usize = 500;

    /// Maximum simultaneous connections, so many viewers included.
    pub fn most_connections(&self, viewers: usize) -> usize {
        self.max_connections.map_or(viewers.saturating_add(Self::MORE_CONNECTIONS), |most| most as usize)
    }

    /// Whether everyone on the network may read.
    pub fn is_open_to_all(&self) -> bool {
        !self.listen.ip().to_canonical().is_loopback() && !self.access.is_limited()
    }
}

/// Limits of memory.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Maximum blocks in the tree; beyond it those stored longest ago are hidden, and the page says so
    #[arg(long, env = "RADIXSCOPE_MAX_NODES", value_name = "BLOCKS", default_value_t = radixscope_state::tree::DEFAULT_LIMIT_NODES, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub max_nodes: u32,
    /// Maximum received messages queued for decoding; more are dropped and counted
    #[arg(long, env = "RADIXSCOPE_QUEUE_MESSAGES", value_name = "MESSAGES", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub queue_messages: u32,
    /// Maximum bytes of received messages queued for decoding, in MiB; more are dropped and counted
    #[arg(long, env = "RADIXSCOPE_QUEUE_MIB", value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub queue_mib: u32,
    /// Maximum bytes of recent records kept for viewers that reconnect, in MiB
    #[arg(long, env = "RADIXSCOPE_LOG_MIB", value_name = "MIB", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4095))]
    pub log_mib: u32,
    /// How much history is kept in memory for going back, such as 15m or 1h; 0 keeps none
    #[arg(long, env = "RADIXSCOPE_HISTORY", value_name = "TIME", default_value = "15m", value_parser = history)]
    pub history: Duration,
    /// Maximum bytes of that history, in MiB; beyond it the oldest is dropped
    #[arg(long, env = "RADIXSCOPE_HISTORY_MIB", value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub history_mib: u32,
}

/// Log.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Log")]
pub struct Log {
    /// Format of Radixscope's log on standard error
    #[arg(long, env = "RADIXSCOPE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What to log: a level, or target=level,… [default: info; check, sources and export: warn]
    #[arg(long, env = "RADIXSCOPE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// Form of the log.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

fn history(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(24 * 60 * 60);
    match humantime::parse_duration(text) {
        _ if text == "0" => Ok(Duration::ZERO),
        Ok(time) if time <= MOST => Ok(time),
        Ok(_) => Err("expected at most 24h".to_owned()),
        Err(error) => Err(format!("{error}; expected a time such as 15m, or 0")),
    }
}

/// Errors do not repeat `text`, which may contain credentials.
fn nats_url(text: &str) -> Result<Url, String> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("nats://{text}") };
    let url = Url::parse(&with_scheme).map_err(|error| format!("not a URL: {error}"))?;
    match url.scheme() {
        "nats" | "tls" if url.host_str().is_some_and(|host| !host.is_empty()) => Ok(url),
        "nats" | "tls" => Err("no host; expected nats://host:4222".to_owned()),
        "http" | "https" | "ws" | "wss" => {
            let scheme = url.scheme();
            Err(format!(
                "scheme {scheme:?} is not a NATS scheme; expected nats://host:4222 or tls://host:4222"
            ))
        }
        _ => Err("the scheme is not a NATS scheme; expected nats://host:4222 or tls://host:4222".to_owned()),
    }
}

fn namespace(text: &str) -> Result<String, String> {
    match radixscope_dynamo::subject::subscriptions_of(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a namespace must not contain dots, wildcards or white space".to_owned()),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.0..=1_000.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("expected 0 to 1000".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn seconds_to_minute(text: &str) -> Result<Duration, String> {
    seconds_up_to(text, 60.0)
}

fn seconds_to_hour(text: &str) -> Result<Duration, String> {
    seconds_up_to(text, 3_600.0)
}

fn seconds_up_to(text: &str, most: f64) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.2..=most).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) => Err(format!("expected 0.2 to {most} seconds")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("radixscope").chain(args.iter().copied()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_names_its_variable_and_its_default() {
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            let is_option =
                |a: &&clap::Arg| !a.is_positional() && !matches!(a.get_id().as_str(), "help" | "version");
            for arg in command.get_arguments().filter(is_option) {
                let name = arg.get_id();
                let env = arg.get_env().and_then(|e| e.to_str()).unwrap_or_default();
                assert!(env.starts_with("RADIXSCOPE_"), "{name} of {} has no variable", command.get_name());
            }
        }
    }

    #[test]
    fn metrics_or_logs_alone_are_worth_serving() {
        let cli =
            parse(&["serve", "--prometheus", "fe=a:8000,b:8000", "--prometheus-interval", "0.5"]).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("not serve") };
        let names: Vec<_> = serve.from.prometheus.prometheus.iter().map(|one| one.name.as_str()).collect();
        assert_eq!((names, serve.from.nats.nats.len()), (vec!["fe", "b:8000"], 0));
        assert_eq!(serve.from.prometheus.prometheus_interval, Duration::from_millis(500));
        assert!(parse(&["serve", "--logs", "-"]).is_ok());
    }

    #[test]
    fn scrapes_cannot_be_requested_too_often_or_with_a_token_that_shows() {
        for seconds in ["0", "0.1", "61", "NaN", "-1"] {
            assert!(
                parse(&["serve", "--prometheus", "a", &format!("--prometheus-interval={seconds}")]).is_err()
            );
        }
        let cli = parse(&["serve", "--prometheus", "a", "--prometheus-token", "hidden!"]).unwrap();
        assert!(!format!("{cli:?}").contains("hidden!"));
    }

    #[test]
    fn a_url_of_another_scheme_is_refused_with_a_reason() {
        let error = parse(&["serve", "--nats", "http://x:4222"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("scheme \"http\" is not a NATS scheme"), "{error}");
    }

    #[test]
    fn a_bare_host_is_a_nats_url() {
        let cli = parse(&["serve", "--nats", "broker:4222"]).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("not serve") };
        assert_eq!(serve.from.nats.nats[0].as_str(), "nats://broker:4222");
    }

    #[test]
    fn a_namespace_with_a_wildcard_is_refused() {
        assert!(parse(&["serve", "--nats", "nats://x", "--namespace", "a.*"]).is_err());
    }

    #[test]
    fn a_password_never_shows() {
        let cli = parse(&["serve", "--nats", "nats://x", "--nats-user", "u", "--nats-password", "hidden!"])
            .unwrap();
        assert!(!format!("{cli:?}").contains("hidden!"));
    }

    #[test]
    fn a_user_without_a_password_is_an_error() {
        assert!(parse(&["serve", "--nats", "nats://x", "--nats-user", "u"]).is_err());
    }

    #[test]
    fn every_topology_has_its_name_and_the_aggregated_one_needs_none() {
        let topology = |args: &[&str]| {
            let Command::Demo(demo) = parse(args).unwrap().command else { panic!("not demo") };
            demo.simulation.topology
        };
        assert_eq!(topology(&["demo"]), Topology::Aggregated);
        for named in Topology::ALL {
            assert_eq!(topology(&["demo", "--topology", named.name()]), named);
        }
        let error = parse(&["demo", "--topology", "ring"]).unwrap_err();
        assert!(error.to_string().contains("two-models"), "{error}");
    }

    #[test]
    fn every_fault_has_its_name_and_only_a_fault_has_a_time() {
        for fault in Fault::ALL {
            let cli = parse(&["demo", "--fault", fault.name()]).unwrap();
            let Command::Demo(demo) = cli.command else { panic!("not demo") };
            assert_eq!(demo.simulation.fault, Some(fault));
        }
        let error = parse(&["demo", "--fault", "gremlins"]).unwrap_err();
        assert!(error.to_string().contains("kill-worker"), "{error}");
        assert!(parse(&["demo", "--fault-after", "60"]).is_err());
    }
}
