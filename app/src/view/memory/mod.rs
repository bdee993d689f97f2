//! What the workers' KV memory is filled with, and below it what would fit.

mod calculator;
mod remedies;
mod results;
mod workers;

use leptos::prelude::*;
use radixscope_insight::capacity::CapacityForm;
use radixscope_insight::memory::live_facts;
use radixscope_panels::memory::{self as panel, MemoryFigures};

use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{EmptyPanel, Figure, PanelHead, Waiting};

/// The calculator as the address has it: its only place.
#[derive(Clone, Copy)]
struct Calculator {
    store: Store,
    shown: Memo<panel::Calculator>,
}

impl Calculator {
    fn new(store: Store) -> Self {
        let facts = Memo::new(move |_| store.on_beat(|shown| live_facts(shown, shown.pool)));
        let shown = Memo::new(move |_| {
            facts.with(|facts| store.address.with(|address| panel::Calculator::of(address, facts)))
        });
        Self { store, shown }
    }

    /// Changes what is typed or chosen.
    fn change(self, change: impl FnOnce(&mut CapacityForm)) {
        let mut form = self.shown.with_untracked(|shown| shown.form.clone());
        change(&mut form);
        self.store.address.update(|address| panel::Calculator::write(&form, address));
    }
}

/// Bytes of KV cache that a token takes, if the calculator was given the model.
pub(super) fn bytes_per_token(store: Store) -> Memo<Option<u64>> {
    let Calculator { shown, .. } = Calculator::new(store);
    Memo::new(move |_| shown.with(panel::Calculator::bytes_per_token))
}

/// The panel.
#[component]
pub fn MemoryPanel(store: Store) -> impl IntoView {
    let calculator = Calculator::new(store);
    let figures = Memo::new(move |_| {
        let now = store.now_ms();
        store.labels.with(|labels| store.on_beat(|shown| MemoryFigures::of(shown, labels, now)))
    });
    let figure =
        move |of: fn(&MemoryFigures) -> &String| Memo::new(move |_| figures.with(|all| of(all).clone()));
    let title = figure(|all| &all.title);
    let any = Memo::new(move |_| store.listed.with(|listed| !listed.is_empty()));
    view! {
        <section class="panel memory" aria-labelledby="memory-title" data-testid="memory">
            <PanelHead store panel=Panel::Memory title="Memory">
                <Figure id="mem-used-all" label="used by running requests" value=figure(|all| &all.used) title/>
                <Figure id="mem-retained-all" label="cached, evictable" value=figure(|all| &all.retained) title/>
            </PanelHead>
            <div class="scroll mem-scroll" tabindex="0" role="region" aria-label="Memory of the workers and capacity calculator">
                <Show when=move || any.get() fallback=move || view! { <Nothing store/> }>
                    <workers::Workers store calculator/>
                </Show>
                <calculator::CalculatorView calculator/>
            </div>
        </section>
    }
}

/// Names and patterns of the stretches of a bar.
#[component]
fn Legend() -> impl IntoView {
    view! {
        <p class="mem-legend">
            {panel::legend().map(|(class, name)| view! { <span><i class=format!("mem-key {class}") aria-hidden="true"></i>{name}</span> }).into_iter().collect_view()}
        </p>
    }
}

#[component]
fn Nothing(store: Store) -> impl IntoView {
    view! {
        <Show when=move || store.ready() fallback=|| view! { <Waiting id="mem-wait"/> }>
            <EmptyPanel text=panel::empty()/>
        </Show>
    }
}
