//! What the reader must know before believing the rest: sources in trouble, a stale picture, a wrong version.

use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::notices::{Act, Notice, NoticeInputs, ShownFile, incompatible_text};

use crate::store::{Feed, Store, zone};
use crate::url::{Address, Panel};
use crate::view::control::view;
use crate::view::page_meta::page_meta;
use crate::view::pools::unknown_pool;

fn act_on(act: Act, store: Store) {
    match act {
        Act::Connect => store.retry.update(|n| *n += 1),
        Act::BackToLive => store.back_to_live(),
        Act::CloseFile => store.close_file(),
        Act::Forget => store.file_note.set(String::new()),
        Act::ShowFindings => store.address.update(|a| a.panel = Panel::Findings),
    }
}

/// What the notices are about. Tracked.
fn inputs(store: Store) -> NoticeInputs {
    let (is_bare, panel) = store.address.with(|address| (Address::is_bare(address), address.panel));
    let past = Some(store.at.get()).filter(|at| is_bare && *at != 0);
    let file = store.file.get().map(|file| ShownFile {
        name: file.name,
        from: file.from,
        until: file.until,
        can_close: store.can_close_file(),
    });
    NoticeInputs {
        past: past.map(|at| (Millis(at), store.past_fault.get())),
        file,
        file_note: store.file_note.get(),
        link: store.link.get(),
        as_of: store.as_of(Feed::Any),
        is_ready: store.ready(),
        is_stale: store.stale.get(),
        check: store.check.get(),
        resyncs: store.resyncs.get(),
        unknown_pool: unknown_pool(store),
        misread: store.misread.get(),
        of_server: page_meta("notice"),
        panel,
        zone: zone(),
    }
}

/// Notices, the most pressing first; nothing where there are none.
#[component]
pub(super) fn Notices(store: Store) -> impl IntoView {
    let notices = Memo::new(move |_| {
        let inputs = inputs(store);
        store.on_beat(|shown| Notice::all(shown, &inputs))
    });
    view! {
        <div class="notices" role="status" aria-live="polite" data-testid="notices">
            {move || {
                let row = |notice: Notice| {
                    let act = notice.act.map(|act| {
                        let (note, id) = act.to_text();
                        view! {
                            <button class="plain" data-testid=id on:click=move |_| act_on(act, store)>{note}</button>
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

/// Instead of the page, when it cannot understand the server.
#[component]
pub(super) fn Incompatible(store: Store, theirs: u8) -> impl IntoView {
    let text = incompatible_text(&store.server.get_untracked(), theirs);
    let reload = move |_| {
        let _ = window().location().reload();
    };
    view! {
        <div class="full" role="alertdialog" aria-modal="true" aria-labelledby="incompatible" data-testid="incompatible">
            <div>
                <h1 id="incompatible">"This page and the server are of different versions"</h1>
                <p>{text}</p>
                <p>"The server was probably updated while this page was open. Loading the page again fetches the one that fits."</p>
                <button class="primary" autofocus on:click=reload>"Load the page again"</button>
            </div>
        </div>
    }
}
