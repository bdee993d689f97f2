//! Engines that standalone KV indexers list, where nothing else names any: listened to as they are listed, and gone for good when no
//! indexer lists them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use radixscope_dynamo::indexer::Index;
use radixscope_dynamo::subject::Subject;
use radixscope_model::id::WorkerId;

use super::super::links::{LISTED_ENGINES, Links};
use super::super::peer::Timeouts;
use super::super::{MAX_PUBLISHERS, MAX_REPORTS, STATUS_EVERY, run_with_sockets};
use super::Named;
use super::attached::{Attached, Listening};
use super::server_info::{Layout, Socket};
use crate::config::{ZmqEndpoint, pool_of_model};
use crate::hub::SourceHandle;
use crate::shutdown::Shutdown;
use crate::source::gate::{Crossing, Evidence, Gate};
use crate::source::link::StatusSender;

/// The group that an indexer puts engines into which name none.
const NO_GROUP: &str = "default";

/// What indexers list, by the name of each indexer. Empty until the first was read.
pub type Lists = BTreeMap<String, Vec<ListedEngine>>;

/// An engine as an indexer lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedEngine {
    layout: Layout,
    pool: String,
    /// Whether the indexer that lists it is on this machine.
    by_one_here: bool,
}

impl ListedEngine {
    /// Those of an index that can be connected to, and the addresses of the others. `is_here`: whether the indexer is on this machine.
    pub fn all(index: &Index, is_here: bool) -> (Vec<Self>, BTreeSet<&str>) {
        let (mut engines, mut unusable): (BTreeMap<WorkerId, Self>, _) = (BTreeMap::new(), BTreeSet::new());
        for (rank, listener) in &index.listeners {
            let Ok(endpoint) = listener.endpoint.parse::<ZmqEndpoint>() else {
                unusable.insert(listener.endpoint.as_str());
                continue;
            };
            let group = Some(listener.group.as_str()).filter(|group| !matches!(*group, "" | NO_GROUP));
            let name = group.map_or(listener.model.clone(), |group| format!("{}-{group}", listener.model));
            let engine = engines.entry(rank.id).or_insert_with(|| Self {
                layout: Layout { sockets: Vec::new(), is_elsewhere: true },
                pool: pool_of_model(&name).unwrap_or_else(|| "engine".to_owned()),
                by_one_here: is_here,
            });
            let replay = listener.replay.parse().ok();
            engine.layout.sockets.push(Socket { endpoint, replay, rank: Some(rank.dp_rank) });
        }
        for engine in engines.values_mut() {
            if let [Socket { rank: rank @ Some(0), .. }] = engine.layout.sockets.as_mut_slice() {
                *rank = None;
            }
        }
        (engines.into_values().collect(), unusable)
    }

    /// The name of the engine: the address of its first rank, as `--engine-events` would name it.
    fn name(&self) -> String {
        self.layout.sockets.first().map(|socket| socket.endpoint.to_string()).unwrap_or_default()
    }
}

/// The engines of all lists.
pub struct ListedEngines {
    lists: watch::Receiver<Lists>,
    gate: Arc<Gate>,
    pub(super) timeouts: Timeouts,
}

impl ListedEngines {
    /// Its name as a source.
    pub const NAME: &str = "engines/indexer";

    /// A source for what `lists` has.
    pub fn new(lists: watch::Receiver<Lists>, gate: &Arc<Gate>) -> Self {
        Self { lists, gate: Arc::clone(gate), timeouts: Timeouts::DEFAULT }
    }

    /// Listens until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let name = Self::NAME.to_owned();
        run_with_sockets(("listed-engines", name), to, shutdown, |to, status| self.listen(to, status)).await;
    }

    async fn listen(mut self, to: SourceHandle, status: StatusSender) {
        let (report, mut reports) = mpsc::channel(MAX_REPORTS);
        let links = Links::new(LISTED_ENGINES);
        let mut listening = Listening::new(to, links, (&self.gate, self.timeouts), report);
        let mut attached = BTreeMap::new();
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.lists.mark_changed();
        loop {
            tokio::select! {
                _ = look.tick() => {}
                Some((id, status)) = reports.recv() => listening.links.set_status(id, status),
                Ok(()) = self.lists.changed() => self.follow(&mut attached, &mut listening).await,
            }
            let mut now = listening.links.status();
            if let Some(refused) = self.gate.refusals().sentence(Crossing::ZmqConnection.as_str()) {
                now.detail.push_str(&format!(" Connections: {refused}"));
            }
            status.set(now);
        }
    }

    /// Goes by the lists as they are now.
    async fn follow(
        &mut self,
        attached: &mut BTreeMap<String, (ListedEngine, Attached)>,
        listening: &mut Listening,
    ) {
        let mut now: BTreeMap<String, ListedEngine> = BTreeMap::new();
        for engine in self.lists.borrow_and_update().values().flatten() {
            // Listed by two indexers it is one engine; of two descriptions the first counts.
            now.entry(engine.name()).or_insert_with(|| engine.clone());
        }
        let is_gone = |(name, (engine, _)): (&String, &(ListedEngine, Attached))| {
            (now.get(name) != Some(engine)).then(|| name.clone())
        };
        let gone: Vec<String> = attached.iter().filter_map(is_gone).collect();
        for (_, of) in gone.iter().filter_map(|name| attached.remove(name)) {
            listening.end(of).await;
        }
        listening.links.excluded = 0;
        for (name, engine) in now {
            if attached.contains_key(&name) {
                continue;
            }
            if listening.links.len() + engine.layout.sockets.len() > MAX_PUBLISHERS {
                listening.links.excluded += engine.layout.sockets.len();
                continue;
            }
            let subject = Arc::new(Subject::of_engines(&engine.pool));
            // Which engine it is, its events do not show and an indexer does not list.
            let named = Named { engine: None, subject, pod_uid: Box::default() };
            let evidence = Evidence::Indexer { is_here: engine.by_one_here };
            let begun = listening.begin((&named, &name), &engine.layout, evidence);
            attached.insert(name, (engine, begun));
        }
    }
}

#[cfg(test)]
mod tests {
    use radixscope_dynamo::indexer;

    use super::*;

    fn listed(workers: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
        let index = indexer::decode(workers.as_bytes(), b"{}", None).unwrap();
        let (engines, unusable) = ListedEngine::all(&index, true);
        let shown = |Socket { endpoint, replay, rank }: &Socket| {
            let replay = replay.as_ref().map_or(String::new(), |at| format!(" replay {at}"));
            format!("{endpoint}{replay} {rank:?}")
        };
        let engines = engines
            .iter()
            .map(|engine| (engine.pool.clone(), engine.layout.sockets.iter().map(shown).collect::<Vec<_>>()));
        (engines.collect(), unusable.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn ranks_of_an_engine_are_listened_to_one_by_one() {
        let (engines, unusable) = listed(
            r#"[{"instance_id":1,"model_name":"Qwen/Qwen3-8B","routing_group":"default","endpoints":{"0":"tcp://a:1"}},
                {"instance_id":2,"model_name":"chat","routing_group":"blue","endpoints":{"2":"tcp://b:1","5":"tcp://b:9"}},
                {"worker_id":3,"kv_events_endpoint":"tcp://c:1","replay_endpoint":"tcp://c:2"},
                {"instance_id":4,"endpoints":{"0":"tcp://*:5557"}},
                {"instance_id":5,"endpoints":{"0":"ipc:///tmp/kv"}}]"#,
        );
        let own = |pool: &str, sockets: &[&str]| {
            (pool.to_owned(), sockets.iter().map(|&socket| socket.to_owned()).collect())
        };
        assert_eq!(
            engines,
            [
                own("Qwen-Qwen3-8B", &["tcp://a:1 None"]),
                own("chat-blue", &["tcp://b:1 Some(2)", "tcp://b:9 Some(5)"]),
                own("engine", &["tcp://c:1 replay tcp://c:2 None"]),
            ]
        );
        assert_eq!(unusable, ["ipc:///tmp/kv", "tcp://*:5557"]);
    }
}
