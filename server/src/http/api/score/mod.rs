//! `POST /api/v1/score`: what the router would decide now for a given prompt, settings and changes to the cluster. Read-only.

mod body;
mod response;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use tokio::sync::Semaphore;

use radixscope_insight::whatif::{self, CandidateRef, Prompt, WhatIf, WhatIfRequest, WorkerChanges};
use radixscope_model::id::PoolIx;

use super::posted::{read, within};
use super::prompt;
use crate::http::App;
use crate::http::body::discard_body;
use crate::http::error::{ApiError, code};
use crate::http::origin::AllowedPage;
use crate::hub::View;
pub(super) use body::Id;
use body::{PromptForm, ScoreRequest};
use response::ScoreResponse;

/// Largest body: two million token ids.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Maximum concurrent requests: with their token ids they take some hundred megabytes at most.
const MAX_POSTS: usize = 8;
/// Maximum concurrent computations: the hub needs a core.
const MAX_RUNS: usize = 2;
/// Retry-After: a request seldom takes longer.
const RETRY_AFTER_S: u32 = 1;

/// Permits for requests.
#[derive(Debug)]
pub(in crate::http) struct Scores {
    posts: Arc<Semaphore>,
    runs: Arc<Semaphore>,
}

impl Default for Scores {
    fn default() -> Self {
        Self { posts: Arc::new(Semaphore::new(MAX_POSTS)), runs: Arc::new(Semaphore::new(MAX_RUNS)) }
    }
}

pub(super) async fn score(
    _: AllowedPage,
    State(app): State<App>,
    request: Request,
) -> Result<Json<ScoreResponse>, ApiError> {
    let Ok(post) = Arc::clone(&app.scores.posts).try_acquire_owned() else {
        discard_body(request.into_body(), MAX_BODY_BYTES).await;
        return Err(busy());
    };
    let body = within(request.into_body(), MAX_BODY_BYTES).await?;
    let run = Arc::clone(&app.scores.runs).acquire_owned().await.map_err(|_| busy())?;
    // Token ids are parsed and hashed on a blocking thread; the hub only gets hashes.
    let score_request = run_blocking(move || ScoreRequest::of(read(&body)?)).await??;
    let score_request = match score_request.prompt {
        PromptForm::Tokens(..) => {
            let (size, score_request) =
                app.hub.read(move |view| (block_size(view, &score_request), score_request)).await?;
            let size = size?;
            run_blocking(move || score_request.hashed(size)).await?
        }
        _ => score_request,
    };
    let response = app.hub.read(move |view| compute(view, score_request)).await??;
    drop((run, post));
    Ok(Json(response))
}

/// Computes on a blocking thread.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "score computation failed");
        ApiError::new(code::INTERNAL, "the computation failed")
    })
}

fn busy() -> ApiError {
    let message = format!("{MAX_POSTS} requests are being answered, the maximum at a time; try again");
    ApiError::new(code::TOO_MANY_POSTS, message).retry_after(RETRY_AFTER_S)
}

fn compute(view: &View<'_>, score_request: ScoreRequest) -> Result<ScoreResponse, ApiError> {
    let cluster = view.cluster;
    let pool = pool(view, &score_request)?;
    let compared = score_request.decision.and_then(|id| cluster.decisions().get(id));
    let start = compared.and_then(|decided| whatif::settings_of(cluster, &decided.decision));
    let options =
        score_request.options.over(start.or_else(|| whatif::deployed(cluster, pool)).unwrap_or_default());
    let prompt = match score_request.prompt {
        PromptForm::Ready(prompt) => prompt,
        // Already hashed, unless the block size is unknown.
        PromptForm::Tokens(..) => return Err(refused(&whatif::Refused::NoBlockSize)),
        PromptForm::Recorded(id) => Prompt::Recorded(id),
        PromptForm::Live(id) => Prompt::Blocks(prompt::of(view, id)?),
        PromptForm::After { worker, block_hash, new_tokens } => {
            Prompt::After { worker: known(view, "after", worker)?, block_hash, new_tokens }
        }
    };
    let who = |worker| Ok(CandidateRef::Worker(known(view, "workers", worker)?));
    let changes = WorkerChanges {
        left_out: score_request.without.into_iter().map(who).collect::<Result<_, ApiError>>()?,
        added: score_request.added,
        busy: score_request
            .busy
            .into_iter()
            .map(|(worker, busy)| Ok((who(worker)?, busy)))
            .collect::<Result<_, ApiError>>()?,
    };
    let question = WhatIfRequest {
        prompt,
        pool: Some(pool),
        actual: score_request.decision,
        options,
        block_size_tokens: score_request.block_size_tokens,
        router: score_request.router,
        changes,
    };
    let state = whatif::WhatIfState { cluster, active: Some(view.routing.active()), now_ms: view.at_ms };
    let mut engine = WhatIf::default();
    let response = engine.score(state, &question).map_err(|error| refused(&error))?;
    Ok(ScoreResponse::of(cluster, &response))
}

/// The block size of the body, else of the cluster.
fn block_size(view: &View<'_>, score_request: &ScoreRequest) -> Result<Option<u32>, ApiError> {
    let pool = pool(view, score_request)?;
    Ok(score_request.block_size_tokens.or_else(|| view.cluster.block_tokens(pool)))
}

/// The pool of the candidate workers.
fn pool(view: &View<'_>, score_request: &ScoreRequest) -> Result<PoolIx, ApiError> {
    let cluster = view.cluster;
    let by_name = |name: &String| {
        let known = cluster.pool_by_name(name);
        known.ok_or_else(|| {
            ApiError::new(code::NOT_FOUND, format!("pool: no message of {name:?} was received"))
        })
    };
    let named = score_request.pool.as_ref().map(by_name).transpose()?;
    let (prompt, actual) = match score_request.prompt {
        PromptForm::After { worker, block_hash, new_tokens } => (
            Prompt::After { worker: known(view, "after", worker)?, block_hash, new_tokens },
            score_request.decision,
        ),
        PromptForm::Recorded(id) | PromptForm::Live(id) => {
            (Prompt::default(), score_request.decision.or(Some(id)))
        }
        _ => (Prompt::default(), score_request.decision),
    };
    Ok(whatif::pool(cluster, &WhatIfRequest { prompt, actual, pool: named, ..WhatIfRequest::default() }))
}

fn refused(error: &whatif::Refused) -> ApiError {
    let code = match error {
        whatif::Refused::NoDecision(_) | whatif::Refused::NoBlock { .. } => code::NOT_FOUND,
        _ => code::BAD_PARAMETER,
    };
    ApiError::new(code, format!("{}: {error}", error.field()))
}

fn known(
    view: &View<'_>,
    field: &str,
    worker: radixscope_model::id::Worker,
) -> Result<radixscope_model::id::WorkerIx, ApiError> {
    view.cluster.worker_ix(worker).ok_or_else(|| {
        ApiError::new(code::NOT_FOUND, format!("{field}: no message of worker {worker} was received"))
    })
}
