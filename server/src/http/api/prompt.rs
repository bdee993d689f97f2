//! `GET /api/v1/prompt`: the block hashes of a recorded request's prompt, for `/api/v1/score`.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use radixscope_insight::whatif::{Blocks, Hashes};
use radixscope_model::id::{Decimal, DecisionId};
use radixscope_state::requests::MAX_ARRIVALS;

use super::params::Params;
use crate::http::error::{ApiError, code};
use crate::hub::{Hub, View};

#[derive(Serialize)]
pub(super) struct PromptResponse {
    decision: DecisionId,
    isl_tokens: Option<u64>,
    block_size_tokens: Option<u32>,
    /// The router's hash of each full block, including its prefix.
    chain_hashes: Vec<Decimal>,
}

pub(super) async fn prompt(State(hub): State<Hub>, uri: Uri) -> Result<Json<PromptResponse>, ApiError> {
    let params = Params::of(&uri, &["decision"])?;
    let id = params.u64("decision")?.map(DecisionId).ok_or_else(|| {
        ApiError::new(
            code::BAD_PARAMETER,
            "decision is missing; expected the id of a decision of /api/v1/decisions",
        )
    })?;
    let blocks = hub.read(move |view| of(view, id)).await??;
    let (Hashes::Chain(hashes) | Hashes::Local(hashes)) = blocks.hashes;
    Ok(Json(PromptResponse {
        decision: id,
        isl_tokens: blocks.isl_tokens,
        block_size_tokens: blocks.block_size_tokens,
        chain_hashes: hashes.into_iter().map(Decimal).collect(),
    }))
}

/// The prompt that led to a decision.
///
/// # Errors
/// It is not retained.
pub(super) fn of(view: &View<'_>, id: DecisionId) -> Result<Blocks, ApiError> {
    let arrivals = view.routing.arrivals();
    let arrival = arrivals.of(id).ok_or_else(|| {
        ApiError::new(
            code::NOT_FOUND,
            format!(
                "decision: the prompt of decision {id} is not retained: its hashes were not \
                 reported (--router-replica-sync on every frontend reports them, and request traces), or it is older than the latest \
                 {MAX_ARRIVALS}"
            ),
        )
    })?;
    let mut chain = Vec::new();
    arrivals.prompt(arrival, &mut chain);
    let cluster = view.cluster;
    let size = cluster.decisions().get(id).and_then(|decided| cluster.block_size_of(&decided.decision));
    Ok(Blocks {
        hashes: Hashes::Chain(chain),
        isl_tokens: arrival.isl_tokens,
        block_size_tokens: size.map(|size| size.value),
    })
}
