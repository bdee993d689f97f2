//! A client of Chromium's DevTools protocol: commands with their results, and events, of a whole browser or of one tab. The only
//! place that knows how messages of the protocol look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
use crate::wait;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection to DevTools. Ends with its value.
pub struct Devtools {
    sink: Arc<tokio::sync::Mutex<SplitSink<Socket, Message>>>,
    calls: Arc<Mutex<Calls>>,
    events: Arc<Mutex<Vec<Value>>>,
    reading: JoinHandle<()>,
}

/// Commands that wait for their result.
#[derive(Default)]
struct Calls {
    count: u64,
    waiting: HashMap<u64, oneshot::Sender<Value>>,
    is_closed: bool,
}

/// A command whose result is not waited for.
pub(crate) struct Command {
    /// The session that it is for; `None`: the target that the connection was made to.
    pub(crate) session: Option<String>,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

impl Devtools {
    /// A connection of its own to this page: for what takes long, comes in pieces, or has to be quick.
    pub async fn of(page: &Page) -> Self {
        let events = Arc::<Mutex<Vec<Value>>>::default();
        let to = Arc::clone(&events);
        let retain = move |event| {
            lock(&to).push(event);
            Vec::new()
        };
        let mut devtools = Self::connect(&page.devtools_url(), retain).await;
        devtools.events = events;
        devtools
    }

    /// Connects to a browser or a tab. `observe` gets each event, and says which commands follow at once.
    pub(crate) async fn connect(
        url: &str,
        mut observe: impl FnMut(Value) -> Vec<Command> + Send + 'static,
    ) -> Self {
        // Pieces of a trace are larger than the default limit.
        let mut config = WebSocketConfig::default();
        (config.max_message_size, config.max_frame_size) = (None, None);
        let connected = wait::within("Chromium's DevTools answer", async {
            connect_async_with_config(url, Some(config), true).await
        });
        let (socket, _) = connected.await.unwrap_or_else(|e| panic!("{url}: {e}"));
        let (sink, mut stream) = socket.split();
        let sink = Arc::new(tokio::sync::Mutex::new(sink));
        let calls = Arc::<Mutex<Calls>>::default();
        let (to, back) = (Arc::clone(&calls), Arc::clone(&sink));
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = stream.next().await {
                let Message::Text(text) = message else { continue };
                let message: Value = serde_json::from_str(&text).expect("Chromium speaks JSON");
                if let Some(id) = message["id"].as_u64() {
                    if let Some(waiting) = lock(&to).waiting.remove(&id) {
                        // Whoever asked may have gone.
                        let _ = waiting.send(message);
                    }
                    continue;
                }
                for Command { session, method, params } in observe(message) {
                    let id = lock(&to).next();
                    let text = text_of(id, session.as_deref(), method, &params);
                    // A connection that has ended is seen by whoever calls next.
                    let _ = back.lock().await.send(Message::text(text)).await;
                }
            }
            let mut calls = lock(&to);
            calls.is_closed = true;
            calls.waiting.clear();
        });
        Self { sink, calls, events: Arc::default(), reading }
    }

    /// Sends a command and waits for its result, however long that takes.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.call_in(None, method, params).await
    }

    /// The same for one session of several.
    pub(crate) async fn call_in(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let (sender, response) = oneshot::channel();
        let id = {
            let mut calls = lock(&self.calls);
            if calls.is_closed {
                return Err(format!("{method}: Chromium's DevTools have ended"));
            }
            let id = calls.next();
            calls.waiting.insert(id, sender);
            id
        };
        let text = text_of(id, session, method, &params);
        self.sink.lock().await.send(Message::text(text)).await.map_err(|e| format!("{method}: {e}"))?;
        let mut response = response.await.map_err(|_| format!("{method}: Chromium's DevTools have ended"))?;
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
        evaluated(self.call("Runtime.evaluate", params).await?)
    }

    /// Waits for an event; gives all that came until then, itself included.
    pub async fn until(&self, method: &str) -> Vec<Value> {
        wait::until(&format!("Chromium says {method}"), async || {
            let mut events = lock(&self.events);
            let is_there = events.iter().any(|event| event["method"] == method);
            wait::expect(is_there, || format!("{} other events", events.len()))?;
            Ok(std::mem::take(&mut *events))
        })
        .await
    }
}

impl Drop for Devtools {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Calls {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// The value in a result of `Runtime.evaluate`, or what was thrown.
pub(crate) fn evaluated(mut result: Value) -> Result<Value, String> {
    match &result["exceptionDetails"] {
        Value::Null => Ok(result["result"]["value"].take()),
        details => Err(thrown(details)),
    }
}

/// What was thrown, in words.
pub(crate) fn thrown(details: &Value) -> String {
    let exception = &details["exception"];
    let text = exception["description"].as_str().or(exception["value"].as_str());
    text.or(details["text"].as_str()).unwrap_or("gave up").to_owned()
}

fn text_of(id: u64, session: Option<&str>, method: &str, params: &Value) -> String {
    let mut command = json!({"id": id, "method": method, "params": params});
    if let Some(session) = session {
        command["sessionId"] = session.into();
    }
    command.to_string()
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
