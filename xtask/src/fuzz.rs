//! `cargo xtask fuzz`: the fuzz targets in `fuzz/`, each for a while, on the stable compiler; then what was found is made small and
//! what was done is put into a table.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    setup::{self, Purpose},
    steps::{Step, Steps, spoken},
    workspace::{Workspace, output},
};

/// Memory of one target; none needs half of it.
const RSS_LIMIT_MIB: u32 = 2048;
/// An input that takes longer is a finding.
const TIMEOUT_S: u32 = 20;

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these targets; every one when none is named
    targets: Vec<String>,
    /// Time for each target, such as 90s, 10m or 1h
    #[arg(long = "for", value_name = "TIME", default_value = "1m")]
    each: Time,
    /// Without AddressSanitizer: two to three times as many inputs a second, for code that has no `unsafe`
    #[arg(long)]
    quick: bool,
}

/// A time as one writes it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Time(Duration);

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected a number of seconds, minutes or hours, such as 90s, 10m or 1h";
        let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => return Err(FORM),
        };
        let number: u32 = number.parse().map_err(|_| FORM)?;
        if number == 0 {
            return Err(FORM);
        }
        Ok(Self(Duration::from_secs(u64::from(number) * seconds)))
    }
}

/// What one target did.
#[derive(Default)]
struct Done {
    target: String,
    executions: u64,
    per_s: u64,
    peak_mib: u64,
    inputs: usize,
}

/// Builds the targets, then runs one after the other.
///
/// # Errors
/// When a target finds an input that makes it fail, or cannot be built.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    if !workspace.root.join("fuzz/Cargo.toml").is_file() {
        bail!("there are no fuzz targets: fuzz/Cargo.toml is missing");
    }
    let missing = setup::missing(workspace, Purpose::Fuzz);
    let mut setting_up = Steps::new(workspace, missing.len());
    setup::meet(&mut setting_up, &missing)?;
    let known = output(&mut cargo_fuzz(workspace, "list"))?;
    let known: Vec<&str> = known.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let Some(unknown) = args.targets.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no target {unknown}; there are {}", known.join(", "));
    }
    let is_chosen = |name: &&str| args.targets.is_empty() || args.targets.iter().any(|chosen| chosen == name);
    let chosen: Vec<&str> = known.iter().copied().filter(is_chosen).collect();
    let mut steps = Steps::new(workspace, chosen.len() + 1);
    let build = workspace.target.join(if args.quick { "fuzz-quick" } else { "fuzz" });
    steps.step("The targets", "about 8 min on two cores, at first", |step| {
        let mut command = cargo_fuzz(workspace, "build");
        command.arg("--target-dir").arg(&build);
        if args.quick {
            command.args(["--sanitizer", "none"]);
        }
        step.run(command)
    })?;
    let mut all = Vec::new();
    for target in chosen {
        let time = args.each.0;
        all.push(steps.step(&format!("fuzz {target}"), &spoken(time), |step| {
            one(step, &program(&build, target)?, target, time)
        })?);
    }
    println!("\n{}", table(&all));
    Ok(ExitCode::SUCCESS)
}

/// Runs a target, then keeps of its inputs the fewest that reach the same code.
fn one(step: &mut Step<'_>, program: &Path, target: &str, time: Duration) -> Result<Done> {
    let fuzz = step.workspace.root.join("fuzz");
    // New inputs are kept in the first folder; the seeds are part of the repository and stay as they are.
    let (corpus, artifacts) = (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).context("making the folder for inputs")?;
    }
    let seeds = Some(fuzz.join("seeds").join(target)).filter(|seeds| seeds.is_dir());
    let mut command = step.workspace.command(program);
    // As set by `cargo fuzz run`, without leak detection, which containers do not permit.
    command
        .env("ASAN_OPTIONS", "detect_odr_violation=0:detect_leaks=0")
        .arg(&corpus)
        .args(&seeds)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={}", time.as_secs()))
        .arg(format!("-rss_limit_mb={RSS_LIMIT_MIB}"))
        .arg(format!("-timeout={TIMEOUT_S}"))
        .arg("-print_final_stats=1");
    let dictionary = fuzz.join("dictionaries").join(target);
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    let mut done = Done { target: target.to_owned(), ..Done::default() };
    step.run_with(command, |line| {
        done.read(line);
        false
    })
    .with_context(|| format!("an input that makes it fail is in fuzz/artifacts/{target}"))?;
    let small = fuzz.join("corpus").join(format!("{target}-small"));
    fs::create_dir_all(&small).context("making the folder for the fewest inputs")?;
    let mut merge = step.workspace.command(program);
    merge
        .env("ASAN_OPTIONS", "detect_odr_violation=0:detect_leaks=0")
        .arg("-merge=1")
        .arg(&small)
        .args(&seeds)
        .arg(&corpus);
    step.run(merge)?;
    fs::remove_dir_all(&corpus).context("removing the inputs that reach nothing more")?;
    fs::rename(&small, &corpus).context("keeping the fewest inputs")?;
    done.inputs = fs::read_dir(&corpus)?.count();
    Ok(done)
}

impl Done {
    /// Takes a line of the target's closing figures.
    fn read(&mut self, line: &str) {
        let Some((name, value)) = line.strip_prefix("stat::").and_then(|line| line.split_once(':')) else {
            return;
        };
        let Ok(value) = value.trim().parse() else { return };
        match name {
            "number_of_executed_units" => self.executions = value,
            "average_exec_per_sec" => self.per_s = value,
            "peak_rss_mb" => self.peak_mib = value,
            _ => {}
        }
    }
}

fn table(all: &[Done]) -> String {
    let mut text = String::from(
        "| Target | Inputs run | a second | Peak memory | Inputs kept |\n|---|---:|---:|---:|---:|\n",
    );
    for Done { target, executions, per_s, peak_mib, inputs } in all {
        text.push_str(&format!("| {target} | {executions} | {per_s} | {peak_mib} MiB | {inputs} |\n"));
    }
    let total: u64 = all.iter().map(|done| done.executions).sum();
    text.push_str(&format!("| together | {total} | | | |\n"));
    text
}

/// Where cargo-fuzz puts a target: below the folder of the one platform that it was built for.
fn program(build: &Path, target: &str) -> Result<PathBuf> {
    let platforms = fs::read_dir(build).context("reading the folder of the targets")?;
    let programs = platforms.flatten().map(|platform| platform.path().join("release").join(target));
    programs.into_iter().find(|program| program.is_file()).with_context(|| format!("{target} was not built"))
}

fn cargo_fuzz(workspace: &Workspace, verb: &str) -> Command {
    let mut command = workspace.cargo(["fuzz", verb]);
    // The sanitizer's flags are for nightly compilers only, although stable ones ship the sanitizer too.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_number_and_a_unit() {
        assert_eq!("10m".parse(), Ok(Time(Duration::from_secs(600))));
        for text in ["", "m", "10", "0s", "-1s", "1 h", "10µ"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_closing_figures_are_read() {
        let mut done = Done::default();
        for line in
            ["stat::number_of_executed_units: 2556436", "stat::peak_rss_mb:              563", "stat::x: y"]
        {
            done.read(line);
        }
        assert_eq!((done.executions, done.peak_mib, done.per_s), (2_556_436, 563, 0));
    }
}
