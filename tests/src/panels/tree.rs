//! The camera of the tree panel, read from what the tree says of itself.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::json;

/// The recorded traffic of these tests.
pub const CAPTURE: &str = "0.9.1-healthy";
/// Width of the axis at the left of the picture, CSS pixels.
pub const AXIS: f64 = 46.0;

/// What the camera shows: units from the left, blocks from the top.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Region {
    /// Left edge.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// Upper edge.
    pub top: f64,
    /// Lower edge.
    pub bottom: f64,
}

impl Region {
    /// Width in units.
    pub fn across(self) -> f64 {
        self.x1 - self.x0
    }

    /// Height in blocks.
    pub fn down(self) -> f64 {
        self.bottom - self.top
    }
}

/// The region that the picture shows now.
pub async fn region(page: &Page) -> Result<Region, String> {
    let announced = page.attribute("#tree", "data-region").await.ok_or("no picture yet")?;
    let numbers: Vec<f64> = announced.split(' ').filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [x0, x1, top, bottom] => Ok(Region { x0, x1, top, bottom }),
        _ => Err(announced),
    }
}

/// The region once a movement is over.
pub async fn at_rest(page: &Page) -> Region {
    page.until("the camera rests", async |page| {
        let before = region(page).await?;
        // Two frames later it would be another one on a journey.
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))";
        page.devtools("Runtime.evaluate", json!({"expression": frames, "awaitPromise": true})).await;
        let after = region(page).await?;
        wait::expect(before == after, || format!("{before:?} {after:?}")).map(|()| after)
    })
    .await
}

/// The region once `done` is content with it.
pub async fn until_region(page: &Page, what: &str, done: impl Fn(Region) -> bool) -> Region {
    page.until(what, async |page| {
        let now = region(page).await?;
        wait::expect(done(now), || format!("{now:?}")).map(|()| now)
    })
    .await;
    at_rest(page).await
}

/// Opens an address, and waits until the tree is drawn and the camera rests.
pub async fn open(page: &Page, server: &Radixscope, path: &str) -> Region {
    page.open(&server.url(path)).await;
    page.until("the tree is drawn", async |page| {
        let colours = page.colours("#tree canvas.picture").await;
        wait::expect(colours > 4, || format!("{colours} colours"))
    })
    .await;
    at_rest(page).await
}

/// A place on the picture without its axis, as shares of its width and height.
pub async fn place(page: &Page, across: f64, down: f64) -> (f64, f64) {
    let (x, y, width, height) = page.rectangle("#tree").await;
    (x + AXIS + (width - AXIS) * across, y + height * down)
}

/// Whether two places are as good as equal in a picture that is `of` wide.
pub fn close(a: f64, b: f64, of: f64) -> bool {
    (a - b).abs() < of * 0.005
}
