//! What the colours of the picture mean, with numbers and units.

use leptos::prelude::*;
use radixscope_export::tree::recency;
use radixscope_icicle::heat::{clock, hits_end, most_hits};
use radixscope_icicle::palette::{ReplicaScale, label, replicas_to_text, replicas_token, session_token};
use radixscope_icicle::raster::MAX_TICKS;
use radixscope_state::cluster::touch;

use super::lights;
use super::state::{HITS_WINDOW_MS, Heat, TreeView};
use crate::format;
use crate::store::Store;
use crate::view::chip::{Chip, key_colours};
use crate::view::control::view;

/// Workers whose colours are listed; of more, the number.
const LISTED: usize = 20;

/// The line below the picture.
#[component]
pub(super) fn Legend(tree: TreeView) -> impl IntoView {
    let heat = Memo::new(move |_| tree.choice.get().heat);
    let lanes = Memo::new(move |_| tree.choice.get().lanes);
    let oldest = Memo::new(move |_| {
        if heat.get() != Heat::Recency {
            return String::new();
        }
        let now = tree.store.on_beat(|_| touch(clock(tree.store.now_ms())));
        let age = tree.store.with_tree(|_, forest| recency::oldest_age_ms(forest, now));
        recency::end_to_text(recency::end_ms(age.unwrap_or(0)))
    });
    let has_session = Memo::new(move |_| {
        tree.store.address.with(|address| address.decision.is_none() && !address.session.is_empty())
    });
    let picked = move || tree.store.picked().map(|worker| format!("dimmed: not on {}", label(worker)));
    view! {
        <div class="tree-legend" style=move || key_colours(tree.store) role="group" aria-label="Legend" data-testid="tree-legend">
            {move || match heat.get() {
                Heat::Owner => view! { <Owners tree lanes/> },
                Heat::Recency => view! {
                    <Bar what="latest store or use" from=oldest to="just now"/>
                },
                Heat::Hits => view! { <Hits tree/> },
                Heat::Sessions => view! { <Sessions tree/> },
                Heat::Owners => view! { <Bar what="replicas" from="1" to=Memo::new(move |_| of_workers(tree))/> },
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

fn of_workers(tree: TreeView) -> String {
    let workers = tree.store.drawn.with(Vec::len);
    let steps = if workers > MAX_TICKS { ", in steps from 17 on" } else { "" };
    format!("{}{steps}", format::plural(workers as u64, "worker", "workers"))
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
    let most = Memo::new(move |_| {
        if tree.known_requests() > 0 { tree.store.with_tree(|_, forest| most_hits(forest)) } else { None }
    });
    let minutes = HITS_WINDOW_MS / 60_000;
    let end = move || {
        let most = most.get().unwrap_or(0);
        let end = format::plural(hits_end(most).into(), "hit", "hits");
        format!("{end} in {minutes} min (most: {})", format::count(most.into()))
    };
    view! {
        <Show when=move || most.get().is_some() fallback=move || view! {
            <span class="tl-note" data-testid="legend-hits-unknown">
                {format!("Hits unknown: no request of the last {minutes} min has a known worker. Routing decisions on NATS or a frontend's log report it.")}
            </span>
        }>
            <Bar what="requests that found it cached" from="0" to=Memo::new(move |_| end())/>
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
                "No retained decision names a session. Session affinity, request traces or the log report it."
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
        let of = workers.get();
        let key = |(shade, replicas)| {
            let colour = format!("background: var({})", replicas_token(shade));
            let text = replicas_to_text(&replicas, of.max(2));
            view! { <span class="replica-step"><i class="key replicas" style=colour aria-hidden="true"></i><b>{text}</b></span> }
        };
        ReplicaScale::of(of).steps().map(key).collect_view()
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
    let count = move || store.drawn.with(Vec::len);
    let listed = move || store.drawn.with(|drawn| drawn.iter().take(LISTED).copied().collect::<Vec<_>>());
    let more = move || count().saturating_sub(LISTED);
    view! {
        <span class="tl-workers" data-testid="legend-workers">
            <For each=listed key=|worker| *worker let:worker><Chip store worker/></For>
            {move || (more() > 0).then(|| view! { <span>{format!("+{} more", more())}</span> })}
        </span>
        <Show when=move || lanes.get() fallback=move || view! {
            <Replicas store what="workers, one tick each"/>
            <Show when=move || { count() > MAX_TICKS }>
                <span><i class="key count" aria-hidden="true">"17"</i>{format!("more than {MAX_TICKS} workers: their number")}</span>
            </Show>
        }>
            <span><i class="key alone" aria-hidden="true"></i>"on this worker only"</span>
            <span><i class="key shared-lane" aria-hidden="true"></i>"muted, with an edge: also on other workers"</span>
            <span><i class="key outline" aria-hidden="true"></i>"on other workers only"</span>
        </Show>
        <span><i class="key evicted-parent" aria-hidden="true"></i>"Evicted parent of cached blocks"</span>
    }
}
