//! Workers, asked for their blocks over Dynamo's request plane. Whom to ask and when is decided in intake.
//!
//! # How it works
//!
//! A query goes out on a connection of its own, or as a message over NATS. The answer comes on a TCP connection that the
//! worker opens to us, at the address that the query names: workers have to be able to reach this process. What is sent
//! changes nothing in the worker; it logs a line and counts the request. Every query that intake hands over is answered
//! once, whatever comes of it.

mod answer;
mod ask;
mod callback;
mod nats;
mod standing;
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
use radixscope_model::record::LinkState;

use self::nats::RequestPlane;
use crate::config::{CallbackAddress, InvalidOption, Nats};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::gate::{Crossing, Gate};
use crate::source::link::LastState;
use crate::source::nats::Target;
use crate::time::now;
use answer::failed;
use ask::Asker;
use callback::Callback;
use standing::TargetComparison;

/// What it is called.
pub const NAME: &str = "worker trees";
/// Workers asked at the same time.
const MAX_AT_ONCE: usize = 8;
/// Queries that wait for their turn.
const MAX_WAITING: usize = 65_536;
/// How often failures that are long ago are forgotten.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Asks workers.
pub struct Source {
    asker: Arc<Asker>,
}

/// What came of a query: of which, and what.
type Answered = (Result<TreeResponse, QueryFailed>, usize);

impl Source {
    /// A source as the command line describes it.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(
        callback: Option<CallbackAddress>,
        nats: &Nats,
        gate: &Arc<Gate>,
    ) -> Result<Self, InvalidOption> {
        let plane = match nats.nats.is_empty() {
            true => None,
            false => Some(RequestPlane::new(Target::new(&nats.nats, &nats.login)?)),
        };
        let callback = Callback::new(callback, Arc::clone(gate));
        Ok(Self { asker: Arc::new(Asker::new(callback, plane, Arc::clone(gate))) })
    }

    /// Asks whom it is told to until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let Some(commands) = to.take_commands() else {
            tracing::error!("no source reports which workers are to be asked");
            return;
        };
        let mut end = shutdown;
        let mut queries = Queries::new(self.asker, &to);
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = queries.follow(commands) => {}
        }
    }
}

/// Queries that wait and that run.
struct Queries<'s> {
    asker: Arc<Asker>,
    to: &'s SourceHandle,
    waiting: VecDeque<TreeQuery>,
    running: JoinSet<Answered>,
    /// The query of each task: its number and whom it asks.
    asked: HashMap<Id, (u64, Worker, AbortHandle)>,
    standing: TargetComparison,
    said: LastState,
}

impl<'s> Queries<'s> {
    fn new(asker: Arc<Asker>, to: &'s SourceHandle) -> Self {
        Self {
            asker,
            to,
            waiting: VecDeque::new(),
            running: JoinSet::new(),
            asked: HashMap::new(),
            standing: TargetComparison::default(),
            said: LastState::default(),
        }
    }

    async fn follow(&mut self, mut commands: mpsc::Receiver<Command>) -> Result<(), HubEnded> {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Err(error) = self.asker.callback.prepare().await {
            let words =
                format!("The port of --callback (RADIXSCOPE_CALLBACK) cannot be listened on: {error}.");
            self.said.say(self.to, NAME, LinkState::Refused, words).await?;
        }
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.take(command).await?,
                    None => return Ok(()),
                },
                Some(done) = self.running.join_next_with_id() => self.done(done).await?,
                _ = look.tick() => self.say().await?,
            }
            self.start();
        }
    }

    async fn take(&mut self, command: Command) -> Result<(), HubEnded> {
        match command {
            Command::Query(query) if self.waiting.len() < MAX_WAITING => self.waiting.push_back(query),
            Command::Query(query) => self.not_asked(query.id, "too many queries wait").await?,
            Command::CancelQuery { id } => {
                if let Some(at) = self.waiting.iter().position(|query| query.id == id) {
                    self.waiting.remove(at);
                    self.not_asked(id, NOBODY_WAITS).await?;
                } else if let Some((.., task)) = self.asked.values().find(|(running, ..)| *running == id) {
                    // Answered when it has ended.
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
            let asker = Arc::clone(&self.asker);
            tracing::debug!(id, %worker, start = query.start_event_id, "asking for blocks");
            let task = self.running.spawn(async move { asker.ask(&query).await });
            self.asked.insert(task.id(), (id, worker, task));
        }
    }

    async fn done(&mut self, done: Result<(Id, Answered), JoinError>) -> Result<(), HubEnded> {
        let (task, (outcome, size_bytes)) = match done {
            Ok(answered) => answered,
            Err(error) => {
                let why = if error.is_cancelled() { NOBODY_WAITS } else { "asking failed" };
                (error.id(), (Err(cancelled(why)), 0))
            }
        };
        let Some((id, worker, _)) = self.asked.remove(&task) else { return Ok(()) };
        if let Err(failed) = &outcome {
            tracing::debug!(id, %worker, why = ?failed.why, "{}", failed.words);
        }
        self.standing.note(worker, outcome.as_ref().err(), Instant::now());
        self.answer(id, outcome, size_bytes).await?;
        self.say().await
    }

    async fn not_asked(&self, id: u64, why: &str) -> Result<(), HubEnded> {
        self.answer(id, Err(cancelled(why)), 0).await
    }

    async fn answer(
        &self,
        query: u64,
        outcome: Result<TreeResponse, QueryFailed>,
        size_bytes: usize,
    ) -> Result<(), HubEnded> {
        let payload = Payload::TreeResponse { query, outcome: Arc::new(outcome), size_bytes };
        self.to.deliver(now(), payload).await
    }

    async fn say(&mut self) -> Result<(), HubEnded> {
        let (state, mut words) = self.standing.to_text(Instant::now(), self.asker.callback.closed());
        for (what, of) in [(Crossing::TreeQuery, "Queries"), (Crossing::Response, "Responses")] {
            if let Some(refused) = self.asker.gate.refusals().sentence(what.as_str()) {
                words.push_str(&format!(" {of}: {refused}"));
            }
        }
        self.said.say(self.to, NAME, state, words).await
    }
}

const NOBODY_WAITS: &str = "the query was cancelled";

fn cancelled(why: &str) -> QueryFailed {
    failed(QueryFault::Cancelled, format!("The worker was not asked: {why}."))
}
