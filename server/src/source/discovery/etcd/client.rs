//! One question to etcd's JSON gateway over HTTP, within bounds of time and size, or in words why there is no answer.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use axum::http::{HeaderValue, Request, StatusCode};

use super::wire::Refusal;
use crate::config::{Discovery, InvalidOption};
use crate::source::Failed;
use crate::source::http_tls::client_config;
use crate::source::nats::tls::find as find_tls;

/// How long an answer may take.
const WITHIN: Duration = Duration::from_secs(5);
/// Largest answer: a page of entries, most of which have a few kilobytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Most of a refusal that is read or shown.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// A client for all servers of a cluster.
pub(super) struct Client {
    http: HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: Option<HeaderValue>,
}

impl Client {
    pub(super) fn new(options: &Discovery) -> Result<Self, InvalidOption> {
        let ca = options.discovery_tls_ca.as_deref().map(|path| ("--discovery-tls-ca", path));
        let certificate = options.discovery_tls_cert.as_deref();
        let identity = certificate.zip(options.discovery_tls_key.as_deref());
        let identity = identity
            .map(|(certificate, key)| [("--discovery-tls-cert", certificate), ("--discovery-tls-key", key)]);
        let tls = client_config(ca, identity)?;
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { http: HyperClient::builder(TokioExecutor::new()).build(connector), token: None })
    }

    /// Sends this token from now on.
    pub(super) fn authorize(&mut self, token: Option<HeaderValue>) {
        self.token = token;
    }

    /// Asks once.
    pub(super) async fn ask<A: DeserializeOwned>(
        &self,
        server: &Url,
        path: &str,
        question: &impl Serialize,
    ) -> Result<A, Failed> {
        let asked = async {
            let body = self.begin(server, path, question).await?;
            let body = axum::body::to_bytes(body, MAX_ANSWER_BYTES).await;
            let body = body.map_err(|error| broken(server, &error))?;
            serde_json::from_slice(&body).map_err(|error| strange(server, &error))
        };
        tokio::time::timeout(WITHIN, asked).await.unwrap_or_else(|_| Err(silent(server)))
    }

    /// Asks what is answered line by line, for as long as one likes.
    pub(super) async fn lines(
        &self,
        server: &Url,
        path: &str,
        question: &impl Serialize,
    ) -> Result<Lines, Failed> {
        let body = tokio::time::timeout(WITHIN, self.begin(server, path, question)).await;
        let body = body.unwrap_or_else(|_| Err(silent(server)))?;
        Ok(Lines { server: server.clone(), body, read: BytesMut::new(), searched: 0 })
    }

    async fn begin(&self, server: &Url, path: &str, question: &impl Serialize) -> Result<Body, Failed> {
        let question = serde_json::to_vec(question).map_err(|error| strange(server, &error))?;
        let mut url = server.clone();
        url.set_path(path);
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("radixscope/", env!("CARGO_PKG_VERSION")));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        let request = request.body(Full::from(question)).map_err(|error| {
            Failed::refused(format!("{server} is no address of an HTTP server: {error}."))
        })?;
        let response = self.http.request(request).await.map_err(|error| unreachable(server, &error))?;
        let (parts, body) = response.into_parts();
        if parts.status == StatusCode::OK {
            return Ok(Body::new(body));
        }
        let said = axum::body::to_bytes(Body::new(body), MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let refusal: Refusal = serde_json::from_slice(&said).unwrap_or_default();
        let text = String::from_utf8_lossy(&said);
        let words = if refusal.words().is_empty() { text.trim() } else { refusal.words() };
        Err(refused(server, parts.status, words))
    }
}

/// Lines of an answer that goes on.
pub(super) struct Lines {
    server: Url,
    body: Body,
    read: BytesMut,
    /// Bytes in which there is no line feed.
    searched: usize,
}

impl Lines {
    /// The next line. Cancel-safe.
    pub(super) async fn next<A: DeserializeOwned>(&mut self) -> Result<A, Failed> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.read[self.searched..]) {
                let line = self.read.split_to(self.searched + at);
                self.read.advance(1);
                self.searched = 0;
                return serde_json::from_slice(&line).map_err(|error| strange(&self.server, &error));
            }
            self.searched = self.read.len();
            if self.read.len() > MAX_ANSWER_BYTES {
                let words = format!("{} sends a line without end; is it etcd?", self.server);
                return Err(Failed::refused(words));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(broken(&self.server, &error)),
                None => return Err(Failed::connecting(format!("{} ended the connection.", self.server))),
            }
        }
    }
}

fn silent(server: &Url) -> Failed {
    Failed::connecting(format!(
        "{server} does not answer within {} s. Check the address, and whether a firewall or network policy is in the way.",
        WITHIN.as_secs()
    ))
}

fn broken(server: &Url, error: &dyn std::fmt::Display) -> Failed {
    Failed::connecting(format!("The response of {server} ended early: {error}."))
}

fn strange(server: &Url, error: &serde_json::Error) -> Failed {
    Failed::refused(format!(
        "What {server} answers is not the JSON of etcd ({error}). Is it etcd's client port (2379)?"
    ))
}

fn refused(server: &Url, status: StatusCode, said: &str) -> Failed {
    let login = "--discovery-user and --discovery-password (RADIXSCOPE_DISCOVERY_USER, …_PASSWORD)";
    let said: String = said.chars().take(200).collect();
    if said.contains("authentication is not enabled") {
        return Failed::refused(format!("{server} has no authentication; remove {login}."));
    }
    if said.contains("user name is empty") {
        return Failed::refused(format!("{server} asks for a login: give {login}."));
    }
    if said.contains("authentication failed") {
        return Failed::refused(format!("{server} refuses the login. Check {login}."));
    }
    if said.contains("permission denied") {
        return Failed::refused(format!(
            "{server} lets this user not read Dynamo's keys: grant it to read the prefix v1/ (etcdctl role grant-permission \
             ROLE --prefix=true read v1/)."
        ));
    }
    if said.contains("CommonName") {
        return Failed::refused(format!(
            "{server} takes a certificate over its JSON gateway only without a common name. Use one whose subject is empty (a \
             name under subjectAltName does no harm), or a listener that asks for a password instead."
        ));
    }
    match status {
        StatusCode::NOT_FOUND => Failed::refused(format!(
            "{server} does not have etcd's JSON gateway (404). Is it etcd 3.4 or later, its client port (2379), and without \
             --enable-grpc-gateway=false?"
        )),
        _ if said.is_empty() => Failed::connecting(format!("{server} answers {status}.")),
        _ => Failed::connecting(format!("{server} answers {status}: {said}.")),
    }
}

fn unreachable(server: &Url, error: &hyper_util::client::legacy::Error) -> Failed {
    let mut cause: &dyn std::error::Error = error;
    let mut is_refused = false;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        let io = cause.downcast_ref::<io::Error>();
        is_refused |= io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
    }
    if let Some(tls) = find_tls(error) {
        return Failed::refused(format!(
            "TLS with {server} fails: {tls}. Name the authority that signed its certificate with --discovery-tls-ca, and if \
             it asks for a certificate of ours give --discovery-tls-cert and --discovery-tls-key; if it speaks no TLS, write \
             etcd:// instead of etcds://."
        ));
    }
    if is_refused {
        return Failed::connecting(format!(
            "Nothing listens at {server}. Does etcd run there, and is it the address of ETCD_ENDPOINTS?"
        ));
    }
    if error.is_connect() {
        return Failed::connecting(format!(
            "{server} cannot be reached: {cause}. Check --discovery (RADIXSCOPE_DISCOVERY)."
        ));
    }
    let hint = if server.scheme() == "http" { " If it speaks TLS only, write etcds://." } else { "" };
    Failed::connecting(format!("{server} was asked and did not answer as HTTP does: {cause}.{hint}"))
}
