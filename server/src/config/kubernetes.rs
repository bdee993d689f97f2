//! Options of `--kubernetes`: everything is found in the cluster.

use clap::Args;

use super::Log;

/// A Kubernetes cluster in which everything is found.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Kubernetes")]
pub struct InKubernetes {
    /// Find everything in Kubernetes, as kubectl reaches it (KUBECONFIG) or as a pod does: discovery, NATS, etcd, metrics and logs
    /// of Dynamo's pods; from outside the cluster through port-forward; what is given beside it is not looked for
    #[arg(long, env = "RADIXSCOPE_KUBERNETES")]
    pub kubernetes: bool,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, env = "RADIXSCOPE_CONTEXT", value_name = "NAME", requires = "kubernetes")]
    pub context: Option<String>,
    /// All namespaces of Kubernetes, instead of the one in --namespace
    #[arg(long, env = "RADIXSCOPE_ALL_NAMESPACES", requires = "kubernetes", conflicts_with = "namespace")]
    pub all_namespaces: bool,
}

/// `radixscope deploy`.
#[derive(Args, Debug)]
pub struct Deploy {
    /// Kubernetes.
    #[command(flatten)]
    pub kubernetes: InKubernetes,
    /// Namespace of Kubernetes to show, and to run in [default: that of the context]
    #[arg(long, env = "RADIXSCOPE_NAMESPACE", value_name = "NS", help_heading = "Kubernetes", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Image built from deploy/Containerfile, in a registry that the cluster reaches
    #[arg(long, env = "RADIXSCOPE_IMAGE", value_name = "IMAGE", help_heading = "Kubernetes", default_value = concat!("radixscope:", env!("CARGO_PKG_VERSION")), value_parser = image)]
    pub image: String,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// A label of DNS, as Kubernetes requires.
fn namespace(text: &str) -> Result<String, String> {
    let is_label = matches!(text.len(), 1..=63)
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if is_label { Ok(text.to_owned()) } else { Err("not a namespace of Kubernetes".to_owned()) }
}

/// A reference to an image, which is printed as it is.
fn image(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("not a reference to an image; expected REGISTRY/NAME:TAG".to_owned()),
    }
}
