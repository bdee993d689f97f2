//! How long requests take against their targets, how many there are, and how evenly they lie on the workers.

mod load;
mod quantity;
mod spread;
mod target;
mod trend;

use radixscope_model::id::Millis;

pub use load::{AbsentFigures, EventRow, Load, LoadRow};
pub use quantity::{BurnText, QuantityFigures, Reading};
pub use spread::Spread;
pub use target::{ITL, MOST_MS, TTFT, Target, TargetKey};
pub use trend::{TARGET as TREND_TARGET, TrendLines};

use crate::time_zone::TimeZone;

/// What stands beside the heading; figures that are not current are as of a time.
pub fn subtitle(as_of: Option<Millis>, zone: TimeZone) -> String {
    match as_of {
        None => "Last 60 s against the targets, and in-flight imbalance between workers".to_owned(),
        Some(at) => format!("60 s before {}; not current", zone.time_of_day(at)),
    }
}
