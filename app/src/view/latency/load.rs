//! Throughput, errors, queues, lengths, the router's own work, and what became of KV events: each with its source.

use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::latency::{AbsentFigures, EventRow, Load, LoadRow};

use crate::store::Store;
use crate::view::control::view;

/// All of them.
#[component]
pub(super) fn Numbers(store: Store, second: Memo<Millis>) -> impl IntoView {
    let load = Memo::new(move |_| {
        let now = second.get();
        store.peek(|shown| Load::of(shown, now))
    });
    let rows = Memo::new(move |_| load.with(|load| load.rows.clone()));
    // Made anew only when it changes: else it would close by itself.
    let absent = Memo::new(move |_| load.with(|load| load.absent.clone()));
    let events = Memo::new(move |_| load.with(|load| load.events.clone()));
    view! {
        <section class="numbers load" aria-labelledby="numbers-title">
            <h3 id="numbers-title">"Load" <span class="quiet">" last 60 s"</span></h3>
            <table data-testid="counts"><tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody></table>
            {move || absent.get().map(absent_figures)}
        </section>
        {move || events_table(events.get())}
    }
}

fn row(row: LoadRow) -> impl IntoView {
    view! { <tr data-testid=format!("count-{}", row.id)><th scope="row">{row.what}</th><td class="n"><b>{row.value}</b></td><td class="quiet source">{row.source}</td></tr> }
}

fn absent_figures(absent: AbsentFigures) -> impl IntoView {
    let item = |(what, setting): (String, String)| view! { <div><dt>{what}</dt><dd>{setting}</dd></div> };
    view! {
        <details class="absent-figures" data-testid="counts-absent">
            <summary>{absent.heading}</summary>
            <dl>{absent.by_setting.into_iter().map(item).collect_view()}</dl>
        </details>
    }
}

/// What became of KV events; nothing where no frontend counts them.
fn events_table(events: Vec<EventRow>) -> AnyView {
    if events.is_empty() {
        return ().into_any();
    }
    let row = |event: EventRow| {
        let bad = event.is_bad;
        view! {
            <tr class:bad=bad>
                <th scope="row">{event.what} {bad.then_some(" ▲")}</th>
                <td class="n">{event.latest}</td><td class="n">{event.session}</td>
            </tr>
        }
    };
    view! {
        <section class="numbers" aria-labelledby="events-title">
            <h3 id="events-title">"KV events in the router" <span class="quiet">" by what became of them"</span></h3>
            <table data-testid="events">
                <thead><tr><th scope="col">"Event"</th><th scope="col" class="n">"60 s"</th><th scope="col" class="n">"session"</th></tr></thead>
                <tbody>{events.into_iter().map(row).collect_view()}</tbody>
            </table>
        </section>
    }
}
