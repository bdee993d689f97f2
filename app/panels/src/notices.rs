//! What the reader must know before believing the rest: sources in trouble, a stale picture, a wrong version.

use radixscope_insight::completeness::coverage_text;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;
use radixscope_state::cluster::{Coverage, SourceState};

use crate::format;
use crate::link::{Check, Link, Resyncs};
use crate::time_zone::TimeZone;
use crate::url::Panel;

/// One notice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// For tests.
    pub id: &'static str,
    /// Classes: how bad it is; `of-link` where it comes and goes with the connection and must move nothing.
    pub level: &'static str,
    /// What is to be known.
    pub text: String,
    /// What the reader can do about it.
    pub act: Option<Act>,
}

/// What the button of a notice does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Does not wait for the next attempt.
    Connect,
    /// Opens the findings.
    ShowFindings,
    /// Shows the present.
    BackToLive,
    /// Shows the server in place of a recording.
    CloseFile,
    /// Takes the notice away.
    Forget,
}

impl Act {
    /// What its button says, and its name for tests.
    pub const fn to_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Connect => ("Try now", "retry"),
            Self::ShowFindings => ("Show", "show-findings"),
            Self::BackToLive => ("Back to live", "back-to-live"),
            Self::CloseFile => ("Close file", "close-file"),
            Self::Forget => ("Dismiss", "dismiss-file"),
        }
    }
}

/// A recording in the place of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownFile {
    /// Its name.
    pub name: String,
    /// Its first moment.
    pub from: Millis,
    /// Its last one.
    pub until: Millis,
    /// Whether the server can be shown instead.
    pub can_close: bool,
}

/// What notices are about beside the state.
#[derive(Clone, PartialEq, Debug)]
pub struct NoticeInputs {
    /// The moment of the past that is shown where no bar says so, and why it is not the one asked for.
    pub past: Option<(Millis, String)>,
    /// A recording in the place of the server.
    pub file: Option<ShownFile>,
    /// Why a recording is not shown, or not whole; empty: no fault.
    pub file_note: String,
    /// The link to the server.
    pub link: Link,
    /// When what is shown was last current; `None`: it is.
    pub as_of: Option<Millis>,
    /// Whether there is a state.
    pub is_ready: bool,
    /// Whether nothing came for longer than the server's heartbeat allows.
    pub is_stale: bool,
    /// The comparison with the server's digest.
    pub check: Check,
    /// Why the state was fetched anew.
    pub resyncs: Resyncs,
    /// That the pool in the address is unknown.
    pub unknown_pool: Option<String>,
    /// Parts of the address that were not understood.
    pub misread: Vec<String>,
    /// What the server says of how it is run.
    pub of_server: Option<String>,
    /// The panel that is shown.
    pub panel: Panel,
    /// The reader's.
    pub zone: TimeZone,
}

impl Notice {
    fn new(id: &'static str, level: &'static str, text: String) -> Self {
        Self { id, level, text, act: None }
    }

    /// All of them, the most pressing first.
    pub fn all(shown: &ViewContext<'_>, inputs: &NoticeInputs) -> Vec<Self> {
        let mut all = Vec::new();
        all.extend(of_past(inputs));
        all.extend(of_file(inputs));
        all.extend(of_link(inputs));
        all.extend(shown.sources().iter().filter_map(|source| of_source(source, inputs.zone)));
        all.extend(of_trust(inputs.check, &inputs.resyncs));
        all.extend(inputs.unknown_pool.clone().map(|text| Self::new("notice-pool", "warn", text)));
        all.extend(inputs.misread.iter().map(|text| Self::new("notice-address", "warn", text.clone())));
        all.extend(inputs.of_server.clone().map(|text| Self::new("notice-server", "warn", text)));
        if inputs.is_ready && rests_on_tree(inputs.panel) {
            all.extend(of_completeness(&shown.coverage()));
        }
        all
    }
}

/// Panels that rest on the tree; the overview names the finding.
const fn rests_on_tree(panel: Panel) -> bool {
    matches!(
        panel,
        Panel::Tree
            | Panel::Workers
            | Panel::Decisions
            | Panel::Reuse
            | Panel::WhatIf
            | Panel::Counterfactual
            | Panel::Memory
    )
}

/// That the tree lacks blocks.
fn of_completeness(coverage: &Coverage) -> Option<Notice> {
    (!coverage.is_whole()).then(|| {
        let text = format!(
            "The tree is incomplete: {}. Shares, duplicates and costs of candidates are withheld or marked until it is complete.",
            coverage_text(coverage)
        );
        Notice { act: Some(Act::ShowFindings), ..Notice::new("notice-partial", "warn", text) }
    })
}

/// Where there is no bar that says so: that what is shown is not the present.
fn of_past(inputs: &NoticeInputs) -> Option<Notice> {
    let (at, fault) = inputs.past.as_ref()?;
    let text = format!("Showing {}, not the present. {fault}", inputs.zone.time_of_day(*at));
    Some(Notice { act: Some(Act::BackToLive), ..Notice::new("notice-past", "warn", text) })
}

/// A recording in the place of the server, and why another one is not shown.
fn of_file(inputs: &NoticeInputs) -> impl Iterator<Item = Notice> {
    let shown = inputs.file.as_ref().map(|file| {
        let (from, until) = (inputs.zone.time_of_day(file.from), inputs.zone.time_of_day(file.until));
        let text =
            format!("Showing the recording {}, {from} to {until}; no request goes to a server", file.name);
        Notice { act: file.can_close.then_some(Act::CloseFile), ..Notice::new("notice-file", "info", text) }
    });
    let note = Some(inputs.file_note.clone()).filter(|note| !note.is_empty());
    let note =
        note.map(|text| Notice { act: Some(Act::Forget), ..Notice::new("notice-file-words", "warn", text) });
    note.into_iter().chain(shown)
}

fn of_link(inputs: &NoticeInputs) -> Option<Notice> {
    let (since, seen) = match inputs.as_of {
        Some(at) => {
            let at = inputs.zone.time_of_day(at);
            (format!(" since {at}"), format!(" Showing the last known state, as of {at}."))
        }
        None => (String::new(), String::new()),
    };
    match inputs.link {
        Link::Waiting { attempts, seconds } => {
            let tried = if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() };
            let text =
                format!("No connection to the server{since}{tried}. Next attempt in {seconds} s.{seen}");
            Some(Notice {
                act: Some(Act::Connect),
                ..Notice::new("notice-reconnecting", "bad of-link", text)
            })
        }
        Link::Connecting if inputs.is_ready => {
            Some(Notice::new("notice-connecting", "warn of-link", format!("Connecting again.{seen}")))
        }
        _ if inputs.is_stale => Some(Notice::new(
            "notice-stale",
            "warn of-link",
            format!("Stale: nothing came from the server{since}. Waiting for it to respond.{seen}"),
        )),
        _ => None,
    }
}

fn of_source(source: &SourceState, zone: TimeZone) -> Option<Notice> {
    let (level, word) = match source.state {
        LinkState::Live => return None,
        LinkState::Refused => ("bad", "refused"),
        LinkState::Partial => ("bad", "partly denied"),
        LinkState::CatchingUp => ("info", "catching up"),
        LinkState::Ended => ("info", "ended"),
        LinkState::Connecting => ("warn", "not connected"),
    };
    let detail = if source.detail.is_empty() { "." } else { ": " };
    let mut text = format!("Source {} {word}{detail}{}", source.name, source.detail);
    if let Some(last) = source.last_ms.filter(|_| !source.is_connected()) {
        let at = zone.time_of_day(last.min(source.since_ms));
        text.push_str(&format!(" Figures from it are as of {at}."));
    }
    Some(Notice::new("notice-source", level, text))
}

fn of_trust(check: Check, resyncs: &Resyncs) -> Vec<Notice> {
    let mut all = Vec::new();
    if check.different > 0 {
        let times = format::plural(check.different, "time", "times");
        let text = format!(
            "This page's state differed from the server's {times}; it was fetched again each time. Please report this."
        );
        all.push(Notice::new("notice-digest", "bad", text));
    }
    if resyncs.behind > 0 {
        let times = format::plural(resyncs.behind, "time", "times");
        let skipped = format::plural(resyncs.skipped, "record", "records");
        let text = format!(
            "This viewer fell behind and was resynchronised {times} ({skipped} replaced by a snapshot)."
        );
        all.push(Notice::new("notice-behind", "info", text));
    }
    if resyncs.unreadable > 0 {
        let times = format::plural(resyncs.unreadable, "time", "times");
        let text = format!(
            "Frames from the server were invalid {times}; the state was fetched again. \
             The last error: {}.",
            resyncs.why
        );
        all.push(Notice::new("notice-unreadable", "warn", text));
    }
    all
}

/// Instead of the page, when it cannot understand the server.
pub fn incompatible_text(server: &str, theirs: u8) -> String {
    let ours = radixscope_model::frame::PROTOCOL_VERSION;
    let server = if server.is_empty() { "The server".to_owned() } else { format!("The server ({server})") };
    format!("{server} speaks protocol version {theirs}, this page version {ours}.")
}
