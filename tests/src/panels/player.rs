//! A recording of a demo, and whether the page shows a moment of it.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::browser::Page;
use crate::panels::says;
use crate::radixscope::Radixscope;
use crate::wait;
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{Recording, SeekTo};

/// Seconds of the timeline that a recording of these tests holds at least.
pub const ROWS: usize = 6;

/// A server, and a recording of what it did.
pub struct Recorded {
    /// The server.
    pub server: Radixscope,
    /// Where the recording is.
    pub folder: tempfile::TempDir,
    /// The recording.
    pub path: PathBuf,
}

impl Recorded {
    /// Starts the server and downloads its recording.
    pub async fn start() -> Self {
        let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
        server.until_source_is("live").await;
        wait::until("some seconds are kept", async || {
            let rows = server.json("/history").await["rows"].as_array().map_or(0, Vec::len);
            wait::expect(rows >= ROWS, || format!("{rows} rows"))
        })
        .await;
        let folder = tempfile::tempdir().expect("a writable folder");
        let path = folder.path().join("incident.mcap");
        let response = server.get("/api/v1/recording").await;
        assert_eq!(response.status, 200);
        fs::write(&path, &response.body).expect("written");
        Self { server, folder, path }
    }

    /// Reads the recording.
    pub fn open(&self) -> Recording<File> {
        Recording::open(File::open(&self.path).expect("there")).expect("a recording")
    }

    /// Beginning, a third, two thirds.
    pub fn moments(&self) -> [Millis; 3] {
        let (from, to) = self.open().range().expect("a keyframe");
        let third = to.since(from) / 3;
        [from, Millis(from.0 + third), Millis(from.0 + 2 * third)]
    }

    /// A file that is no recording, or not a whole one.
    pub fn other(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    }
}

/// Waits until the page shows the state at a moment, or at the end of the recording.
pub async fn shows(page: &Page, recorded: &Recorded, at: Option<Millis>) {
    let mut recording = recorded.open();
    let (_, end) = recording.range().expect("a keyframe");
    let folded = recording.state_at(SeekTo::At(at.unwrap_or(end))).expect("a moment of the recording");
    shows_state(page, at, folded.cluster.seq(), folded.cluster.digest()).await;
}

/// Waits until the page shows the state that has this digest after this record.
pub async fn shows_state(page: &Page, at: Option<Millis>, seq: Seq, digest: u64) {
    let (seq, digest) = (seq.to_string(), digest.to_string());
    page.until("the page shows the moment", async |page| {
        let shown = page.eval("({...document.body.dataset, hash: location.hash})").await;
        let is_it = shown["seq"] == seq && shown["digestSeq"] == seq && shown["digest"] == digest;
        let is_then = at.is_none_or(|at| shown["at"].as_str().and_then(|at| at.parse().ok()) == Some(at.0));
        wait::expect(is_it && is_then, || format!("{seq} {digest} at {at:?}, but {shown}"))
    })
    .await;
}

/// Waits until what is shown is the server's present, which goes on and was compared with it.
pub async fn shows_the_server(page: &Page) {
    says(page, "connection", "Live").await;
    says(page, "verified", "verified at record").await;
    assert_eq!(page.text("notice-file").await, None);
}

/// The end, three moments, and the end again.
pub async fn shows_every_moment(page: &Page, recorded: &Recorded) {
    shows(page, recorded, None).await;
    says(page, "connection", "End of recording").await;
    page.until_true(
        "the timeline is there",
        "document.querySelector('[data-testid=timeline-field]') !== null",
    )
    .await;
    for moment in recorded.moments() {
        page.eval(&format!("void (location.hash = 't={}')", moment.0)).await;
        shows(page, recorded, Some(moment)).await;
    }
    page.click("timeline-live").await;
    shows(page, recorded, None).await;
}
