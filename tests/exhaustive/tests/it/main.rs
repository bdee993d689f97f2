//! Everything else from end to end (`cargo xtask test all`): what waits, what goes at its recorded pace, what floods, and what needs
//! servers that not every change is tested with. `kubernetes_api` and `duckdb` need something that is not installed by default;
//! `load` runs alone.

mod browser;
mod captures;
mod check;
mod client_results;
mod connections;
mod counterfactual;
mod discovery_bounds;
mod duckdb;
mod findings;
mod fleet;
mod gate;
mod hostile;
mod in_kubernetes;
mod indexer;
mod kubernetes;
mod kubernetes_api;
mod late_captures;
mod load;
mod object_store;
mod operators;
mod other_browsers;
mod other_routers;
mod otlp;
mod recording_disk;
mod recording_redacted;
mod replicas;
mod score;
mod viewers;
mod zmq;
