//! Discovery in etcd over its JSON gateway: lists all entries, then watches from that revision. After a compaction or a lost
//! connection, all are listed again and the differences are delivered.

mod client;
mod wire;

use std::time::Duration;

use axum::http::HeaderValue;
use tokio::time::MissedTickBehavior;
use url::Url;

use radixscope_dynamo::discovery::pieces::DocumentPart;
use radixscope_model::record::LinkState;

use super::budget::Pass;
use super::{FIRST_WAIT, Follower, Stop};
use crate::config::{Discovery, EtcdServers, InvalidOption, Secret};
use crate::hub::HubEnded;
use crate::source::SourceStatus;
use client::{Client, EtcdResponse};
use wire::{
    Change, Event, KeyValue, Login, RANGES, RangeRequest, RangeResponse, Token, WatchLine, WatchRequest,
};

/// Entries of a page. Those of Dynamo have less than a kilobyte.
const PAGE: usize = 200;
/// Maximum bytes read of a page; the next one begins behind its last entry. Other applications may have stored entries of 1.5
/// MiB.
const MAX_PAGE_BYTES: u64 = 8 * 1024 * 1024;

/// How often the number of entries is requested, because a watch is silent both without changes and on a dead connection. Also,
/// etcd before 3.5.18 may omit deletions from a watch that begins at a compacted revision.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// An etcd cluster.
pub(super) struct Etcd {
    servers: Vec<Url>,
    /// Index of the server in use.
    next: usize,
    login: Option<(String, Secret)>,
    client: Client,
}

impl Etcd {
    pub(super) fn new(servers: &EtcdServers, options: &Discovery) -> Result<Self, InvalidOption> {
        let named = options.discovery_user.clone().zip(options.discovery_password.clone());
        Ok(Self {
            servers: servers.servers.clone(),
            next: 0,
            login: named.or_else(|| servers.login.clone()),
            client: Client::new(options)?,
        })
    }

    /// Its servers as text.
    pub(super) fn shown(&self) -> String {
        let host = |url: &Url| {
            let port = url.port_or_known_default().unwrap_or_default();
            format!("{}:{port}", url.host_str().unwrap_or_default())
        };
        self.servers.iter().map(host).collect::<Vec<_>>().join(",")
    }

    /// Lists and watches until the connection fails.
    pub(super) async fn follow(&mut self, to: &mut Follower<'_>) -> Result<SourceStatus, HubEnded> {
        loop {
            let listed = match self.list(to).await {
                Ok(listed) => listed,
                Err(Stop::Failed(failed)) => return Ok(failed),
                Err(Stop::Hub(ended)) => return Err(ended),
            };
            let ended = match self.watch(listed, to).await {
                Ok(ended) => ended,
                Err(Stop::Failed(failed)) => Ended::Failed(failed),
                Err(Stop::Hub(ended)) => return Err(ended),
            };
            match ended {
                // Delayed, in case every watch ends this way.
                Ended::ReadAgain => tokio::time::sleep(FIRST_WAIT).await,
                Ended::Failed(failed) => {
                    self.next += 1;
                    return Ok(failed);
                }
            }
        }
    }

    /// Reads all entries.
    pub(super) async fn list(&mut self, to: &mut Follower<'_>) -> Result<Listed, Stop> {
        let listed = self.try_list(to).await;
        if listed.is_err() {
            self.next += 1;
        }
        listed
    }

    async fn try_list(&mut self, to: &mut Follower<'_>) -> Result<Listed, Stop> {
        self.log_in().await?;
        let (mut pass, listed) = (Pass::begin(), self.count().await?);
        to.begin_pass();
        for range in RANGES {
            self.list_range(range, listed.revision, &mut pass, to).await?;
        }
        if pass.is_over() {
            to.cut(&pass.to_text());
        } else {
            to.end_pass().await?;
        }
        Ok(listed)
    }

    async fn list_range(
        &self,
        range: (&str, &str),
        revision: i64,
        pass: &mut Pass,
        to: &mut Follower<'_>,
    ) -> Result<(), Stop> {
        let (mut last, mut limit) = (None::<Vec<u8>>, PAGE);
        loop {
            if pass.left_bytes() < MAX_PAGE_BYTES {
                pass.end();
            }
            if pass.is_over() {
                return Ok(());
            }
            let request = RangeRequest::page(range, last.as_deref(), limit, revision);
            let mut page = self.client.page(self.server(), &request, (MAX_PAGE_BYTES, pass)).await?;
            let read = read_page(&mut page, last.as_deref(), pass, to).await;
            pass.took(page.received_bytes());
            let read = read?;
            match read.is_over {
                Some(true) => return Ok(()),
                Some(false) => limit = (2 * limit).min(PAGE),
                // Large entries: request no more than were read, so that etcd does not collect entries for nothing.
                None => limit = read.entries.max(1),
            }
            last = Some(read.last);
        }
    }

    async fn watch(&mut self, listed: Listed, to: &mut Follower<'_>) -> Result<Ended, Stop> {
        let Listed { revision, mut count } = listed;
        let requests = WatchRequest::from_revision(revision.saturating_add(1));
        let mut lines = self.client.watch(self.server(), &requests).await?;
        let mut ask = tokio::time::interval(ASK_EVERY);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut was_equal, mut is_line_over) = (true, true);
        loop {
            if is_line_over {
                let detail = format!("etcd at {}: {}.", self.shown(), to.count());
                to.say(LinkState::Live, detail).await?;
            }
            let part = tokio::select! {
                part = lines.next() => part?,
                _ = ask.tick() => {
                    let is_equal = self.count().await?.count == count;
                    // A change may be in transit, so the count must differ twice.
                    if to.entries.take_room() || !(is_equal || was_equal) {
                        return Ok(Ended::ReadAgain);
                    }
                    was_equal = is_equal;
                    continue;
                }
            };
            is_line_over = matches!(part, Some(DocumentPart::End(_)));
            match part {
                None => return Ok(Ended::Failed(lines.endless())),
                Some(DocumentPart::Element(event)) => {
                    let (event, left_out_bytes): (Event, _) = lines.read(&event)?;
                    count += event.adds();
                    match event.change(left_out_bytes) {
                        Some(Change::Put(found)) => to.put(found).await?,
                        Some(Change::End(key)) => to.end(&key).await?,
                        None => {}
                    }
                }
                Some(DocumentPart::End(line)) => {
                    if let Some(ended) = self.line(lines.read(&line)?.0) {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// Handles a watch line without its events.
    fn line(&self, line: WatchLine) -> Option<Ended> {
        if let Some(error) = line.error {
            return Some(Ended::Failed(self.ended(&error.to_string())));
        }
        let result = line.result.filter(|result| result.canceled)?;
        Some(match result.compact_revision {
            0 => Ended::Failed(self.ended(&result.cancel_reason)),
            _ => Ended::ReadAgain,
        })
    }

    /// The number of entries, at one revision.
    async fn count(&self) -> Result<Listed, SourceStatus> {
        let (mut revision, mut count) = (None, 0i64);
        for range in RANGES {
            let request = RangeRequest::count(range, revision);
            let response: RangeResponse = self.client.ask(self.server(), "/v3/kv/range", &request).await?;
            revision = revision.or(Some(response.header.revision));
            count = count.saturating_add(response.count);
        }
        Ok(Listed { revision: revision.unwrap_or_default(), count })
    }

    async fn log_in(&mut self) -> Result<(), SourceStatus> {
        let Some((name, password)) = &self.login else { return Ok(()) };
        self.client.authorize(None);
        let login = Login { name, password: password.reveal() };
        let Token { token } = self.client.ask(self.server(), "/v3/auth/authenticate", &login).await?;
        let mut token = HeaderValue::try_from(token).map_err(|_| {
            SourceStatus::refused("etcd returned a token that is not a valid header value.".to_owned())
        })?;
        token.set_sensitive(true);
        self.client.authorize(Some(token));
        Ok(())
    }

    fn ended(&self, why: &str) -> SourceStatus {
        let why: String = why.chars().take(200).collect();
        SourceStatus::connecting(format!("etcd at {} ended the watch: {why}.", self.shown()))
    }

    fn server(&self) -> &Url {
        &self.servers[self.next % self.servers.len()]
    }
}

/// A list of all entries.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    /// Revision of the list.
    revision: i64,
    /// Entries in etcd, including those that are not followed.
    count: i64,
}

/// The result of reading a page.
struct PageRead {
    entries: usize,
    /// Key of the last entry.
    last: Vec<u8>,
    /// Whether it is the last page; `None`: the page is longer than the limit.
    is_over: Option<bool>,
}

/// Delivers the entries of a page, all of which are behind the key `after`.
async fn read_page(
    page: &mut EtcdResponse,
    after: Option<&[u8]>,
    pass: &Pass,
    to: &mut Follower<'_>,
) -> Result<PageRead, Stop> {
    let mut read = PageRead { entries: 0, last: after.unwrap_or_default().to_vec(), is_over: None };
    loop {
        let (entry, is_cut) = match page.next().await? {
            Some(DocumentPart::End(around)) => {
                let (around, _): (RangeResponse, _) = page.read(&around)?;
                // Without an entry there is no key to continue from.
                read.is_over = Some(!around.more || read.entries == 0);
                return Ok(read);
            }
            Some(DocumentPart::Element(entry)) => (entry, false),
            None if read.entries > 0 || pass.is_over() => return Ok(read),
            // A single entry exceeds the page limit.
            None => (page.unfinished().ok_or_else(|| page.endless())?, true),
        };
        let entry = page.read(&entry);
        let (entry, left_out_bytes): (KeyValue, _) =
            if is_cut { entry.map_err(|_| page.endless())? } else { entry? };
        if entry.key.bytes() <= &*read.last {
            return Err(page.unordered().into());
        }
        (read.entries, read.last) = (read.entries + 1, entry.key.bytes().to_vec());
        if let Some(found) = entry.found(left_out_bytes) {
            to.put(found).await?;
        }
        if is_cut {
            return Ok(read);
        }
    }
}

/// Why a watch ended.
enum Ended {
    /// The revision was compacted, or a change was missed, or there is room for more entries.
    ReadAgain,
    Failed(SourceStatus),
}
