//! The memory panel over a demo that stands still.

use crate::browser::Page;
use crate::panels::paused_demo;
use crate::radixscope::Radixscope;

/// Address of the panel.
pub const VIEW: &str = "/?view=memory";

/// A cluster that stands still, so that page and API say the same.
pub async fn paused(more: &[&str]) -> Radixscope {
    match more {
        [] => Radixscope::standing("aggregated").await,
        more => paused_demo(&[&["--warm-up", "120"], more].concat()).await,
    }
}

/// Opens an address of the panel.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true("the panel is there", "!!document.querySelector('[data-testid=cap]')").await;
}
