//! The link to the server: the state as one body, then one socket, and how long to wait before the next.

pub mod backoff;
pub mod parts;

#[cfg(target_arch = "wasm32")]
mod snapshot;
#[cfg(target_arch = "wasm32")]
pub mod socket;
