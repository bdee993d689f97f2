//! One finding: what it is, the numbers it rests on, what to set, and where to see it.

use leptos::prelude::*;
use radixscope_export::finding_ticket::finding_ticket;
use radixscope_model::id::WorkerIx;
use radixscope_model::record::Finding;
use radixscope_panels::findings::card::{self, EvidenceRow, FindingCard, FixRow};

use crate::store::{Store, zone};
use crate::url::{Address, Panel};
use crate::view::chip::Chip;
use crate::view::clipboard::CopyButton;
use crate::view::control::view;
use crate::view::nav::Goes;

/// The finding with this code. Its parts follow the state one by one, so that a button keeps the focus while numbers
/// change.
#[component]
pub(super) fn Card(store: Store, code: String) -> impl IntoView {
    let stored = StoredValue::new(code.clone());
    // A finding that a new run of the server does not know leaves the list in the same beat.
    let finding = Memo::new(move |before: Option<&Option<Finding>>| {
        let now = store.on_beat(|cluster| {
            stored.with_value(|code| cluster.findings().iter().find(|f| f.code == **code).cloned())
        });
        now.or_else(|| before.cloned().flatten())
    });
    let shown = Memo::new(move |_| {
        finding.with(|f| f.as_ref().map(|f| store.peek(|cluster| FindingCard::of(cluster, f))))
    });
    let of = move |part: fn(&FindingCard) -> String| {
        Memo::new(move |_| shown.with(|card| card.as_ref().map(part).unwrap_or_default()))
    };
    let (title, full_title) = (of(|card| card.title.clone()), of(|card| card.full_title.clone()));
    let (explanation, cause) = (of(|card| card.explanation.clone()), of(|card| card.cause.clone()));
    let (class, severity) = (of(|card| card.class.to_owned()), of(|card| card.severity.clone()));
    let phase = of(|card| card.phase.to_owned());
    // The panel that shows it, and the worker to select there.
    let shown_by = Memo::new(move |_| shown.with(|card| card.as_ref().map(|card| card.shown_by)));
    let evidence = Memo::new(move |_| {
        shown.with(|card| card.as_ref().map(|card| card.evidence.clone()).unwrap_or_default())
    });
    // While it is active the figures are seconds old; later "last 60 s" is to be read from when they were taken.
    let taken_at = Memo::new(move |_| shown.with(|card| card.as_ref().and_then(|card| card.taken_ms)));
    let fixes = Memo::new(move |_| {
        shown.with(|card| card.as_ref().map(|card| card.fixes.clone()).unwrap_or_default())
    });
    let workers = Memo::new(move |_| {
        shown.with(|card| card.as_ref().map(|card| card.workers.clone()).unwrap_or_default())
    });
    let times = move || {
        store.on_beat(|_| ());
        let now = store.now_ms();
        finding.with(|f| f.as_ref().map(|f| card::times(f, now, zone())))
    };
    let go = move |_| {
        if let Some(first) = finding.with_untracked(|f| f.as_ref().map(|f| f.first_ms)) {
            store.go(first);
        }
    };
    let text = Callback::new(move |()| {
        store.peek(|cluster| {
            finding.with_untracked(|f| f.as_ref().map(|f| finding_ticket(cluster, f)).unwrap_or_default())
        })
    });
    let heading = format!("finding-{code}");
    let labelled = heading.clone();
    view! {
        <li class=move || format!("finding {}", class.get()) aria-labelledby=labelled data-testid="finding" data-code=code>
            <header>
                <span class="severity">{severity}</span>
                <h3 id=heading tabindex="-1" title=full_title>{title}</h3>
                <span class="spacer"></span>
                <span class="phase">{phase}</span>
            </header>
            <p>{explanation}</p>
            {move || Some(cause.get()).filter(|code| !code.is_empty()).map(|code| view! { <Cause store code/> })}
            <div class="finding-body">
                {move || Some(fixes.get()).filter(|all| !all.is_empty()).map(fix_list)}
                {move || Some(evidence.get()).filter(|all| !all.is_empty()).map(|all| evidence_table(all, taken_at.get().map(|at| card::evidence_time(at, store.now_ms(), zone()))))}
            </div>
            <p class="finding-foot">
                {move || workers.get().into_iter().map(|worker| view! { <WorkerLink store worker panel=shown_by.get().map(|(panel, _)| panel)/> }).collect_view()}
                {move || shown_by.get().map(|(panel, worker)| view! { <ShowIt store panel worker/> })}
                <CopyButton label="Copy as text" id="copy-finding" text/>
                <button class="plain finding-times" title="Show when it began" data-testid="finding-since" on:click=go>{move || times()}</button>
            </p>
        </li>
    }
}

/// `taken_at`: when the figures were taken, if that was not just now.
fn evidence_table(all: Vec<EvidenceRow>, taken_at: Option<String>) -> impl IntoView {
    let row = |row: EvidenceRow| {
        view! {
            <tr><th scope="row">{row.label}</th><td class="n">{row.value}</td><td>{row.unit}</td></tr>
        }
    };
    view! {
        <table class="evidence" data-testid="evidence">
            {taken_at.map(|at| view! { <caption data-testid="evidence-time">{at}</caption> })}
            <thead class="hidden"><tr><th scope="col">"Evidence"</th><th scope="col">"Value"</th><th scope="col">"Unit"</th></tr></thead>
            <tbody>{all.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
}

fn fix_list(all: Vec<FixRow>) -> impl IntoView {
    let item = |FixRow { text, setting }| {
        let copied = setting.clone();
        let code = (!setting.is_empty()).then(|| {
            let copied = Callback::new(move |()| copied.clone());
            view! { <span class="setting-line"><code data-testid="setting">{setting}</code><CopyButton label="Copy" id="copy-setting" text=copied/></span> }
        });
        view! { <li>{text} {code}</li> }
    };
    view! {
        <div class="fixes">
            <h4>{FindingCard::fixes_title(&all)}</h4>
            <ul data-testid="fixes">{all.into_iter().map(item).collect_view()}</ul>
        </div>
    }
}

#[component]
fn ShowIt(store: Store, panel: Panel, worker: Option<WorkerIx>) -> impl IntoView {
    let worker = worker.and_then(|worker| store.peek(|cluster| cluster.worker(worker).map(|state| state.id)));
    let to = move |address: Address| address.of_panel(panel, worker);
    view! { <Goes store to id="show-it">"Show it"</Goes> }
}

/// The finding that causes this one: its title, and the way to its card.
#[component]
fn Cause(store: Store, code: String) -> impl IntoView {
    let (href, card) = (format!("#finding-{code}"), format!("finding-{code}"));
    let title = Memo::new(move |_| store.on_beat(|cluster| card::cause_title(cluster, &code)));
    // The page's address says what is shown: a fragment would be lost from it.
    let go = move |event: web_sys::MouseEvent| {
        event.prevent_default();
        let heading = document().get_element_by_id(&card);
        if let Some(heading) = heading {
            heading.scroll_into_view();
        }
    };
    view! { <p data-testid="cause">"Caused by: " <a href=href on:click=go>{title}</a></p> }
}

/// A worker's chip: the panel of the finding, or the table of workers, with that worker picked out.
#[component]
fn WorkerLink(store: Store, worker: WorkerIx, panel: Option<Panel>) -> impl IntoView {
    let id = store.peek(|cluster| cluster.worker(worker).map(|state| state.id));
    let to = move |address: Address| address.of_panel(panel.unwrap_or(Panel::Workers), id);
    view! { <Goes store to id="finding-worker"><Chip store worker/></Goes> }
}
