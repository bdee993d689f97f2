//! Whatever the window's size, every text in every view can be read: none is cut off, covered, or written over another.
//! Canvases are out of reach, so that of the tree and of charts the boxes alone are looked at.

use radixscope_tests::browser::with_unrecorded_page;
use radixscope_tests::layout::{self, Faults};

/// Width and height in CSS pixels: a telephone, a frame in a dashboard, 1280×720 and 1440×900 and 1920×1080 at 200 %, 1280×720 with
/// what a browser takes of it, two laptops, a screen.
const SIZES: [(u32, u32); 9] = [
    (400, 800),
    (600, 400),
    (640, 360),
    (720, 450),
    (960, 540),
    (1280, 580),
    (1280, 720),
    (1440, 900),
    (1920, 1080),
];

/// So many tests share the views, so that each ends in time on a slow machine too.
const SHARES: usize = 3;

/// In every view, or in those of one of the [`SHARES`].
async fn every_text_can_be_read(deployment: &[&'static str], share: Option<usize>, themes: &[&str]) {
    let (server, views) = layout::demo(deployment).await;
    let (first, step) = share.map_or((0, 1), |share| (share, SHARES));
    let mut faults = Faults::default();
    with_unrecorded_page(async |page| {
        for view in views.iter().skip(first).step_by(step) {
            for theme in themes {
                layout::open(page, &server, view, theme).await;
                for (width, height) in SIZES {
                    page.size(width, height).await;
                    layout::until_stable(page).await;
                    faults.add(view, &format!("{width}×{height} {theme}"), layout::layout_faults(page).await);
                }
            }
        }
    })
    .await;
    faults.check();
}

// Texts take the same place in both themes.

#[tokio::test]
async fn every_text_can_be_read_at_every_size_in_a_third_of_the_views() {
    every_text_can_be_read(&layout::DISAGGREGATED, Some(0), &["light"]).await;
}

#[tokio::test]
async fn every_text_can_be_read_at_every_size_in_a_second_third() {
    every_text_can_be_read(&layout::DISAGGREGATED, Some(1), &["light"]).await;
}

#[tokio::test]
async fn every_text_can_be_read_at_every_size_in_the_last_third() {
    every_text_can_be_read(&layout::DISAGGREGATED, Some(2), &["light"]).await;
}

#[tokio::test]
async fn every_text_can_be_read_at_every_size_in_the_dark() {
    every_text_can_be_read(&layout::DISAGGREGATED, None, &["dark"]).await;
}

#[tokio::test]
async fn every_text_can_be_read_at_every_size_with_two_models_and_many_workers() {
    // Which texts there are depends on the deployment.
    every_text_can_be_read(&layout::TWO_MODELS, None, &["light"]).await;
}

#[tokio::test]
async fn every_text_can_be_read_at_every_size_after_a_loss() {
    every_text_can_be_read(&layout::GAP, None, &["dark"]).await;
}
