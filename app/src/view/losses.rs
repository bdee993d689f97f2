//! What was lost or not understood: per source, topic and cause, with the last sample; and engines without Dynamo, each with what came of
//! it. Opened from the status bar.

use leptos::html;
use leptos::prelude::*;
use radixscope_export::engines::EngineRow;
use radixscope_model::id::Decimal;
use radixscope_model::record::{MissedCause, RejectReason};
use radixscope_state::cluster::SourceState;

use crate::format;
use crate::store::Store;
use crate::view::control::view;

/// Id of the popover.
pub(super) const LOSSES_ID: &str = "losses";

#[derive(Clone, PartialEq)]
struct LossRow {
    source: String,
    topic: &'static str,
    cause: &'static str,
    count: String,
    last: String,
    sample: String,
}

/// The popover; the button that opens it is in the status bar.
#[component]
pub(super) fn Losses(store: Store) -> impl IntoView {
    let element = NodeRef::<html::Div>::new();
    // Its tables are there while they are seen: they change with every update.
    let is_open = RwSignal::new(false);
    let toggled = move |_| {
        let element = element.get_untracked();
        is_open.set(element.is_some_and(|element| element.matches(":popover-open").unwrap_or_default()));
    };
    view! {
        <div id=LOSSES_ID class="popover" popover="auto" aria-label="Lost and rejected messages" data-testid="losses"
            node_ref=element on:toggle=toggled>
            <h2>"Lost and rejected messages"</h2>
            <p class="quiet">
                "Lost: published, but not received here. Rejected: received, but invalid. Both since the server started."
            </p>
            <Show when=move || is_open.get()><LossTable store/><Engines store/></Show>
        </div>
    }
}

#[component]
fn LossTable(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|cluster| {
            let mut rows = Vec::new();
            cluster.sources().iter().for_each(|source| add_rows(&mut rows, source, now));
            rows
        })
    });
    let has_any = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let row = |row: LossRow| {
        view! {
            <tr>
                <td>{row.source}</td><td>{row.topic}</td><td>{row.cause}</td>
                <td class="n">{row.count}</td><td class="n">{row.last}</td>
                <td class="sample">{row.sample}</td>
            </tr>
        }
    };
    view! {
        <Show when=move || has_any.get()
            fallback=|| view! { <p>"None: every known message was received and valid."</p> }>
            <table>
                <thead><tr>
                    <th scope="col">"Source"</th><th scope="col">"Topic"</th><th scope="col">"Cause"</th>
                    <th scope="col" class="n">"Messages"</th><th scope="col" class="n">"Last"</th>
                    <th scope="col">"Last sample"</th>
                </tr></thead>
                <tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody>
            </table>
        </Show>
    }
}

/// Engines that are listened to without Dynamo, if there are any.
#[component]
fn Engines(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| store.on_beat(|cluster| EngineRow::all(cluster)));
    let has_any = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let number =
        |number: Option<Decimal>| number.map_or(format::UNKNOWN.to_owned(), |Decimal(n)| format::count(n));
    let row = move |row: EngineRow| {
        let size = row.block_size_tokens.map_or(format::UNKNOWN.to_owned(), |tokens| tokens.to_string());
        let encoding = row.encoding_text().unwrap_or(format::UNKNOWN.to_owned());
        let strange = if row.rejected > 0 {
            format!("{}: {}", format::count(row.rejected), row.rejected_sample)
        } else {
            "0".to_owned()
        };
        view! {
            <tr>
                <td>{row.name.clone()} <span class="quiet">" " {row.engine_text()}</span></td>
                <td>{row.state_text()}</td>
                <td class="n">{number(row.last_sequence)}</td>
                <td class="n">{format::count(row.lost)}</td>
                <td>{row.replay_text()}</td>
                <td class="n">{size}</td>
                <td>{encoding}</td>
                <td class="sample">{strange}</td>
            </tr>
        }
    };
    view! {
        <Show when=move || has_any.get()>
            <h2>"Engines without Dynamo"</h2>
            <table data-testid="engines">
                <thead><tr>
                    <th scope="col">"Engine"</th><th scope="col">"Connection"</th>
                    <th scope="col" class="n">"Latest batch"</th><th scope="col" class="n">"Lost"</th>
                    <th scope="col">"Sent again"</th><th scope="col" class="n" title="Tokens">"Block size"</th>
                    <th scope="col">"Events"</th><th scope="col">"Not understood"</th>
                </tr></thead>
                <tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody>
            </table>
        </Show>
    }
}

fn add_rows(rows: &mut Vec<LossRow>, source: &SourceState, now: radixscope_model::id::Millis) {
    rows.extend(source.missed.iter().map(|m| LossRow {
        source: source.name.clone(),
        topic: m.topic.as_str(),
        cause: missed_to_text(m.cause),
        count: format::bound(format::count(m.count), source.is_at_least(m)),
        last: format::ago(now.since(m.last_ms)),
        sample: String::new(),
    }));
    rows.extend(source.all_gaps().iter().map(|g| LossRow {
        source: source.name.clone(),
        topic: g.topic.as_str(),
        cause: match g.count {
            0 => "Lost: connection lost; messages of workers that joined or left meanwhile are not counted",
            _ => "Lost: connection lost, number of messages unknown",
        },
        count: match g.count {
            0 => format::UNKNOWN.to_owned(),
            1 => "1 gap".to_owned(),
            gaps => format!("{} gaps", format::count(gaps)),
        },
        last: format::ago(now.since(g.until_ms)),
        sample: String::new(),
    }));
    rows.extend(source.rejected.iter().map(|r| LossRow {
        source: source.name.clone(),
        topic: r.topic.as_str(),
        cause: rejected_to_text(r.reason),
        count: format::count(r.count),
        last: format::ago(now.since(r.last_ms)),
        sample: r.sample.clone(),
    }));
}

const fn missed_to_text(cause: MissedCause) -> &'static str {
    match cause {
        MissedCause::EnvelopeGap => "Lost: the publisher's sequence jumped",
        MissedCause::EventIdGap => "Lost: the worker's event ids jumped",
        MissedCause::HistoryExpired => "Lost: the stream no longer keeps them",
        MissedCause::QueueFull => "Lost: Radixscope's queue was full",
        MissedCause::SlowConsumer => "Lost: dropped in Radixscope's NATS client (at least)",
        MissedCause::TooManyWorkers => "Lost: more workers than the limit",
        MissedCause::LogRotated => "Lost: the log was rotated before it was read (at least this many files)",
        MissedCause::TooManyProcesses => "Lost: more scraped processes than the limit",
        MissedCause::EventsInLost => "Events in lost messages, by event id (messages counted above)",
    }
}

const fn rejected_to_text(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::Truncated => "Rejected: ends too early",
        RejectReason::Malformed => "Rejected: neither JSON nor MessagePack",
        RejectReason::WrongType => "Rejected: a field has another type",
        RejectReason::MissingField => "Rejected: a field is missing",
        RejectReason::TooLarge => "Rejected: too large or too deep",
        RejectReason::UnknownKind => "Rejected: unknown kind of message",
    }
}
