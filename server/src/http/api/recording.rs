//! `GET /api/v1/recording`: a recording of a time range, created while it is downloaded, from the history in memory, or from
//! the recording's files if they reach back further. `GET /api/v1/report`: the page with a recording inside.

mod memory;
mod readers;

use std::io;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use radixscope_model::id::Millis;
use radixscope_recording::{Meta, RecordingError, Reduced, Series, Target, Writer};

use super::params::Params;
use crate::config::RecordingAt;
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::http::listen::Peer;
use crate::http::origin::AllowedPage;
use crate::http::report::{IncidentReport, View};
use crate::recording::{RecordingReader, RecordingStatus, meta, open};
use memory::Memory;
pub(in crate::http) use readers::Readers;
use readers::{MAX_WAITING, Pipe, Reader};

const VIEW: &str =
    "the query and the fragment of an address of this page, as in ?view=changes#t=1800000000000";

/// A download.
struct Download {
    span: DownloadRange,
    meta: Meta,
    of: RecordingSource,
    reader: Reader,
    compute_permit: OwnedSemaphorePermit,
}

/// From when to when.
#[derive(Clone, Copy)]
struct DownloadRange {
    from: Millis,
    to: Millis,
}

pub(super) async fn recording(
    _: AllowedPage,
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let download = download(&app, peer, &Params::of(&uri, &["from_ms", "to_ms"])?).await?;
    let name = named(&download.meta, "mcap");
    Ok(stream_response(&name, "application/octet-stream", download, |pipe, meta, of, span| {
        let mut writer = Writer::new(pipe, &meta)?;
        of.copy(span, &mut writer)?;
        Ok(io::Write::flush(&mut writer.finish()?)?)
    }))
}

/// The same inside an HTML report.
pub(super) async fn report(
    _: AllowedPage,
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["from_ms", "to_ms", "view"])?;
    let view = params.get("view").unwrap_or_default();
    let view = View::of(view).ok_or_else(|| ApiError::bad_parameter("view", view, VIEW))?;
    let mut download = download(&app, peer, &params).await?;
    download.meta.began_ms = download.meta.began_ms.max(download.span.from.0);
    let name = named(&download.meta, "mcap");
    let assets = Arc::clone(&app.assets);
    // The permit is held until the report is built, even if the client disconnects.
    let made =
        tokio::task::spawn_blocking(move || (IncidentReport::around(&assets, &name, &view), download)).await;
    let failed = |text: String| ApiError::new(code::INTERNAL, text);
    let (report, download) = made.map_err(|error| failed(error.to_string()))?;
    let report = report.map_err(|error| failed(error.to_string()))?;
    let name = named(&download.meta, "html");
    Ok(stream_response(&name, "text/html; charset=utf-8", download, move |pipe, meta, of, span| {
        let write = |encoded| {
            let mut writer = Writer::small(encoded, &meta)?;
            let mut reduced = Reduced::new(&mut writer, span.from);
            of.copy(span, &mut reduced)?;
            reduced.finish()?;
            writer.finish()
        };
        report.write(pipe, write).map(drop)
    }))
}

fn named(meta: &Meta, kind: &str) -> String {
    format!("radixscope-{}.{kind}", meta.began_ms)
}

async fn download(app: &App, peer: Option<Extension<Peer>>, params: &Params) -> Result<Download, ApiError> {
    let from = Millis(params.u64("from_ms")?.unwrap_or(0));
    let to = Millis(params.u64("to_ms")?.unwrap_or(u64::MAX));
    let busy = || {
        let message = "too many recordings are being downloaded; try again";
        ApiError::new(code::BUSY, message).retry_after(2)
    };
    let reader = app.readers.slot(peer.map(|Extension(peer)| peer.slot)).await.ok_or_else(busy)?;
    let compute_permit =
        reader.compute_permit().await.map_err(|error| ApiError::new(code::INTERNAL, error.to_string()))?;
    let retained = app.hub.read(move |view| {
        let sources = view.cluster.sources().iter();
        let sources: Vec<_> = sources.map(|source| (source.name.clone(), source.kind)).collect();
        let (segments, rows) = view.retained_between(from, to);
        let began = segments.first().map_or(from, |segment| segment.from_ms);
        let files = view.recording().filter(|_| segments.is_empty() || began > from);
        let meta = meta(view.epoch, view.epoch, began, &sources);
        (meta, (segments, rows, view.cluster.seq()), view.history(), files)
    });
    let (meta, (segments, rows, last), history, files) = retained.await?;
    let memory = Memory { hub: app.hub.clone(), segments, rows, last };
    let (meta, of) = match files.map(|files| opened(files, meta.clone(), from, to)) {
        Some(opened) => match opened.await {
            Some((meta, series)) => (meta, RecordingSource::Files(series)),
            None => (meta, RecordingSource::Memory(memory)),
        },
        None => (meta, RecordingSource::Memory(memory)),
    };
    if matches!(&of, RecordingSource::Memory(memory) if memory.segments.is_empty()) {
        let begin = history.and_then(|history| history.from_ms);
        let begin = begin
            .map_or_else(|| "no history is retained".to_owned(), |at| format!("the history begins at {at}"));
        let text = format!("nothing of that time is retained; {begin} (--history, --history-mib, --record)");
        return Err(ApiError::new(code::NOT_FOUND, text));
    }
    Ok(Download { span: DownloadRange { from, to }, meta, of, reader, compute_permit })
}

/// A streamed body. If it cannot be completed, the connection is closed before its end, so that no client mistakes a part for
/// the whole.
fn stream_response(
    name: &str,
    kind: &'static str,
    download: Download,
    write: impl FnOnce(Pipe, Meta, RecordingSource, DownloadRange) -> Result<(), RecordingError> + Send + 'static,
) -> Response {
    let Download { span, meta, of, reader, compute_permit } = download;
    let (parts, read) = mpsc::channel(MAX_WAITING);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let pipe = Pipe::new(parts.clone(), reader, compute_permit, runtime);
        let Err(error) = write(pipe, meta, of, span) else { return };
        if parts.is_closed() {
            tracing::debug!(%error, "a recording download was aborted by the client");
            return;
        }
        tracing::warn!(%error, "a recording download failed");
        // Fails if the client disconnects now.
        let _ = parts.blocking_send(Err(io::Error::other(error)));
    });
    let next = |mut read: mpsc::Receiver<io::Result<Bytes>>| async {
        let part = read.recv().await?;
        Some((part, read))
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, Body::from_stream(stream::unfold(read, next))).into_response()
}

/// The source of a recording.
enum RecordingSource {
    Memory(Memory),
    Files(Box<Series<RecordingReader>>),
}

/// The recording's files, if they reach further back than the history and overlap the range.
async fn opened(
    files: RecordingStatus,
    meta: Meta,
    from: Millis,
    to: Millis,
) -> Option<(Meta, Box<Series<RecordingReader>>)> {
    let opened = tokio::task::spawn_blocking(move || open(&[RecordingAt::Path(files.on_disk)]));
    let opened = opened.await.ok()?;
    let series =
        opened.inspect_err(|error| tracing::warn!(%error, "the recording's files cannot be read")).ok()?;
    let (begin, end) = series.range();
    let of = series.files().first()?.meta();
    let (epoch, recording) = (of.epoch, of.recording);
    (begin < Millis(meta.began_ms) && begin <= to && end >= from)
        .then(|| (Meta { epoch, recording, began_ms: begin.max(from).0, ..meta }, Box::new(series)))
}

impl RecordingSource {
    fn copy(self, span: DownloadRange, into: &mut dyn Target) -> Result<(), RecordingError> {
        match self {
            Self::Memory(memory) => memory.copy(span.to, &Handle::current(), into),
            Self::Files(mut series) => series.copy(span.from, span.to, into),
        }
    }
}
