//! Many clusters beside each other, where the page was served by `radixscope fleet`: a row each with the figures of its overview and their
//! last minutes, each a link into that cluster's page. It folds no state; the server asks the members and tells what they answered.

mod poll;
mod row;

use leptos::prelude::*;
use radixscope_panels::fleet::{
    AxesOf, COLUMNS, Column, Order, SORT_KEY, caption, cell_id, connection, listed, neighbour, none_found,
    totals,
};

use self::poll::{Feed, follow};
use self::row::Row;
use super::history;
use super::status::{Mark, ThemeButton};
use crate::keys;
use crate::store::Store;
use crate::view::control::view;
use crate::view::figure::Figure;
use crate::view::page_meta::page_meta;

/// Whether the document was served by `radixscope fleet`.
pub(super) fn is_served() -> bool {
    page_meta("fleet").is_some()
}

/// The whole page.
#[component]
pub fn FleetPage(store: Store) -> impl IntoView {
    let feed = follow();
    history::keep_address(store);
    listen_keys(store);
    if let Some(skeleton) = document().get_element_by_id("skeleton") {
        skeleton.remove();
    }
    let state = Memo::new(move |_| {
        let has_report = feed.report.with(Option::is_some);
        feed.fault.with(|fault| connection(fault, has_report))
    });
    let notice = page_meta("notice");
    Effect::new(move |_| {
        if let Some(body) = document().body() {
            let ready = feed.report.with(Option::is_some);
            let _ = body.set_attribute("data-fleet", if ready { "ready" } else { "waiting" });
        }
    });
    view! {
        <div class="page fleet-page" data-view="fleet" data-old=move || feed.fault.with(|fault| if fault.is_empty() { "" } else { "all" })>
            <header class="bar">
                <Mark/>
                <span class="fleet-word">"Fleet"</span>
                <span class=move || format!("state {}", state.get().0) data-testid="fleet-connection"><i aria-hidden="true"></i>{move || state.get().1}</span>
                <span class="spacer"></span>
                <ThemeButton store/>
            </header>
            <div class="notices" role="status" aria-live="polite">
                {notice.map(|text| view! { <p class="notice warn"><span>{text}</span></p> })}
                {move || feed.fault.with(|fault| (!fault.is_empty()).then(|| view! {
                    <p class="notice bad" data-testid="fleet-fault"><span>{fault.clone()}</span></p>
                }))}
            </div>
            <main class="panels single" id="panels" tabindex="-1">
                <Clusters store feed/>
            </main>
        </div>
    }
}

/// `/` leads to the filter, `T` changes the theme.
fn listen_keys(store: Store) {
    let pressed = window_event_listener(leptos::ev::keydown, move |event| {
        let is_typing = document().active_element().is_some_and(|element| element.tag_name() == "INPUT");
        if is_typing || event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        match event.key().as_str() {
            "/" => {
                event.prevent_default();
                keys::focus(FILTER);
            }
            "t" | "T" => store.address.update(|address| address.theme = address.theme.next()),
            _ => {}
        }
    });
    on_cleanup(move || pressed.remove());
}

/// Id of the filter.
const FILTER: &str = "fleet-filter";

/// The table with its head.
#[component]
fn Clusters(store: Store, feed: Feed) -> impl IntoView {
    let order =
        Memo::new(move |_| store.address.with(|address| Order::of(address.other(SORT_KEY).as_deref())));
    let find = Memo::new(move |_| store.address.with(|address| address.find.clone()));
    let members =
        Memo::new(move |_| feed.report.with(|report| report.as_ref().map_or(0, |of| of.members.len())));
    // Places in the order of the command line, which are the rows' keys.
    let listed = Memo::new(move |_| {
        let (order, find) = (order.get(), find.get());
        feed.report
            .with(|report| report.as_ref().map_or_else(Vec::new, |report| listed(report, order, &find)))
    });
    let axes = Memo::new(move |_| {
        feed.report.with(|report| report.as_ref().map_or_else(AxesOf::default, AxesOf::of))
    });
    let focused = RwSignal::new((0usize, 0usize));
    let totals = Memo::new(move |_| feed.report.with(|report| totals(report.as_ref())));
    let total = move |at: usize| Memo::new(move |_| totals.with(|totals| totals[at].clone()));
    let [answering, critical, above] = [0, 1, 2].map(total);
    let set_find = move |event| store.address.update(|address| address.find = event_target_value(&event));
    let sort_by = move |column: Column| {
        let next = order.get_untracked().toggled(column);
        store.address.update(|address| address.set_other(SORT_KEY, next.to_text().as_deref()));
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        let rows = listed.with_untracked(Vec::len);
        let Some(to) = neighbour(&event.key(), focused.get_untracked(), rows) else { return };
        event.prevent_default();
        focused.set(to);
        keys::focus(&cell_id(to));
    };
    let head = move |(column, name, title): (Column, &'static str, &'static str)| {
        let sorted = move || order.with(|order| order.aria(column));
        view! {
            <th scope="col" class=column.class() title=title aria-sort=move || sorted()>
                <button type="button" on:click=move |_| sort_by(column) data-testid=format!("fleet-sort-{}", column.as_str())>{name}</button>
            </th>
        }
    };

    view! {
        <section class="panel fleet-board" aria-labelledby="fleet-title" data-testid="fleet">
            <header class="panel-head">
                <h2 id="fleet-title" tabindex="-1">"Clusters"</h2>
                <input id=FILTER type="search" placeholder="Filter by name  /" aria-label="Filter clusters by name" data-testid=FILTER
                    prop:value=move || find.get() on:input=set_find/>
                <div class="figures">
                    <Figure id="fleet-answering" label="answer" value=answering/>
                    <Figure id="fleet-critical" label="critical" value=critical title="Clusters that answer and have a critical finding".to_owned()/>
                    <Figure id="fleet-above" label="above TTFT target" value=above title="Clusters that answer and whose TTFT p95 is above its target".to_owned()/>
                </div>
            </header>
            <div class="scroll" tabindex="-1">
                <table role="grid" aria-label="Clusters" aria-rowcount=move || members.get() + 1>
                    <thead><tr>{COLUMNS.map(head).collect_view()}</tr></thead>
                    <tbody on:keydown=on_key>
                        <For each=move || listed.get() key=|at| *at children=move |at| {
                            let member = Memo::new(move |_| {
                                feed.report.with(|report| report.as_ref().and_then(|of| of.members.get(at).cloned()))
                            });
                            let place = Memo::new(move |_| {
                                listed.with(|listed| listed.iter().position(|of| *of == at)).unwrap_or_default()
                            });
                            view! { <Row member place focused axes feed/> }
                        }/>
                    </tbody>
                </table>
                {move || (listed.with(Vec::is_empty) && members.get() > 0).then(|| view! {
                    <p class="empty" data-testid="fleet-none">{move || find.with(|find| none_found(find))}</p>
                })}
            </div>
            <p class="caption" data-testid="fleet-caption">
                {move || axes.with(caption)}
            </p>
        </section>
    }
}
