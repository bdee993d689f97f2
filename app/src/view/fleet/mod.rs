//! Many clusters beside each other, where the page was served by `radixscope fleet`: a row each with the figures of its overview and their
//! last minutes, each a link into that cluster's page. It folds no state; the server asks the members and tells what they answered.

mod poll;
mod row;
mod sort;

use leptos::prelude::*;
use radixscope_export::ClusterSummary;
use radixscope_export::fleet::{FleetReport, MemberReport, MemberState};
use radixscope_model::range::TargetComparison;

use self::poll::{Feed, follow};
use self::row::{AxesOf, Row};
use self::sort::{Column, Order};
use super::history;
use super::status::{Mark, ThemeButton};
use crate::format;
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
    let state = move || match (feed.fault.get(), feed.report.with(Option::is_some)) {
        (fault, _) if !fault.is_empty() => ("bad", "Not current".to_owned()),
        (_, false) => ("wait", "Loading".to_owned()),
        (_, true) => ("live", "Live".to_owned()),
    };
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
                <span class=move || format!("state {}", state().0) data-testid="fleet-connection"><i aria-hidden="true"></i>{move || state().1}</span>
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
/// Columns with their name on screen and what they show.
const COLUMNS: [(Column, &str, &str); 8] = [
    (Column::Name, "Cluster", "Its name, and whether it answers"),
    (Column::Worst, "Findings", "Sorted by urgency: not answering, critical, above target, warning"),
    (Column::HitRate, "KV hit rate", "Cached ÷ prompt blocks over all pools, decisions of the last 60 s"),
    (Column::Ttft, "TTFT p95", "Of the last 60 s, against the target of that cluster"),
    (
        Column::Reuse,
        "Reuse lost most to",
        "The cause that most prompt tokens were computed anew for, decisions of the last 60 s",
    ),
    (Column::Workers, "Workers", "Workers that are there, and of which all cached blocks are known"),
    (Column::Requests, "Requests/s", "Requests that ended, mean of the last 60 s"),
    (Column::Age, "Answered", "Time since its last answer"),
];

/// The table with its head.
#[component]
fn Clusters(store: Store, feed: Feed) -> impl IntoView {
    let order =
        Memo::new(move |_| store.address.with(|address| Order::of(address.other(sort::KEY).as_deref())));
    let find = Memo::new(move |_| store.address.with(|address| address.find.clone()));
    let members =
        Memo::new(move |_| feed.report.with(|report| report.as_ref().map_or(0, |of| of.members.len())));
    // Places in the order of the command line, which are the rows' keys.
    let listed = Memo::new(move |_| {
        let (order, find) = (order.get(), find.get().to_lowercase());
        feed.report.with(|report| {
            report.as_ref().map_or_else(Vec::new, |report| {
                let is_meant = |member: &MemberReport| member.name.to_lowercase().contains(&find);
                let mut listed: Vec<usize> =
                    (0..report.members.len()).filter(|at| is_meant(&report.members[*at])).collect();
                listed.sort_by(|a, b| order.compare(&report.members[*a], &report.members[*b]));
                listed
            })
        })
    });
    let axes = Memo::new(move |_| {
        feed.report.with(|report| report.as_ref().map_or_else(AxesOf::default, AxesOf::of))
    });
    let focused = RwSignal::new((0usize, 0usize));
    let total = move |of: fn(&FleetReport) -> String| {
        Memo::new(move |_| feed.report.with(|report| report.as_ref().map_or(format::UNKNOWN.to_owned(), of)))
    };
    let answering = total(|report| format!("{} of {}", report.answering, report.members.len()));
    let critical = total(|report| urgent(report, |now| now.findings.critical > 0));
    let above = total(|report| urgent(report, |now| now.ttft.standing == TargetComparison::Above));
    let set_find = move |event| store.address.update(|address| address.find = event_target_value(&event));
    let sort_by = move |column: Column| {
        let next = order.get_untracked().toggled(column);
        store.address.update(|address| address.set_other(sort::KEY, next.to_text().as_deref()));
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        let rows = listed.with_untracked(Vec::len);
        let Some(to) = row::neighbour(&event.key(), focused.get_untracked(), rows) else { return };
        event.prevent_default();
        focused.set(to);
        keys::focus(&row::cell_id(to));
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
                    <p class="empty" data-testid="fleet-none">{move || format!("No cluster's name contains “{}”", find.get())}</p>
                })}
            </div>
            <p class="caption" data-testid="fleet-caption">
                {move || format!(
                    "Lines: the last {} min, hit rate 0–100 %, TTFT {}, the same for all. Grey: last values of a cluster that does not answer.",
                    axes.with(AxesOf::minutes),
                    axes.with(AxesOf::ttft_text),
                )}
            </p>
        </section>
    }
}

/// How many members answer and have something.
fn urgent(report: &FleetReport, is: impl Fn(&ClusterSummary) -> bool) -> String {
    let asked = report.members.iter().any(|member| member.state != MemberState::Waiting);
    if !asked {
        return format::UNKNOWN.to_owned();
    }
    report.members.iter().filter_map(MemberReport::current).filter(|now| is(now)).count().to_string()
}
