//! Connections to pods from outside the cluster, through the API server's port-forward. What connects is this process; for clients
//! that need an address there is a listener on this machine, as with kubectl port-forward.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::follow::Pods;
use super::places::Behind;
use super::pods::PodInfo;
use super::survey::Cluster;
use crate::source::gate::Dial;

/// How long opening a connection may take.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// Most connections at a time: each is one to the API server.
const MAX_CONNECTIONS: usize = 2_000;
/// Wait after a listener failed: the process may be out of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// Where a connection leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    Pod {
        namespace: String,
        name: String,
        port: u16,
    },
    /// Any ready pod behind a service.
    Service(Behind),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { namespace, name, port } => write!(f, "{namespace}/{name}:{port}"),
            Self::Service(Behind { namespace, name, port, .. }) => {
                write!(f, "a pod of the service {namespace}/{name}:{port}")
            }
        }
    }
}

/// See the module.
pub(crate) struct Tunnels {
    cluster: Cluster,
    pods: watch::Receiver<Pods>,
    connections: Arc<Semaphore>,
}

impl Tunnels {
    /// `pods`: those that addresses are looked up in.
    pub(crate) fn new(cluster: Cluster, pods: watch::Receiver<Pods>) -> Arc<Self> {
        Arc::new(Self { cluster, pods, connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)) })
    }

    /// An address on this machine that leads there, while the process runs or the handle is held.
    pub(crate) async fn listen(self: &Arc<Self>, to: Target) -> io::Result<Listener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let at = listener.local_addr()?;
        let this = Arc::clone(self);
        let accepting = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(Arc::clone(&this).carry(stream, to.clone()))),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to be forwarded was not accepted");
                        tokio::time::sleep(ACCEPT_AGAIN).await;
                    }
                }
            }
        });
        Ok(Listener { at, accepting })
    }

    async fn carry(self: Arc<Self>, mut from: TcpStream, to: Target) {
        let Ok(_slot) = Arc::clone(&self.connections).try_acquire_owned() else {
            tracing::warn!("more than {MAX_CONNECTIONS} connections to pods: one was closed");
            return;
        };
        match tokio::time::timeout(OPEN_WITHIN, self.open(&to)).await {
            Ok(Ok(mut pod)) => drop(copy_bidirectional(&mut from, &mut pod).await),
            Ok(Err(error)) => tracing::warn!(pod = %to, %error, "port-forward failed"),
            Err(_) => tracing::warn!(pod = %to, "port-forward did not begin in time"),
        }
    }

    async fn open(&self, to: &Target) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
        let (namespace, name, port) = match to {
            Target::Pod { namespace, name, port } => (namespace.clone(), name.clone(), *port),
            Target::Service(behind) => (behind.namespace.clone(), self.ready_pod(behind).await?, behind.port),
        };
        let api: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &namespace);
        let mut forward = api.portforward(&name, &[port]).await.map_err(io::Error::other)?;
        forward.take_stream(port).ok_or_else(|| io::Error::other("no stream"))
    }

    async fn ready_pod(&self, Behind { namespace, selector, .. }: &Behind) -> io::Result<String> {
        let api: Api<Pod> = Api::namespaced(self.cluster.client.clone(), namespace);
        let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let params = ListParams::default().labels(&labels.join(",")).limit(50);
        let pods = api.list(&params).await.map_err(io::Error::other)?;
        let is_ready = |pod: &&Pod| {
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.into_iter().any(|of| of.type_ == "Ready" && of.status == "True")
        };
        let ready = pods.items.iter().find(is_ready).and_then(|pod| pod.metadata.name.clone());
        ready.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "no pod behind the service is ready"))
    }
}

impl Dial for Tunnels {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let target = self.pods.borrow().at(to.ip()).map(|PodInfo { namespace, name, .. }| Target::Pod {
                namespace: namespace.clone(),
                name: name.clone(),
                port: to.port(),
            });
            let target = target.ok_or_else(|| {
                io::Error::new(io::ErrorKind::AddrNotAvailable, format!("no pod has the address {}", to.ip()))
            })?;
            let slot = Arc::clone(&self.connections).try_acquire_owned().map_err(io::Error::other)?;
            let mut pod = tokio::time::timeout(OPEN_WITHIN, self.open(&target)).await??;
            // A socket of its own for this connection, which nobody else can connect to.
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let ours = TcpStream::connect(listener.local_addr()?).await?;
            let (mut theirs, from) = listener.accept().await?;
            if from != ours.local_addr()? {
                return Err(io::Error::other("another process connected to the socket of a port-forward"));
            }
            tokio::spawn(async move {
                let _slot = slot;
                let _ = copy_bidirectional(&mut theirs, &mut pod).await;
            });
            Ok(ours)
        })
    }
}

/// A listener on this machine; it ends with this.
pub(crate) struct Listener {
    pub(crate) at: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
