//! One quantity: its percentiles against the target, how much of the session was above it, and its way over time.

use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::id::Millis;
use radixscope_core::latency::{
    self, Burn, ENABLE_FRONTEND, Quantity, Reading, Standing, TREND_STEP_MS, Times, Trend,
};

use super::goals::{Goal, GoalField};
use crate::draw::chart::Chart;
use crate::draw::palette::{Palette, parse};
use crate::draw::trend::{self, Line};
use crate::format;
use crate::store::Store;
use crate::theme;
use crate::view::charted::{load_after_first_paint, root_font_px};

#[component]
pub(super) fn QuantityCard(
    store: Store,
    dark: Signal<bool>,
    second: Memo<Millis>,
    goal: Goal,
    quantity: Quantity,
    id: &'static str,
    title: &'static str,
    long: &'static str,
) -> impl IntoView {
    let times = Memo::new(move |_| {
        let now = second.get();
        store.peek(|cluster| latency::latest(cluster, quantity, now))
    });
    let burn = Memo::new(move |_| {
        second.track();
        let target = goal.ms.get();
        store.peek(|cluster| latency::burn(cluster, quantity, target))
    });
    let quantiles = Memo::new(move |_| times.with(|all| all.first().and_then(|times| times.quantiles)));
    let known = Memo::new(move |_| times.with(|all| !all.is_empty()));
    let reading = move |at: usize, name: &'static str, of: &'static str| {
        let shown = move || match quantiles.get() {
            Some(all) => view! { <Value reading=all[at] quantity target=goal.ms.get()/> }.into_any(),
            None => view! { <dd class="quiet">"no sample in the last 60 s"</dd> }.into_any(),
        };
        view! { <div class=of data-testid=format!("{id}-{name}")><dt>{name}</dt>{shown}</div> }
    };
    view! {
        <section class="quantity" aria-labelledby=format!("{id}-title") data-testid=id>
            <header>
                <h3 id=format!("{id}-title")>{title}" "<span class="quiet">{long}</span></h3>
                <span class="spacer"></span>
                <GoalField goal id/>
            </header>
            <Show when=move || known.get() fallback=move || view! { <Absent id long/> }>
                <dl class="quantiles">{reading(1, "p95", "main")} {reading(0, "p50", "")} {reading(2, "p99", "")}</dl>
                <p class="caption" data-testid=format!("{id}-source")>{move || times.with(|all| source_words(all, quantity))}</p>
                <p class="caption" data-testid=format!("{id}-burn")>{move || burn.with(|burn| burn_words(burn.as_ref(), quantity, goal.ms.get(), store))}</p>
                <TrendChart store dark second goal quantity id title/>
            </Show>
        </section>
    }
}

#[component]
fn Value(reading: Reading, quantity: Quantity, target: f64) -> impl IntoView {
    let standing = reading.standing(target);
    let mark = match standing {
        Standing::Inside => "✓",
        Standing::Close => "▲",
        Standing::Over => "◆",
    };
    let (unsure, why) = if reading.is_unsure(target) {
        (", by estimate", "The target lies inside this bucket: the true value may be on its other side")
    } else {
        ("", "")
    };
    let words = reading.words(quantity);
    let (value, bucket) =
        words.split_once(" (").map_or((words.as_str(), None), |(v, b)| (v, Some(format!("({b}"))));
    view! {
        <dd class=format!("reading {}", standing.as_str())>
            <b>{value.to_owned()}</b>
            {bucket.map(|bucket| view! { <span class="quiet">" "{bucket}</span> })}
            <span class="standing" title=why>" " {mark} " " {standing.as_str()} {unsure}</span>
        </dd>
    }
}

fn source_words(all: &[Times], quantity: Quantity) -> String {
    let one = |times: &Times| {
        format!("{} from {}", format::plural(times.samples, "sample", "samples"), times.source.words())
    };
    let Some(first) = all.first() else { return String::new() };
    let other = all.get(1).map_or(String::new(), |times| {
        let p95 = times.quantiles.map_or(String::new(), |all| format!(", p95 {}", all[1].words(quantity)));
        format!(". Beside it {}{p95}", one(times))
    });
    format!("{}{other}.", one(first))
}

fn burn_words(burn: Option<&Burn>, quantity: Quantity, target: f64, store: Store) -> String {
    let Some(burn) = burn else { return String::new() };
    let about = if burn.is_exact { "" } else { "about " };
    let share = if burn.samples > 0 { burn.over as f64 / burn.samples as f64 } else { 0.0 };
    format!(
        "Session: {about}{} of {} samples over {} ({}), since {}, {}.",
        format::count(burn.over),
        format::count(burn.samples),
        quantity.words(target),
        format::percent(share),
        format::ago(store.now_ms().since(burn.since_ms)),
        burn.source.words()
    )
}

/// What stands where nobody tells the quantity.
#[component]
fn Absent(id: &'static str, long: &'static str) -> impl IntoView {
    view! {
        <div class="empty" data-testid=format!("{id}-absent")>
            <p class="empty-head">{format!("Absent: nobody tells the {long}")}</p>
            <p>"Scrape a frontend's metrics: "<code>{ENABLE_FRONTEND}</code></p>
            <p>"Or read a frontend's log, which tells requests one by one: "<code>"--logs FILE"</code>" (Dynamo ≥ 1.5)"</p>
        </div>
    }
}

#[component]
fn TrendChart(
    store: Store,
    dark: Signal<bool>,
    second: Memo<Millis>,
    goal: Goal,
    quantity: Quantity,
    id: &'static str,
    title: &'static str,
) -> impl IntoView {
    // Points are five seconds apart and keep their place: between them nothing is worked out or drawn.
    let step = Memo::new(move |_| second.get().0 / TREND_STEP_MS);
    let line = Memo::new(move |_| {
        let now = Millis(step.get() * TREND_STEP_MS);
        store.peek(|cluster: &Cluster| latency::trend(cluster, quantity, now))
    });
    let frame = NodeRef::<html::Div>::new();
    let chart = StoredValue::new_local(None::<Chart>);
    let (failed, loaded) = (RwSignal::new(false), RwSignal::new(false));
    load_after_first_paint(frame, chart, loaded, failed);
    Effect::new(move |_| {
        let (dark, target) = (dark.get(), goal.ms.get());
        if loaded.get() {
            line.with(|line| line.iter().for_each(|line| draw(chart, line, target, dark, title)));
        }
    });
    let words = move || {
        let last = line.with(|line| line.as_ref().and_then(|line| line.p95.last().copied().flatten()));
        let last = last.map_or("no sample".to_owned(), |p95| quantity.words(p95));
        format!(
            "95th percentile of {title} over the 60 s before each point, last 5 minutes; now {last}, target {}",
            quantity.words(goal.ms.get())
        )
    };
    view! {
        <div class="chart-box trend">
            <div class="chart" node_ref=frame role="img" aria-label=words data-testid=format!("{id}-trend") data-ready=move || loaded.get().to_string()></div>
            <Show when=move || failed.get()>
                <p class="empty">"The chart library could not be fetched from this server. Trying again every few seconds."</p>
            </Show>
        </div>
        <p class="caption">"p95 over the 60 s before each point, ms, every 5 s; dashed: the target"</p>
    }
}

fn draw(
    chart: StoredValue<Option<Chart>, LocalStorage>,
    line: &Trend,
    target: f64,
    dark: bool,
    title: &'static str,
) {
    let palette = Palette::read(theme::token, dark, 1);
    let colour = |token: &str| parse(&theme::token(token), dark).unwrap_or(palette.text);
    let name = format!("{title} p95, ms");
    let line = Line {
        name: &name,
        colour: colour("--focus"),
        values: &line.p95,
        step_s: (TREND_STEP_MS / 1000) as usize,
        target,
        target_colour: colour("--warn"),
    };
    chart.with_value(|chart| {
        chart.iter().for_each(|chart| trend::show(chart, &line, &palette, root_font_px() * 0.85))
    });
}
