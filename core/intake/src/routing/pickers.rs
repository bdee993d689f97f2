//! Lines of other routers' logs. Of endpoint pickers those of one run of a scheduling profile make a decision; of SGLang's gateway each
//! line is one.
//!
//! Lines of a request bear its id, and those of several requests mix. A request runs one profile after the other, each of which scores,
//! lists and picks; so what was scored since the last pick of a request is of the next one. Must not know what a score means.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::Routing;
use super::book::ScoredChoice;
use super::lines::LineTime;
use crate::ingest::RequestObservation;
use radixscope_dynamo::log_line::{
    Endpoint, EndpointName, GatewayChoice, LogRecord, MAX_ENDPOINTS, PickerLine, PickerStep, RequestIds,
    ScoredEndpoint,
};
use radixscope_model::id::{DecisionId, SourceIx, WorkerIx};
use radixscope_model::record::{Arithmetic, MAX_SCORERS, Role, ScoredCandidate, Scores};
use radixscope_state::cluster::Cluster;

/// Runs whose pick has not come: as many requests as a picker schedules at a time, with room for those that failed.
const MAX_RUNS: usize = 256;
/// Endpoints of all of them, but for what one line brings.
const MAX_RUN_ENDPOINTS: usize = 1 << 14;
/// What SGLang's gateway gives a worker: the share of the prompt that its tree matched.
const MATCHED: &str = "matched share";

/// Runs of profiles whose pick has not come, over all logs. The one that a line was about last is the last one.
#[derive(Default)]
pub(super) struct Pickers {
    runs: VecDeque<Run>,
}

/// Namespace and name of an endpoint.
type EndpointKey = (Box<str>, Box<str>);

/// What lines of a request said since its last pick.
struct Run {
    source: SourceIx,
    log: Box<str>,
    /// `None`: lines of this log bear no id.
    request: Option<Box<str>>,
    profile: Option<String>,
    scorers: Vec<String>,
    /// In the order of `scorers`.
    scores: HashMap<EndpointKey, Vec<Option<f64>>>,
    /// By falling score.
    candidates: Vec<ScoredCandidate>,
    omitted: u32,
}

impl Pickers {
    fn place(&self, (source, log): (SourceIx, &str), request: Option<&str>) -> Option<usize> {
        let is_meant =
            |run: &Run| run.source == source && *run.log == *log && run.request.as_deref() == request;
        self.runs.iter().rposition(is_meant)
    }

    /// The run that lines of a request are about, begun if there is none. Those that no line was about for longest make room.
    fn run(&mut self, of: (SourceIx, &str), request: Option<&str>) -> Option<&mut Run> {
        let run = self.take(of, request).unwrap_or_else(|| Run::new(of, request));
        let mut endpoints = run.endpoints() + self.runs.iter().map(Run::endpoints).sum::<usize>();
        while self.runs.len() >= MAX_RUNS || endpoints > MAX_RUN_ENDPOINTS {
            let Some(oldest) = self.runs.pop_front() else { break };
            endpoints -= oldest.endpoints();
        }
        self.runs.push_back(run);
        self.runs.back_mut()
    }

    /// What was said of a run that ends.
    fn take(&mut self, of: (SourceIx, &str), request: Option<&str>) -> Option<Run> {
        self.runs.remove(self.place(of, request)?)
    }
}

impl Run {
    fn new((source, log): (SourceIx, &str), request: Option<&str>) -> Self {
        Self {
            source,
            log: log.into(),
            request: request.map(Into::into),
            profile: None,
            scorers: Vec::new(),
            scores: HashMap::new(),
            candidates: Vec::new(),
            omitted: 0,
        }
    }

    /// How many endpoints it has kept.
    fn endpoints(&self) -> usize {
        self.scores.len() + self.candidates.len()
    }

    /// Takes a score. One of more scorers or endpoints than a run has is passed over.
    fn score(&mut self, scorer: &str, endpoint: &EndpointName<'_>, score: f64) {
        let known = self.scorers.iter().position(|of| of == scorer);
        let place = match known {
            Some(place) => place,
            None if self.scorers.len() == MAX_SCORERS => return,
            None => {
                self.scorers.push(scorer.to_owned());
                self.scorers.len() - 1
            }
        };
        let endpoint = key(endpoint);
        if self.scores.len() >= MAX_ENDPOINTS && !self.scores.contains_key(&endpoint) {
            return;
        }
        let scores = self.scores.entry(endpoint).or_default();
        if scores.len() <= place {
            scores.resize(place + 1, None);
        }
        scores[place] = Some(score);
    }

    /// Takes the list of all endpoints with their sums.
    fn list(&mut self, listed: &[ScoredEndpoint<'_>], workers: &[Option<WorkerIx>]) {
        let scorers = self.scorers.len();
        let candidate = |(of, worker): (&ScoredEndpoint<'_>, &Option<WorkerIx>)| {
            let Endpoint { name, running, waiting, kv_usage, .. } = &of.endpoint;
            let mut by_scorer = self.scores.get(&key(name)).cloned().unwrap_or_default();
            by_scorer.resize(scorers, None);
            Some(ScoredCandidate {
                worker: (*worker)?,
                score: Some(of.score),
                by_scorer,
                running: *running,
                waiting: *waiting,
                kv_usage: *kv_usage,
            })
        };
        let mut candidates: Vec<ScoredCandidate> = listed.iter().zip(workers).filter_map(candidate).collect();
        // Two ports of a pod may be one worker here: the better one counts, as it would have been picked.
        candidates.sort_by(|a, b| {
            let score = |of: &ScoredCandidate| of.score.unwrap_or(f64::NEG_INFINITY);
            score(b).total_cmp(&score(a)).then(a.worker.cmp(&b.worker))
        });
        let mut named = hashbrown::HashSet::new();
        candidates.retain(|of| named.insert(of.worker));
        self.omitted = workers.iter().filter(|worker| worker.is_none()).count() as u32;
        self.candidates = candidates;
    }
}

fn key(name: &EndpointName<'_>) -> EndpointKey {
    ((&*name.namespace).into(), (&*name.name).into())
}

impl Routing {
    /// Takes a line of a picker's log. `endpoints`: the workers that it names.
    pub(super) fn picker_line(
        &mut self,
        observed: &RequestObservation<'_>,
        log: &str,
        (record, line): (&LogRecord<'_>, &PickerLine<'_>),
        endpoints: &[Option<WorkerIx>],
        cluster: &Cluster,
    ) {
        let time = LineTime::of(observed, record);
        self.traced(record);
        let of = (observed.source, log);
        let request = line.request_id.as_deref();
        match &line.step {
            PickerStep::Profile(name) => {
                // What was scored before and not picked belongs to a run that failed.
                self.pickers.take(of, request);
                if let Some(run) = self.pickers.run(of, request) {
                    run.profile = Some(name.clone().into_owned());
                }
            }
            PickerStep::Scored { scorer, endpoint, score } => {
                if let Some(run) = self.pickers.run(of, request) {
                    run.score(scorer, endpoint, *score);
                }
            }
            PickerStep::Candidates(listed) => {
                if let Some(run) = self.pickers.run(of, request) {
                    run.list(listed, endpoints);
                }
            }
            PickerStep::Picked { picker, .. } => {
                let run = self.pickers.take(of, request);
                let (Some(run), Some(Some(worker))) = (run, endpoints.first()) else { return };
                let scores = Scores {
                    profile: run.profile,
                    picker: picker.as_deref().map(str::to_owned),
                    scorers: run.scorers,
                    candidates: run.candidates,
                    omitted: run.omitted,
                };
                self.scored(&time, request, (*worker, scores), Arithmetic::EndpointPicker, cluster);
            }
            PickerStep::Handled(_) => {
                let Some(Some(worker)) = endpoints.first() else { return };
                let known = self.book.parts_of(request, None);
                let is_chosen = |id: &_| self.book.part(*id).is_some_and(|part| part.worker == *worker);
                let chosen = known.iter().copied().find(is_chosen);
                let id = match (chosen, known.is_empty()) {
                    (Some(id), _) => Some(id),
                    // Without the lines of its choice: the log is not at DEBUG.
                    (None, true) => {
                        let by = (*worker, Scores::default());
                        Some(self.scored(&time, request, by, Arithmetic::EndpointPicker, cluster))
                    }
                    (None, false) => None,
                };
                let part = id.and_then(|id| self.book.change(id));
                if let Some(scored) = part.and_then(|part| part.slots.scored.as_mut()) {
                    scored.is_handed = true;
                }
            }
        }
    }

    /// Takes a line of SGLang's gateway. It names the chosen worker alone.
    pub(super) fn gateway_choice(
        &mut self,
        observed: &RequestObservation<'_>,
        (record, choice): (&LogRecord<'_>, &GatewayChoice<'_>),
        worker: WorkerIx,
        cluster: &Cluster,
    ) {
        let time = LineTime::of(observed, record);
        let chosen = ScoredCandidate {
            worker,
            score: None,
            by_scorer: vec![choice.matched_share],
            running: None,
            waiting: None,
            kv_usage: None,
        };
        let scores = Scores {
            picker: choice.branch.as_deref().map(str::to_owned),
            scorers: vec![MATCHED.to_owned()],
            candidates: vec![chosen],
            ..Scores::default()
        };
        let request = choice.request_id.as_deref();
        self.scored(&time, request, (worker, scores), Arithmetic::SglangGateway, cluster);
    }

    /// A choice of another router than Dynamo's.
    pub(super) fn scored(
        &mut self,
        time: &LineTime,
        request: Option<&str>,
        (worker, scores): (WorkerIx, Scores),
        arithmetic: Arithmetic,
        cluster: &Cluster,
    ) -> DecisionId {
        let ids = RequestIds { router: request.map(Into::into), http: None };
        let mut key = time.key(worker, cluster, &ids);
        key.role = scores.profile.as_deref().and_then(Role::of);
        let id = self.book.join(&key, time.read_ms);
        let count = scores.candidates.len();
        let scores = Some(Box::new(scores));
        let choice = ScoredChoice { time: time.reported(), arithmetic, scores, is_handed: false };
        let Some(part) = self.book.change(id) else { return id };
        if part.slots.scored.is_none() {
            part.slots.scored = Some(choice);
            self.book.count_candidates(id, count);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_grow_make_room_for_each_other() {
        let mut pickers = Pickers::default();
        let requests: Vec<String> = (0..2 * MAX_RUNS).map(|n| n.to_string()).collect();
        // Every run is begun before any of them grows.
        for at in 0..200 {
            for request in &requests[..MAX_RUNS] {
                let name = EndpointName { namespace: "n".into(), name: at.to_string().into() };
                let run = pickers.run((SourceIx(0), "log"), Some(request)).expect("there is room");
                run.score("queue", &name, 1.0);
            }
            let endpoints: usize = pickers.runs.iter().map(Run::endpoints).sum();
            assert!(endpoints <= MAX_RUN_ENDPOINTS + 1, "{endpoints}");
        }
        for request in &requests {
            pickers.run((SourceIx(0), "log"), Some(request));
        }
        assert_eq!(pickers.runs.len(), MAX_RUNS);
        assert!(pickers.take((SourceIx(0), "log"), Some("0")).is_none(), "the oldest made room");
        assert!(pickers.take((SourceIx(0), "log"), requests.last().map(String::as_str)).is_some());
    }
}
