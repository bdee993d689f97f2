//! Asks many Radixscopes for their figures, each in its own task, and keeps the latest answers and a few minutes of points. Nothing is
//! stored; only the addresses of the command line are asked. Knows no page.

mod answer;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use radixscope_export::ClusterSummary;
use radixscope_export::fleet::{FleetPoint, FleetReport, MemberReport, MemberState};
use radixscope_model::id::Millis;
use tokio::task::JoinHandle;

use crate::config::{InvalidOption, MemberAt, Members};
use crate::shutdown::{Shutdown, over};
use crate::source::http_client::{Bounds, HttpClient};
use crate::source::{doubled, with_jitter};
use crate::time::now;
pub(crate) use answer::FailureKind;
use answer::{Failed, ask};

/// Largest answer: a summary has about 2 KiB.
const MAX_ANSWER_BYTES: usize = 256 << 10;
/// A member that does not answer is asked at least this often, in intervals.
const LONGEST_WAIT_INTERVALS: u32 = 6;
/// Distance of points: figures are of the last minute, so closer ones would show nothing more.
const POINT_EVERY_MS: u64 = 15_000;
/// Points of a member: a quarter of an hour, what Radixscope keeps of its own history by default.
const MAX_POINTS: usize = 60;

/// The members, not asked yet.
pub(crate) struct Fleet {
    members: Vec<MemberAt>,
    board: Arc<Board>,
    client: HttpClient,
    bounds: Bounds,
}

impl Fleet {
    pub(crate) fn new(options: &Members) -> Result<Self, InvalidOption> {
        let members = options.list()?;
        let ca = options.member_tls_ca.as_deref().map(|path: &Path| ("--member-tls-ca", path));
        let client = HttpClient::trusting(ca)?;
        let bounds = Bounds { within: options.poll_timeout, most_bytes: MAX_ANSWER_BYTES };
        let board = Arc::new(Board::new(&members, options.poll_interval));
        Ok(Self { members, board, client, bounds })
    }

    /// What the members answer.
    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Begins to ask; the future ends that.
    pub(crate) fn start(self, stopped: &Shutdown) -> impl Future<Output = ()> + use<> {
        let Self { members, board, client, bounds } = self;
        let start = |(at, member)| {
            let (board, client) = (Arc::clone(&board), client.clone());
            tokio::spawn(follow(at, member, board, client, bounds, stopped.clone()))
        };
        let tasks: Vec<JoinHandle<()>> = members.into_iter().enumerate().map(start).collect();
        async move { tasks.iter().for_each(JoinHandle::abort) }
    }
}

/// Asks one member again and again.
async fn follow(
    at: usize,
    member: MemberAt,
    board: Arc<Board>,
    client: HttpClient,
    bounds: Bounds,
    mut stopped: Shutdown,
) {
    let interval = board.interval;
    let mut failures = 0;
    loop {
        let began = Instant::now();
        let answer = tokio::select! {
            () = over(&mut stopped) => return,
            answer = ask(&client, &member, bounds) => answer,
        };
        failures = if answer.is_ok() { 0 } else { failures + 1 };
        board.note(at, answer, began.elapsed());
        let wait = doubled(interval, failures, interval * LONGEST_WAIT_INTERVALS);
        tokio::select! {
            () = over(&mut stopped) => return,
            () = tokio::time::sleep(with_jitter(wait)) => {}
        }
    }
}

/// What the members answered last.
pub(crate) struct Board {
    started: Instant,
    interval: Duration,
    rows: Vec<Mutex<Row>>,
}

/// One member. Its task writes, readers copy.
struct Row {
    name: String,
    link: String,
    state: MemberState,
    since_ms: Millis,
    detail: String,
    answered_ms: Option<Millis>,
    took_ms: Option<u64>,
    version: Option<String>,
    summary: Option<ClusterSummary>,
    points: VecDeque<FleetPoint>,
    polls: u64,
    failures: BTreeMap<FailureKind, u64>,
}

/// Counts of one member, for `/metrics`.
pub(crate) struct MemberCounts {
    pub(crate) name: String,
    pub(crate) state: MemberState,
    pub(crate) age_ms: Option<u64>,
    pub(crate) took_ms: Option<u64>,
    pub(crate) polls: u64,
    pub(crate) failures: BTreeMap<FailureKind, u64>,
}

impl Board {
    fn new(members: &[MemberAt], interval: Duration) -> Self {
        let rows = members.iter().map(|member| Mutex::new(Row::new(member))).collect();
        Self { started: Instant::now(), interval, rows }
    }

    fn rows(&self) -> impl Iterator<Item = MutexGuard<'_, Row>> {
        self.rows.iter().map(|row| row.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, at: usize, answer: Result<ClusterSummary, Failed>, took: Duration) {
        if let Some(row) = self.rows.get(at) {
            row.lock().unwrap_or_else(PoisonError::into_inner).note(answer, took, now());
        }
    }

    /// How long this process runs.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Members that answer, that were asked at all, and all.
    pub(crate) fn totals(&self) -> (usize, usize, usize) {
        let states: Vec<MemberState> = self.rows().map(|row| row.state).collect();
        let answering = states.iter().filter(|state| **state == MemberState::Answering).count();
        let asked = states.iter().filter(|state| **state != MemberState::Waiting).count();
        (answering, asked, states.len())
    }

    /// All members, with the points after `after`.
    pub(crate) fn report(&self, after: Millis) -> FleetReport {
        let members: Vec<MemberReport> = self.rows().map(|row| row.report(after)).collect();
        let answering = members.iter().filter(|member| member.state == MemberState::Answering).count();
        FleetReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at_ms: now(),
            poll_interval_s: self.interval.as_secs_f64(),
            points_s: POINT_EVERY_MS / 1_000 * MAX_POINTS as u64,
            answering: answering as u32,
            members,
        }
    }

    /// Counts of all members.
    pub(crate) fn counts(&self) -> Vec<MemberCounts> {
        let now = now();
        let of = |row: MutexGuard<'_, Row>| MemberCounts {
            name: row.name.clone(),
            state: row.state,
            age_ms: row.answered_ms.map(|at| now.since(at)),
            took_ms: row.took_ms,
            polls: row.polls,
            failures: row.failures.clone(),
        };
        self.rows().map(of).collect()
    }
}

impl Row {
    fn new(member: &MemberAt) -> Self {
        Self {
            name: member.name.clone(),
            link: member.link.to_string(),
            state: MemberState::Waiting,
            since_ms: now(),
            detail: String::new(),
            answered_ms: None,
            took_ms: None,
            version: None,
            summary: None,
            points: VecDeque::new(),
            polls: 0,
            failures: BTreeMap::new(),
        }
    }

    fn note(&mut self, answer: Result<ClusterSummary, Failed>, took: Duration, now: Millis) {
        self.polls += 1;
        let before = self.state;
        match answer {
            Ok(summary) => {
                self.add_point(&summary, now);
                self.state = MemberState::Answering;
                self.detail.clear();
                self.answered_ms = Some(now);
                self.took_ms = Some(took.as_millis() as u64);
                self.version = Some(summary.version.clone());
                self.summary = Some(summary);
            }
            Err(Failed { kind, detail, version }) => {
                *self.failures.entry(kind).or_default() += 1;
                self.state = match version {
                    Some(_) => MemberState::NoSummary,
                    None => MemberState::NotAnswering,
                };
                self.version = version.or_else(|| self.version.take());
                self.detail = detail;
            }
        }
        if self.state != before {
            self.since_ms = now;
            let (member, state) = (&self.name, self.state.as_str());
            match self.state {
                MemberState::Answering => tracing::info!(member, state, "answers"),
                _ => tracing::warn!(member, state, "{}", self.detail),
            }
        }
    }

    fn add_point(&mut self, summary: &ClusterSummary, now: Millis) {
        let is_due = self.points.back().is_none_or(|last| now.since(last.at_ms) >= POINT_EVERY_MS);
        if is_due {
            let point =
                FleetPoint { at_ms: now, hit_rate: summary.hit_rate.share, ttft_ms: summary.ttft.p95_ms };
            self.points.push_back(point);
        }
        let oldest = now.0.saturating_sub(POINT_EVERY_MS * MAX_POINTS as u64);
        while self.points.len() > MAX_POINTS
            || self.points.front().is_some_and(|first| first.at_ms.0 < oldest)
        {
            self.points.pop_front();
        }
    }

    fn report(&self, after: Millis) -> MemberReport {
        MemberReport {
            name: self.name.clone(),
            link: self.link.clone(),
            state: self.state,
            since_ms: self.since_ms,
            detail: self.detail.clone(),
            answered_ms: self.answered_ms,
            took_ms: self.took_ms,
            version: self.version.clone(),
            summary: self.summary.clone(),
            points: self.points.iter().filter(|point| point.at_ms > after).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use radixscope_state::cluster::Cluster;

    use super::*;

    fn row() -> Row {
        Row::new(&"a=http://a".parse().unwrap())
    }

    fn summary() -> ClusterSummary {
        ClusterSummary::of(&Cluster::default(), Millis(5), false, None)
    }

    #[test]
    fn a_member_that_stops_answering_keeps_what_it_answered_and_since_when_it_is_silent() {
        let mut row = row();
        let failed =
            || Failed { kind: FailureKind::Unreachable, detail: "refused".to_owned(), version: None };
        row.note(Ok(summary()), Duration::from_millis(4), Millis(1_000));
        row.note(Err(failed()), Duration::ZERO, Millis(2_000));
        row.note(Err(failed()), Duration::ZERO, Millis(3_000));
        let report = row.report(Millis(0));
        assert_eq!((report.state, report.since_ms), (MemberState::NotAnswering, Millis(2_000)));
        assert_eq!((report.answered_ms, report.took_ms), (Some(Millis(1_000)), Some(4)));
        assert!(report.summary.is_some() && report.current().is_none() && report.detail == "refused");
        assert_eq!((row.polls, row.failures[&FailureKind::Unreachable]), (3, 2));
        row.note(Ok(summary()), Duration::ZERO, Millis(4_000));
        let report = row.report(Millis(0));
        assert_eq!(
            (report.state, report.since_ms, &*report.detail),
            (MemberState::Answering, Millis(4_000), "")
        );
    }

    #[test]
    fn points_are_bounded_in_number_and_in_age() {
        let mut row = row();
        for at_s in 0..10_000 {
            row.note(Ok(summary()), Duration::ZERO, Millis(at_s * 1_000));
        }
        let points = row.report(Millis(0)).points;
        assert_eq!(points.len(), MAX_POINTS);
        assert!(points.windows(2).all(|pair| pair[1].at_ms.since(pair[0].at_ms) == POINT_EVERY_MS));
        assert_eq!(row.report(points[57].at_ms).points, points[58..]);
        row.note(Ok(summary()), Duration::ZERO, Millis(20_000_000));
        assert_eq!(row.points.len(), 1, "what is older than they reach is dropped");
    }
}
