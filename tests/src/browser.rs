//! A real browser, driven as a person uses it: Chromium, or the one that [`Engine::chosen`] names. A test has a tab with cookies and
//! storage of its own, in the Chromium that all tests share where the environment names one ([`SHARED`]), else in one of its own. The
//! tab is closed when the test is over, also when it panics, and every test ends with two questions: did the page complain, and did
//! it ask anyone but us for anything.

mod chromium;
mod engine;
mod seen;
mod tab;
#[cfg(feature = "webdriver")]
mod webdriver;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use futures_util::FutureExt;
use serde_json::{Value, json};
use url::Url;

use crate::figures::number;
use crate::radixscope::Radixscope;
use crate::{paths, wait};
use tab::Tab;
#[cfg(feature = "webdriver")]
use webdriver::Window;

pub use chromium::{Chromium, SHARED, STARTED};
pub use engine::Engine;

/// A page that a test drives.
pub struct Page {
    driven: Driven,
    engine: Engine,
    browser_id: Option<u32>,
    /// Whether everything that goes over the network is kept.
    is_recorded: bool,
    complaints_are_expected: AtomicBool,
}

/// How the page is driven.
enum Driven {
    Chromium(Tab),
    /// Other browsers.
    #[cfg(feature = "webdriver")]
    WebDriver(Window),
}

/// Calls the method of the same name of how a page is driven.
macro_rules! driven {
    ($page:ident.$method:ident($($argument:expr),*)) => {
        match &$page.driven {
            Driven::Chromium(tab) => tab.$method($($argument),*).await,
            #[cfg(feature = "webdriver")]
            Driven::WebDriver(window) => window.$method($($argument),*).await,
        }
    };
}

/// Runs a test in a page of 1280 × 720, then closes the page.
pub async fn with_page(test: impl AsyncFnOnce(&Page)) {
    with_page_of(true, None, test).await;
}

/// The same in a Chromium of its own, with more arguments for it: for a test that needs these, or the browser's process.
pub async fn with_page_and(arguments: &[&str], test: impl AsyncFnOnce(&Page)) {
    with_page_of(true, Some(arguments), test).await;
}

/// The same as [`with_page`], but network traffic is not recorded, for measuring: the page's own thread copies every frame of a
/// socket for whoever does.
pub async fn with_unrecorded_page(test: impl AsyncFnOnce(&Page)) {
    with_page_of(false, None, test).await;
}

async fn with_page_of(is_recorded: bool, arguments: Option<&[&str]>, test: impl AsyncFnOnce(&Page)) {
    let engine = Engine::chosen();
    let mut own = None;
    let driven = match engine {
        Engine::Chromium => {
            let shared = chromium::shared().filter(|_| arguments.is_none());
            let address = match shared {
                Some(address) => address,
                None => {
                    let started = Chromium::start(arguments.unwrap_or_default()).await;
                    own.insert(started).address().to_owned()
                }
            };
            Driven::Chromium(Tab::open(&address, is_recorded).await)
        }
        #[cfg(feature = "webdriver")]
        Engine::Firefox | Engine::WebKit => Driven::WebDriver(Window::open(engine).await),
        #[cfg(not(feature = "webdriver"))]
        Engine::Firefox | Engine::WebKit => {
            panic!(
                "these tests were built for Chromium alone; `cargo xtask test browsers` runs them in {engine:?}"
            )
        }
    };
    let browser_id = match &driven {
        Driven::Chromium(_) => own.as_ref().map(Chromium::id),
        #[cfg(feature = "webdriver")]
        Driven::WebDriver(window) => window.browser_id(),
    };
    let complaints_are_expected = false.into();
    let page = Page { driven, engine, browser_id, is_recorded, complaints_are_expected };
    let outcome = AssertUnwindSafe(async {
        page.size(1280, 720).await;
        test(&page).await;
        page.check_conduct().await;
    })
    .catch_unwind()
    .await;
    if outcome.is_err() {
        page.explain().await;
    }
    match page.driven {
        Driven::Chromium(tab) => tab.close().await,
        #[cfg(feature = "webdriver")]
        Driven::WebDriver(window) => window.close().await,
    }
    if let Some(own) = own {
        own.close().await;
    }
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

impl Page {
    /// The browser's process, where it is the test's own.
    pub fn browser_id(&self) -> Option<u32> {
        self.browser_id
    }

    /// Where Chromium itself can be asked, host and port.
    pub fn debugger(&self) -> &str {
        self.tab().browser()
    }

    /// Where a connection of its own can be made to the page's DevTools: see [`crate::devtools`].
    pub(crate) fn devtools_url(&self) -> String {
        self.tab().devtools_url()
    }

    fn tab(&self) -> &Tab {
        match &self.driven {
            Driven::Chromium(tab) => tab,
            #[cfg(feature = "webdriver")]
            Driven::WebDriver(_) => panic!("{} has no DevTools", self.engine.as_str()),
        }
    }

    /// Which browser it is.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Opens an address and waits until it is loaded.
    pub async fn open(&self, url: &str) {
        driven!(self.navigate(url));
    }

    /// Opens our page and waits until it is where the API is, which is not before `cluster`; gives the digest of both.
    pub async fn open_at(&self, server: &Radixscope, path: &str, cluster: &Value) -> String {
        self.open(&server.url(path)).await;
        let (seq, digest) = self.agrees_with(server).await;
        assert!(seq >= number(cluster, "seq"), "at {seq}");
        let loaded = "!document.querySelector('[data-testid=part-loading]')";
        self.until_true("every panel is loaded", loaded).await;
        digest
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        driven!(self.reload());
    }

    /// Address now.
    pub async fn address(&self) -> Url {
        let address = driven!(self.address());
        Url::parse(&address).unwrap_or_else(|e| panic!("{address}: {e}"))
    }

    /// Evaluates an expression, or what it promises, in the page.
    pub async fn eval(&self, expression: &str) -> Value {
        // A page that hangs answers never.
        wait::within("the page answers", async { driven!(self.eval(expression)) })
            .await
            .unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    /// Text of the first element with this test id as a person sees it; `None` if there is none.
    pub async fn text(&self, id: &str) -> Option<String> {
        let value = self.eval(&format!("document.querySelector('[data-testid=\"{id}\"]')?.innerText")).await;
        value.as_str().map(|text| text.trim().to_owned())
    }

    /// Texts of all elements that `selector` finds.
    pub async fn texts(&self, selector: &str) -> Vec<String> {
        let all = format!("[...document.querySelectorAll({})].map(e => e.innerText.trim())", json!(selector));
        serde_json::from_value(self.eval(&all).await).expect("a list of texts")
    }

    /// An attribute of the first element that `selector` finds.
    pub async fn attribute(&self, selector: &str, name: &str) -> Option<String> {
        let get = format!("document.querySelector({})?.getAttribute({})", json!(selector), json!(name));
        self.eval(&get).await.as_str().map(str::to_owned)
    }

    /// Waits until `look` is content.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFn(&Self) -> Result<T, String>) -> T {
        wait::until(what, async || look(self).await).await
    }

    /// Waits until an expression in the page is true.
    pub async fn until_true(&self, what: &str, expression: &str) {
        self.until(what, async |page| {
            let now = page.eval(expression).await;
            wait::expect(now == json!(true), || format!("{expression} is {now}"))
        })
        .await;
    }

    /// Waits until the page has folded the same record as the server's API and compared digests there, and compares them
    /// too; gives both. Asks anew each time, because the checks go on saying things when nobody else does.
    pub async fn agrees_with(&self, server: &Radixscope) -> (u64, String) {
        self.until("the page is where the server is", async |page| {
            let now = page.eval("({...document.body.dataset})").await;
            let cluster = server.cluster().await;
            let seq = number(&cluster, "seq");
            let at = |key: &str| now[key].as_str().and_then(|n| n.parse::<u64>().ok());
            let is_there = at("seq") == Some(seq) && at("digestSeq") == Some(seq);
            wait::expect(is_there, || format!("{now}, the server at {seq}"))?;
            assert_eq!(cluster["digest"], now["digest"], "browser and server agree on the state");
            Ok((seq, now["digest"].as_str().expect("a digest").to_owned()))
        })
        .await
    }

    /// Waits until the rows of workers have the blocks that the API gives, and returns their texts: numbers follow the state
    /// a little later than the attributes that [`Self::agrees_with`] looks at.
    pub async fn blocks_of_workers(&self, server: &Radixscope) -> Vec<String> {
        self.until("every worker's row has its blocks", async |page| {
            let cluster = server.cluster().await;
            let workers = cluster["workers"].as_array().ok_or("no workers")?;
            let mut expected: Vec<Option<u64>> =
                workers.iter().map(|worker| worker["blocks"].as_u64()).collect();
            let texts = page.texts("[data-testid=held]").await;
            let mut shown: Vec<Option<u64>> =
                texts.iter().map(|text| text.replace(',', "").parse().ok()).collect();
            expected.sort_unstable();
            shown.sort_unstable();
            wait::expect(shown == expected, || format!("{texts:?}, by the API {expected:?}"))?;
            Ok(texts)
        })
        .await
    }

    /// Clicks the first element with this test id.
    pub async fn click(&self, id: &str) {
        let selector = format!("[data-testid=\"{id}\"]");
        // As a person would scroll to what is below the edge of a dialog or a pane.
        self.eval(&format!("document.querySelector('{selector}')?.scrollIntoView({{block: 'nearest'}})"))
            .await;
        let (x, y) = self.centre(&selector).await;
        self.click_at(x, y).await;
    }

    /// Middle of the first element that `selector` finds, in CSS pixels of the window.
    pub async fn centre(&self, selector: &str) -> (f64, f64) {
        let (x, y, width, height) = self.rectangle(selector).await;
        (x + width / 2.0, y + height / 2.0)
    }

    /// Left, top, width and height of the first element that `selector` finds, in CSS pixels of the window.
    pub async fn rectangle(&self, selector: &str) -> (f64, f64, f64, f64) {
        let get = format!(
            "(r => r && [r.x, r.y, r.width, r.height])(document.querySelector({})?.getBoundingClientRect())",
            json!(selector)
        );
        serde_json::from_value(self.eval(&get).await).unwrap_or_else(|_| panic!("nothing is {selector}"))
    }

    /// Moves the mouse.
    pub async fn hover(&self, x: f64, y: f64) {
        driven!(self.move_to(x, y));
    }

    /// Moves the mouse and clicks.
    pub async fn click_at(&self, x: f64, y: f64) {
        self.press_at(x, y).await;
        self.release().await;
    }

    /// Moves the mouse and presses its button, until [`Page::release`].
    pub async fn press_at(&self, x: f64, y: f64) {
        self.hover(x, y).await;
        driven!(self.press_button());
    }

    /// Lets the mouse's button go.
    pub async fn release(&self) {
        driven!(self.release_button());
    }

    /// Moves the mouse and clicks twice.
    pub async fn double_click_at(&self, x: f64, y: f64) {
        for count in [1, 2] {
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": count});
                self.devtools("Input.dispatchMouseEvent", event).await;
            }
        }
    }

    /// Presses the mouse's button at the first of `places`, moves on to each of the others, and lets go.
    pub async fn drag(&self, places: &[(f64, f64)]) {
        let (&(x, y), others) = places.split_first().expect("a place to begin at");
        self.press_at(x, y).await;
        for &(x, y) in others {
            self.hover(x, y).await;
        }
        self.release().await;
    }

    /// Turns the mouse's wheel over a place by so many pixels to the right and down, with DevTools' bits of the keys
    /// that are held: 1 Alt, 2 Ctrl, 8 Shift.
    pub async fn wheel(&self, (x, y): (f64, f64), (right, down): (f64, f64), held: u8) {
        let event = json!({
            "type": "mouseWheel", "x": x, "y": y, "deltaX": right, "deltaY": down, "modifiers": held,
        });
        self.devtools("Input.dispatchMouseEvent", event).await;
    }

    /// Fingers on the screen: none lets go of all.
    pub async fn fingers(&self, kind: &str, at: &[(f64, f64)]) {
        let points: Vec<Value> =
            at.iter().enumerate().map(|(id, (x, y))| json!({"x": x, "y": y, "id": id})).collect();
        self.devtools("Input.dispatchTouchEvent", json!({"type": kind, "touchPoints": points})).await;
    }

    /// Gives files to an input as a person does who chooses them.
    pub async fn choose_files(&self, selector: &str, paths: &[&Path]) {
        let found = json!({"expression": format!("document.querySelector({})", json!(selector))});
        let found = self.devtools("Runtime.evaluate", found).await;
        let input = json!({"objectId": found["result"]["objectId"], "files": paths});
        self.devtools("DOM.setFileInputFiles", input).await;
    }

    /// Drops a recording on the page, which says before that it will take it.
    pub async fn drop_file(&self, path: &Path, selector: &str) {
        self.drag_file("dragover", path, selector).await;
        self.until_true("the target is seen", "document.body.classList.contains('recording-over')").await;
        self.drag_file("drop", path, selector).await;
        self.until_true("the target is gone", "!document.body.classList.contains('recording-over')").await;
    }

    /// An event of dragging a file over an element: a real file, by way of an input that is not the page's.
    pub async fn drag_file(&self, event: &str, path: &Path, selector: &str) {
        self.eval(
            "(() => { const input = document.createElement('input'); input.type = 'file'; input.id = 'hand'; document.body.append(input); })()",
        )
        .await;
        self.choose_files("#hand", &[path]).await;
        let (event, selector) = (json!(event), json!(selector));
        self.eval(&format!(
            "(() => {{ const hand = document.getElementById('hand'), files = new DataTransfer(); files.items.add(hand.files[0]); hand.remove();
             document.querySelector({selector}).dispatchEvent(new DragEvent({event}, {{ dataTransfer: files, bubbles: true, cancelable: true }})); }})()"
        ))
        .await;
    }

    /// Presses a key as DevTools name it: `Tab`, `Enter`, `ArrowDown`, `?`.
    pub async fn press(&self, key: &str) {
        let text = match key {
            "Enter" => "\r",
            " " => " ",
            key if key.chars().count() == 1 => key,
            _ => "",
        };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            " " => 32,
            "PageUp" => 33,
            "PageDown" => 34,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Backspace" => 8,
            _ => 0,
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let down =
            json!({"type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code});
        self.devtools("Input.dispatchKeyEvent", down).await;
        let up = json!({"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code});
        self.devtools("Input.dispatchKeyEvent", up).await;
        self.tab().flush().await;
    }

    /// Gives the page a viewport of exactly this size, in CSS pixels.
    pub async fn size(&self, width: u32, height: u32) {
        driven!(self.size(width, height));
    }

    /// What the person prefers: `("prefers-color-scheme", "light")`, `("prefers-reduced-motion", "reduce")`.
    pub async fn prefer(&self, preferences: &[(&str, &str)]) {
        let features: Vec<Value> =
            preferences.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features})).await;
    }

    /// Goes into the page's first frame, until another address is opened.
    pub async fn enter_frame(&self) {
        driven!(self.enter_frame());
    }

    /// Saves a picture of the window as `target/screens/<name>.png`.
    pub async fn screenshot(&self, name: &str) {
        let png = driven!(self.screenshot());
        let file = paths::screens().join(format!("{name}.png"));
        std::fs::write(&file, png).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }

    /// How many different colours a canvas shows; 0 while there is no such canvas.
    pub async fn colours(&self, canvas: &str) -> usize {
        // Read from a copy: reading the page's own canvas would change how the browser treats it.
        let count = format!(
            "((c) => {{ if (!c?.width || !c.height) return 0;
            const copy = new OffscreenCanvas(c.width, c.height).getContext('2d', {{willReadFrequently: true}});
            copy.drawImage(c, 0, 0);
            const pixels = copy.getImageData(0, 0, c.width, c.height).data.buffer;
            return new Set(new Uint32Array(pixels)).size; }})(document.querySelector({}))",
            json!(canvas)
        );
        let count = self.eval(&count).await;
        count.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_else(|| panic!("{canvas}: {count}"))
    }

    /// From here on the page may complain: something is about to be taken away from it.
    pub fn expect_complaints(&self) {
        self.complaints_are_expected.store(true, Ordering::Relaxed);
    }

    /// Warnings and errors on the page's console since the last call.
    pub async fn complaints(&self) -> Vec<String> {
        driven!(self.take_complaints())
    }

    /// Addresses that the browser asked for since the last call, sockets included.
    pub async fn requests(&self) -> Vec<String> {
        let events = match &self.driven {
            Driven::Chromium(tab) => tab.take_network().await,
            #[cfg(feature = "webdriver")]
            Driven::WebDriver(window) => return window.requests().await,
        };
        let request = |event: &Value| {
            let params = &event["params"];
            let url = match event["method"].as_str()? {
                "Network.requestWillBeSent" => &params["request"]["url"],
                "Network.webSocketCreated" => &params["url"],
                _ => return None,
            };
            url.as_str().map(str::to_owned)
        };
        // Requests of the browser's own pages are none of ours. No page of a server can request what has these schemes.
        let is_of_browser = |url: &String| {
            ["chrome:", "chrome-untrusted:", "chrome-error:"].iter().any(|scheme| url.starts_with(scheme))
        };
        events.iter().filter_map(request).filter(|url| !is_of_browser(url)).collect()
    }

    /// The sockets opened since the last call of this or [`Page::requests`], in order: address, and the frames that came.
    pub async fn sockets(&self) -> Vec<(String, Vec<Vec<u8>>)> {
        let mut sockets: Vec<(Value, String, Vec<Vec<u8>>)> = Vec::new();
        for event in self.tab().take_network().await {
            let params = &event["params"];
            let (id, text) = (params["requestId"].clone(), |value: &Value| value.as_str().map(str::to_owned));
            match event["method"].as_str() {
                Some("Network.webSocketCreated") => {
                    sockets.push((id, text(&params["url"]).expect("an address"), Vec::new()));
                }
                Some("Network.webSocketFrameReceived") => {
                    let Some((.., frames)) = sockets.iter_mut().find(|(known, ..)| *known == id) else {
                        continue;
                    };
                    let data = text(&params["response"]["payloadData"]).expect("a frame");
                    frames.push(base64::engine::general_purpose::STANDARD.decode(data).expect("base64"));
                }
                _ => {}
            }
        }
        sockets.into_iter().map(|(_, url, frames)| (url, frames)).collect()
    }

    /// The page must not have complained, and may have requested nothing from other machines.
    async fn check_conduct(&self) {
        let complaints = self.complaints().await;
        let may = self.complaints_are_expected.load(Ordering::Relaxed);
        assert!(may || complaints.is_empty(), "the page complained: {complaints:#?}");
        if !self.is_recorded {
            return;
        }
        for request in self.requests().await {
            let url = Url::parse(&request).unwrap_or_else(|e| panic!("{request}: {e}"));
            let is_local = matches!(url.host_str(), Some("127.0.0.1" | "localhost"));
            let is_inside = matches!(url.scheme(), "data" | "blob" | "about");
            assert!(is_local || is_inside, "the page asked for {request}");
        }
    }

    /// What a person would look at first when a test has failed.
    async fn explain(&self) {
        let log = AssertUnwindSafe(async {
            let text = self.eval("document.body?.innerText.replace(/\\s+/g, ' ').slice(0, 1500)").await;
            let complaints = self.complaints().await;
            eprintln!(
                "--- the page showed:\n{}\n--- and complained: {complaints:#?}",
                text.as_str().unwrap_or("")
            );
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("test").replace("::", "-");
            self.screenshot(&format!("failed-{name}")).await;
        });
        // The browser itself may be what failed.
        let _ = log.catch_unwind().await;
    }

    /// A command of Chromium's DevTools: a test that needs one can be run in Chromium alone.
    pub async fn devtools(&self, command: &str, params: Value) -> Value {
        self.tab().call(command, params).await
    }
}
