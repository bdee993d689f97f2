//! Our own log on standard error, for people or for machines. Lines of one kind that come in floods, as anybody can cause who
//! reaches a port, are counted and summed up.
//!
//! Lines are of one kind if they are written at the same place of the program about the same source. Crates that limit rates
//! tell lines apart by their fields, so that a flood of as many addresses is not one, or drop lines without a word.

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

/// What is logged unless `RADIXSCOPE_LOG` says otherwise. Our own log tells in words what the NATS client
/// tells of its connection.
pub(crate) const DEFAULT_FILTER: &str = "info,async_nats=off";
/// Lines of one kind that are written within a window: more than a start of many workers causes, and few to read.
const LINES_A_WINDOW: u32 = 20;
/// After this time the lines of a kind that were not written are summed up in one.
const WINDOW: Duration = Duration::from_secs(10);
/// Kinds that are told apart: some hundred places of the program, and as many sources.
const MAX_KINDS: usize = 4_096;
/// Of the first line that is not written so much is repeated with the sum.
const SAMPLE_CHARS: usize = 160;

/// Starts the log. What is dropped at the end writes the sums that are due.
///
/// # Errors
/// `filter` is not a list of `target=level`.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<Sums> {
    let filter = EnvFilter::try_new(filter)?;
    let kinds: Arc<Kinds<Kind>> = Arc::default();
    let sums = Sums(Arc::clone(&kinds));
    let writer = thread::Builder::new().name("log-sums".to_owned()).spawn(move || write_sums(&kinds))?;
    let limited = Limited { kinds: Arc::clone(&sums.0), writer: writer.thread().clone() };
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
    Ok(sums)
}

/// Writes the last sums when the process ends.
pub(crate) struct Sums(Arc<Kinds<Kind>>);

impl Drop for Sums {
    fn drop(&mut self) {
        self.0.sums().iter().for_each(Sum::write);
    }
}

/// Writes sums for ever: sleeps until a line is not written, and then a window.
fn write_sums(kinds: &Kinds<Kind>) {
    loop {
        thread::park();
        thread::sleep(WINDOW);
        kinds.sums().iter().for_each(Sum::write);
    }
}

/// Lets through as many lines of each kind as a window has.
struct Limited {
    kinds: Arc<Kinds<Kind>>,
    writer: Thread,
}

/// A place of the program, and the source that the line is about.
type Kind = (Identifier, Option<String>);

impl<S: Subscriber> Layer<S> for Limited {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == module_path!() {
            return true;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let kind = (metadata.callsite(), line.source);
        let admitted = self.kinds.admit(kind, *metadata.level(), &line.message, Instant::now());
        if admitted == Admitted::FirstLeftOut {
            self.writer.unpark();
        }
        admitted == Admitted::Written
    }
}

/// What a line says, as far as it is needed here.
#[derive(Default)]
struct Line {
    message: String,
    source: Option<String>,
}

impl Visit for Line {
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

/// What becomes of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Admitted {
    Written,
    /// It is counted, and the first of its kind in this window that is.
    FirstLeftOut,
    LeftOut,
}

/// The lines of a kind in a window.
struct Count {
    since: Instant,
    written: u32,
    left_out: u64,
    level: Level,
    /// The first that was not written.
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
            // Those that are quiet are new if they come again.
            kinds.retain(|_, count| count.left_out > 0 || now.duration_since(count.since) < WINDOW);
        }
        let is_full = kinds.len() >= MAX_KINDS && !kinds.contains_key(&kind);
        if is_full {
            return Admitted::Written;
        }
        let new = || Count { since: now, written: 0, left_out: 0, level, sample: String::new() };
        let count = kinds.entry(kind).or_insert_with(new);
        if count.left_out == 0 && now.duration_since(count.since) >= WINDOW {
            (count.since, count.written) = (now, 0);
        }
        if count.left_out == 0 && count.written < LINES_A_WINDOW {
            count.written += 1;
            return Admitted::Written;
        }
        count.left_out = count.left_out.saturating_add(1);
        if count.left_out > 1 {
            return Admitted::LeftOut;
        }
        count.sample = message.chars().take(SAMPLE_CHARS).collect();
        Admitted::FirstLeftOut
    }

    /// The sums of what was not written; a window begins anew for those kinds.
    fn sums(&self) -> Vec<Sum> {
        let mut kinds = self.lock();
        let left_out = kinds.extract_if(|_, count| count.left_out > 0);
        left_out
            .map(|(_, Count { left_out, level, mut sample, .. })| Sum {
                count: left_out,
                level,
                sample: mem::take(&mut sample),
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lines of a kind that were not written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Sum {
    count: u64,
    level: Level,
    sample: String,
}

impl Sum {
    /// Writes it at the level of those lines.
    fn write(&self) {
        let Self { count, level, sample } = self;
        let seconds = WINDOW.as_secs();
        match *level {
            Level::ERROR => tracing::error!(count, "and {count} more in {seconds} s: {sample}"),
            Level::WARN => tracing::warn!(count, "and {count} more in {seconds} s: {sample}"),
            Level::INFO => tracing::info!(count, "and {count} more in {seconds} s: {sample}"),
            Level::DEBUG => tracing::debug!(count, "and {count} more in {seconds} s: {sample}"),
            Level::TRACE => tracing::trace!(count, "and {count} more in {seconds} s: {sample}"),
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
        let sum = Sum { count: 18_980, level: Level::WARN, sample: "line of 1".to_owned() };
        assert_eq!(kinds.sums(), [sum]);
        assert!(kinds.sums().is_empty(), "said once");
        assert!(admit(&kinds, 1, start + WINDOW));
    }

    #[test]
    fn what_comes_now_and_then_is_always_written() {
        let (kinds, start) = (Kinds::default(), Instant::now());
        assert!((0..1_000).all(|line| admit(&kinds, 1, start + WINDOW / 10 * line)));
        assert!(kinds.sums().is_empty());
    }

    #[test]
    fn kinds_are_bounded() {
        let (kinds, start) = (Kinds::default(), Instant::now());
        assert!((0..2 * MAX_KINDS).all(|kind| admit(&kinds, kind, start)), "none is silenced for others");
        assert!(kinds.lock().len() <= MAX_KINDS);
        assert!(admit(&kinds, 3 * MAX_KINDS, start + WINDOW));
        assert_eq!(kinds.lock().len(), 1, "quiet kinds make room");
    }
}
