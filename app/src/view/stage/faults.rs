//! What can be broken, with what the page should show of it, and how it is mended.

use leptos::prelude::*;
use radixscope_export::stage::{Mend, Restart, StageChange, StageFault};
use radixscope_model::id::Decimal;

use super::feed::Feed;
use crate::keys;
use crate::view::control::view;

/// Id of the menu.
const MENU_ID: &str = "stage-faults";

/// The menu, or while something is broken the way to mend it.
#[component]
pub(super) fn Faults(feed: Feed) -> impl IntoView {
    let broken = Memo::new(move |_| {
        feed.report.with(|report| {
            let report = report.as_ref()?;
            report.fault_named(report.fault.as_deref()?).cloned()
        })
    });
    view! {
        <span class="stage-group">
            {move || match broken.get() {
                Some(fault) => view! { <MendButton feed fault/> },
                None => view! { <Menu feed/> },
            }}
        </span>
    }
}

/// A seed for the same traffic as now.
fn seed(feed: Feed) -> Decimal {
    feed.report.with_untracked(|report| report.as_ref().and_then(|report| report.seed)).unwrap_or(Decimal(1))
}

#[component]
fn MendButton(feed: Feed, fault: StageFault) -> impl IntoView {
    let needs_restart = fault.needs_restart;
    let mend = move |_| {
        feed.send(match needs_restart {
            true => StageChange::Restart(Restart { seed: seed(feed), fault: None }),
            false => StageChange::Mend(Mend {}),
        });
    };
    view! {
        <button class="stage-button mend" on:click=mend title=fault.shows data-testid="stage-mend">
            {if needs_restart { "Restart without it" } else { "Mend" }}
        </button>
        <span class="stage-broken" title=fault.name data-testid="stage-broken">{fault.summary}</span>
    }
}

#[component]
fn Menu(feed: Feed) -> impl IntoView {
    let of = move |needs_restart: bool| {
        let all = feed.report.with_untracked(|report| report.as_ref().map(|report| report.faults.clone()));
        let row = move |fault: StageFault| {
            let name = fault.name.clone();
            let begin = move |_| {
                keys::close(MENU_ID);
                feed.send(match needs_restart {
                    true => StageChange::Restart(Restart { seed: seed(feed), fault: Some(name.clone()) }),
                    false => StageChange::Break(name.clone()),
                });
            };
            view! {
                <li>
                    <button on:click=begin data-testid=format!("stage-break-{}", fault.name)>
                        <b>{fault.summary}</b><span>{fault.shows}</span>
                    </button>
                </li>
            }
        };
        let of_kind = all.into_iter().flatten().filter(move |fault| fault.needs_restart == needs_restart);
        of_kind.map(row).collect_view()
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
