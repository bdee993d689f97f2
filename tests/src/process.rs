//! A child process whose output is kept and that never outlives its owner. Knows no program.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::wait;

/// Lines kept of a program's output; a failing test shows the last few.
const LINES_KEPT: usize = 20_000;
/// Lines shown when a test fails.
const LINES_SHOWN: usize = 60;

type Lines = Arc<Mutex<VecDeque<String>>>;

/// A running program.
pub struct Process {
    name: String,
    child: Mutex<Child>,
    id: u32,
    lines: Lines,
}

impl Process {
    /// Starts `command` without input.
    pub fn start(name: &str, command: &mut Command) -> Self {
        Self::start_with_input(name, command, Stdio::null())
    }

    /// Starts `command`, which reads `input`.
    pub fn start_with_input(name: &str, command: &mut Command, input: Stdio) -> Self {
        let mut child = command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("starting {name}: {e}"));
        let lines = Lines::default();
        keep(child.stdout.take().expect("piped above"), &lines);
        keep(child.stderr.take().expect("piped above"), &lines);
        Self { name: name.to_owned(), id: child.id(), child: child.into(), lines }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it printed so far, a line each.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines).iter().cloned().collect()
    }

    /// What it printed so far.
    pub fn output(&self) -> String {
        self.lines().join("\n")
    }

    /// Waits for a line of which `pick` makes something.
    pub async fn line<T>(&mut self, what: &str, pick: impl Fn(&str) -> Option<T>) -> T {
        self.line_or_end(what, pick).await.unwrap_or_else(|status| {
            panic!("{} ended with {status} before it logged {what}:\n{}", self.name, self.output())
        })
    }

    /// The same for a program that may end before it says that; then its status.
    pub async fn line_or_end<T>(
        &mut self,
        what: &str,
        pick: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ExitStatus> {
        let name = self.name.clone();
        wait::until(&format!("{name} says {what}"), async || {
            // The status first: a program that ended has then printed all it had to say.
            let ended = self.has_ended();
            if let Some(found) = self.lines().iter().find_map(|line| pick(line)) {
                return Ok(Ok(found));
            }
            ended.map(Err).ok_or_else(|| self.output())
        })
        .await
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let name = self.name.clone();
        wait::until(&format!("{name} ends"), async || {
            self.has_ended().ok_or_else(|| "still running".to_owned())
        })
        .await
    }

    /// Its status, if it has ended.
    pub fn has_ended(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().expect("the child is ours")
    }

    /// Panics if it has ended: nothing that a test expects of it will come any more. `what` the test waits for.
    pub fn expect_running(&self, what: &str) {
        if let Some(status) = self.has_ended() {
            panic!(
                "{} ended with {status} while a test waited until {what}:\n{}",
                self.name,
                self.last_output()
            );
        }
    }

    /// Its last lines.
    pub fn last_output(&self) -> String {
        let lines = self.lines();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }

    /// Asks it to end, as a service manager does.
    pub fn terminate(&self) {
        signal("TERM", self.id());
    }

    /// Stops it where it stands, until [`Process::resume`].
    pub fn pause(&self) {
        signal("STOP", self.id());
    }

    /// Lets it go on.
    pub fn resume(&self) {
        signal("CONT", self.id());
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill(); // gone already is as good
        let _ = child.wait();
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> u64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count() as u64
    }

    /// Threads.
    pub fn threads(&self) -> u64 {
        self.status_number("Threads:")
    }

    /// Memory in use, bytes.
    pub fn rss_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// Memory in use that it allocated, bytes: without the pages of its program.
    pub fn anonymous_bytes(&self) -> u64 {
        self.status_bytes("RssAnon:")
    }

    /// Most memory that was in use so far, bytes.
    pub fn peak_rss_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, field: &str) -> u64 {
        status_bytes(self.id(), field).expect("a live process has it")
    }

    fn status_number(&self, field: &str) -> u64 {
        status_number(self.id(), field).expect("a live process has it")
    }

    /// Processor time used so far.
    pub fn cpu_time(&self) -> Duration {
        cpu_time(&std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs"))
    }

    /// Processor time used so far by its threads of this name.
    pub fn cpu_time_of_thread(&self, name: &str) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("it runs");
        // One that has just ended is passed over.
        let stats =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        stats.filter(|stat| stat.contains(&format!("({name})"))).map(|stat| cpu_time(&stat)).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {} last output:\n{}\n---", self.name, self.last_output());
        }
    }
}

/// Memory in use that a process allocated, bytes; `None`: it has ended.
pub fn anonymous_bytes(id: u32) -> Option<u64> {
    status_bytes(id, "RssAnon:")
}

/// A size in a process's `status`; `None`: it has ended.
fn status_bytes(id: u32, field: &str) -> Option<u64> {
    Some(status_number(id, field)? * 1024) // "<name>: <n> kB"
}

fn status_number(id: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A process and all that it started, with their command lines.
pub fn family(id: u32) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("a system with processes").flatten();
    let all: Vec<(u32, u32, String)> = entries
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some((id, parent, String::from_utf8_lossy(&command).replace('\0', " ")))
        })
        .collect();
    let mut found = vec![id];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(all.iter().filter(|(_, of, _)| *of == parent).map(|(id, ..)| *id));
        at += 1;
    }
    all.into_iter().filter(|(id, ..)| found.contains(id)).map(|(id, _, command)| (id, command)).collect()
}

/// Processor time in a `stat` of `/proc`.
fn cpu_time(stat: &str) -> Duration {
    // Fields 14 and 15, counted behind the name, which may hold spaces; in hundredths of a second on Linux.
    let (_, fields) = stat.rsplit_once(") ").expect("the name is in parentheses");
    let ticks = fields.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().expect("a number"));
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Sends a signal to a process.
///
/// # Panics
/// If there is none of this id.
pub fn signal(name: &str, id: u32) {
    let status = Command::new("kill").args([format!("-{name}"), id.to_string()]).status();
    assert!(status.expect("kill is everywhere").success(), "sending {name} to {id}");
}

/// Ends a process by its id, if it still runs: for grandchildren, which are not ours to wait for.
pub fn end(id: u32) {
    let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
}

fn keep(output: impl Read + Send + 'static, lines: &Lines) {
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let mut lines = lock(&lines);
            if lines.len() == LINES_KEPT {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    });
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
