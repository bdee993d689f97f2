//! The ways from intake to the sources that carry out what it wants: bounded, and never waited for.

use std::sync::Arc;

use tokio::sync::mpsc;

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault};
use radixscope_intake::{Command, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::SourceKind;

/// Commands that may wait for a source: more than there are workers with a query each, or publishers. Room is taken only
/// by commands that are there.
const MAX_WAITING: usize = 65_536;

/// The ways.
#[derive(Default)]
pub(super) struct Commands {
    /// To the one that asks workers.
    queries: Option<Way>,
    /// To the one that listens to ZeroMQ publishers.
    publishers: Option<Way>,
    /// To the one that reads NATS.
    nats: Option<Way>,
}

struct Way {
    source: SourceIx,
    commands: mpsc::Sender<Command>,
}

impl Commands {
    /// The end of the way to a source, if it is of a kind that is told what to do.
    pub(super) fn of(&mut self, source: SourceIx, kind: SourceKind) -> Option<mpsc::Receiver<Command>> {
        let way = match kind {
            SourceKind::WorkerTrees => &mut self.queries,
            SourceKind::Zmq => &mut self.publishers,
            SourceKind::Nats => &mut self.nats,
            _ => return None,
        };
        let (commands, receiver) = mpsc::channel(MAX_WAITING);
        *way = Some(Way { source, commands });
        Some(receiver)
    }

    /// Hands a command on. What comes back is the answer of a query that nobody can carry out: none stays unanswered.
    pub(super) fn send(&self, command: Command, at_ms: Millis) -> Option<Received> {
        let way = match &command {
            Command::Query(_) | Command::CancelQuery { .. } => &self.queries,
            Command::Listen(_)
            | Command::Unlisten { .. }
            | Command::ListenToBroker { .. }
            | Command::LeaveBroker { .. } => &self.publishers,
            Command::Subscribe(_) => &self.nats,
        };
        let Some(Way { source, commands }) = way else {
            tracing::debug!(?command, "no source does this");
            // The source that is named hardly matters: there is none.
            return unanswered(command, SourceIx(0), at_ms, "no source sends queries to workers");
        };
        let (command, why) = match commands.try_send(command) {
            Ok(()) => return None,
            Err(mpsc::error::TrySendError::Full(command)) => (command, "too many queries wait"),
            Err(mpsc::error::TrySendError::Closed(command)) => (command, "the process ends"),
        };
        tracing::warn!(?command, why, "not handed on");
        unanswered(command, *source, at_ms, why)
    }
}

fn unanswered(command: Command, source: SourceIx, at_ms: Millis, why: &str) -> Option<Received> {
    let Command::Query(query) = command else { return None };
    let failed =
        QueryFailed { why: QueryFault::Cancelled, words: format!("The worker was not asked: {why}.") };
    let payload = Payload::TreeResponse { query: query.id, outcome: Arc::new(Err(failed)), size_bytes: 0 };
    Some(Received { source, at_ms, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_dynamo::request_plane::{Codec, QueryEndpoint, RequestTransport};
    use radixscope_intake::command::{NamedBy, TreeQuery};
    use radixscope_model::id::Worker;

    fn query(id: u64) -> Command {
        let endpoint = QueryEndpoint {
            worker: Worker::new(1, 0),
            is_rank_known: true,
            namespace: String::new(),
            component: String::new(),
            endpoint: String::new(),
            transport: RequestTransport::Nats { subject: String::new() },
            codec: Codec::Json,
            publisher_id: None,
        };
        let named_by = NamedBy::Frontend { name: "f".into() };
        Command::Query(TreeQuery { id, endpoint, named_by, publishes_at: Vec::new(), start_event_id: None })
    }

    fn number(received: Option<Received>) -> Option<u64> {
        match received?.payload {
            Payload::TreeResponse { query, outcome, .. } if outcome.is_err() => Some(query),
            _ => None,
        }
    }

    #[test]
    fn each_command_goes_to_the_source_that_carries_it_out() {
        let mut commands = Commands::default();
        let mut queries = commands.of(SourceIx(3), SourceKind::WorkerTrees).unwrap();
        let mut publishers = commands.of(SourceIx(4), SourceKind::Zmq).unwrap();
        assert!(commands.of(SourceIx(5), SourceKind::Logs).is_none());
        let gone = Command::Unlisten { endpoint: "tcp://a:1".to_owned(), publisher_id: 1 };
        for command in [query(7), gone.clone(), Command::CancelQuery { id: 7 }] {
            assert!(commands.send(command, Millis(1)).is_none());
        }
        assert_eq!(queries.try_recv().unwrap(), query(7));
        assert_eq!(queries.try_recv().unwrap(), Command::CancelQuery { id: 7 });
        assert_eq!(publishers.try_recv().unwrap(), gone);
    }

    #[test]
    fn a_query_that_nobody_takes_is_answered() {
        let mut commands = Commands::default();
        assert_eq!(number(commands.send(query(1), Millis(1))), Some(1));
        assert!(commands.send(Command::CancelQuery { id: 1 }, Millis(1)).is_none());
        let queries = commands.of(SourceIx(3), SourceKind::WorkerTrees).unwrap();
        for id in 0..MAX_WAITING as u64 {
            assert!(commands.send(query(id), Millis(1)).is_none());
        }
        assert_eq!(number(commands.send(query(99), Millis(1))), Some(99), "full");
        drop(queries);
        assert_eq!(number(commands.send(query(100), Millis(1))), Some(100), "gone");
    }
}
