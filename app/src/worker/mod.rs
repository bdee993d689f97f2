//! Jobs too long for the page, in a Web Worker with a program of its own. [`WorkerRequest`]s go in, [`WorkerResponse`]s come out, postcard
//! over `postMessage`; a job that is no longer wanted ends with its worker.
//!
//! To add a job: a variant of [`Job`] and of [`JobOutcome`], an arm in [`Job::run`].

#[cfg(target_arch = "wasm32")]
pub mod client;
#[cfg(target_arch = "wasm32")]
pub(crate) mod running;
#[cfg(target_arch = "wasm32")]
pub mod serve;
#[cfg(target_arch = "wasm32")]
pub mod tokenizer;

use std::ops::ControlFlow;

use radixscope_insight::baseline::{self, Import};
use radixscope_insight::counterfactual::{
    DecisionRange, Facts, ModelReport, OfflineReplayReport, Sample, SweepReport, resimulate,
};
use radixscope_router::RouterOverrides;
use radixscope_state::cluster::SnapshotReader;
use radixscope_state::requests::Arrivals;
use serde::{Deserialize, Serialize};

/// A job and the number that its answers carry.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerRequest {
    /// Chosen by whoever asks.
    pub id: u32,
    /// What is to be done.
    pub job: Job,
}

/// What baselines are read from.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum BaselineText {
    /// The reference sweeps.
    Reference,
    /// A CSV.
    Csv(String),
    /// Results of a load generator, which are one baseline together.
    Results {
        /// Names and texts of the files.
        files: Vec<(String, String)>,
        /// How their requests were routed.
        router: baseline::Router,
    },
}

impl BaselineText {
    /// What it holds, or what is wrong with it.
    fn read(self, name: &str) -> Result<Import, String> {
        match self {
            Self::Reference => Ok(Import { baselines: baseline::reference(), notices: Vec::new() }),
            Self::Csv(csv) => baseline::import(&csv, name).map_err(|error| error.to_string()),
            Self::Results { files, router } => {
                let mut results = baseline::Results::default();
                let is_alone = files.len() == 1;
                for (file, text) in files {
                    results.add(&text).map_err(|error| match is_alone {
                        true => error.to_string(),
                        false => format!("{file}: {error}"),
                    })?;
                }
                Ok(results.finish(name, router))
            }
        }
    }
}

/// What a worker can do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Restore a state from the parts of its snapshot and count its digest anew.
    Digest {
        /// Input of [`SnapshotReader::part`], in order.
        parts: Vec<Vec<u8>>,
    },
    /// Read baselines.
    Baselines {
        /// What they are read from.
        from: BaselineText,
        /// What those without a name of their own are called.
        name: String,
    },
    /// Judge decisions under one setting, each on the state it saw.
    OfflineReplay {
        /// Which decisions.
        sample: Sample,
        /// The setting.
        settings: RouterOverrides,
    },
    /// The same under many settings.
    Sweep {
        /// Which decisions.
        sample: Sample,
        /// Weights.
        weights: Vec<f64>,
        /// Temperatures.
        temperatures: Vec<f64>,
        /// Weight and temperature that were recommended last.
        held: Option<(f64, f64)>,
    },
    /// Play arrivals through the model.
    Resimulate {
        /// Postcard of [`Arrivals`].
        arrivals: Vec<u8>,
        /// What the model is made of.
        facts: Facts,
        /// Which arrivals are counted.
        span: DecisionRange,
        /// The setting.
        settings: RouterOverrides,
    },
}

/// What a worker says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum WorkerResponse {
    /// It has started and listens; what was sent before is lost.
    Ready,
    /// So much of the job is done.
    Progress {
        /// The request's number.
        id: u32,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// The job is done.
    Done {
        /// The request's number.
        id: u32,
        /// What came of it.
        outcome: JobOutcome,
    },
    /// The job cannot be done. Number 0 where the request could not even be read.
    Failed {
        /// The request's number.
        id: u32,
        /// Why, as text.
        message: String,
    },
}

/// What comes of a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum JobOutcome {
    /// Of [`Job::Digest`].
    Digest(#[serde(with = "postcard::fixint::le")] u64),
    /// Of [`Job::Baselines`]: what the CSV holds, or what is wrong with it.
    Baselines(Result<Import, String>),
    /// Of [`Job::OfflineReplay`], and the milliseconds it took, its way to the worker and back not counted.
    OfflineReplay(Box<OfflineReplayReport>, f64),
    /// Of [`Job::Sweep`], likewise.
    Sweep(Box<SweepReport>, f64),
    /// Of [`Job::Resimulate`], likewise.
    Model(Box<ModelReport>, f64),
}

impl Job {
    /// Does it; `progress` gets steps done and steps in all.
    ///
    /// # Errors
    /// As text, when its input is of no use.
    pub fn run(self, mut progress: impl FnMut(u32, u32)) -> Result<JobOutcome, String> {
        match self {
            Job::Digest { parts } => {
                let mut reader = SnapshotReader::default();
                let total = u32::try_from(parts.len()).unwrap_or(u32::MAX);
                for (done, part) in (1..).zip(&parts) {
                    let state = reader.part(part).map_err(|error| error.to_string())?;
                    progress(done, total);
                    if let Some(state) = state {
                        return Ok(JobOutcome::Digest(state.digest()));
                    }
                }
                Err("the snapshot has no end".to_owned())
            }
            Job::Baselines { from, name } => Ok(JobOutcome::Baselines(from.read(&name))),
            Job::OfflineReplay { sample, settings } => {
                let (report, ms) = timed(|| sample.evaluate(settings));
                Ok(JobOutcome::OfflineReplay(Box::new(report), ms))
            }
            Job::Sweep { sample, weights, temperatures, held } => {
                let (report, ms) =
                    timed(|| sample.sweep(&weights, &temperatures, held, throttled(progress, 1)));
                Ok(JobOutcome::Sweep(Box::new(report.ok_or("the sweep was cancelled")?), ms))
            }
            Job::Resimulate { arrivals, facts, span, settings } => {
                let arrivals: Arrivals = postcard::from_bytes(&arrivals)
                    .map_err(|error| format!("the arrivals cannot be read: {error}"))?;
                // A few hundred messages are enough for a bar.
                let every = (arrivals.iter().len() / 100).max(1);
                let (report, ms) =
                    timed(|| resimulate(&arrivals, &facts, span, settings, throttled(progress, every)));
                Ok(JobOutcome::Model(Box::new(report.map_err(|error| error.to_string())?), ms))
            }
        }
    }
}

/// Tells every so many steps; a job that is no longer wanted ends with its worker.
fn throttled(
    mut progress: impl FnMut(u32, u32),
    every: usize,
) -> impl FnMut(usize, usize) -> ControlFlow<()> {
    let mut next = every;
    move |done, total| {
        if done >= next || done == total {
            next = done + every;
            let steps = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            progress(steps(done), steps(total));
        }
        ControlFlow::Continue(())
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = now_ms();
    let done = work();
    (done, now_ms() - start)
}

#[cfg(target_arch = "wasm32")]
fn now_ms() -> f64 {
    use wasm_bindgen::JsCast;
    let scope = js_sys::global().dyn_into::<web_sys::WorkerGlobalScope>().ok();
    scope.and_then(|scope| scope.performance()).map_or(0.0, |performance| performance.now())
}

/// The host does not measure.
#[cfg(not(target_arch = "wasm32"))]
fn now_ms() -> f64 {
    0.0
}

/// Answers one message; what is to be sent goes to `send`.
pub fn run(message: &[u8], mut send: impl FnMut(&WorkerResponse)) {
    let WorkerRequest { id, job } = match postcard::from_bytes(message) {
        Ok(request) => request,
        Err(error) => {
            return send(&WorkerResponse::Failed { id: 0, message: format!("not a request: {error}") });
        }
    };
    let outcome = job.run(|done, total| send(&WorkerResponse::Progress { id, done, total }));
    send(&match outcome {
        Ok(outcome) => WorkerResponse::Done { id, outcome },
        Err(message) => WorkerResponse::Failed { id, message },
    });
}

#[cfg(test)]
mod tests {
    use radixscope_insight::counterfactual::Selection;
    use radixscope_state::cluster::Cluster;

    use super::*;

    fn responses(message: &[u8]) -> Vec<WorkerResponse> {
        let mut all = Vec::new();
        run(message, |response| {
            // As it travels.
            all.push(postcard::from_bytes(&postcard::to_allocvec(response).unwrap()).unwrap());
        });
        all
    }

    fn encoded(job: Job) -> Vec<u8> {
        postcard::to_allocvec(&WorkerRequest { id: 7, job }).unwrap()
    }

    fn parts() -> Vec<Vec<u8>> {
        let mut parts = Vec::new();
        Cluster::default().snapshot(|part| parts.push(part)).unwrap();
        parts
    }

    #[test]
    fn a_job_reports_its_progress_and_then_its_outcome() {
        let parts = parts();
        let total = parts.len() as u32;
        let all = responses(&encoded(Job::Digest { parts }));
        let (last, progress) = all.split_last().unwrap();
        let expected: Vec<_> =
            (1..=total).map(|done| WorkerResponse::Progress { id: 7, done, total }).collect();
        assert_eq!(progress, expected);
        let outcome = JobOutcome::Digest(Cluster::default().digest());
        assert_eq!(*last, WorkerResponse::Done { id: 7, outcome });
    }

    #[test]
    fn baselines_are_read_or_refused_with_a_reason() {
        let is_read = |from: BaselineText, expected: Result<Import, String>| {
            let job = Job::Baselines { from, name: "Mine".to_owned() };
            let outcome = JobOutcome::Baselines(expected);
            assert_eq!(responses(&encoded(job)), [WorkerResponse::Done { id: 7, outcome }]);
        };
        is_read(
            BaselineText::Reference,
            Ok(Import { baselines: baseline::reference(), notices: Vec::new() }),
        );
        let own = "concurrency,ttft_p50_ms\n60,100.5\n";
        is_read(BaselineText::Csv(own.to_owned()), Ok(baseline::import(own, "Mine").unwrap()));
        let bad = "concurrency,ttft_p50_ms\n60,fast\n";
        is_read(
            BaselineText::Csv(bad.to_owned()),
            Err(baseline::import(bad, "Mine").unwrap_err().to_string()),
        );
        let run = include_str!("../../../tests/fixtures/load_generators/vllm-bench-serve.json");
        let results = |files: &[(&str, &str)]| BaselineText::Results {
            files: files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
            router: baseline::Router::RoundRobin,
        };
        let mut read = baseline::Results::default();
        read.add(run).unwrap();
        is_read(results(&[("run.json", run)]), Ok(read.finish("Mine", baseline::Router::RoundRobin)));
        let error = baseline::Results::default().add("{}").unwrap_err();
        is_read(results(&[("bad.json", "{}")]), Err(error.to_string()));
        is_read(results(&[("run.json", run), ("bad.json", "{}")]), Err(format!("bad.json: {error}")));
    }

    #[test]
    fn a_counterfactual_gives_what_its_function_gives() {
        let cluster = Cluster::default();
        let selection = Selection::of(DecisionRange::ALL);
        let sample = Sample::of(&cluster, selection);
        let report = responses(&encoded(Job::OfflineReplay {
            sample: sample.clone(),
            settings: RouterOverrides::round_robin(),
        }));
        let outcome =
            JobOutcome::OfflineReplay(Box::new(sample.evaluate(RouterOverrides::round_robin())), 0.0);
        assert_eq!(report, [WorkerResponse::Done { id: 7, outcome }]);
        let sweep = responses(&encoded(Job::Sweep {
            sample,
            weights: vec![1.0],
            temperatures: vec![0.0],
            held: None,
        }));
        assert!(
            matches!(&sweep[..], [WorkerResponse::Done { outcome: JobOutcome::Sweep(report, _), .. }] if report.grid.is_none())
        );
        let facts = Facts::of(&cluster, selection);
        for (arrivals, status_text) in [(vec![0xff; 3], "cannot be read"), (Vec::new(), "cannot be read")] {
            let job = Job::Resimulate {
                arrivals,
                facts: facts.clone(),
                span: DecisionRange::ALL,
                settings: RouterOverrides::round_robin(),
            };
            let all = responses(&encoded(job));
            assert!(
                matches!(&all[..], [WorkerResponse::Failed { message, .. }] if message.contains(status_text)),
                "{all:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_done_says_why_and_ends() {
        let mut parts = parts();
        parts.pop();
        let failed = |all: Vec<WorkerResponse>, number: u32| matches!(all.last(), Some(WorkerResponse::Failed { id, .. }) if *id == number);
        assert!(failed(responses(&encoded(Job::Digest { parts })), 7));
        assert!(failed(responses(&encoded(Job::Digest { parts: vec![vec![255; 9]] })), 7));
        assert!(failed(responses(b"\xff\xff"), 0));
    }
}
