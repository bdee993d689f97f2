//! Every rule with what came of it, so that "no findings" says what it rests on.

use leptos::prelude::*;
use radixscope_panels::findings::checked::{self, RuleRow};

use crate::store::Store;
use crate::view::control::view;

/// What was found and what is to come, then rules without data, because they hide something, then the rest. What data a rule needs is
/// shown on demand.
#[component]
pub(super) fn Checked(store: Store) -> impl IntoView {
    let rules = Memo::new(move |_| store.on_beat(|cluster| cluster.checked().to_vec()));
    let all = Memo::new(move |_| rules.with(|rules| checked::Checked::of(rules)));
    let rows = move |of: fn(&checked::Checked) -> &Vec<RuleRow>| {
        let rows = Memo::new(move |_| all.with(|all| of(all).clone()));
        move || rows.get().into_iter().map(row).collect_view()
    };
    let missing = Memo::new(move |_| all.with(|all| all.no_data_text.clone()));
    let has_missing = Memo::new(move |_| missing.with(Option::is_some));
    view! {
        <section class="checked" aria-labelledby="checked-title" data-testid="checked">
            <h3 id="checked-title">"What was checked"</h3>
            <p class="quiet" data-testid="checked-sums">{move || all.with(|all| all.sums.clone())}</p>
            <ul>{rows(|all| &all.found)}{rows(|all| &all.without_result)}</ul>
            <Show when=move || has_missing.get()>
                <details data-testid="checked-missing">
                    <summary>
                        <span class="rule-mark" aria-hidden="true">"?"</span>
                        {missing}
                    </summary>
                    <ul>{rows(|all| &all.no_data)}</ul>
                </details>
            </Show>
            <ul>{rows(|all| &all.ok)}</ul>
        </section>
    }
}

fn row(rule: RuleRow) -> impl IntoView {
    let (class, mark) = rule.mark;
    let missing = (!rule.missing.is_empty()).then(|| view! { <p class="quiet">{rule.missing}</p> });
    view! {
        <li class=class data-testid="rule" data-code=rule.code data-status=rule.status.as_str()>
            <span class="rule-mark" aria-hidden="true">{mark}</span>
            <div><span>{rule.subject}</span>" "<span class="quiet">{rule.outcome}</span>{missing}</div>
        </li>
    }
}
