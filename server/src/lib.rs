//! The server: listens to a Dynamo deployment, folds what it receives into one state and serves it to browsers.
//!
//! ```text
//! source → (bounded queue) → hub: decode, number, fold, log, encode once → broadcast → each viewer's socket
//!                              ↑ readers (API, metrics, new viewers) send queries
//! ```
//! `hub` is the only writer of the state. `source` knows where messages come from and nothing of the state; `http`
//! knows viewers and nothing of sources. `cli` puts the parts together.
#![forbid(unsafe_code)]

mod baselines;
pub mod cli;
pub mod config;
mod evidence;
mod fleet;
pub mod http;
pub mod hub;
mod logging;
mod random;
mod recording;
pub mod shutdown;
pub mod source;
pub mod stage;
mod time;
