//! `POST /api/v1/counterfactual`: evaluates other settings on the latest decisions, with the same functions as the page's
//! worker. `GET /api/v1/arrivals`: the prompts for the page's worker. The hub only copies the input; the computation runs on
//! blocking threads, a few at a time, and is cancelled when the client disconnects.

mod request;
mod response;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::Semaphore;

use radixscope_insight::counterfactual::{
    Facts, ModelError, Sample, arrivals_in, arrivals_needed, resimulate,
};
use radixscope_model::id::Millis;
use radixscope_state::requests::{Arrivals, MAX_ARRIVALS};

use super::params::Params;
use super::posted::Posted;
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::http::origin::AllowedPage;
use crate::shutdown::over;
use request::{CounterfactualBody, CounterfactualRequest, Work};
use response::{CounterfactualResponse, Workers};

/// Maximum concurrent runs: the hub needs a core.
pub(in crate::http) const MAX_RUNS: usize = 2;
/// Largest request body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// Retry-After: a run seldom takes longer.
const RETRY_AFTER_S: u32 = 2;

/// Sets the flag when the request is cancelled.
struct Cancel(Arc<AtomicBool>);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The input copied from the hub.
struct Input {
    sample: Sample,
    facts: Facts,
    arrivals: Arrivals,
    workers: Workers,
}

pub(super) async fn counterfactual(
    _: AllowedPage,
    State(app): State<App>,
    Posted(body): Posted<CounterfactualBody, MAX_BODY_BYTES>,
) -> Result<Response, ApiError> {
    let request = CounterfactualRequest::of(body)?;
    let permit = Arc::clone(&app.runs).try_acquire_owned().map_err(|_| busy())?;
    let input = app.hub.read(move |view| copy(view, &request).map(|input| (input, request))).await?;
    let (input, request) = input?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let cancel = Cancel(Arc::clone(&cancelled));
    let run = tokio::task::spawn_blocking(move || {
        let response = compute(&input, &request, &cancelled);
        drop(permit);
        response
    });
    let mut shutdown = app.shutdown.clone();
    let response = tokio::select! {
        () = over(&mut shutdown) => return Err(ApiError::new(code::SHUTTING_DOWN, "the server is shutting down")),
        response = run => response,
    };
    drop(cancel);
    let response = response.map_err(|error| {
        tracing::error!(%error, "counterfactual computation failed");
        ApiError::new(code::INTERNAL, "the computation failed")
    })??;
    Ok((no_store(), Json(response)).into_response())
}

fn busy() -> ApiError {
    let message = format!("{MAX_RUNS} counterfactuals are running, the maximum at a time; try again");
    ApiError::new(code::TOO_MANY_RUNS, message).retry_after(RETRY_AFTER_S)
}

pub(super) fn no_store() -> [(header::HeaderName, HeaderValue); 1] {
    [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))]
}

/// Runs in the hub: only copies.
fn copy(view: &mut crate::hub::View<'_>, request: &CounterfactualRequest) -> Result<Input, ApiError> {
    let selection = request.selection(view.cluster)?;
    let arrivals = match request.work {
        Work::Resimulate(_) => {
            let count = arrivals_needed(request.span);
            arrivals_in(view.cluster, view.routing.arrivals(), selection.pool, count)
        }
        _ => Arrivals::default(),
    };
    Ok(Input {
        sample: Sample::of(view.cluster, selection),
        facts: Facts::of(view.cluster, selection),
        arrivals,
        workers: Workers::of(view.cluster),
    })
}

fn compute(
    input: &Input,
    request: &CounterfactualRequest,
    cancelled: &AtomicBool,
) -> Result<CounterfactualResponse, ApiError> {
    let control = |_: usize, _: usize| match cancelled.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let cancelled_error = || ApiError::new(code::INTERNAL, "the request was cancelled");
    Ok(match &request.work {
        Work::OfflineReplay(settings) => {
            CounterfactualResponse::fixed_state(input.sample.evaluate(*settings), &input.workers)
        }
        Work::Sweep(weights, temperatures) => {
            let report =
                input.sample.sweep(weights, temperatures, None, control).ok_or_else(cancelled_error)?;
            CounterfactualResponse::sweep(report, &input.workers)
        }
        Work::Resimulate(settings) => {
            let report = resimulate(&input.arrivals, &input.facts, request.span, *settings, control);
            CounterfactualResponse::model(report.map_err(not_computable)?)
        }
    })
}

fn not_computable(error: ModelError) -> ApiError {
    let hint = match error {
        ModelError::NoArrivals => {
            format!("{error}. {}", radixscope_insight::counterfactual::NO_ARRIVALS_HINT)
        }
        _ => error.to_string(),
    };
    ApiError::new(code::NOT_COMPUTABLE, hint)
}

/// The prompts of the latest requests, now or at a moment before, postcard of [`Arrivals`].
pub(super) async fn arrivals(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["last", "pool", "model", "at_ms"])?;
    let at = params.u64("at_ms")?.map(Millis);
    let last = params.within("last", 1, MAX_ARRIVALS as u64)?.map_or(MAX_ARRIVALS, |last| last as usize);
    let pools = params.pools();
    let arrivals = app.hub.read(move |view| {
        let pool = pools.one_of_many(view.cluster)?;
        let retained = view.routing.arrivals();
        let Some(at) = at else { return Ok(arrivals_in(view.cluster, retained, pool, last)) };
        if view.is_replay {
            return Err(ApiError::new(
                code::NOT_FOUND,
                "a recording contains no prompts, so nothing can be simulated",
            ));
        }
        let begin = retained.iter().next().map(|arrival| arrival.at_ms);
        if let Some(begin) = begin.filter(|&begin| begin > at) {
            let text =
                format!("prompts before {at} are no longer retained; the retained ones begin at {begin}");
            return Err(ApiError::new(code::NOT_FOUND, text));
        }
        let until = retained.latest_of(MAX_ARRIVALS, |arrival| arrival.at_ms <= at);
        Ok(arrivals_in(view.cluster, &until, pool, last))
    });
    let arrivals = arrivals.await??;
    let encoded = tokio::task::spawn_blocking(move || postcard::to_allocvec(&arrivals)).await;
    let bytes = encoded.ok().and_then(Result::ok);
    let bytes = bytes.ok_or_else(|| ApiError::new(code::INTERNAL, "the arrivals cannot be encoded"))?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok((no_store(), [kind], bytes).into_response())
}

/// Permits for runs.
pub(in crate::http) fn runs() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_RUNS))
}
