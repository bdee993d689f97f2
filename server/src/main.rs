//! The binary: reads its arguments, runs a command, turns the outcome into an exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use radixscope_server::{cli, config::Cli};

/// Why: beside the dependency in Cargo.toml.
#[cfg(all(feature = "jemalloc", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match Cli::read() {
        Ok(cli) => cli::run(cli),
        Err(error) => cli::usage_error(&error),
    }
}
