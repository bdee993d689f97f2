//! Dynamo's discovery: what its processes registered in etcd, in Kubernetes or in a folder, and who is gone, as it happens.
//! Hands entries over as they are, under the keys of etcd, and knows nothing of what they mean.

mod entries;
mod etcd;
mod files;
mod http;
mod kubernetes;

use std::time::Duration;

use radixscope_dynamo::error::DecodeError;
use radixscope_intake::Payload;
use radixscope_model::record::{LinkState, Topic};

use entries::Entries;
pub(crate) use entries::Entry;

use crate::config::{Discovery, DiscoveryAt, InvalidOption};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::Failed;
use crate::source::link::{LastState, doubled, seconds};
use crate::time::now;

/// First wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Discovery as the command line describes it.
pub struct Source {
    name: String,
    store: Store,
    /// Only this Dynamo namespace.
    namespace: Option<String>,
}

enum Store {
    Etcd(Box<etcd::Etcd>),
    Files(files::Files),
    Kubernetes(Box<kubernetes::Kubernetes>),
}

impl Source {
    /// `None`: it is not read. `namespace`: the one to read; all otherwise.
    ///
    /// # Errors
    /// An option that cannot be used.
    pub fn new(options: Discovery, namespace: Option<String>) -> Result<Option<Self>, InvalidOption> {
        let Some(at) = options.discovery.clone() else { return Ok(None) };
        let (name, store) = match at {
            DiscoveryAt::Etcd(servers) => {
                let etcd = etcd::Etcd::new(&servers, &options)?;
                (format!("discovery/{}", etcd.shown()), Store::Etcd(Box::new(etcd)))
            }
            DiscoveryAt::Files(folder) => {
                (format!("discovery/file:{}", folder.display()), Store::Files(files::Files::new(folder)))
            }
            DiscoveryAt::Kubernetes(at) => {
                let kubernetes = kubernetes::Kubernetes::new(&at, &options)?;
                let name = format!("discovery/kubernetes:{}", kubernetes.namespace());
                (name, Store::Kubernetes(Box::new(kubernetes)))
            }
        };
        Ok(Some(Self { name, store, namespace }))
    }

    /// Its name as a source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that is registered now.
    pub(crate) async fn list(&mut self) -> Result<Vec<Entry>, Failed> {
        let mut all = match &mut self.store {
            Store::Etcd(etcd) => etcd.list().await?.0,
            Store::Files(files) => files.list().await?,
            Store::Kubernetes(kubernetes) => kubernetes.list().await?,
        };
        all.retain(|entry| entries::is_in(self.namespace.as_deref(), &entry.key));
        Ok(all)
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
        let Self { name, mut store, namespace } = self;
        let mut follower =
            Follower { to, name, said: LastState::default(), entries: Entries::new(namespace) };
        let mut failures = 0;
        loop {
            let Failed { state, words } = match &mut store {
                Store::Etcd(etcd) => etcd.follow(&mut follower).await?,
                Store::Files(files) => files.follow(&mut follower).await?,
                Store::Kubernetes(kubernetes) => kubernetes.follow(&mut follower).await?,
            };
            if follower.said.state() == Some(LinkState::Live) {
                failures = 0;
            }
            let wait = doubled(FIRST_WAIT, failures, LONGEST_WAIT);
            failures = failures.saturating_add(1);
            let words = format!("{words} Trying again in {}.", seconds(wait));
            follower.say(state, words).await?;
            tokio::time::sleep(wait).await;
        }
    }
}

/// What a store tells while it is followed.
struct Follower<'h> {
    to: &'h SourceHandle,
    name: String,
    said: LastState,
    entries: Entries,
}

impl Follower<'_> {
    async fn say(&mut self, state: LinkState, words: String) -> Result<(), HubEnded> {
        self.said.say(self.to, &self.name, state, words).await
    }

    /// These are all entries that there are.
    async fn all(&mut self, all: Vec<Entry>) -> Result<(), HubEnded> {
        for payload in self.entries.replace(all) {
            self.to.deliver(now(), payload).await?;
        }
        Ok(())
    }

    async fn put(&mut self, entry: Entry) -> Result<(), HubEnded> {
        match self.entries.put(entry) {
            Some(payload) => self.to.deliver(now(), payload).await,
            None => Ok(()),
        }
    }

    async fn end(&mut self, key: &str) -> Result<(), HubEnded> {
        match self.entries.end(key) {
            Some(payload) => self.to.deliver(now(), payload).await,
            None => Ok(()),
        }
    }

    /// An object that holds entries cannot be read: it counts as bad input.
    async fn unreadable(&self, error: DecodeError) -> Result<(), HubEnded> {
        let payload = Payload::Unreadable { topic: Topic::Discovery, error: Box::new(error), size_bytes: 0 };
        self.to.deliver(now(), payload).await
    }

    /// How many entries there are, in words.
    fn count(&self) -> String {
        match self.entries.len() {
            0 => "nothing is registered there".to_owned(),
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        }
    }
}
