//! One part of a soak: starts everything, lets it happen, samples, and settles the accounts at the end.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::checkpoint::{End, Event, Line, Part, Plane, SAMPLE_EVERY_S, Sample, WorkerBlocks, Writer};
use super::deployment::{Deployment, EventPlane, Worker, publish};
use super::verdict::{BEGINS, UNEXPECTED};
use super::viewers::Viewers;
use radixscope_recording::{Recording, Series};
use radixscope_tests::etcd::Etcd;
use radixscope_tests::nats::{self, Nats};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{figures, wait};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::clock::Clock;
use super::faults::{Breakable, Fault, Schedule};
use super::log::{self, Log};
use super::targets::{self, Targets};

/// Workers of each plane at a time.
const WORKERS: usize = 16;
/// Time between two replacements of a worker: each lives for five minutes.
const ROLL_EVERY: Duration = Duration::from_secs(10);
/// How long a worker that leaves is silent before it says so, and how long its socket stays after that: nothing is on its way then.
const LEAVES_AFTER: Duration = Duration::from_secs(1);
/// Ids of workers that are replaced begin here.
const FIRST_ID: u64 = 1_000;
/// Room of the recording's disk, and the most that recordings may take of it: the least that the option takes.
const DISK: &str = "48m";
const MAX_RECORDING: &str = "16MiB";
/// What the server keeps to go back to: full within the warm-up.
const HISTORY: &str = "5m";
/// Nothing breaks in the last minute, so that what is lost before can be counted.
const QUIET_AT_THE_END: Duration = Duration::from_secs(60);
/// How long the server may need to be whole again, or to have read everything.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);
/// The accounts have settled once they stood still for so long: a jump of numbers is a loss after two flushes, a second each.
const STANDS_STILL: Duration = Duration::from_secs(6);

/// How a part is run.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) lasts: Duration,
    pub(super) warm_up: Duration,
    pub(super) events_per_s: u64,
    pub(super) viewers: u64,
    pub(super) checkpoint: PathBuf,
}

/// What happened, for the file and for samples.
struct Notes {
    began: Instant,
    writer: Writer,
    /// Faults in force now.
    active: Vec<&'static str>,
    /// Those in force at some time since the last sample.
    recent: BTreeSet<&'static str>,
}

impl Notes {
    fn at_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn event(&mut self, what: String) {
        let at_s = self.at_s();
        println!("{at_s:8.1} s  {what}");
        self.writer.write(&Line::Event(Event { at_s, what }));
    }

    fn begins(&mut self, fault: Fault) {
        self.active.push(fault.name());
        self.recent.insert(fault.name());
        self.event(format!("{}{BEGINS}", fault.name()));
    }

    fn ends(&mut self, fault: Fault) {
        self.active.retain(|active| *active != fault.name());
        self.event(format!("{} ends", fault.name()));
    }

    fn recent(&mut self) -> Vec<String> {
        let recent = std::mem::replace(&mut self.recent, self.active.iter().copied().collect());
        recent.into_iter().map(str::to_owned).collect()
    }
}

/// All that a part is made of.
#[derive(Clone)]
struct Soak {
    server: Arc<Radixscope>,
    breakable: Arc<tokio::sync::Mutex<Breakable>>,
    deployment: Arc<tokio::sync::Mutex<Deployment>>,
    log: Arc<Mutex<Log>>,
    notes: Arc<Mutex<Notes>>,
    /// Workers are no longer replaced, and nothing is published or logged any more.
    is_over: Arc<AtomicBool>,
    until: Instant,
}

/// Runs it.
pub(super) async fn part(plan: &Plan) {
    let folder = tempfile::Builder::new().prefix("radixscope-soak-").tempdir().expect("a writable folder");
    let (soak, kinds, left_out) = start(plan, &folder).await;
    let server = Command::new(radixscope_tests::paths::radixscope()).arg("--version").output();
    let server = String::from_utf8_lossy(&server.expect("it starts").stdout).trim().to_owned();
    println!(
        "{server}, seed {}, {:.2} h, {}",
        plan.seed,
        plan.lasts.as_secs_f64() / 3_600.0,
        soak.server.url("/")
    );
    lock(&soak.notes).writer.write(&Line::Part(Part {
        seed: plan.seed,
        server,
        warm_up_s: plan.warm_up.as_secs_f64(),
        events_per_s: plan.events_per_s,
        left_out,
    }));
    let gaps_before = soak.recording_gaps().await;
    let mut viewers = Viewers::start(&soak.server.socket_url(), plan.viewers, plan.seed ^ 1);
    let full_disks = Arc::<Mutex<u64>>::default();
    let mut tasks = JoinSet::new();
    let publishing = publish(Arc::clone(&soak.deployment), plan.events_per_s, Arc::clone(&soak.is_over));
    tasks.spawn(publishing);
    tasks.spawn(soak.clone().write_log());
    tasks.spawn_local(soak.clone().replace_workers());
    tasks
        .spawn_local(soak.clone().break_things(Schedule::new(plan.seed ^ 2, kinds), Arc::clone(&full_disks)));
    let mut every = interval(Duration::from_secs(SAMPLE_EVERY_S));
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < soak.until {
        every.tick().await;
        let unexpected = match (soak.server.process().has_ended(), viewers.failed(), tasks.try_join_next()) {
            (Some(status), ..) => Some(format!("the server ended with {status}")),
            (None, Some(why), _) => Some(format!("a viewer failed: {why}")),
            (None, None, Some(Err(error))) => Some(format!("a part of the soak failed: {error}")),
            // It had nothing to do any more.
            (None, None, Some(Ok(())) | None) => None,
        };
        if let Some(unexpected) = unexpected {
            lock(&soak.notes).event(format!("{UNEXPECTED}{unexpected}"));
            eprintln!("--- last output of the server:\n{}", soak.server.process().last_output());
            return;
        }
        let sample = soak.sample(&viewers).await;
        lock(&soak.notes).writer.write(&Line::Sample(Box::new(sample)));
    }
    soak.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            lock(&soak.notes).event(format!("{UNEXPECTED}a part of the soak failed: {error}"));
        }
    }
    let full_disks = *lock(&full_disks);
    let end = soak.end(full_disks, gaps_before).await;
    if soak.server.process().lines().iter().any(|line| line.contains("panicked at")) {
        lock(&soak.notes).event(format!("{UNEXPECTED}a panic in the server's log"));
    }
    lock(&soak.notes).writer.write(&Line::End(end));
}

async fn start(plan: &Plan, folder: &TempDir) -> (Soak, Vec<Fault>, Vec<String>) {
    let nats = Nats::with(nats::Options { jetstream: false, ..nats::Options::default() }).await;
    let etcd = Etcd::start().await;
    let targets = Targets::start().await;
    let log_path = folder.path().join("frontend.log");
    let permanent = targets::worker_ids();
    let log = Log::new(log_path.clone(), plan.seed ^ 3, &permanent);
    let disk = folder.path().join("recording");
    std::fs::create_dir(&disk).expect("a writable folder");
    let path = |path: &Path| path.to_str().expect("a path of ours").to_owned();
    let mut args = ["serve", "--nats", &nats.url(), "--discovery", &etcd.url()].map(str::to_owned).to_vec();
    args.extend(targets.options().flat_map(|target| ["--prometheus".to_owned(), target]));
    args.extend(["--logs".to_owned(), format!("frontend={}", path(&log_path))]);
    args.extend(["--record", &path(&disk), "--record-max-size", MAX_RECORDING].map(str::to_owned));
    args.extend(["--history", HISTORY].map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (mut kinds, mut left_out) = (Fault::ALL.to_vec(), Vec::new());
    let mut leave_out = |fault: Fault, why: &str| {
        kinds.retain(|kind| *kind != fault);
        left_out.push(format!("{}: {why}", fault.name()));
    };
    let clock = Clock::new(folder.path());
    let variables = clock.as_ref().map_or_else(Vec::new, Clock::variables);
    let variables: Vec<(&str, &OsStr)> =
        variables.iter().map(|(name, value)| (*name, value.as_os_str())).collect();
    if clock.is_none() {
        leave_out(Fault::Clock, "libfaketime is not installed");
    }
    let server = if can_mount() {
        Radixscope::start_on_small_disk((&path(&disk), DISK), &args, &variables).await
    } else {
        leave_out(Fault::Disk, "no disk can be mounted here");
        Radixscope::start_with_variables(&args, &variables).await
    };
    let filler =
        PathBuf::from(format!("/proc/{}/root{}", server.process().id(), disk.join("filler").display()));
    let mut deployment = Deployment::new(nats.client().await);
    for number in 0..WORKERS {
        let first = FIRST_ID + 2 * number as u64;
        let nats_id = permanent.get(number).copied().unwrap_or(first);
        for (id, plane) in [(nats_id, EventPlane::Nats), (first + 1, EventPlane::Zmq)] {
            let worker = Worker::join(id, plane, &etcd).await;
            wait::until("a publisher has its subscriber", async || {
                wait::expect(worker.is_subscribed(), || worker.id().to_string())
            })
            .await;
            deployment.add(worker);
        }
    }
    let began = Instant::now();
    let writer = Writer::open(&plan.checkpoint);
    let soak = Soak {
        server: Arc::new(server),
        breakable: Arc::new(tokio::sync::Mutex::new(Breakable { nats, etcd, targets, filler, clock })),
        deployment: Arc::new(tokio::sync::Mutex::new(deployment)),
        log: Arc::new(Mutex::new(log)),
        notes: Arc::new(Mutex::new(Notes { began, writer, active: Vec::new(), recent: BTreeSet::new() })),
        is_over: Arc::default(),
        until: began + plan.lasts,
    };
    (soak, kinds, left_out)
}

/// Whether a server can be given a disk of its own.
fn can_mount() -> bool {
    let tries = [&["--mount"][..], &["--user", "--map-root-user", "--mount"]];
    tries.into_iter().any(|own| {
        let done = Command::new("unshare").args(own).arg("true").output();
        done.is_ok_and(|done| done.status.success())
    })
}

impl Soak {
    async fn write_log(self) {
        let mut every = interval(log::EACH);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_over.load(Ordering::Relaxed) {
            every.tick().await;
            let workers = self.deployment.lock().await.ids();
            lock(&self.log).decide(SystemTime::now(), &workers);
        }
    }

    /// One worker leaves, another joins with the same event plane. While etcd is away, none can: a worker does not start without it.
    async fn replace_workers(self) {
        let permanent = 2 * targets::worker_ids().len();
        let mut next_id = FIRST_ID + 2 * WORKERS as u64;
        let mut every = interval(ROLL_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.tick().await;
        while self.until > Instant::now() + QUIET_AT_THE_END {
            every.tick().await;
            if !self.breakable.lock().await.etcd.is_running() {
                continue;
            }
            let Some(leaving) = self.deployment.lock().await.remove_oldest(permanent) else { return };
            sleep(LEAVES_AFTER).await;
            self.with_etcd(async |etcd| etcd.revoke(leaving.id()).await).await;
            sleep(LEAVES_AFTER).await;
            let plane = leaving.plane();
            drop(leaving);
            let joining = self.with_etcd(async |etcd| Worker::join(next_id, plane, etcd).await).await;
            next_id += 1;
            wait::until_within(SETTLES_WITHIN, "a publisher has its subscriber", async || {
                wait::expect(joining.is_subscribed(), || joining.id().to_string())
            })
            .await;
            self.deployment.lock().await.add(joining);
        }
    }

    /// Waits until etcd runs.
    async fn with_etcd<T>(&self, act: impl AsyncFn(&Etcd) -> T) -> T {
        loop {
            let breakable = self.breakable.lock().await;
            if breakable.etcd.is_running() {
                return act(&breakable.etcd).await;
            }
            drop(breakable);
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn break_things(self, mut schedule: Schedule, full_disks: Arc<Mutex<u64>>) {
        loop {
            let next = schedule.next();
            let ends = Instant::now() + next.after + next.lasts;
            if ends + SETTLES_WITHIN / 2 + QUIET_AT_THE_END > self.until {
                return;
            }
            sleep(next.after).await;
            for fault in &next.faults {
                lock(&self.notes).begins(*fault);
                if *fault == Fault::Publishers {
                    self.deployment.lock().await.disconnect_publishers();
                }
                self.breakable.lock().await.begin(*fault);
            }
            let mut was_full = false;
            while Instant::now() < ends {
                sleep(Duration::from_secs(1).min(ends.saturating_duration_since(Instant::now()))).await;
                if next.faults.contains(&Fault::Disk) {
                    self.breakable.lock().await.fill();
                    was_full |= self.recording_error().await.is_some();
                }
            }
            for fault in &next.faults {
                self.breakable.lock().await.end(*fault).await;
                lock(&self.notes).ends(*fault);
            }
            if was_full {
                *lock(&full_disks) += 1;
                wait::until_within(SETTLES_WITHIN, "it is recorded again", async || {
                    self.recording_error().await.map_or(Ok(()), Err)
                })
                .await;
            }
        }
    }

    /// Why nothing is recorded, if the server answers.
    async fn recording_error(&self) -> Option<String> {
        self.cluster().await?["recording"]["error"].as_str().map(str::to_owned)
    }

    /// Gaps of the recording so far: the past in the log may come faster than it is recorded.
    async fn recording_gaps(&self) -> u64 {
        self.cluster().await.and_then(|cluster| cluster["recording"]["gaps"].as_u64()).unwrap_or(0)
    }

    async fn cluster(&self) -> Option<Value> {
        Some(self.server.try_get("/api/v1/cluster").await.ok()?.json())
    }

    async fn planes(&self, cluster: &Value) -> Vec<Plane> {
        let deployment = self.deployment.lock().await;
        let published = [("nats", EventPlane::Nats), ("zmq", EventPlane::Zmq)]
            .map(|(kind, plane)| (kind, deployment.published(plane)));
        drop(deployment);
        let sources = cluster["sources"].as_array().map_or(&[][..], Vec::as_slice);
        let plane = |(kind, published): (&str, u64)| {
            let of: Vec<Value> = sources.iter().filter(|source| source["kind"] == kind).cloned().collect();
            Plane {
                kind: kind.to_owned(),
                published,
                received: figures::sum(&of, "received"),
                missed: figures::sum(&of, "missed_total"),
                is_at_least: of.iter().any(|source| source["missed_at_least"] == true),
            }
        };
        published.into_iter().map(plane).collect()
    }

    async fn sample(&self, viewers: &Viewers) -> Sample {
        let cluster = self.cluster().await.unwrap_or_default();
        // At once: what is published meanwhile would pass for lost.
        let planes = self.planes(&cluster).await;
        let findings = self.server.try_get("/api/v1/findings").await.map(|found| found.json());
        let findings = findings.unwrap_or_default();
        let active = findings["findings"].as_array().into_iter().flatten();
        let findings: BTreeSet<String> =
            active.filter_map(|finding| finding["code"].as_str().map(str::to_owned)).collect();
        let process = self.server.process();
        let recording = &cluster["recording"];
        let (faults, at_s) = {
            let mut notes = lock(&self.notes);
            (notes.recent(), notes.at_s())
        };
        Sample {
            at_s,
            rss_bytes: process.rss_bytes(),
            anonymous_bytes: process.anonymous_bytes(),
            descriptors: process.descriptors(),
            threads: process.threads(),
            cpu_s: process.cpu_time().as_secs_f64(),
            faults,
            viewers: viewers.figures(),
            planes,
            seq: cluster["seq"].as_u64(),
            recording_bytes: recording["bytes"].as_u64(),
            recording_gaps: recording["gaps"].as_u64(),
            recording_error: recording["error"].as_str().map(str::to_owned),
            findings: findings.into_iter().collect(),
        }
    }

    /// The accounts, once they stand still.
    async fn end(&self, full_disks: u64, gaps_before: u64) -> End {
        let (mut before, mut since) = (Vec::new(), Instant::now());
        let began = Instant::now();
        let cluster = loop {
            let cluster = self.cluster().await.unwrap_or_default();
            let now = (self.planes(&cluster).await, log_lines_read(&cluster));
            if before != [now.clone()] {
                (before, since) = (vec![now], Instant::now());
            }
            if since.elapsed() > STANDS_STILL || began.elapsed() > SETTLES_WITHIN {
                break cluster;
            }
            sleep(Duration::from_millis(500)).await;
        };
        let workers = self.workers(&cluster).await;
        let planes = self.planes(&cluster).await;
        let recording = &cluster["recording"];
        let folder = self.breakable.lock().await.filler.parent().expect("a folder").to_owned();
        End {
            at_s: lock(&self.notes).at_s(),
            planes,
            workers,
            log_lines: lock(&self.log).lines(),
            log_lines_read: log_lines_read(&cluster),
            full_disks,
            recording_gaps: recording["gaps"].as_u64().unwrap_or(0).saturating_sub(gaps_before),
            recording_error: recording["error"].as_str().map(str::to_owned),
            recording_unreadable: unreadable(&folder).err(),
        }
    }

    /// What each worker holds and what is shown of it.
    async fn workers(&self, cluster: &Value) -> Vec<WorkerBlocks> {
        let shown = cluster["workers"].as_array().map_or(&[][..], Vec::as_slice);
        let blocks = |(worker_id, held): (u64, u64)| {
            let id = worker_id.to_string();
            let worker = shown.iter().find(|worker| worker["worker_id"] == *id);
            let is_complete = worker.is_some_and(|worker| worker["knowledge"]["state"] == "complete");
            WorkerBlocks {
                worker_id,
                held,
                shown: worker.and_then(|worker| worker["blocks"].as_u64()),
                is_complete,
            }
        };
        self.deployment.lock().await.held_blocks().into_iter().map(blocks).collect()
    }
}

/// Lines about routing that the server read.
fn log_lines_read(cluster: &Value) -> u64 {
    let sources = cluster["sources"].as_array().map_or(&[][..], Vec::as_slice);
    let logs: Vec<Value> = sources.iter().filter(|source| source["kind"] == "logs").cloned().collect();
    figures::sum(&logs, "received")
}

/// Folds everything that is recorded, while the server goes on writing and deletes the oldest.
fn unreadable(folder: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "mcap"));
    let open = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        Some(Recording::open(file).map_err(|error| format!("{}: {error}", path.display())))
    };
    let opened = paths.iter().filter_map(open).collect::<Result<Vec<_>, _>>()?;
    let folded = Series::of(opened)
        .and_then(|mut series| series.play(&mut |_| {}))
        .map_err(|error| error.to_string())?;
    folded.damaged.map_or(Ok(()), |damaged| Err(format!("{damaged:?}")))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
