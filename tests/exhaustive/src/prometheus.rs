//! A real Prometheus that scrapes a server of ours, and `promtool`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use radixscope_captures::port::free_port;
use serde_json::Value;
use tempfile::TempDir;
use url::form_urlencoded;

use radixscope_tests::http::Http;
use radixscope_tests::paths;
use radixscope_tests::process::Process;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// A running Prometheus.
pub struct Prometheus {
    _process: Process,
    _folder: TempDir,
    origin: String,
    http: Http,
}

impl Prometheus {
    /// Starts one that scrapes `jobs`, each a name and its servers, once a second and evaluates `rules` as often.
    pub async fn start(jobs: &[(&str, &[&Radixscope])], rules: &Path) -> Self {
        let folder =
            tempfile::Builder::new().prefix("radixscope-prometheus-").tempdir().expect("a writable folder");
        let config = folder.path().join("prometheus.yml");
        let mut text = format!(
            "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\nrule_files: [{}]\nscrape_configs:\n",
            rules.display(),
        );
        for (job, servers) in jobs {
            let targets: Vec<String> =
                servers.iter().map(|server| format!("'127.0.0.1:{}'", server.port())).collect();
            text += &format!("- job_name: {job}\n  static_configs:\n  - targets: [{}]\n", targets.join(", "));
        }
        let targets: usize = jobs.iter().map(|(_, servers)| servers.len()).sum();
        fs::write(&config, text).expect("a writable folder");
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(paths::on_path("prometheus"));
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"));
        let process = Process::start("prometheus", &mut command);
        let prometheus = Self {
            _process: process,
            _folder: folder,
            origin: format!("http://{address}"),
            http: Http::default(),
        };
        wait::until("Prometheus has scraped every server", async || {
            let up = prometheus.query("up == 1").await?;
            wait::expect(up.len() == targets, || format!("{} so far", up.len()))
        })
        .await;
        prometheus
    }

    /// What a query comes to now, or why it cannot be asked.
    pub async fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let response = self.http.get(&format!("{}/api/v1/query?query={query}", self.origin)).await?;
        let response = serde_json::from_slice::<Value>(&response.body).map_err(|error| error.to_string())?;
        match response["data"]["result"].as_array() {
            Some(result) => Ok(result.clone()),
            None => Err(response.to_string()),
        }
    }

    /// The rules with what came of them.
    pub async fn rules(&self) -> Vec<Value> {
        let response =
            self.http.get(&format!("{}/api/v1/rules", self.origin)).await.expect("Prometheus answers");
        let groups = response.json()["data"]["groups"].as_array().expect("groups").clone();
        groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }
}

/// What `promtool` says of `input`, and whether it is content.
pub fn promtool(args: &[&str], input: &str) -> (bool, String) {
    let mut command = Command::new(paths::on_path("promtool"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool starts");
    // It may end without having read everything.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("promtool ends");
    let reported = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&reported).into_owned())
}
