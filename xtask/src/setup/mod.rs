//! What has to be on the machine before something can be built or tested, and how it gets there.

use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    steps::{Step, Steps},
    workspace::Workspace,
};

mod browser;
mod cargo_tools;
mod other_browsers;
mod pypi;
mod pyzmq;
mod wasm_target;

/// What a person is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// Build the app and the server
    Demo,
    /// Run the tests: also a NATS server, etcd and a browser
    Test,
    /// Everything above
    All,
    /// Run the tests of every browser in Firefox and WebKit too; `all` leaves it out
    Browsers,
    /// Run the fuzz targets
    #[value(skip)]
    Fuzz,
    /// Check form
    #[value(skip)]
    Check,
}

/// One thing that has to be there.
pub(crate) trait Need {
    /// Its name and version.
    fn name(&self) -> String;
    /// How long its installation takes at most times.
    fn usual(&self) -> &'static str;
    /// Whether it is there and of the right version.
    fn is_met(&self, workspace: &Workspace) -> bool;
    /// Installs it; an earlier attempt that was interrupted does no harm.
    fn meet(&self, step: &mut Step<'_>) -> Result<()>;
}

/// What is missing for `purpose`, cheapest to fail first.
///
/// # Errors
/// When `Cargo.lock` does not say which versions are needed.
pub(crate) fn missing(workspace: &Workspace, purpose: Purpose) -> Result<Vec<Box<dyn Need>>> {
    let mut needs: Vec<Box<dyn Need>> = Vec::new();
    match purpose {
        Purpose::Fuzz => needs.push(Box::new(cargo_tools::cargo_fuzz())),
        Purpose::Check => needs.push(Box::new(wasm_target::WasmTarget)),
        Purpose::Demo | Purpose::Test | Purpose::All | Purpose::Browsers => {
            if purpose == Purpose::Browsers {
                needs.push(Box::new(other_browsers::OtherBrowsers));
                needs.push(Box::new(cargo_tools::geckodriver()));
            }
            if purpose != Purpose::Demo {
                needs.push(Box::new(browser::Browser));
                needs.push(Box::new(pypi::NATS));
                needs.push(Box::new(pypi::ETCD));
                needs.push(Box::new(pyzmq::PyZmq));
            }
            needs.push(Box::new(wasm_target::WasmTarget));
            needs.push(Box::new(cargo_tools::wasm_bindgen(workspace)?));
            needs.push(Box::new(cargo_tools::trunk()));
        }
    }
    needs.retain(|need| !need.is_met(workspace));
    Ok(needs)
}

/// Installs what `missing` found, a step each.
///
/// # Errors
/// When one of them cannot be installed.
pub(crate) fn meet(steps: &mut Steps<'_>, missing: &[Box<dyn Need>]) -> Result<()> {
    for need in missing {
        steps.step(&need.name(), need.usual(), |step| need.meet(step))?;
    }
    if missing.is_empty() {
        println!("set-up: nothing to do");
    }
    cargo_tools::remove_builds(steps.workspace)
}

/// The command `setup`.
///
/// # Errors
/// When something cannot be installed.
pub(crate) fn run(workspace: &Workspace, purpose: Purpose) -> Result<ExitCode> {
    let missing = missing(workspace, purpose)?;
    meet(&mut Steps::new(workspace, missing.len()), &missing)?;
    Ok(ExitCode::SUCCESS)
}
