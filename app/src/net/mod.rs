//! The link to the server: one socket, and how long to wait before the next.

pub mod backoff;

#[cfg(target_arch = "wasm32")]
pub mod socket;
