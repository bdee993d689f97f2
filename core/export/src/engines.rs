//! Engines that are listened to without Dynamo, one row each: the same in the API, in `radixscope sources` and on the page.

use serde::{Serialize, Serializer};

use radixscope_model::id::{Decimal, Worker};
use radixscope_model::number_format::count;
use radixscope_model::record::{Engine, EngineFeed, EventForm, HashForm, LinkState, Replay};
use radixscope_state::cluster::Cluster;

/// A publisher of an engine: one rank.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EngineRow {
    /// Where it publishes, or its topic if it connects to Radixscope.
    pub name: String,
    /// `vllm`, `sglang`, `trtllm`; `null`: not said.
    pub engine: Option<Engine>,
    /// `null`: it has published nothing yet.
    pub worker: Option<Worker>,
    /// `namespace/component` of its worker.
    pub pool: Option<String>,
    /// Status of the connection.
    pub state: LinkState,
    /// In words; empty where there is nothing to say.
    pub detail: String,
    /// Number of its latest batch, up to some seconds old.
    pub last_sequence: Option<Decimal>,
    /// Batches received, those that were sent again included.
    pub received: u64,
    /// Batches lost.
    pub lost: u64,
    /// Batches that it sent again.
    pub replayed: u64,
    /// What came of asking for missed batches: `none` (no replay endpoint is given), `waiting`, `from`, `nothing`, `failed`.
    #[serde(serialize_with = "word")]
    pub replay: Replay,
    /// Number of the first batch that it sent again the last time; `null` unless `replay` is `from`.
    pub replay_from: Option<Decimal>,
    /// Times that it began anew while it was listened to.
    pub restarts: u64,
    /// Tokens per block.
    pub block_size_tokens: Option<u32>,
    /// How it writes batches.
    pub batch_form: Option<EventForm>,
    /// How it writes events.
    pub event_form: Option<EventForm>,
    /// How it writes block hashes.
    pub hash_form: Option<HashForm>,
    /// Events of cache groups that are not counted.
    pub other_groups: u64,
    /// Messages and events that were not understood.
    pub rejected: u64,
    /// The last of them in words; empty if there was none.
    pub rejected_sample: String,
}

impl EngineRow {
    /// All publishers, in the order in which they were first seen.
    pub fn all(cluster: &Cluster) -> Vec<Self> {
        cluster.engines().iter().map(|feed| Self::of(cluster, feed)).collect()
    }

    fn of(cluster: &Cluster, feed: &EngineFeed) -> Self {
        let state = feed.worker.and_then(|ix| cluster.worker(ix));
        let replay_from = match feed.replay {
            Replay::From(first) => Some(Decimal(first)),
            _ => None,
        };
        Self {
            name: feed.name.clone(),
            engine: feed.engine,
            worker: state.map(|state| state.id),
            pool: state.and_then(|state| cluster.pool(state.pool)).map(|pool| pool.name()),
            state: feed.link,
            detail: feed.detail.clone(),
            last_sequence: feed.last_sequence.map(Decimal),
            received: feed.received,
            lost: state.map_or(0, |state| state.missed_total),
            replayed: feed.replayed,
            replay: feed.replay,
            replay_from,
            restarts: feed.restarts,
            block_size_tokens: feed.block_size_tokens,
            batch_form: feed.batch_form,
            event_form: feed.event_form,
            hash_form: feed.hash_form,
            other_groups: feed.other_groups,
            rejected: feed.rejected,
            rejected_sample: feed.rejected_sample.clone(),
        }
    }

    /// What it is, in words.
    pub fn engine_text(&self) -> &'static str {
        self.engine.map_or("engine", Engine::label)
    }

    /// Where the connection stands, with the reason if it does not.
    pub fn state_text(&self) -> String {
        match (self.state, self.detail.as_str()) {
            (LinkState::Live, _) if self.received == 0 => "connected, nothing published yet".to_owned(),
            (LinkState::Live, _) => "connected".to_owned(),
            (state, "") => state.as_str().to_owned(),
            (_, detail) => format!("not connected: {detail}"),
        }
    }

    /// How its events are written; `None`: none was understood.
    pub fn encoding_text(&self) -> Option<String> {
        let events = self.event_form?.as_str();
        Some(match self.hash_form {
            Some(HashForm::Integer) | None => format!("{events}s"),
            Some(HashForm::Bytes) => format!("{events}s, hashes as bytes"),
            Some(HashForm::Mixed) => format!("{events}s, hashes as numbers and bytes"),
        })
    }

    /// What it sent again.
    pub fn replay_text(&self) -> String {
        match self.replay {
            Replay::None => "no replay endpoint given".to_owned(),
            Replay::Waiting => "waiting for it".to_owned(),
            Replay::Failed => "replay endpoint does not answer".to_owned(),
            Replay::From(first) => format!("{} from no. {} on", count(self.replayed), count(first)),
            Replay::Nothing => count(self.replayed),
        }
    }

    /// Everything in a line.
    pub fn to_text(&self) -> String {
        let mut parts = vec![self.state_text()];
        parts.extend(self.last_sequence.map(|Decimal(last)| format!("latest batch no. {}", count(last))));
        if self.received > 0 {
            parts.push(format!("sent again: {}", self.replay_text()));
            parts.push(format!("lost: {}", count(self.lost)));
        }
        parts.extend(self.block_size_tokens.map(|tokens| format!("blocks of {tokens} tokens")));
        parts.extend(self.encoding_text().map(|encoding| format!("events: {encoding}")));
        if self.rejected > 0 {
            parts.push(format!("not understood: {} ({})", count(self.rejected), self.rejected_sample));
        }
        format!("{} ({}): {}", self.name, self.engine_text(), parts.join(", "))
    }
}

fn word<S: Serializer>(replay: &Replay, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(replay.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Millis, Seq};
    use radixscope_model::record::{Entry, Record};

    fn text(change: impl FnOnce(&mut EngineFeed)) -> String {
        let mut feed = EngineFeed::new("tcp://h:5557", Some(Engine::Vllm));
        change(&mut feed);
        let mut cluster = Cluster::default();
        let record = Record::EngineFeed(Box::new(feed));
        cluster.fold(Seq(1), &Entry { at_ms: Millis(1), record });
        let [row] = <[_; 1]>::try_from(EngineRow::all(&cluster)).unwrap();
        row.to_text()
    }

    #[test]
    fn an_engine_is_described_by_what_is_known_of_it() {
        assert_eq!(text(|_| {}), "tcp://h:5557 (vLLM): connecting");
        assert_eq!(
            text(|feed| (feed.link, feed.detail) = (LinkState::Refused, "connection refused".into())),
            "tcp://h:5557 (vLLM): not connected: connection refused"
        );
        let all = text(|feed| {
            (feed.link, feed.received, feed.replayed) = (LinkState::Live, 1_300, 1_000);
            (feed.replay, feed.last_sequence) = (Replay::From(2_000), Some(3_299));
            (feed.event_form, feed.hash_form) = (Some(EventForm::Map), Some(HashForm::Bytes));
            (feed.block_size_tokens, feed.rejected) = (Some(16), 2);
            feed.rejected_sample = "expected an event".into();
        });
        assert_eq!(
            all,
            "tcp://h:5557 (vLLM): connected, latest batch no. 3,299, sent again: 1,000 from no. 2,000 on, lost: 0, blocks of 16 \
             tokens, events: maps, hashes as bytes, not understood: 2 (expected an event)"
        );
    }
}
