//! The binary: reads its arguments, runs a command, turns the outcome into an exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use radixscope_server::{cli, config::Cli};

fn main() -> ExitCode {
    cli::run(Cli::parse())
}
