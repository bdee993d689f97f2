//! What routers other than Dynamo's count, where they report no single decisions. Everything is computed by core; this shows it.

use leptos::prelude::*;
use radixscope_export::other_routers::{OtherRouterRow, TallyLine};
use radixscope_insight::latency::WINDOW_MS;
use radixscope_model::number_format::duration;

use crate::store::Store;
use crate::view::control::view;

/// Nothing where no such router is scraped.
#[component]
pub(super) fn OtherRouters(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let now = store.received_ms();
        store.on_beat(|cluster| {
            let rows = OtherRouterRow::all(cluster, now).into_iter();
            rows.map(|row| (row.name.clone(), row.make(), row.lines())).collect::<Vec<_>>()
        })
    });
    let line = |TallyLine { label, text, title }: TallyLine| {
        view! { <dt>{label}</dt><dd title=title>{text}</dd> }
    };
    let router = move |(name, make, lines): (String, &'static str, Vec<TallyLine>)| {
        view! {
            <section class="other-router" data-testid="other-router">
                <h3>{make} <span class="quiet">" · " {name} ", last " {duration(WINDOW_MS as f64)}</span></h3>
                <dl>{lines.into_iter().map(line).collect_view()}</dl>
            </section>
        }
    };
    move || rows.get().into_iter().map(router).collect_view()
}
