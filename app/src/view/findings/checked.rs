//! Every rule with what came of it, so that "no findings" says what it rests on.

use leptos::prelude::*;
use radixscope_model::record::{CheckStatus, RuleStatus};

use crate::format;
use crate::store::Store;
use crate::view::control::view;

/// Statuses of findings, the worst first.
const FOUND: [CheckStatus; 3] = [CheckStatus::Critical, CheckStatus::Warning, CheckStatus::Info];

/// The list; rules without data come first, because they hide something.
#[component]
pub(super) fn Checked(store: Store) -> impl IntoView {
    let rules = Memo::new(move |_| store.on_beat(|cluster| cluster.checked().to_vec()));
    let count =
        move |status| rules.with(|rules| rules.iter().filter(|rule| rule.status == status).count() as u64);
    let sums = move || {
        format!(
            "{} ok, {} found, {} explained, {} no data",
            format::count(count(CheckStatus::Ok)),
            format::count(FOUND.into_iter().map(count).sum()),
            format::count(count(CheckStatus::Explained)),
            format::count(count(CheckStatus::NoData))
        )
    };
    let rows = move || {
        let all = rules.get();
        let rest = [CheckStatus::Pending, CheckStatus::Explained, CheckStatus::NoData, CheckStatus::Ok];
        let order = FOUND.into_iter().chain(rest);
        order
            .flat_map(|status| all.iter().filter(move |rule| rule.status == status))
            .map(|rule| row(rule, &all))
            .collect_view()
    };
    view! {
        <section class="checked" aria-labelledby="checked-title" data-testid="checked">
            <h3 id="checked-title">"What was checked"</h3>
            <p class="quiet" data-testid="checked-sums">{move || sums()}</p>
            <ul>{move || rows()}</ul>
        </section>
    }
}

fn row(rule: &RuleStatus, all: &[RuleStatus]) -> impl IntoView + use<> {
    let (class, mark, word) = match rule.status {
        CheckStatus::Ok => ("ok", "✓", "ok"),
        CheckStatus::Info => ("found", "▲", "note"),
        CheckStatus::Warning => ("found", "▲", "warning"),
        CheckStatus::Critical => ("found", "▲", "critical"),
        CheckStatus::Explained => ("explained", "→", "explained by "),
        CheckStatus::NoData => ("unknown", "?", "no data"),
        CheckStatus::Pending => ("unknown", "…", "pending: "),
    };
    let by = all.iter().find(|other| other.code == rule.explained_by).map(|by| by.subject.to_string());
    let pending = rule.pending.as_ref().map(|pending| pending.title.to_string());
    let missing =
        (!rule.missing.is_empty()).then(|| view! { <p class="quiet">{rule.missing.to_string()}</p> });
    view! {
        <li class=class data-testid="rule" data-code=rule.code.to_string() data-status=rule.status.as_str()>
            <span class="rule-mark" aria-hidden="true">{mark}</span>
            <div><span>{rule.subject.to_string()}</span>" "<span class="quiet">{word}{by}{pending}</span>{missing}</div>
        </li>
    }
}
