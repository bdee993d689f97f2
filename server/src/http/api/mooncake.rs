//! `GET /api/v1/mooncake`: the latest requests as a Mooncake trace, which load generators send again.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};

use radixscope_export::mooncake;
use radixscope_insight::counterfactual::{NO_ARRIVALS_HINT, arrivals_in};
use radixscope_state::requests::{Arrivals, MAX_ARRIVALS};

use super::counterfactual::no_store;
use super::params::{Params, PoolFilter};

use crate::http::error::{ApiError, code};
use crate::hub::{Hub, View};

pub(super) async fn trace(State(hub): State<Hub>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["last", "pool", "model"])?;
    let last = params.within("last", 1, MAX_ARRIVALS as u64)?.map_or(MAX_ARRIVALS, |last| last as usize);
    let pools = params.pools();
    let (arrivals, block_size) = hub.read(move |view| copy(view, &pools, last)).await??;
    let written = tokio::task::spawn_blocking(move || {
        let mut to = Vec::new();
        mooncake::write(&arrivals, block_size, &mut to).map(|()| to)
    });
    let body = written.await.ok().and_then(Result::ok);
    let body = body.ok_or_else(|| ApiError::new(code::INTERNAL, "the trace cannot be written"))?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    // The trace itself has no place for the size of its blocks, which a load generator must be given.
    let name = format!("attachment; filename=\"requests-blocks-of-{block_size}.jsonl\"");
    Ok((no_store(), [kind], [(header::CONTENT_DISPOSITION, name)], body).into_response())
}

/// Runs in the hub: only copies. The prompts and their tokens per block.
fn copy(view: &View<'_>, pools: &PoolFilter, last: usize) -> Result<(Arrivals, u32), ApiError> {
    let cluster = view.cluster;
    let pool = pools.one_of_many(cluster)?;
    let arrivals = arrivals_in(cluster, view.routing.arrivals(), pool, last);
    if arrivals.iter().len() == 0 {
        let text = match view.is_replay {
            true => "a recording contains no prompts".to_owned(),
            false => format!("no prompt is retained. {NO_ARRIVALS_HINT}"),
        };
        return Err(ApiError::new(code::NOT_FOUND, text));
    }
    let decided = arrivals.iter().filter_map(|arrival| cluster.decisions().get(arrival.decision));
    let sizes: BTreeSet<u32> =
        decided.filter_map(|of| cluster.block_size_of(&of.decision)).map(|size| size.value).collect();
    let mut sizes = sizes.into_iter();
    match (sizes.next(), sizes.next()) {
        (Some(size), None) => Ok((arrivals, size)),
        (None, _) => {
            Err(ApiError::new(code::NOT_COMPUTABLE, "the tokens per block of these prompts are not known"))
        }
        (Some(one), Some(other)) => Err(ApiError::new(
            code::BAD_PARAMETER,
            format!(
                "prompts are cut into blocks of {one} and of {other} tokens, and a trace has one size: choose with pool or last"
            ),
        )),
    }
}
