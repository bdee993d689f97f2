//! A worker as far as queries for its blocks go: takes calls over TCP or NATS as Dynamo's workers do, calls back, and answers
//! as scripted, right or wrong.
//!
//! Also used by the server's own tests, which have no binary to talk to.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// A call as it was received.
#[derive(Clone, Debug)]
pub struct Call {
    /// Path of the endpoint; empty over NATS.
    pub path: String,
    /// The header.
    pub header: Value,
    /// Where and as what the worker is to call back.
    pub info: Value,
    /// The query as it was written.
    pub body: Vec<u8>,
}

impl Call {
    fn read(path: String, message: &[u8]) -> Self {
        let size =
            |at: usize| u64::from_be_bytes(message[at..at + 8].try_into().expect("eight bytes")) as usize;
        let (header, data) = (size(0), size(8));
        assert_eq!(message.len(), 24 + header + data, "a call is one part");
        let body = message[24 + header..].to_vec();
        let header: Value = serde_json::from_slice(&message[24..24 + header]).expect("a header of JSON");
        let info = header["connection_info"]["info"].as_str().expect("a text");
        let info: Value = serde_json::from_str(info).expect("JSON in the text");
        assert_eq!(info["context"], header["id"], "a worker drops anything else");
        assert_eq!(info["stream_type"], "response", "a worker drops anything else");
        Self { path, header, info, body }
    }

    /// Whether query and answer are MessagePack, not JSON.
    pub fn is_msgpack(&self) -> bool {
        self.header["payload_codec"] == "msgpack"
    }

    /// The query, of one in JSON.
    pub fn query(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a query of JSON")
    }

    /// Where the worker is to call back.
    pub fn callback(&self) -> &str {
        self.info["address"].as_str().expect("an address")
    }

    /// What it is to say there.
    pub fn subject(&self) -> &str {
        self.info["subject"].as_str().expect("a subject")
    }
}

/// How a call is acknowledged.
#[derive(Clone, Debug)]
pub enum Acknowledge {
    /// As it should be: before the worker calls back.
    Accept,
    /// Only after all of the response was sent.
    Late,
    /// Not at all.
    Never,
    /// With these bytes, after which nothing else happens.
    With(Vec<u8>),
}

/// What is done with a call.
#[derive(Clone, Debug)]
pub struct Script {
    /// How it is acknowledged.
    pub acknowledge: Acknowledge,
    /// What is sent on the connection that the worker opens, after its subject. `None`: it opens none.
    pub response: Option<Vec<u8>>,
    /// Whether that connection is closed after the response, instead of by whoever asked.
    pub closes: bool,
    /// What the response waits for once the worker has called back: a permit.
    pub held: Option<Arc<Semaphore>>,
}

impl Script {
    /// Answers, parts as of [`whole`].
    pub fn response(parts: Vec<u8>) -> Self {
        Self { acknowledge: Acknowledge::Accept, response: Some(parts), closes: false, held: None }
    }

    /// Accepts and does nothing, as a worker that does not understand the body or cannot reach whoever asks.
    pub fn silence() -> Self {
        Self { response: None, ..Self::response(Vec::new()) }
    }

    /// Refuses in words, as of an endpoint that it does not have.
    pub fn refusal(text: &str) -> Self {
        let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        Self { acknowledge: Acknowledge::With(bytes), ..Self::silence() }
    }

    /// The same, acknowledged so.
    #[must_use]
    pub fn acknowledged(self, acknowledge: Acknowledge) -> Self {
        Self { acknowledge, ..self }
    }

    /// The same, and the worker closes the connection that it opened.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }

    /// The same, held back until there is a permit.
    #[must_use]
    pub fn held(self, until: &Arc<Semaphore>) -> Self {
        Self { held: Some(Arc::clone(until)), ..self }
    }
}

/// A part of a response.
pub fn part(header: &[u8], data: &[u8]) -> Vec<u8> {
    let mut part = Vec::with_capacity(24 + header.len() + data.len());
    for size in [header.len() as u64, data.len() as u64, 0] {
        part.extend(size.to_be_bytes());
    }
    part.extend(header);
    part.extend(data);
    part
}

/// The part before the first item, with why there will be none.
pub fn prologue(error: Option<&str>) -> Vec<u8> {
    part(json!({ "error": error }).to_string().as_bytes(), b"")
}

/// The last item, in JSON or MessagePack.
pub fn last_item(is_msgpack: bool) -> Vec<u8> {
    match is_msgpack {
        false => part(b"", br#"{"complete_final":true}"#),
        true => part(b"", b"\x81\xaecomplete_final\xc3"),
    }
}

/// A whole response of one item, which is already written.
pub fn whole(item: &[u8], is_msgpack: bool) -> Vec<u8> {
    [prologue(None), part(b"", item), last_item(is_msgpack), part(br#""sentinel""#, b"")].concat()
}

/// A whole response in JSON: a kind and its content.
pub fn whole_json(response: &Value) -> Vec<u8> {
    whole(json!({"data": response, "complete_final": false}).to_string().as_bytes(), false)
}

type Behaviour = Arc<dyn Fn(&Call) -> Script + Send + Sync>;

/// The worker.
pub struct FakeWorker {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    behaviour: Arc<Mutex<Behaviour>>,
    tasks: Vec<AbortHandle>,
}

impl Drop for FakeWorker {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl FakeWorker {
    /// One that does with each call what `behaviour` says, over TCP.
    pub async fn start(behaviour: impl Fn(&Call) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (calls, behaviour) = (Arc::default(), Arc::new(Mutex::new(Arc::new(behaviour) as Behaviour)));
        let mut worker = Self { port, calls, behaviour, tasks: Vec::new() };
        let (calls, behaviour) = (Arc::clone(&worker.calls), Arc::clone(&worker.behaviour));
        let serve = async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(over_tcp(stream, Arc::clone(&calls), Arc::clone(&behaviour)));
            }
        };
        worker.tasks.push(tokio::spawn(serve).abort_handle());
        worker
    }

    /// Takes calls on a NATS subject too.
    pub async fn listen(&mut self, nats: async_nats::Client, subject: &str) {
        let mut calls = nats.subscribe(subject.to_owned()).await.expect("a subscription");
        nats.flush().await.expect("the server lives");
        let (seen, behaviour) = (Arc::clone(&self.calls), Arc::clone(&self.behaviour));
        let serve = async move {
            while let Some(message) = calls.next().await {
                let call = Call::read(String::new(), &message.payload);
                let script = noted(&call, &seen, &behaviour);
                let reply = match &script.acknowledge {
                    Acknowledge::Accept | Acknowledge::Late => Some(Vec::new()),
                    Acknowledge::Never => None,
                    // Without the length that TCP needs.
                    Acknowledge::With(bytes) => Some(bytes[4..].to_vec()),
                };
                if let (Some(to), Some(reply)) = (message.reply, reply) {
                    nats.publish(to, reply.into()).await.expect("the server lives");
                }
                tokio::spawn(async move { respond(&call, &script).await });
            }
        };
        self.tasks.push(tokio::spawn(serve).abort_handle());
    }

    /// What it does with calls from now on.
    pub fn behave(&self, behaviour: impl Fn(&Call) -> Script + Send + Sync + 'static) {
        *lock(&self.behaviour) = Arc::new(behaviour);
    }

    /// Port that it takes calls on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }
}

fn noted(call: &Call, calls: &Mutex<Vec<Call>>, behaviour: &Mutex<Behaviour>) -> Script {
    lock(calls).push(call.clone());
    let behaviour = Arc::clone(&lock(behaviour));
    behaviour(call)
}

/// Whoever asks may go away at any time: that ends it and is no fault.
async fn over_tcp(
    mut stream: TcpStream,
    calls: Arc<Mutex<Vec<Call>>>,
    behaviour: Arc<Mutex<Behaviour>>,
) -> std::io::Result<()> {
    let length = stream.read_u16().await?;
    let mut path = vec![0; length.into()];
    stream.read_exact(&mut path).await?;
    let length = stream.read_u16().await?;
    let mut headers = vec![0; length.into()];
    stream.read_exact(&mut headers).await?;
    let _: std::collections::HashMap<String, String> = serde_json::from_slice(&headers).expect("texts");
    let length = stream.read_u32().await?;
    let mut message = vec![0; length as usize];
    stream.read_exact(&mut message).await?;
    let call = Call::read(String::from_utf8(path).expect("a text"), &message);
    let script = noted(&call, &calls, &behaviour);
    match &script.acknowledge {
        Acknowledge::Accept => stream.write_all(&[0; 4]).await?,
        Acknowledge::With(bytes) => stream.write_all(bytes).await?,
        Acknowledge::Late | Acknowledge::Never => {}
    }
    let home = respond(&call, &script).await;
    if matches!(script.acknowledge, Acknowledge::Late) {
        stream.write_all(&[0; 4]).await?;
    }
    // Open until whoever asked closes it.
    let _ = stream.read_u8().await;
    drop(home);
    Ok(())
}

/// Calls back and answers. Gives the connection, which is to be kept open.
async fn respond(call: &Call, script: &Script) -> Option<TcpStream> {
    let bytes = script.response.as_ref()?;
    let mut home = TcpStream::connect(call.callback()).await.ok()?;
    let subject = json!({"subject": call.subject(), "stream_type": "response"}).to_string();
    home.write_all(&part(subject.as_bytes(), b"")).await.ok()?;
    if let Some(held) = &script.held {
        held.acquire().await.ok()?.forget();
    }
    // The client may disconnect.
    home.write_all(bytes).await.ok()?;
    if script.closes {
        return None;
    }
    // As a worker does: it waits for the other side.
    let _ = home.read_u8().await;
    Some(home)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
