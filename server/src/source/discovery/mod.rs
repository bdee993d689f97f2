//! Dynamo's discovery: follows the entries of its processes in etcd, in Kubernetes or in a folder. Delivers entries unparsed,
//! under the keys of etcd.

mod budget;
mod entries;
mod etcd;
mod files;
mod http;
#[cfg(feature = "kubernetes")]
mod kubernetes;

use std::time::Duration;

#[cfg(feature = "kubernetes")]
use tokio::sync::watch;

use radixscope_dynamo::error::DecodeError;
use radixscope_intake::Payload;
use radixscope_model::record::{LinkState, Topic};

pub(crate) use entries::Entry;
use entries::{Entries, Found, Put};

#[cfg(feature = "kubernetes")]
use crate::config::EtcdServers;
use crate::config::{Discovery, DiscoveryAt, InvalidOption};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
#[cfg(feature = "kubernetes")]
use crate::source::kubernetes::survey::Cluster;
use crate::source::link::{LastStatus, doubled, seconds};
use crate::time::now;

/// First wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Discovery as the command line describes it.
pub struct DiscoverySource {
    name: String,
    store: Store,
    /// Only this Dynamo namespace.
    namespace: Option<String>,
    /// In a cluster of Kubernetes.
    #[cfg(feature = "kubernetes")]
    moves: Option<Moves>,
}

/// Where the store of a cluster is, which may change.
#[cfg(feature = "kubernetes")]
struct Moves {
    /// `None`: in the cluster itself.
    etcd: watch::Receiver<Option<EtcdServers>>,
    cluster: Cluster,
    options: Discovery,
}

#[cfg(feature = "kubernetes")]
impl Moves {
    /// The store as it is now.
    fn store(&mut self) -> Result<Store, InvalidOption> {
        Ok(match &*self.etcd.borrow_and_update() {
            Some(servers) => Store::Etcd(Box::new(etcd::Etcd::new(servers, &self.options)?)),
            None => Store::Kubernetes(Box::new(kubernetes::Kubernetes::of_cluster(&self.cluster))),
        })
    }
}

enum Store {
    Etcd(Box<etcd::Etcd>),
    Files(files::Files),
    #[cfg(feature = "kubernetes")]
    Kubernetes(Box<kubernetes::Kubernetes>),
}

impl DiscoverySource {
    /// `None`: no discovery is given. `namespace`: the one to read; all otherwise.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(options: Discovery, namespace: Option<String>) -> Result<Option<Self>, InvalidOption> {
        let Some(at) = options.discovery.clone() else { return Ok(None) };
        let of = namespace.clone();
        let (name, store) = match at {
            DiscoveryAt::Etcd(servers) => {
                let etcd = etcd::Etcd::new(&servers, &options)?;
                (format!("discovery/{}", etcd.shown()), Store::Etcd(Box::new(etcd)))
            }
            DiscoveryAt::Files(folder) => {
                (format!("discovery/file:{}", folder.display()), Store::Files(files::Files::new(folder, of)))
            }
            #[cfg(not(feature = "kubernetes"))]
            DiscoveryAt::Kubernetes(at) => {
                return Err(InvalidOption::needs_feature(format!("--discovery {at}"), "kubernetes"));
            }
            #[cfg(feature = "kubernetes")]
            DiscoveryAt::Kubernetes(at) => {
                let kubernetes = kubernetes::Kubernetes::new(&at, &options, of)?;
                let name = format!("discovery/kubernetes:{}", kubernetes.namespace());
                (name, Store::Kubernetes(Box::new(kubernetes)))
            }
        };
        Ok(Some(Self {
            name,
            store,
            namespace,
            #[cfg(feature = "kubernetes")]
            moves: None,
        }))
    }

    /// Discovery of a cluster of Kubernetes, of all namespaces of Dynamo: in the cluster itself, or in `etcd` while it is there.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn of_cluster(
        cluster: &Cluster,
        etcd: watch::Receiver<Option<EtcdServers>>,
        options: Discovery,
    ) -> Result<Self, InvalidOption> {
        let name = format!("discovery/kubernetes:{}", cluster.namespace.as_deref().unwrap_or("*"));
        let mut moves = Moves { etcd, cluster: cluster.clone(), options };
        let store = moves.store()?;
        Ok(Self { name, store, namespace: None, moves: Some(moves) })
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All current entries.
    pub(crate) async fn list(self) -> Result<Vec<Entry>, SourceStatus> {
        let Self { mut store, namespace, .. } = self;
        let mut all = Vec::new();
        let mut follower = Follower::new(To::List(&mut all), namespace);
        let listed = match &mut store {
            Store::Etcd(etcd) => etcd.list(&mut follower).await.map(drop),
            Store::Files(files) => files.list(&mut follower).await,
            #[cfg(feature = "kubernetes")]
            Store::Kubernetes(kubernetes) => kubernetes.list(&mut follower).await,
        };
        match listed {
            // A list is not delivered to the hub.
            Ok(()) | Err(Stop::Hub(HubEnded)) => Ok(all),
            Err(Stop::Failed(failed)) => Err(failed),
        }
    }

    /// Follows it until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let mut end = shutdown;
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = self.follow(&to) => {}
        }
    }

    async fn follow(self, to: &SourceHandle) -> Result<(), HubEnded> {
        #[cfg(feature = "kubernetes")]
        if self.moves.is_some() {
            return self.follow_moving(to).await;
        }
        let Self { name, mut store, namespace, .. } = self;
        let mut follower = Follower::to_hub(to, name, namespace);
        store.follow(&mut follower).await
    }

    /// Follows the store that is used now. What the former one had and the next one has not is gone once that is listed.
    #[cfg(feature = "kubernetes")]
    async fn follow_moving(self, to: &SourceHandle) -> Result<(), HubEnded> {
        let Self { name, mut store, namespace, moves } = self;
        let mut follower = Follower::to_hub(to, name, namespace);
        let Some(mut moves) = moves else { return Ok(()) };
        loop {
            let is_moved = tokio::select! {
                ended = store.follow(&mut follower) => return ended,
                moved = moves.etcd.changed() => moved.is_ok(),
            };
            if !is_moved {
                return store.follow(&mut follower).await;
            }
            match moves.store() {
                Ok(next) => store = next,
                Err(error) => tracing::warn!(%error, "etcd cannot be used"),
            }
        }
    }
}

impl Store {
    /// Follows it, and tries again after failures, until the hub ends.
    async fn follow(&mut self, follower: &mut Follower<'_>) -> Result<(), HubEnded> {
        let mut failures = 0;
        loop {
            let SourceStatus { state, detail } = match self {
                Self::Etcd(etcd) => etcd.follow(follower).await?,
                Self::Files(files) => files.follow(follower).await?,
                #[cfg(feature = "kubernetes")]
                Self::Kubernetes(kubernetes) => kubernetes.follow(follower).await?,
            };
            if follower.is_live() {
                failures = 0;
            }
            let wait = doubled(FIRST_WAIT, failures, LONGEST_WAIT);
            failures = failures.saturating_add(1);
            let detail = format!("{detail} Retrying in {}.", seconds(wait));
            follower.say(state, detail).await?;
            tokio::time::sleep(wait).await;
        }
    }
}

/// Why a list ended before it was complete.
enum Stop {
    Hub(HubEnded),
    Failed(SourceStatus),
}

impl From<HubEnded> for Stop {
    fn from(ended: HubEnded) -> Self {
        Self::Hub(ended)
    }
}

impl From<SourceStatus> for Stop {
    fn from(failed: SourceStatus) -> Self {
        Self::Failed(failed)
    }
}

/// Where the entries of a store go.
enum To<'t> {
    Hub { handle: &'t SourceHandle, name: String, last_status: LastStatus },
    List(&'t mut Vec<Entry>),
}

/// Receives the entries and state of a store.
struct Follower<'t> {
    to: To<'t>,
    entries: Entries,
    /// Why the last list is not complete; "" if it is.
    cut: String,
}

impl<'t> Follower<'t> {
    fn new(to: To<'t>, namespace: Option<String>) -> Self {
        Self { to, entries: Entries::new(namespace), cut: String::new() }
    }

    fn to_hub(handle: &'t SourceHandle, name: String, namespace: Option<String>) -> Self {
        Self::new(To::Hub { handle, name, last_status: LastStatus::default() }, namespace)
    }

    fn is_live(&self) -> bool {
        matches!(&self.to, To::Hub { last_status, .. } if last_status.state() == Some(LinkState::Live))
    }

    /// Reports the state of the store, with the skipped entries.
    async fn say(&mut self, state: LinkState, detail: String) -> Result<(), HubEnded> {
        let detail = match state {
            LinkState::Live => format!("{detail}{}{}", self.entries.remarks(), self.cut),
            _ => detail,
        };
        match &mut self.to {
            To::Hub { handle, name, last_status } => {
                last_status.report(handle, name, SourceStatus::new(state, detail)).await
            }
            To::List(_) => Ok(()),
        }
    }

    async fn deliver(&self, payload: Payload) -> Result<(), HubEnded> {
        match &self.to {
            To::Hub { handle, .. } => handle.deliver(now(), payload).await,
            To::List(_) => Ok(()),
        }
    }

    /// An entry was added or changed.
    async fn put(&mut self, found: Found) -> Result<(), HubEnded> {
        match self.entries.put(found) {
            Put::Nothing => Ok(()),
            Put::Skipped(error) => self.unreadable(error).await,
            Put::Changed(entry) => {
                if let To::List(all) = &mut self.to {
                    all.push(entry);
                    return Ok(());
                }
                let Entry { key, value, lease } = entry;
                self.deliver(Payload::Discovery { key: key.into(), value: Some(value), lease }).await
            }
        }
    }

    /// An entry was removed.
    async fn end(&mut self, key: &str) -> Result<(), HubEnded> {
        if !self.entries.end(key) {
            return Ok(());
        }
        self.ended(key.to_owned()).await
    }

    async fn ended(&self, key: String) -> Result<(), HubEnded> {
        self.deliver(Payload::Discovery { key: key.into(), value: None, lease: None }).await
    }

    /// A list of all entries begins; `put` follows for each.
    fn begin_pass(&mut self) {
        self.cut.clear();
        self.entries.begin_pass();
    }

    /// The list is complete. New and changed entries were put before, so that a process that moved never seems to be gone.
    async fn end_pass(&mut self) -> Result<(), HubEnded> {
        for key in self.entries.end_pass() {
            self.ended(key).await?;
        }
        Ok(())
    }

    /// The list is incomplete: missing entries do not count as removed.
    fn cut(&mut self, why: &str) {
        self.cut = format!(" {why}.");
    }

    /// An object with entries cannot be read: it counts as invalid input.
    async fn unreadable(&self, error: DecodeError) -> Result<(), HubEnded> {
        let payload = Payload::Unreadable { topic: Topic::Discovery, error: Box::new(error), size_bytes: 0 };
        self.deliver(payload).await
    }

    /// The number of entries as text.
    fn count(&self) -> String {
        match self.entries.len() {
            0 => "no Dynamo entries yet".to_owned(),
            1 => "1 Dynamo entry".to_owned(),
            count => format!("{count} Dynamo entries"),
        }
    }
}
