//! One finding: what it is, the numbers it rests on, what to set, and where to see it.

use leptos::prelude::*;
use radixscope_export::finding_ticket::{finding_ticket, phase_word, setting_line, severity_word};
use radixscope_export::panel::findings::last_word;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Evidence, Finding, Fix, Phase};

use crate::format;
use crate::store::{Store, time_of_day};
use crate::url::{Address, Panel};
use crate::view::chip::{Chip, with_labels};
use crate::view::clipboard::CopyButton;
use crate::view::control::view;
use crate::view::figure::severity_mark;
use crate::view::nav::Goes;

/// A time of day, and how long ago that was.
pub(super) fn moment(at: Millis, now: Millis) -> String {
    format!("{} ({})", time_of_day(at), format::ago(now.since(at)))
}

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
    let of = move |part: fn(&Finding) -> String| {
        Memo::new(move |_| finding.with(|f| f.as_ref().map(part).unwrap_or_default()))
    };
    let title = Memo::new(move |_| {
        let of = |f: &Finding| store.peek(|cluster| with_labels(cluster, f, &f.title));
        finding.with(|f| f.as_ref().map(of).unwrap_or_default())
    });
    let full_title = of(|f| f.title.to_string());
    let explanation = of(|f| f.explanation.to_string());
    let severity = of(|f| f.severity.as_str().to_owned());
    let mark = of(|f| format!("{} {}", severity_mark(f.severity), severity_word(f.severity)));
    let phase = of(|f| phase_word(f.phase).to_owned());
    let cause = of(|f| f.cause.to_string());
    // The panel that shows it, and the worker to select there.
    let shown_by = Memo::new(move |_| {
        finding.with(|f| {
            let f = f.as_ref()?;
            Some((Panel::from(f.panel), f.workers.first().copied().filter(|_| f.selects_worker)))
        })
    });
    let evidence = Memo::new(move |_| {
        let labelled = |f: &Finding| {
            let mut rows = f.evidence.clone();
            for row in &mut rows {
                row.label = store.peek(|cluster| with_labels(cluster, f, &row.label)).into();
            }
            rows
        };
        finding.with(|f| f.as_ref().map(labelled).unwrap_or_default())
    });
    // While it is active the figures are seconds old; later "last 60 s" is to be read from when they were taken.
    let taken_at = Memo::new(move |_| {
        finding.with(|f| f.as_ref().filter(|f| f.phase != Phase::Warn).map(|f| f.last_ms))
    });
    let fixes = Memo::new(move |_| finding.with(|f| f.as_ref().map(|f| f.fix.clone()).unwrap_or_default()));
    let workers =
        Memo::new(move |_| finding.with(|f| f.as_ref().map(|f| f.workers.clone()).unwrap_or_default()));
    let times = move || {
        store.on_beat(|_| ());
        let now = store.now_ms();
        finding.with(|f| {
            f.as_ref().map(|f| {
                let (first, last) = (moment(f.first_ms, now), moment(f.last_ms, now));
                format!("since {first}, {} {last}", last_word(f.phase))
            })
        })
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
        <li class=move || format!("finding {}", severity.get()) aria-labelledby=labelled data-testid="finding" data-code=code>
            <header>
                <span class="severity">{mark}</span>
                <h3 id=heading tabindex="-1" title=full_title>{title}</h3>
                <span class="spacer"></span>
                <span class="phase">{phase}</span>
            </header>
            <p>{explanation}</p>
            {move || Some(cause.get()).filter(|code| !code.is_empty()).map(|code| view! { <Cause store code/> })}
            <div class="finding-body">
                {move || Some(fixes.get()).filter(|all| !all.is_empty()).map(fix_list)}
                {move || Some(evidence.get()).filter(|all| !all.is_empty()).map(|all| evidence_table(all, taken_at.get().map(|at| moment(at, store.now_ms()))))}
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
fn evidence_table(all: Vec<Evidence>, taken_at: Option<String>) -> impl IntoView {
    let row = |e: Evidence| {
        view! {
            <tr><th scope="row">{e.label.into_owned()}</th><td class="n">{e.value.into_owned()}</td><td>{e.unit.into_owned()}</td></tr>
        }
    };
    view! {
        <table class="evidence" data-testid="evidence">
            {taken_at.map(|at| view! { <caption data-testid="evidence-time">{format!("Evidence at {at}")}</caption> })}
            <thead class="hidden"><tr><th scope="col">"Evidence"</th><th scope="col">"Value"</th><th scope="col">"Unit"</th></tr></thead>
            <tbody>{all.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
}

fn fix_list(all: Vec<Fix>) -> impl IntoView {
    let item = |fix: Fix| {
        let setting = setting_line(&fix);
        let copied = setting.clone();
        let code = (!setting.is_empty()).then(|| {
            let text = Callback::new(move |()| copied.clone());
            view! { <span class="setting-line"><code data-testid="setting">{setting}</code><CopyButton label="Copy" id="copy-setting" text/></span> }
        });
        view! { <li>{fix.text.into_owned()} {code}</li> }
    };
    view! {
        <div class="fixes">
            <h4>{if all.len() > 1 { "What to do, one of these" } else { "What to do" }}</h4>
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
    let title = Memo::new(move |_| {
        store.on_beat(|cluster| {
            let found = cluster.findings().iter().find(|f| f.code == code && f.phase != Phase::Cleared);
            found.map_or_else(|| code.clone(), |f| with_labels(cluster, f, &f.title))
        })
    });
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
