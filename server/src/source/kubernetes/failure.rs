//! Why Kubernetes' API did not give something, in words for who can change it.

use std::io;

use kube::Error;
use kube::core::Status;
use kube::runtime::watcher;

use super::bounds::{Exceeded, WITHIN};
use super::{Resource, WORKERS};
use crate::source::SourceStatus;
use crate::source::cause::cause;

/// What to apply where something may not be read.
pub(super) const COMPONENT: &str =
    "the component kubernetes-discovery of deploy/kubernetes (kubernetesDiscovery.enabled of the chart)";
/// Longest message of the API that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Describes failures of one API server.
#[derive(Clone, Debug)]
pub(crate) struct Failures {
    /// Its address.
    pub(crate) api: String,
    /// `None`: all.
    pub(crate) namespace: Option<String>,
}

/// What follows a failure.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The version to watch from is no longer kept: the watch lists again.
    Expired,
    /// A page was too long: fewer objects may do.
    TooLong(SourceStatus),
    /// The credentials are no longer accepted: they may have been renewed.
    Credentials(SourceStatus),
    /// Who asks may not.
    Forbidden(SourceStatus),
    /// Kubernetes knows no such kind of object.
    NoSuchResource(SourceStatus),
    Other(SourceStatus),
}

impl Failures {
    /// A watch failed.
    pub(crate) fn of_watch(&self, of: Resource, error: &watcher::Error) -> Failed {
        match error {
            watcher::Error::WatchError(status) => self.of_status("watch", of, status),
            watcher::Error::InitialListFailed(error) => self.of_request("list", of, error),
            watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                self.of_request("watch", of, error)
            }
            watcher::Error::NoResourceVersion => Failed::Other(self.strange("it does not say a version")),
        }
    }

    /// A request failed.
    pub(crate) fn of_request(&self, verb: &str, of: Resource, error: &Error) -> Failed {
        let api = &self.api;
        if let Some(exceeded) = cause::<Exceeded>(error) {
            return match exceeded {
                Exceeded::Silent => Failed::Other(SourceStatus::connecting(format!(
                    "Kubernetes' API at {api} does not respond within {} s. Check whether a network policy lets Radixscope reach \
                     it.",
                    WITHIN.as_secs()
                ))),
                Exceeded::Long | Exceeded::Late => Failed::TooLong(SourceStatus::refused(format!(
                    "The list was cut after {}.",
                    cut_after(*exceeded)
                ))),
                Exceeded::LongLine => Failed::Other(SourceStatus::refused(format!(
                    "{api} sends a line of more than 4 MiB; is it Kubernetes' API?"
                ))),
            };
        }
        if let Some(tls) = cause::<rustls::Error>(error) {
            return Failed::Credentials(SourceStatus::refused(format!(
                "TLS with Kubernetes' API at {api} fails: {tls}. Name the authority that signed its certificate with \
                 --discovery-tls-ca, or in the kubeconfig."
            )));
        }
        match error {
            Error::Api(status) => self.of_status(verb, of, status),
            Error::SerdeError(error) => Failed::Other(self.strange(&error.to_string())),
            Error::FromUtf8(error) => Failed::Other(self.strange(&error.to_string())),
            Error::Auth(error) => Failed::Credentials(SourceStatus::refused(format!(
                "The credentials for Kubernetes' API at {api} cannot be used: {error}."
            ))),
            error => Failed::Other(self.unreachable(error)),
        }
    }

    fn unreachable(&self, error: &Error) -> SourceStatus {
        let api = &self.api;
        let is_refused =
            cause::<io::Error>(error).is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
        if is_refused {
            return SourceStatus::connecting(format!(
                "Nothing listens at {api}. Does kubectl proxy run, or does the API server listen there?"
            ));
        }
        let mut inner: &dyn std::error::Error = error;
        while let Some(deeper) = inner.source() {
            inner = deeper;
        }
        match error {
            Error::Service(_) => {
                SourceStatus::connecting(format!("Kubernetes' API at {api} cannot be reached: {inner}."))
            }
            _ => SourceStatus::connecting(format!(
                "The response of Kubernetes' API at {api} ended early: {inner}."
            )),
        }
    }

    /// What is answered is not of Kubernetes.
    fn strange(&self, why: &str) -> SourceStatus {
        let why: String = why.chars().take(MAX_MESSAGE_CHARS).collect();
        SourceStatus::refused(format!(
            "What {} answers is not of Kubernetes' API ({why}). Is it the address of the API server or of kubectl proxy?",
            self.api
        ))
    }

    fn of_status(&self, verb: &str, of: Resource, status: &Status) -> Failed {
        let (api, Resource { name, group, version }) = (&self.api, of);
        let message: String = status.message.trim().chars().take(MAX_MESSAGE_CHARS).collect();
        let text = if message.is_empty() { String::new() } else { format!(" It says: {message}.") };
        let whose = if group.is_empty() { String::new() } else { format!(" of {group}") };
        match status.code {
            410 => Failed::Expired,
            // What is no response of it has no code.
            0 => Failed::Other(self.strange("it says neither what changed nor why not")),
            401 => Failed::Credentials(SourceStatus::refused(format!(
                "Kubernetes' API at {api} does not accept the token (401).{text} Apply {COMPONENT}, which mounts one; outside a \
                 cluster use --kubernetes, kubectl proxy or --discovery-token-file."
            ))),
            403 => {
                let place = self.namespace.as_ref().map_or_else(
                    || "all namespaces".to_owned(),
                    |namespace| format!("the namespace {namespace}"),
                );
                Failed::Forbidden(SourceStatus::refused(format!(
                    "Radixscope may not {verb} {name}{whose} in {place} (403).{text} Grant it: radixscope sources --kubernetes \
                     prints the command; in the cluster apply {COMPONENT}, whose role allows get, list and watch."
                )))
            }
            404 if of == WORKERS => Failed::NoSuchResource(SourceStatus::refused(format!(
                "Kubernetes has no resource {name} of {group}/{version} (404): Dynamo's CRDs are not installed, or are of another \
                 version. If Dynamo uses another discovery backend (DYN_DISCOVERY_BACKEND), name that with --discovery, as \
                 etcd://HOST:2379."
            ))),
            404 => Failed::NoSuchResource(SourceStatus::refused(format!(
                "Kubernetes has no resource {name}{whose} in {version} (404)."
            ))),
            code => Failed::Other(SourceStatus::connecting(format!(
                "Kubernetes' API at {api} answers {code}.{text}"
            ))),
        }
    }
}

fn cut_after(exceeded: Exceeded) -> &'static str {
    match exceeded {
        Exceeded::Long | Exceeded::LongLine => "8 MiB, the most of a response",
        Exceeded::Late | Exceeded::Silent => "60 s",
    }
}

impl Failed {
    /// How it is shown.
    pub(crate) fn status(self) -> SourceStatus {
        match self {
            Self::Expired => SourceStatus::connecting(
                "Kubernetes' API no longer keeps the version of the list.".to_owned(),
            ),
            Self::TooLong(status)
            | Self::Credentials(status)
            | Self::Forbidden(status)
            | Self::NoSuchResource(status)
            | Self::Other(status) => status,
        }
    }

    /// In words.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Expired => "Kubernetes' API no longer keeps the version of the list.".to_owned(),
            Self::TooLong(status)
            | Self::Credentials(status)
            | Self::Forbidden(status)
            | Self::NoSuchResource(status)
            | Self::Other(status) => status.detail.clone(),
        }
    }
}
