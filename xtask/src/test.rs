//! `cargo xtask test`: everything that must pass before a change is taken.

use std::{
    env,
    process::{Command, ExitCode},
    thread,
};

use anyhow::{Result, bail};

use crate::{
    check, page,
    process::stopping,
    setup::{self, Purpose},
    steps::{Step, Steps},
    workspace::Workspace,
};

/// Variable with the number of concurrent tests.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// One selection for building and for testing: cargo chooses a dependency's features by what is built together, and
/// another choice would build it twice.
pub(crate) const SELECTION: [&str; 2] = ["--locked", "--workspace"];

/// A test that takes too long for every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
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
    /// What every browser must show, and that every text can be read, in Firefox and in WebKit; about 5 min
    Browsers,
}

/// Browsers other than Chromium, as the tests call them.
const OTHER_BROWSERS: [(&str, &str); 2] = [("firefox", "Firefox"), ("webkit", "WebKit")];

impl Part {
    /// Its program.
    const fn program(self) -> &'static str {
        match self {
            Self::Quick | Self::Slow => "end_to_end",
            Self::Findings => "findings",
            Self::Faults => "faults",
            Self::Decisions => "decisions",
            Self::Browsers => "browser_every",
        }
    }

    /// Whether `radixscope` itself is started.
    fn needs_server(self, args: &[String]) -> bool {
        self == Self::Findings || args.iter().any(|arg| arg == "--sockets")
    }
}

/// Runs a test that is not in [`run`], `args` given to its program.
///
/// # Errors
/// When something cannot be set up or built, or the test fails.
pub(crate) fn run_part(workspace: &Workspace, part: Part, args: &[String]) -> Result<ExitCode> {
    match part {
        Part::Quick => return run_quick(workspace),
        Part::Slow => return run_slow(workspace),
        Part::Browsers => return run_in_browsers(workspace, args),
        Part::Faults => return run_faults(workspace, args),
        Part::Findings | Part::Decisions => {}
    }
    let program = part.program();
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
            let mut selection = SELECTION.to_vec();
            selection.extend(["--test=end_to_end", "--", "--test-threads=1"]);
            if args.is_empty() {
                selection.extend(IN_EVERY_BROWSER);
            } else {
                selection.extend(args.iter().map(String::as_str));
            }
            let mut command = command(workspace, &selection);
            command.env("RADIXSCOPE_TEST_BROWSER", browser);
            step.run_with(command, |line| line.starts_with("test "))
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

/// Programs of the quick tier beside the unit tests: decoders, codecs, snapshots, properties.
const QUICK_PROGRAMS: [&str; 6] =
    ["decoders", "plain_events", "frames", "cluster_snapshot", "routing_properties", "resume"];
/// The walk through the page in the quick tier.
const QUICK_WALK: &str = "browser_page::";

/// What a developer runs before each commit.
fn run_quick(workspace: &Workspace) -> Result<ExitCode> {
    let mut units = vec!["--lib"];
    units.extend(QUICK_PROGRAMS.iter().flat_map(|program| ["--test", program]));
    let walk = vec!["--test", Part::Quick.program(), "--", QUICK_WALK];
    run_tier(
        workspace,
        &[
            ("Unit and property tests", "about 1 min", units),
            ("A walk through the page", "about 1 min", walk),
        ],
    )
}

/// What takes too long for [`run`]: it is marked as ignored.
fn run_slow(workspace: &Workspace) -> Result<ExitCode> {
    let figures = vec!["--test", "consistency", "--", "--ignored"];
    let pages = vec!["--test", Part::Slow.program(), "--", "--ignored"];
    run_tier(
        workspace,
        &[
            ("Figures of API and exports", "about 1 min", figures),
            ("Figures and texts of the page", "about 2 min", pages),
        ],
    )
}

/// Sets up, builds, and runs some of the tests: a name, a time and cargo's arguments each.
fn run_tier(workspace: &Workspace, tests: &[(&str, &str, Vec<&str>)]) -> Result<ExitCode> {
    let missing = setup::missing(workspace, Purpose::Test);
    let mut steps = Steps::new(workspace, missing.len() + 2 + tests.len());
    setup::meet(&mut steps, &missing)?;
    page::build(&mut steps, workspace, page::Build::Quick)?;
    build(&mut steps, workspace)?;
    let mut counts = Counts::default();
    let mut tested = Ok(());
    for (name, time, arguments) in tests {
        let one = steps.step(name, time, |step| {
            step.run_with(command(workspace, &[&SELECTION, arguments.as_slice()].concat()), |line| {
                counts.add(line);
                false
            })
        });
        tested = tested.and(one);
    }
    println!("\n{}\n", steps.summary());
    if stopping() {
        return Ok(ExitCode::FAILURE);
    }
    tested?;
    println!("Everything passed: {counts}");
    Ok(ExitCode::SUCCESS)
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
    let mut counts = Counts::default();
    let tested = steps.step("Tests", "", |step| {
        step.run_with(command(workspace, &SELECTION), |line| {
            counts.add(line);
            true
        })
    });
    println!("\n{}\n", steps.summary());
    if stopping() {
        return Ok(ExitCode::FAILURE);
    }
    tested?;
    if counts.passed == 0 {
        bail!("no test ran");
    }
    println!("Everything passed: {counts}");
    // A form that test reporters of any language read.
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.ignored);
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

/// Tests at a time, for each core. Most of them wait for servers, browsers, and recordings that go at their own pace: of the
/// time of `late_captures` a tenth is work.
const TESTS_PER_CORE: usize = 2;

/// The tests of `selection`, with the paths of the programs that they start.
pub(crate) fn command(workspace: &Workspace, selection: &[&str]) -> Command {
    let mut command = workspace.cargo(["test", "--no-fail-fast"]);
    command.args(selection);
    if let Ok(cores) = thread::available_parallelism()
        && env::var_os(TEST_THREADS).is_none()
    {
        command.env(TEST_THREADS, (TESTS_PER_CORE * cores.get()).to_string());
    }
    with_programs(command, workspace)
}

/// Adds the paths of the server and of NATS to a command.
fn with_programs(mut command: Command, workspace: &Workspace) -> Command {
    command
        .env("RADIXSCOPE_BIN", workspace.target.join("debug/radixscope"))
        .env("RADIXSCOPE_NATS_SERVER", workspace.tools_bin().join("nats-server"))
        .env("RADIXSCOPE_ETCD", workspace.tools_bin().join("etcd"));
    command
}

/// What the closing lines of the test programs say together.
#[derive(Default)]
struct Counts {
    programs: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    fn add(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        self.programs += 1;
        let words: Vec<&str> = rest.split_whitespace().collect();
        for pair in words.windows(2) {
            let Ok(number) = pair[0].parse::<usize>() else { continue };
            match pair[1] {
                "passed;" => self.passed += number,
                "failed;" => self.failed += number,
                "ignored;" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} tests in {} test programs, {} failed, {} left out",
            self.passed, self.programs, self.failed, self.ignored
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn the_summary_adds_up_every_test_program() {
        let mut counts = Counts::default();
        counts.add(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        counts.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        counts.add("running 5 tests");
        assert_eq!(counts.to_string(), "7 tests in 2 test programs, 1 failed, 1 left out");
    }
}
