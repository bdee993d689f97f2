//! Radixscope's own log on standard error, as text or JSON. Repeated lines are rate-limited: lines of one kind beyond a limit
//! are counted and summarised, because anyone who reaches the port could otherwise flood the log. Lines are of one kind if they
//! come from the same call site and source. Crates for rate limiting either distinguish lines by all their fields, so that
//! lines with different addresses are not limited, or drop lines silently.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt as lines};

use crate::config::LogFormat;

/// The default log filter. Messages of the clients of NATS and Kubernetes are off because the sources log their own connection
/// state.
pub(crate) const DEFAULT_FILTER: &str =
    "info,async_nats=off,kube_client=off,kube_runtime=off,object_store=off";
/// Maximum lines of one kind per window: more than the start of many workers causes, but still readable.
const LINES_A_WINDOW: u32 = 20;
/// Length of a window. At its end the suppressed lines are summarised in one line.
const WINDOW: Duration = Duration::from_secs(10);
/// Maximum distinct kinds: some hundred call sites, and as many sources.
const MAX_KINDS: usize = 4_096;
/// Characters of the first suppressed line that the summary repeats.
const SAMPLE_CHARS: usize = 160;

/// Starts the log. Dropping the returned guard writes the pending summaries.
///
/// # Errors
/// `filter` is not a list of `target=level`.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<SummaryGuard> {
    let filter = EnvFilter::try_new(filter)?;
    let kinds: Arc<Kinds<Kind>> = Arc::default();
    let summaries = SummaryGuard(Arc::clone(&kinds));
    let writer = thread::Builder::new().name("log-sums".to_owned()).spawn(move || write_summaries(&kinds))?;
    let limited = Limited { kinds: Arc::clone(&summaries.0), writer: writer.thread().clone() };
    let registry = tracing_subscriber::registry().with(filter).with(limited);
    let layer = lines::layer().with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            registry.with(layer.with_ansi(is_terminal)).try_init()
        }
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))?;
    Ok(summaries)
}

/// Guard that writes the pending summaries when the process ends.
pub(crate) struct SummaryGuard(Arc<Kinds<Kind>>);

impl Drop for SummaryGuard {
    fn drop(&mut self) {
        self.0.summaries().iter().for_each(Summary::write);
    }
}

/// Loop of the summary thread: waits until a line is suppressed, then for a window.
fn write_summaries(kinds: &Kinds<Kind>) {
    loop {
        thread::park();
        thread::sleep(WINDOW);
        kinds.summaries().iter().for_each(Summary::write);
    }
}

/// The layer that limits the lines of each kind.
struct Limited {
    kinds: Arc<Kinds<Kind>>,
    writer: Thread,
}

/// A call site, and the source that the line is about.
type Kind = (Identifier, Option<String>);

impl<S: Subscriber> Layer<S> for Limited {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == module_path!() {
            return true;
        }
        let mut event_fields = LogEvent::default();
        event.record(&mut event_fields);
        let kind = (metadata.callsite(), event_fields.source);
        let admitted = self.kinds.admit(kind, *metadata.level(), &event_fields.message, Instant::now());
        if admitted == Admitted::FirstSuppressed {
            self.writer.unpark();
        }
        admitted == Admitted::Written
    }
}

/// The fields of a log event that are needed here.
#[derive(Default)]
struct LogEvent {
    message: String,
    source: Option<String>,
}

impl Visit for LogEvent {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "source" {
            self.source = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        }
    }
}

/// The outcome for a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Admitted {
    Written,
    /// Suppressed, the first of its kind in this window.
    FirstSuppressed,
    Suppressed,
}

/// The lines of a kind in a window.
struct Count {
    since: Instant,
    written: u32,
    suppressed: u64,
    level: Level,
    /// The first suppressed line.
    sample: String,
}

/// All kinds.
struct Kinds<K>(Mutex<HashMap<K, Count>>);

impl<K> Default for Kinds<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> Kinds<K> {
    fn admit(&self, kind: K, level: Level, message: &str, now: Instant) -> Admitted {
        let mut kinds = self.lock();
        if kinds.len() >= MAX_KINDS {
            // Drops quiet kinds.
            kinds.retain(|_, count| count.suppressed > 0 || now.duration_since(count.since) < WINDOW);
        }
        let is_full = kinds.len() >= MAX_KINDS && !kinds.contains_key(&kind);
        if is_full {
            return Admitted::Written;
        }
        let new = || Count { since: now, written: 0, suppressed: 0, level, sample: String::new() };
        let count = kinds.entry(kind).or_insert_with(new);
        if count.suppressed == 0 && now.duration_since(count.since) >= WINDOW {
            (count.since, count.written) = (now, 0);
        }
        if count.suppressed == 0 && count.written < LINES_A_WINDOW {
            count.written += 1;
            return Admitted::Written;
        }
        count.suppressed = count.suppressed.saturating_add(1);
        if count.suppressed > 1 {
            return Admitted::Suppressed;
        }
        count.sample = message.chars().take(SAMPLE_CHARS).collect();
        Admitted::FirstSuppressed
    }

    /// Takes the summaries of suppressed lines; a new window starts for those kinds.
    fn summaries(&self) -> Vec<Summary> {
        let mut kinds = self.lock();
        let suppressed = kinds.extract_if(|_, count| count.suppressed > 0);
        suppressed
            .map(|(_, Count { suppressed, level, mut sample, .. })| Summary {
                count: suppressed,
                level,
                sample: mem::take(&mut sample),
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A summary of the suppressed lines of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Summary {
    count: u64,
    level: Level,
    sample: String,
}

impl Summary {
    /// Writes it at the level of the suppressed lines.
    fn write(&self) {
        let Self { count, level, sample } = self;
        let seconds = WINDOW.as_secs();
        match *level {
            Level::ERROR => {
                tracing::error!(count, "{count} similar lines suppressed in {seconds} s: {sample}")
            }
            Level::WARN => tracing::warn!(count, "{count} similar lines suppressed in {seconds} s: {sample}"),
            Level::INFO => tracing::info!(count, "{count} similar lines suppressed in {seconds} s: {sample}"),
            Level::DEBUG => {
                tracing::debug!(count, "{count} similar lines suppressed in {seconds} s: {sample}")
            }
            Level::TRACE => {
                tracing::trace!(count, "{count} similar lines suppressed in {seconds} s: {sample}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(kinds: &Kinds<usize>, kind: usize, at: Instant) -> bool {
        kinds.admit(kind, Level::WARN, &format!("line of {kind}"), at) == Admitted::Written
    }

    #[test]
    fn a_flood_of_one_kind_is_summed_up_and_other_kinds_are_written() {
        let (kinds, start) = (Kinds::default(), Instant::now());
        let written = (0..19_000).filter(|_| admit(&kinds, 1, start)).count();
        assert_eq!(written, LINES_A_WINDOW as usize);
        assert!(admit(&kinds, 2, start));
        let sum = Summary { count: 18_980, level: Level::WARN, sample: "line of 1".to_owned() };
        assert_eq!(kinds.summaries(), [sum]);
        assert!(kinds.summaries().is_empty(), "reported once");
        assert!(admit(&kinds, 1, start + WINDOW));
    }

    #[test]
    fn what_comes_now_and_then_is_always_written() {
        let (kinds, start) = (Kinds::default(), Instant::now());
        assert!((0..1_000).all(|line| admit(&kinds, 1, start + WINDOW / 10 * line)));
        assert!(kinds.summaries().is_empty());
    }

    #[test]
    fn kinds_are_bounded() {
        let (kinds, start) = (Kinds::default(), Instant::now());
        assert!(
            (0..2 * MAX_KINDS).all(|kind| admit(&kinds, kind, start)),
            "no kind is suppressed because of others"
        );
        assert!(kinds.lock().len() <= MAX_KINDS);
        assert!(admit(&kinds, 3 * MAX_KINDS, start + WINDOW));
        assert_eq!(kinds.lock().len(), 1, "quiet kinds make room");
    }
}
