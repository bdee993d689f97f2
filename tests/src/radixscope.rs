//! The program under test, from outside: started with flags, asked over HTTP, killed, started again.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use hyper::Method;
use serde_json::Value;

use crate::http::{Http, HttpResponse};
use crate::paths;
use crate::process::Process;
use crate::viewer::{Resume, Viewer};
use crate::wait;

/// A running `radixscope`: one of our own, which ends with its value, or one that tests share, which may only be read.
pub struct Radixscope {
    /// `None`: it is shared.
    process: Option<Process>,
    args: Vec<OsString>,
    port: u16,
    /// The base path it serves under, without the slash at the end.
    base_path: String,
    http: Http,
}

/// What a test is told that would end or stop a server of others.
const NOT_OURS: &str = "a server of this test's own: the one that tests share may only be read";

/// Topologies of the demos that tests share.
pub const STANDING: [&str; 3] = ["aggregated", "aggregated-0.9", "two-models"];

/// Names the port of the standing demo of `topology` that tests share: `shared` sets it for the command that it runs.
pub fn standing_variable(topology: &str) -> String {
    let name: String = topology
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("RADIXSCOPE_TEST_STANDING_{name}")
}

/// How long there have to be no new records: more than two flushes of the server.
const SETTLED: Duration = Duration::from_millis(2_500);

impl Radixscope {
    /// Starts `radixscope <args>` on a free port and waits until it listens.
    pub async fn start<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::start_on(0, args).await
    }

    /// A demo of `topology` after 120 s, in which no time passes any more: the one that tests share where the environment
    /// names it ([`standing_variable`]), else one of its own. Only for tests that read.
    pub async fn standing(topology: &str) -> Self {
        let Ok(port) = std::env::var(standing_variable(topology)) else {
            return Self::start_standing(topology).await;
        };
        let port = port.parse().unwrap_or_else(|e| panic!("{}={port}: {e}", standing_variable(topology)));
        Self { process: None, args: Vec::new(), port, base_path: String::new(), http: Http::default() }
    }

    /// Starts such a demo, and waits until it stands still.
    pub async fn start_standing(topology: &str) -> Self {
        let server = Self::start(["demo", "--topology", topology, "--warm-up", "120", "--speed", "0"]).await;
        server.until_settled().await;
        server
    }

    /// Waits until no record comes any more: some complete what was received last.
    async fn until_settled(&self) {
        self.until_source_is("live").await;
        let (mut before, mut since) = (Value::Null, Instant::now());
        wait::until("nothing changes any more", async || {
            let now = self.cluster().await["seq"].take();
            if now != before {
                (before, since) = (now, Instant::now());
            }
            wait::expect(since.elapsed() >= SETTLED, || format!("still changing at {before}"))
        })
        .await;
    }

    /// [`Radixscope::standing`] of aggregated workers, with its decisions, newest first.
    pub async fn standing_demo() -> (Self, Vec<Value>) {
        Self::standing_demo_of("aggregated").await
    }

    /// The same of another topology.
    pub async fn standing_demo_of(topology: &str) -> (Self, Vec<Value>) {
        let server = Self::standing(topology).await;
        let decisions = server.json("/api/v1/decisions?limit=10000").await["decisions"].take();
        (server, decisions.as_array().expect("a list").clone())
    }

    /// Starts `radixscope <args>` on a port, or on a free one if that is 0, and waits until it listens.
    pub async fn start_on<A: Into<OsString>>(port: u16, args: impl IntoIterator<Item = A>) -> Self {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let base_path = args
            .iter()
            .position(|arg| arg == "--base-path")
            .map_or_else(String::new, |at| args[at + 1].to_string_lossy().trim_end_matches('/').to_owned());
        let (process, port) = launch(&args, port, Stdio::null()).await;
        Self { process: Some(process), args, port, base_path, http: Http::default() }
    }

    /// Starts `radixscope <args>` with something on its standard input.
    pub async fn start_with_input(args: &[&str], input: impl Into<Stdio>) -> Self {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let (process, port) = launch(&args, 0, input.into()).await;
        Self { process: Some(process), args, port, base_path: String::new(), http: Http::default() }
    }

    /// Starts `radixscope <args>`, which say where to listen.
    pub async fn start_listening(args: impl IntoIterator<Item = &str>) -> Self {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let mut command = Self::command();
        let mut process = Process::start("radixscope", command.args(&args));
        let port = process.line("where it listens", listening_port).await;
        Self { process: Some(process), args, port, base_path: String::new(), http: Http::default() }
    }

    /// Starts `radixscope <args>` with these variables.
    pub async fn start_with_variables(args: &[&str], variables: &[(&str, &OsStr)]) -> Self {
        let mut command = Self::command();
        command.envs(variables.iter().copied());
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let (process, port) = launch_as(&mut command, &args, 0, Stdio::null()).await;
        Self { process: Some(process), args, port, base_path: String::new(), http: Http::default() }
    }

    /// A demo whose readers steer it, with more flags.
    pub async fn steered_demo(more: &[&str]) -> Self {
        let warm_up: &[&str] = if more.contains(&"--warm-up") { &[] } else { &["--warm-up", "60"] };
        let args = [&["demo"], warm_up, more].concat();
        let server = Self::start_with_variables(&args, &[("RADIXSCOPE_NO_STAGE", OsStr::new("false"))]).await;
        server.until_source_is("live").await;
        server
    }

    /// Starts `radixscope <args>` in a shell that lets it open so many files only.
    pub async fn start_with_files(files: u32, args: &[&str]) -> Self {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        command.env("NO_COLOR", "1").arg("-c").arg(limited).arg(paths::radixscope());
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let (process, port) = launch_as(&mut command, &args, 0, Stdio::null()).await;
        Self { process: Some(process), args, port, base_path: String::new(), http: Http::default() }
    }

    /// Starts `radixscope <args>` where a folder is a disk of its own, of this size as mount(8) takes it. Nobody else sees
    /// that disk, and it is gone with the process.
    pub async fn start_on_small_disk(
        (folder, size): (&str, &str),
        args: &[&str],
        variables: &[(&str, &OsStr)],
    ) -> Self {
        let mut command = Command::new("sh");
        // In a container root may have no other right to mount, elsewhere a user no other than as root of a namespace.
        let script = r#"for own in --mount "--user --map-root-user --mount"; do
            unshare $own true 2>/dev/null || continue
            exec unshare $own sh -c 'mount -t tmpfs -o size="$2" disk "$1" && shift 2 && exec "$@"' sh "$@"
        done
        echo "no disk can be mounted: run as root, or allow user namespaces" >&2; exit 1"#;
        command.env("NO_COLOR", "1").envs(variables.iter().copied());
        command.args(["-c", script, "sh", folder, size]).arg(paths::radixscope());
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let (process, port) = launch_as(&mut command, &args, 0, Stdio::null()).await;
        Self { process: Some(process), args, port, base_path: String::new(), http: Http::default() }
    }

    /// `serve` for the NATS server at `url`.
    pub async fn serve(url: &str) -> Self {
        Self::serve_with(url, &[]).await
    }

    /// `serve` for the NATS server at `url` with more flags.
    pub async fn serve_with(url: &str, more: &[&str]) -> Self {
        Self::start(["serve", "--nats", url].iter().chain(more)).await
    }

    /// The program's command, for runs that are meant to end by themselves.
    pub fn command() -> Command {
        let mut command = Command::new(paths::radixscope());
        // Tests of the page need the room that it has for what is shown; those of the stage ask for it.
        command.env("NO_COLOR", "1").env("RADIXSCOPE_NO_STAGE", "true");
        command
    }

    /// Runs the program to its end.
    pub fn run(args: &[&str]) -> Output {
        Self::command().args(args).output().expect("the program can be started")
    }

    /// Its process.
    ///
    /// # Panics
    /// If it is shared: the other tests need it as it is.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect(NOT_OURS)
    }

    /// Its process, to be waited for.
    pub fn process_mut(&mut self) -> &mut Process {
        self.process.as_mut().expect(NOT_OURS)
    }

    /// Ends it without a farewell.
    pub fn kill(&mut self) {
        self.process_mut().kill();
    }

    /// Starts it anew with the same flags on the same port.
    pub async fn start_again(&mut self) {
        self.kill();
        let (process, port) = launch(&self.args, self.port, Stdio::null()).await;
        (self.process, self.port) = (Some(process), port);
    }

    /// Port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Full URL of `path`, which begins with a slash, under the base path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin(), self.base_path)
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> HttpResponse {
        self.http.get(&self.url(path)).await.expect("the server answers")
    }

    /// `GET` with more headers.
    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        self.http.send(Method::GET, &self.url(path), headers, Vec::new()).await.expect("the server answers")
    }

    /// `GET`, where there may be no response.
    pub async fn try_get(&self, path: &str) -> Result<HttpResponse, String> {
        self.http.get(&self.url(path)).await
    }

    /// `POST` of JSON.
    pub async fn post(&self, path: &str, body: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let body = body.as_bytes().to_vec();
        self.http.send(Method::POST, &self.url(path), headers, body).await.expect("the server answers")
    }

    /// `GET` of JSON that has to be there.
    pub async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.json()
    }

    /// What `/api/v1/tree` says of a block that it has to know.
    pub async fn block(&self, hash: &str) -> Value {
        let mut response = self.json(&format!("/api/v1/tree?root={hash}&limit=1")).await;
        let first = response["rows"][0].take();
        assert_eq!(first["block_hash"], hash);
        first
    }

    /// `/api/v1/cluster`.
    pub async fn cluster(&self) -> Value {
        self.json("/api/v1/cluster").await
    }

    /// Waits until `look` is content with `/api/v1/cluster`, which it then gives.
    pub async fn until_cluster(&self, what: &str, look: impl Fn(&Value) -> Result<(), String>) -> Value {
        wait::until(what, async || {
            self.expect_running(what);
            let response = self.try_get("/api/v1/cluster").await?;
            let cluster = response.json();
            look(&cluster).map(|()| cluster)
        })
        .await
    }

    /// Waits until every source has connected.
    pub async fn until_ready(&self) {
        wait::until("the server is ready", async || {
            self.expect_running("it is ready");
            let response = self.try_get("/readyz").await?;
            wait::expect(response.status == 200, || format!("{} {}", response.status, response.text()))
        })
        .await;
    }

    fn expect_running(&self, what: &str) {
        // Whether a shared one runs shows when it is asked.
        self.process.iter().for_each(|process| process.expect_running(what));
    }

    /// Waits until the first source is `state` in the API's words.
    pub async fn until_source_is(&self, state: &str) -> Value {
        self.until_cluster(&format!("the source is {state}"), |cluster| {
            let source = &cluster["sources"][0];
            wait::expect(source["state"] == state, || source.to_string())
        })
        .await
    }

    /// Waits until nothing more changes: every message is in, and the last summary of traffic too.
    pub async fn until_quiet(&self, received: u64) -> Value {
        let cluster = self
            .until_cluster(&format!("{received} messages are received"), |cluster| {
                let got: u64 =
                    crate::figures::sum(cluster["sources"].as_array().expect("sources"), "received");
                wait::expect(got >= received, || format!("{got} so far: {cluster}"))
            })
            .await;
        let got = crate::figures::sum(cluster["sources"].as_array().expect("sources"), "received");
        assert_eq!(got, received, "exactly the messages published are received");
        cluster
    }

    /// A viewer on its socket.
    pub async fn viewer(&self) -> Viewer {
        Viewer::connect(&self.socket_url(), None).await
    }

    /// A viewer that goes on where another one stopped.
    pub async fn viewer_after(&self, resume: Resume) -> Viewer {
        Viewer::connect(&self.socket_url(), Some(resume)).await
    }

    /// URL of the socket.
    pub fn socket_url(&self) -> String {
        format!("ws{}", self.url("/ws").strip_prefix("http").expect("the URL is http"))
    }
}

async fn launch(args: &[OsString], port: u16, input: Stdio) -> (Process, u16) {
    launch_as(&mut Radixscope::command(), args, port, input).await
}

async fn launch_as(command: &mut Command, args: &[OsString], port: u16, input: Stdio) -> (Process, u16) {
    command.args(args).args(["--listen", &format!("127.0.0.1:{port}")]);
    let mut process = Process::start_with_input("radixscope", command, input);
    let port = process.line("where it listens", listening_port).await;
    (process, port)
}

/// The port in a line like "listening on http://127.0.0.1:8321/", of all addresses or over TLS too.
fn listening_port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("listening on http")?;
    let rest = rest.split_once("://127.0.0.1:").or_else(|| rest.split_once("://0.0.0.0:"))?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
