//! Live traffic beside baselines at the same concurrency.

mod baselines;
mod curves;
mod table;

use radixscope_insight::baseline::Figure;
use radixscope_insight::recent_window::RecentFigures;
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_state::cluster::Cluster;

pub use baselines::{
    BaselineRow, BaselineSet, ImportFiles, ImportKind, Role, can_save, name_of, name_to_save, refused,
    router_named,
};
pub use curves::{CurveLine, Curves, FIGURE_KEY, FigureChoice, HIDDEN_KEY};
pub use table::FigureRow;

use crate::format;
use crate::time_zone::TimeZone;
use crate::url::Address;

/// Key of the window's length in the address.
pub const WINDOW_KEY: &str = "cmp.window";
/// Where no request is known.
pub const EMPTY: &str = "No request was reported in this window: `--prometheus frontend=http://HOST:8000/metrics` brings \
                         latencies, lengths and throughput; logs of 1.5 and later or request traces bring each request.";

/// A window that live figures are taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowChoice {
    /// Value in the address.
    pub key: &'static str,
    /// Name on screen.
    pub name: &'static str,
    /// Length in milliseconds.
    pub ms: u64,
}

impl WindowChoice {
    /// Both.
    pub const ALL: [Self; 2] =
        [Self { key: "60s", name: "60 s", ms: 60_000 }, Self { key: "5min", name: "5 min", ms: 300_000 }];

    /// As the address says, else the first.
    pub fn of(address: &Address) -> Self {
        let key = address.other(WINDOW_KEY);
        let [first, _] = Self::ALL;
        Self::ALL.into_iter().find(|window| key.as_deref() == Some(window.key)).unwrap_or(first)
    }
}

/// Whether live traffic is simulated.
pub fn is_simulated(cluster: &Cluster) -> bool {
    cluster.sources().iter().any(|source| source.kind == SourceKind::Simulator)
}

/// What stands beside the heading: of what the live figures are, and at which concurrency. Figures that are not current are as of a
/// time.
pub fn subtitle(
    live: &RecentFigures,
    window: WindowChoice,
    is_simulated: bool,
    as_of: Option<Millis>,
    zone: TimeZone,
) -> String {
    let what = if is_simulated { "Live: simulated cluster" } else { "Live" };
    let window = match as_of {
        None => format!("last {}", window.name),
        Some(at) => format!("{} before {}, not current", window.name, zone.time_of_day(at)),
    };
    match live.concurrency {
        Some((mean, how)) => format!("{what}, {window}, concurrency {} ({}).", whole(mean), how.label()),
        None => format!("{what}, {window}, concurrency unknown."),
    }
}

/// Whether no figure of live traffic is known.
pub fn is_empty(live: &RecentFigures) -> bool {
    Figure::ALL.iter().all(|&figure| live.window.figures.get(figure).is_none())
}

/// A mean of requests, to the nearest whole one; below ten with a decimal.
fn whole(mean: f64) -> String {
    if mean < 10.0 { format!("{mean:.1}") } else { format::count(mean.round() as u64) }
}
