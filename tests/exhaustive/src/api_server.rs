//! A real API server of Kubernetes over a real etcd, as the tests of controllers start them: with TLS, RBAC and custom resources, and
//! without a kubelet, so that pods do nothing. `KUBEBUILDER_ASSETS` names the folder of both programs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use radixscope_captures::port::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use radixscope_tests::nats::make_certificates;
use radixscope_tests::process::Process;
use radixscope_tests::wait;

/// The namespace of everything.
pub const NAMESPACE: &str = "dynamo";
/// How long it may take to start.
const START_WITHIN: Duration = Duration::from_secs(120);
/// The operator of the tests.
const ADMIN: &str = "admin-token";
/// Custom resources that Radixscope reads: group, version, plural, kind.
const CUSTOM: [(&str, &str, &str, &str); 3] = [
    ("nvidia.com", "v1alpha1", "dynamoworkermetadatas", "DynamoWorkerMetadata"),
    ("nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"),
    ("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool"),
];

/// See the module.
pub struct ApiServer {
    etcd: Process,
    server: Option<Process>,
    ports: [u16; 3],
    folder: TempDir,
}

impl ApiServer {
    /// Starts both, with the custom resources of Dynamo and of the inference gateway.
    pub async fn start() -> Self {
        let assets = assets();
        let folder = tempfile::Builder::new().prefix("radixscope-kas-").tempdir().expect("a writable folder");
        make_certificates(folder.path());
        let ports = [free_port(), free_port(), free_port()];
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let mut etcd = Command::new(assets.join("etcd"));
        etcd.arg("--data-dir").arg(folder.path().join("etcd"));
        for (option, port) in [
            ("--listen-client-urls", ports[1]),
            ("--advertise-client-urls", ports[1]),
            ("--listen-peer-urls", ports[2]),
        ] {
            etcd.args([option, &url(port)]);
        }
        let etcd = Process::start("etcd", &mut etcd);
        let key = rcgen::KeyPair::generate().expect("a key");
        for (name, pem) in [("accounts.key", key.serialize_pem()), ("accounts.pub", key.public_key_pem())] {
            fs::write(folder.path().join(name), pem).expect("a writable folder");
        }
        fs::write(
            folder.path().join("tokens.csv"),
            format!("{ADMIN},admin,1,\"system:masters\"\nada-token,ada,2\n"),
        )
        .expect("a writable folder");
        let mut this = Self { etcd, server: None, ports, folder };
        this.start_again().await;
        for custom in CUSTOM {
            this.install(custom).await;
        }
        this.post("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}})).await;
        this
    }

    /// Ends it without a farewell; etcd goes on.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Starts it on the port it had.
    pub async fn start_again(&mut self) {
        let file = |name: &str| self.folder.path().join(name);
        let mut server = Command::new(assets().join("kube-apiserver"));
        server.args(["--etcd-servers", &format!("http://127.0.0.1:{}", self.ports[1])]);
        server.args(["--secure-port", &self.ports[0].to_string(), "--bind-address", "127.0.0.1"]);
        server.arg("--tls-cert-file").arg(file("server.pem"));
        server.arg("--tls-private-key-file").arg(file("server.key"));
        server.arg("--cert-dir").arg(file("certificates"));
        server.arg("--service-account-key-file").arg(file("accounts.pub"));
        server.arg("--service-account-signing-key-file").arg(file("accounts.key"));
        server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
        server.arg("--token-auth-file").arg(file("tokens.csv"));
        server.args(["--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/24"]);
        // There is no controller that would make accounts for pods.
        server.args(["--disable-admission-plugins", "ServiceAccount"]);
        self.server = Some(Process::start("kube-apiserver", &mut server));
        wait::until_within(START_WITHIN, "the API server is ready", async || {
            self.etcd.expect_running("etcd");
            match self.ask(Method::GET, "/readyz", ADMIN, None).await {
                Ok((StatusCode::OK, _)) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Its address, for which [`Self::ca`] signed.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.ports[0])
    }

    /// The authority that signed its certificate.
    pub fn ca(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// A file of one's own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A kubeconfig of the user ada, who may nothing.
    pub fn kubeconfig(&self) -> PathBuf {
        let file = self.file("kubeconfig");
        let cluster = json!({"server": self.url(), "certificate-authority": self.ca()});
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "real",
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "ada-token"}}],
            "contexts": [{"name": "real", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}]});
        // JSON is YAML.
        fs::write(&file, config.to_string()).expect("a writable folder");
        file
    }

    async fn install(&self, (group, version, plural, kind): (&str, &str, &str, &str)) {
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({"metadata": {"name": format!("{plural}.{group}"),
                // Names of Kubernetes' own groups need an approval.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}]}});
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        let path = format!("/apis/{group}/{version}/{plural}");
        wait::until("the custom resource is served", async || {
            let (status, _) = self.ask(Method::GET, &path, ADMIN, None).await?;
            wait::expect(status == StatusCode::OK, || status.to_string())
        })
        .await;
    }

    /// Creates an object.
    pub async fn post(&self, path: &str, object: Value) -> Value {
        self.change(Method::POST, path, Some(object)).await
    }

    /// Replaces an object, whatever it was.
    pub async fn put(&self, path: &str, object: Value) -> Value {
        self.change(Method::PUT, path, Some(object)).await
    }

    /// Changes what a kubelet would report of an object.
    pub async fn patch_status(&self, path: &str, status: Value) {
        let path = format!("{path}/status");
        self.change(Method::PATCH, &path, Some(json!({"status": status}))).await;
    }

    /// Removes an object.
    pub async fn delete(&self, path: &str) {
        self.change(Method::DELETE, path, None).await;
    }

    /// How many requests with this verb, such as `LIST`, it has answered for this resource since it started, by its own metrics.
    pub async fn requests(&self, verb: &str, resource: &str) -> u64 {
        let (status, metrics) = self.response(Method::GET, "/metrics", ADMIN, None).await.expect("an answer");
        assert_eq!(status, StatusCode::OK);
        let metrics = String::from_utf8_lossy(&metrics);
        let conditions = [format!("resource=\"{resource}\""), format!("verb=\"{verb}\"")];
        let lines = metrics.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        let own = lines.filter(|line| conditions.iter().all(|condition| line.contains(condition)));
        own.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    }

    async fn change(&self, method: Method, path: &str, object: Option<Value>) -> Value {
        let (status, body) = self.ask(method.clone(), path, ADMIN, object).await.expect("an answer");
        assert!(status.is_success(), "{method} {path}: {status}: {body}");
        body
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        token: &str,
        object: Option<Value>,
    ) -> Result<(StatusCode, Value), String> {
        let (status, body) = self.response(method, path, token, object).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn response(
        &self,
        method: Method,
        path: &str,
        token: &str,
        object: Option<Value>,
    ) -> Result<(StatusCode, Bytes), String> {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(self.ca()).map_err(|error| error.to_string())?;
        roots.add(ca).map_err(|error| error.to_string())?;
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream =
            TcpStream::connect(("127.0.0.1", self.ports[0])).await.map_err(|error| error.to_string())?;
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = TlsConnector::from(Arc::new(config));
        let stream = tls.connect(name, stream).await.map_err(|error| error.to_string())?;
        let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let content_type = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", content_type)
            .body(Body::from(object.map_or(String::new(), |object| object.to_string())))
            .expect("a request");
        let response = client.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok((status, body))
    }
}

fn assets() -> PathBuf {
    let folder =
        std::env::var_os("KUBEBUILDER_ASSETS").expect("KUBEBUILDER_ASSETS: cargo xtask test kubernetes");
    PathBuf::from(folder)
}
