//! Blocks stored and removed per second over the last minutes, one band per worker.

use leptos::prelude::*;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Bucket, RATE_WINDOW_S};

use super::charted::Charted;
use super::chip::Chip;
use super::figure::{Figure, PanelHead};
use crate::draw::palette::{Palette, label};
use crate::draw::rates::{self, Band};
use crate::format;
use crate::store::{Feed, Shown, Store};
use crate::url::Panel;

/// More workers than this are drawn as one band: they could not be told apart.
const MAX_BANDS: usize = 24;
/// Up to so many workers are named in the head; more would leave no room for the figures.
const LEGEND_WORKERS: usize = 6;
/// Figures are means over so many full seconds.
const MEAN_SECONDS: u64 = 10;

/// The panel.
#[component]
pub(super) fn RatesPanel(store: Store, dark: Signal<bool>) -> impl IntoView {
    let sum = |of: fn((f64, f64)) -> f64| {
        Memo::new(move |_| {
            if store.as_of(Feed::Events).is_some() {
                return format::UNKNOWN.to_owned();
            }
            let now = store.now_ms();
            let sum = store.on_beat(|c| {
                c.worker_list()
                    .filter_map(|w| c.rate_per_second(w, now, MEAN_SECONDS))
                    .map(of)
                    .reduce(|sum, more| sum + more)
            });
            sum.map_or(format::UNKNOWN.to_owned(), format::rate)
        })
    };
    let stored = sum(|rates| rates.0);
    let removed = sum(|rates| rates.1);
    let second = store.second();
    let picked = Memo::new(move |_| store.picked());
    let option = move |palette: &Palette| {
        let (now, picked) = (second.get(), picked.get());
        store.pools.track();
        Some(store.peek(|cluster| rates::option(&bands(cluster, palette, picked, now))))
    };
    view! {
        <section class="panel rates" aria-labelledby="rates-title" data-testid="rates">
            <PanelHead store panel=Panel::Rates title="Block rates">
                <Show when=move || store.listed.with(Vec::len) <= LEGEND_WORKERS>
                    <span class="chips" aria-hidden="true">
                        {move || {
                            let chip = |worker| view! { <Chip store worker/> };
                            store.listed.get().into_iter().map(chip).collect_view()
                        }}
                    </span>
                </Show>
                <Figure id="stored-rate-all" label="stored/s" value=stored title="All workers, mean of the last 10 s"/>
                <Figure id="removed-rate-all" label="removed/s" value=removed title="All workers, mean of the last 10 s"/>
            </PanelHead>
            <Charted store dark id="rates-chart" option
                words="Blocks stored and removed per second and worker over the last 5 minutes. The table of workers has the present rates."/>
        </section>
    }
}

fn bands(cluster: &Shown<'_>, palette: &Palette, picked: Option<WorkerIx>, now: Millis) -> Vec<Band> {
    let all = cluster.worker_list().filter(|&w| picked.is_none_or(|picked| picked == w));
    let mut bands: Vec<Band> = Vec::new();
    for worker in all {
        let buckets = cluster.rates(worker, now, RATE_WINDOW_S).map(|(_, bucket)| bucket);
        let of = |n: fn(Bucket) -> u32| move |bucket: Option<Bucket>| bucket.map(|b| f64::from(n(b)));
        let (stored, removed): (Vec<_>, Vec<_>) =
            buckets.map(|b| (of(|b| b.stored)(b), of(|b| b.removed)(b))).unzip();
        match bands.last_mut().filter(|_| worker.at() >= MAX_BANDS && picked.is_none()) {
            Some(others) if others.name == "others" => {
                add(&mut others.stored, &stored);
                add(&mut others.removed, &removed);
            }
            Some(_) => {
                bands.push(Band { name: "others".to_owned(), colour: palette.shared, stored, removed })
            }
            None => bands.push(Band { name: label(worker), colour: palette.worker(worker), stored, removed }),
        }
    }
    bands
}

/// Adds what is known; a second that is not known of one worker is what the others stored.
fn add(sums: &mut [Option<f64>], more: &[Option<f64>]) {
    for (sum, &n) in sums.iter_mut().zip(more) {
        *sum = sum.zip(n).map(|(sum, n)| sum + n).or(*sum).or(n);
    }
}
