//! Firefox and WebKit, driven by WebDriver: what every browser can do, by `cargo xtask test browsers`.

mod driver;
mod in_page;

use fantoccini::actions::{InputSource, MOUSE_BUTTON_LEFT, MouseActions, PointerAction};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::Value;
use tempfile::TempDir;

use super::Engine;
use crate::{process, wait};
use driver::Driver;

/// A window of such a browser, and the browser itself.
pub(super) struct Window {
    client: Client,
    /// Where Firefox is spoken to by BiDi.
    bidi: Option<String>,
    id: Option<u32>,
    _driver: Driver,
    /// Removed after the driver has ended.
    _profile: TempDir,
}

impl Window {
    /// Starts the browser.
    pub(super) async fn open(engine: Engine) -> Self {
        let profile = tempfile::Builder::new().prefix("radixscope-browser-").tempdir();
        let profile = profile.expect("a writable folder");
        let driver = driver::start(engine, &profile).await;
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(driver::capabilities(engine))
            .connect(&format!("http://127.0.0.1:{}", driver.port))
            .await
            .unwrap_or_else(|e| {
                panic!("starting {}: {e}; does `cargo xtask setup browsers` help?", engine.as_str())
            });
        let said = client.capabilities().cloned().unwrap_or_default();
        let id = said.get("moz:processID").and_then(Value::as_u64);
        let id = id.and_then(|id| u32::try_from(id).ok());
        let bidi = said.get("webSocketUrl").and_then(Value::as_str).map(str::to_owned);
        Self { client, bidi, id, _driver: driver, _profile: profile }
    }

    /// Ends the browser, which outlives its driver.
    pub(super) async fn close(self) {
        let closed = wait::at_most(self.client.close()).await;
        if let (Ok(Err(_)) | Err(_), Some(id)) = (closed, self.id) {
            process::end(id);
        }
    }

    /// The browser's process.
    pub(super) fn browser_id(&self) -> Option<u32> {
        self.id
    }

    /// Opens an address. The console is listened to in the page itself.
    pub(super) async fn navigate(&self, url: &str) {
        let opened = wait::within(&format!("{url} is loaded"), self.client.goto(url)).await;
        opened.unwrap_or_else(|e| panic!("{url}: {e}"));
        self.listen().await;
    }

    pub(super) async fn reload(&self) {
        self.client.refresh().await.expect("the page is still there");
        self.listen().await;
    }

    async fn listen(&self) {
        self.eval(in_page::LISTEN).await.unwrap_or_else(|e| panic!("{e}"));
    }

    pub(super) async fn address(&self) -> String {
        self.client.current_url().await.expect("the browser answers").to_string()
    }

    /// Evaluates an expression, or what it promises.
    pub(super) async fn eval(&self, expression: &str) -> Result<Value, String> {
        let script = format!("return ({expression});");
        self.client.execute(&script, Vec::new()).await.map_err(|e| e.to_string())
    }

    pub(super) async fn move_to(&self, x: f64, y: f64) {
        self.mouse(PointerAction::MoveTo { duration: None, x, y }).await;
    }

    pub(super) async fn press_button(&self) {
        self.mouse(PointerAction::Down { button: MOUSE_BUTTON_LEFT }).await;
    }

    pub(super) async fn release_button(&self) {
        self.mouse(PointerAction::Up { button: MOUSE_BUTTON_LEFT }).await;
    }

    async fn mouse(&self, action: PointerAction) {
        let actions = MouseActions::new("mouse".to_owned()).then(action);
        self.client.perform_actions(actions).await.expect("the mouse moves");
    }

    /// Gives the page a viewport of this size, where the driver speaks no BiDi by the size of the window, which is larger by its bars
    /// and has a least width of its own.
    pub(super) async fn size(&self, width: u32, height: u32) {
        if let Some(bidi) = &self.bidi {
            let context = self.client.window().await.expect("there is a window");
            return in_page::set_viewport(bidi, &String::from(context), width, height).await;
        }
        let asked =
            async |width, height| self.client.set_window_size(width, height).await.expect("it has a size");
        asked(width, height).await;
        wait::until("the window has the size", async || {
            let inner = self.eval("[innerWidth, innerHeight]").await?;
            let inner: (u32, u32) = serde_json::from_value(inner).expect("two");
            if inner.1 != height {
                let outer = self.client.get_window_size().await.expect("it has a size").1 as u32;
                asked(width, height + outer.saturating_sub(inner.1)).await;
            }
            wait::expect(inner.1 == height && inner.0 >= width, || format!("it is {inner:?}"))
        })
        .await;
    }

    pub(super) async fn enter_frame(&self) {
        self.client.clone().enter_frame(0).await.expect("there is a frame");
    }

    pub(super) async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }

    /// What the page complained of since the last call.
    pub(super) async fn take_complaints(&self) -> Vec<String> {
        let complaints = self.eval(in_page::COMPLAINTS).await.unwrap_or_else(|e| panic!("{e}"));
        serde_json::from_value(complaints).expect("texts")
    }

    /// Addresses that the document asked for.
    pub(super) async fn requests(&self) -> Vec<String> {
        let requests = self.eval(in_page::REQUESTS).await.unwrap_or_else(|e| panic!("{e}"));
        serde_json::from_value(requests).expect("addresses")
    }
}
