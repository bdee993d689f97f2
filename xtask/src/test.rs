//! `cargo xtask test`: everything that must pass before a change is taken.

use std::{
    env,
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use nix::sys::statvfs::statvfs;

use crate::{
    check, page,
    process::stopping,
    setup::{self, Purpose},
    steps::{Step, Steps, spoken},
    workspace::Workspace,
};

/// One selection for building and for testing: cargo chooses a dependency's features by what is built together, and
/// another choice would build it twice.
pub(crate) const SELECTION: [&str; 2] = ["--locked", "--workspace"];

/// A test that takes too long for every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TestPart {
    /// Unit and property tests, decoders, and one walk through the page; about 3 min
    Quick,
    /// Every recorded deployment at its own pace, with a table of what is found in it and when; about 5 min
    Findings,
    /// Every fault of the simulator with ten seeds, in virtual time: whether its cause is named first and its fix is one to copy;
    /// about 5 min. `-- --seeds N FAULT …` for fewer
    Faults,
    /// Every decision of every recording against the router's own words, with logs and messages late by up to 500 ms; about
    /// 5 min. `-- --sockets`: through real sockets at the recorded pace
    Decisions,
    /// Every topology and fault compared figure by figure between page, API and exports; every text at nine sizes in three
    /// deployments; about 2 min
    Slow,
    /// Kubernetes: a real API server with TLS and RBAC, from the folder in `KUBEBUILDER_ASSETS`; about 2 min
    Kubernetes,
    /// The queries of docs/duckdb.md, by DuckDB on recordings in a real S3 server; and what storing a recording costs; about 2 min
    Duckdb,
    /// What every browser must show, and that every text can be read, in Firefox and in WebKit; about 5 min
    Browsers,
}

/// Browsers other than Chromium, as the tests call them.
const OTHER_BROWSERS: [(&str, &str); 2] = [("firefox", "Firefox"), ("webkit", "WebKit")];

impl TestPart {
    /// Whether `radixscope` itself is started.
    fn needs_server(self, args: &[String]) -> bool {
        self == Self::Findings || args.iter().any(|arg| arg == "--sockets")
    }
}

/// Runs a test that is not in [`run`], `args` given to its program.
///
/// # Errors
/// When something cannot be set up or built, or the test fails.
pub(crate) fn run_part(workspace: &Workspace, part: TestPart, args: &[String]) -> Result<ExitCode> {
    let program = match part {
        TestPart::Quick | TestPart::Slow => return run_tier(workspace, part),
        TestPart::Kubernetes => return run_kubernetes(workspace),
        TestPart::Duckdb => return run_duckdb(workspace),
        TestPart::Browsers => return run_in_browsers(workspace, args),
        TestPart::Faults => return run_faults(workspace, args),
        TestPart::Findings => "findings",
        TestPart::Decisions => "decisions",
    };
    let mut table = Vec::new();
    let mut test = |step: &mut Step<'_>| {
        let mut command =
            with_programs(workspace.command(workspace.target.join("debug").join(program)), workspace);
        command.args(args);
        step.run_with(command, |line| {
            table.push(line.to_owned());
            true
        })
    };
    let tested = if part.needs_server(args) {
        let missing = setup::missing(workspace, Purpose::Test);
        let mut steps = Steps::new(workspace, missing.len() + 3);
        setup::meet(&mut steps, &missing)?;
        page::build(&mut steps, workspace, page::Build::Quick)?;
        build(&mut steps, workspace)?;
        steps.step("Recordings at their own pace", "about 5 min", &mut test)
    } else {
        let mut steps = Steps::new(workspace, 2);
        steps.step("The replay", "about 3 min, seconds when little changed", |step| {
            let mut command = workspace.cargo(["build", "--bin", program]);
            command.args(SELECTION);
            step.run(command)
        })?;
        steps.step("Recordings", "about 5 min", &mut test)
    };
    println!("\n{}\n", table.join("\n"));
    tested.map(|()| ExitCode::SUCCESS)
}

/// An example of `core/export`: it needs no server, no browser and no socket.
fn run_faults(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    let mut steps = Steps::new(workspace, 2);
    steps.step("The simulator and the checks", "about 1 min, seconds when little changed", |step| {
        let mut command = workspace.cargo(["build", "--package", "radixscope-export", "--example", "faults"]);
        command.arg("--locked");
        step.run(command)
    })?;
    let mut table = Vec::new();
    let tested = steps.step("Faults", "about 5 min", |step| {
        let mut command = workspace.command(workspace.target.join("debug/examples/faults"));
        command.args(args);
        step.run_with(command, |line| {
            table.push(line.to_owned());
            true
        })
    });
    println!("\n{}\n", table.join("\n"));
    tested.map(|()| ExitCode::SUCCESS)
}

/// The tests that every browser must pass.
const IN_EVERY_BROWSER: [&str; 2] = ["browser_every::", "browser_layout::"];

/// Those tests, or those that `args` name, in the browsers that [`run`] does not start; each failure counts, none ends the rest.
fn run_in_browsers(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Browsers);
    let mut steps = Steps::new(workspace, missing.len() + 2 + OTHER_BROWSERS.len());
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Small)?;
    build(&mut steps, workspace)?;
    let mut failed = Vec::new();
    for (browser, name) in OTHER_BROWSERS {
        let tested = steps.step(name, "about 2 min", |step| {
            let mut command = command(workspace, 1);
            command.env("RADIXSCOPE_TEST_BROWSER", browser);
            if args.is_empty() {
                command.args(IN_EVERY_BROWSER);
            } else {
                command.args(args);
            }
            step.run_with(command, |_| true)
        });
        if stopping() {
            return Ok(ExitCode::FAILURE);
        }
        if let Err(error) = tested {
            println!("{name}: {error:#}");
            failed.push(name);
        }
    }
    println!("\n{}\n", steps.summary());
    if !failed.is_empty() {
        bail!("not every test passed in {}", failed.join(" and in "));
    }
    println!("Every test passed in {}", OTHER_BROWSERS.map(|(_, name)| name).join(" and in "));
    Ok(ExitCode::SUCCESS)
}

/// What a developer runs before each commit: unit tests, decoders, codecs, snapshots, properties, and a walk through the page.
const QUICK: &str = "kind(lib) | kind(bin) \
    | binary(/^(decoders|plain_events|frames|cluster_snapshot|routing_properties|resume)$/) \
    | (binary(end_to_end) & test(/^browser_page::/))";

/// Sets up, builds, and runs [`QUICK`] or what takes too long for [`run`], which is marked as ignored.
fn run_tier(workspace: &Workspace, part: TestPart) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    build(&mut steps, workspace)?;
    let (usual, arguments) = match part {
        TestPart::Slow => (
            "about 3 min",
            &[
                "--run-ignored",
                "only",
                "--filterset",
                "not binary(kubernetes_api) & not test(/^object_store::/)",
            ][..],
        ),
        _ => ("about 2 min", &["--filterset", QUICK][..]),
    };
    test(&mut steps, usual, arguments)
}

/// Against an API server that is installed elsewhere, as the tests of controllers do.
fn run_kubernetes(workspace: &Workspace) -> Result<ExitCode> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(std::path::PathBuf::from);
    let has_all = |folder: &std::path::PathBuf| {
        ["kube-apiserver", "etcd"].iter().all(|name| folder.join(name).is_file())
    };
    if !assets.as_ref().is_some_and(has_all) {
        bail!(
            "KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd: export KUBEBUILDER_ASSETS=$(setup-envtest use -p path)"
        );
    }
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + 2);
    setup::meet(&mut steps, &missing)?;
    build(&mut steps, workspace)?;
    test(&mut steps, "about 2 min", &["--run-ignored", "only", "--filterset", "binary(kubernetes_api)"])
}

/// What queries in documents say of recordings in object storage, with DuckDB from PyPI.
fn run_duckdb(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Duckdb);
    let mut steps = Steps::new(workspace, missing.len() + 3);
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    build(&mut steps, workspace)?;
    let filter = "binary(end_to_end) & test(/^object_store::/)";
    test(&mut steps, "about 2 min", &["--run-ignored", "only", "--filterset", filter])
}

/// Sets up, checks, builds and tests.
///
/// # Errors
/// When something cannot be set up, a check finds something, or a test fails.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + check::FORM_STEPS + 3);
    setup::meet(&mut steps, &missing)?;
    check::form(&mut steps, workspace)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    build(&mut steps, workspace)?;
    test(&mut steps, "about 11 min on two cores", &[])
}

/// What the tests that run beside each other write at most: profiles of browsers, stores of servers, recordings.
const DISK_SPACE: u64 = 3 << 30;

/// Fails where `folder` cannot take [`DISK_SPACE`] more: on a full disk tabs crash and servers do not start, and neither says why.
fn require_disk_space(folder: &Path) -> Result<()> {
    let disk = statvfs(folder).with_context(|| format!("{} has no file system", folder.display()))?;
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if free < DISK_SPACE {
        let megabytes = |bytes: u64| bytes / 1_000_000;
        bail!(
            "{} MB are free in {}, and the tests need {} MB: remove what is not needed, such as target/debug/incremental",
            megabytes(free),
            folder.display(),
            megabytes(DISK_SPACE)
        );
    }
    Ok(())
}

/// Runs tests as the last step, and says what came of them.
fn test(steps: &mut Steps<'_>, usual: &str, arguments: &[&str]) -> Result<ExitCode> {
    require_disk_space(&env::temp_dir())?;
    let mut counts = Counts::default();
    let tested = steps.step("Tests", usual, |step| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut command = command(step.workspace, UNITS_PER_CORE * cores);
        command.args(arguments);
        step.run_with(command, |line| {
            counts.add(line);
            true
        })
    });
    println!("\n{}\n{}{}", steps.summary(), counts.slowest(), counts.flaky());
    // A form that test reporters of any language read.
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    if stopping() {
        return Ok(ExitCode::FAILURE);
    }
    tested?;
    if counts.passed == 0 {
        bail!("no test ran");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the server and every test.
///
/// # Errors
/// When the compiler says so.
pub(crate) fn build(steps: &mut Steps<'_>, workspace: &Workspace) -> Result<()> {
    steps.step("The server and the tests", "about 3 min on two cores, seconds when little changed", |step| {
        let mut command = workspace.cargo(["build", "--bins", "--tests"]);
        command.args(SELECTION);
        step.run(command)
    })
}

/// What runs beside each other, in the units of `.config/nextest.toml`, which says how many each kind of test takes.
const UNITS_PER_CORE: usize = 5;

/// nextest with so many units at a time, and with the paths of the programs that tests start.
fn command(workspace: &Workspace, units: usize) -> Command {
    let mut command = workspace.cargo(["nextest", "run", "--tests", "--show-progress=none"]);
    command.args(SELECTION).args(["--test-threads", &units.to_string()]);
    with_programs(command, workspace)
}

/// Adds the paths of the server and of NATS to a command.
pub(crate) fn with_programs(mut command: Command, workspace: &Workspace) -> Command {
    command
        .env("RADIXSCOPE_BIN", workspace.target.join("debug/radixscope"))
        .env("RADIXSCOPE_NATS_SERVER", workspace.tools_bin().join("nats-server"))
        .env("RADIXSCOPE_ETCD", workspace.tools_bin().join("etcd"))
        .env("RADIXSCOPE_WEED", workspace.tools_bin().join("weed"));
    command
}

/// Tests named at the end, by the time that they took.
const SLOWEST: usize = 10;

/// What nextest says of the tests, line by line.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
    times: Vec<(Duration, String)>,
    /// Tests that failed once and passed when they were tried again (`.config/nextest.toml`).
    flaky: Vec<String>,
}

impl Counts {
    /// Reads a line, which may say how a test or all of them ended.
    fn add(&mut self, line: &str) {
        // `    PASS [   0.012s] crate::program module::test` and
        // `     Summary [   1.2s] 3 tests run: 1 passed, 1 failed, 1 timed out, 4 skipped`.
        let Some((status, rest)) = line.trim_start().split_once(" [") else { return };
        let Some((seconds, rest)) = rest.split_once("s] ") else { return };
        let Ok(seconds) = seconds.trim().parse::<f64>() else { return };
        match status {
            "Summary" => {
                let Some((_, outcomes)) = rest.split_once(" run: ") else { return };
                for outcome in outcomes.split(", ") {
                    let mut parts = outcome.split(' ');
                    let number = parts.next().and_then(|number| number.parse::<usize>().ok());
                    match (number, parts.next()) {
                        (Some(number), Some("passed")) => self.passed += number,
                        (Some(number), Some("skipped")) => self.skipped += number,
                        // The last is one that could not be started.
                        (Some(number), Some("failed" | "timed" | "exec")) => self.failed += number,
                        // How many of the passed were slow.
                        _ => {}
                    }
                }
            }
            // Those that failed are listed again below the summary.
            "PASS" | "FAIL" | "TIMEOUT" | "LEAK" if self.passed + self.failed == 0 => {
                self.times.push((Duration::from_secs_f64(seconds), rest.to_owned()));
            }
            _ if status.starts_with("FLAKY") => self.flaky.push(rest.to_owned()),
            _ => {}
        }
    }

    /// The tests that passed only when they were tried again, one a line; nothing without any.
    fn flaky(&self) -> String {
        if self.flaky.is_empty() {
            return String::new();
        }
        let lines = self.flaky.iter().map(|name| format!("  {name}\n"));
        format!(
            "Passed only when tried again, so something is wrong with them:\n{}",
            lines.collect::<String>()
        )
    }

    /// The tests that took the longest, one a line.
    fn slowest(&mut self) -> String {
        self.times.sort_unstable_by(|a, b| b.cmp(a));
        let lines =
            self.times.iter().take(SLOWEST).map(|(took, name)| format!("  {:>8}  {name}\n", spoken(*took)));
        format!("The slowest tests:\n{}", lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn the_summary_and_the_slowest_tests_are_read() {
        let mut counts = Counts::default();
        for line in [
            "        PASS [   0.012s] radixscope-state tree::a_block_is_stored",
            "        FAIL [  12.500s] radixscope-tests::end_to_end browser_page::it_opens",
            "    Starting 5 tests across 2 binaries (2 tests skipped)",
            "     Summary [  12.7s] 5 tests run: 3 passed (1 slow, 1 leaky), 1 failed, 1 timed out, 2 skipped",
            "        FAIL [  12.500s] radixscope-tests::end_to_end browser_page::it_opens",
            "   FLAKY 2/2 [   1.500s] radixscope-tests::end_to_end viewers::it_resumes",
        ] {
            counts.add(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.skipped), (3, 2, 2));
        assert!(counts.flaky().ends_with("\n  radixscope-tests::end_to_end viewers::it_resumes\n"));
        let slowest = counts.slowest();
        let names: Vec<&str> = slowest.lines().skip(1).filter_map(|line| line.split("s  ").nth(1)).collect();
        assert_eq!(
            names,
            [
                "radixscope-tests::end_to_end browser_page::it_opens",
                "radixscope-state tree::a_block_is_stored"
            ]
        );
    }
}
