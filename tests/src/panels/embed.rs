//! Frames and images of our server in the page of another site.

use crate::browser::Page;
use crate::pages::Site;
use crate::panels::paused_demo;
use crate::radixscope::Radixscope;
use serde_json::json;

/// The access token.
pub const TOKEN: &str = "a-token-that-nobody-guesses";
/// Chromium with cookies of third parties off, for a certificate that is self-signed.
pub const STRICT: [&str; 2] = ["--test-third-party-cookie-phaseout", "--ignore-certificate-errors"];

/// The server under another name than the site's, hence another site.
pub fn abroad(server: &Radixscope, scheme: &str, path: &str) -> String {
    format!("{scheme}://localhost:{}{path}", server.port())
}

/// A page of another site with a frame, which is entered.
pub async fn frame(page: &Page, site: &Site, attributes: &str, url: &str) {
    page.open(&site.url()).await;
    let html = format!("<iframe {attributes} width=1200 height=680 src=\"{url}\"></iframe>");
    page.eval(&format!("document.body.innerHTML = {}", json!(html))).await;
    page.enter_frame().await;
}

/// Waits until the document, which may be a frame, is live.
pub async fn until_live(page: &Page, what: &str) {
    page.until_true(&format!("{what} is live"), "document.body?.dataset.connection === 'live'").await;
}

/// A page of another site with an image, until it is loaded; gives its width.
pub async fn image(page: &Page, site: &Site, url: &str) -> u64 {
    page.open(&site.url()).await;
    let html = format!("<img src=\"{url}\">");
    page.eval(&format!("document.body.innerHTML = {}", json!(html))).await;
    page.until_true("the image is complete", "document.images[0]?.complete === true").await;
    page.eval("document.images[0].naturalWidth").await.as_u64().expect("a width")
}

/// A demo with these flags that any site may frame, in which hardly any time passes.
pub async fn demo(flags: &[&str]) -> Radixscope {
    paused_demo(&[&["--warm-up", "60", "--frame-ancestors", "*"], flags].concat()).await
}
