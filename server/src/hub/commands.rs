//! Bounded channels for commands from intake to the sources. Sending never waits.

use std::sync::Arc;

use tokio::sync::mpsc;

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault};
use radixscope_intake::{Command, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::SourceKind;

/// Capacity per source: more than there are workers or publishers. Memory is only used by queued commands.
const MAX_WAITING: usize = 65_536;

/// The channels.
#[derive(Default)]
pub(super) struct Commands {
    /// To the source that queries workers.
    queries: Option<CommandChannel>,
    /// To the ZeroMQ source.
    publishers: Option<CommandChannel>,
    /// To the NATS source.
    nats: Option<CommandChannel>,
}

struct CommandChannel {
    source: SourceIx,
    commands: mpsc::Sender<Command>,
}

impl Commands {
    /// Opens the channel to a source, if its kind takes commands.
    pub(super) fn of(&mut self, source: SourceIx, kind: SourceKind) -> Option<mpsc::Receiver<Command>> {
        let channel = match kind {
            SourceKind::WorkerTrees => &mut self.queries,
            SourceKind::Zmq => &mut self.publishers,
            SourceKind::Nats => &mut self.nats,
            _ => return None,
        };
        let (commands, receiver) = mpsc::channel(MAX_WAITING);
        *channel = Some(CommandChannel { source, commands });
        Some(receiver)
    }

    /// Sends a command. Returns the failure of a query that cannot be sent, so that every query has a result.
    pub(super) fn send(&self, command: Command, at_ms: Millis) -> Option<Received> {
        let channel = match &command {
            Command::Query(_) | Command::CancelQuery { .. } => &self.queries,
            Command::Listen(_)
            | Command::Unlisten { .. }
            | Command::ListenToBroker { .. }
            | Command::LeaveBroker { .. } => &self.publishers,
            Command::Subscribe(_) => &self.nats,
        };
        let Some(CommandChannel { source, commands }) = channel else {
            tracing::debug!(?command, "no source for this command");
            // There is no source, so its index does not matter.
            return unanswered(command, SourceIx(0), at_ms, "no source sends queries to workers");
        };
        let (command, why) = match commands.try_send(command) {
            Ok(()) => return None,
            Err(mpsc::error::TrySendError::Full(command)) => (command, "too many queued commands"),
            Err(mpsc::error::TrySendError::Closed(command)) => (command, "shutting down"),
        };
        tracing::warn!(?command, why, "command not sent");
        unanswered(command, *source, at_ms, why)
    }
}

fn unanswered(command: Command, source: SourceIx, at_ms: Millis, why: &str) -> Option<Received> {
    let Command::Query(query) = command else { return None };
    let failed =
        QueryFailed { why: QueryFault::Cancelled, detail: format!("The worker was not queried: {why}.") };
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
    fn a_query_without_a_source_fails() {
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
