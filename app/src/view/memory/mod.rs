//! What the workers' KV memory is filled with, and below it what would fit. Everything is computed by core; this shows it.

mod calculator;
mod remedies;
mod results;
mod row;
mod workers;

use leptos::prelude::*;
use radixscope_export::panel::workers::NO_WORKER;
use radixscope_insight::capacity::{CapacityForm, CurrentUsage, FieldFault, Input, Inputs};
use radixscope_insight::memory::{self, Facts, MemorySegment};
use radixscope_model::id::Millis;

use crate::format::{self, UNKNOWN};
use crate::store::{Store, ViewContext};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, Figure, PanelHead, Waiting, prose};
use crate::view_context::PoolLabel;

/// The calculator's keys in the address begin so.
const KEY_PREFIX: &str = "cap.";

/// The calculator as the address has it: its only place.
#[derive(Clone, Copy)]
struct Calculator {
    store: Store,
    form: Memo<CapacityForm>,
    read: Memo<Result<Inputs, Vec<FieldFault>>>,
}

impl Calculator {
    fn new(store: Store) -> Self {
        let facts = Memo::new(move |_| store.on_beat(|shown| memory::live_facts(shown, shown.pool)));
        let form = Memo::new(move |_| {
            store.address.with(|address| {
                let get = |key: &str| address.other(&format!("{KEY_PREFIX}{key}"));
                let mut form = CapacityForm::from_address(get);
                if get("preset").is_none() {
                    begin_with(&mut form, &facts.get());
                }
                form
            })
        });
        Self { store, form, read: Memo::new(move |_| form.with(|form| form.read())) }
    }

    /// Changes what is typed or chosen.
    fn change(self, change: impl FnOnce(&mut CapacityForm)) {
        let mut form = self.form.get_untracked();
        change(&mut form);
        self.store.address.update(|address| {
            for (key, value) in form.to_address() {
                address.set_other(&format!("{KEY_PREFIX}{key}"), value.as_deref());
            }
        });
    }

    /// Bytes of a token, if the address says how many: the preset of an untouched form is not the reader's model.
    fn bytes_per_token(self) -> Option<u64> {
        let is_touched =
            self.store.address.with(|address| address.other(&format!("{KEY_PREFIX}preset")).is_some());
        let capacity = self.read.with(|read| read.as_ref().ok().and_then(|inputs| inputs.capacity().ok()));
        capacity.filter(|_| is_touched).map(|capacity| capacity.kv_bytes_per_token)
    }
}

/// An untouched form begins with what the deployment reports.
fn begin_with(form: &mut CapacityForm, facts: &Facts) {
    // Workers that differ are no single number: the smallest is what every worker has.
    let blocks = facts.blocks_per_worker.map(|(least, _)| least);
    let Some(blocks) = blocks.filter(|_| facts.block_size_tokens.is_some()) else { return };
    let reported = [
        (Input::Blocks, Some(blocks)),
        (Input::BlockSize, facts.block_size_tokens.map(u64::from)),
        (Input::Workers, facts.workers),
        (Input::MaxNumSeqs, facts.max_num_seqs),
    ];
    for (input, value) in reported {
        if let Some(value) = value {
            form.set(input, value.to_string());
        }
    }
}

/// Bytes of KV cache that a token takes, if the calculator was given the model.
pub(super) fn bytes_per_token(store: Store) -> Memo<Option<u64>> {
    let calculator = Calculator::new(store);
    Memo::new(move |_| calculator.bytes_per_token())
}

/// The panel.
#[component]
pub fn MemoryPanel(store: Store) -> impl IntoView {
    let calculator = Calculator::new(store);
    let sums = Memo::new(move |_| {
        store.labels.with(|labels| store.on_beat(|shown| sums(shown, labels, store.now_ms())))
    });
    let share = move |of: fn(&CurrentUsage) -> Option<u64>| {
        Memo::new(move |_| {
            let share = |live: &CurrentUsage| {
                let capacity = live.capacity_blocks.filter(|&all| all > 0)?;
                Some(format::percent(of(live)? as f64 / capacity as f64))
            };
            by_pool(&sums.get(), |live| share(live).unwrap_or(UNKNOWN.to_owned()))
        })
    };
    let of_all = move || {
        by_pool(&sums.get(), |live| match live.capacity_blocks {
            Some(all) => format!("Of the {} blocks of all workers", format::count(all)),
            None => "The capacity of at least one worker is unknown".to_owned(),
        })
    };
    let title = Memo::new(move |_| of_all());
    let any = Memo::new(move |_| store.listed.with(|listed| !listed.is_empty()));
    view! {
        <section class="panel memory" aria-labelledby="memory-title" data-testid="memory">
            <PanelHead store panel=Panel::Memory title="Memory">
                <Figure id="mem-used-all" label="used by running requests" value=share(|live| live.used_blocks) title/>
                <Figure id="mem-retained-all" label="cached, evictable" value=share(|live| live.retained_blocks) title/>
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

/// The pools shown with what their workers add up to; pools have blocks of different size, so that all of them together
/// have no sum.
fn sums(shown: &ViewContext<'_>, labels: &[PoolLabel], now: Millis) -> Vec<(String, CurrentUsage)> {
    let name = |pool| labels.iter().find(|label| label.pool == pool).map(|label| label.short.clone());
    let pools = shown.pool_list().into_iter();
    pools.map(|pool| (name(pool).unwrap_or_default(), memory::live(shown, pool, now))).collect()
}

/// A figure of each pool, with its name where there are several.
fn by_pool(sums: &[(String, CurrentUsage)], figure: impl Fn(&CurrentUsage) -> String) -> String {
    match sums {
        [] => UNKNOWN.to_owned(),
        [(_, one)] => figure(one),
        all => {
            all.iter().map(|(name, live)| format!("{name} {}", figure(live))).collect::<Vec<_>>().join(" · ")
        }
    }
}

/// Names and patterns of the stretches of a bar.
#[component]
fn Legend() -> impl IntoView {
    let parts = [
        MemorySegment::Used,
        MemorySegment::Retained,
        MemorySegment::UsedOrCached,
        MemorySegment::Free,
        MemorySegment::Rest,
    ];
    view! {
        <p class="mem-legend">
            {parts.map(|part| view! { <span><i class=format!("mem-key {}", class(part)) aria-hidden="true"></i>{part.label()}</span> }).into_iter().collect_view()}
        </p>
    }
}

/// Class of a stretch.
const fn class(part: MemorySegment) -> &'static str {
    match part {
        MemorySegment::Used => "used",
        MemorySegment::Retained => "retained",
        MemorySegment::UsedOrCached => "held-part",
        MemorySegment::Free => "free",
        MemorySegment::Rest => "rest",
    }
}

#[component]
fn Nothing(store: Store) -> impl IntoView {
    view! {
        <Show when=move || store.ready() fallback=|| view! { <Waiting id="mem-wait"/> }>
            <Empty id="mem-empty" head=NO_WORKER>
                {prose(
                    "Workers appear with their first KV event or load report. `--prometheus frontend=http://HOST:8000/metrics` adds block \
                     size and capacity, and the same with a worker's system port its engine's own figures. The calculator below works \
                     without any."
                )}
            </Empty>
        </Show>
    }
}
