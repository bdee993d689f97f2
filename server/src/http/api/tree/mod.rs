//! `GET /api/v1/tree`, `/api/v1/tree/block`, `/api/v1/tree/prefixes`, `/api/v1/tree.svg`: the prefix tree, read from a copy.
//! The hub only copies the tree, a large one at most once in some seconds; everything else runs on blocking threads, a few at a
//! time.

mod picture;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::Semaphore;

use radixscope_export::tree::{
    BlockQuery, Cursor, MAX_HITS_WINDOW_MS, NotFound, Page, PrefixOrder, Sort, TreeSnapshot,
};
use radixscope_model::id::{BlockHash, TokensHash, WorkerIx};

use super::params::{Params, PoolFilter, WorkerFilter};
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::hub::Hub;

pub(super) use picture::svg;

const MAX_LIMIT: u64 = 100_000;
const MAX_LEVELS: u64 = 10_000;
const MAX_PREFIXES: u64 = 1_000;
const DEFAULT_PREFIXES: u64 = 20;
/// Maximum KV bytes per token; no model has more.
const MAX_KV_BYTES_PER_TOKEN: u64 = 1 << 40;
/// Maximum concurrent reads: the hub needs a core. Others wait.
const MAX_READS: usize = 2;

/// Permits for reads.
pub(in crate::http) fn reads() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_READS))
}

pub(super) async fn tree(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let known = [
        "pool",
        "model",
        "worker",
        "root",
        "depth",
        "limit",
        "sort",
        "after",
        "window_s",
        "kv_bytes_per_token",
    ];
    let params = Params::of(&uri, &known)?;
    let standard = Page::default();
    let after = after(&params)?;
    let sort = sort(&params, after.as_ref())?;
    let page = Page {
        root: params.u64("root")?.map(BlockHash),
        workers: workers(&app.hub, params.worker()?).await?,
        levels: params.within("depth", 1, MAX_LEVELS)?.map_or(standard.levels, |levels| levels as usize),
        limit: params.within("limit", 1, MAX_LIMIT)?.map_or(standard.limit, |limit| limit as usize),
        sort,
        after,
        hits_window_ms: window_ms(&params)?,
        kv_bytes_per_token: kv_bytes_per_token(&params)?,
    };
    read_json(&app, params.pools(), move |picture| Ok(picture.page(&page)?.json())).await
}

pub(super) async fn block(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["pool", "model", "hash", "tokens", "worker", "window_s"])?;
    let workers = workers(&app.hub, params.worker()?).await?;
    let asked = match (params.u64("hash")?, params.u64("tokens")?, workers) {
        (Some(hash), None, workers) => BlockQuery::Block(BlockHash(hash), workers),
        (None, Some(tokens), None) => BlockQuery::Tokens(TokensHash(tokens)),
        _ => {
            let message = "expected hash= (the engine's hash, with worker= if several blocks have it) or tokens= (the router's hash)";
            return Err(ApiError::new(code::BAD_PARAMETER, message));
        }
    };
    let window_ms = window_ms(&params)?;
    read_json(&app, params.pools(), move |picture| Ok(json(&picture.block(&asked, window_ms)?))).await
}

pub(super) async fn prefixes(State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["pool", "model", "by", "limit", "window_s", "kv_bytes_per_token"])?;
    let by = params.one_of("by", &BY)?.unwrap_or_default();
    let most = params.within("limit", 1, MAX_PREFIXES)?.unwrap_or(DEFAULT_PREFIXES) as usize;
    let (window_ms, bytes) = (window_ms(&params)?, kv_bytes_per_token(&params)?);
    read_json(&app, params.pools(), move |picture| Ok(json(&picture.prefixes(by, most, window_ms, bytes))))
        .await
}

const BY: [(&str, PrefixOrder); 2] = [("blocks", PrefixOrder::Blocks), ("hits", PrefixOrder::Hits)];

/// Runs `read` on a copy of the tree, outside the hub.
async fn read<T: Send + 'static>(
    app: &App,
    pools: PoolFilter,
    read: impl FnOnce(&TreeSnapshot) -> T + Send + 'static,
) -> Result<T, ApiError> {
    let ended = || ApiError::new(code::SHUTTING_DOWN, "the server is shutting down");
    let permit = Arc::clone(&app.tree_reads).acquire_owned().await.map_err(|_| ended())?;
    let picture = app.hub.read(move |view| {
        Ok::<_, ApiError>({
            let pool = pools.one_of(view.cluster)?;
            view.picture(pool)
        })
    });
    let picture = picture.await??;
    let run = tokio::task::spawn_blocking(move || {
        let response = read(&picture);
        drop((picture, permit));
        response
    });
    run.await.map_err(|error| {
        tracing::error!(%error, "reading the tree failed");
        ApiError::new(code::INTERNAL, "reading the tree failed")
    })
}

/// The same for a JSON response, which is also serialised outside the hub.
async fn read_json(
    app: &App,
    pools: PoolFilter,
    json: impl FnOnce(&TreeSnapshot) -> Result<Vec<u8>, NotFound> + Send + 'static,
) -> Result<Response, ApiError> {
    Ok(([(header::CONTENT_TYPE, "application/json")], read(app, pools, json).await??).into_response())
}

fn json(response: &impl Serialize) -> Vec<u8> {
    // Plain data always encodes.
    serde_json::to_vec(response).unwrap_or_default()
}

/// The workers selected by a filter.
async fn workers(hub: &Hub, filter: Option<WorkerFilter>) -> Result<Option<Vec<WorkerIx>>, ApiError> {
    match filter {
        Some(filter) => Ok(Some(hub.read(move |view| filter.among(view.cluster)).await??)),
        None => Ok(None),
    }
}

fn after(params: &Params) -> Result<Option<Cursor>, ApiError> {
    let Some(text) = params.get("after") else { return Ok(None) };
    let expected = "the value of next in the previous response";
    text.parse().map(Some).map_err(|_| ApiError::bad_parameter("after", text, expected))
}

/// A page continues in the order of the previous one.
fn sort(params: &Params, after: Option<&Cursor>) -> Result<Sort, ApiError> {
    let asked = params.one_of("sort", &Sort::NAMES)?;
    match (asked, after.map(Cursor::sort)) {
        (Some(asked), Some(before)) if asked != before => {
            let message = format!(
                "after= belongs to sort={}, but the request has sort={}",
                before.name(),
                asked.name()
            );
            Err(ApiError::new(code::BAD_PARAMETER, message))
        }
        (asked, before) => Ok(asked.or(before).unwrap_or_default()),
    }
}

/// How far back hits count.
fn window_ms(params: &Params) -> Result<u64, ApiError> {
    let most_s = MAX_HITS_WINDOW_MS / 1_000;
    Ok(params.within("window_s", 1, most_s)?.map_or(MAX_HITS_WINDOW_MS, |seconds| seconds * 1_000))
}

fn kv_bytes_per_token(params: &Params) -> Result<Option<u64>, ApiError> {
    params.within("kv_bytes_per_token", 1, MAX_KV_BYTES_PER_TOKEN)
}

impl From<NotFound> for ApiError {
    fn from(error: NotFound) -> Self {
        match error {
            NotFound::Elsewhere => Self::new(code::BAD_PARAMETER, error.to_string()),
            _ => Self::new(code::NOT_FOUND, error.to_string()),
        }
    }
}
