//! What can be broken, with what the page should show of it, and how it is mended.

use leptos::prelude::*;
use radixscope_export::stage::StageFault;
use radixscope_panels::stage;

use super::feed::Feed;
use crate::keys;
use crate::view::control::view;

/// Id of the menu.
const MENU_ID: &str = "stage-faults";

/// The menu, or while something is broken the way to mend it.
#[component]
pub(super) fn Faults(feed: Feed) -> impl IntoView {
    let broken = Memo::new(move |_| feed.report.with(|report| stage::broken(report.as_ref()?).cloned()));
    view! {
        <span class="stage-group">
            {move || match broken.get() {
                Some(fault) => view! { <MendButton feed fault/> },
                None => view! { <Menu feed/> },
            }}
        </span>
    }
}

#[component]
fn MendButton(feed: Feed, fault: StageFault) -> impl IntoView {
    let button = stage::mend_button(&fault);
    let (name, summary, shows) = (fault.name.clone(), fault.summary.clone(), fault.shows.clone());
    let mend = move |_| feed.send(feed.report.with_untracked(|report| stage::mend(report.as_ref(), &fault)));
    view! {
        <button class="stage-button mend" on:click=mend title=shows data-testid="stage-mend">
            {button}
        </button>
        <span class="stage-broken" title=name data-testid="stage-broken">{summary}</span>
    }
}

#[component]
fn Menu(feed: Feed) -> impl IntoView {
    let of = move |needs_restart: bool| {
        let row = move |fault: StageFault| {
            let (id, summary, shows) =
                (format!("stage-break-{}", fault.name), fault.summary.clone(), fault.shows.clone());
            let begin = move |_| {
                keys::close(MENU_ID);
                feed.send(feed.report.with_untracked(|report| stage::break_it(report.as_ref(), &fault)));
            };
            view! {
                <li>
                    <button on:click=begin data-testid=id><b>{summary}</b><span>{shows}</span></button>
                </li>
            }
        };
        let all: Vec<StageFault> = feed.report.with_untracked(|report| {
            report.iter().flat_map(|report| stage::faults(report, needs_restart)).cloned().collect()
        });
        all.into_iter().map(row).collect_view()
    };
    view! {
        <button class="stage-button" popovertarget=MENU_ID disabled=move || !feed.is_ready.get() data-testid="stage-break">"Break something…"</button>
        <div id=MENU_ID class="stage-menu faults" popover="auto" aria-label="Break something" data-testid="stage-faults">
            <h2>"While it runs"</h2>
            <ul>{of(false)}</ul>
            <h2>"From the beginning: restarts the simulation"</h2>
            <ul>{of(true)}</ul>
        </div>
    }
}
