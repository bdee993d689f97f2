//! A real etcd, configured as an operator would, that can go away and come back on the same port.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use radixscope_captures::port::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Http;
use crate::nats::make_certificates;
use crate::paths;
use crate::process::Process;
use crate::wait;

/// An etcd of one member. What it stores survives [`Etcd::stop`] and [`Etcd::start_again`].
pub struct Etcd {
    process: Option<Process>,
    /// Where clients connect in the clear, with TLS, and where members would.
    ports: [u16; 3],
    folder: TempDir,
    http: Http,
    token: Option<String>,
}

impl Etcd {
    /// An etcd that everybody may read in the clear; with TLS it asks for a certificate too.
    pub async fn start() -> Self {
        let folder =
            tempfile::Builder::new().prefix("radixscope-etcd-").tempdir().expect("a writable folder");
        make_certificates(folder.path());
        let ports = [free_port(), free_port(), free_port()];
        let mut etcd = Self { process: None, ports, folder, http: Http::default(), token: None };
        etcd.start_again().await;
        etcd
    }

    /// Where clients connect in the clear.
    pub fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.ports[0])
    }

    /// Where clients connect with TLS.
    pub fn tls_url(&self) -> String {
        format!("etcds://localhost:{}", self.ports[1])
    }

    /// `ca.pem`, `client.pem` and `client.key`, or `server.pem` and `server.key`, which name somebody.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Ends it without a farewell.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Whether it was not stopped.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Starts it on the ports it had.
    pub async fn start_again(&mut self) {
        let [clear, tls, peers] = self.ports;
        let at = self.folder.path().display();
        let clients = format!("http://127.0.0.1:{clear},https://127.0.0.1:{tls}");
        let members = format!("http://127.0.0.1:{peers}");
        let mut command = Command::new(paths::etcd());
        command
            .args(["--data-dir", &format!("{at}/data"), "--log-level", "warn"])
            .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &members, "--initial-advertise-peer-urls", &members])
            .args(["--initial-cluster", &format!("default={members}")])
            .args(["--cert-file", &format!("{at}/server.pem"), "--key-file", &format!("{at}/server.key")])
            .args(["--client-cert-auth", "--trusted-ca-file", &format!("{at}/ca.pem")]);
        let process = Process::start("etcd", &mut command);
        wait::until("etcd answers", async || {
            process.expect_running("it answers");
            let (status, response) = self.try_ask("/v3/kv/range", &json!({"key": "YQ=="})).await?;
            // With authentication on it answers that a login is missing.
            wait::expect(status == 200 || status == 400, || response.to_string())
        })
        .await;
        self.process = Some(process);
    }

    /// A lease of this many seconds with this id, as Dynamo's processes take one.
    pub async fn lease(&self, id: u64, ttl_s: u32) {
        self.ask("/v3/lease/grant", &json!({"ID": id.to_string(), "TTL": ttl_s.to_string()})).await;
    }

    /// Ends a lease and its entries, as a process that is terminated does.
    pub async fn revoke(&self, lease: u64) {
        self.ask("/v3/lease/revoke", &json!({"ID": lease.to_string()})).await;
    }

    /// Writes an entry.
    pub async fn put(&self, key: &str, value: &Value, lease: Option<u64>) {
        let lease = lease.unwrap_or(0).to_string();
        let value = encoded(&value.to_string());
        self.ask("/v3/kv/put", &json!({"key": encoded(key), "value": value, "lease": lease})).await;
    }

    /// Removes an entry.
    pub async fn delete(&self, key: &str) {
        self.ask("/v3/kv/deleterange", &json!({"key": encoded(key)})).await;
    }

    /// Forgets all revisions but the latest.
    pub async fn compact(&self) {
        let now = self.ask("/v3/kv/range", &json!({"key": "YQ=="})).await;
        let revision = now["header"]["revision"].clone();
        self.ask("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await;
    }

    /// From now on only users with a password are answered: `root`, and `viewer`, who may read what begins with `prefix`.
    pub async fn ask_for_passwords(&mut self, prefix: &str) {
        for name in ["root", "viewer"] {
            self.ask("/v3/auth/user/add", &json!({"name": name, "password": "secret"})).await;
            self.ask("/v3/auth/role/add", &json!({"name": name})).await;
            self.ask("/v3/auth/user/grant", &json!({"user": name, "role": name})).await;
        }
        let end = format!("{}0", &prefix[..prefix.len() - 1]);
        let perm = json!({"permType": "READ", "key": encoded(prefix), "range_end": encoded(&end)});
        self.ask("/v3/auth/role/grant", &json!({"name": "viewer", "perm": perm})).await;
        self.ask("/v3/auth/enable", &json!({})).await;
        let login = json!({"name": "root", "password": "secret"});
        let token = self.ask("/v3/auth/authenticate", &login).await["token"].clone();
        self.token = Some(token.as_str().expect("a token").to_owned());
    }

    async fn ask(&self, path: &str, question: &Value) -> Value {
        let (status, response) = self.try_ask(path, question).await.expect("etcd answers");
        assert_eq!(status, 200, "{path}: {response}");
        response
    }

    async fn try_ask(&self, path: &str, question: &Value) -> Result<(u16, Value), String> {
        let url = format!("http://127.0.0.1:{}{path}", self.ports[0]);
        let token: Vec<_> = self.token.iter().map(|token| ("authorization", &**token)).collect();
        let response = self.http.send(Method::POST, &url, &token, question.to_string().into_bytes()).await?;
        Ok((response.status, response.json()))
    }
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}
