//! `radixscope completions` and `radixscope man`, generated from the options of this version.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{EXIT_FAILED, EXIT_USAGE, fail};
use crate::config::Cli;

/// Prints completions for `shell`.
pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "radixscope", &mut text);
    printed(&text)
}

/// Prints the manual page of a command, or of the program.
pub(super) fn page(of: Option<&str>) -> ExitCode {
    let mut all = Cli::command();
    // Completes the names of subcommands: `radixscope-serve`.
    all.build();
    let command = match of {
        None => all,
        Some(name) => match all.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let error = anyhow::anyhow!("there is no command {name:?}; see radixscope --help");
                return fail(&error, EXIT_USAGE);
            }
        },
    };
    let mut text = Vec::new();
    match clap_mangen::Man::new(command).render(&mut text) {
        Ok(()) => printed(&text),
        Err(error) => fail(&error.into(), EXIT_FAILED),
    }
}

fn printed(text: &[u8]) -> ExitCode {
    match io::stdout().write_all(text).and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe: `radixscope man | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error.into(), EXIT_FAILED),
    }
}
