//! `POST /api/v1/score`: what the router would decide now, for a prompt, settings and a cluster of the asker's choice.
//! Reads the state and changes nothing.

mod answer;
mod body;

use axum::Json;
use axum::extract::State;

use radixscope_insight::whatif::{self, Changes, Prompt, Question, WhatIf, Who};
use radixscope_model::id::PoolIx;

use super::posted::Posted;
use super::prompt;
use crate::http::error::{ApiError, code};
use crate::hub::{Hub, View};
use answer::ScoreAnswer;
pub(super) use body::Id;
use body::{Asked, Body, Form};

/// Largest body: two million token ids.
const MAX_BODY_BYTES: usize = 8 << 20;

pub(super) async fn score(
    State(hub): State<Hub>,
    Posted(body): Posted<Body, MAX_BODY_BYTES>,
) -> Result<Json<ScoreAnswer>, ApiError> {
    let asked = Asked::of(body)?;
    Ok(Json(hub.read(move |view| answered(view, asked)).await??))
}

fn answered(view: &View<'_>, asked: Asked) -> Result<ScoreAnswer, ApiError> {
    let cluster = view.cluster;
    let pool = pool(view, &asked)?;
    let compared = asked.decision.and_then(|id| cluster.decisions().get(id));
    let start = compared.and_then(|decided| whatif::settings_of(cluster, &decided.decision));
    let options = asked.options.over(start.or_else(|| whatif::deployed(cluster, pool)).unwrap_or_default());
    // Only the cluster knows the size to cut token ids into, where the body does not say.
    let block_size_tokens = asked.block_size_tokens;
    let size = || block_size_tokens.or_else(|| cluster.block_tokens(pool));
    let prompt = match asked.prompt {
        Form::Ready(prompt) => prompt,
        Form::Tokens(tokens, seed) => {
            let size = size().ok_or_else(|| refused(&whatif::Refused::NoBlockSize))?;
            Prompt::Blocks(whatif::Blocks::of_tokens(&tokens, size, seed))
        }
        Form::Recorded(id) => Prompt::Recorded(id),
        Form::Live(id) => Prompt::Blocks(prompt::of(view, id)?),
        Form::After { worker, block_hash, new_tokens } => {
            Prompt::After { worker: known(view, "after", worker)?, block_hash, new_tokens }
        }
    };
    let who = |worker| Ok(Who::Worker(known(view, "workers", worker)?));
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
        block_size_tokens,
        router: asked.router,
        changes,
    };
    let state = whatif::State { cluster, active: Some(view.routing.active()), now_ms: view.at_ms };
    let mut engine = WhatIf::default();
    let answer = engine.ask(state, &question).map_err(|error| refused(&error))?;
    Ok(ScoreAnswer::of(cluster, &answer))
}

/// The pool whose workers are weighed.
fn pool(view: &View<'_>, asked: &Asked) -> Result<PoolIx, ApiError> {
    let cluster = view.cluster;
    let by_name = |name: &String| {
        let known = cluster.pool_by_name(name);
        known.ok_or_else(|| {
            ApiError::new(code::NOT_FOUND, format!("pool: nothing was ever received of {name:?}"))
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
        ApiError::new(code::NOT_FOUND, format!("{field}: nothing was ever received of worker {worker}"))
    })
}
