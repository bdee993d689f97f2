//! Queries workers for their blocks over Dynamo's request plane. Intake decides which workers to query and when.
//!
//! # How it works
//! A query is sent on its own TCP connection, or as a message over NATS. The response comes on a TCP connection that the worker
//! opens to the address in the query, so workers must be able to reach this process. A query changes nothing in the worker; it
//! logs a line and counts the request. Every query from intake gets exactly one result.

mod callback;
mod nats;
mod query;
mod response;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::MissedTickBehavior;

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault, TreeResponse};
use radixscope_intake::command::TreeQuery;
use radixscope_intake::{Command, Payload};
use radixscope_model::id::Worker;

use self::nats::RequestPlane;
use crate::config::CallbackAddress;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::gate::{Crossing, Gate};
use crate::source::link::LastStatus;
use crate::source::nats::Whereabouts;
use crate::time::now;
use callback::Callback;
use query::QueryClient;
use response::failed;
use status::QueryStatus;

/// Its name as a source.
pub const NAME: &str = "worker trees";
/// Maximum queries in flight.
const MAX_AT_ONCE: usize = 8;
/// Maximum queued queries.
const MAX_WAITING: usize = 65_536;
/// How often old failures are dropped from the status.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// The source.
pub struct TreeSource {
    client: Arc<QueryClient>,
}

/// The result of a query, and the bytes read.
type QueryResult = (Result<TreeResponse, QueryFailed>, usize);

impl TreeSource {
    /// `nats`: where the workers' request plane is, if it is over NATS.
    pub(crate) fn new(
        callback: Option<CallbackAddress>,
        nats: Option<Whereabouts>,
        gate: &Arc<Gate>,
    ) -> Self {
        let callback = Callback::new(callback, Arc::clone(gate));
        let plane = nats.map(RequestPlane::new);
        Self { client: Arc::new(QueryClient::new(callback, plane, Arc::clone(gate))) }
    }

    /// Runs the queries from intake until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let Some(commands) = to.take_commands() else {
            tracing::error!("the command channel is missing; no worker can be queried");
            return;
        };
        let mut end = shutdown;
        let mut queries = Queries::new(self.client, &to);
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = queries.follow(commands) => {}
        }
    }
}

/// Queued and running queries.
struct Queries<'s> {
    client: Arc<QueryClient>,
    to: &'s SourceHandle,
    waiting: VecDeque<TreeQuery>,
    running: JoinSet<QueryResult>,
    /// The query of each task: its id and worker.
    queries: HashMap<Id, (u64, Worker, AbortHandle)>,
    status: QueryStatus,
    last_status: LastStatus,
}

impl<'s> Queries<'s> {
    fn new(client: Arc<QueryClient>, to: &'s SourceHandle) -> Self {
        Self {
            client,
            to,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            queries: HashMap::new(),
            status: QueryStatus::default(),
            last_status: LastStatus::default(),
        }
    }

    async fn follow(&mut self, mut commands: mpsc::Receiver<Command>) -> Result<(), HubEnded> {
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Err(error) = self.client.callback.prepare().await {
            let detail = format!("Cannot listen on the port of --callback (RADIXSCOPE_CALLBACK): {error}.");
            self.last_status.report(self.to, NAME, SourceStatus::refused(detail)).await?;
        }
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.handle(command).await?,
                    None => return Ok(()),
                },
                Some(done) = self.running.join_next_with_id() => self.done(done).await?,
                _ = look.tick() => self.say().await?,
            }
            self.start();
        }
    }

    async fn handle(&mut self, command: Command) -> Result<(), HubEnded> {
        match command {
            Command::Query(query) if self.waiting.len() < MAX_WAITING => self.waiting.push_back(query),
            Command::Query(query) => self.reject(query.id, "too many queued queries").await?,
            Command::CancelQuery { id } => {
                if let Some(at) = self.waiting.iter().position(|query| query.id == id) {
                    self.waiting.remove(at);
                    self.reject(id, QUERY_CANCELLED).await?;
                } else if let Some((.., task)) = self.queries.values().find(|(running, ..)| *running == id) {
                    // Reported when the task has ended.
                    task.abort();
                }
            }
            Command::Listen(_)
            | Command::Unlisten { .. }
            | Command::ListenToBroker { .. }
            | Command::LeaveBroker { .. }
            | Command::Subscribe(_) => {}
        }
        Ok(())
    }

    fn start(&mut self) {
        while self.running.len() < MAX_AT_ONCE {
            let Some(query) = self.waiting.pop_front() else { return };
            let (id, worker) = (query.id, query.endpoint.worker);
            let client = Arc::clone(&self.client);
            tracing::debug!(id, %worker, start = query.start_event_id, "querying blocks");
            let task = self.running.spawn(async move { client.query(&query).await });
            self.queries.insert(task.id(), (id, worker, task));
        }
    }

    async fn done(&mut self, done: Result<(Id, QueryResult), JoinError>) -> Result<(), HubEnded> {
        let (task, (outcome, size_bytes)) = match done {
            Ok(answered) => answered,
            Err(error) => {
                let why = if error.is_cancelled() { QUERY_CANCELLED } else { "the query task failed" };
                (error.id(), (Err(cancelled(why)), 0))
            }
        };
        let Some((id, worker, _)) = self.queries.remove(&task) else { return Ok(()) };
        if let Err(failed) = &outcome {
            tracing::debug!(id, %worker, why = ?failed.why, "{}", failed.detail);
        }
        self.status.note(worker, outcome.as_ref().err(), Instant::now());
        self.respond(id, outcome, size_bytes).await?;
        self.say().await
    }

    async fn reject(&self, id: u64, why: &str) -> Result<(), HubEnded> {
        self.respond(id, Err(cancelled(why)), 0).await
    }

    async fn respond(
        &self,
        query: u64,
        outcome: Result<TreeResponse, QueryFailed>,
        size_bytes: usize,
    ) -> Result<(), HubEnded> {
        let payload = Payload::TreeResponse { query, outcome: Arc::new(outcome), size_bytes };
        self.to.deliver(now(), payload).await
    }

    async fn say(&mut self) -> Result<(), HubEnded> {
        let mut status = self.status.report(Instant::now(), self.client.callback.closed());
        for (what, of) in [(Crossing::TreeQuery, "Queries"), (Crossing::Response, "Responses")] {
            if let Some(refused) = self.client.gate.refusals().sentence(what.as_str()) {
                status.detail.push_str(&format!(" {of}: {refused}"));
            }
        }
        self.last_status.report(self.to, NAME, status).await
    }
}

const QUERY_CANCELLED: &str = "the query was cancelled";

fn cancelled(why: &str) -> QueryFailed {
    failed(QueryFault::Cancelled, format!("The worker was not queried: {why}."))
}
