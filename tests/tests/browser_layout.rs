//! Whatever the window's size, every text in every view can be read: none is cut off, covered, or written over another.
//! Canvases are out of reach, so that of the tree and of charts the boxes alone are looked at.

use radixscope_tests::browser::with_unrecorded_page;
use radixscope_tests::look::{self, Faults, THEMES};

/// Width and height in CSS pixels: a telephone, a frame in a dashboard, 1280×720 at 200 %, the same with what a browser takes of
/// it, a laptop, a screen.
const SIZES: [(u32, u32); 6] = [(400, 800), (600, 400), (640, 360), (1280, 580), (1280, 720), (1920, 1080)];

#[tokio::test]
async fn every_text_can_be_read_at_every_size() {
    let (server, views) = look::demo().await;
    let mut faults = Faults::default();
    with_unrecorded_page(async |page| {
        for theme in THEMES {
            for view in &views {
                look::open(page, &server, view, theme).await;
                for (width, height) in SIZES {
                    page.size(width, height).await;
                    look::settled(page).await;
                    faults.add(view, &format!("{width}×{height} {theme}"), look::layout_faults(page).await);
                }
            }
        }
    })
    .await;
    faults.check();
}
