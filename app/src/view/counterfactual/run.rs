//! What is computed, step by step, in the worker: inputs taken once, results retained with their time, cancelled at will.
//! Knows nothing of how anything looks.

use std::cell::RefCell;
use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{
    About, DecisionRange, Facts, ModelReport, OfflineReplayReport, Sample, Selection, SweepReport,
    TEMPERATURES, arrivals_needed, weights_with,
};
use radixscope_model::id::{Millis, PoolIx};
use radixscope_panels::counterfactual::{RunProgress, RunRequest, Stamp, failure_text};
use radixscope_router::RouterMode;
use radixscope_state::cluster::PoolState;
use web_sys::AbortController;

use super::fetch;
use crate::store::{RoundRobinRun, Store, now_ms};
use crate::worker::client::Client;
use crate::worker::{Job, JobOutcome, WorkerResponse};

/// A result and what belongs to it.
#[derive(Clone)]
pub(super) struct Done<T> {
    pub(super) report: Arc<T>,
    /// Server's time at which its input was taken.
    pub(super) at_ms: Millis,
    /// In the worker.
    pub(super) worker_ms: f64,
    /// From the button to the result, with the way to the worker and back.
    pub(super) total_ms: f64,
    /// The pool that its decisions are of, as the address names it; `None`: there was one.
    pub(super) pool: Option<String>,
}

impl<T> Done<T> {
    /// When and on what it was computed; `about` is its report's.
    pub(super) fn stamp<'a>(&'a self, about: &'a About) -> Stamp<'a> {
        Stamp { at_ms: self.at_ms, pool: self.pool.as_deref(), about }
    }
}

/// Results and progress. Copied freely.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    store: Store,
    client: StoredValue<Client, LocalStorage>,
    abort: StoredValue<Option<AbortController>, LocalStorage>,
    /// Raised with each start and each end: what an earlier one still reports is ignored.
    turn: StoredValue<u32>,
    /// The pool of what is under way, or else of the results.
    pool: StoredValue<Option<PoolIx>>,
    /// The time that the results are of; 0: the present when they were computed.
    shown_at: StoredValue<u64>,
    pub(super) step: RwSignal<Option<RunProgress>>,
    pub(super) error: RwSignal<Option<String>>,
    pub(super) replay: RwSignal<Option<Done<OfflineReplayReport>>>,
    pub(super) model: RwSignal<Option<Done<ModelReport>>>,
    pub(super) sweep: RwSignal<Option<Done<SweepReport>>>,
}

/// Results outlive the panel: whoever comes back from a decision finds them.
#[derive(Clone, Default)]
struct RunResults {
    replay: Option<Done<OfflineReplayReport>>,
    model: Option<Done<ModelReport>>,
    sweep: Option<Done<SweepReport>>,
    pool: Option<PoolIx>,
    shown_at: u64,
}

thread_local! {
    static RESULTS: RefCell<RunResults> = RefCell::default();
}

impl Runner {
    pub(super) fn new(store: Store) -> Self {
        let results = RESULTS.with_borrow(RunResults::clone);
        let runner = Self {
            store,
            client: StoredValue::new_local(Client::default()),
            abort: StoredValue::new_local(None),
            turn: StoredValue::new(0),
            pool: StoredValue::new(results.pool),
            shown_at: StoredValue::new(results.shown_at),
            step: RwSignal::new(None),
            error: RwSignal::new(None),
            replay: RwSignal::new(results.replay),
            model: RwSignal::new(results.model),
            sweep: RwSignal::new(results.sweep),
        };
        on_cleanup(move || {
            runner.stop();
            RESULTS.set(RunResults {
                replay: runner.replay.get_untracked(),
                model: runner.model.get_untracked(),
                sweep: runner.sweep.get_untracked(),
                pool: runner.pool.get_value(),
                shown_at: runner.shown_at.get_value(),
            });
        });
        runner
    }

    /// Whether there are results of the pool that is shown, or some are under way. Tracked for the pool.
    pub(super) fn has_begun(self) -> bool {
        let is_same = self.pool.get_value() == self.store.compared_pool();
        is_same && (self.replay.with_untracked(Option::is_some) || self.step.with_untracked(Option::is_some))
    }

    /// Drops results of another time.
    pub(super) fn show_only(self, shown_at: u64) {
        if self.shown_at.get_value() != shown_at {
            self.stop();
            self.shown_at.set_value(shown_at);
            self.error.set(None);
            self.replay.set(None);
            self.model.set(None);
            self.sweep.set(None);
        }
    }

    /// The pool's name.
    fn pool_name(self) -> Option<String> {
        let pool = self.pool.get_value()?;
        self.store.peek(|shown| shown.cluster.pool(pool).map(PoolState::name))
    }

    /// Ends what is under way. Results stay.
    pub(super) fn stop(self) {
        self.turn.update_value(|turn| *turn += 1);
        self.client.with_value(Client::cancel);
        if let Some(abort) = self.abort.try_update_value(Option::take).flatten() {
            abort.abort();
        }
        self.step.set(None);
    }

    /// Decisions of one pool.
    fn selection(self, span: DecisionRange) -> Selection {
        let pool = untrack(|| self.store.compared_pool());
        self.pool.set_value(pool);
        Selection { pool, ..Selection::of(span) }
    }

    fn begin(self) -> u32 {
        self.stop();
        self.error.set(None);
        self.turn.get_value()
    }

    fn fail(self, message: String) {
        self.step.set(None);
        self.error.set(Some(message));
    }

    /// One setting: offline replay, then in the model if that is wanted too.
    pub(super) fn compute(self, request: RunRequest, then: impl Fn() + 'static) {
        let turn = self.begin();
        let steps = if request.with_model { 3 } else { 1 };
        let selection = self.selection(request.span);
        let (at_ms, started) = (self.store.now_ms(), now_ms());
        let (sample, facts) =
            self.store.peek(|cluster| (Sample::of(cluster, selection), Facts::of(cluster, selection)));
        self.model.set(None);
        let what = "Replaying each decision on the state it saw";
        let job = Job::OfflineReplay { sample, settings: request.settings };
        self.job(turn, job, what, (1, steps), move |outcome| {
            let JobOutcome::OfflineReplay(report, worker_ms) = outcome else { return };
            let total_ms = now_ms() - started;
            self.replay.set(Some(Done {
                report: Arc::new(*report),
                at_ms,
                worker_ms,
                total_ms,
                pool: self.pool_name(),
            }));
            if request.with_model {
                self.fetch_and_play(turn, request, facts.clone(), at_ms);
            } else {
                self.step.set(None);
                then();
            }
        });
    }

    fn fetch_and_play(self, turn: u32, request: RunRequest, facts: Facts, at_ms: Millis) {
        let Ok(abort) = AbortController::new() else {
            return self.fail("this browser cannot fetch the prompts".to_owned());
        };
        let signal = abort.signal();
        self.abort.set_value(Some(abort));
        let fetching = move |bytes: usize, total: Option<usize>| {
            if self.turn.try_get_value() == Some(turn) {
                self.step.set(Some(RunProgress::fetching(bytes, total)));
            }
        };
        fetching(0, None);
        let pool = self.pool_name();
        leptos::task::spawn_local(async move {
            let fetched =
                fetch::arrivals(arrivals_needed(request.span), pool.as_deref(), at_ms, &signal, fetching)
                    .await;
            if self.turn.try_get_value() != Some(turn) {
                return;
            }
            match fetched {
                Ok(arrivals) => self.play(turn, request, facts, arrivals, at_ms),
                Err(error) => self.fail(error),
            }
        });
    }

    fn play(self, turn: u32, request: RunRequest, facts: Facts, arrivals: Vec<u8>, at_ms: Millis) {
        let started = now_ms();
        let job = Job::Resimulate { arrivals, facts, span: request.span, settings: request.settings };
        let what = "Simulating the arrivals, twice";
        self.job(turn, job, what, (3, 3), move |outcome| {
            let JobOutcome::Model(report, worker_ms) = outcome else { return };
            let total_ms = now_ms() - started;
            self.keep_round_robin(&report, at_ms);
            self.model.set(Some(Done {
                report: Arc::new(*report),
                at_ms,
                worker_ms,
                total_ms,
                pool: self.pool_name(),
            }));
            self.step.set(None);
        });
    }

    /// Other panels show what the model found of round-robin, where the model fits.
    fn keep_round_robin(self, report: &ModelReport, at_ms: Millis) {
        let is_meant =
            report.tried_settings.router_mode == RouterMode::RoundRobin && report.calibration.fits();
        let rates = report.tried.hit_rate.zip(report.recorded.hit_rate).filter(|_| is_meant);
        let Some((hit_rate, recorded_hit_rate)) = rates else { return };
        self.store.round_robin.set(Some(RoundRobinRun {
            pool: self.pool.get_value(),
            shown_at: self.shown_at.get_value(),
            at_ms,
            requests: report.tried.requests,
            hit_rate,
            recorded_hit_rate,
        }));
    }

    /// Weight and temperature that the last sweep of this pool recommends.
    fn recommended(self) -> Option<(f64, f64)> {
        let pool = self.pool_name();
        self.sweep.with_untracked(|done| {
            let report = &done.as_ref().filter(|done| done.pool == pool)?.report;
            let settings = report.recommendation.as_ref()?.settings(report.grid.as_ref()?)?;
            Some((settings.prefill_factor(), settings.router_temperature))
        })
    }

    /// Many settings.
    pub(super) fn sweep(self, span: DecisionRange) {
        let turn = self.begin();
        let (at_ms, started) = (self.store.now_ms(), now_ms());
        let selection = self.selection(span);
        let sample = self.store.peek(|cluster| Sample::of(cluster, selection));
        let weights = weights_with(sample.latest_weight());
        let temperatures = TEMPERATURES.to_vec();
        let what = format!("Trying {} settings", weights.len() * temperatures.len());
        let held = self.recommended();
        let job = Job::Sweep { sample, weights, temperatures, held };
        self.job(turn, job, &what, (1, 1), move |outcome| {
            let JobOutcome::Sweep(report, worker_ms) = outcome else { return };
            let total_ms = now_ms() - started;
            self.sweep.set(Some(Done {
                report: Arc::new(*report),
                at_ms,
                worker_ms,
                total_ms,
                pool: self.pool_name(),
            }));
            self.step.set(None);
        });
    }

    fn job(
        self,
        turn: u32,
        job: Job,
        what: &str,
        (step, steps): (u32, u32),
        done: impl Fn(JobOutcome) + 'static,
    ) {
        let now = RunProgress { what: what.to_owned(), step, steps, part: None };
        self.step.set(Some(now.clone()));
        let hear = move |response| {
            if self.turn.try_get_value() != Some(turn) {
                return;
            }
            match response {
                WorkerResponse::Ready => {}
                WorkerResponse::Progress { done, total, .. } => {
                    self.step.set(Some(RunProgress { part: Some((done, total)), ..now.clone() }));
                }
                WorkerResponse::Done { outcome, .. } => done(outcome),
                WorkerResponse::Failed { message, .. } => self.fail(failure_text(message)),
            }
        };
        self.client.with_value(|client| client.run(job, hear));
    }
}
