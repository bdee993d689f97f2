//! How the drivers of Firefox and WebKit are started, and what a session is asked to be. The only place that knows how they differ
//! in that.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;

use hyper::Method;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::browser::Engine;
use crate::http::Http;
use crate::process::Process;
use crate::{paths, wait};

/// Attempts to start a driver, see [`start`].
const STARTS: usize = 5;

/// What a session is asked to be.
pub(super) fn capabilities(engine: Engine) -> Map<String, Value> {
    let capabilities = match engine {
        // Not before all is loaded: asked earlier, a busy page may leave the driver without a response.
        Engine::WebKit => json!({
            "webkitgtk:browserOptions": {"binary": mini_browser(), "args": ["--automation"]},
        }),
        // Opening an address waits for the document alone, so that its console is listened to early.
        _ => json!({
            "moz:firefoxOptions": {"binary": paths::on_path("firefox-esr"), "args": ["-headless"]},
            "webSocketUrl": true,
            "pageLoadStrategy": "eager",
        }),
    };
    let Value::Object(capabilities) = capabilities else { unreachable!("written as an object") };
    capabilities
}

/// Where Debian's `webkit2gtk-driver` has the browser that it drives.
fn mini_browser() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let in_folder = |folder: PathBuf| {
        ["webkit2gtk-4.1", "webkit2gtk-4.0"].map(|name| folder.join(name).join("MiniBrowser"))
    };
    folders
        .flat_map(|folder| in_folder(folder.path()))
        .find(|file| file.is_file())
        .expect("MiniBrowser is missing; `cargo xtask setup browsers` installs it")
}

/// A driver that runs, and the screen that its browser is on.
pub(super) struct Driver {
    _driver: Process,
    _screen: Option<Process>,
    /// Where it listens.
    pub port: u16,
}

/// Starts the driver. A free port may be another's by the time it takes it: then it ends, and is started again.
pub(super) async fn start(engine: Engine, profile: &TempDir) -> Driver {
    let mut output_text = String::new();
    for _ in 0..STARTS {
        let started = match engine {
            Engine::WebKit => start_webkit_driver(profile).await,
            _ => start_geckodriver(profile).await,
        };
        match started {
            Ok(driver) => return driver,
            Err(output) => output_text = output,
        }
    }
    panic!("the driver of {} did not start in {STARTS} attempts: {output_text}", engine.as_str());
}

async fn start_geckodriver(profile: &TempDir) -> Result<Driver, String> {
    let mut command = Command::new(paths::tool("geckodriver"));
    command.args(["--port=0", "--websocket-port=0"]);
    // Profiles are made in the folder for temporary files, and go with it.
    command.env("HOME", profile.path()).env("TMPDIR", profile.path());
    let mut driver = Process::start("geckodriver", &mut command);
    let output_text = |line: &str| line.split_once("Listening on 127.0.0.1:")?.1.trim().parse().ok();
    match driver.line_or_end("its port", output_text).await {
        Ok(port) => Ok(Driver { _driver: driver, _screen: None, port }),
        Err(status) => Err(format!("{status}: {}", driver.output())),
    }
}

/// WebKit's browser draws on a screen only, and its driver neither chooses a port nor says when it listens.
async fn start_webkit_driver(profile: &TempDir) -> Result<Driver, String> {
    let mut command = Command::new(paths::on_path("Xvfb"));
    command.args(["-displayfd", "1", "-screen", "0", "4000x2400x24", "-nolisten", "tcp"]);
    let mut screen = Process::start("Xvfb", &mut command);
    let display: u32 = screen.line("its display", |line| line.trim().parse().ok()).await;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    let port = free.expect("there are free ports").port();
    let mut command = Command::new(paths::on_path("WebKitWebDriver"));
    command.args([format!("--port={port}"), "--host=127.0.0.1".to_owned()]);
    command.env("HOME", profile.path()).env("DISPLAY", format!(":{display}"));
    let driver = Process::start("WebKitWebDriver", &mut command);
    let (http, status) = (Http::default(), format!("http://127.0.0.1:{port}/status"));
    wait::until("WebKitWebDriver answers", async || {
        if let Some(status) = driver.has_ended() {
            return Ok(Err(format!("{status}: {}", driver.output())));
        }
        let response = http.send(Method::GET, &status, &[], Vec::new()).await;
        response.map(|_| Ok(())).map_err(|_| "no response".to_owned())
    })
    .await?;
    Ok(Driver { _driver: driver, _screen: Some(screen), port })
}
