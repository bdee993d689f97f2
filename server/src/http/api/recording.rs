//! `GET /api/v1/recording`: a recording of a range of time, made while it is read: of what is kept in memory, or of the files
//! that are written where those reach back further. `GET /api/v1/report`: a page with it inside.

use std::fs::File;
use std::io::{BufReader, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use radixscope_insight::timeline::Row;
use radixscope_model::id::Millis;
use radixscope_recording::{Channel, Meta, RecordingError, Reduced, Series, Target, Writer};

use super::params::Params;
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::http::origin::AllowedPage;
use crate::http::report::{Report, View};
use crate::hub::{Hub, KeptSegment};
use crate::recording::{RecordingStatus, meta, open};

/// So many are made at once: each compresses on a thread of its own.
const MAX_AT_ONCE: usize = 2;
static PLACES: Semaphore = Semaphore::const_new(MAX_AT_ONCE);
/// Parts that wait for a slow reader; the thread waits with them.
const MAX_WAITING: usize = 4;
/// Bytes of a part.
const PART_BYTES: usize = 64 * 1024;

const VIEW: &str =
    "the query and the fragment of an address of this page, as in ?view=changes#t=1800000000000";

/// What is asked for.
struct Asked {
    from: Millis,
    to: Millis,
    meta: Meta,
    of: Of,
    /// Until all is written.
    _place: SemaphorePermit<'static>,
}

pub(super) async fn recording(
    _: AllowedPage,
    State(hub): State<Hub>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let asked = asked(&hub, &Params::of(&uri, &["from_ms", "to_ms"])?).await?;
    let name = named(&asked.meta, "mcap");
    Ok(streamed(&name, "application/octet-stream", asked, |pipe, asked| {
        let mut writer = Writer::new(pipe, &asked.meta)?;
        copy(asked.of, asked.from, asked.to, &mut writer)?;
        Ok(writer.finish()?.flush()?)
    }))
}

/// The same inside a page that is one file.
pub(super) async fn report(_: AllowedPage, State(app): State<App>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["from_ms", "to_ms", "view"])?;
    let view = params.get("view").unwrap_or_default();
    let view = View::of(view).ok_or_else(|| ApiError::bad_parameter("view", view, VIEW))?;
    let mut asked = asked(&app.hub, &params).await?;
    asked.meta.began_ms = asked.meta.began_ms.max(asked.from.0);
    let name = named(&asked.meta, "mcap");
    let assets = Arc::clone(&app.assets);
    let made = tokio::task::spawn_blocking(move || Report::around(&assets, &name, &view)).await;
    let failed = |words: String| ApiError::new(code::INTERNAL, words);
    let report =
        made.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    let name = named(&asked.meta, "html");
    Ok(streamed(&name, "text/html; charset=utf-8", asked, move |pipe, asked| {
        let write = |encoded| {
            let mut writer = Writer::small(encoded, &asked.meta)?;
            let mut reduced = Reduced::new(&mut writer, asked.from);
            copy(asked.of, asked.from, asked.to, &mut reduced)?;
            reduced.finish()?;
            writer.finish()
        };
        report.write(pipe, write).map(drop)
    }))
}

fn named(meta: &Meta, kind: &str) -> String {
    format!("radixscope-{}.{kind}", meta.began_ms)
}

async fn asked(hub: &Hub, params: &Params) -> Result<Asked, ApiError> {
    let from = Millis(params.u64("from_ms")?.unwrap_or(0));
    let to = Millis(params.u64("to_ms")?.unwrap_or(u64::MAX));
    let busy =
        || ApiError::new(code::BUSY, "two recordings are already being made; try again").retry_after(5);
    let place = PLACES.try_acquire().map_err(|_| busy())?;
    let kept = hub.read(move |view| {
        let sources = view.cluster.sources().iter();
        let sources: Vec<_> = sources.map(|source| (source.name.clone(), source.kind)).collect();
        let (segments, rows) = view.kept_between(from, to);
        let began = segments.first().map_or(from, |segment| segment.from_ms);
        let files = view.recording().filter(|_| segments.is_empty() || began > from);
        (meta(view.epoch, view.epoch, began, &sources), segments, rows, view.history(), files)
    });
    let (meta, segments, rows, history, files) = kept.await?;
    let (meta, of) = match files.map(|files| opened(files, meta.clone(), from, to)) {
        Some(opened) => match opened.await {
            Some((meta, series)) => (meta, Of::Files(series)),
            None => (meta, Of::Memory(segments, rows)),
        },
        None => (meta, Of::Memory(segments, rows)),
    };
    if matches!(&of, Of::Memory(segments, _) if segments.is_empty()) {
        let begin = history.and_then(|history| history.from_ms);
        let begin = begin
            .map_or_else(|| "no history is retained".to_owned(), |at| format!("the history begins at {at}"));
        let words = format!("nothing of that time is retained; {begin} (--history, --history-mib, --record)");
        return Err(ApiError::new(code::NOT_FOUND, words));
    }
    Ok(Asked { from, to, meta, of, _place: place })
}

/// A body that is written while it is read.
fn streamed(
    name: &str,
    kind: &'static str,
    asked: Asked,
    write: impl FnOnce(Pipe, Asked) -> Result<(), RecordingError> + Send + 'static,
) -> Response {
    let (parts, read) = mpsc::channel(MAX_WAITING);
    tokio::task::spawn_blocking(move || {
        // Whoever asked may have gone away, and there is nothing else that can fail.
        if let Err(error) = write(Pipe { parts, filled: Vec::new() }, asked) {
            tracing::debug!(%error, "a recording was not read to its end");
        }
    });
    let next = |mut read: mpsc::Receiver<Bytes>| async {
        let part = read.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(part), read))
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, Body::from_stream(stream::unfold(read, next))).into_response()
}

/// What a recording is made of.
enum Of {
    Memory(Vec<KeptSegment>, Vec<Row>),
    Files(Box<Series<BufReader<File>>>),
}

/// The files that are written, if they reach further back than what is in memory and hold something of that time.
async fn opened(
    files: RecordingStatus,
    meta: Meta,
    from: Millis,
    to: Millis,
) -> Option<(Meta, Box<Series<BufReader<File>>>)> {
    let opened = tokio::task::spawn_blocking(move || open(&[files.path.into()]));
    let opened = opened.await.ok()?;
    let series = opened.inspect_err(|error| tracing::warn!(%error, "the recording cannot be read")).ok()?;
    let (begin, end) = series.range();
    let of = series.files().first()?.meta();
    let (epoch, recording) = (of.epoch, of.recording);
    (begin < Millis(meta.began_ms) && begin <= to && end >= from)
        .then(|| (Meta { epoch, recording, began_ms: begin.max(from).0, ..meta }, Box::new(series)))
}

fn copy(of: Of, from: Millis, until: Millis, into: &mut dyn Target) -> Result<(), RecordingError> {
    match of {
        Of::Memory(segments, rows) => copy_kept(until, &segments, &rows, into),
        Of::Files(mut series) => series.copy(from, until, into),
    }
}

fn copy_kept(
    until: Millis,
    segments: &[KeptSegment],
    rows: &[Row],
    into: &mut dyn Target,
) -> Result<(), RecordingError> {
    let mut rows = rows.iter().peekable();
    for segment in segments {
        let keyframe: Vec<Vec<u8>> = segment.keyframe.iter().map(|part| part.to_vec()).collect();
        into.keyframe(segment.from_ms, &keyframe)?;
        for batch in segment.batches.iter().take_while(|batch| batch.at_ms <= until) {
            while let Some(row) = rows.next_if(|row| row.at_ms <= batch.at_ms) {
                let json = serde_json::to_vec(row).unwrap_or_default();
                into.message(Channel::Timeline, row.at_ms, &json)?;
            }
            into.message(Channel::Batches, batch.at_ms, &batch.frame)?;
        }
    }
    Ok(())
}

/// Hands on what is written, in parts; waits for the reader.
struct Pipe {
    parts: mpsc::Sender<Bytes>,
    filled: Vec<u8>,
}

impl Pipe {
    fn hand_on(&mut self) -> std::io::Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.filled));
        self.parts.blocking_send(part).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.filled.extend(bytes);
        if self.filled.len() >= PART_BYTES {
            self.hand_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.filled.is_empty() { Ok(()) } else { self.hand_on() }
    }
}
