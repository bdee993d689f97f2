//! A recorded deployment replayed through real sockets, faster if wanted: its messages by a real NATS server, its processes'
//! metrics by an HTTP server, its logs by files that grow, all of them by the recording's own clock.

mod clock;
pub mod expected;
mod logs;
mod messages;
mod metrics;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use radixscope_captures::Event;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::capture::Capture;
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::replay::create_streams;
pub use clock::Clock;
use metrics::Scraped;

/// Time between two looks at what is found.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Recorded seconds after the last message in which findings are still looked at: the processes' last metrics are then
/// as old as they ever were.
const AFTERWARDS_S: f64 = 2.0;

/// A deployment that is ready to be replayed, with its servers.
pub struct Recording {
    capture: Capture,
    nats: Nats,
    logs: Vec<logs::Log>,
    scraped: Scraped,
    _folder: TempDir,
    speed: f64,
}

/// A finding, as it was seen first.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Worst severity that it ever had.
    pub severity: String,
    /// Recorded time, Unix seconds.
    pub at_s: f64,
    /// The latest response about it.
    pub finding: Value,
}

/// What a server reported while a recording was replayed.
pub struct Replayed {
    /// The server, which has received everything.
    pub server: Radixscope,
    /// Every finding that was ever present, by code.
    pub seen: BTreeMap<String, Seen>,
    /// What was checked, at the end.
    pub checked: Value,
    /// What leads from recorded times to those of the replay at the recorded pace, seconds.
    pub shift_s: f64,
    timeline: Vec<Event>,
    _recording: Recording,
}

impl Recording {
    /// Prepares the capture `name` for replay at `speed` times its pace.
    pub async fn prepare(name: &'static str, speed: f64) -> Self {
        let capture = Capture::load(name);
        let nats = Nats::start().await;
        let retained: Vec<_> = capture.messages.iter().filter(|m| m.stream().is_some()).cloned().collect();
        create_streams(&nats.jetstream().await, &retained).await;
        let folder = tempfile::tempdir().expect("a writable folder");
        let logs = logs::load(name, folder.path());
        let scraped = Scraped::load(name).await;
        Self { capture, nats, logs, scraped, _folder: folder, speed }
    }

    /// The flags of `serve` and `check` that lead to all of it.
    pub fn flags(&self) -> Vec<OsString> {
        let mut flags: Vec<OsString> = vec!["--nats".into(), self.nats.url().into()];
        for log in &self.logs {
            flags.extend(["--logs".into(), log.path.clone().into_os_string()]);
        }
        for (name, url) in self.scraped.urls() {
            flags.extend(["--prometheus".into(), format!("{name}={url}").into()]);
        }
        flags.extend(["--prometheus-interval".into(), "0.5".into()]);
        flags
    }

    /// Begins to speak. The tasks end after the last word.
    pub async fn start(&mut self) -> (Clock, Vec<JoinHandle<()>>) {
        let clock = Clock::start(self.began_s(), self.speed);
        self.scraped.start(clock);
        let mut speaking = vec![tokio::spawn(messages::publish(
            self.nats.client().await,
            std::mem::take(&mut self.capture.messages),
            clock,
        ))];
        speaking.extend(self.logs.iter_mut().map(|log| tokio::spawn(log.write(clock))));
        (clock, speaking)
    }

    /// A server that hears all of it, and what it finds meanwhile.
    pub async fn replay(mut self) -> Replayed {
        let server = Radixscope::start([OsString::from("serve")].into_iter().chain(self.flags())).await;
        self.until_listening(&server).await;
        let ended_s = self.capture.messages.last().expect("messages").at_s;
        let (clock, speaking) = self.start().await;
        let mut seen = BTreeMap::new();
        while clock.now_s() < ended_s + AFTERWARDS_S {
            let response = server.json("/api/v1/findings").await;
            look(&response, clock.now_s(), &mut seen);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        for task in speaking {
            task.await.expect("everything was replayed");
        }
        let last = server.json("/api/v1/findings").await;
        look(&last, clock.now_s(), &mut seen);
        let timeline = radixscope_captures::Recording::fixture(self.capture.name).timeline();
        let (checked, shift_s) = (last["checked"].clone(), clock.today_s(0.0));
        Replayed { server, seen, checked, shift_s, timeline, _recording: self }
    }

    /// Waits until the server listens to NATS and has scraped what is there: what else there is comes later or is read from its
    /// beginning.
    async fn until_listening(&self, server: &Radixscope) {
        server.until_source_is("live").await;
        self.scraped.until_given().await;
    }

    /// When the first message was received, Unix seconds.
    fn began_s(&self) -> f64 {
        self.scraped.began_s().min(self.capture.messages.first().expect("messages").at_s)
    }
}

fn look(response: &Value, at_s: f64, seen: &mut BTreeMap<String, Seen>) {
    for finding in response["findings"].as_array().expect("findings") {
        let text = |field: &str| finding[field].as_str().expect("text").to_owned();
        let entry = seen.entry(text("code")).or_insert_with(|| Seen {
            severity: text("severity"),
            at_s,
            finding: finding.clone(),
        });
        if rank(&text("severity")) > rank(&entry.severity) {
            entry.severity = text("severity");
        }
        entry.finding = finding.clone();
    }
}

/// Order of severities.
pub fn rank(severity: &str) -> u8 {
    match severity {
        "info" => 0,
        "warning" => 1,
        "critical" => 2,
        other => panic!("{other} is no severity"),
    }
}

impl Replayed {
    /// When something was done to the deployment first, recorded Unix seconds.
    pub fn event_s(&self, event: &str) -> f64 {
        let found = self.timeline.iter().find(|known| known.event == event);
        found.unwrap_or_else(|| panic!("no {event} in the timeline")).at_s
    }

    /// The codes of warnings and critical findings.
    pub fn faults(&self) -> Vec<&str> {
        self.seen.iter().filter(|(_, seen)| rank(&seen.severity) > 0).map(|(code, _)| code.as_str()).collect()
    }

    /// A finding that has to have been there.
    pub fn finding(&self, code: &str) -> &Seen {
        let known: Vec<_> = self.seen.iter().map(|(code, seen)| (code, seen.at_s, &seen.severity)).collect();
        self.seen.get(code).unwrap_or_else(|| panic!("{code} was not found, only {known:?}"))
    }
}
