//! The decoders against real, damaged and made-up messages.

mod allocation;
mod captures;
mod client_results;
mod engines;
mod hostile;
mod log_hostile;
mod log_shapes;
mod log_versions;
mod logs;
mod messages;
mod other_routers;
mod pickers;
mod plain;
mod shapes;
mod topologies;
mod traces;
mod transcript;
mod tree_queries;
