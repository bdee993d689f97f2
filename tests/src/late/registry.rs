//! Where a deployment's processes register: a frontend's list, a folder, etcd, or what a test brings.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use radixscope_captures::Recording;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::discovery::{Folder, file_name};
use crate::etcd::Etcd;
use crate::late::Registrar;

/// Seconds after which what is not renewed would go: longer than any test.
const LEASE_S: u32 = 3_600;

pub(super) enum Registry {
    Frontend(SocketAddr),
    Folder(Folder),
    Etcd { etcd: Box<Etcd>, leases: BTreeSet<u64> },
    Other(Box<dyn Registrar>),
}

impl Registry {
    /// A frontend that lists the endpoints that were asked, all of them at one port.
    pub(super) async fn frontend(recording: &Recording, port: u16) -> Self {
        let mut instances: Vec<Value> = Vec::new();
        for query in recording.queries() {
            let mut instance = query.instance;
            lead_to(&mut instance, port);
            if !instances.contains(&instance) {
                instances.push(instance);
            }
        }
        let list = json!({"status": "healthy", "instances": instances}).to_string();
        let metrics = recording.scrapes().next().expect("a frontend's metrics").text;
        let router =
            Router::new().route("/health", get(async || list)).route("/metrics", get(async || metrics));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self::Frontend(at)
    }

    pub(super) fn etcd(etcd: Etcd) -> Self {
        Self::Etcd { etcd: Box::new(etcd), leases: BTreeSet::new() }
    }

    pub(super) fn flags(&self) -> Vec<String> {
        match self {
            Self::Frontend(at) => vec!["--prometheus".to_owned(), format!("frontend=http://{at}/metrics")],
            Self::Folder(folder) => vec!["--discovery".to_owned(), folder.url()],
            Self::Etcd { etcd, .. } => vec!["--discovery".to_owned(), etcd.url()],
            Self::Other(registrar) => registrar.flags(),
        }
    }

    pub(super) async fn put(&mut self, key: &str, value: &Value, lease: Option<u64>) {
        match self {
            Self::Frontend(_) => panic!("nothing registers with a frontend"),
            Self::Folder(folder) => folder.put(&key_of_file(key), value),
            Self::Etcd { etcd, leases } => {
                if let Some(lease) = lease.filter(|&lease| leases.insert(lease)) {
                    etcd.lease(lease, LEASE_S).await;
                }
                etcd.put(key, value, lease).await;
            }
            Self::Other(registrar) => registrar.put(&key_of_file(key), value, lease),
        }
    }

    pub(super) async fn remove(&self, key: &str) {
        match self {
            Self::Frontend(_) => panic!("nothing registers with a frontend"),
            Self::Folder(folder) => folder.remove(&key_of_file(key)),
            Self::Etcd { etcd, .. } => etcd.delete(key).await,
            Self::Other(registrar) => registrar.remove(&key_of_file(key)),
        }
    }
}

/// Puts this port in place of those of request planes.
pub(super) fn lead_to(value: &mut Value, port: u16) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(address)) = fields.get_mut("tcp") {
                let (_, path) = address.split_once('/').expect("an address and a path");
                *address = format!("127.0.0.1:{port}/{path}");
            }
            fields.values_mut().for_each(|value| lead_to(value, port));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| lead_to(value, port)),
        _ => {}
    }
}

/// The key of which a file has the name; a key of etcd is its own.
fn key_of_file(file: &str) -> String {
    let mut parts = file.split('%');
    let mut key = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at(2);
        key.push(char::from(u8::from_str_radix(code, 16).expect("two digits")));
        key.push_str(rest);
    }
    assert!(key == file || file_name(&key) == file, "as Dynamo names files");
    key
}
