//! Runs other programs, hands on what they print while they run, and leaves none of them behind. Knows no step.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use console::strip_ansi_codes;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

/// The exit code of a command that a signal ended, by the shells' convention.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// Lines read ahead of the display; a program that prints faster waits for us.
const LINES_AHEAD: usize = 256;
/// How often a silent program is polled and the display updated.
const TICK: Duration = Duration::from_millis(500);
/// How long what a program left running may keep its output open.
const LEFTOVER_GRACE: Duration = Duration::from_secs(3);
/// How long children have to end by themselves after Ctrl-C.
const STOP_GRACE: Duration = Duration::from_secs(5);

static STOPPING: AtomicBool = AtomicBool::new(false);
/// The process groups of the children that run now.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// What a running program does.
pub(crate) enum Event {
    /// It printed a line.
    Line(String),
    /// It rewrote its progress line.
    Progress(String),
    /// It printed nothing for a moment.
    Quiet,
}

/// From now on Ctrl-C, a hang-up or a request to end stops every child, then this process.
///
/// # Errors
/// When the handler cannot be installed.
pub(crate) fn end_children_on_signals() -> Result<()> {
    ctrlc::set_handler(|| {
        STOPPING.store(true, Ordering::SeqCst);
        let asked = Instant::now();
        signal_groups(Signal::SIGTERM);
        while asked.elapsed() < STOP_GRACE && !groups().is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        signal_groups(Signal::SIGKILL);
        std::process::exit(i32::from(EXIT_INTERRUPTED));
    })
    .context("installing the signal handler")
}

/// Whether a signal asked this process to end.
pub(crate) fn stopping() -> bool {
    STOPPING.load(Ordering::SeqCst)
}

/// Runs a program to its end. Standard output and error arrive as one stream of events.
///
/// # Errors
/// When it cannot be started or waited for; its exit status is the caller's to judge.
pub(crate) fn run(mut command: Command, mut on_event: impl FnMut(Event)) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe().context("making a pipe")?;
    command.stdout(writer.try_clone().context("making a pipe")?).stderr(writer);
    let mut running = RunningProcess::start(&mut command)?;
    drop(command); // holds the pipe's writing end: only the children may keep it open
    let (sender, events) = sync_channel(LINES_AHEAD);
    thread::spawn(move || read_events(reader, &sender));
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match events.recv_timeout(TICK) {
            Ok(event) => on_event(event),
            Err(RecvTimeoutError::Timeout) => on_event(Event::Quiet),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        match ended {
            None => ended = running.child.try_wait()?.map(|status| (status, Instant::now())),
            Some((_, at)) if at.elapsed() > LEFTOVER_GRACE => {
                on_event(Event::Line("(ended what the program had left running)".to_owned()));
                break;
            }
            Some(_) => {}
        }
    }
    match ended {
        Some((status, _)) => Ok(status),
        None => running.wait(),
    }
}

/// A child in a process group of its own. When dropped, the group is ended.
pub(crate) struct RunningProcess {
    pub(crate) child: Child,
    group: Pid,
}

impl RunningProcess {
    /// Starts a program without standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let group = Pid::from_raw(child.id().cast_signed());
        groups().push(group);
        if stopping() {
            // The handler may have looked at the list before this child was on it.
            let _ = killpg(group, Signal::SIGTERM);
        }
        Ok(Self { child, group })
    }

    /// Starts a program that takes what others leave of the cores, and says nothing.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start_beside(command: &Command) -> Result<Self> {
        let mut nice = Command::new("nice");
        nice.args(["-n", "10"]).arg(command.get_program()).args(command.get_args());
        for (variable, value) in command.get_envs() {
            match value {
                Some(value) => nice.env(variable, value),
                None => nice.env_remove(variable),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            nice.current_dir(folder);
        }
        Self::start(nice.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When the system cannot tell how it ended.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().context("waiting for a program")
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // Errors mean that the group is gone already, which is what is wanted.
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
        groups().retain(|group| *group != self.group);
    }
}

fn groups() -> std::sync::MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal_groups(signal: Signal) {
    for group in groups().iter() {
        let _ = killpg(*group, signal);
    }
}

/// Splits a program's output where it ends a line (`\n`) or returns to its start (`\r`: a progress line).
fn read_events(reader: impl Read, events: &SyncSender<Event>) {
    let mut reader = BufReader::new(reader);
    let mut text = Vec::new();
    loop {
        let Ok(bytes) = reader.fill_buf() else { return };
        if bytes.is_empty() {
            return;
        }
        let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        text.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        let Some(end) = end else {
            let length = bytes.len();
            reader.consume(length);
            continue;
        };
        let is_line = bytes[end] == b'\n';
        reader.consume(end + 1);
        let plain = String::from_utf8_lossy(&text);
        let plain = strip_ansi_codes(&plain).trim_end().to_owned();
        text.clear();
        let event = if is_line { Event::Line(plain) } else { Event::Progress(plain) };
        if events.send(event).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{process::Command, sync::mpsc::sync_channel, time::Instant};

    use super::{Event, STOP_GRACE, read_events, run};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn progress_lines_are_distinguished_from_lines_and_lose_their_colours() {
        let (sender, events) = sync_channel(8);
        read_events(&b"\x1b[1mBuilding 1/2\r\x1b[KCompiling a\n"[..], &sender);
        drop(sender);
        let events: Vec<Event> = events.into_iter().collect();
        assert!(matches!(&events[0], Event::Progress(text) if text == "Building 1/2"));
        assert!(matches!(&events[1], Event::Line(text) if text == "Compiling a"));
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn both_outputs_and_the_exit_status_arrive() {
        let mut lines = Vec::new();
        let status = run(shell("echo out; echo err >&2; exit 3"), |event| {
            if let Event::Line(line) = event {
                lines.push(line);
            }
        });
        assert_eq!(status.unwrap().code(), Some(3));
        lines.sort();
        assert_eq!(lines, ["err", "out"]);
    }

    #[test]
    fn a_program_left_running_is_ended_and_does_not_hold_us_up() {
        let mut pid = None;
        let status = run(shell("sleep 600 & echo $!"), |event| {
            if let Event::Line(line) = event
                && let Ok(number) = line.parse::<i32>()
            {
                pid = Some(number);
            }
        });
        assert!(status.unwrap().success());
        let stat = format!("/proc/{}/stat", pid.unwrap());
        let asked = Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(asked.elapsed() < STOP_GRACE, "the left-over program still runs");
            std::thread::yield_now();
        }
    }
}
