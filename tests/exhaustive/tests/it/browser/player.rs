//! A recording opened in the page, and a page that came with one: what is shown is what the file holds, by the digests of an
//! independent fold; what is no recording says so and changes nothing; nobody is asked for anything.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use radixscope_captures::Recording as Capture;
use radixscope_captures::recorded::Recorded as State;
use radixscope_captures::recorded::{random, seed};
use radixscope_model::frame::BatchWriter;
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{Channel, FoldStep, Meta, Recording, Series, Writer, snapshot_frames};
use radixscope_state::cluster::Cluster;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::player::{Recorded, shows, shows_every_moment, shows_state, shows_the_server};
use radixscope_tests::panels::says;
use radixscope_tests::radixscope::Radixscope;

/// Random moments that are shown of a simulated recording, and of all captures together: few, and many.
const MOMENTS: usize = 50;
const MANY_MOMENTS: usize = 400;

/// A file, and what the state was after each batch in it by a fold that began at its beginning.
struct Known {
    path: PathBuf,
    states: Vec<State>,
}

impl Known {
    /// What a server recorded, folded here from beginning to end.
    fn played(path: &Path) -> Self {
        let mut states = Vec::new();
        let file = Recording::open(File::open(path).expect("there")).expect("a recording");
        let mut series = Series::of(vec![file]).expect("one file");
        let played = series.play(&mut |step| {
            if let FoldStep::Batch { message, after, .. } = step {
                let (seq, digest) = (after.seq(), after.digest());
                states.push(State { at_ms: message.at_ms, seq, digest });
            }
        });
        assert!(played.expect("a keyframe").damaged.is_none());
        Self { path: path.to_owned(), states }
    }

    /// Opens it in the page and goes to random moments of it.
    async fn is_shown_at(&self, page: &Page, moments: usize, seed: u64) {
        page.choose_files("[data-testid=recording-file]", &[&self.path]).await;
        let last = self.states.last().expect("batches");
        shows_state(page, None, last.seq, last.digest).await;
        page.until_true("the timeline is there", "!!document.querySelector('[data-testid=timeline-field]')")
            .await;
        let from = self.states[0].at_ms;
        for number in random(seed).take(moments) {
            let at = Millis(from.0 + number % (last.at_ms.since(from) + 1));
            let state = self.states.iter().rfind(|state| state.at_ms <= at).expect("at the first at least");
            // Also before the page knows what this recording holds.
            page.eval(&format!("void (location.hash = 't={}')", at.0)).await;
            shows_state(page, Some(at), state.seq, state.digest).await;
        }
    }
}

#[tokio::test]
async fn random_moments_of_a_simulated_recording_are_those_of_a_native_fold() {
    moments_of_a_simulated_recording(MOMENTS).await;
}

#[tokio::test]
async fn many_random_moments_of_a_simulated_recording_are_those_of_a_native_fold() {
    moments_of_a_simulated_recording(MANY_MOMENTS).await;
}

async fn moments_of_a_simulated_recording(moments: usize) {
    let recorded = Recorded::start().await;
    let seed = seed();
    with_page(async |page| {
        page.open(&recorded.server.url("/")).await;
        shows_the_server(page).await;
        Known::played(&recorded.path).is_shown_at(page, moments, seed).await;
    })
    .await;
}

#[tokio::test]
async fn many_random_moments_of_recorded_captures_are_those_of_the_live_fold() {
    let captures = Capture::all();
    let server = Radixscope::start(["demo", "--warm-up", "5"]).await;
    server.until_source_is("live").await;
    let folder = tempfile::tempdir().expect("a writable folder");
    let seed = seed();
    with_page(async |page| {
        page.open(&server.url("/")).await;
        shows_the_server(page).await;
        for (capture, number) in captures.iter().zip(1..) {
            let (file, states) = capture.recorded();
            let path = folder.path().join(format!("{}.mcap", capture.name()));
            fs::write(&path, file).expect("written");
            let of_capture = MANY_MOMENTS.div_ceil(captures.len());
            Known { path, states }.is_shown_at(page, of_capture, seed.wrapping_mul(number)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_recording_says_so_and_changes_nothing() {
    let recorded = Recorded::start().await;
    let whole = fs::read(&recorded.path).expect("there");
    let other_run = Recorded::start().await;
    let text = recorded.other("notes.txt", b"no recording at all");
    let damaged = recorded.other("cut.mcap", &whole[..600]);
    with_page(async |page| {
        page.open(&recorded.server.url("/")).await;
        shows_the_server(page).await;
        let input = "[data-testid=recording-file]";
        let wrong: [(&[&Path], &str); 3] = [
            (&[&text], "notes.txt: this is not a recording of Radixscope"),
            (&[&damaged], "cut.mcap: the recording holds no keyframe"),
            (&[&recorded.path, &other_run.path], "different deployments or runs"),
        ];
        for (paths, expected) in wrong {
            page.choose_files(input, paths).await;
            says(page, "notice-file-words", expected).await;
            shows_the_server(page).await;
        }
        page.choose_files(input, &[&recorded.path]).await;
        shows(page, &recorded, None).await;
        page.choose_files(input, &[&text]).await;
        says(page, "notice-file-words", "this is not a recording").await;
        shows_every_moment(page, &recorded).await;
        page.click("dismiss-file").await;
        page.until_true(
            "it is dismissed",
            "document.querySelector('[data-testid=notice-file-words]') === null",
        )
        .await;
    })
    .await;
}

/// A recording of a server that was away for a minute between two stretches of ten seconds.
fn with_a_gap() -> Vec<u8> {
    const BEGIN_MS: u64 = 1_800_000_000_000;
    let meta = Meta {
        by: "0.1.0".to_owned(),
        epoch: 7,
        recording: 8,
        began_ms: BEGIN_MS,
        sources: String::new(),
        redacted: false,
    };
    let mut writer = Writer::new(Vec::new(), &meta).expect("into memory");
    let frames = snapshot_frames(&Cluster::default()).expect("a sound state");
    for stretch_ms in [BEGIN_MS, BEGIN_MS + 70_000] {
        writer.keyframe(Millis(stretch_ms), &frames).expect("into memory");
        for at_ms in (0..100).map(|tenth| Millis(stretch_ms + tenth * 100)) {
            let batch = BatchWriter::new(Seq(1)).finish(at_ms, None).expect("an empty batch");
            writer.message(Channel::Batches, at_ms, &batch).expect("into memory");
        }
    }
    writer.finish().expect("into memory")
}

#[tokio::test]
async fn a_time_in_which_nothing_was_received_is_a_band_with_words() {
    let server = Radixscope::start(["demo", "--warm-up", "10"]).await;
    let folder = tempfile::tempdir().expect("a writable folder");
    let path = folder.path().join("gap.mcap");
    fs::write(&path, with_a_gap()).expect("written");
    with_page(async |page| {
        page.open(&server.url("/")).await;
        shows_the_server(page).await;
        let bands = "document.querySelectorAll('[data-testid=timeline-gap]').length";
        assert_eq!(page.eval(bands).await, 0);
        page.choose_files("[data-testid=recording-file]", &[&path]).await;
        page.until_true("the band is there", &format!("{bands} === 1")).await;
        let band = page
            .eval(
                "(([band]) => [band.title, band.offsetLeft / band.parentElement.clientWidth, band.offsetWidth / band.parentElement.clientWidth])
                 ([...document.querySelectorAll('[data-testid=timeline-gap]')])",
            )
            .await;
        let title = band[0].as_str().expect("a title");
        assert!(title.starts_with("Nothing was received or recorded from "), "{title}");
        let share = |at: usize| band[at].as_f64().expect("a share");
        // Of 80 s: the row before it ends in the last second before, the first one after it begins with what comes.
        assert!((0.10..=0.14).contains(&share(1)) && (0.73..=0.78).contains(&share(2)), "{band}");
    })
    .await;
}
