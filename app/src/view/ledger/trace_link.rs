//! The link from a decision to its trace, by the template in the page.

use leptos::prelude::*;
use radixscope_export::TraceUrl;

use crate::view::control::view;
use crate::view::page_meta::page_meta;

/// The template that the server was started with, if there is one.
pub(super) fn trace_url() -> Option<TraceUrl> {
    page_meta("trace-url")?.parse().ok()
}

/// A row of a decision's facts with the link, and the trace's id where it is known.
#[component]
pub(super) fn TraceLink(url: String, trace_id: Option<String>) -> impl IntoView {
    view! {
        <div>
            <dt>"Trace"</dt>
            <dd>
                <a href=url target="_blank" rel="noopener noreferrer" data-testid="trace-link">"Open the trace"</a>
                {trace_id.map(|id| view! { <span class="mono quiet">{id}</span> })}
            </dd>
        </div>
    }
}
