//! `cargo xtask test`: what must pass before a change is taken, and in parts of their own what is slow or exhaustive.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use nix::sys::statvfs::statvfs;

use crate::{
    check,
    components::{self, Tested},
    page,
    process::{RunningProcess, stopping},
    setup::{self, Purpose},
    steps::{Steps, spoken},
    workspace::Workspace,
};

/// What is built and tested, chosen alike for both: cargo chooses a dependency's features by what is built together, and another choice
/// would build it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// What CI runs
    Default,
    /// Every package, the server with every feature
    All,
}

impl Tier {
    /// Arguments of cargo that select the packages and their features.
    pub(crate) const fn selection(self) -> &'static [&'static str] {
        match self {
            Self::Default => &[
                "--locked",
                "--workspace",
                "--exclude=radixscope-bench",
                "--exclude=radixscope-exhaustive",
                "--exclude=radixscope-oracle",
                "--exclude=radixscope-recount",
                "--exclude=radixscope-tokenizer",
            ],
            Self::All => {
                &["--locked", "--workspace", "--features=radixscope/full,radixscope-tests/webdriver"]
            }
        }
    }

    /// The profile of nextest (`.config/nextest.toml`).
    const fn profile(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::All => "all",
        }
    }

    const fn page(self) -> page::Build {
        match self {
            Self::Default => page::Build::Quick,
            Self::All => page::Build::Complete,
        }
    }
}

/// What `test` alone leaves out because it is slow, exhaustive, or needs more than the tests of every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TestPart {
    /// Every part below, and what `test` alone runs, with every feature of the server; about 90 min on two cores
    All,
    /// Documentation, lints with every feature, lints of the fuzz targets
    Lints,
    /// All tests with every feature: hostile inputs, real-time replays, every layout, Prometheus, Grafana, object stores, Dynamo's own
    /// router as the oracle, recordings recounted
    Exhaustive,
    /// Every recorded deployment at its own pace, with a table of what is found in it and when; about 5 min
    Findings,
    /// Every fault of the simulator with ten seeds, in virtual time: whether its cause is named first and its fix is one to copy;
    /// about 5 min. `-- --seeds N FAULT …` for fewer
    Faults,
    /// Every decision of every recording against the router's own words, with logs and messages late by up to 500 ms; about
    /// 5 min. `-- --sockets`: through real sockets at the recorded pace
    Decisions,
    /// The queries of docs/duckdb.md, by DuckDB on recordings in a real S3 server; and what storing a recording costs; about 2 min
    Duckdb,
    /// What every browser must show, and that every text can be read, in Firefox and in WebKit; about 5 min
    Browsers,
    /// Kubernetes: a real API server with TLS and RBAC, from the folder in `KUBEBUILDER_ASSETS`; about 2 min
    Kubernetes,
}

impl TestPart {
    /// The parts of [`TestPart::All`], the soonest first.
    const PARTS: [Self; 8] = [
        Self::Lints,
        Self::Exhaustive,
        Self::Faults,
        Self::Findings,
        Self::Decisions,
        Self::Duckdb,
        Self::Browsers,
        Self::Kubernetes,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Lints => "lints",
            Self::Exhaustive => "exhaustive",
            Self::Findings => "findings",
            Self::Faults => "faults",
            Self::Decisions => "decisions",
            Self::Duckdb => "duckdb",
            Self::Browsers => "browsers",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// The command `test` without a part: sets up, builds and tests.
///
/// # Errors
/// When something cannot be set up or built, or a test fails.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let mut steps = prepare(workspace, Tier::Default, Purpose::Test, 2)?;
    let components = components::test(&mut steps)?;
    test_after(components, &mut steps, Tier::Default, "about 6 min on two cores", &[])?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a part that [`run`] leaves out, `args` given to its program.
///
/// # Errors
/// When something cannot be set up or built, or a test fails.
pub(crate) fn run_part(workspace: &Workspace, part: TestPart, args: &[String]) -> Result<ExitCode> {
    match part {
        TestPart::All => return run_all(workspace),
        TestPart::Lints => check::exhaustive(workspace)?,
        TestPart::Exhaustive => {
            let mut steps = prepare(workspace, Tier::All, Purpose::TestAll, 2)?;
            let components = components::test(&mut steps)?;
            let filter = ["--filterset", EXHAUSTIVE];
            test_after(components, &mut steps, Tier::All, "about 30 min on two cores", &filter)?;
        }
        TestPart::Findings => run_program(workspace, "findings", args)?,
        TestPart::Decisions => run_program(workspace, "decisions", args)?,
        TestPart::Faults => run_faults(workspace, args)?,
        TestPart::Duckdb => {
            let mut steps = prepare(workspace, Tier::All, Purpose::Duckdb, 1)?;
            test(&mut steps, Tier::All, "about 2 min", &["--filterset", DUCKDB])?;
        }
        TestPart::Browsers => run_in_browsers(workspace, args)?,
        TestPart::Kubernetes => {
            if kubernetes_assets().is_none() {
                bail!("{NO_ASSETS}");
            }
            let mut steps = prepare(workspace, Tier::All, Purpose::TestAll, 1)?;
            test(&mut steps, Tier::All, "about 2 min", &["--filterset", KUBERNETES])?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Each part; each failure counts, none ends the rest.
fn run_all(workspace: &Workspace) -> Result<ExitCode> {
    let mut outcomes = Vec::new();
    for part in TestPart::PARTS {
        println!("\n── {}", part.as_str());
        let outcome = match part {
            TestPart::Kubernetes if kubernetes_assets().is_none() => {
                println!("{NO_ASSETS}");
                "left out"
            }
            _ => match run_part(workspace, part, &[]) {
                Ok(_) => "passed",
                Err(_) if stopping() => return Ok(ExitCode::FAILURE),
                Err(error) => {
                    println!("{error:#}");
                    "failed"
                }
            },
        };
        outcomes.push((part, outcome));
    }
    println!();
    for (part, outcome) in &outcomes {
        println!("  {:12}{outcome}", part.as_str());
    }
    match outcomes.iter().any(|(_, outcome)| *outcome == "failed") {
        true => bail!("not every part passed"),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Everything but what needs more than [`Purpose::TestAll`] sets up, or other browsers.
const EXHAUSTIVE: &str =
    "not (package(radixscope-exhaustive) & (test(/^duckdb::/) | test(/^kubernetes_api::/)))";
/// The queries of the documentation.
const DUCKDB: &str = "package(radixscope-exhaustive) & test(/^duckdb::/)";
/// Against an API server that is installed elsewhere, as the tests of controllers do.
const KUBERNETES: &str = "package(radixscope-exhaustive) & test(/^kubernetes_api::/)";
const NO_ASSETS: &str = "KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd: \
    export KUBEBUILDER_ASSETS=$(setup-envtest use -p path)";

/// The folder with Kubernetes' API server, if the environment names one.
fn kubernetes_assets() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("KUBEBUILDER_ASSETS")?);
    ["kube-apiserver", "etcd"].iter().all(|name| folder.join(name).is_file()).then_some(folder)
}

/// Sets up, builds the page and everything that is tested; `more` steps follow.
fn prepare<'a>(workspace: &'a Workspace, tier: Tier, purpose: Purpose, more: usize) -> Result<Steps<'a>> {
    let missing = setup::missing(workspace, purpose);
    let mut steps = Steps::new(workspace, missing.len() + 2 + more);
    setup::meet(&mut steps, &missing)?;
    // The page's largest crate keeps one core busy for a minute.
    let beside = match page::is_built(workspace, tier.page())? {
        true => None,
        false => Some(RunningProcess::start_beside(&build_command(workspace, tier))?),
    };
    page::build_among(&mut steps, workspace, tier.page(), tier.selection())?;
    if let Some(mut build) = beside {
        // Should it have failed, the next step fails too and shows why.
        let _ = build.wait();
    }
    build(&mut steps, workspace, tier)?;
    Ok(steps)
}

/// Builds the server and every test.
///
/// # Errors
/// When the compiler says so.
pub(crate) fn build(steps: &mut Steps<'_>, workspace: &Workspace, tier: Tier) -> Result<()> {
    steps.step("The server and the tests", "about 5 min on two cores, seconds when little changed", |step| {
        step.run(build_command(workspace, tier))
    })
}

fn build_command(workspace: &Workspace, tier: Tier) -> Command {
    let mut command = workspace.cargo(["build", "--bins", "--tests"]);
    command.args(tier.selection());
    command
}

/// Prints the table of a program that replays recordings.
fn run_program(workspace: &Workspace, program: &str, args: &[String]) -> Result<()> {
    let mut steps = prepare(workspace, Tier::All, Purpose::TestAll, 1)?;
    let mut command = workspace.command(workspace.target.join("debug").join(program));
    command.args(args);
    let command = with_programs(command, workspace);
    print_table(&mut steps, "Recordings", command)
}

/// An example of `core/export`: it needs no server, no browser and no socket.
fn run_faults(workspace: &Workspace, args: &[String]) -> Result<()> {
    let mut steps = Steps::new(workspace, 2);
    steps.step("The simulator and the checks", "about 1 min, seconds when little changed", |step| {
        let mut command = workspace.cargo(["build", "--package", "radixscope-export", "--example", "faults"]);
        command.arg("--locked");
        step.run(command)
    })?;
    let mut command = workspace.command(workspace.target.join("debug/examples/faults"));
    command.args(args);
    print_table(&mut steps, "Faults", command)
}

/// Runs a program as the last step, and prints what it printed as the result.
fn print_table(steps: &mut Steps<'_>, name: &str, command: Command) -> Result<()> {
    let mut table = Vec::new();
    let tested = steps.step(name, "about 5 min", |step| {
        step.run_with(command, |line| {
            table.push(line.to_owned());
            true
        })
    });
    println!("\n{}\n", table.join("\n"));
    tested
}

/// Browsers other than Chromium, as the tests call them.
const OTHER_BROWSERS: [(&str, &str); 2] = [("firefox", "Firefox"), ("webkit", "WebKit")];

/// The tests that every browser must pass.
const IN_EVERY_BROWSER: &str = "other_browsers::";

/// Those tests, or those that `args` name, in the browsers that other tests do not start; each failure counts, none ends the rest.
fn run_in_browsers(workspace: &Workspace, args: &[String]) -> Result<()> {
    let missing = setup::missing(workspace, Purpose::Browsers);
    let mut steps = Steps::new(workspace, missing.len() + 2 + OTHER_BROWSERS.len());
    setup::meet(&mut steps, &missing)?;
    page::build_among(&mut steps, workspace, page::Build::Small, Tier::All.selection())?;
    build(&mut steps, workspace, Tier::All)?;
    let mut failed = Vec::new();
    for (browser, name) in OTHER_BROWSERS {
        let tested = steps.step(name, "about 2 min", |step| {
            let mut command = nextest(workspace, Tier::All, 1);
            command.env("RADIXSCOPE_TEST_BROWSER", browser);
            if args.is_empty() {
                command.arg(IN_EVERY_BROWSER);
            } else {
                command.args(args);
            }
            step.run_with(command, |_| true)
        });
        if stopping() {
            bail!("interrupted");
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
    Ok(())
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
fn test(steps: &mut Steps<'_>, tier: Tier, usual: &str, arguments: &[&str]) -> Result<()> {
    test_after(Tested::default(), steps, tier, usual, arguments)
}

/// The same, and what came of the tests that an earlier step ran.
fn test_after(
    before: Tested,
    steps: &mut Steps<'_>,
    tier: Tier,
    usual: &str,
    arguments: &[&str],
) -> Result<()> {
    require_disk_space(&env::temp_dir())?;
    let mut counts = Counts::default();
    let tested = steps.step("Tests", usual, |step| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut tests = nextest(step.workspace, tier, UNITS_PER_CORE * cores);
        tests.args(arguments);
        step.run_with(with_shared(&tests, step.workspace), |line| {
            counts.add(line);
            true
        })
    });
    println!("\n{}\n{}", steps.summary(), counts.slowest());
    // A form that test reporters of any language read.
    println!(
        "{} passed, {} failed, {} skipped",
        counts.passed + before.passed,
        counts.failed + before.failed,
        counts.skipped + before.skipped
    );
    tested?;
    if counts.passed == 0 {
        bail!("no test ran");
    }
    if before.failed > 0 {
        bail!("not every component passed");
    }
    Ok(())
}

/// What runs beside each other, in the units of `.config/nextest.toml`, which says how many each kind of test takes.
const UNITS_PER_CORE: usize = 5;

/// nextest with so many units at a time, and with the paths of the programs that tests start.
fn nextest(workspace: &Workspace, tier: Tier, units: usize) -> Command {
    let mut command = workspace.cargo(["nextest", "run", "--tests", "--show-progress=none"]);
    command.args(["--profile", tier.profile(), "--test-threads", &units.to_string()]);
    command.args(tier.selection());
    with_programs(command, workspace)
}

/// The same command beside one browser and the standing servers that its tests share, which end with it.
fn with_shared(command: &Command, workspace: &Workspace) -> Command {
    let mut shared = workspace.command(workspace.target.join("debug/shared"));
    shared.arg("--").arg(command.get_program()).args(command.get_args());
    for (variable, value) in command.get_envs() {
        shared.env(variable, value.map_or_else(OsString::new, OsString::from));
    }
    shared
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
            _ => {}
        }
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
            "        FAIL [  12.500s] radixscope-tests::it browser_page::it_opens",
            "    Starting 5 tests across 2 binaries (2 tests skipped)",
            "     Summary [  12.7s] 5 tests run: 3 passed (1 slow, 1 leaky), 1 failed, 1 timed out, 2 skipped",
            "        FAIL [  12.500s] radixscope-tests::it browser_page::it_opens",
        ] {
            counts.add(line);
        }
        assert_eq!((counts.passed, counts.failed, counts.skipped), (3, 2, 2));
        let slowest = counts.slowest();
        let names: Vec<&str> = slowest.lines().skip(1).filter_map(|line| line.split("s  ").nth(1)).collect();
        assert_eq!(
            names,
            ["radixscope-tests::it browser_page::it_opens", "radixscope-state tree::a_block_is_stored"]
        );
    }
}
