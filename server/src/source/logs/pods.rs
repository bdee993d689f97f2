//! The logs of pods that route, through Kubernetes' API: from their beginnings, through restarts of containers and rotation.
//!
//! Each line is asked for with its time, so that reading goes on after the last line, whatever ended it: a container that was
//! restarted (what is left of the one before is read first), an API server that went away, a kubelet that stops sending after
//! a rotation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{AsyncBufRead, AsyncBufReadExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::LogParams;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use radixscope_intake::MAX_LOG_LINE_BYTES;
use radixscope_model::record::LinkState;

use super::Log;
use crate::hub::{HubEnded, Parts, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::kubernetes::follow::Pods;
use crate::source::kubernetes::pods::PodInfo;
use crate::source::kubernetes::survey::Cluster;
use crate::source::kubernetes::{Failed, POD_LOGS};
use crate::source::lines::Lines;
use crate::source::link::{doubled, seconds};

/// Most logs that are followed: each is a connection to the API server.
const MAX_FOLLOWED: usize = 200;
/// First and longest wait after a log ended or failed.
const WAITS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// A log is quiet if nothing comes for so long.
const QUIET: Duration = Duration::from_secs(1);
/// A log that is silent for so long is asked for again from its last line: a kubelet may stop sending after a rotation.
const SILENT: Duration = Duration::from_secs(60);
/// Longest time at the front of a line: `2026-11-26T18:05:58.123456789+00:00 `.
const MAX_TIME_BYTES: usize = 40;

/// The logs of all pods that route.
pub struct PodLogs {
    cluster: Cluster,
    pods: watch::Receiver<Pods>,
    with_namespace: bool,
}

/// A log that is followed; it ends with this.
struct Followed {
    uid: String,
    name: Arc<str>,
    following: JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl PodLogs {
    /// Its name as a source.
    pub const NAME: &str = "log/kubernetes";

    pub(crate) fn new(cluster: Cluster, pods: watch::Receiver<Pods>, with_namespace: bool) -> Self {
        Self { cluster, pods, with_namespace }
    }

    /// Follows them until the process ends.
    pub async fn run(self, to: SourceHandle, shutdown: Shutdown) {
        let parts = Parts::new(to, "logs of frontends and endpoint pickers are followed");
        let mut end = shutdown;
        tokio::select! {
            () = over(&mut end) => {}
            // The hub ends only with the process.
            _ = parts.report() => {}
            () = self.follow(&parts) => {}
        }
    }

    async fn follow(mut self, parts: &Arc<Parts>) {
        let mut followed = BTreeMap::<(String, String), Followed>::new();
        loop {
            let now = self.pods.borrow_and_update().clone();
            followed.retain(|key, followed| {
                let is_there = now.all.get(key).is_some_and(|pod| pod.uid == followed.uid);
                if !is_there {
                    parts.remove(&followed.name);
                }
                is_there
            });
            let routing: Vec<_> = now.all.iter().filter(|(_, pod)| pod.log_container.is_some()).collect();
            let beyond = routing.len().saturating_sub(MAX_FOLLOWED);
            for (key, pod) in routing.into_iter().take(MAX_FOLLOWED) {
                if !followed.contains_key(key) {
                    followed.insert(key.clone(), self.begin(pod, parts));
                }
            }
            parts.set_whole(now.remark().map(|why| (LinkState::Partial, why)), beyond);
            if self.pods.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn begin(&self, pod: &PodInfo, parts: &Arc<Parts>) -> Followed {
        let name: Arc<str> = pod.shown(self.with_namespace).into();
        let (to, source) = (parts.handle(Arc::clone(&name)), format!("log/{name}"));
        let (log, of) = (Arc::clone(&name), Container::of(&self.cluster, pod));
        // The hub ends only with the process.
        let following = tokio::spawn(async move {
            let _ = of.follow(&mut Log::new(&source, log, &to)).await;
        });
        Followed { uid: pod.uid.clone(), name, following }
    }
}

/// A container with a log.
struct Container {
    cluster: Cluster,
    namespace: String,
    pod: String,
    container: Option<String>,
}

/// How far a log was read.
#[derive(Default, Debug, PartialEq, Eq)]
struct ReadTo {
    /// Of the last line.
    at: Option<Timestamp>,
    /// Lines with that time.
    lines: u64,
    /// Lines with that time that are sent again and were read before.
    again: u64,
}

/// Why a log ended.
enum End {
    /// The container ended, or the connection.
    Over,
    Silent,
    Hub(HubEnded),
}

impl Container {
    fn of(cluster: &Cluster, pod: &PodInfo) -> Self {
        Self {
            cluster: cluster.clone(),
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            container: pod.log_container.clone(),
        }
    }

    async fn follow(mut self, log: &mut Log<'_>) -> Result<(), HubEnded> {
        let shown = match &self.container {
            Some(container) => format!("the log of {}/{container}", self.pod),
            None => format!("the log of {}", self.pod),
        };
        log.status.say(LinkState::Connecting, format!("Opening {shown}.")).await?;
        let (mut read_to, mut failures, mut may_be_another) = (ReadTo::default(), 0, false);
        loop {
            // What is left of the container before this one comes first.
            if may_be_another && read_to.at.is_some() {
                self.read_rest(&mut read_to, log).await?;
            }
            may_be_another = true;
            let before = log.read;
            let params = self.params(&read_to, true, false);
            match self.api().log_stream(&self.pod, &params).await {
                Ok(stream) => {
                    log.is_current(&shown).await?;
                    match read(stream, &mut read_to, log, Some(&shown)).await {
                        End::Hub(ended) => return Err(ended),
                        End::Silent => {
                            may_be_another = false;
                            continue;
                        }
                        End::Over => {}
                    }
                    if log.read > before {
                        failures = 0;
                    }
                }
                Err(error) => {
                    let failed = failed(&self.cluster, &error);
                    if matches!(failed, Failed::Credentials(_))
                        && let Ok(client) = self.cluster.reach.connect().await
                    {
                        self.cluster.client = client;
                    }
                    let wait = seconds(doubled(WAITS[0], failures, WAITS[1]));
                    let status = failed.status();
                    log.status.say(status.state, format!("{} Retrying in {wait}.", status.detail)).await?;
                }
            }
            tokio::time::sleep(doubled(WAITS[0], failures, WAITS[1])).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Reads what is left of the log of the container before this one, if there was one.
    async fn read_rest(&self, read_to: &mut ReadTo, log: &mut Log<'_>) -> Result<(), HubEnded> {
        let params = self.params(read_to, false, true);
        // There is none unless it was restarted.
        let Ok(rest) = self.api().log_stream(&self.pod, &params).await else { return Ok(()) };
        match read(rest, read_to, log, None).await {
            End::Hub(ended) => Err(ended),
            End::Over | End::Silent => Ok(()),
        }
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client.clone(), &self.namespace)
    }

    fn params(&self, read_to: &ReadTo, follow: bool, previous: bool) -> LogParams {
        LogParams {
            container: self.container.clone(),
            follow,
            previous,
            timestamps: true,
            // The client rounds to the nearest second, which may be after the last line.
            since_time: read_to.at.and_then(|at| Timestamp::from_second(at.as_second()).ok()),
            ..LogParams::default()
        }
    }
}

/// Why a log cannot be read.
fn failed(cluster: &Cluster, error: &kube::Error) -> Failed {
    match cluster.failures().of_request("get", POD_LOGS, error) {
        // The API has logs; it is the pod that is not there, or is no more.
        Failed::NoSuchResource(_) => {
            Failed::Other(SourceStatus::connecting("The pod is not there.".to_owned()))
        }
        failed => failed,
    }
}

/// Reads a log to its end. `shown`: it is followed under this name.
async fn read(
    mut stream: impl AsyncBufRead + Unpin,
    read_to: &mut ReadTo,
    log: &mut Log<'_>,
    shown: Option<&str>,
) -> End {
    read_to.begin_again();
    let mut lines = Lines::new(MAX_LOG_LINE_BYTES + MAX_TIME_BYTES);
    let mut silent_for = Duration::ZERO;
    loop {
        let taken = match tokio::time::timeout(QUIET, stream.fill_buf()).await {
            Err(_) => {
                silent_for += QUIET;
                if silent_for >= SILENT {
                    break End::Silent;
                }
                0
            }
            Ok(Ok([]) | Err(_)) => break End::Over,
            Ok(Ok(bytes)) => {
                silent_for = Duration::ZERO;
                lines.push(bytes);
                bytes.len()
            }
        };
        stream.consume_unpin(taken);
        while let Some(line) = lines.next() {
            if let Some(line) = read_to.line(line)
                && let Err(ended) = log.line(line).await
            {
                return End::Hub(ended);
            }
        }
        let reported = match shown {
            // Once nothing more comes, at once: a log that is rarely written would show its counts late.
            Some(shown) if silent_for == QUIET => {
                log.status.say(LinkState::Live, format!("Following {shown}: {}.", log.counts())).await
            }
            Some(shown) => log.is_current(shown).await,
            None => Ok(()),
        };
        if let Err(ended) = reported {
            return End::Hub(ended);
        }
    }
}

impl ReadTo {
    /// A log begins at the last time, of which some lines were read.
    fn begin_again(&mut self) {
        self.again = self.lines;
    }

    /// A line without its time; `None`: it was read before.
    fn line<'l>(&mut self, line: &'l [u8]) -> Option<&'l [u8]> {
        let space = memchr::memchr(b' ', &line[..line.len().min(MAX_TIME_BYTES)]);
        let time = space.and_then(|at| {
            std::str::from_utf8(&line[..at]).ok()?.parse::<Timestamp>().ok().map(|time| (time, at))
        });
        // Without a time it is what the kubelet itself says.
        let Some((time, at)) = time else { return Some(line) };
        match self.at {
            Some(last) if time < last => return None,
            Some(last) if time == last && self.again > 0 => {
                self.again -= 1;
                return None;
            }
            Some(last) if time == last => self.lines += 1,
            _ => (self.at, self.lines, self.again) = (Some(time), 1, 0),
        }
        Some(&line[at + 1..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_goes_on_after_the_last_line() {
        let mut read_to = ReadTo::default();
        let log: [&[u8]; 4] = [
            b"2026-11-26T18:05:58.1Z one",
            b"2026-11-26T18:05:58.100000001Z two",
            b"2026-11-26T18:05:58.100000001Z three",
            b"2026-11-26T18:05:58.100000001Z four",
        ];
        let new = |read_to: &mut ReadTo, log: &[&'static [u8]]| -> Vec<&'static [u8]> {
            read_to.begin_again();
            log.iter().filter_map(|line| read_to.line(line)).collect()
        };
        assert_eq!(new(&mut read_to, &log[..3]), [b"one", b"two" as &[u8], b"three"]);
        // From the second of the last line on, as the API gives it.
        assert_eq!(new(&mut read_to, &log), [b"four"]);
        assert_eq!(new(&mut read_to, &log), [b""; 0]);
        let later: [&[u8]; 2] = [b"2026-11-26T18:05:59Z five", b"failed to watch file"];
        assert_eq!(new(&mut read_to, &later), [b"five" as &[u8], b"failed to watch file"]);
    }

    #[test]
    fn a_line_without_a_time_is_kept_as_it_is() {
        let mut read_to = ReadTo::default();
        for line in [&b""[..], b"no time here", b"\xff\xfe x", b"2026-13-45T99:00:00Z odd"] {
            assert_eq!(read_to.line(line), Some(line));
        }
        assert_eq!(read_to.at, None);
        assert_eq!(read_to.line(b"2026-11-26T18:05:59Z "), Some(&b""[..]));
    }
}
