//! Behaviour of the rules on states that get record by record; recorded traffic is in the crate's `tests`.

mod block_size;
mod completeness;
mod engines;
mod events;
mod routers;
mod sources;
mod stage;
mod wording;
mod workers;

use stage::{Stage, evidence};
