//! Options of `--kubernetes`: everything is found in the cluster.

use clap::Args;

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
