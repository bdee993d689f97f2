//! The whole from end to end, as every change is tested (`cargo xtask test`): real servers, recorded traffic, a walk through each
//! panel.
//! What takes longer or needs more is in `tests/exhaustive`.

mod access;
mod captures;
mod check;
mod cli;
mod demo;
mod discovery;
mod fleet;
mod harness;
mod harness_browser;
mod http_contract;
mod late_attach;
mod logs;
mod nats_faults;
mod nats_loss;
mod open_files;
mod recording_input;
mod restart;
mod secrets;
mod stage_target;
mod threat_model;
mod tokens;
mod trace_files;
mod tree_api;
mod tree_dumps;
mod viewers;
mod walks;
mod zmq;
