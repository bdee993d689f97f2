//! Every rule with what came of it, so that "no findings" says what it rests on.

use leptos::prelude::*;
use radixscope_core::record::{CheckStatus, RuleStatus};

use crate::format;
use crate::store::Store;

/// The list; rules that could not judge come first, because they hide something.
#[component]
pub(super) fn Checked(store: Store) -> impl IntoView {
    let rules = Memo::new(move |_| store.on_beat(|cluster| cluster.checked().to_vec()));
    let count =
        move |status| rules.with(|rules| rules.iter().filter(|rule| rule.status == status).count() as u64);
    let sums = move || {
        format!(
            "{} ok, {} found, {} not enough known",
            format::count(count(CheckStatus::Ok)),
            format::count(count(CheckStatus::Found)),
            format::count(count(CheckStatus::Unknown))
        )
    };
    let rows = move || {
        let all = rules.get();
        let order = [CheckStatus::Found, CheckStatus::Unknown, CheckStatus::Ok];
        order
            .iter()
            .flat_map(|&status| all.iter().filter(move |rule| rule.status == status))
            .map(row)
            .collect_view()
    };
    view! {
        <section class="checked" aria-labelledby="checked-title" data-testid="checked">
            <h3 id="checked-title">"What was checked"</h3>
            <p class="quiet" data-testid="checked-sums">{sums}</p>
            <ul>{rows}</ul>
        </section>
    }
}

fn row(rule: &RuleStatus<'static>) -> impl IntoView + use<> {
    let (class, mark, word) = match rule.status {
        CheckStatus::Ok => ("ok", "✓", "ok"),
        CheckStatus::Found => ("found", "▲", "found"),
        CheckStatus::Unknown => ("unknown", "?", "not enough known"),
    };
    let missing =
        (!rule.missing.is_empty()).then(|| view! { <p class="quiet">{rule.missing.to_string()}</p> });
    view! {
        <li class=class data-testid="rule" data-code=rule.code.to_string() data-status=rule.status.as_str()>
            <span class="rule-mark" aria-hidden="true">{mark}</span>
            <div><span>{rule.subject.to_string()}</span>" "<span class="quiet">{word}</span>{missing}</div>
        </li>
    }
}
