//! What the reader must know before believing the rest: sources in trouble, a stale picture, a wrong version.

use leptos::prelude::*;
use radixscope_core::record::LinkState;

use crate::format;
use crate::store::{Link, Opening, Store};

#[derive(Clone, PartialEq)]
struct Notice {
    id: &'static str,
    level: &'static str,
    text: String,
    /// What the reader can do about it.
    retry: Option<Retry>,
}

#[derive(Clone, Copy, PartialEq)]
enum Retry {
    Connection,
    Opening,
}

impl Retry {
    fn now(self, store: Store) {
        match self {
            Self::Connection => store.retry.update(|n| *n += 1),
            Self::Opening => store.opening.set(Opening::No),
        }
    }
}

impl Notice {
    fn new(id: &'static str, level: &'static str, text: String) -> Self {
        Self { id, level, text, retry: None }
    }
}

/// Notices, the most pressing first; nothing where there are none.
#[component]
pub(super) fn Notices(store: Store) -> impl IntoView {
    let notices = Memo::new(move |_| {
        let mut all = Vec::new();
        all.extend(of_opening(store));
        all.extend(of_link(store));
        all.extend(store.on_beat(|cluster| of_sources(cluster.sources())));
        all.extend(of_trust(store));
        all.extend(store.misread.get().into_iter().map(|text| Notice::new("notice-address", "warn", text)));
        all
    });
    view! {
        <div class="notices" role="status" aria-live="polite" data-testid="notices">
            {move || {
                let row = |notice: Notice| {
                    let retry = notice.retry.map(|retry| {
                        view! {
                            <button class="plain" data-testid="retry" on:click=move |_| retry.now(store)>
                                "Try now"
                            </button>
                        }
                    });
                    view! {
                        <p class=format!("notice {}", notice.level) data-testid=notice.id>
                            <span>{notice.text}</span>
                            {retry}
                        </p>
                    }
                };
                notices.get().into_iter().map(row).collect_view()
            }}
        </div>
    }
}

fn of_opening(store: Store) -> Option<Notice> {
    let panel = store.address.with(|a| a.panel);
    match store.opening.get() {
        _ if !panel.is_full() => None,
        Opening::No => None,
        Opening::Loading => {
            Some(Notice::new("notice-opening", "info", format!("Opening {}…", panel.title().to_ascii_lowercase())))
        }
        Opening::Failed => {
            let text = format!(
                "{} could not be opened: this server did not send the rest of the page.",
                panel.title()
            );
            Some(Notice { retry: Some(Retry::Opening), ..Notice::new("notice-not-opened", "bad", text) })
        }
    }
}

fn of_link(store: Store) -> Option<Notice> {
    let seen = if store.ready() { " What is shown is the last known state." } else { "" };
    match store.link.get() {
        Link::Waiting { attempts, seconds } => {
            let tried = if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() };
            let text = format!("No connection to the server{tried}. Next attempt in {seconds} s.{seen}");
            Some(Notice { retry: Some(Retry::Connection), ..Notice::new("notice-reconnecting", "bad", text) })
        }
        Link::Connecting if store.ready() => {
            Some(Notice::new("notice-connecting", "warn", format!("Connecting again.{seen}")))
        }
        _ if store.stale.get() => Some(Notice::new(
            "notice-stale",
            "warn",
            "Stale: nothing came from the server for more than 3 s. What is shown is the last known state."
                .to_owned(),
        )),
        _ => None,
    }
}

fn of_sources(sources: &[radixscope_core::cluster::SourceState]) -> Vec<Notice> {
    let trouble = |s: &&radixscope_core::cluster::SourceState| s.state != LinkState::Live;
    let notice = |s: &radixscope_core::cluster::SourceState| {
        let (level, word) = match s.state {
            LinkState::Refused => ("bad", "refused"),
            LinkState::CatchingUp => ("info", "catching up"),
            LinkState::Ended => ("info", "ended"),
            LinkState::Connecting | LinkState::Live => ("warn", "not connected"),
        };
        let detail = if s.detail.is_empty() { "." } else { ": " };
        Notice::new("notice-source", level, format!("Source {} {word}{detail}{}", s.name, s.detail))
    };
    sources.iter().filter(trouble).map(notice).collect()
}

fn of_trust(store: Store) -> Vec<Notice> {
    let mut all = Vec::new();
    let check = store.check.get();
    if check.different > 0 {
        let times = format::plural(check.different, "time", "times");
        let text = format!(
            "This page's state differed from the server's {times}; it was fetched anew each time. Please report this."
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
            "Frames from the server could not be read or did not fit {times}; the state was fetched anew. \
             The last time: {}.",
            resyncs.why
        );
        all.push(Notice::new("notice-unreadable", "warn", text));
    }
    all
}

/// Instead of the page, when it cannot understand the server.
#[component]
pub(super) fn Incompatible(store: Store, theirs: u8) -> impl IntoView {
    let ours = radixscope_core::frame::PROTOCOL_VERSION;
    let server = store.server.get_untracked();
    let server = if server.is_empty() { "The server".to_owned() } else { format!("The server ({server})") };
    let reload = move |_| {
        let _ = window().location().reload();
    };
    view! {
        <div class="full" role="alertdialog" aria-modal="true" aria-labelledby="incompatible" data-testid="incompatible">
            <div>
                <h1 id="incompatible">"This page and the server do not fit together"</h1>
                <p>{format!("{server} speaks protocol version {theirs}, this page version {ours}.")}</p>
                <p>"The server was probably updated while this page was open. Loading the page again fetches the one that fits."</p>
                <button class="primary" autofocus on:click=reload>"Load the page again"</button>
            </div>
        </div>
    }
}
