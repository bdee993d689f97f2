//! Runs the tests of components (`app/src/view/web_tests`): one program, compiled for the browser as the page is, in one headless
//! Chromium. No server is started.

use anyhow::{Result, bail};

use crate::{
    page::Build,
    process::stopping,
    setup::{WASM, WASM_TEST_RUNNER},
    steps::Steps,
};

/// The most that all of them may take, seconds; a test gives up waiting after five.
const TIMEOUT_S: &str = "120";

/// What came of the tests.
#[derive(Debug, Default)]
pub(crate) struct Tested {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

/// Builds and runs them as one step. Tests that fail are counted; they end nothing else.
///
/// # Errors
/// When they cannot be built or started, or did not come to an end.
pub(crate) fn test(steps: &mut Steps<'_>) -> Result<Tested> {
    let mut tested = None;
    let result = steps.step("Components in a browser", "about 1 min on two cores", |step| {
        let workspace = step.workspace;
        let mut command = workspace.cargo(["test", "--locked", "--package=radixscope-app", "--lib"]);
        command
            .args(["--target", WASM, "--profile", Build::Quick.profile()])
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", workspace.tools_bin().join(WASM_TEST_RUNNER))
            .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", workspace.root.join("app/webdriver.json"))
            // Whatever the environment names: the driver that belongs to the browser.
            .env("CHROMEDRIVER", "chromedriver")
            .env_remove("GECKODRIVER")
            .env_remove("GECKODRIVER_REMOTE")
            .env_remove("CHROMEDRIVER_REMOTE")
            .env("WASM_BINDGEN_TEST_TIMEOUT", TIMEOUT_S);
        step.run_with(command, |line| {
            tested = tested.take().or_else(|| Tested::read(line));
            is_told(line)
        })
    });
    match (result, tested) {
        (Ok(()), Some(tested)) if tested.passed > 0 => Ok(tested),
        (Ok(()), _) => bail!("no test of a component ran"),
        (Err(error), Some(tested)) if tested.failed > 0 && !stopping() => {
            println!("{error:#}");
            Ok(tested)
        }
        (Err(error), _) => Err(error),
    }
}

/// Whether a line belongs on the screen: a failure, or what came of all.
fn is_told(line: &str) -> bool {
    line.starts_with("test result: ") || line.starts_with("test ") && !line.ends_with(" ok")
}

impl Tested {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; 0 filtered out; finished in 1.2s`.
    fn read(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut tested = Self::default();
        for count in counts.split("; ") {
            match count.split_once(' ').map(|(number, what)| (number.parse(), what)) {
                Some((Ok(number), "passed")) => tested.passed = number,
                Some((Ok(number), "failed")) => tested.failed = number,
                Some((Ok(number), "ignored" | "filtered out")) => tested.skipped += number,
                _ => {}
            }
        }
        Some(tested)
    }
}

#[cfg(test)]
mod tests {
    use super::{Tested, is_told};

    #[test]
    fn the_closing_line_is_counted() {
        let line = "test result: FAILED. 40 passed; 2 failed; 1 ignored; 3 filtered out; finished in 4.51s";
        let Tested { passed, failed, skipped } = Tested::read(line).expect("a result");
        assert_eq!((passed, failed, skipped), (40, 2, 4));
        assert!(Tested::read("test view::web_tests::canvas::it_is_painted ... ok").is_none());
    }

    #[test]
    fn failures_and_the_result_are_told() {
        assert!(!is_told("test view::web_tests::canvas::it_is_painted ... ok"));
        assert!(is_told("test view::web_tests::canvas::it_is_painted ... FAIL"));
        assert!(is_told("test result: ok. 40 passed; 0 failed"));
        assert!(!is_told("Waiting for test to finish..."));
    }
}
