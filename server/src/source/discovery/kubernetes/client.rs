//! Questions to Kubernetes' API, lists and watches only, or in words why there is no response.
//!
//! Not the crate `kube`: with `k8s-openapi` it brings 40 crates for two requests, and bounds neither a response nor a line of a
//! watch.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use axum::http::header::{ACCEPT, AUTHORIZATION};
use axum::http::{HeaderValue, Request, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use radixscope_dynamo::discovery::kubernetes::status;
use radixscope_dynamo::discovery::pieces::{Array, Limits, Splitter};
use radixscope_dynamo::error::DecodeError;
use url::Url;

use super::super::budget::{MAX_OBJECT_BYTES, Pass};
use super::super::http::{Http, NoResponse, Parts, WITHIN};
use super::Ended;
use crate::config::{Discovery, InvalidOption, KubernetesAt};
use crate::source::SourceStatus;
use crate::source::http_tls::client_config;

/// Where a pod finds what its service account is given.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Objects of a page: a worker's resource has some kilobytes, at most 1.5 MiB.
const PAGE: &str = "100";
/// The objects of a list.
const ITEMS: Array = Array { field: "\"items\"", depth: 1 };
/// An object, or a line of a watch around one.
const LIMITS: Limits = Limits { text_bytes: MAX_OBJECT_BYTES, piece_bytes: MAX_OBJECT_BYTES + 1024 };
/// How long a watch lasts; the next begins where it ended. A dead connection is noticed so late.
pub(super) const WATCH_S: u64 = 30;
/// What to apply where something may not be read.
const COMPONENT: &str =
    "the component kubernetes-discovery of deploy/kubernetes (kubernetesDiscovery.enabled of the chart)";

/// A kind of object that is read.
#[derive(Clone, Copy)]
pub(super) struct Resource {
    pub(super) name: &'static str,
    group: &'static str,
    version: &'static str,
    /// Only objects with this label.
    selector: Option<&'static str>,
}

/// What a process registered, in a resource that is named after its pod.
pub(super) const WORKERS: Resource =
    Resource { name: "dynamoworkermetadatas", group: "nvidia.com", version: "v1alpha1", selector: None };
/// Which pods are ready: those of Dynamo's services, by the label that Dynamo's own processes ask for. Its source names another
/// one too, which its client drops before it asks.
pub(super) const SLICES: Resource = Resource {
    name: "endpointslices",
    group: "discovery.k8s.io",
    version: "v1",
    selector: Some("nvidia.com/dynamo-discovery-enabled=true"),
};

/// A client for one namespace.
pub(super) struct Client {
    http: Http,
    api: Url,
    pub(super) namespace: String,
    token_file: Option<PathBuf>,
}

impl Client {
    pub(super) fn new(at: &KubernetesAt, options: &Discovery) -> Result<Self, InvalidOption> {
        let bad = |why: String| InvalidOption::new(format!("--discovery {at}"), why);
        let mut ca = options.discovery_tls_ca.as_deref().map(|path| ("--discovery-tls-ca", path));
        let mut token_file = options.discovery_token_file.clone();
        let account = Path::new(ACCOUNT);
        let of_cluster = account.join("ca.crt");
        let api = match &at.api {
            Some(api) => api.clone(),
            None => {
                ca = ca.or(Some(("the service account's", &of_cluster)));
                token_file = token_file.or_else(|| Some(account.join("token")));
                let variable = |name| env::var(name).unwrap_or_default();
                api(&variable("KUBERNETES_SERVICE_HOST"), &variable("KUBERNETES_SERVICE_PORT"))
                    .map_err(bad)?
            }
        };
        let namespace = match &at.namespace {
            Some(namespace) => namespace.clone(),
            None => fs::read_to_string(account.join("namespace"))
                .map(|namespace| namespace.trim().to_owned())
                .map_err(|error| bad(no_account(&account.join("namespace"), &error)))?,
        };
        if let (None, Err(error)) = (&at.api, fs::metadata(ca.map_or(account, |(_, path)| path))) {
            return Err(bad(no_account(account, &error)));
        }
        Ok(Self { http: Http::new(client_config(ca, options.identity())?), api, namespace, token_file })
    }

    /// A part of all objects, behind the one with the continue token `after`, as far as a list may go.
    pub(super) async fn page(&self, of: Resource, after: &str, pass: &Pass) -> Result<Parts, Ended> {
        let mut query = vec![("limit", PAGE)];
        if !after.is_empty() {
            query.push(("continue", after));
        }
        let question = self.question(of, &query).map_err(Ended::Failed)?;
        let splitter = Splitter::new(Some(ITEMS), LIMITS);
        let page = self.http.list(question, splitter, (pass.left_bytes(), pass.until())).await;
        page.map_err(|why| self.ended_by("list", of, why))
    }

    /// What changes from a version on.
    pub(super) async fn watch(&self, of: Resource, version: &str) -> Result<Parts, Ended> {
        let lasts = WATCH_S.to_string();
        let question = self.question(
            of,
            &[
                ("watch", "true"),
                ("allowWatchBookmarks", "true"),
                ("resourceVersion", version),
                ("timeoutSeconds", &lasts),
            ],
        );
        let question = question.map_err(Ended::Failed)?;
        let lines = self.http.lines(question, Splitter::new(None, LIMITS)).await;
        lines.map_err(|why| self.ended_by("watch", of, why))
    }

    fn question(&self, of: Resource, query: &[(&str, &str)]) -> Result<Request<Full<Bytes>>, SourceStatus> {
        let Resource { name, group, version, selector } = of;
        let mut url = self.api.clone();
        url.set_path(&format!("/apis/{group}/{version}/namespaces/{}/{name}", self.namespace));
        url.query_pairs_mut()
            .extend_pairs(query)
            .extend_pairs(selector.map(|selector| ("labelSelector", selector)));
        let mut request = Request::get(url.as_str()).header(ACCEPT, "application/json");
        if let Some(token) = self.token()? {
            request = request.header(AUTHORIZATION, token);
        }
        request.body(Full::default()).map_err(|error| {
            SourceStatus::refused(format!("{} is no address of an HTTP server: {error}.", self.api))
        })
    }

    /// The token as it is now: it is replaced every hour.
    fn token(&self) -> Result<Option<HeaderValue>, SourceStatus> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let token =
            fs::read_to_string(file).map_err(|error| SourceStatus::refused(no_account(file, &error)))?;
        let token = HeaderValue::try_from(format!("Bearer {}", token.trim()));
        let mut token = token.map_err(|_| {
            SourceStatus::refused(format!("{} holds a token that no header can hold.", file.display()))
        })?;
        token.set_sensitive(true);
        Ok(Some(token))
    }

    /// What is answered is not of Kubernetes.
    pub(super) fn strange(&self, error: &DecodeError) -> SourceStatus {
        SourceStatus::refused(format!(
            "What {} answers is not of Kubernetes' API ({error}). Is it the address of the API server or of kubectl proxy?",
            self.api
        ))
    }

    /// A list is cut before it says from where on to watch.
    pub(super) fn cut(&self, pass: &Pass) -> SourceStatus {
        let (api, detail) = (&self.api, pass.to_text());
        SourceStatus::refused(format!(
            "{detail}, and {api} does not say where to go on; is it Kubernetes' API?"
        ))
    }

    /// The API gave up in its own words.
    pub(super) fn ended(&self, why: &str) -> SourceStatus {
        SourceStatus::connecting(format!("Kubernetes' API at {} ended the response: {why}.", self.api))
    }

    pub(super) fn ended_by(&self, verb: &str, of: Resource, why: NoResponse) -> Ended {
        match why {
            NoResponse::Refused(StatusCode::GONE, _) => Ended::ReadAgain,
            why => Ended::Failed(self.failed(verb, of, why)),
        }
    }

    pub(super) fn failed(&self, verb: &str, of: Resource, why: NoResponse) -> SourceStatus {
        let Self { api, .. } = self;
        match why {
            NoResponse::Silent => SourceStatus::connecting(format!(
                "Kubernetes' API at {api} does not respond within {} s. Check whether a network policy lets Radixscope reach it: \
                 {COMPONENT} does.",
                WITHIN.as_secs()
            )),
            NoResponse::Broken(error) => SourceStatus::connecting(format!(
                "The response of Kubernetes' API at {api} ended early: {error}."
            )),
            NoResponse::Endless => {
                SourceStatus::refused(format!("{api} sends a line without end; is it Kubernetes' API?"))
            }
            NoResponse::Ended => {
                SourceStatus::connecting(format!("Kubernetes' API at {api} ended the connection."))
            }
            NoResponse::Refused(code, text) => self.refused(verb, of, code, &text),
            NoResponse::Tls(tls) => SourceStatus::refused(format!(
                "TLS with Kubernetes' API at {api} fails: {tls}. Name the authority that signed its certificate with \
                 --discovery-tls-ca."
            )),
            NoResponse::NothingListens => SourceStatus::connecting(format!(
                "Nothing listens at {api}. Does kubectl proxy run, or does the API server listen there?"
            )),
            NoResponse::Unreachable(cause) => SourceStatus::connecting(format!(
                "Kubernetes' API at {api} cannot be reached: {cause}. Check --discovery (RADIXSCOPE_DISCOVERY)."
            )),
            NoResponse::NotHttp(cause) => {
                SourceStatus::connecting(format!("{api} was asked and did not answer as HTTP does: {cause}."))
            }
        }
    }

    fn refused(&self, verb: &str, of: Resource, code: StatusCode, text: &[u8]) -> SourceStatus {
        let Self { api, namespace, .. } = self;
        let Resource { name, group, version, .. } = of;
        let message = status(text).message;
        let text = if message.is_empty() { String::new() } else { format!(" It says: {message}.") };
        match code {
            StatusCode::UNAUTHORIZED => SourceStatus::refused(format!(
                "Kubernetes' API at {api} does not accept the token (401).{text} Apply {COMPONENT}, which mounts one; outside a \
                 cluster use kubectl proxy or --discovery-token-file."
            )),
            StatusCode::FORBIDDEN => SourceStatus::refused(format!(
                "Radixscope may not {verb} {name} of {group} in the namespace {namespace} (403).{text} Apply {COMPONENT}: its \
                 role allows get, list and watch."
            )),
            StatusCode::NOT_FOUND if name == WORKERS.name => SourceStatus::refused(format!(
                "Kubernetes has no resource {name} of {group}/{version} (404): Dynamo's CRDs are not installed, or are of another \
                 version. If Dynamo uses another discovery backend (DYN_DISCOVERY_BACKEND), name that with --discovery, as \
                 etcd://HOST:2379."
            )),
            _ => SourceStatus::connecting(format!("Kubernetes' API at {api} answers {code}.{text}")),
        }
    }
}

/// The API server of the cluster, as Kubernetes tells every pod.
fn api(host: &str, port: &str) -> Result<Url, String> {
    if host.is_empty() {
        return Err("this is no pod of Kubernetes (KUBERNETES_SERVICE_HOST is not set). Elsewhere run kubectl proxy and give \
                    --discovery kubernetes:NAMESPACE@http://127.0.0.1:8001"
            .to_owned());
    }
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let port = if port.is_empty() { "443" } else { port };
    Url::parse(&format!("https://{host}:{port}"))
        .map_err(|error| format!("KUBERNETES_SERVICE_HOST and _PORT: {error}"))
}

fn no_account(file: &Path, error: &io::Error) -> String {
    format!(
        "{} cannot be read ({error}). A pod needs its service account's token (automountServiceAccountToken): apply {COMPONENT}.",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_where_kubernetes_says() {
        assert_eq!(api("10.0.0.1", "443").unwrap().as_str(), "https://10.0.0.1/");
        assert_eq!(api("fd00::1", "").unwrap().as_str(), "https://[fd00::1]/");
        assert_eq!(
            api("kubernetes.default.svc", "6443").unwrap().as_str(),
            "https://kubernetes.default.svc:6443/"
        );
        assert!(api("", "443").unwrap_err().contains("kubectl proxy"));
    }
}
