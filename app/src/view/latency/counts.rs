//! Throughput, errors, queues, lengths, the router's own work, and what became of KV events: each with its source.

use std::borrow::Cow;

use leptos::prelude::*;
use radixscope_insight::latency::{
    self, Counts, ENABLE_FRONTEND, Errors, EventCount, Quantity, RequestGauge, Times,
};
use radixscope_model::id::Millis;
use radixscope_model::number_format;

use crate::format;
use crate::store::Store;
use crate::view::control::view;

/// A line: what, how much, from where.
#[derive(Clone, PartialEq)]
struct LoadRow {
    id: Cow<'static, str>,
    what: Cow<'static, str>,
    /// `None`: absent.
    value: Option<String>,
    source: String,
}

/// All of them.
#[component]
pub(super) fn Numbers(store: Store, second: Memo<Millis>) -> impl IntoView {
    let counts = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency::counts(cluster, now))
    });
    let rows = Memo::new(move |_| {
        let now = second.get();
        let mut rows = counts.with(of_counts);
        store.peek(|cluster| {
            rows.extend(latency::request_gauges(cluster).into_iter().map(of_gauge));
            for (quantity, id, what, since) in [
                (Quantity::InputTokens, "input", "Prompt length p50 / p95", ""),
                (Quantity::OutputTokens, "output", "Output length p50 / p95", ""),
                (Quantity::RouterOverhead, "overhead", "Router overhead p50 / p95", "only from Dynamo 1.0; "),
            ] {
                rows.push(of_quantity(id, what, since, quantity, &latency::latest(cluster, quantity, now)));
            }
        });
        rows
    });
    let events = Memo::new(move |_| counts.with(|counts| counts.events.clone()));
    let row = |row: LoadRow| {
        view! { <tr data-testid=format!("count-{}", row.id)><th scope="row">{row.what}</th><td class="n"><b>{row.value}</b></td><td class="quiet source">{row.source}</td></tr> }
    };
    let known = move || rows.get().into_iter().filter(|row| row.value.is_some()).map(row).collect_view();
    // Made anew only when it changes: else it would close by itself.
    let missing = Memo::new(move |_| {
        let mut all = absent(&rows.get());
        if events.with(Vec::is_empty) {
            let of_events = || "KV events in the router".to_owned();
            let setting = format!("only from Dynamo 1.0; {ENABLE_FRONTEND}");
            match all.iter_mut().find(|(known, _)| *known == setting) {
                Some((_, what)) => what.push(of_events()),
                None => all.push((setting, vec![of_events()])),
            }
        }
        all
    });
    let missing = move || {
        let all = missing.get();
        let item = |(setting, what): (String, Vec<String>)| {
            view! { <div><dt>{what.join(" · ")}</dt><dd>{setting}</dd></div> }
        };
        (!all.is_empty()).then(|| {
            let what = all.iter().map(|(_, what)| what.len() as u64).sum::<u64>();
            view! {
                <details class="absent-figures" data-testid="counts-absent">
                    <summary>{format::plural(what, "figure", "figures")}" not reported"</summary>
                    <dl>{all.into_iter().map(item).collect_view()}</dl>
                </details>
            }
        })
    };
    view! {
        <section class="numbers load" aria-labelledby="numbers-title">
            <h3 id="numbers-title">"Load" <span class="quiet">" last 60 s"</span></h3>
            <table data-testid="counts"><tbody>{known}</tbody></table>
            {missing}
        </section>
        {move || events_table(events.get())}
    }
}

/// What no source reports, by the setting that would bring it.
fn absent(rows: &[LoadRow]) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.value.is_none()) {
        let what = row.what.to_string();
        match all.iter_mut().find(|(setting, _)| *setting == row.source) {
            Some((_, same)) => same.push(what),
            None => all.push((row.source.clone(), vec![what])),
        }
    }
    all
}

fn of_counts(counts: &Counts) -> Vec<LoadRow> {
    let absent = || format!("{ENABLE_FRONTEND}, or a log that reports when requests end");
    let throughput = counts.throughput.as_ref();
    let from = || throughput.map_or_else(absent, |t| t.source.to_owned());
    let errors = counts.errors.map(|errors| share_text(errors, "ended"));
    let session = counts.session_errors.map_or_else(absent, |e| format!("session: {}", share_text(e, "")));
    vec![
        LoadRow {
            id: "requests".into(),
            what: "Requests ended".into(),
            value: throughput.map(|t| format!("{}/s", number_format::digits(t.requests_per_s))),
            source: from(),
        },
        LoadRow {
            id: "tokens".into(),
            what: "Output tokens".into(),
            value: throughput
                .and_then(|t| t.output_tokens_per_s)
                .map(|n| format!("{}/s", number_format::digits(n))),
            source: from(),
        },
        LoadRow { id: "errors".into(), what: "Errors".into(), value: errors, source: session },
    ]
}

fn share_text(errors: Errors, of: &str) -> String {
    let share = errors.share().map_or(String::new(), |share| format!("{}, ", format::percent(share)));
    let text = format!("{share}{} of {} {of}", format::count(errors.failed), format::count(errors.of));
    text.trim_end().to_owned()
}

fn of_gauge(gauge: RequestGauge) -> LoadRow {
    LoadRow {
        id: gauge.id.into(),
        what: gauge.what.into(),
        value: gauge.requests.map(|n| format::count(n.round().max(0.0) as u64)),
        source: gauge.source.trim_start_matches("absent: ").to_owned(),
    }
}

fn of_quantity(
    id: &'static str,
    what: &'static str,
    since: &str,
    quantity: Quantity,
    all: &[Times],
) -> LoadRow {
    let first = all.first();
    let value = first.map(|times| match times.quantiles {
        Some([p50, p95, _]) => {
            format!(
                "{} / {}",
                quantity.range_text(&p50).replace(" tokens", ""),
                quantity.range_text(&p95).replacen(" tokens–", "–", 1)
            )
        }
        None => "no sample".to_owned(),
    });
    let source = first.map_or_else(
        || format!("{since}{ENABLE_FRONTEND}"),
        |times| format!("{}, {}", times.share_text(), times.source.to_text()),
    );
    LoadRow { id: id.into(), what: what.into(), value, source }
}

/// What became of KV events; nothing where no frontend counts them.
fn events_table(events: Vec<EventCount>) -> AnyView {
    if events.is_empty() {
        return ().into_any();
    }
    let row = |event: EventCount| {
        let bad = !event.is_good && event.latest > 0.0;
        view! {
            <tr class:bad=bad>
                <th scope="row">{event.what} {bad.then_some(" ▲")}</th>
                <td class="n">{format::count(event.latest as u64)}</td><td class="n">{format::count(event.session as u64)}</td>
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
