//! One question to etcd's JSON gateway, or in words why there is no answer.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::super::http::{self, Http, NoAnswer, WITHIN};
use super::wire::Refusal;
use crate::config::{Discovery, InvalidOption};
use crate::source::Failed;
use crate::source::http_tls;

/// A client for all servers of a cluster.
pub(super) struct Client {
    http: Http,
    token: Option<HeaderValue>,
}

impl Client {
    pub(super) fn new(options: &Discovery) -> Result<Self, InvalidOption> {
        let ca = options.discovery_tls_ca.as_deref().map(|path| ("--discovery-tls-ca", path));
        let tls = http_tls::client_config(ca, options.identity())?;
        Ok(Self { http: Http::new(tls), token: None })
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
        let answer = self.http.ask(self.question(server, path, question)?).await;
        let answer = answer.map_err(|why| failed(server, why))?;
        serde_json::from_slice(&answer).map_err(|error| strange(server, &error))
    }

    /// Asks what is answered line by line, for as long as one likes.
    pub(super) async fn lines(
        &self,
        server: &Url,
        path: &str,
        question: &impl Serialize,
    ) -> Result<Lines, Failed> {
        let lines = self.http.lines(self.question(server, path, question)?).await;
        let lines = lines.map_err(|why| failed(server, why))?;
        Ok(Lines { server: server.clone(), lines })
    }

    fn question(
        &self,
        server: &Url,
        path: &str,
        question: &impl Serialize,
    ) -> Result<Request<Full<Bytes>>, Failed> {
        let question = serde_json::to_vec(question).map_err(|error| strange(server, &error))?;
        let mut url = server.clone();
        url.set_path(path);
        let mut request = Request::post(url.as_str()).header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        request
            .body(Full::from(question))
            .map_err(|error| Failed::refused(format!("{server} is no address of an HTTP server: {error}.")))
    }
}

/// Lines of an answer that goes on.
pub(super) struct Lines {
    server: Url,
    lines: http::Lines,
}

impl Lines {
    /// The next line. Cancel-safe.
    pub(super) async fn next<A: DeserializeOwned>(&mut self) -> Result<A, Failed> {
        let line = self.lines.next().await.map_err(|why| failed(&self.server, why))?;
        serde_json::from_slice(&line).map_err(|error| strange(&self.server, &error))
    }
}

fn failed(server: &Url, why: NoAnswer) -> Failed {
    match why {
        NoAnswer::Silent => Failed::connecting(format!(
            "{server} does not answer within {} s. Check the address, and whether a firewall or network policy is in the way.",
            WITHIN.as_secs()
        )),
        NoAnswer::Broken(error) => {
            Failed::connecting(format!("The response of {server} ended early: {error}."))
        }
        NoAnswer::Endless => Failed::refused(format!("{server} sends a line without end; is it etcd?")),
        NoAnswer::Ended => Failed::connecting(format!("{server} ended the connection.")),
        NoAnswer::Refused(status, said) => {
            let refusal: Refusal = serde_json::from_slice(&said).unwrap_or_default();
            let text = String::from_utf8_lossy(&said);
            let words = if refusal.words().is_empty() { text.trim() } else { refusal.words() };
            refused(server, status, words)
        }
        NoAnswer::Tls(tls) => Failed::refused(format!(
            "TLS with {server} fails: {tls}. Name the authority that signed its certificate with --discovery-tls-ca, and if \
             it asks for a certificate of ours give --discovery-tls-cert and --discovery-tls-key; if it speaks no TLS, write \
             etcd:// instead of etcds://."
        )),
        NoAnswer::NothingListens => Failed::connecting(format!(
            "Nothing listens at {server}. Does etcd run there, and is it the address of ETCD_ENDPOINTS?"
        )),
        NoAnswer::Unreachable(cause) => Failed::connecting(format!(
            "{server} cannot be reached: {cause}. Check --discovery (RADIXSCOPE_DISCOVERY)."
        )),
        NoAnswer::NotHttp(cause) => {
            let hint = if server.scheme() == "http" { " If it speaks TLS only, write etcds://." } else { "" };
            Failed::connecting(format!("{server} was asked and did not answer as HTTP does: {cause}.{hint}"))
        }
    }
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
