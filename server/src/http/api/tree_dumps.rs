//! `POST /api/v1/tree-dumps`: queries workers for all their cached blocks. Does not wait for responses: results are in the
//! state.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use radixscope_model::id::Worker;
use radixscope_state::cluster::MAX_WORKERS;

use super::posted::{Posted, bad};
use super::score::Id;
use crate::http::error::ApiError;
use crate::http::origin::AllowedPage;
use crate::hub::Hub;

/// Largest request body: all workers by name.
const MAX_BODY_BYTES: usize = 512 * 1024;

/// Workers to query.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeDumpsBody {
    /// `None`: all present workers.
    workers: Option<Vec<Named>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    worker_id: Id,
    #[serde(default)]
    dp_rank: u32,
}

#[derive(Serialize)]
pub(super) struct TreeDumpsResponse {
    workers: Vec<QueriedWorker>,
}

#[derive(Serialize)]
struct QueriedWorker {
    #[serde(flatten)]
    worker: Worker,
    /// Whether it is queried. It is not if its endpoint is unknown, or with `--tree-dumps off`.
    asked: bool,
}

pub(super) async fn tree_dumps(
    _: AllowedPage,
    State(hub): State<Hub>,
    Posted(body): Posted<TreeDumpsBody, MAX_BODY_BYTES>,
) -> Result<(StatusCode, Json<TreeDumpsResponse>), ApiError> {
    let workers: Vec<Worker> = match body.workers {
        Some(named) if named.len() > MAX_WORKERS => {
            return Err(bad(format!("workers: more than {MAX_WORKERS}")));
        }
        Some(named) => named.iter().map(|named| Worker::new(named.worker_id.0, named.dp_rank)).collect(),
        None => hub.read(|view| view.cluster.workers().iter().map(|worker| worker.id).collect()).await?,
    };
    let asked = hub.request_dumps(workers.clone()).await?;
    let workers = workers.into_iter().zip(asked).map(|(worker, asked)| QueriedWorker { worker, asked });
    Ok((StatusCode::ACCEPTED, Json(TreeDumpsResponse { workers: workers.collect() })))
}
