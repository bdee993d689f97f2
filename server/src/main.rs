//! The binary: reads its arguments, runs a command, turns the outcome into an exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use radixscope_server::{cli, config::Cli};

fn main() -> ExitCode {
    match Cli::read() {
        Ok(cli) => cli::run(cli),
        Err(error) => cli::usage_error(&error),
    }
}
