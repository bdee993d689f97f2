//! Engines without Dynamo: vLLM, SGLang and TensorRT-LLM publish their KV events themselves, over ZeroMQ.
//!
//! # How it works
//! Each rank of each engine is a publisher with a socket of its own, at the engine's port plus its rank; a connection is a task, and all
//! run on one thread as those to Dynamo's publishers do. Batches are numbered from 0 for each process, and the latest (10,000 by default)
//! can be requested again from a second socket. So a late listener begins with those, and what a break of the connection cost is requested
//! when it is back (`sequencer`). Only frames are read here. SGLang says over HTTP where it publishes (`server_info`); engines whose
//! endpoint names a host connect to this process instead (`bound`). Those in pods (`pods`) and those that an indexer lists (`listed`) come
//! and go. `/kv_cache_events` of TensorRT-LLM is never requested: reading it
//! takes the events from whom they are for.

mod attached;
mod bound;
mod feed;
mod listed;
#[cfg(feature = "kubernetes")]
mod pods;
mod sequencer;
mod server_info;

#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep};
use xxhash_rust::xxh3::xxh3_64;

use radixscope_dynamo::subject::Subject;
use radixscope_intake::EnginePublisher;
use radixscope_model::id::WorkerId;
use radixscope_model::record::{Engine, LinkState};

use super::links::{ENGINES, Links, PublisherLink};
use super::peer::Timeouts;
use super::{LinkReport, MAX_PUBLISHERS, MAX_REPORTS, STATUS_EVERY, run_with_sockets, wait_after};
use crate::config::{EngineAddress, EngineAt, InvalidOption, ZmqEndpoint};
use crate::hub::SourceHandle;
use crate::shutdown::Shutdown;
use crate::source::SourceStatus;
use crate::source::gate::{Crossing, Evidence, Gate};
use crate::source::link::StatusSender;
use attached::Outputs;
use bound::Bound;
use feed::{Feed, Output};
pub use listed::{ListedEngine, ListedEngines, Lists};
#[cfg(feature = "kubernetes")]
pub use pods::PodEngines;
use server_info::{Client, Layout, Socket, ranks_of};

/// Engines named in the name of the source; of more, how many.
const NAMED: usize = 3;
/// How often SGLang's server is asked again where it publishes: it may have been started anew with other ports.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// Engines that are listened to directly.
pub struct EngineSource {
    engines: Vec<EngineAt>,
    client: Client,
    gate: Arc<Gate>,
    timeouts: Timeouts,
}

/// What an engine's publishers have in common.
#[derive(Clone)]
struct Named {
    engine: Option<Engine>,
    subject: Arc<Subject>,
    /// Tells pods of one name from each other; empty outside of Kubernetes.
    pod_uid: Box<str>,
}

impl Named {
    fn of(engine: &EngineAt) -> Self {
        let subject = Arc::new(Subject::of_engines(&engine.pool));
        Self { engine: engine.engine, subject, pod_uid: Box::default() }
    }

    /// The name of the publisher at `endpoint` of the engine `who`: the address of a pod says little.
    fn name_at(&self, endpoint: &ZmqEndpoint, who: &str) -> String {
        if self.pod_uid.is_empty() { endpoint.to_string() } else { format!("{endpoint} of {who}") }
    }

    /// The publisher `name` of the engine `who`.
    fn publisher(&self, who: &str, name: &str, rank: Option<u32>) -> EnginePublisher {
        let id = |name: &str| xxh3_64(format!("{name}{}", self.pod_uid).as_bytes());
        EnginePublisher {
            name: name.into(),
            engine_name: who.into(),
            engine: self.engine,
            worker_id: WorkerId(id(who)),
            rank,
            key: id(name),
            subject: Arc::clone(&self.subject),
        }
    }
}

impl EngineSource {
    /// A source for these engines.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(engines: Vec<EngineAt>, gate: &Arc<Gate>) -> Result<Self, InvalidOption> {
        Ok(Self { engines, client: Client::new()?, gate: Arc::clone(gate), timeouts: Timeouts::DEFAULT })
    }

    /// Its name as a source.
    pub fn name(&self) -> String {
        let named: Vec<_> = self.engines.iter().take(NAMED).map(EngineAt::shown).collect();
        let more = self.engines.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = if self.engines.len() == 1 { "engine" } else { "engines" };
        format!("{what} {}{more}", named.join(", "))
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let name = self.name();
        run_with_sockets(("engines", name), to, shutdown, |to, status| self.listen(to, status)).await;
    }

    async fn listen(self, to: SourceHandle, status: StatusSender) {
        let mut links = Links::new(ENGINES);
        let (report, mut reports) = mpsc::channel(MAX_REPORTS);
        let mut next_id = 0;
        let mut link = |name: String, links: &mut Links| {
            next_id += 1;
            links.add(next_id, name);
            LinkReport { id: next_id, to: report.clone() }
        };
        for engine in &self.engines {
            let named = Named::of(engine);
            let (gate, timeouts) = (Arc::clone(&self.gate), self.timeouts);
            match &engine.address {
                EngineAddress::Publisher(first) => {
                    let layout = Layout::of_ranks(first, engine.replay.as_ref(), engine.ranks);
                    for socket in &layout.sockets {
                        if links.len() == MAX_PUBLISHERS {
                            links.excluded += 1;
                            continue;
                        }
                        let report = link(socket.endpoint.to_string(), &mut links);
                        let (who, way) = (first.to_string(), (&gate, timeouts));
                        let (feed, output) = feed((&named, &who), (socket, Evidence::Operator), way, &to);
                        // In the order of the command line.
                        output.link(LinkState::Connecting, "");
                        tokio::spawn(feed.listen(output, report));
                    }
                }
                EngineAddress::Here(first) => {
                    for (rank, endpoint) in ranks_of(first, engine.ranks).into_iter().enumerate() {
                        let report = link(format!("listening at {endpoint}"), &mut links);
                        let rank = (engine.ranks > 1).then_some(rank as u32);
                        let bound = Bound { endpoint, named: named.clone(), rank, to: to.clone(), timeouts };
                        tokio::spawn(bound.listen(report));
                    }
                }
                EngineAddress::Server(url) => {
                    let report = link(engine.shown(), &mut links);
                    let server = Server {
                        url: url.clone(),
                        host: None,
                        evidence: None,
                        shown: engine.shown(),
                        client: self.client.clone(),
                        named,
                        gate,
                        timeouts,
                        outputs: Arc::default(),
                    };
                    tokio::spawn(server.listen(to.clone(), report));
                }
            }
        }
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some((id, status)) = reports.recv() => links.set_status(id, status),
            }
            let mut now = links.status();
            if let Some(refused) = self.gate.refusals().sentence(Crossing::ZmqConnection.as_str()) {
                now.detail.push_str(&format!(" Connections: {refused}"));
            }
            status.set(now);
        }
    }
}

/// The publisher of a rank. `who`: the engine.
fn feed(
    (named, who): (&Named, &str),
    (socket, evidence): (&Socket, Evidence<'static>),
    (gate, timeouts): (&Arc<Gate>, Timeouts),
    to: &SourceHandle,
) -> (Feed, Arc<Output>) {
    let Socket { endpoint, replay, rank } = socket.clone();
    let publisher = named.publisher(who, &named.name_at(&endpoint, who), rank);
    let output = Output::new(publisher, replay.is_some(), to.clone());
    (Feed { endpoint, replay, evidence, gate: Arc::clone(gate), timeouts }, output)
}

/// SGLang's HTTP server, which says where it publishes.
struct Server {
    url: url::Url,
    /// Where it is, if that is another host than the one that is asked.
    host: Option<String>,
    /// What shows that its publishers may be connected to. `None`: whoever gave its address, if they are there too.
    evidence: Option<Evidence<'static>>,
    shown: String,
    client: Client,
    named: Named,
    gate: Arc<Gate>,
    timeouts: Timeouts,
    /// What it publishes now.
    outputs: Outputs,
}

impl Server {
    /// Asks again and again, and listens to what it names.
    async fn listen(self, to: SourceHandle, report: LinkReport) {
        let mut failed = 0;
        let mut listening: Option<(Layout, JoinSet<()>)> = None;
        let (inner, mut reports) = mpsc::channel(MAX_REPORTS);
        let mut states: Vec<PublisherLink> = Vec::new();
        let mut ask = Duration::ZERO;
        loop {
            tokio::select! {
                Some((id, state)) = reports.recv() => {
                    if let Some(known) = states.get_mut(id as usize) {
                        *known = state;
                    }
                    // The worst of its ranks is how it is doing.
                    let worst = states.iter().find(|state| matches!(state, PublisherLink::Broken { .. }));
                    let worst = worst.or_else(|| states.iter().find(|state| **state == PublisherLink::New));
                    report.set_status(worst.unwrap_or(&PublisherLink::Connected).clone()).await;
                }
                () = sleep(ask) => match self.client.layout(&self.url, self.host.as_deref()).await {
                    // What a pod says leads nowhere else.
                    Ok(layout) if self.host.is_some() && layout.is_elsewhere => {
                        ask = ASK_EVERY;
                        let detail = format!("{} names another host than its pod", self.shown);
                        report.set_status(PublisherLink::Broken { detail, is_refused: true }).await;
                    }
                    Ok(layout) => {
                        (failed, ask) = (0, ASK_EVERY);
                        if listening.as_ref().is_some_and(|(known, _)| *known == layout) {
                            continue;
                        }
                        let mut tasks = JoinSet::new();
                        states = vec![PublisherLink::New; layout.sockets.len()];
                        let of_layout = match layout.is_elsewhere {
                            true => Evidence::Discovery,
                            false => Evidence::Operator,
                        };
                        let evidence = self.evidence.unwrap_or(of_layout);
                        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        for (rank, socket) in layout.sockets.iter().enumerate() {
                            let way = (&self.gate, self.timeouts);
                            let (feed, output) =
                                feed((&self.named, &self.shown), (socket, evidence), way, &to);
                            let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
                            outputs.push(Arc::clone(&output));
                            drop(outputs);
                            let report = LinkReport { id: rank as u64, to: inner.clone() };
                            tasks.spawn(feed.listen(output, report));
                        }
                        // Those of before end as they are dropped.
                        listening = Some((layout, tasks));
                    }
                    Err(SourceStatus { state, detail }) => {
                        failed += 1;
                        ask = if listening.is_some() { ASK_EVERY } else { wait_after(failed) };
                        if listening.is_none() {
                            let is_refused = state == LinkState::Refused;
                            report.set_status(PublisherLink::Broken { detail, is_refused }).await;
                        }
                    }
                },
            }
        }
    }
}
