//! What the colours of the picture mean, with numbers and units.

use leptos::prelude::*;
use radixscope_icicle::palette::session_token;
use radixscope_panels::tree::{
    NO_SESSION, WorkerKey, hits_end_text, hits_unknown_text, oldest_text, picked_text, replica_steps,
    replicas_end,
};

use super::lights;
use super::state::{Heat, TreeView};
use crate::store::Store;
use crate::view::chip::{Chip, key_colours};
use crate::view::control::view;

/// The line below the picture.
#[component]
pub(super) fn Legend(tree: TreeView) -> impl IntoView {
    let heat = Memo::new(move |_| tree.choice.get().heat);
    let lanes = Memo::new(move |_| tree.choice.get().lanes);
    let oldest = Memo::new(move |_| {
        if heat.get() != Heat::Recency {
            return String::new();
        }
        let now = tree.store.on_beat(|_| tree.store.now_ms());
        let of_forest = tree.store.with_tree(|_, forest| oldest_text(Some(forest), now));
        of_forest.unwrap_or_else(|| oldest_text(None, now))
    });
    let has_session = Memo::new(move |_| {
        tree.store.address.with(|address| address.decision.is_none() && !address.session.is_empty())
    });
    let picked = move || tree.store.picked().map(picked_text);
    view! {
        <div class="tree-legend" style=move || key_colours(tree.store) role="group" aria-label="Legend" data-testid="tree-legend">
            {move || match heat.get() {
                Heat::Owner => view! { <Owners tree lanes/> },
                Heat::Recency => view! {
                    <Bar what="latest store or use" from=oldest to="just now"/>
                },
                Heat::Hits => view! { <Hits tree/> },
                Heat::Sessions => view! { <Sessions tree/> },
                Heat::Owners => view! { <Bar what="replicas" from="1" to=Memo::new(move |_| replicas_end(tree.store.drawn.with(Vec::len)))/> },
            }}
            <lights::Key tree/>
            <Show when=move || has_session.get()>
                <span class="tl-note" role="status" data-testid="painted-session">
                    {tree.painted.description}
                    <button class="plain" on:click=move |_| tree.store.address.update(|address| address.session.clear())>"Hide"</button>
                </span>
            </Show>
            {move || picked().map(|text| view! { <span class="tl-note" data-testid="legend-picked">{text}</span> })}
        </div>
    }
}

/// The scale between its ends.
#[component]
fn Bar(
    /// What is measured.
    what: &'static str,
    /// The dark end.
    #[prop(into)]
    from: Signal<String>,
    /// The bright end.
    #[prop(into)]
    to: Signal<String>,
) -> impl IntoView {
    view! {
        <span class="tl-scale" data-testid="legend-scale">
            <span>{what}</span>
            <b>{from}</b>
            <i class="heat-bar" aria-hidden="true"></i>
            <span class="hidden">" to "</span>
            <b>{to}</b>
        </span>
    }
}

/// Hits of the window, or that nothing is known of them.
#[component]
fn Hits(tree: TreeView) -> impl IntoView {
    let end = Memo::new(move |_| {
        let requests = tree.known_requests();
        tree.store.with_tree(|_, forest| hits_end_text(requests, Some(forest))).flatten()
    });
    view! {
        <Show when=move || end.with(Option::is_some) fallback=move || view! {
            <span class="tl-note" data-testid="legend-hits-unknown">{hits_unknown_text()}</span>
        }>
            <Bar what="requests that found it cached" from="0" to=Memo::new(move |_| end.get().unwrap_or_default())/>
        </Show>
    }
}

/// Sessions' colours; each outlines what its requests found.
#[component]
fn Sessions(tree: TreeView) -> impl IntoView {
    let has_any = move || tree.sessions.with(|all| !all.is_empty());
    let outline = move |name: &str| tree.store.address.update(|address| address.session = name.to_owned());
    view! {
        <Show when=has_any fallback=|| view! {
            <span class="tl-note" data-testid="legend-no-session">
                {NO_SESSION}
            </span>
        }>
            <span class="tl-workers" data-testid="legend-sessions">
                <For each=move || tree.sessions.get() key=Clone::clone let:session>
                    {
                        let (name, slot) = session;
                        let (text, colour) = (name.to_string(), format!("--c: var({})", session_token(slot)));
                        view! {
                            <button class="plain chip" title="Outline what its requests found" on:click=move |_| outline(&name)>
                                <i class="swatch plain" style=colour aria-hidden="true"></i>
                                {text}
                            </button>
                        }
                    }
                </For>
            </span>
            <span><i class="key several-sessions" aria-hidden="true"></i>"several sessions"</span>
            <span><i class="key other-session" aria-hidden="true"></i>"another session"</span>
            <span><i class="key no-session" aria-hidden="true"></i>"no session reported"</span>
        </Show>
    }
}

/// The shades of shared boxes, each with the replica counts that it stands for.
#[component]
pub(super) fn Replicas(
    store: Store,
    /// What is counted, in words that follow the numbers.
    what: &'static str,
) -> impl IntoView {
    let workers = Memo::new(move |_| store.on_beat(|shown| shown.cluster.pool_workers(shown.pool)));
    let steps = move || {
        let key = |(colour, text): (String, String)| {
            let colour = format!("background: var({colour})");
            view! { <span class="replica-step"><i class="key replicas" style=colour aria-hidden="true"></i><b>{text}</b></span> }
        };
        replica_steps(workers.get()).into_iter().map(key).collect_view()
    };
    view! {
        <span class="replica-steps" data-testid="legend-replicas" title="Cached on several workers: the more of the pool's workers, the deeper">
            "On " {steps} " " {what}
        </span>
    }
}

/// Workers' colours, and what stands for several of them.
#[component]
fn Owners(tree: TreeView, lanes: Memo<bool>) -> impl IntoView {
    let store = tree.store;
    let key = Memo::new(move |_| store.drawn.with(|drawn| WorkerKey::of(drawn)));
    let more = move || key.with(|key| key.more.clone());
    let beyond_ticks = move || key.with(|key| key.beyond_ticks.clone());
    view! {
        <span class="tl-workers" data-testid="legend-workers">
            <For each=move || key.with(|key| key.listed.clone()) key=|worker| *worker let:worker><Chip store worker/></For>
            {move || more().map(|more| view! { <span>{more}</span> })}
        </span>
        <Show when=move || lanes.get() fallback=move || view! {
            <Replicas store what="workers, one tick each"/>
            {move || beyond_ticks().map(|text| view! { <span><i class="key count" aria-hidden="true">"17"</i>{text}</span> })}
        }>
            <span><i class="key alone" aria-hidden="true"></i>"on this worker only"</span>
            <span><i class="key shared-lane" aria-hidden="true"></i>"muted, with an edge: also on other workers"</span>
            <span><i class="key outline" aria-hidden="true"></i>"on other workers only"</span>
        </Show>
        <span><i class="key evicted-parent" aria-hidden="true"></i>"Evicted parent of cached blocks"</span>
    }
}
