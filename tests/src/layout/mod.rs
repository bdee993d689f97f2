//! How the page looks in all its views, asked of the browser that laid it out: what cannot be read, what has too little
//! contrast, and what axe finds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use radixscope_panels::url::Panel;
use serde_json::{Value, json};

use crate::browser::Page;
use crate::radixscope::Radixscope;

/// The two themes, as the address names them.
pub const THEMES: [&str; 2] = ["light", "dark"];

/// What is looked at beside each panel as it opens: a name, and what the address says.
const MORE: [(&str, &str); 7] = [
    ("overview alone", "chrome=0"),
    ("tree as lanes", "view=tree&tree.lanes=1"),
    ("tree as table", "view=tree&tree.table=1"),
    ("decisions, one open", "view=decisions&decision=ID"),
    ("overview, a worker picked", "worker=WORKER"),
    ("changes, two moments", "view=changes&a=BEGIN"),
    ("kiosk", "kiosk"),
];

/// A view: what it is called here, and the query of its address.
pub struct View {
    /// Name for people.
    pub name: String,
    /// Query without `?`.
    pub query: String,
}

/// Prefill and decode apart, few workers.
pub const DISAGGREGATED: [&str; 4] = ["--topology", "disaggregated", "--warm-up", "200"];
/// Two models, many workers of two digits, names of pools, ages of minutes, larger figures.
pub const TWO_MODELS: [&str; 6] = ["--topology", "two-models", "--workers", "7", "--warm-up", "700"];

/// Figures of the tree's head that only a loss brings: blocks whose parents were never received.
pub const GAP: [&str; 6] = ["--topology", "disaggregated", "--fault", "gap", "--warm-up", "300"];

/// A demo of that `deployment` with findings and decisions, in which hardly any time passes; with all its views.
pub async fn demo(deployment: &[&'static str]) -> (Radixscope, Vec<View>) {
    let fault: &[&str] = if deployment.contains(&"--fault") { &[] } else { &["--fault", "kill-worker"] };
    let still = ["demo", "--speed", "0.000001"];
    let server = Radixscope::start(still.iter().chain(fault).chain(deployment).copied()).await;
    server.until_source_is("live").await;
    let decision = server.json("/api/v1/decisions?limit=1").await["decisions"][0].take();
    let text = |key: &str| decision[key].as_str().expect("a decision").to_owned();
    let (id, worker) = (text("id"), text("worker_id"));
    let panels = Panel::ALL.iter().map(|panel| (panel.as_str(), format!("view={}", panel.as_str())));
    let begin = server.json("/history?after_ms=0").await["kept"]["from_ms"].to_string();
    let filled = |query: &str| query.replace("ID", &id).replace("WORKER", &worker).replace("BEGIN", &begin);
    let more = MORE.iter().map(|(name, query)| (*name, filled(query)));
    let views = panels.chain(more).map(|(name, query)| View { name: name.to_owned(), query }).collect();
    (server, views)
}

/// Opens a view and waits until it has what it shows.
pub async fn open(page: &Page, server: &Radixscope, view: &View, theme: &str) {
    page.open(&server.url(&format!("/?{}&theme={theme}", view.query))).await;
    until_there(page).await;
}

/// Waits until the view that is open has what it shows.
pub async fn until_there(page: &Page) {
    page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
    page.until_true("the panel is there", "!!document.querySelector('main h2')").await;
    let pending = "![...document.querySelectorAll('.chart')].some(e => e.dataset.ready === 'false')";
    page.until_true("charts are there", pending).await;
}

/// Waits until nothing has moved for some frames: the size was changed, charts and tables follow.
pub async fn until_stable(page: &Page) {
    let moved = page.eval(include_str!("stable.js").trim_end()).await;
    assert_eq!(moved, Value::Null, "the layout never comes to rest: {moved}");
}

/// What is cut, covered or overlapping now: what and where, and by how much.
pub async fn layout_faults(page: &Page) -> Vec<(String, String)> {
    pairs(page.eval(include_str!("layout.js").trim_end()).await)
}

/// Texts with a contrast below 4.5:1 now, those of disabled controls included: what and where, and how much it is.
pub async fn contrast_faults(page: &Page) -> Vec<(String, String)> {
    pairs(page.eval(include_str!("contrast.js").trim_end()).await)
}

/// Gives every page that is opened from here on axe, for [`axe_faults`].
pub async fn bring_axe(page: &Page) {
    let axe = include_str!("../../vendor/axe-core-4.14.1/axe.min.js");
    page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": axe})).await;
}

/// What axe finds serious or critical: rule and element, and how to mend it.
pub async fn axe_faults(page: &Page) -> Vec<(String, String)> {
    let script = include_str!("axe.js");
    let (_, script) = script.split_once('\n').expect("a comment and the script");
    pairs(page.eval(script.trim_end()).await)
}

fn pairs(value: Value) -> Vec<(String, String)> {
    serde_json::from_value(value).expect("pairs of texts")
}

/// What is wrong where: view → fault → how → sizes or themes.
#[derive(Default)]
pub struct Faults(BTreeMap<String, BTreeMap<String, BTreeMap<String, BTreeSet<String>>>>);

impl Faults {
    /// Adds what was found in a view. What stands around every view is reported once.
    pub fn add(&mut self, view: &View, at: &str, found: Vec<(String, String)>) {
        for (fault, how) in found {
            let is_frame = fault.contains("in header.bar") || fault.contains("in nav");
            let view = if is_frame { "every view" } else { &view.name };
            let of_view = self.0.entry(view.to_owned()).or_default();
            of_view.entry(fault).or_default().entry(how).or_default().insert(at.to_owned());
        }
    }

    /// # Panics
    /// With all of them, when there are some.
    pub fn check(&self) {
        let mut text = String::new();
        for (view, faults) in &self.0 {
            let _ = writeln!(text, "\n## {view}");
            for (fault, hows) in faults {
                let _ = writeln!(text, "- {fault}");
                for (how, at) in hows {
                    let at: Vec<&str> = at.iter().map(String::as_str).collect();
                    let _ = writeln!(text, "  - {how} ({})", at.join(", "));
                }
            }
        }
        assert!(self.0.is_empty(), "faults:\n{text}\nend of faults");
    }
}
