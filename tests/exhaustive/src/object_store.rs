//! A real server that speaks S3 (SeaweedFS), configured as an operator would, that can go away and come back on the same port.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use radixscope_tests::http::Http;
use radixscope_tests::paths;
use radixscope_tests::process::Process;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// Its bucket.
pub const BUCKET: &str = "recordings";
const KEY: &str = "writer";
const SECRET: &str = "secret-of-the-writer";
/// Room of a volume, MiB, and their number. Each bucket takes some.
const VOLUME_MIB: &str = "64";
const VOLUMES: &str = "16";
/// What it consists of.
const SERVERS: [&str; 4] = ["master", "volume", "filer", "s3"];
/// The bit of directories in the filer's modes.
const DIRECTORY: u64 = 1 << 31;
/// How a trickle is cut.
const TRICKLES_PER_SECOND: u64 = 20;
const TRICKLE_EVERY: Duration = Duration::from_millis(1_000 / TRICKLES_PER_SECOND);

/// A server with a bucket. What it stores survives [`ObjectStore::stop`] and [`ObjectStore::start_again`].
pub struct ObjectStore {
    process: Option<Process>,
    /// Of the master, the volumes, the filer and S3; each has a second one for its own calls.
    ports: [[u16; 2]; 4],
    folder: TempDir,
    http: Http,
}

impl ObjectStore {
    /// A server that one writer with a key may use.
    pub async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("radixscope-s3-").tempdir().expect("a writable folder");
        let identity = json!({
            "name": "writer",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        });
        let config = json!({"identities": [identity]}).to_string();
        std::fs::write(folder.path().join("s3.json"), config).expect("a writable folder");
        let mut store = Self { process: None, ports: free_ports(), folder, http: Http::default() };
        // It listens on some of its ports after seconds, when others may have taken them.
        while !store.try_start().await {
            store.ports = free_ports();
        }
        let made = store.http.send(Method::POST, &format!("{}/", store.bucket_url()), &[], Vec::new()).await;
        assert_eq!(made.expect("it answers").status, 201, "the bucket is made");
        store
    }

    /// Port of its S3.
    pub fn port(&self) -> u16 {
        self.ports[3][0]
    }

    /// Ends it without a farewell.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it on the ports it had.
    pub async fn start_again(&mut self) {
        assert!(self.try_start().await, "its ports are taken");
    }

    /// Starts it; whether its ports were free.
    async fn try_start(&mut self) -> bool {
        let at = self.folder.path().display();
        let mut command = Command::new(paths::weed());
        command
            .args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-s3.iam=false"])
            .args(["-master.telemetry=false", "-s3.autoCreateBucket=false"])
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
            .args([format!("-dir={at}"), format!("-s3.config={at}/s3.json")])
            .args([format!("-filer.localSocket={at}/filer.sock"), format!("-s3.localSocket={at}/s3.sock")])
            .args([format!("-master.volumeSizeLimitMB={VOLUME_MIB}"), format!("-volume.max={VOLUMES}")])
            .current_dir(self.folder.path());
        for (name, [port, calls]) in SERVERS.iter().zip(self.ports) {
            command.args([format!("-{name}.port={port}"), format!("-{name}.port.grpc={calls}")]);
        }
        let process = Process::start("weed", &mut command);
        let is_up = wait::until("the S3 server answers", async || {
            if process.has_ended().is_some() && process.output().contains("address already in use") {
                return Ok(false);
            }
            process.expect_running("it answers");
            let response = self.http.get(&format!("http://127.0.0.1:{}/", self.port())).await?;
            wait::expect(response.status == 403, || format!("status {}", response.status)).map(|()| true)
        })
        .await;
        self.process = Some(process).filter(|_| is_up);
        is_up
    }

    /// Variables with which programs reach it.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        self.variables_at(self.port())
    }

    /// The same at another port, where a proxy is.
    pub fn variables_at(&self, port: u16) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ]
    }

    /// What is stored under a prefix: names and bytes of objects, by name.
    pub async fn objects(&self, prefix: &str) -> Vec<(String, u64)> {
        let mut objects = Vec::new();
        let mut folders = vec![prefix.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            let url = format!("{}/{folder}/?limit=100000", self.bucket_url());
            let accept = [("accept", "application/json")];
            let listed = self.http.send(Method::GET, &url, &accept, Vec::new()).await.expect("it answers");
            if listed.status == 404 {
                continue;
            }
            for entry in listed.json()["Entries"].as_array().into_iter().flatten() {
                let path = entry["FullPath"].as_str().expect("a path");
                let name =
                    path.strip_prefix(&format!("/buckets/{BUCKET}/")).expect("in the bucket").to_owned();
                // A folder has the mode of one.
                match entry["Mode"].as_u64().expect("a mode") & DIRECTORY {
                    0 => objects.push((name, entry["FileSize"].as_u64().expect("a size"))),
                    _ => folders.push(name),
                }
            }
        }
        objects.sort();
        objects
    }

    /// The bytes of an object.
    pub async fn object(&self, name: &str) -> Bytes {
        let url = format!("{}/{name}", self.bucket_url());
        let response = self.http.get(&url).await.expect("it answers");
        assert_eq!(response.status, 200, "{name}");
        response.body
    }

    /// The bucket as the operator's side of the server shows it.
    fn bucket_url(&self) -> String {
        format!("http://127.0.0.1:{}/buckets/{BUCKET}", self.ports[2][0])
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.process = None;
        for (name, [_, calls]) in SERVERS.iter().zip(self.ports) {
            // It makes them there and leaves them; those of S3 and the filer's own are in its folder.
            let _ = std::fs::remove_file(format!("/tmp/seaweedfs-{name}-grpc-{calls}.sock"));
        }
    }
}

/// Ports that were free a moment ago, each another one.
fn free_ports() -> [[u16; 2]; 4] {
    let listeners: [[_; 2]; 4] = std::array::from_fn(|_| {
        std::array::from_fn(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"))
    });
    let port = |listener: std::net::TcpListener| listener.local_addr().expect("it is bound").port();
    listeners.map(|pair| pair.map(port))
}

/// Variables as [`radixscope_tests::radixscope::Radixscope`] takes them.
pub fn as_given<'v>(variables: &'v [(&'static str, String)]) -> Vec<(&'static str, &'v OsStr)> {
    variables.iter().map(|(name, value)| (*name, OsStr::new(value.as_str()))).collect()
}

/// What a store does with what is sent to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreMode {
    /// What it always does.
    Normal,
    /// It takes so many bytes a second.
    Trickle(u64),
    /// It is full.
    Full,
}

/// A proxy before a store, which can make it slow or full.
pub struct StoreProxy {
    port: u16,
    mode: Arc<watch::Sender<StoreMode>>,
}

impl StoreProxy {
    /// Listens on a free port and passes everything on to `to`.
    pub async fn start(to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let mode = Arc::new(watch::Sender::new(StoreMode::Normal));
        let modes = Arc::clone(&mode);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut changed = modes.subscribe();
                tokio::spawn(async move {
                    let now = *changed.borrow_and_update();
                    tokio::select! {
                        _ = pass_on(client, to, now) => {}
                        _ = changed.changed() => {}
                    }
                });
            }
        });
        Self { port, mode }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on the store is like this; connections end.
    pub fn set(&self, mode: StoreMode) {
        self.mode.send_replace(mode);
    }
}

async fn pass_on(mut client: TcpStream, to: u16, mode: StoreMode) -> std::io::Result<()> {
    if mode == StoreMode::Full {
        return refuse(client).await;
    }
    let mut store = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await?;
    let StoreMode::Trickle(bytes_per_second) = mode else {
        return tokio::io::copy_bidirectional(&mut client, &mut store).await.map(drop);
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_store, mut to_store) = store.split();
    let up = async {
        let mut each = tokio::time::interval(TRICKLE_EVERY);
        let mut drop_of_water = vec![0; (bytes_per_second / TRICKLES_PER_SECOND).max(1) as usize];
        loop {
            each.tick().await;
            let len = from_client.read(&mut drop_of_water).await?;
            if len == 0 {
                return to_store.shutdown().await;
            }
            to_store.write_all(&drop_of_water[..len]).await?;
        }
    };
    let down = tokio::io::copy(&mut from_store, &mut to_client);
    tokio::try_join!(up, down).map(drop)
}

/// Answers every request that it cannot be stored.
async fn refuse(client: TcpStream) -> std::io::Result<()> {
    const BODY: &str = "<Error><Code>XMinioStorageFull</Code><Message>No room is left.</Message></Error>";
    let (from, mut to) = client.into_split();
    let mut from = BufReader::new(from);
    let (mut line, mut len) = (String::new(), 0);
    loop {
        line.clear();
        if from.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if let Some(("content-length", value)) = line.trim().to_ascii_lowercase().split_once(": ") {
            len = value.parse().expect("a length");
        }
        if line.trim().is_empty() {
            tokio::io::copy(&mut (&mut from).take(std::mem::take(&mut len)), &mut tokio::io::sink()).await?;
            let head = format!("HTTP/1.1 507 Insufficient Storage\r\ncontent-length: {}\r\n\r\n", BODY.len());
            to.write_all(format!("{head}{BODY}").as_bytes()).await?;
        }
    }
}

/// A demo that records to `s3://BUCKET/PREFIX`, storing a file each second.
pub async fn recorder(
    prefix: &str,
    buffer: &Path,
    variables: &[(&'static str, String)],
    speed: &str,
    more: &[&str],
) -> Radixscope {
    let to = format!("s3://{BUCKET}/{prefix}");
    let buffer = buffer.to_str().expect("a path of ours");
    let args = ["demo", "--warm-up", "20", "--record", &to, "--record-buffer", buffer];
    let args = [&args[..], &["--record-store-every", "1s", "--speed", speed], more].concat();
    Radixscope::start_with_variables(&args, &as_given(variables)).await
}

/// Waits until `look` is content with the recording's state.
pub async fn until_recording(server: &Radixscope, what: &str, look: impl Fn(&Value) -> bool) -> Value {
    let cluster = server
        .until_cluster(what, |cluster| {
            wait::expect(look(&cluster["recording"]), || cluster["recording"].to_string())
        })
        .await;
    cluster["recording"].clone()
}

/// Ends a recorder as a service manager does; what it said.
pub async fn end(server: &mut Radixscope) -> String {
    server.process().terminate();
    assert!(server.process_mut().ended().await.success(), "{}", server.process().output());
    server.process().output()
}

/// The recordings' objects of a prefix in a folder.
pub async fn downloaded(store: &ObjectStore, prefix: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, _) in store.objects(&format!("{prefix}/recordings")).await {
        let (_, file) = name.rsplit_once('/').expect("it is in a folder");
        std::fs::write(folder.path().join(file), store.object(&name).await).expect("a writable folder");
    }
    folder
}

/// Files of a folder with this ending.
pub fn files_in(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|of| of == ending)).collect()
}
