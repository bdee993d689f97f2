//! Discovery in etcd, read over its JSON gateway: all entries, then every change from that revision on. After a
//! compaction, a break or a restart all are read again, and what changed meanwhile is told.

mod client;
mod wire;

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::HeaderValue;
use tokio::time::MissedTickBehavior;
use url::Url;

use radixscope_model::record::LinkState;

use super::entries::MAX_ENTRIES;
use super::{Entry, Follower};
use crate::config::{Discovery, EtcdServers, InvalidOption, Secret};
use crate::hub::HubEnded;
use crate::source::Failed;
use client::Client;
use wire::{Change, Login, RangeAnswer, RangeRequest, Token, WatchLine, WatchRequest};

/// How often it is asked how many entries there are: a watch says nothing while nothing changes, nor when the connection is
/// dead. And etcd before 3.5.18 may keep the end of entries from a watch that begins where its history was compacted.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// An etcd cluster.
pub(super) struct Etcd {
    servers: Vec<Url>,
    /// The one to ask.
    next: usize,
    login: Option<(String, Secret)>,
    client: Client,
    /// Everything that it has under Dynamo's prefix, as it was listed and watched.
    keys: BTreeSet<String>,
}

impl Etcd {
    pub(super) fn new(servers: &EtcdServers, options: &Discovery) -> Result<Self, InvalidOption> {
        let named = options.discovery_user.clone().zip(options.discovery_password.clone());
        Ok(Self {
            servers: servers.servers.clone(),
            next: 0,
            login: named.or_else(|| servers.login.clone()),
            client: Client::new(options)?,
            keys: BTreeSet::new(),
        })
    }

    /// Its servers, as people write them.
    pub(super) fn shown(&self) -> String {
        let host = |url: &Url| {
            let port = url.port_or_known_default().unwrap_or_default();
            format!("{}:{port}", url.host_str().unwrap_or_default())
        };
        self.servers.iter().map(host).collect::<Vec<_>>().join(",")
    }

    /// Tells what is there, and what changes, until the connection fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<Failed, HubEnded> {
        loop {
            let (all, revision) = match self.list().await {
                Ok(listed) => listed,
                Err(failed) => return Ok(failed),
            };
            to.all(all).await?;
            match self.watch(revision, to).await? {
                Ended::ReadAgain => {}
                Ended::Failed(failed) => {
                    self.next += 1;
                    return Ok(failed);
                }
            }
        }
    }

    /// All entries, and the revision as of which they are.
    pub(super) async fn list(&mut self) -> Result<(Vec<Entry>, i64), Failed> {
        let listed = self.try_list().await;
        if listed.is_err() {
            self.next += 1;
        }
        listed
    }

    async fn try_list(&mut self) -> Result<(Vec<Entry>, i64), Failed> {
        self.log_in().await?;
        let mut all: Vec<Entry> = Vec::new();
        let mut last: Option<(Vec<u8>, i64)> = None;
        loop {
            let after = last.as_ref().map(|(key, revision)| (&**key, *revision));
            let page: RangeAnswer =
                self.client.ask(self.server(), "/v3/kv/range", &RangeRequest::page(after)).await?;
            let revision = last.as_ref().map_or(page.header.revision, |(_, revision)| *revision);
            let end = page.kvs.last().map(|kv| kv.key.bytes().to_vec());
            all.extend(page.kvs.into_iter().filter_map(wire::KeyValue::entry));
            match end {
                Some(end) if page.more && all.len() < MAX_ENTRIES => last = Some((end, revision)),
                _ => {
                    self.keys = all.iter().map(|entry| entry.key.clone()).collect();
                    return Ok((all, revision));
                }
            }
        }
    }

    async fn watch(&mut self, revision: i64, to: &mut Follower<'_>) -> Result<Ended, HubEnded> {
        let request = WatchRequest::from_revision(revision.saturating_add(1));
        let mut lines = match self.client.lines(self.server(), "/v3/watch", &request).await {
            Ok(lines) => lines,
            Err(failed) => return Ok(Ended::Failed(failed)),
        };
        let mut ask = tokio::time::interval(ASK_EVERY);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_equal = true;
        loop {
            let words = format!("Watching {} of Dynamo in etcd at {}.", to.count(), self.shown());
            to.say(LinkState::Live, words).await?;
            let line: Result<WatchLine, Failed> = tokio::select! {
                line = lines.next() => line,
                _ = ask.tick() => match self.count().await {
                    // What changes now may be on its way: it has to differ twice.
                    Ok(count) if count == self.keys.len() || was_equal => {
                        was_equal = count == self.keys.len();
                        continue;
                    }
                    Ok(_) => return Ok(Ended::ReadAgain),
                    Err(failed) => Err(failed),
                },
            };
            let result = match line {
                Err(failed) => return Ok(Ended::Failed(failed)),
                Ok(WatchLine { error: Some(error), .. }) => {
                    return Ok(Ended::Failed(self.ended(&error.to_string())));
                }
                Ok(WatchLine { result: None, .. }) => continue,
                Ok(WatchLine { result: Some(result), .. }) => result,
            };
            if result.canceled {
                return Ok(match result.compact_revision {
                    0 => Ended::Failed(self.ended(&result.cancel_reason)),
                    _ => Ended::ReadAgain,
                });
            }
            for change in result.events.into_iter().filter_map(wire::Event::change) {
                match change {
                    Change::Put(entry) => {
                        self.keys.insert(entry.key.clone());
                        to.put(entry).await?;
                    }
                    Change::End(key) => {
                        self.keys.remove(&key);
                        to.end(&key).await?;
                    }
                }
            }
        }
    }

    /// How many entries there are.
    async fn count(&self) -> Result<usize, Failed> {
        let answer: RangeAnswer =
            self.client.ask(self.server(), "/v3/kv/range", &RangeRequest::count()).await?;
        // More than are listed are not followed either.
        Ok(usize::try_from(answer.count).unwrap_or(0).min(MAX_ENTRIES))
    }

    async fn log_in(&mut self) -> Result<(), Failed> {
        let Some((name, password)) = &self.login else { return Ok(()) };
        self.client.authorize(None);
        let login = Login { name, password: password.reveal() };
        let Token { token } = self.client.ask(self.server(), "/v3/auth/authenticate", &login).await?;
        let mut token = HeaderValue::try_from(token)
            .map_err(|_| Failed::refused("etcd gave a token that no header can hold.".to_owned()))?;
        token.set_sensitive(true);
        self.client.authorize(Some(token));
        Ok(())
    }

    fn ended(&self, why: &str) -> Failed {
        let why: String = why.chars().take(200).collect();
        Failed::connecting(format!("etcd at {} ended the watch: {why}.", self.shown()))
    }

    fn server(&self) -> &Url {
        &self.servers[self.next % self.servers.len()]
    }
}

/// Why a watch ended.
enum Ended {
    /// The revision to watch from is no longer kept, or something was missed.
    ReadAgain,
    Failed(Failed),
}
