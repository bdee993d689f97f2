//! The status bar: is it connected, is it current, is it complete, is it right.

use leptos::prelude::*;
use radixscope_export::panel::workers::UNKNOWN_SIZES;
use radixscope_insight::completeness::{coverage_text, short_coverage_text};
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;

use super::losses::LOSSES_ID;
use super::nav::Nav;
use super::pools::PoolSwitch;
use super::timeline;
use crate::format::{self, UNKNOWN};
use crate::store::{Feed, Link, Store, ViewContext, time_of_day};
use crate::url::{Panel, Theme};
use crate::view::control::view;
use crate::view_context::Unit;

/// The bar at the top.
#[component]
pub(super) fn StatusBar(store: Store, help: RwSignal<u32>) -> impl IntoView {
    view! {
        <header class="bar">
            <Mark/>
            <Nav store/>
            <Connection store/>
            <PoolSwitch store/>
            <div class="facts"><Facts store/></div>
            <ThemeButton store/>
            <button class="icon" on:click=move |_| help.update(|n| *n += 1) aria-label="Keys and how to read the tree"
                title="Keys and how to read the tree (?)" data-testid="help-button">
                "?"
            </button>
        </header>
    }
}

/// Our name.
#[component]
pub(super) fn Mark() -> impl IntoView {
    view! {
        <h1 class="mark">
            <svg viewBox="0 0 20 20" aria-hidden="true">
                <rect x="1" y="2" width="18" height="4" rx="1"/>
                <rect x="1" y="8" width="10" height="4" rx="1"/>
                <rect x="13" y="8" width="6" height="4" rx="1"/>
                <rect x="1" y="14" width="5" height="4" rx="1"/>
            </svg>
            "Radixscope"
        </h1>
    }
}

/// Where the link to the server stands, in a word.
#[component]
pub(super) fn Connection(store: Store) -> impl IntoView {
    let text = Memo::new(move |_| match store.link.get() {
        _ if store.at.get() != 0 => ("past", past_text(store)),
        Link::Live if store.replayed.get() => ("past", store.newest_name().to_owned()),
        Link::Live if store.stale.get() => ("stale", "Stale".to_owned()),
        Link::Live => source_text(store),
        Link::Connecting => ("wait", "Connecting".to_owned()),
        Link::Restoring { part, parts } if parts > 1 => {
            ("wait", format!("Loading {}", format::percent(f64::from(part) / f64::from(parts))))
        }
        Link::Restoring { .. } => ("wait", "Loading".to_owned()),
        Link::Waiting { seconds, .. } => ("bad", format!("Reconnecting in {seconds} s")),
        Link::Incompatible { .. } => ("bad", "Other version".to_owned()),
    });
    let title = move || {
        let server = store.server.get();
        if server.is_empty() { "No server has responded yet".to_owned() } else { format!("Server {server}") }
    };
    view! {
        <span class=move || text.with(|w| format!("state {}", w.0)) title=move || title() data-testid="connection">
            <i aria-hidden="true"></i>
            {move || text.get().1}
        </span>
    }
}

/// Which moment is shown, and whether it stands or plays.
fn past_text(store: Store) -> String {
    let at = time_of_day(Millis(store.at.get()));
    if store.past_waits.get() {
        let shown = store.past_ms();
        return format!("Loading {at}; shown: {}", time_of_day(Millis(shown)));
    }
    match store.speed.get() {
        0 => {
            // It grows older while it stands.
            store.history_version.track();
            format!("Paused at {at}, {}", store.age_of_past())
        }
        speed => format!("Replay {}, {at}", timeline::speed_name(speed)),
    }
}

/// Live, but is what the server hears live? The worst source speaks.
fn source_text(store: Store) -> (&'static str, String) {
    store.on_beat(|cluster| {
        let state = |wanted: LinkState| cluster.sources().iter().any(|s| s.state == wanted);
        if cluster.sources().is_empty() {
            ("wait", "No source yet".to_owned())
        } else if state(LinkState::Refused) {
            ("bad", "Source refused".to_owned())
        } else if state(LinkState::Partial) {
            ("bad", "Subjects denied".to_owned())
        } else if state(LinkState::Connecting) {
            ("wait", "Source connecting".to_owned())
        } else if state(LinkState::CatchingUp) {
            ("wait", "Catching up".to_owned())
        } else if state(LinkState::Ended) {
            ("wait", "Source ended".to_owned())
        } else {
            ("live", "Live".to_owned())
        }
    })
}

#[component]
fn Facts(store: Store) -> impl IntoView {
    let look = move |text: fn(&ViewContext<'_>) -> String| -> Memo<String> {
        Memo::new(move |_| if store.ready() { store.on_beat(text) } else { UNKNOWN.to_owned() })
    };
    // Live figures: without a live source they are unknown.
    let live = move |text: Memo<String>| -> Memo<String> {
        Memo::new(move |_| match store.as_of(Feed::Events) {
            Some(_) => UNKNOWN.to_owned(),
            None => text.get(),
        })
    };
    let coverage = look(|shown| short_coverage_text(&shown.coverage()));
    let lacks = Memo::new(move |_| store.ready() && store.on_beat(|shown| !shown.coverage().is_whole()));
    let coverage_title = look(|shown| {
        let coverage = shown.coverage();
        let used = coverage.used_blocks.map_or("an unknown number of".to_owned(), format::count);
        format!(
            "{}. {} of {used} blocks that workers have are in the tree. Complete: every block of the worker is known. Workers that left and decode workers that by design publish no KV events do not count; click for what is missing",
            coverage_text(&coverage),
            format::count(coverage.known_blocks)
        )
    });
    let lag =
        look(|c| c.sources().iter().filter_map(|s| s.lag_ms).max().map_or(UNKNOWN.to_owned(), format::lag));
    let blocks = look(|shown| match shown.held() {
        Some((held, in_tree, _)) => format!("{} / {}", format::short(in_tree), format::short(held)),
        None => UNKNOWN.to_owned(),
    });
    let exact = look(|shown| match shown.held() {
        Some((held, in_tree, Unit::Blocks)) => format!(
            "{} of {} resident blocks are shown, summed over the workers; {} are hidden by the memory limit",
            format::count(in_tree),
            format::count(held),
            format::count(held - in_tree)
        ),
        Some((held, in_tree, Unit::Tokens)) => format!(
            "In tokens, for pools have blocks of different size: {} of {} in resident blocks are shown, summed over the workers",
            format::count(in_tree),
            format::count(held)
        ),
        None => UNKNOWN_SIZES.to_owned(),
    });
    let seq = look(|c| format::count(c.seq().0));
    let lost = Memo::new(move |_| store.on_beat(|c| c.missed_total() + c.rejected_total()));
    let gaps = Memo::new(move |_| store.on_beat(|c| c.gaps_total()));
    let is_bound = Memo::new(move |_| store.on_beat(|shown| shown.is_missed_total_at_least()));
    let lost_text = move || match (store.ready(), gaps.get()) {
        (false, _) => UNKNOWN.to_owned(),
        (true, 0) => format::bound(format::short(lost.get()), is_bound.get()),
        (true, gaps) => format!("≥ {} + {}", format::short(lost.get()), unknown_gaps(gaps)),
    };
    let lost_title = look(|c| {
        let gaps = match c.gaps_total() {
            0 => String::new(),
            gaps => format!(" and {}", unknown_gaps(gaps)),
        };
        format!(
            "{} lost{gaps}, {} rejected; click for causes",
            format::bound(format::count(c.missed_total()), c.is_missed_total_at_least()),
            format::count(c.rejected_total())
        )
    });
    let check = move || {
        if store.at.get() != 0 {
            return ("none", "folded from what the server keeps; the present is compared".to_owned());
        }
        let check = store.check.get();
        match (check.verified, check.different) {
            (Some(seq), 0) => ("ok", format!("verified at record {}", format::count(seq.0))),
            (Some(seq), n) => {
                ("off", format!("verified at record {}, {n} mismatches before", format::count(seq.0)))
            }
            (None, 0) => ("none", "not compared yet".to_owned()),
            (None, n) => ("off", format!("{n} mismatches")),
        }
    };
    view! {
        <button class="fact coverage" class:some=lacks title=coverage_title
            on:click=move |_| store.address.update(|address| address.panel = Panel::Workers)>
            <span>"Coverage"</span>
            <b data-testid="coverage">{live(coverage)}</b>
        </button>
        <Fact label="Lag" id="lag" value=live(lag)
            title="Arrival minus publication of the slowest recent message, by the publisher's and the server's clock"/>
        <button class="fact" class:some=move || { lost.get() + gaps.get() > 0 || is_bound.get() } popovertarget=LOSSES_ID title=lost_title
            data-testid="losses-button">
            <span>"Lost"</span>
            <b data-testid="drops">{move || lost_text()}</b>
        </button>
        <Fact label="Blocks shown" id="shown" value=blocks title=exact/>
        <span class="fact seq" title=move || check().1>
            <span>"Record"</span>
            <b data-testid="seq">{seq}</b>
            <span class=move || format!("check {}", check().0) data-testid="verified">
                {move || check().1}
            </span>
        </span>
    }
}

/// Times without connection that cost an unknown number of messages.
fn unknown_gaps(gaps: u64) -> String {
    if gaps == 1 {
        "1 gap of unknown size".to_owned()
    } else {
        format!("{} gaps of unknown size", format::count(gaps))
    }
}

#[component]
fn Fact(
    label: &'static str,
    id: &'static str,
    #[prop(into)] value: Signal<String>,
    #[prop(into)] title: Signal<String>,
) -> impl IntoView {
    view! {
        <span class="fact" title=title>
            <span>{label}</span>
            <b data-testid=id>{value}</b>
        </span>
    }
}

#[component]
pub(super) fn ThemeButton(store: Store) -> impl IntoView {
    let theme = move || store.address.with(|a| a.theme);
    let name = move || format!("Theme: {} (T)", theme().as_str());
    let path = move || match theme() {
        Theme::Auto => "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13",
        Theme::Dark => "M13.5 9.8A6 6 0 1 1 6.2 2.5a4.8 4.8 0 0 0 7.3 7.3z",
        Theme::Light => {
            "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5v1.5M1 8h1.5M13.5 8h1.5M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1"
        }
    };
    let half = move || if theme() == Theme::Auto { "M8 1.5a6.5 6.5 0 0 0 0 13z" } else { "" };
    view! {
        <button class="icon" on:click=move |_| store.address.update(|a| a.theme = a.theme.next()) title=move || name()
            aria-label=move || name() data-testid="theme">
            <svg viewBox="0 0 16 16" aria-hidden="true">
                <path d=move || path()/>
                <path class="fill" d=move || half()/>
            </svg>
        </button>
    }
}
