//! How busy every worker is, by the best that is known of it: a router's own estimate, the requests that run, or the
//! decisions whose end was not received. Each number has its source and assumptions.

use super::WhatIfState;
use super::request::WhatIfRequest;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_router::{Formula, Load};
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::{ActiveSequences, EXPIRE_MS};

/// Where a candidate's load comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LoadFrom {
    /// Not reported: assumed idle.
    #[default]
    Assumed,
    /// A router's own estimate (`kv_metrics`, 0.9).
    Router,
    /// Requests by the beginnings and ends that routers publish (`active_sequences_events`).
    Sequences,
    /// Decisions whose end was not received.
    InFlight,
    /// As it was when the decision was taken.
    Recorded,
    /// The question added the worker: idle.
    Added,
    /// The worked example's.
    Example,
}

impl LoadFrom {
    /// Name in the API, and in words.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            LoadFrom::Assumed => ("assumed_idle", "unknown, taken as idle"),
            LoadFrom::Router => ("router", "a router's estimate"),
            LoadFrom::Sequences => ("active_sequences", "requests that run"),
            LoadFrom::InFlight => ("decisions_in_flight", "decisions whose end was not received"),
            LoadFrom::Recorded => ("recorded", "as recorded"),
            LoadFrom::Added => ("added_idle", "idle, added here"),
            LoadFrom::Example => ("example", "the worked example"),
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        self.names().0
    }

    /// In words.
    pub const fn to_text(self) -> &'static str {
        self.names().1
    }
}

/// Loads by worker, without the blocks of the prompt that is routed.
#[derive(Default)]
pub(super) struct Loads {
    of: PerWorker<(Load, LoadFrom)>,
    /// The router whose estimates are used, how many others there are, and the age of its oldest and latest word.
    /// A router that is not named in its messages (0.8) has no id.
    router: Option<(Option<u64>, usize, u64)>,
    /// A router reported one of the two numbers only.
    is_partial: bool,
    /// Whether ends of requests are received at all.
    ends_received: bool,
}

impl Loads {
    pub(super) fn gather(&mut self, state: WhatIfState<'_>, router: Option<u64>) {
        let WhatIfState { cluster, now_ms, .. } = state;
        self.of = PerWorker::default();
        cluster.workers().indices().for_each(|worker| *self.of.of(worker) = Default::default());
        self.is_partial = false;
        self.requests_in_flight(cluster, now_ms);
        if let Some(active) = self.sequences(state) {
            for (worker, of) in self.of.iter_mut() {
                let load = active.load(worker);
                *of = (
                    Load {
                        active_prefill_tokens: load.prefill_tokens,
                        decode_blocks: load.blocks,
                        active_requests: load.requests.into(),
                    },
                    LoadFrom::Sequences,
                );
            }
        }
        self.estimates(cluster, now_ms, router);
    }

    pub(super) fn of(&self, worker: WorkerIx) -> (Load, LoadFrom) {
        self.of.get(worker).copied().unwrap_or_default()
    }

    /// The requests in flight, if reported.
    pub(super) fn sequences<'a>(&self, state: WhatIfState<'a>) -> Option<&'a ActiveSequences> {
        state.active.filter(|active| active.has_reports())
    }

    /// The estimates of one router; those of several must not be mixed, because each may know its own requests only.
    fn estimates(&mut self, cluster: &Cluster, now_ms: Millis, router: Option<u64>) {
        let all = || cluster.workers().iter().flat_map(|worker| &worker.router_loads);
        // Routers report repeatedly; the first of the latest, so that all callers find the same one.
        let latest = all().max_by_key(|load| (load.at_ms, std::cmp::Reverse(load.router)));
        self.router = None;
        let Some(router) = router.map(Some).or(latest.map(|load| load.router)) else { return };
        let mut oldest_ms = None;
        let mut others: Vec<Option<u64>> = Vec::new();
        for (ix, worker) in cluster.workers().indexed() {
            let of = self.of.of(ix);
            for load in &worker.router_loads {
                if load.router != router {
                    if !others.contains(&load.router) {
                        others.push(load.router);
                    }
                    continue;
                }
                self.is_partial |= load.decode_blocks.is_none() || load.prefill_tokens.is_none();
                oldest_ms = oldest_ms.max(Some(now_ms.since(load.at_ms)));
                *of = (
                    Load {
                        active_prefill_tokens: load.prefill_tokens.unwrap_or(of.0.active_prefill_tokens),
                        decode_blocks: load.decode_blocks.unwrap_or(of.0.decode_blocks),
                        ..of.0
                    },
                    LoadFrom::Router,
                );
            }
        }
        self.router = oldest_ms.map(|age_ms| (router, others.len(), age_ms));
    }

    /// Decisions whose end was not received, where ends are received at all. Blocks that several share are counted for each.
    fn requests_in_flight(&mut self, cluster: &Cluster, now_ms: Millis) {
        let recent =
            || cluster.decisions().newest_first().take_while(|d| now_ms.since(d.decided_ms()) <= EXPIRE_MS);
        self.ends_received = recent().any(|decided| decided.progress.ended_ms.is_some());
        if !self.ends_received {
            return;
        }
        self.of.iter_mut().for_each(|(_, of)| of.1 = LoadFrom::InFlight);
        for decided in recent().filter(|decided| decided.progress.ended_ms.is_none()) {
            let decision = &decided.decision;
            let Some((load, _)) = self.of.get_mut(decision.worker) else { continue };
            load.active_requests += 1;
            let size = decision.block_size_tokens.map(u64::from).filter(|&size| size > 0);
            let (Some(isl), Some(size)) = (decision.isl_tokens, size) else { continue };
            load.decode_blocks = load.decode_blocks.saturating_add(isl / size);
            if decided.progress.first_token_ms.is_none() {
                let cached = decided.overlap_blocks().unwrap_or(0).saturating_mul(size);
                load.active_prefill_tokens =
                    load.active_prefill_tokens.saturating_add(isl.saturating_sub(cached));
            }
        }
    }

    /// The sources of the loads, as text.
    pub(super) fn note(
        &self,
        state: WhatIfState<'_>,
        question: &WhatIfRequest,
        full_blocks: u64,
        notes: &mut Vec<String>,
    ) {
        let sequences = self.sequences(state);
        match (self.router, sequences) {
            (Some((router, others, age_ms)), _) => {
                let others = match others {
                    0 => String::new(),
                    n => format!(" {n} other routers report too; each may know its own requests only."),
                };
                let age = Seconds(age_ms);
                let who = router.map_or_else(|| "the router".to_owned(), |id| format!("router {id}"));
                notes.push(format!("Loads are the estimates of {who}, up to {age} old.{others}"));
                let silent = self.of.iter().filter(|(_, (_, from))| *from != LoadFrom::Router).count();
                if silent > 0 {
                    notes.push(format!("That router reported nothing of {silent} workers."));
                }
                if self.is_partial {
                    notes.push(
                        "It reports one of queued prompt tokens and blocks in use only; the other is taken as 0 \
                         where no other source reports it."
                            .to_owned(),
                    );
                }
            }
            (None, Some(active)) => {
                notes.push("Loads are counted from the requests that routers report as begun and ended.".to_owned());
                if active.refused() > 0 {
                    notes.push(format!(
                        "{} requests were too many to follow: loads are too low by them.",
                        active.refused()
                    ));
                }
            }
            (None, None) if self.ends_received => notes.push(
                "Loads are counted from the decisions whose end was not received; blocks that requests share are \
                 counted for each."
                    .to_owned(),
            ),
            (None, None) => notes.push(
                "Loads are unknown: every worker is taken as idle. --router-replica-sync on every frontend reports \
                 them; Dynamo 0.9 publishes them by itself on kv_metrics."
                    .to_owned(),
            ),
        }
        if sequences.is_none() && full_blocks > 0 {
            notes.push(format!(
                "Which blocks of the prompt are in use on a worker already is unknown here: every worker is charged all \
                 {full_blocks}."
            ));
        }
        let options = &question.options;
        let counts_requests =
            matches!(options.formula, Formula::D | Formula::E) && options.decode_active_request_weight > 0.0;
        if counts_requests && sequences.is_none() && !self.ends_received {
            notes.push(
                "Active requests are unknown and taken as 0: --router-replica-sync on every frontend reports them."
                    .to_owned(),
            );
        }
    }
}

/// A time span with one decimal at most.
struct Seconds(u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            ms @ ..10_000 => write!(f, "{}.{} s", ms / 1_000, ms % 1_000 / 100),
            ms => write!(f, "{} s", ms / 1_000),
        }
    }
}
