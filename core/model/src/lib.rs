//! What every part shares: ids with their units, records and their binary form, frames, numbers as text.
//!
//! Must not know Dynamo's wire, the state, or how anything is shown.
#![forbid(unsafe_code)]

pub mod formula;
pub mod frame;
pub mod id;
pub mod micros;
pub mod number_format;
pub mod percentile;
pub mod range;
pub mod record;
pub mod units;
