//! What routers other than Dynamo's count, where they report no single decisions.

use leptos::prelude::*;
use radixscope_export::other_routers::TallyLine;
use radixscope_panels::decisions::OtherRouter;

use crate::store::Store;
use crate::view::control::view;

/// Nothing where no such router is scraped.
#[component]
pub(super) fn OtherRouters(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let now = store.received_ms();
        store.on_beat(|shown| OtherRouter::all(shown, now))
    });
    let line = |TallyLine { label, text, title }: TallyLine| {
        view! { <dt>{label}</dt><dd title=title>{text}</dd> }
    };
    let router = move |OtherRouter { make, name, lines }: OtherRouter| {
        view! {
            <section class="other-router" data-testid="other-router">
                <h3>{make} <span class="quiet">{name}</span></h3>
                <dl>{lines.into_iter().map(line).collect_view()}</dl>
            </section>
        }
    };
    move || rows.get().into_iter().map(router).collect_view()
}
