//! A tab of Chromium with cookies and storage of its own, driven by DevTools over one connection to the browser. What the tab and
//! its frames say is kept as it comes (`seen.rs`). Both end with the connection, also when the test's process is killed.

use std::sync::Mutex;

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::chromium::browser_url;
use super::seen::{Seen, listening};
use crate::devtools::{Devtools, evaluated};
use crate::wait;

/// What a result says that never came because the document went meanwhile.
const DOCUMENT_GONE: [&str; 5] = [
    "Cannot find context with specified id",
    "Execution context was destroyed",
    "Inspected target navigated or closed",
    "Session with given id not found",
    "Cannot find default execution context",
];

/// The tab of one test.
pub(super) struct Tab {
    devtools: Devtools,
    /// Host and port of the browser's DevTools.
    address: String,
    /// Cookies and storage.
    context: String,
    target: String,
    session: String,
    seen: watch::Sender<Seen>,
    /// The frame that was entered.
    frame: Mutex<Option<String>>,
    mouse: Mutex<Mouse>,
}

/// Where the mouse is, and whether its button is pressed.
#[derive(Clone, Copy, Default)]
struct Mouse {
    at: (f64, f64),
    is_down: bool,
}

impl Tab {
    /// Opens an empty one in the browser at `address`.
    pub(super) async fn open(address: &str, is_recorded: bool) -> Self {
        let seen = watch::Sender::new(Seen::default());
        let url = browser_url(address).await.unwrap_or_else(|e| panic!("no Chromium at {address}: {e}"));
        let observed = seen.clone();
        let observe = move |event| {
            let mut commands = Vec::new();
            observed.send_modify(|seen| commands = seen.observe(&event, is_recorded));
            commands
        };
        let devtools = Devtools::connect(&url, observe).await;
        let created = async |method: &str, params: Value, key: &str| {
            let result = wait::within("Chromium opens a tab", devtools.call(method, params)).await;
            let result = result.unwrap_or_else(|e| panic!("{e}"));
            result[key].as_str().unwrap_or_else(|| panic!("{method}: {result}")).to_owned()
        };
        // Whatever ends the connection, the tab goes with it.
        let context =
            created("Target.createBrowserContext", json!({"disposeOnDetach": true}), "browserContextId")
                .await;
        let empty = json!({"url": "about:blank", "browserContextId": context, "newWindow": true});
        let target = created("Target.createTarget", empty, "targetId").await;
        let attach = json!({"targetId": target, "flatten": true});
        let session = created("Target.attachToTarget", attach, "sessionId").await;
        seen.send_modify(|seen| seen.begin(&target, &session));
        let (frame, mouse) = (Mutex::default(), Mutex::default());
        let tab =
            Self { devtools, address: address.to_owned(), context, target, session, seen, frame, mouse };
        let commands = listening(true, is_recorded).into_iter();
        futures_util::future::join_all(commands.map(|(method, params)| tab.call(method, params))).await;
        // Of several windows at most one has the focus; elements of the others would get no focus events.
        tab.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await;
        tab
    }

    /// Closes it, with its cookies and its storage.
    pub(super) async fn close(&self) {
        let context = json!({"browserContextId": self.context});
        // The browser itself may have ended.
        let _ = wait::at_most(self.devtools.call("Target.disposeBrowserContext", context)).await;
    }

    /// Host and port of the browser's DevTools.
    pub(super) fn browser(&self) -> &str {
        &self.address
    }

    /// Where a connection of its own to this tab can be made.
    pub(super) fn devtools_url(&self) -> String {
        format!("ws://{}/devtools/page/{}", self.address, self.target)
    }

    /// A command to the tab.
    pub(super) async fn call(&self, method: &str, params: Value) -> Value {
        let call = self.devtools.call_in(Some(&self.session), method, params);
        wait::within(&format!("Chromium answers {method}"), call).await.unwrap_or_else(|e| panic!("{e}"))
    }

    /// Opens an address and waits until its document is loaded.
    pub(super) async fn navigate(&self, url: &str) {
        *self.frame.lock().expect("no panic") = None;
        let result = self.call("Page.navigate", json!({"url": url})).await;
        if let Some(error) = result["errorText"].as_str() {
            panic!("{url}: {error}");
        }
        // Without one only the fragment changed.
        if let Some(document) = result["loaderId"].as_str() {
            self.until_seen(&format!("{url} is loaded"), |seen| seen.has_loaded(document)).await;
        }
        self.until_idle().await;
    }

    /// Loads the document again.
    pub(super) async fn reload(&self) {
        *self.frame.lock().expect("no panic") = None;
        self.until_idle().await;
        let before = self.seen.borrow().documents();
        self.call("Page.reload", json!({})).await;
        self.until_seen("the page is loaded again", |seen| seen.has_loaded_after(before)).await;
        self.until_idle().await;
    }

    /// Evaluates an expression, or what it promises, where the test is: in the page or in the frame that it entered.
    pub(super) async fn eval(&self, expression: &str) -> Result<Value, String> {
        // In parentheses an object is no block.
        let mut params =
            json!({"expression": format!("({expression})"), "returnByValue": true, "awaitPromise": true});
        loop {
            self.until_idle().await;
            let (session, context) = self.place().await;
            params["uniqueContextId"] = context.map_or(Value::Null, Value::from);
            if params["uniqueContextId"].is_null() {
                params.as_object_mut().expect("an object").remove("uniqueContextId");
            }
            match self.devtools.call_in(Some(&session), "Runtime.evaluate", params.clone()).await {
                Ok(result) => return evaluated(result),
                Err(error) if DOCUMENT_GONE.iter().any(|gone| error.contains(gone)) => {
                    tokio::task::yield_now().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same in the page itself, now.
    async fn eval_in_page(&self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        evaluated(self.call("Runtime.evaluate", params).await).unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    /// Address of the page.
    pub(super) async fn address(&self) -> String {
        self.flush().await;
        self.until_idle().await;
        self.eval_in_page("location.href").await.as_str().expect("an address").to_owned()
    }

    /// Goes into the first frame of where the test is.
    pub(super) async fn enter_frame(&self) {
        let (session, context) = self.place().await;
        let mut params = json!({"expression": "document.querySelector('iframe, frame')"});
        if let Some(context) = context {
            params["uniqueContextId"] = context.into();
        }
        let call = async |method: &str, params: Value| {
            let result = self.devtools.call_in(Some(&session), method, params);
            wait::within("Chromium finds the frame", result).await.unwrap_or_else(|e| panic!("{e}"))
        };
        let found = call("Runtime.evaluate", params).await;
        let node = call("DOM.describeNode", json!({"objectId": found["result"]["objectId"]})).await;
        let frame = node["node"]["frameId"].as_str().expect("there is a frame").to_owned();
        *self.frame.lock().expect("no panic") = Some(frame);
    }

    /// The session and the context to evaluate in, once they are there; without a context it is the session's own.
    async fn place(&self) -> (String, Option<String>) {
        let frame = self.frame.lock().expect("no panic").clone();
        let Some(frame) = frame else { return (self.session.clone(), None) };
        let mut place = None;
        self.until_seen("the frame has a document", |seen| {
            place = seen.place_of(&frame);
            place.is_some()
        })
        .await;
        place.expect("it was waited for")
    }

    /// Moves the mouse.
    pub(super) async fn move_to(&self, x: f64, y: f64) {
        let is_down = {
            let mut mouse = self.mouse.lock().expect("no panic");
            mouse.at = (x, y);
            mouse.is_down
        };
        let (button, buttons) = if is_down { ("left", 1) } else { ("none", 0) };
        self.mouse_event(json!({"type": "mouseMoved", "button": button, "buttons": buttons})).await;
    }

    /// Presses the mouse's button.
    pub(super) async fn press_button(&self) {
        self.mouse.lock().expect("no panic").is_down = true;
        self.mouse_event(json!({"type": "mousePressed", "button": "left", "buttons": 1, "clickCount": 1}))
            .await;
    }

    /// Lets the mouse's button go.
    pub(super) async fn release_button(&self) {
        self.mouse.lock().expect("no panic").is_down = false;
        self.mouse_event(json!({"type": "mouseReleased", "button": "left", "buttons": 0, "clickCount": 1}))
            .await;
        self.flush().await;
    }

    async fn mouse_event(&self, mut event: Value) {
        assert!(self.frame.lock().expect("no panic").is_none(), "places in frames are not known");
        let Mouse { at: (x, y), .. } = *self.mouse.lock().expect("no panic");
        (event["x"], event["y"]) = (x.into(), y.into());
        self.call("Input.dispatchMouseEvent", event).await;
    }

    /// Waits until what was done before has come to the page: whether a click opens another document is known then.
    pub(super) async fn flush(&self) {
        self.eval_in_page("0").await;
    }

    /// Gives the page a viewport of exactly this size, in CSS pixels.
    pub(super) async fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// A picture of the window, as PNG.
    pub(super) async fn screenshot(&self) -> Vec<u8> {
        let response = self.call("Page.captureScreenshot", json!({"format": "png"})).await;
        let data = response["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(data).expect("base64")
    }

    /// What page and frames complained of since the last call.
    pub(super) async fn take_complaints(&self) -> Vec<String> {
        self.flush().await;
        let mut taken = Vec::new();
        self.seen.send_modify(|seen| taken = std::mem::take(&mut seen.complaints));
        taken
    }

    /// Events of the network since the last call.
    pub(super) async fn take_network(&self) -> Vec<Value> {
        self.flush().await;
        let mut taken = Vec::new();
        self.seen.send_modify(|seen| taken = std::mem::take(&mut seen.network));
        taken
    }

    /// Waits until no document is being loaded.
    async fn until_idle(&self) {
        self.until_seen("the page is loaded", |seen| !seen.is_loading()).await;
    }

    async fn until_seen(&self, what: &str, mut is: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.subscribe();
        let waited = seen.wait_for(|seen| seen.has_crashed || is(seen));
        let has_crashed = wait::within(what, waited).await.expect("it is observed").has_crashed;
        assert!(!has_crashed, "the tab crashed while a test waited until {what}");
    }
}
