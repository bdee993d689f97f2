//! The link from a decision to its trace, by the template in the page.

use leptos::prelude::*;
use radixscope_export::TraceUrl;
use radixscope_state::cluster::DecisionEntry;

use crate::view::control::view;
use crate::view::page_meta::page_meta;

/// The template that the server was started with, if there is one.
pub(super) fn trace_url() -> Option<TraceUrl> {
    page_meta("trace-url")?.parse().ok()
}

/// A row of a decision's facts with the link; none where a value of the template is not reported of it.
#[component]
pub(super) fn TraceLink(decided: DecisionEntry) -> impl IntoView {
    let url = trace_url()?.of(&decided)?;
    let trace_id = decided.decision.trace_id.clone();
    Some(view! {
        <div>
            <dt>"Trace"</dt>
            <dd>
                <a href=url target="_blank" rel="noopener noreferrer" data-testid="trace-link">"Open the trace"</a>
                {trace_id.map(|id| view! { <span class="mono quiet">{id}</span> })}
            </dd>
        </div>
    })
}
