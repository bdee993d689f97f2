//! Requests to etcd's JSON gateway, and descriptions of failures.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use radixscope_dynamo::discovery::pieces::{DocumentPart, Piece, Skipped, Splitter};

use super::super::budget::{Pass, size};
use super::super::http::{Http, NoResponse, Parts, WITHIN};
use super::wire::{self, RangeRequest, Refusal, WatchRequest};
use crate::config::{Discovery, InvalidOption};
use crate::source::SourceStatus;
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
    ) -> Result<A, SourceStatus> {
        let response = self.http.ask(self.question(server, path, json(server, question)?)?).await;
        let response = response.map_err(|why| failed(server, why))?;
        serde_json::from_slice(&response).map_err(|error| strange(server, &error))
    }

    /// Asks for a page of entries, of which no more than `max_bytes` are read.
    pub(super) async fn page(
        &self,
        server: &Url,
        request: &RangeRequest,
        (max_bytes, pass): (u64, &Pass),
    ) -> Result<EtcdResponse, SourceStatus> {
        let question = self.question(server, "/v3/kv/range", json(server, request)?)?;
        let splitter = Splitter::new(Some(wire::KVS), wire::LIMITS);
        let parts = self.http.list(question, splitter, (max_bytes, pass.until())).await;
        Ok(EtcdResponse { server: server.clone(), parts: parts.map_err(|why| failed(server, why))? })
    }

    /// Asks for changes, for as long as one likes.
    pub(super) async fn watch(
        &self,
        server: &Url,
        requests: &[WatchRequest],
    ) -> Result<EtcdResponse, SourceStatus> {
        let mut body = Vec::new();
        for request in requests {
            body.extend(json(server, request)?);
            body.push(b'\n');
        }
        let splitter = Splitter::new(Some(wire::EVENTS), wire::LIMITS);
        let parts = self.http.lines(self.question(server, "/v3/watch", body)?, splitter).await;
        Ok(EtcdResponse { server: server.clone(), parts: parts.map_err(|why| failed(server, why))? })
    }

    fn question(
        &self,
        server: &Url,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Request<Full<Bytes>>, SourceStatus> {
        let mut url = server.clone();
        url.set_path(path);
        let mut request = Request::post(url.as_str()).header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        request.body(Full::from(body)).map_err(|error| {
            SourceStatus::refused(format!("{server} is no address of an HTTP server: {error}."))
        })
    }
}

fn json(server: &Url, question: &impl Serialize) -> Result<Vec<u8>, SourceStatus> {
    serde_json::to_vec(question).map_err(|error| strange(server, &error))
}

/// A response that is taken apart as it arrives.
pub(super) struct EtcdResponse {
    server: Url,
    parts: Parts,
}

impl EtcdResponse {
    /// The next part; `None`: the response is longer than is read. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<DocumentPart>, SourceStatus> {
        match self.parts.next().await {
            Ok(part) => Ok(Some(part)),
            Err(NoResponse::Endless) => Ok(None),
            Err(why) => Err(failed(&self.server, why)),
        }
    }

    /// What was received of it so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.parts.received_bytes()
    }

    /// The entry in the middle of which reading stopped.
    pub(super) fn unfinished(&self) -> Option<Piece> {
        self.parts.splitter().unfinished()
    }

    /// Reads a part, and gives its length if its value is left out.
    pub(super) fn read<A: DeserializeOwned>(&self, piece: &Piece) -> Result<(A, Option<u64>), SourceStatus> {
        let read = serde_json::from_slice(&piece.json).map_err(|error| strange(&self.server, &error))?;
        Ok((read, (piece.left_out != Skipped::Nothing).then_some(piece.bytes)))
    }

    /// It cannot be followed because of what is in it.
    pub(super) fn endless(&self) -> SourceStatus {
        let received = size(self.received_bytes());
        SourceStatus::refused(format!(
            "{} sent {received} in one response without the end of an entry; is it etcd?",
            self.server
        ))
    }

    /// Its entries are not in the order of their keys.
    pub(super) fn unordered(&self) -> SourceStatus {
        SourceStatus::refused(format!(
            "{} sends entries that were not requested, or not in the order of their keys; is it etcd?",
            self.server
        ))
    }
}

fn failed(server: &Url, why: NoResponse) -> SourceStatus {
    match why {
        NoResponse::Silent => SourceStatus::connecting(format!(
            "{server} did not respond within {} s. Check the address, firewalls and network policies.",
            WITHIN.as_secs()
        )),
        NoResponse::Broken(error) => {
            SourceStatus::connecting(format!("The response of {server} ended early: {error}."))
        }
        NoResponse::Endless => SourceStatus::refused(format!("{server} sends an endless line; is it etcd?")),
        NoResponse::Ended => SourceStatus::connecting(format!("{server} closed the connection.")),
        NoResponse::Refused(status, body) => {
            let refusal: Refusal = serde_json::from_slice(&body).unwrap_or_default();
            let text = String::from_utf8_lossy(&body);
            let detail = if refusal.to_text().is_empty() { text.trim() } else { refusal.to_text() };
            refused(server, status, detail)
        }
        NoResponse::Tls(tls) => SourceStatus::refused(format!(
            "TLS with {server} fails: {tls}. Set --discovery-tls-ca to the CA that signed its certificate, and if it requires a \
             client certificate, --discovery-tls-cert and --discovery-tls-key; if it does not use TLS, use etcd:// instead of \
             etcds://."
        )),
        NoResponse::NothingListens => SourceStatus::connecting(format!(
            "Nothing listens at {server}. Does etcd run there, and is it the address of ETCD_ENDPOINTS?"
        )),
        NoResponse::Unreachable(cause) => SourceStatus::connecting(format!(
            "{server} cannot be reached: {cause}. Check --discovery (RADIXSCOPE_DISCOVERY)."
        )),
        NoResponse::NotHttp(cause) => {
            let hint = if server.scheme() == "http" { " If it only accepts TLS, use etcds://." } else { "" };
            SourceStatus::connecting(format!("{server} does not respond with valid HTTP: {cause}.{hint}"))
        }
    }
}

fn strange(server: &Url, error: &serde_json::Error) -> SourceStatus {
    SourceStatus::refused(format!(
        "{server} does not return etcd's JSON ({error}). Is it etcd's client port (2379)?"
    ))
}

fn refused(server: &Url, status: StatusCode, body: &str) -> SourceStatus {
    let login = "--discovery-user and --discovery-password (RADIXSCOPE_DISCOVERY_USER, …_PASSWORD)";
    let body: String = body.chars().take(200).collect();
    if body.contains("authentication is not enabled") {
        return SourceStatus::refused(format!("{server} has no authentication; remove {login}."));
    }
    if body.contains("user name is empty") {
        return SourceStatus::refused(format!("{server} requires authentication: set {login}."));
    }
    if body.contains("authentication failed") {
        return SourceStatus::refused(format!("{server} rejects the login. Check {login}."));
    }
    if body.contains("permission denied") {
        return SourceStatus::refused(format!(
            "{server} denies this user access to Dynamo's keys: grant read access to the prefix v1/ (etcdctl role \
             grant-permission ROLE --prefix=true read v1/)."
        ));
    }
    if body.contains("CommonName") {
        return SourceStatus::refused(format!(
            "{server} accepts client certificates over its JSON gateway only without a common name. Use one with an empty subject \
             (subjectAltName is allowed), or password authentication."
        ));
    }
    match status {
        StatusCode::NOT_FOUND => SourceStatus::refused(format!(
            "{server} does not have etcd's JSON gateway (404). Is it etcd 3.4 or later, its client port (2379), and without \
             --enable-grpc-gateway=false?"
        )),
        _ if body.is_empty() => SourceStatus::connecting(format!("{server} responds with {status}.")),
        _ => SourceStatus::connecting(format!("{server} responds with {status}: {body}.")),
    }
}
