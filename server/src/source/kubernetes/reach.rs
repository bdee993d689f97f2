//! How Kubernetes' API is reached: as in a pod, at a given address, or as kubectl does by its kubeconfig.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, KubeconfigError};
use kube::{Client, Config};
use rustls::crypto::ring;

use super::bounds::Bounds;
use super::failure::COMPONENT;
use crate::config::{Discovery, InvalidOption, KubernetesAt};
use crate::source::SourceStatus;
use crate::source::http_tls::certificates;

/// Where a pod finds what its service account is given.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a plugin that provides credentials may take: it may ask a cloud, and that a person.
const PLUGIN_WITHIN: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    by: By,
    /// The address of the API, as it is shown.
    shown: String,
}

#[derive(Clone, Debug)]
enum By {
    /// Given with options, or a pod's. The token is read from the file each time.
    Options { config: Box<Config>, token_file: Option<PathBuf> },
    /// A kubeconfig.
    Kubeconfig { context: Option<String> },
}

impl Reach {
    /// As `--discovery kubernetes` says, and the namespace.
    pub(crate) fn of_options(
        at: &KubernetesAt,
        options: &Discovery,
    ) -> Result<(Self, String), InvalidOption> {
        let bad = |why: String| InvalidOption::new(format!("--discovery {at}"), why);
        let namespace_file = Path::new(ACCOUNT).join("namespace");
        let namespace = match &at.namespace {
            Some(namespace) => namespace.clone(),
            None if at.api.is_none() && !is_pod() => return Err(bad(NO_POD.to_owned())),
            None => fs::read_to_string(&namespace_file)
                .map(|namespace| namespace.trim().to_owned())
                .map_err(|error| bad(unreadable(&namespace_file, &error)))?,
        };
        let mut config = match &at.api {
            Some(api) => Config::new(api.as_str().parse().map_err(|error| bad(format!("{api}: {error}")))?),
            None => in_pod().map_err(bad)?,
        };
        if let Some(path) = options.discovery_tls_ca.as_deref() {
            let roots = certificates("--discovery-tls-ca", path)?;
            config.root_cert = Some(roots.iter().map(|root| root.to_vec()).collect());
            config.root_cert_file = None;
        }
        if let Some([(_, certificate), (_, key)]) = options.identity() {
            let shown = |path: &Path| Some(path.display().to_string());
            config.auth_info.client_certificate = shown(certificate);
            config.auth_info.client_key = shown(key);
        }
        let of_account = config.auth_info.token_file.take().map(PathBuf::from);
        let token_file = options.discovery_token_file.clone().or(of_account);
        let shown = config.cluster_url.to_string();
        Ok((Self { by: By::Options { config: Box::new(config), token_file }, shown }, namespace))
    }

    /// As kubectl does, or as in a pod where there is no kubeconfig; and the namespace there.
    pub(crate) async fn as_kubectl(context: Option<String>) -> Result<(Self, String), InvalidOption> {
        let by = By::Kubeconfig { context };
        match config(&by).await {
            Ok(config) => {
                let shown = config.cluster_url.to_string();
                Ok((Self { by, shown }, config.default_namespace))
            }
            Err(_) if matches!(&by, By::Kubeconfig { context: None }) && is_pod() => {
                Self::of_options(&KubernetesAt::default(), &Discovery::default())
            }
            Err(why) => Err(InvalidOption::new("--kubernetes", why)),
        }
    }

    /// The address of the API without a slash at its end.
    pub(crate) fn shown(&self) -> &str {
        self.shown.trim_end_matches('/')
    }

    /// Whether this is a pod of the cluster, so that addresses of pods can be connected to.
    pub(crate) fn is_inside(&self) -> bool {
        is_pod() && !matches!(self.by, By::Kubeconfig { .. })
    }

    /// A client with the credentials as they are now.
    pub(crate) async fn connect(&self) -> Result<Client, SourceStatus> {
        // Which one it would be is not clear to the library where several are built in.
        let _ = ring::default_provider().install_default();
        let mut config = config(&self.by).await.map_err(SourceStatus::refused)?;
        config.connect_timeout = Some(super::bounds::WITHIN);
        // Failures are shown, and tried again, by who asks.
        config.default_retry = false;
        // It may run a plugin and wait for it.
        let built = tokio::task::spawn_blocking(move || ClientBuilder::try_from(config));
        let built = tokio::time::timeout(PLUGIN_WITHIN, built).await;
        match built {
            Ok(Ok(Ok(builder))) => Ok(builder.with_layer(&Bounds::default()).build()),
            Ok(Ok(Err(error))) => Err(SourceStatus::refused(format!(
                "The credentials for Kubernetes' API at {} cannot be used: {error}.",
                self.shown()
            ))),
            Ok(Err(error)) => Err(SourceStatus::connecting(format!("Kubernetes' client ended: {error}."))),
            Err(_) => Err(SourceStatus::connecting(format!(
                "The plugin that the kubeconfig names for credentials did not end within {} s.",
                PLUGIN_WITHIN.as_secs()
            ))),
        }
    }
}

/// What a client is made of, as it is now.
async fn config(by: &By) -> Result<Config, String> {
    match by {
        By::Options { config, token_file } => {
            let mut config = Config::clone(config);
            if let Some(file) = token_file {
                let token = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
                // The client reads the file again each minute, and sends all of it.
                match token.trim_end() == token {
                    true => config.auth_info.token_file = Some(file.display().to_string()),
                    false => config.auth_info.token = Some(token.trim_end().to_owned().into()),
                }
            }
            Ok(config)
        }
        By::Kubeconfig { context } => {
            let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&options).await.map_err(|error| match error {
                KubeconfigError::ReadConfig(error, path) => format!(
                    "{} cannot be read ({error}), and this is no pod. Set KUBECONFIG, or run it in the cluster: radixscope deploy \
                     --kubernetes prints what to apply.",
                    path.display()
                ),
                KubeconfigError::LoadContext(name) => {
                    format!("the kubeconfig has no context {name:?}; kubectl config get-contexts lists them.")
                }
                KubeconfigError::CurrentContextNotSet => {
                    "the kubeconfig has no current context; name one with --context.".to_owned()
                }
                error => format!("the kubeconfig cannot be used: {error}."),
            })
        }
    }
}

/// What is said outside a pod.
const NO_POD: &str = "this is no pod of Kubernetes (KUBERNETES_SERVICE_HOST is not set). Elsewhere use --kubernetes, which reads the \
                      kubeconfig, or run kubectl proxy and give --discovery kubernetes:NAMESPACE@http://127.0.0.1:8001";

fn is_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
}

fn in_pod() -> Result<Config, String> {
    if !is_pod() {
        return Err(NO_POD.to_owned());
    }
    Config::incluster().map_err(|error| {
        format!(
            "what a pod is given cannot be used: {error}. A pod needs its service account's token (automountServiceAccountToken): \
             apply {COMPONENT}."
        )
    })
}

fn unreadable(file: &Path, error: &std::io::Error) -> String {
    format!(
        "{} cannot be read ({error}). A pod needs its service account's token (automountServiceAccountToken): apply {COMPONENT}.",
        file.display()
    )
}
