//! Whatever the window's size, every text in every view can be read: none is cut off, covered, or written over another.
//! Canvases are out of reach, so that of the tree and of charts the boxes alone are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use radixscope_app::url::Panel;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::look;
use radixscope_tests::radixscope::Radixscope;

/// Width and height in CSS pixels: a telephone, a frame in a dashboard, 1280×720 at 200 %, a laptop, a screen.
const SIZES: [(u32, u32); 5] = [(400, 800), (600, 400), (640, 360), (1280, 720), (1920, 1080)];

/// What is looked at beside each panel as it opens: a name, and what the address says.
const MORE: [(&str, &str); 5] = [
    ("tree as lanes", "view=tree&tree.lanes=1"),
    ("tree as table", "view=tree&tree.table=1"),
    ("decisions, one open", "view=decisions&decision=ID"),
    ("overview, a worker picked", "worker=WORKER"),
    ("kiosk", "kiosk"),
];

/// Where in what is it wrong: view → fault → how → sizes and themes.
type Faults = BTreeMap<String, BTreeMap<String, BTreeMap<String, BTreeSet<String>>>>;

#[tokio::test]
async fn every_text_can_be_read_at_every_size() {
    let server = Radixscope::start([
        "demo",
        "--topology",
        "disaggregated",
        "--fault",
        "kill-worker",
        "--warm-up",
        "200",
        "--speed",
        "0.000001",
    ])
    .await;
    server.until_source_is("live").await;
    let decision = server.json("/api/v1/decisions?limit=1").await["decisions"][0].take();
    let (id, worker) = (decision["id"].as_str().unwrap(), decision["worker_id"].as_str().unwrap());
    let panels =
        Panel::ALL.iter().map(|panel| (panel.as_str().to_owned(), format!("view={}", panel.as_str())));
    let more = MORE
        .iter()
        .map(|(name, query)| ((*name).to_owned(), query.replace("ID", id).replace("WORKER", worker)));
    let views: Vec<(String, String)> = panels.chain(more).collect();
    let mut faults = Faults::new();
    with_unrecorded_page(async |page| {
        for theme in ["light", "dark"] {
            for (name, query) in &views {
                page.open(&server.url(&format!("/?{query}&theme={theme}"))).await;
                is_shown(page).await;
                for (width, height) in SIZES {
                    page.size(width, height).await;
                    look::settled(page).await;
                    let at = format!("{width}×{height} {theme}");
                    for (fault, how) in look::layout_faults(page).await {
                        // What stands around every view is said once.
                        let is_frame = fault.contains("in header.bar") || fault.contains("in nav");
                        let view = if is_frame { "every view" } else { name };
                        let of_view = faults.entry(view.to_owned()).or_default();
                        of_view.entry(fault).or_default().entry(how).or_default().insert(at.clone());
                    }
                }
            }
        }
    })
    .await;
    assert!(faults.is_empty(), "{}", written(&faults));
}

/// Waits until the view has what it shows.
async fn is_shown(page: &Page) {
    page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
    page.until_true("the panel is there", "!!document.querySelector('section.panel h2')").await;
    let pending = "![...document.querySelectorAll('.chart-box')].some(e => e.dataset.ready === 'false')";
    page.until_true("charts are there", pending).await;
}

fn written(faults: &Faults) -> String {
    let mut text = String::from("not everything can be read:\n");
    for (view, faults) in faults {
        let _ = writeln!(text, "\n## {view}");
        for (fault, hows) in faults {
            let _ = writeln!(text, "- {fault}");
            for (how, at) in hows {
                let at: Vec<&str> = at.iter().map(String::as_str).collect();
                let _ = writeln!(text, "  - {how} ({})", at.join(", "));
            }
        }
    }
    text
}
