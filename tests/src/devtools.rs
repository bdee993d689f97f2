//! Chromium's DevTools directly, beside the driver: for what takes long, comes in pieces, or has to be quick.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::browser::Page;
use crate::http::Http;
use crate::wait;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection to the page's DevTools. Ends with its value.
pub struct Devtools {
    sink: tokio::sync::Mutex<SplitSink<Socket, Message>>,
    incoming: Arc<Mutex<Incoming>>,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Incoming {
    calls: u64,
    waiting: HashMap<u64, oneshot::Sender<Value>>,
    events: Vec<Value>,
}

impl Devtools {
    /// Those of this page.
    pub async fn of(page: &Page) -> Self {
        let list = format!("http://{}/json/list", page.debugger());
        let targets = Http::default().get(&list).await.expect("Chromium answers").json();
        let target = targets.as_array().and_then(|all| all.iter().find(|target| target["type"] == "page"));
        let url = target.and_then(|target| target["webSocketDebuggerUrl"].as_str()).expect("a page");
        // Pieces of a trace are larger than the default limit.
        let mut config = WebSocketConfig::default();
        (config.max_message_size, config.max_frame_size) = (None, None);
        let (socket, _) =
            connect_async_with_config(url, Some(config), true).await.expect("Chromium takes another one");
        let (sink, mut stream) = socket.split();
        let incoming = Arc::<Mutex<Incoming>>::default();
        let to = Arc::clone(&incoming);
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                let Message::Text(text) = message else { continue };
                let mut message: Value = serde_json::from_str(&text).expect("Chromium speaks JSON");
                let mut incoming = lock(&to);
                match message["id"].as_u64().and_then(|id| incoming.waiting.remove(&id)) {
                    // Whoever asked may have gone.
                    Some(waiting) => drop(waiting.send(message.take())),
                    None => incoming.events.push(message),
                }
            }
        });
        Self { sink: sink.into(), incoming, reading }
    }

    /// Sends a command and waits for its result, however long that takes.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let (sender, response) = oneshot::channel();
        let id = {
            let mut incoming = lock(&self.incoming);
            incoming.calls += 1;
            let id = incoming.calls;
            incoming.waiting.insert(id, sender);
            id
        };
        let command = json!({"id": id, "method": method, "params": params}).to_string();
        self.sink.lock().await.send(Message::text(command)).await.map_err(|e| format!("{method}: {e}"))?;
        let mut response = response.await.map_err(|_| format!("{method}: the page's DevTools ended"))?;
        match response["error"].take() {
            Value::Null => Ok(response["result"].take()),
            error => Err(format!("{method}: {error}")),
        }
    }

    /// Evaluates an expression, or what it promises, for at most `within_ms`.
    pub async fn eval(&self, expression: &str, within_ms: u64) -> Result<Value, String> {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true, "timeout": within_ms,
        });
        let mut response = self.call("Runtime.evaluate", params).await?;
        match &response["exceptionDetails"] {
            Value::Null => Ok(response["result"]["value"].take()),
            details => Err(details["exception"]["description"].as_str().unwrap_or("gave up").to_owned()),
        }
    }

    /// Waits for an event; gives all that came until then, itself included.
    pub async fn until(&self, method: &str) -> Vec<Value> {
        wait::until(&format!("Chromium says {method}"), async || {
            let mut incoming = lock(&self.incoming);
            let is_there = incoming.events.iter().any(|event| event["method"] == method);
            wait::expect(is_there, || format!("{} other events", incoming.events.len()))?;
            Ok(std::mem::take(&mut incoming.events))
        })
        .await
    }
}

impl Drop for Devtools {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

fn lock(incoming: &Mutex<Incoming>) -> std::sync::MutexGuard<'_, Incoming> {
    incoming.lock().unwrap_or_else(PoisonError::into_inner)
}
