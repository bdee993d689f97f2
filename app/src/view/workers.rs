//! The workers: what each holds, how fast it changes, and facts about it that may point at a fault.

use leptos::prelude::*;
use radixscope_export::panel::workers::{CachedTotal, WorkerFigures, capacity_note, empty};
use radixscope_model::id::WorkerIx;
use radixscope_panels::workers::{COLUMNS, FEW_ROWS, WorkerRow, unlisted_text};

use super::ask::AskForBlocks;
use super::chip::Chip;
use super::figure::{EmptyPanel, Figure, PanelHead, Waiting};
use crate::store::{Feed, Store, TrackUntilDropped as _};
use crate::url::Panel;
use crate::view::control::view;

/// The panel.
#[component]
pub(super) fn WorkersPanel(store: Store) -> impl IntoView {
    let cached = Memo::new(move |_| store.on_beat(|shown| CachedTotal::of(shown)));
    let value = Memo::new(move |_| cached.with(|total| total.value.clone()));
    let title = Memo::new(move |_| cached.with(|total| total.what.to_owned()));
    let count = move || store.listed.with(Vec::len);
    let is_current = Memo::new(move |_| store.as_of(Feed::Events).is_none());
    let pace = pace(store, is_current);
    let unlisted = unlisted(store);
    let note = Memo::new(move |_| store.on_beat(|shown| capacity_note(shown, shown.worker_list())));
    view! {
        <section class="panel workers" class:many=move || { count() > FEW_ROWS } aria-labelledby="workers-title" data-testid="workers">
            <PanelHead store panel=Panel::Workers title="Workers">
                <Figure id="resident" label="cached blocks, all workers" value title/>
            </PanelHead>
            <Show when=move || count() != 0 fallback=move || view! { <NoWorkers store/> }>
                <div class="scroll" tabindex="0" role="region" aria-label="Table of workers">
                    <table>
                        <thead><tr>
                            {COLUMNS.map(|(class, name, title)| {
                                let given = |text: &'static str| (!text.is_empty()).then_some(text);
                                view! { <th scope="col" class=given(class) title=given(title)>{name}</th> }
                            }).collect_view()}
                        </tr></thead>
                        <For each=move || store.listed.get() key=|worker| *worker let:worker>
                            <WorkerLines store is_current pace worker/>
                        </For>
                    </table>
                </div>
                {move || unlisted.get().map(|text| view! { <p class="caption" data-testid="workers-unlisted">{text}</p> })}
                {move || note.get().map(|note| view! { <p class="caption" data-testid="capacity-unknown">{note}</p> })}
            </Show>
        </section>
    }
}

/// How many workers left so long ago that tables do not list them; `None`: all are listed.
pub(super) fn unlisted(store: Store) -> Memo<Option<String>> {
    Memo::new(move |_| {
        let listed = store.listed.with(Vec::len);
        store.on_beat(|shown| unlisted_text(shown, listed))
    })
}

#[component]
fn NoWorkers(store: Store) -> impl IntoView {
    move || match store.ready() {
        true => view! { <EmptyPanel text=empty()/> },
        false => view! { <Waiting id="workers-wait"/> },
    }
}

/// Changes when rows are to be looked at again.
fn pace(store: Store, is_current: Memo<bool>) -> Memo<(usize, u64)> {
    let second = store.second();
    Memo::new(move |before: Option<&(usize, u64)>| {
        let rows = store.listed.with(Vec::len);
        // A moment of the past is another one also within a second.
        match rows > FEW_ROWS && store.at.get() == 0 && is_current.get() {
            true => (rows, second.get().0),
            false => store.on_beat(|_| (rows, before.map_or(0, |(_, beats)| beats.wrapping_add(1)))),
        }
    })
}

#[component]
fn WorkerLines(
    store: Store,
    /// Whether what is shown of KV events is current.
    is_current: Memo<bool>,
    pace: Memo<(usize, u64)>,
    worker: WorkerIx,
) -> impl IntoView {
    let row = Memo::new(move |_| {
        pace.track_until_dropped();
        let (now, is_current) = (store.now_ms(), is_current.get_until_dropped());
        store.peek(|shown| WorkerRow::of(shown, worker, now, is_current))
    });
    // A worker that a new run of the server does not know leaves the table in the same beat.
    let text = move |part: fn(&WorkerRow) -> String| {
        move || row.with(|row| row.as_ref().map(part).unwrap_or_default())
    };
    let is = move |part: fn(&WorkerFigures) -> bool| {
        move || row.with(|row| row.as_ref().is_some_and(|row| part(&row.figures)))
    };
    let facts = Memo::new(move |_| {
        row.with(|row| row.as_ref().map(|row| row.figures.facts.clone()).unwrap_or_default())
    });
    let picked = move || store.picked() == Some(worker);
    // All in one: where `class` is written anew, what `class:picked` had added would be gone.
    let sign = text(|row| row.sign.to_owned());
    let classes = move || {
        let beside = match store.picked() {
            Some(picked) if picked == worker => " picked",
            Some(_) => " other",
            None => "",
        };
        format!("worker {}{beside}", sign())
    };
    let pick = move |_| store.pick(worker);
    let id = text(|row| row.figures.id.clone());
    let bar = text(WorkerRow::bar);
    let colour = move || radixscope_icicle::palette::token(worker.slot(), store.worker_slots());
    view! {
        <tbody class=classes on:click=pick data-testid="worker" data-worker=id>
            <tr>
                <th scope="row">
                    <button class="pick" aria-pressed=move || picked().to_string() title=text(WorkerRow::pick_title)>
                        <i class="sign" title=text(|row| row.sign_title.to_owned()) aria-hidden="true"></i>
                        <Chip store worker/>
                        <span class="id">{text(|row| row.figures.tail.clone())}</span>
                        {move || store.pool_label(worker).map(|(beside, name)| view! {
                            <span class="of-pool" title=name data-testid="worker-pool">{beside}</span>
                        })}
                        <span class="hidden">{text(WorkerRow::spoken)}</span>
                    </button>
                </th>
                <td class="held" title=text(|row| row.figures.occupancy.explain())>
                    <span class="meter" class:guess=is(|figures| figures.occupancy.capacity.is_none()) class:lacks=is(|figures| figures.lacks.is_some()) aria-hidden="true">
                        <i style=move || format!("width:{};--c:var({})", bar(), colour())></i>
                    </span>
                    <span data-testid="held">{text(|row| row.figures.occupancy.to_text())}</span>
                </td>
                <td class="n" title=text(|row| row.figures.in_flight_title.clone())>
                    <span data-testid="in-flight">{text(|row| row.figures.in_flight.clone())}</span>
                    <span class="queued" data-testid="queued">{text(|row| row.figures.queued.clone())}</span>
                </td>
                <td class="n c-used">{text(|row| row.figures.used.clone())}</td>
                <td class="n" data-testid="stored-rate">{text(|row| row.figures.stored.clone())}</td>
                <td class="n" data-testid="removed-rate">{text(|row| row.figures.removed.clone())}</td>
                <td class="n c-overlap" title=text(|row| row.figures.hit_rate_title.clone()) data-testid="overlap">{text(|row| row.figures.hit_rate.clone())}</td>
                <td class="n c-age">{text(|row| row.age.clone())}</td>
            </tr>
            <Show when=is(|figures| figures.lacks.is_some())>
                <tr class="worker-facts"><td colspan="8" data-testid="knowledge">
                    {text(|row| row.figures.lacks.clone().unwrap_or_default())}
                    {move || row.with(|row| row.as_ref()?.figures.query.clone()).map(|query| view! { <span class="quiet" data-testid="asking">{query}</span> })}
                    <Show when=is(|figures| figures.can_query)><AskForBlocks store worker/></Show>
                </td></tr>
            </Show>
            <Show when=is(|figures| !figures.facts.is_empty())>
                <tr class="worker-facts"><td colspan="8">
                    {move || {
                        let fact = |(id, text): (&'static str, String)| {
                            view! { <span class:quiet=id.contains("tier") data-testid=id>{text}</span> }
                        };
                        facts.get().into_iter().map(fact).collect_view()
                    }}
                </td></tr>
            </Show>
        </tbody>
    }
}
