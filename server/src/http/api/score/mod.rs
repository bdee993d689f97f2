//! `POST /api/v1/score`: what the router would decide now, for a prompt, settings and a cluster of the asker's choice.
//! Reads the state and changes nothing.

mod answer;
mod body;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use tokio::sync::Semaphore;

use radixscope_insight::whatif::{self, CandidateRef, Changes, Prompt, Question, WhatIf};
use radixscope_model::id::PoolIx;

use super::posted::{read, unwanted, within};
use super::prompt;
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::http::origin::AllowedPage;
use crate::hub::View;
use answer::ScoreAnswer;
pub(super) use body::Id;
use body::{Asked, Form};

/// Largest body: two million token ids.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Most bodies at a time, read, waiting or computed: with their token ids they take some hundred megabytes at most.
const MAX_POSTS: usize = 8;
/// Computed at a time: the hub has to keep a core.
const MAX_RUNS: usize = 2;
/// A question seldom takes longer; after it another try is worth it.
const RETRY_AFTER_S: u32 = 1;

/// Places for questions.
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
) -> Result<Json<ScoreAnswer>, ApiError> {
    let Ok(post) = Arc::clone(&app.scores.posts).try_acquire_owned() else {
        unwanted(request.into_body(), MAX_BODY_BYTES).await;
        return Err(busy());
    };
    let body = within(request.into_body(), MAX_BODY_BYTES).await?;
    let run = Arc::clone(&app.scores.runs).acquire_owned().await.map_err(|_| busy())?;
    // Millions of numbers are read and hashed on a thread for long work; the hub gets hashes only.
    let asked = aside(move || Asked::of(read(&body)?)).await??;
    let asked = match asked.prompt {
        Form::Tokens(..) => {
            let (size, asked) = app.hub.read(move |view| (block_size(view, &asked), asked)).await?;
            let size = size?;
            aside(move || asked.hashed(size)).await?
        }
        _ => asked,
    };
    let answer = app.hub.read(move |view| answered(view, asked)).await??;
    drop((run, post));
    Ok(Json(answer))
}

/// Computes on a thread for long work.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a question failed");
        ApiError::new(code::INTERNAL, "the computation failed")
    })
}

fn busy() -> ApiError {
    let message = format!("{MAX_POSTS} requests are being answered, the maximum at a time; try again");
    ApiError::new(code::TOO_MANY_POSTS, message).retry_after(RETRY_AFTER_S)
}

fn answered(view: &View<'_>, asked: Asked) -> Result<ScoreAnswer, ApiError> {
    let cluster = view.cluster;
    let pool = pool(view, &asked)?;
    let compared = asked.decision.and_then(|id| cluster.decisions().get(id));
    let start = compared.and_then(|decided| whatif::settings_of(cluster, &decided.decision));
    let options = asked.options.over(start.or_else(|| whatif::deployed(cluster, pool)).unwrap_or_default());
    let prompt = match asked.prompt {
        Form::Ready(prompt) => prompt,
        // They are hashed before, if there is a size to cut them into.
        Form::Tokens(..) => return Err(refused(&whatif::Refused::NoBlockSize)),
        Form::Recorded(id) => Prompt::Recorded(id),
        Form::Live(id) => Prompt::Blocks(prompt::of(view, id)?),
        Form::After { worker, block_hash, new_tokens } => {
            Prompt::After { worker: known(view, "after", worker)?, block_hash, new_tokens }
        }
    };
    let who = |worker| Ok(CandidateRef::Worker(known(view, "workers", worker)?));
    let changes = Changes {
        left_out: asked.without.into_iter().map(who).collect::<Result<_, ApiError>>()?,
        added: asked.added,
        busy: asked
            .busy
            .into_iter()
            .map(|(worker, busy)| Ok((who(worker)?, busy)))
            .collect::<Result<_, ApiError>>()?,
    };
    let question = Question {
        prompt,
        pool: Some(pool),
        actual: asked.decision,
        options,
        block_size_tokens: asked.block_size_tokens,
        router: asked.router,
        changes,
    };
    let state = whatif::State { cluster, active: Some(view.routing.active()), now_ms: view.at_ms };
    let mut engine = WhatIf::default();
    let answer = engine.ask(state, &question).map_err(|error| refused(&error))?;
    Ok(ScoreAnswer::of(cluster, &answer))
}

/// The size to cut token ids into: where the body does not say, only the cluster knows.
fn block_size(view: &View<'_>, asked: &Asked) -> Result<Option<u32>, ApiError> {
    let pool = pool(view, asked)?;
    Ok(asked.block_size_tokens.or_else(|| view.cluster.block_tokens(pool)))
}

/// The pool whose workers are weighed.
fn pool(view: &View<'_>, asked: &Asked) -> Result<PoolIx, ApiError> {
    let cluster = view.cluster;
    let by_name = |name: &String| {
        let known = cluster.pool_by_name(name);
        known.ok_or_else(|| {
            ApiError::new(code::NOT_FOUND, format!("pool: no message of {name:?} was received"))
        })
    };
    let named = asked.pool.as_ref().map(by_name).transpose()?;
    let (prompt, actual) = match asked.prompt {
        Form::After { worker, block_hash, new_tokens } => {
            (Prompt::After { worker: known(view, "after", worker)?, block_hash, new_tokens }, asked.decision)
        }
        Form::Recorded(id) | Form::Live(id) => (Prompt::default(), asked.decision.or(Some(id))),
        _ => (Prompt::default(), asked.decision),
    };
    Ok(whatif::pool(cluster, &Question { prompt, actual, pool: named, ..Question::default() }))
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
