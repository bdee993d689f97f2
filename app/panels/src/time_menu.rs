//! The time that charts show: what is offered, what is chosen, and how far back anything is known.

use radixscope_insight::time_range::{TimePoint, TimeRange, TimeSpan};
use radixscope_model::id::Millis;
use radixscope_state::cluster::Cluster;

use crate::time_zone::TimeZone;

/// The times offered, seconds; the last is all that is retained.
pub const LASTS: [(u64, &str); 4] =
    [(60, "Last 1 min"), (300, "Last 5 min"), (900, "Last 15 min"), (3_600, "Last 1 h: all retained")];
/// What is retained.
pub const RETAINED: &str = "Retained: the last hour, every second of the last 5 min, 15 s steps before. Drag over a chart to zoom in; Escape goes back.";
/// A drag shorter than this share of a chart is a click.
const LEAST_DRAG: f64 = 0.015;

/// What the menu says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimeChoice {
    /// So many seconds up to now.
    Last(u64),
    /// Another time.
    Other(String),
}

impl TimeChoice {
    /// Of the time that the address names, which is `span` now.
    pub fn of(range: TimeRange, span: TimeSpan, zone: TimeZone) -> Self {
        let is_it = |(seconds, _): &(u64, &str)| range == TimeRange::last(*seconds);
        if let Some((seconds, _)) = LASTS.iter().find(|last| is_it(last)) {
            return Self::Last(*seconds);
        }
        // A stretch that moves with now says its ends each second: only what stays is written in full.
        Self::Other(match range.to {
            TimePoint::Ago(0) => format!("From {}", range.from),
            _ => format!("{} – {}", zone.time_of_day(span.from), zone.time_of_day(span.until)),
        })
    }
}

/// That nothing is known of the beginning of `span`.
pub fn known_from(cluster: &Cluster, span: TimeSpan, zone: TimeZone) -> Option<String> {
    let first = cluster.workers().iter().map(|worker| worker.first_ms).min();
    let first = first.filter(|first| *first > span.from)?;
    Some(format!(", nothing known before {}", zone.time_of_day(first)))
}

/// The part of `span` that a drag from one place to another chooses, shares of its width; `None`: it is a click.
pub fn dragged(span: TimeSpan, (from, to): (f64, f64)) -> Option<TimeSpan> {
    ((from - to).abs() >= LEAST_DRAG).then(|| span.part(from, to))
}

/// The moment that a fragment of the address names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestedMoment {
    /// None.
    Present,
    /// A moment.
    At(Millis),
    /// Not a moment: what is wrong.
    Invalid(String),
}

impl RequestedMoment {
    /// Key of the moment in the fragment: what the server need not know.
    const KEY: &str = "#t=";

    /// As the fragment says.
    pub fn of(fragment: &str) -> Self {
        let Some(text) = fragment.strip_prefix(Self::KEY) else { return Self::Present };
        match text.parse().ok().filter(|at| *at > 0) {
            Some(at) => Self::At(Millis(at)),
            None => Self::Invalid(format!(
                "t={text} in the address is invalid: a moment is Unix milliseconds; the present is shown"
            )),
        }
    }

    /// The fragment of a moment; empty: the present (0).
    pub fn fragment(at: u64) -> String {
        if at == 0 { String::new() } else { format!("{}{at}", Self::KEY) }
    }
}
