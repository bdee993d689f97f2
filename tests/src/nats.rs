//! A real NATS server, configured as an operator would, that can go away and come back on the same port.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use async_nats::ConnectOptions;
use async_nats::jetstream;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use radixscope_captures::port::free_port;
use serde_json::json;
use tempfile::TempDir;

use crate::paths;
use crate::process::Process;
use crate::wait;

/// Default maximum message size of NATS, in bytes.
const MAX_PAYLOAD: usize = 1024 * 1024;

/// Who may connect.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Everybody.
    #[default]
    Open,
    /// A user with a password.
    Password(&'static str, &'static str),
    /// Whoever has the token.
    Token(&'static str),
    /// Users with a credentials file signed by an operator of our own making.
    Credentials,
    /// Two users with Dynamo's default password: `dynamo`, who may do everything, and `user`, who may subscribe only as
    /// these permissions say, in the server's own syntax.
    Limited(&'static str),
    /// User `dynamo`, who may do everything, and for each of these permissions in the server's own syntax a user `user0`,
    /// `user1` and so on, all with password `user`.
    Each(Vec<String>),
}

/// What kind of server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether it has JetStream.
    pub jetstream: bool,
    /// Who may connect.
    pub access: Access,
    /// Whether it speaks TLS only, with a certificate of our own authority.
    pub tls: bool,
    /// Whether it asks clients for a certificate too.
    pub verify: bool,
    /// Largest message, bytes.
    pub max_payload: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { jetstream: true, access: Access::Open, tls: false, verify: false, max_payload: MAX_PAYLOAD }
    }
}

/// A NATS server. Its port and its stored streams survive [`Nats::stop`] and [`Nats::start_again`].
pub struct Nats {
    process: Option<Process>,
    options: Options,
    port: u16,
    operator: Option<Operator>,
    folder: TempDir,
}

impl Nats {
    /// A server with JetStream that everybody may use.
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// A server as described.
    pub async fn with(options: Options) -> Self {
        let folder =
            tempfile::Builder::new().prefix("radixscope-nats-").tempdir().expect("a writable folder");
        if options.tls {
            make_certificates(folder.path());
        }
        let operator = matches!(options.access, Access::Credentials).then(|| Operator::new(folder.path()));
        let mut nats = Self { process: None, options, port: free_port(), operator, folder };
        nats.start_again().await;
        nats
    }

    /// Where clients connect, without secrets.
    pub fn url(&self) -> String {
        let scheme = if self.options.tls { "tls" } else { "nats" };
        format!("{scheme}://localhost:{}", self.port)
    }

    /// The authority that signed the server's certificate, as PEM.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The credentials file of a user, where those are asked for.
    pub fn credentials_file(&self) -> PathBuf {
        self.folder.path().join("user.creds")
    }

    /// Ends the server without a farewell.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Notes what the stopped server has stored so far.
    pub fn keep_store(&self) {
        copy(&self.folder.path().join("jetstream"), &self.folder.path().join("kept"));
    }

    /// Has the stopped server forget what it stored since: as one that died before it had written it.
    pub fn lose_latest(&self) {
        copy(&self.folder.path().join("kept"), &self.folder.path().join("jetstream"));
    }

    /// The server's process.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("the server runs")
    }

    /// Starts the server, on the port it had before.
    pub async fn start_again(&mut self) {
        self.configure();
        let mut command = Command::new(paths::nats_server());
        command.arg("--config").arg(self.folder.path().join("nats.conf"));
        let mut process = Process::start("nats-server", &mut command);
        process.line("that it is ready", |line| line.contains("Server is ready").then_some(())).await;
        self.process = Some(process);
        // Tests have no certificate of their own.
        if !self.options.verify {
            self.client().await;
        }
    }

    /// Port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes who may connect while the server runs.
    pub async fn set_access(&mut self, access: Access) {
        self.options.access = access;
        self.configure();
        let reloads = self.process().lines().iter().filter(|line| is_reloaded(line)).count();
        let process = self.process();
        let status = Command::new("kill").args(["-HUP", &process.id().to_string()]).status();
        assert!(status.expect("kill is everywhere").success());
        wait::until("the server has read its configuration again", async || {
            process.expect_running("it has read its configuration again");
            let now = process.lines().iter().filter(|line| is_reloaded(line)).count();
            wait::expect(now > reloads, || process.output())
        })
        .await;
    }

    /// A connection to it, with whatever it asks for.
    pub async fn client(&self) -> async_nats::Client {
        let options = ConnectOptions::new().name("end-to-end test");
        let options = match self.options.access {
            Access::Open => options,
            Access::Password(user, password) => options.user_and_password(user.into(), password.into()),
            Access::Token(token) => options.token(token.into()),
            Access::Limited(_) | Access::Each(_) => options.user_and_password("dynamo".into(), "user".into()),
            Access::Credentials => {
                options.credentials_file(self.credentials_file()).await.expect("the file was just written")
            }
        };
        let options = if self.options.tls { options.add_root_certificates(self.ca_file()) } else { options };
        let url = self.url();
        wait::until("NATS takes a client", async || {
            options.clone().connect(&url).await.map_err(|e| e.to_string())
        })
        .await
    }

    /// JetStream on it.
    pub async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.client().await)
    }

    /// Makes a bucket of keys and values as JetStream keeps it, a stream of its subjects, with one key in it.
    pub async fn make_bucket(&self, name: &str) {
        let jetstream = self.jetstream().await;
        let stream = jetstream::stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            ..Default::default()
        };
        jetstream.create_stream(stream).await.expect("a stream");
        let sent = jetstream.publish(format!("$KV.{name}.limit"), "7".into()).await;
        sent.expect("it is sent").await.expect("it is kept");
    }

    /// Messages that a bucket holds, and how many were ever written: one each, if it was not changed.
    pub async fn bucket(&self, name: &str) -> (u64, u64) {
        let stream = self.jetstream().await.get_stream(format!("KV_{name}")).await.expect("it is there");
        let state = &stream.cached_info().state;
        (state.messages, state.last_sequence)
    }

    fn configure(&self) {
        let at = self.folder.path().display();
        let port = self.port;
        let mut conf = format!("listen: \"127.0.0.1:{port}\"\nmax_payload: {}\n", self.options.max_payload);
        conf += &format!("max_pending: {}\n", 4 * self.options.max_payload.max(16 * MAX_PAYLOAD));
        if self.options.jetstream {
            let _ = writeln!(conf, "jetstream {{ store_dir: \"{at}/jetstream\" }}");
        }
        if self.options.tls {
            let verify = if self.options.verify {
                format!("ca_file: \"{at}/ca.pem\", verify: true, ")
            } else {
                String::new()
            };
            let _ = writeln!(
                conf,
                "tls {{ {verify}cert_file: \"{at}/server.pem\", key_file: \"{at}/server.key\" }}"
            );
        }
        match (&self.options.access, &self.operator) {
            (Access::Password(user, password), _) => {
                let _ = writeln!(conf, "authorization {{ user: \"{user}\", password: \"{password}\" }}");
            }
            (Access::Token(token), _) => {
                let _ = writeln!(conf, "authorization {{ token: \"{token}\" }}");
            }
            (Access::Limited(subscribe), _) => {
                let _ = writeln!(
                    conf,
                    "authorization {{ users: [\n  {{ user: \"dynamo\", password: \"user\" }},\n  {{ user: \"user\", \
                     password: \"user\", permissions: {{ publish: \"$JS.API.>\", subscribe: {subscribe} }} }}\n] }}"
                );
            }
            (Access::Each(permissions), _) => {
                let _ = writeln!(
                    conf,
                    "authorization {{ users: [\n  {{ user: \"dynamo\", password: \"user\" }},"
                );
                for (number, permissions) in permissions.iter().enumerate() {
                    let _ = writeln!(
                        conf,
                        "  {{ user: \"user{number}\", password: \"user\", permissions: {{\n{permissions}\n}} }},"
                    );
                }
                conf += "] }\n";
            }
            (Access::Credentials, Some(operator)) => conf += &operator.configuration,
            _ => {}
        }
        std::fs::write(self.folder.path().join("nats.conf"), conf).expect("a writable folder");
    }
}

/// Makes `to` the same as folder `from`.
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        std::fs::remove_dir_all(to).expect("a writable folder");
    }
    let status = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(status.expect("cp is everywhere").success());
}

fn is_reloaded(line: &str) -> bool {
    line.contains("Reloaded server configuration")
}

/// An authority, a certificate for `localhost` that it signed, and one for a client without a name.
pub fn make_certificates(folder: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer};
    let ca_key = rcgen::KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::new(Vec::new()).expect("no names");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_pem = ca.self_signed(&ca_key).expect("a certificate").pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let server = CertificateParams::new(names).expect("two names");
    let server_pem = server.signed_by(&key, &issuer).expect("a certificate").pem();
    let client_key = rcgen::KeyPair::generate().expect("a key");
    let mut client = CertificateParams::new(vec!["viewer".to_owned()]).expect("a name");
    client.distinguished_name = rcgen::DistinguishedName::new();
    let client_pem = client.signed_by(&client_key, &issuer).expect("a certificate").pem();
    for (name, text) in [("client.pem", client_pem), ("client.key", client_key.serialize_pem())] {
        std::fs::write(folder.join(name), text).expect("a writable folder");
    }
    for (name, text) in [("ca.pem", ca_pem), ("server.pem", server_pem), ("server.key", key.serialize_pem())]
    {
        std::fs::write(folder.join(name), text).expect("a writable folder");
    }
}

/// An operator with one account: NATS's decentralised authentication, in which clients show a signed file.
struct Operator {
    configuration: String,
}

impl Operator {
    fn new(folder: &Path) -> Self {
        let (operator, account, user) =
            (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
        let operator_jwt = jwt(&operator, &operator, json!({"type": "operator", "version": 2}));
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1,
            "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "wildcards": true,
        });
        let account_jwt =
            jwt(&account, &operator, json!({"type": "account", "version": 2, "limits": limits}));
        let user_jwt = jwt(
            &user,
            &account,
            json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}),
        );
        let seed = user.seed().expect("a new pair has its seed");
        let credentials = format!(
            "-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        std::fs::write(folder.join("user.creds"), credentials).expect("a writable folder");
        let id = account.public_key();
        let configuration = format!(
            "operator: \"{operator_jwt}\"\nresolver: MEMORY\nresolver_preload: {{ {id}: \"{account_jwt}\" }}\n"
        );
        Self { configuration }
    }
}

fn jwt(subject: &KeyPair, issuer: &KeyPair, nats: serde_json::Value) -> String {
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let claims = json!({
        "jti": subject.public_key(), "iat": 1_700_000_000, "iss": issuer.public_key(),
        "name": "end-to-end", "sub": subject.public_key(), "nats": nats,
    });
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = issuer.sign(signed.as_bytes()).expect("a new pair can sign");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
