//! Shows a long command as numbered steps: what runs, for how long, what is waited for. Knows no step's content.

use std::{
    fs::{self, File},
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    process::{self, Event},
    workspace::Workspace,
};

/// Lines of a failed program's output shown; the log holds the rest.
const TAIL_LINES: usize = 60;
/// Without a terminal, how often a long step says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How often the terminal's spinner turns.
const SPIN: Duration = Duration::from_millis(120);

/// A sequence of steps known in number beforehand.
pub(crate) struct Steps<'a> {
    pub(crate) workspace: &'a Workspace,
    total: usize,
    done: Vec<(String, Duration)>,
    started: Instant,
    terminal: bool,
}

/// The step that runs now.
pub(crate) struct Step<'a> {
    pub(crate) workspace: &'a Workspace,
    name: String,
    bar: Option<ProgressBar>,
    log: PathBuf,
    started: Instant,
}

impl<'a> Steps<'a> {
    /// `total` steps will be run.
    pub(crate) fn new(workspace: &'a Workspace, total: usize) -> Self {
        let terminal = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
        Self { workspace, total, done: Vec::new(), started: Instant::now(), terminal }
    }

    /// Runs one step. `usual` says how long it takes at most times, or nothing for a short one.
    ///
    /// # Errors
    /// Those of `work`, with the step's name.
    pub(crate) fn step<T>(
        &mut self,
        name: &str,
        usual: &str,
        work: impl FnOnce(&mut Step<'a>) -> Result<T>,
    ) -> Result<T> {
        let heading = format!("[{}/{}] {name}", self.done.len() + 1, self.total);
        let mut step = Step {
            workspace: self.workspace,
            name: name.to_owned(),
            bar: self.terminal.then(|| spinner(&heading, usual)),
            log: self.log_path(name),
            started: Instant::now(),
        };
        // A step may run several programs, one after the other into one log; the last attempt's log goes.
        let _ = fs::remove_file(&step.log);
        if step.bar.is_none() {
            println!("{heading}{}", if usual.is_empty() { String::new() } else { format!(" ({usual})") });
        }
        let result = work(&mut step);
        let took = step.started.elapsed();
        if let Some(bar) = step.bar.take() {
            bar.finish_and_clear();
        }
        let end = match &result {
            Ok(_) => "done in",
            Err(_) if process::stopping() => "stopped after",
            Err(_) => "failed after",
        };
        println!("{heading}: {end} {}", spoken(took));
        self.done.push((name.to_owned(), took));
        result.with_context(|| name.to_owned())
    }

    /// What was done and how long each step took, one a line.
    pub(crate) fn summary(&self) -> String {
        let width = self.done.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, took) in &self.done {
            text.push_str(&format!("  {name:width$}  {}\n", spoken(*took)));
        }
        text.push_str(&format!("  {:width$}  {}", "Together", spoken(self.started.elapsed())));
        text
    }

    fn log_path(&self, name: &str) -> PathBuf {
        let slug: String = name
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        self.workspace.state().join("logs").join(format!("{slug}.log"))
    }
}

impl Step<'_> {
    /// Runs a program; its output goes to the step's log, the end of it to the screen should it fail.
    ///
    /// # Errors
    /// When it cannot be started or fails.
    pub(crate) fn run(&mut self, command: Command) -> Result<()> {
        self.run_with(command, |_| false)
    }

    /// Runs a program; of its output, the lines `shown` chooses go to the screen too.
    ///
    /// # Errors
    /// When it cannot be started or fails.
    pub(crate) fn run_with(&mut self, command: Command, mut shown: impl FnMut(&str) -> bool) -> Result<()> {
        let program = described(&command);
        let mut log = self.open_log()?;
        let mut written = writeln!(log, "$ {program}");
        let mut last = String::new();
        let mut counting = false;
        let mut spoke = Instant::now();
        let status = process::run(command, |event| {
            match event {
                Event::Line(line) => {
                    if written.is_ok() {
                        written = writeln!(log, "{line}");
                    }
                    if shown(&line) {
                        self.say(&line);
                        spoke = Instant::now();
                    } else if !(line.trim().is_empty() || counting && is_compiling(&line)) {
                        last = line;
                        counting = false;
                    }
                }
                Event::Progress(line) if line.trim().is_empty() => {}
                // Cargo's "12/300" says more than the name of the crate it has just begun.
                Event::Progress(line) => {
                    last = line;
                    counting = true;
                }
                Event::Quiet => {}
            }
            match &self.bar {
                Some(bar) => bar.set_message(last.trim().to_owned()),
                None if spoke.elapsed() >= HEARTBEAT => {
                    println!("      {}: {}", spoken(self.started.elapsed()), last.trim());
                    spoke = Instant::now();
                }
                None => {}
            }
        })?;
        if let Err(error) = written {
            self.say(&format!("(the log {} is incomplete: {error})", self.workspace.shown(&self.log)));
        }
        if process::stopping() {
            bail!("interrupted");
        }
        if status.success() {
            return Ok(());
        }
        self.say_tail();
        bail!("`{program}` ended with {status}; all of its output: {}", self.workspace.shown(&self.log));
    }

    /// Prints a line for the person who watches.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{line}")),
            None => println!("{line}"),
        }
    }

    fn open_log(&self) -> Result<File> {
        let open = || {
            fs::create_dir_all(self.log.parent().unwrap_or(Path::new(".")))?;
            File::options().create(true).append(true).open(&self.log)
        };
        open().with_context(|| format!("opening the log {}", self.log.display()))
    }

    fn say_tail(&self) {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !is_compiling(line)).collect();
        let from = lines.len().saturating_sub(TAIL_LINES);
        self.say(&format!("── {}: the last lines of {}", self.name, self.workspace.shown(&self.log)));
        for line in &lines[from..] {
            self.say(line);
        }
        self.say("──");
    }
}

/// Whether a line of cargo's only says which crate it works on: in a failure's last lines that is noise.
fn is_compiling(line: &str) -> bool {
    ["Compiling", "Checking", "Downloaded", "Downloading"]
        .iter()
        .any(|verb| line.trim_start().starts_with(verb))
}

/// `2 min 05 s`, `4.2 s`.
pub(crate) fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 60 {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

fn spinner(heading: &str, usual: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    // The template is a constant; a fault in it would only cost the colours.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} · {elapsed} · {wide_msg:.dim}") {
        bar.set_style(style);
    }
    let usual = if usual.is_empty() { String::new() } else { format!(" ({usual})") };
    bar.set_prefix(format!("{heading}{usual}"));
    bar.enable_steady_tick(SPIN);
    bar
}

fn described(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut text = program.to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(spoken(Duration::from_millis(4_240)), "4.2 s");
        assert_eq!(spoken(Duration::from_secs(125)), "2 min 05 s");
    }
}
