//! What intake makes of recorded, simulated and made-up messages.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod any_pace;
mod client_results;
mod engines;
mod exhaustive;
mod indexer;
mod model_cards;
mod otlp;
mod pickers;
mod publisher;
mod resume;
mod rollouts;
mod routing_properties;
mod scrapes;
mod sim_decoded;
mod sim_faults;
mod simulated;
mod started_with;
