//! A Chromium that runs: started without a driver and asked by DevTools. Knows no page.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::devtools::Devtools;
use crate::http::Http;
use crate::process::Process;
use crate::{paths, wait};

/// Names the Chromium that all tests share, as host and port of its DevTools: `shared` sets it for the command that it runs.
pub const SHARED: &str = "RADIXSCOPE_TEST_CHROMIUM";

/// Names a file that gets a line for each Chromium that is started.
pub const STARTED: &str = "RADIXSCOPE_TEST_CHROMIUM_STARTED";

/// Settings without which Chromium does not run as root, talks to the world by itself, waits for people, or slows down pages that
/// it takes for unseen.
const ARGUMENTS: [&str; 28] = [
    "--headless=new",
    // Its first page asks for a server of Google.
    "--no-startup-window",
    // Each window has two pages of its own for the address bar, with a process each.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--test-type",
    "--enable-automation",
    "--allow-pre-commit-input",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-popup-blocking",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
];

/// Time between two looks whether it has ended.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// A browser of our own. Ends with its value.
pub struct Chromium {
    process: Process,
    address: String,
    /// Removed after the process has ended.
    _profile: TempDir,
}

impl Chromium {
    /// Starts one with more arguments and a profile of its own, and waits until it can be asked.
    pub async fn start(more: &[&str]) -> Self {
        let profile = tempfile::Builder::new().prefix("radixscope-browser-").tempdir();
        let profile = profile.expect("a writable folder");
        let mut command = Command::new(paths::on_path("chromium"));
        let mut folder = OsStr::new("--user-data-dir=").to_owned();
        folder.push(profile.path());
        command.args(ARGUMENTS).arg(folder).args(more);
        // The port 0 lets the system choose.
        command.arg("--remote-debugging-port=0").env("HOME", profile.path());
        let mut process = Process::start("chromium", &mut command);
        let address = process.line("where its DevTools are", devtools_address).await;
        note_start();
        Self { process, address, _profile: profile }
    }

    /// Host and port of its DevTools.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end and waits for that, so that nothing writes to its profile any more. One that hangs is killed.
    pub async fn close(self) {
        let asked = async {
            let devtools = Devtools::connect(&browser_url(&self.address).await?, |_| Vec::new()).await;
            // It may be gone before it says so.
            let _ = devtools.call("Browser.close", json!({})).await;
            Ok::<_, String>(())
        };
        if matches!(wait::at_most(asked).await, Ok(Ok(()))) {
            let ended = async {
                while self.process.has_ended().is_none() {
                    tokio::time::sleep(LOOK_AFTER).await;
                }
            };
            let _ = wait::at_most(ended).await;
        }
    }
}

/// The Chromium that the environment names, if it does.
pub(super) fn shared() -> Option<String> {
    std::env::var(SHARED).ok().filter(|address| !address.is_empty())
}

/// Where the browser itself can be asked, not one of its pages.
///
/// # Errors
/// When there is none.
pub(super) async fn browser_url(address: &str) -> Result<String, String> {
    let version = Http::default().get(&format!("http://{address}/json/version")).await?.json();
    version["webSocketDebuggerUrl"].as_str().map(str::to_owned).ok_or_else(|| version.to_string())
}

/// Host and port in "DevTools listening on ws://127.0.0.1:40123/devtools/browser/…".
fn devtools_address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("DevTools listening on ws://")?;
    rest.split_once('/').map(|(address, _)| address.to_owned())
}

fn note_start() {
    let Some(file) = std::env::var_os(STARTED) else { return };
    let file = OpenOptions::new().create(true).append(true).open(file);
    file.and_then(|mut file| file.write_all(b"chromium\n"))
        .unwrap_or_else(|e| panic!("{STARTED} names no writable file: {e}"));
}
