//! What the reader must know before believing the rest: sources in trouble, a stale picture, a wrong version.

use leptos::prelude::*;
use radixscope_insight::completeness::coverage_text;
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;

use crate::format;
use crate::store::{Feed, Link, Store, time_of_day};
use crate::url::{Address, Panel};
use crate::view::control::view;
use crate::view::page_meta::page_meta;
use crate::view::pools::unknown_pool;

#[derive(Clone, PartialEq)]
struct Notice {
    id: &'static str,
    /// Classes: how bad it is; `of-link` where it comes and goes with the connection and must move nothing.
    level: &'static str,
    text: String,
    /// What the reader can do about it.
    act: Option<Act>,
}

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Connect,
    ShowFindings,
    BackToLive,
    CloseFile,
    Forget,
}

impl Act {
    fn now(self, store: Store) {
        match self {
            Self::Connect => store.retry.update(|n| *n += 1),
            Self::BackToLive => store.back_to_live(),
            Self::CloseFile => store.close_file(),
            Self::Forget => store.file_note.set(String::new()),
            Self::ShowFindings => store.address.update(|a| a.panel = Panel::Findings),
        }
    }

    const fn to_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Connect => ("Try now", "retry"),
            Self::ShowFindings => ("Show", "show-findings"),
            Self::BackToLive => ("Back to live", "back-to-live"),
            Self::CloseFile => ("Close file", "close-file"),
            Self::Forget => ("Dismiss", "dismiss-file"),
        }
    }
}

impl Notice {
    fn new(id: &'static str, level: &'static str, text: String) -> Self {
        Self { id, level, text, act: None }
    }
}

/// Notices, the most pressing first; nothing where there are none.
#[component]
pub(super) fn Notices(store: Store) -> impl IntoView {
    let notices = Memo::new(move |_| {
        let mut all = Vec::new();
        all.extend(of_past(store));
        all.extend(of_file(store));
        all.extend(of_link(store));
        all.extend(store.on_beat(|cluster| of_sources(cluster.sources())));
        all.extend(of_trust(store));
        all.extend(unknown_pool(store).map(|text| Notice::new("notice-pool", "warn", text)));
        all.extend(store.misread.get().into_iter().map(|text| Notice::new("notice-address", "warn", text)));
        all.extend(of_server());
        all.extend(of_completeness(store));
        all
    });
    view! {
        <div class="notices" role="status" aria-live="polite" data-testid="notices">
            {move || {
                let row = |notice: Notice| {
                    let act = notice.act.map(|act| {
                        let (note, id) = act.to_text();
                        view! {
                            <button class="plain" data-testid=id on:click=move |_| act.now(store)>{note}</button>
                        }
                    });
                    view! {
                        <p class=format!("notice {}", notice.level) data-testid=notice.id>
                            <span>{notice.text}</span>
                            {act}
                        </p>
                    }
                };
                notices.get().into_iter().map(row).collect_view()
            }}
        </div>
    }
}

/// What the server says of how it is run, in the page itself.
fn of_server() -> Option<Notice> {
    Some(Notice::new("notice-server", "warn", page_meta("notice")?))
}

/// On panels that rest on the tree: that it lacks blocks. The overview names the finding.
fn of_completeness(store: Store) -> Option<Notice> {
    let rests_on_tree = store.address.with(|address| {
        matches!(
            address.panel,
            Panel::Tree
                | Panel::Workers
                | Panel::Decisions
                | Panel::Reuse
                | Panel::WhatIf
                | Panel::Counterfactual
                | Panel::Memory
        )
    });
    if !rests_on_tree || !store.ready() {
        return None;
    }
    let coverage = store.on_beat(|shown| shown.coverage());
    (!coverage.is_whole()).then(|| {
        let text = format!(
            "The tree is incomplete: {}. Shares, duplicates and costs of candidates are withheld or marked until it is complete.",
            coverage_text(&coverage)
        );
        Notice { act: Some(Act::ShowFindings), ..Notice::new("notice-partial", "warn", text) }
    })
}

/// Where there is no bar that says so: that what is shown is not the present.
fn of_past(store: Store) -> Option<Notice> {
    let is_bare = store.address.with(Address::is_bare);
    let at = Some(store.at.get()).filter(|at| is_bare && *at != 0)?;
    let text = format!("Showing {}, not the present. {}", time_of_day(Millis(at)), store.past_fault.get());
    Some(Notice { act: Some(Act::BackToLive), ..Notice::new("notice-past", "warn", text) })
}

/// A recording in the place of the server, and why another one is not shown.
fn of_file(store: Store) -> impl Iterator<Item = Notice> {
    let shown = store.file.get().map(|file| {
        let (from, until) = (time_of_day(file.from), time_of_day(file.until));
        let text =
            format!("Showing the recording {}, {from} to {until}; no request goes to a server", file.name);
        let act = store.can_close_file().then_some(Act::CloseFile);
        Notice { act, ..Notice::new("notice-file", "info", text) }
    });
    let note = Some(store.file_note.get()).filter(|note| !note.is_empty());
    let note =
        note.map(|text| Notice { act: Some(Act::Forget), ..Notice::new("notice-file-words", "warn", text) });
    note.into_iter().chain(shown)
}

fn of_link(store: Store) -> Option<Notice> {
    let (since, seen) = match store.as_of(Feed::Any) {
        Some(at) => {
            let at = time_of_day(at);
            (format!(" since {at}"), format!(" Showing the last known state, as of {at}."))
        }
        None => (String::new(), String::new()),
    };
    match store.link.get() {
        Link::Waiting { attempts, seconds } => {
            let tried = if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() };
            let text =
                format!("No connection to the server{since}{tried}. Next attempt in {seconds} s.{seen}");
            Some(Notice {
                act: Some(Act::Connect),
                ..Notice::new("notice-reconnecting", "bad of-link", text)
            })
        }
        Link::Connecting if store.ready() => {
            Some(Notice::new("notice-connecting", "warn of-link", format!("Connecting again.{seen}")))
        }
        _ if store.stale.get() => Some(Notice::new(
            "notice-stale",
            "warn of-link",
            format!("Stale: nothing came from the server{since}. Waiting for it to respond.{seen}"),
        )),
        _ => None,
    }
}

fn of_sources(sources: &[radixscope_state::cluster::SourceState]) -> Vec<Notice> {
    let trouble = |s: &&radixscope_state::cluster::SourceState| s.state != LinkState::Live;
    let notice = |s: &radixscope_state::cluster::SourceState| {
        let (level, word) = match s.state {
            LinkState::Refused => ("bad", "refused"),
            LinkState::Partial => ("bad", "partly denied"),
            LinkState::CatchingUp => ("info", "catching up"),
            LinkState::Ended => ("info", "ended"),
            LinkState::Connecting | LinkState::Live => ("warn", "not connected"),
        };
        let detail = if s.detail.is_empty() { "." } else { ": " };
        let mut text = format!("Source {} {word}{detail}{}", s.name, s.detail);
        if let Some(last) = s.last_ms.filter(|_| !s.is_connected()) {
            let at = time_of_day(last.min(s.since_ms));
            text.push_str(&format!(" Figures from it are as of {at}."));
        }
        Notice::new("notice-source", level, text)
    };
    sources.iter().filter(trouble).map(notice).collect()
}

fn of_trust(store: Store) -> Vec<Notice> {
    let mut all = Vec::new();
    let check = store.check.get();
    if check.different > 0 {
        let times = format::plural(check.different, "time", "times");
        let text = format!(
            "This page's state differed from the server's {times}; it was fetched again each time. Please report this."
        );
        all.push(Notice::new("notice-digest", "bad", text));
    }
    let resyncs = store.resyncs.get();
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
#[component]
pub(super) fn Incompatible(store: Store, theirs: u8) -> impl IntoView {
    let ours = radixscope_model::frame::PROTOCOL_VERSION;
    let server = store.server.get_untracked();
    let server = if server.is_empty() { "The server".to_owned() } else { format!("The server ({server})") };
    let reload = move |_| {
        let _ = window().location().reload();
    };
    view! {
        <div class="full" role="alertdialog" aria-modal="true" aria-labelledby="incompatible" data-testid="incompatible">
            <div>
                <h1 id="incompatible">"This page and the server are of different versions"</h1>
                <p>{format!("{server} speaks protocol version {theirs}, this page version {ours}.")}</p>
                <p>"The server was probably updated while this page was open. Loading the page again fetches the one that fits."</p>
                <button class="primary" autofocus on:click=reload>"Load the page again"</button>
            </div>
        </div>
    }
}
