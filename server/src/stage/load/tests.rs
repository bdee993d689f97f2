//! Load against a real HTTP server that answers with a frontend's own bytes, fails as servers do, is killed and comes back.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant as Clock;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response as HttpResponse};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;

use super::*;
use crate::hub::{LoneInbox, QueueLimits};

const WHOLE: &str = include_str!("../../../../tests/fixtures/chat/1.6.1/whole.sse");
const WORKERS_KILLED: &str = include_str!("../../../../tests/fixtures/chat/1.6.1/workers-killed.sse");
const NO_MODEL: &str = r#"{"message":"Model not found","type":"Not Found","code":404}"#;
/// A twentieth of the usual.
const SHORT: Waits = Waits {
    first: Duration::from_millis(25),
    longest: Duration::from_millis(500),
    return_within: Duration::from_millis(200),
    look_every: Duration::from_millis(5),
};
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the target behaves now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Answers,
    /// The first token comes so late, in milliseconds, and the rest later by as much.
    Slow(u64),
    NoModel,
    WorkersDie,
    /// Only its first request is answered.
    AnswersOnce,
    Moved(SocketAddr),
    Silent,
}

#[derive(Clone)]
struct Target {
    mode: Arc<Mutex<Mode>>,
    received: Arc<Mutex<Vec<Asked>>>,
}

/// Connections to the target, in a runtime of their own.
struct Serving(Option<Runtime>);

impl Drop for Serving {
    fn drop(&mut self) {
        // Waits for nothing, as a runtime may not end within another otherwise.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// A request that the target received.
struct Asked {
    at: Clock,
    id: String,
    path: String,
    body: Value,
}

async fn answer(State(target): State<Target>, request: Request) -> HttpResponse {
    let at = Clock::now();
    let id = request.headers().get("x-request-id").map(|id| id.to_str().unwrap().to_owned());
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let is_first = {
        let mut received = target.received.lock().unwrap();
        received.push(Asked { at, id: id.unwrap_or_default(), path, body });
        received.len() == 1
    };
    let mode = *target.mode.lock().unwrap();
    let streamed = |body: Body| ([("content-type", "text/event-stream")], body).into_response();
    match mode {
        Mode::Answers => streamed(WHOLE.into()),
        Mode::AnswersOnce if is_first => streamed(WHOLE.into()),
        Mode::Slow(ms) => {
            let (first, rest) = WHOLE.split_at(WHOLE.find("\n\n").unwrap() + 2);
            let parts = stream::iter([first, rest]).then(move |part| async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok::<_, std::io::Error>(Bytes::from_static(part.as_bytes()))
            });
            streamed(Body::from_stream(parts))
        }
        Mode::NoModel => (StatusCode::NOT_FOUND, NO_MODEL).into_response(),
        Mode::AnswersOnce => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Mode::WorkersDie => streamed(WORKERS_KILLED.into()),
        Mode::Moved(to) => {
            let to = format!("http://{to}/v1/chat/completions");
            (StatusCode::TEMPORARY_REDIRECT, [("location", to)]).into_response()
        }
        Mode::Silent => std::future::pending().await,
    }
}

impl Target {
    fn new(mode: Mode) -> Self {
        Self { mode: Arc::new(Mutex::new(mode)), received: Arc::default() }
    }

    /// Serves in a runtime of its own: with it all connections end, as those of a process that is killed.
    fn serve(&self, at: SocketAddr) -> (SocketAddr, Serving) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        let entered = runtime.enter();
        let listener = listen(at);
        drop(entered);
        let at = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (at, Serving(Some(runtime)))
    }

    fn received<T>(&self, read: impl Fn(&Asked) -> T) -> Vec<T> {
        self.received.lock().unwrap().iter().map(read).collect()
    }

    fn mode(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }
}

fn listen(at: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    // A port is taken again while connections to it end.
    socket.set_reuseaddr(true).unwrap();
    socket.bind(at).unwrap();
    socket.listen(1_024).unwrap()
}

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn options(at: SocketAddr, max_requests: u64) -> LoadOptions {
    LoadOptions {
        target: format!("http://{at}/").parse().unwrap(),
        model: "models/tiny-llama".to_owned(),
        seed: 7,
        output_tokens: 8,
        think_time: Duration::ZERO,
        max_requests,
        run_for: PATIENCE,
    }
}

/// Load that runs, and what it hands over.
struct Running {
    settings: watch::Sender<LoadSettings>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<Result<(), HubEnded>>,
    shared: Arc<Shared>,
    inbox: LoneInbox,
}

/// What came of it.
struct Ran {
    measured: Vec<ClientRecord<'static>>,
    states: Vec<(LinkState, String)>,
    counts: Counts,
}

impl Ran {
    fn last(&self) -> &(LinkState, String) {
        self.states.last().unwrap()
    }
}

impl Running {
    fn start(options: LoadOptions, concurrency: u32) -> Self {
        let first = LoadSettings { concurrency, is_paused: false };
        let (load, settings) = Load::with_waits(options, first, SHORT).unwrap();
        let (stop, stopped) = watch::channel(false);
        let (to, inbox) = LoneInbox::new(QueueLimits { messages: 100_000, bytes: 1 << 28 });
        let shared = load.0.clone();
        let driver = Driver::new(load.0, to);
        Self { settings, stop, task: tokio::spawn(driver.run(stopped)), shared, inbox }
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Counts) -> bool) {
        let wait = async {
            while !is_so(&self.shared.counts()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            panic!("never {what}: {}", self.shared.counts().to_text(0));
        }
    }

    async fn end(mut self) -> Ran {
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap().unwrap();
        let (payloads, states) = self.inbox.all().await;
        let measured = payloads.into_iter().map(|payload| match payload {
            Payload::ClientMeasured(record) => *record,
            other => panic!("{other:?}"),
        });
        let counts = self.shared.counts().clone();
        assert_eq!(counts.under_way(), 0, "every request is in one count");
        Ran { measured: measured.collect(), states, counts }
    }

    async fn stop(self) -> Ran {
        self.stop.send_replace(true);
        self.end().await
    }
}

#[tokio::test]
async fn so_many_requests_are_sent_and_no_more_and_each_is_measured() {
    let target = Target::new(Mode::Answers);
    let (at, _runtime) = target.serve(ANY);
    let ran = Running::start(options(at, 60), 5).end().await;
    assert_eq!((ran.counts.sent, ran.counts.answered), (60, 60));
    let (state, detail) = ran.last();
    assert_eq!(*state, LinkState::Ended);
    assert!(
        detail.starts_with("All requests are sent. 60 of at most 60 requests sent, 60 answered;"),
        "{detail}"
    );

    let ids: BTreeSet<String> = target.received(|asked| asked.id.clone()).into_iter().collect();
    assert_eq!((ids.len(), target.received.lock().unwrap().len()), (60, 60), "each with an id of its own");
    let measured: BTreeSet<String> =
        ran.measured.iter().map(|record| record.x_request_id.clone().unwrap().into_owned()).collect();
    assert_eq!(measured, ids);
    for ClientRecord { measured, .. } in &ran.measured {
        assert_eq!(
            (measured.outcome, measured.status, measured.output_tokens),
            (Outcome::Success, None, Some(5))
        );
        assert!(measured.ttft_us.is_some() && measured.ttft_us <= measured.duration_us, "{measured:?}");
        assert!(measured.sent_ms <= measured.ended_ms && measured.itl_us.is_some());
    }
    for asked in target.received.lock().unwrap().iter() {
        assert_eq!(
            (&*asked.path, &asked.body["model"]),
            ("/v1/chat/completions", &Value::from("models/tiny-llama"))
        );
        let bounds = (
            &asked.body["stream"],
            &asked.body["stream_options"]["include_usage"],
            &asked.body["max_tokens"],
        );
        assert_eq!(bounds, (&Value::from(true), &Value::from(true), &Value::from(8)));
    }
    let turns = target.received(|asked| asked.body["messages"].as_array().unwrap().len());
    // A starter and a question; an answer and a question more with each turn.
    assert_eq!(turns.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([2, 4, 6, 8, 10]));
    let said = target.received(|asked| asked.body["messages"].to_string());
    assert!(
        said[0].len() < 5_000 && said[1..].iter().all(|said| said.len() > 50_000),
        "the first is a short one"
    );
    assert!(
        said.iter().any(|said| said.contains(r#"{"content":" full functions]]cor fol","role":"assistant"}"#))
    );
}

#[tokio::test]
async fn times_are_those_of_tokens() {
    let target = Target::new(Mode::Slow(100));
    let (at, _runtime) = target.serve(ANY);
    let ran = Running::start(options(at, 3), 1).end().await;
    for ClientRecord { measured, .. } in &ran.measured {
        let [ttft, itl, duration] =
            [measured.ttft_us, measured.itl_us, measured.duration_us].map(Option::unwrap);
        assert!(ttft >= 100_000 && duration >= 200_000 && duration > ttft, "{measured:?}");
        // Each of them is cut to whole microseconds by itself.
        assert!(itl.abs_diff((duration - ttft) / 4) <= 1, "five tokens have four gaps: {measured:?}");
    }
    assert_eq!(ran.measured.len(), 3);
}

#[tokio::test]
async fn another_address_is_not_contacted_and_named() {
    let (target, other) = (Target::new(Mode::Answers), Target::new(Mode::Answers));
    let (at, _runtime) = target.serve(ANY);
    let (elsewhere, _other_runtime) = other.serve(ANY);
    target.mode(Mode::Moved(elsewhere));
    let ran = Running::start(options(at, 3), 2).end().await;
    assert_eq!(other.received.lock().unwrap().len(), 0);
    assert_eq!(ran.counts.failed, [(Reason::Status(307), 3)].into());
    let refused = ran.states.iter().find(|(state, _)| *state == LinkState::Refused).expect("refused");
    assert!(refused.1.contains(&elsewhere.to_string()) && refused.1.contains("--target"), "{}", refused.1);
}

#[tokio::test]
async fn what_the_target_says_of_a_failure_is_shown_and_tried_one_at_a_time() {
    let target = Target::new(Mode::NoModel);
    let (at, _runtime) = target.serve(ANY);
    let running = Running::start(options(at, 1_000), 50);
    running.until("five are refused", |counts| counts.failed.values().sum::<u64>() >= 5).await;
    let ran = running.stop().await;
    let (state, detail) = &ran.states[1];
    assert_eq!(*state, LinkState::Refused);
    assert!(
        detail.starts_with("No answers: status 404: Model not found. One request at a time is tried"),
        "{detail}"
    );
    let times = target.received(|asked| asked.at);
    // 25, 50, 100, 200 ms, a quarter less at least.
    assert!(times[4] - times[0] >= Duration::from_millis(280), "{:?}", times[4] - times[0]);
    assert!(ran.measured.iter().all(|record| record.measured.status == Some(404)));
}

#[tokio::test]
async fn a_target_that_takes_nothing_more_is_not_stormed() {
    let target = Target::new(Mode::AnswersOnce);
    let (at, _runtime) = target.serve(ANY);
    let running = Running::start(options(at, 10_000), 50);
    running.until("many failed", |counts| counts.failed.values().sum::<u64>() >= 60).await;
    let ran = running.stop().await;
    let times = target.received(|asked| asked.at);
    // Those under way when the gate closed; then one at a time.
    let (first, last) = (times[51], *times.last().unwrap());
    let tries = times.len() - 51;
    assert!(
        last - first >= SHORT.first.mul_f64(0.7) * u32::try_from(tries - 1).unwrap(),
        "{tries} in {:?}",
        last - first
    );
    assert!(
        ran.states
            .iter()
            .any(|(state, detail)| *state == LinkState::Connecting && detail.contains("status 503"))
    );
}

#[tokio::test]
async fn errors_in_streams_are_counted_by_their_kind() {
    let target = Target::new(Mode::WorkersDie);
    let (at, _runtime) = target.serve(ANY);
    let ran = Running::start(options(at, 2), 1).end().await;
    assert_eq!(ran.counts.failed, [(Reason::InStream, 2)].into());
    assert!(ran.last().1.contains("2 failed (2 error in the stream)"), "{}", ran.last().1);
    let measured = ran.measured[0].measured;
    assert_eq!(
        (measured.outcome, measured.duration_us, measured.output_tokens),
        (Outcome::Failed, None, None)
    );
    assert!(measured.ttft_us.is_some(), "its first token came");
}

#[tokio::test]
async fn a_target_that_is_killed_and_comes_back_finds_its_users_again_without_a_storm() {
    let target = Target::new(Mode::Slow(20));
    let (at, runtime) = target.serve(ANY);
    let running = Running::start(options(at, 100_000), 40);
    running.until("all users are there", |counts| counts.answered >= 80).await;
    drop(runtime);
    running.until("it is noticed", |counts| !counts.failed.is_empty()).await;
    let (sent_before, down_since) = (running.shared.counts().sent, Clock::now());
    // All at once find nobody there or are cut off, in any order; after them it is tried one at a time.
    running.until("those under way have ended", |counts| counts.under_way() <= 1).await;
    let refused = |counts: &Counts| counts.failed.get(&Reason::Unreachable).copied().unwrap_or(0);
    let refused_at_once = refused(&running.shared.counts());
    running.until("it is tried a few times", move |counts| refused(counts) >= refused_at_once + 5).await;
    let (sent_meanwhile, down_for) = (running.shared.counts().sent - sent_before, down_since.elapsed());
    // One for each user at most, that was just being sent; then tries one after the other.
    let tries = 40.0 + down_for.as_secs_f64() / (SHORT.first.as_secs_f64() * 0.7);
    assert!((sent_meanwhile as f64) <= tries, "{sent_meanwhile} in {down_for:?}");
    let before = target.received.lock().unwrap().len();
    let (_, _runtime) = target.serve(at);
    let answered = running.shared.counts().answered;
    running.until("all users are back", move |counts| counts.answered >= answered + 120).await;
    let ran = running.stop().await;

    let times: Vec<Clock> = target.received(|asked| asked.at).split_off(before);
    let within = |time: Duration| times.iter().filter(|&&at| at - times[0] <= time).count();
    // Each request takes 40 ms: without the gate there were 40 at once.
    assert!(within(SHORT.return_within / 8) < 25, "{}", within(SHORT.return_within / 8));
    let states: Vec<LinkState> = ran.states.iter().map(|(state, _)| *state).collect();
    let mut changes = states.clone();
    changes.dedup();
    assert_eq!(
        changes,
        [LinkState::Connecting, LinkState::Live, LinkState::Connecting, LinkState::Live, LinkState::Ended]
    );
    let latest = ran.counts.latest.as_ref().expect("it failed").to_string();
    assert!(latest.starts_with("no connection: Connection refused"), "{latest}");
    let Counts { sent, answered, failed, broken_off, .. } = ran.counts;
    assert_eq!(sent, answered + failed.values().sum::<u64>() + broken_off);
    assert_eq!(ran.measured.len() as u64, answered + failed.values().sum::<u64>());
}

#[tokio::test]
async fn users_come_go_and_pause_as_the_settings_say() {
    let target = Target::new(Mode::Slow(5));
    let (at, _runtime) = target.serve(ANY);
    let running = Running::start(options(at, 100_000), 1);
    let in_flight = |at_least: u64| move |counts: &Counts| counts.under_way() >= at_least;
    running.until("the first is answered", |counts| counts.answered >= 1).await;
    running.settings.send_replace(LoadSettings { concurrency: 20, is_paused: false });
    running.until("more are in flight", in_flight(10)).await;
    running.settings.send_replace(LoadSettings { concurrency: 20, is_paused: true });
    running.until("none is in flight", |counts| counts.under_way() == 0).await;
    let sent = running.shared.counts().sent;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(running.shared.counts().sent, sent, "nothing is sent while it is paused");
    running.settings.send_replace(LoadSettings { concurrency: 2, is_paused: false });
    running.until("it goes on", move |counts| counts.answered >= sent + 20).await;
    assert!(running.shared.counts().under_way() <= 2);
    assert!(LoadSettings { concurrency: u32::MAX, is_paused: false }.users() == MAX_CONCURRENCY);
    let ran = running.stop().await;
    assert!(ran.states.iter().any(|(_, detail)| detail.starts_with("Paused: nothing is sent.")));
}

#[tokio::test]
async fn what_is_in_flight_ends_after_the_last_is_sent() {
    let target = Target::new(Mode::Slow(100));
    let (at, _runtime) = target.serve(ANY);
    let running = Running::start(options(at, 100_000), 4);
    running.until("several are in flight", |counts| counts.under_way() == 4).await;
    let ran = running.stop().await;
    assert_eq!((ran.counts.sent, ran.counts.broken_off), (ran.counts.answered, 0));
    assert!(ran.last().1.starts_with("Stopped. "), "{:?}", ran.last());
}

#[tokio::test]
async fn it_ends_when_everything_is_sent_though_some_users_may_not_send() {
    let target = Target::new(Mode::Slow(5));
    let (at, _runtime) = target.serve(ANY);
    let running = Running::start(options(at, 100), 10);
    running.until("the first is answered", |counts| counts.answered >= 1).await;
    running.settings.send_replace(LoadSettings { concurrency: 1, is_paused: false });
    let ran = running.end().await;
    assert_eq!((ran.counts.sent, ran.counts.answered), (100, 100));
}

#[tokio::test]
async fn the_time_is_a_bound_too() {
    let target = Target::new(Mode::Answers);
    let (at, _runtime) = target.serve(ANY);
    let options = LoadOptions { run_for: Duration::from_millis(300), ..options(at, 100_000) };
    let ran = Running::start(options, 2).end().await;
    assert!(ran.last().1.starts_with("The time is over. "), "{:?}", ran.last());
    assert_eq!(ran.counts.sent, ran.counts.answered);
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answers_is_broken_off_when_it_ends() {
    let target = Target::new(Mode::Silent);
    let router = Router::new().fallback(answer).with_state(target.clone());
    let listener = listen(ANY);
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let running = Running::start(options(at, 10), 4);
    running.until("the first is sent", |counts| counts.sent == 1).await;
    let ran = running.stop().await;
    assert!(ran.counts.broken_off + ran.counts.failed.values().sum::<u64>() == 1, "{:?}", ran.counts);
    assert_eq!(ran.last().0, LinkState::Ended);
}
