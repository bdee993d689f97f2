//! Tools that come as crates, built from source into `target/tools`.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use super::Need;
use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// Builds and runs the fuzz targets.
const CARGO_FUZZ: &str = "0.13.2";

/// Lists what a binary is made of.
const CARGO_CYCLONEDX: &str = "0.5.9";

/// Drives Firefox 115 and later.
const GECKODRIVER: &str = "0.37.1";

/// Runs the tests of components in a browser. It understands programs of exactly its own version of wasm-bindgen (`Cargo.toml`).
const WASM_BINDGEN: &str = "0.2.129";

/// A crate with a program in it.
pub(super) struct CargoTool {
    package: &'static str,
    program: &'static str,
    /// What it is asked for its version with.
    ask: &'static [&'static str],
    version: String,
    usual: &'static str,
}

/// Runs the fuzz targets.
pub(super) fn cargo_fuzz() -> CargoTool {
    CargoTool {
        package: "cargo-fuzz",
        program: "cargo-fuzz",
        ask: &["--version"],
        version: CARGO_FUZZ.to_owned(),
        usual: "about 1 min on two cores",
    }
}

/// Lists what a binary is made of.
pub(super) fn cargo_cyclonedx() -> CargoTool {
    CargoTool {
        package: "cargo-cyclonedx",
        program: "cargo-cyclonedx",
        ask: &["cyclonedx", "--version"],
        version: CARGO_CYCLONEDX.to_owned(),
        usual: "about 1 min on two cores",
    }
}

/// Drives Firefox.
pub(super) fn geckodriver() -> CargoTool {
    CargoTool {
        package: "geckodriver",
        program: "geckodriver",
        ask: &["--version"],
        version: GECKODRIVER.to_owned(),
        usual: "about 1 min on two cores",
    }
}

/// Runs tests that were compiled for the browser.
pub(super) fn wasm_test_runner() -> CargoTool {
    CargoTool {
        package: "wasm-bindgen-cli",
        program: WASM_TEST_RUNNER,
        ask: &["--version"],
        version: WASM_BINDGEN.to_owned(),
        usual: "about 1 min on two cores",
    }
}

/// The program that runs tests in a browser.
pub(crate) const WASM_TEST_RUNNER: &str = "wasm-bindgen-test-runner";

impl Need for CargoTool {
    fn name(&self) -> String {
        format!("{} {}, built from source", self.package, self.version)
    }

    fn usual(&self) -> &'static str {
        self.usual
    }

    fn is_met(&self, workspace: &Workspace) -> bool {
        // Asks the program itself: an interrupted installation leaves none, an older one another version.
        workspace.tool(self.program).is_some_and(|program| {
            output(workspace.command(program).args(self.ask))
                .is_ok_and(|output_text| output_text.split_whitespace().nth(1) == Some(&self.version))
        })
    }

    fn meet(&self, step: &mut Step<'_>) -> Result<()> {
        let root = step.workspace.tools();
        // One folder for all of them, which share many crates; kept until every one is there (`remove_builds`).
        let build = builds(step.workspace);
        let mut command = step.workspace.cargo(["install", self.package, "--locked", "--force"]);
        command
            .args(["--version", &self.version, "--no-default-features", "--bin", self.program])
            .arg("--root")
            .arg(&root)
            .arg("--target-dir")
            .arg(&build)
            // Their own profiles ask for slow, thorough builds; ours run for seconds.
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env_remove("RUSTFLAGS");
        step.run(command)?;
        if !self.is_met(step.workspace) {
            bail!("{} does not answer as version {} after its installation", self.program, self.version);
        }
        Ok(())
    }
}

fn builds(workspace: &Workspace) -> PathBuf {
    workspace.tools().join("build")
}

/// Removes what the tools were built from; an interrupted installation goes on from it.
///
/// # Errors
/// When a file cannot be removed.
pub(super) fn remove_builds(workspace: &Workspace) -> Result<()> {
    let builds = builds(workspace);
    if builds.is_dir() {
        fs::remove_dir_all(&builds).with_context(|| format!("removing {}", builds.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::WASM_BINDGEN;

    #[test]
    fn the_runner_of_tests_is_of_the_pages_version_of_wasm_bindgen() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("wasm-bindgen = \"={WASM_BINDGEN}\"")));
    }
}
