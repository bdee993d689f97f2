//! The link to the server: the state as one body, then one socket, and how long to wait before the next. A recording that the
//! reader opened takes the server's place (`source`).

pub mod backoff;
pub mod parts;

#[cfg(target_arch = "wasm32")]
pub mod past;
#[cfg(target_arch = "wasm32")]
pub mod response;
#[cfg(target_arch = "wasm32")]
mod snapshot;
#[cfg(target_arch = "wasm32")]
pub mod socket;
#[cfg(target_arch = "wasm32")]
pub mod source;
