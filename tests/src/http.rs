//! A small HTTP client that shows a test exactly what came back: status, headers, bytes.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::wait;

/// A response.
#[derive(Debug)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, as sent: compressed if the response says so.
    pub body: Bytes,
}

impl HttpResponse {
    /// A header's value, "" if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("our headers are text"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text body")
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}), status {}: {:?}", self.status, self.body))
    }
}

/// Sends requests, a connection each.
#[derive(Clone)]
pub struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Default for Http {
    fn default() -> Self {
        // No connection is kept: a server that was killed and started again must not be met on a dead one.
        Self { client: Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http() }
    }
}

impl Http {
    /// Sends a request. An error means that there was no response in time.
    pub async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<HttpResponse, String> {
        let mut request = Request::builder().method(method).uri(url).body(Full::from(body)).expect(url);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let answered = wait::at_most(async {
            let (parts, body) = self.client.request(request).await.map_err(|e| e.to_string())?.into_parts();
            let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
            Ok(HttpResponse { status: parts.status.as_u16(), headers: parts.headers, body })
        });
        answered.await.and_then(|response| response).map_err(|e| format!("{url}: {e}"))
    }

    /// `GET`.
    pub async fn get(&self, url: &str) -> Result<HttpResponse, String> {
        self.send(Method::GET, url, &[], Vec::new()).await
    }
}
