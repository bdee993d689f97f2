//! What is wrong, why, and what to set; and what was checked to say so. Renders the results of the checks, and judges nothing.

mod card;
mod checked;

use leptos::prelude::*;
use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::{findings_ticket, severity_word};
use radixscope_export::panel::findings::{self, NoFindings, SEVERITIES, TITLE, concerns};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Finding, Phase, Severity};
use radixscope_state::cluster::Cluster;

use card::Card;
use checked::Checked;

use super::clipboard::CopyButton;
use crate::format;
use crate::store::Store;
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::figure::{Empty, EmptyPanel, PanelHead, Waiting, severity_mark};

/// Key of the address that picks a severity.
const SEVERITY: &str = "severity";

/// Which findings are listed.
#[derive(Clone, Copy, PartialEq)]
struct Filter {
    severity: Option<Severity>,
    worker: Option<WorkerIx>,
}

impl Filter {
    fn has(self, finding: &Finding) -> bool {
        self.severity.is_none_or(|severity| severity == finding.severity)
            && self.worker.is_none_or(|worker| concerns(finding, worker))
    }
}

/// The panel.
#[component]
pub fn FindingsPanel(store: Store) -> impl IntoView {
    let filter = Memo::new(move |_| {
        let name = store.address.with(|address| address.other(SEVERITY));
        let mut severities = SEVERITIES.iter().map(|(severity, ..)| *severity);
        let severity = severities.find(|severity| name.as_deref() == Some(severity.as_str()));
        Filter { severity, worker: store.picked() }
    });
    let codes = move |is_over: bool| {
        Memo::new(move |_| {
            let filter = filter.get();
            store.on_beat(|cluster| codes_of(cluster, filter, is_over))
        })
    };
    let (held, over) = (codes(false), codes(true));
    let counts = Memo::new(move |_| store.on_beat(|shown| findings::counts(&findings::active(shown, None))));
    let figure = move |at: usize, id: &'static str| {
        let (_, one, more) = SEVERITIES[at];
        let number = move || counts.get()[at];
        view! {
            <span class="figure" title="Active findings">
                <b data-testid=id>{move || format::count(number())}</b>
                <span>{move || if number() == 1 { one } else { more }}</span>
            </span>
        }
    };
    let all = Callback::new(move |()| store.peek(|shown| findings_ticket(shown)));
    view! {
        <section class="panel findings" aria-labelledby="findings-title" data-testid="findings">
            <PanelHead store panel=Panel::Findings title=TITLE>
                <span class="quiet cf-sub">"What is wrong, why, and what to set. Nothing is changed from here."</span>
                {figure(0, "findings-critical")}
                {figure(1, "findings-warning")}
                {figure(2, "findings-info")}
            </PanelHead>
            <div class="filters">
                <Severities store filter/>
                <Picked store filter/>
                <span class="spacer"></span>
                <CopyButton label="Copy all as text" id="copy-findings" text=all/>
            </div>
            <News store/>
            <div class="scroll findings-columns">
                <div class="findings-list">
                    <Show when=move || held.with(Vec::is_empty)>
                        <Nothing store filter/>
                    </Show>
                    <ul class="cards" aria-label="Findings" data-testid="finding-list">
                        <For each=move || held.get() key=String::clone let:code><Card store code/></For>
                    </ul>
                    <Show when=move || !over.with(Vec::is_empty)>
                        <details class="over" data-testid="findings-over">
                            <summary>{move || format!("Resolved: {}", over.with(Vec::len))}</summary>
                            <ul class="cards" aria-label="Resolved findings">
                                <For each=move || over.get() key=String::clone let:code><Card store code/></For>
                            </ul>
                        </details>
                    </Show>
                </div>
                <Checked store/>
            </div>
        </section>
    }
}

fn codes_of(cluster: &Cluster, filter: Filter, is_over: bool) -> Vec<String> {
    let all = FindingFilter { severity: Severity::Info, cleared: true }.of(cluster);
    let meant = all.into_iter().filter(|f| (f.phase == Phase::Cleared) == is_over && filter.has(f));
    meant.map(|finding| finding.code.to_string()).collect()
}

#[component]
fn Severities(store: Store, filter: Memo<Filter>) -> impl IntoView {
    let button = move |severity: Option<Severity>| {
        let value = severity.map(Severity::as_str);
        let is_on = move || filter.get().severity == severity;
        let pick = move |_| store.address.update(|address| *address = address.with_other(SEVERITY, value));
        let text =
            severity.map_or("All".to_owned(), |s| format!("{} {}", severity_mark(s), severity_word(s)));
        view! {
            <button class="filter" class:on=move || is_on() aria-pressed=move || is_on().to_string() on:click=pick
                data-testid=format!("severity-{}", value.unwrap_or("all"))>{text}</button>
        }
    };
    view! {
        <div class="kinds" role="group" aria-label="Severity">
            {button(None)} {SEVERITIES.map(|(severity, ..)| button(Some(severity))).collect_view()}
        </div>
    }
}

#[component]
fn Picked(store: Store, filter: Memo<Filter>) -> impl IntoView {
    move || {
        filter.get().worker.map(|worker| {
            view! {
                <button class="filter on" data-testid="findings-worker" title="Show all workers again"
                    on:click=move |_| store.pick(worker)>
                    <Chip store worker/> " only ×"
                </button>
            }
        })
    }
}

/// Says what was not there before, for those who hear the page.
#[component]
fn News(store: Store) -> impl IntoView {
    let held = Memo::new(move |_| {
        store.on_beat(|cluster| {
            let all = FindingFilter::default().of(cluster);
            all.into_iter().map(|f| (f.code.to_string(), f.title.to_string())).collect::<Vec<_>>()
        })
    });
    let status_text = RwSignal::new(String::new());
    Effect::new(move |before: Option<Vec<String>>| {
        let now = held.get();
        if let Some(before) = before {
            let new: Vec<_> = now.iter().filter(|(code, _)| !before.contains(code)).collect();
            if !new.is_empty() {
                let titles: Vec<_> = new.iter().map(|(_, title)| title.as_str()).collect();
                status_text.set(format!("New finding: {}", titles.join("; ")));
            }
        }
        now.into_iter().map(|(code, _)| code).collect()
    });
    view! { <p class="hidden" role="status" aria-live="polite" data-testid="findings-news">{status_text}</p> }
}

/// What stands where no finding does.
#[component]
fn Nothing(store: Store, filter: Memo<Filter>) -> impl IntoView {
    let text = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|cluster| {
            let since = cluster.sources().iter().map(|source| source.since_ms).min();
            let since =
                since.map_or(String::new(), |at| format!("Listening since {}.", card::moment(at, now)));
            (NoFindings::of(cluster), since, findings::empty(cluster))
        })
    });
    let is_filtered = move || filter.with(|f| f.severity.is_some() || f.worker.is_some());
    move || {
        if !store.ready() {
            return view! { <Waiting id="findings-wait"/> };
        }
        if let Some(text) = text.with(|(.., empty)| empty.clone()) {
            return view! { <EmptyPanel text/> };
        }
        if is_filtered() {
            return view! { <Empty id="findings-filtered" head="No finding of this kind"/> };
        }
        view! {
            <div class="healthy" data-testid="findings-none">
                <p class="cf-headline">
                    {move || text.get().0.is_good.then(|| view! { <span class="good-mark" aria-hidden="true">"✓ "</span> })}
                    {move || text.get().0.text}
                </p>
                <p class="quiet">{move || text.get().1}</p>
            </div>
        }
    }
}
