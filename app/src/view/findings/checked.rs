//! Every rule with what came of it, so that "no findings" says what it rests on.

use leptos::prelude::*;
use radixscope_model::record::{CheckStatus, RuleStatus};

use crate::format::{self, plural};
use crate::store::Store;
use crate::view::control::view;

/// Statuses of findings, the worst first.
const FOUND: &[CheckStatus] = &[CheckStatus::Critical, CheckStatus::Warning, CheckStatus::Info];
const WITHOUT_RESULT: &[CheckStatus] = &[CheckStatus::Pending, CheckStatus::Explained];
const NO_DATA: &[CheckStatus] = &[CheckStatus::NoData];
const OK: &[CheckStatus] = &[CheckStatus::Ok];

/// What was found and what is to come, then rules without data, because they hide something, then the rest. What data a rule needs is
/// shown on demand.
#[component]
pub(super) fn Checked(store: Store) -> impl IntoView {
    let rules = Memo::new(move |_| store.on_beat(|cluster| cluster.checked().to_vec()));
    let count =
        move |status| rules.with(|rules| rules.iter().filter(|rule| rule.status == status).count() as u64);
    let sums = move || {
        format!(
            "{} ok, {} found, {} explained, {} no data",
            format::count(count(CheckStatus::Ok)),
            format::count(FOUND.iter().copied().map(count).sum()),
            format::count(count(CheckStatus::Explained)),
            format::count(count(CheckStatus::NoData))
        )
    };
    let rows = move |statuses: &'static [CheckStatus]| {
        let of_status = Memo::new(move |_| {
            let all = rules.get();
            let with = |&status| all.iter().filter(move |rule| rule.status == status);
            let rows: Vec<RuleText> =
                statuses.iter().flat_map(with).map(|rule| RuleText::of(rule, &all)).collect();
            rows
        });
        move || of_status.get().into_iter().map(row).collect_view()
    };
    let missing = Memo::new(move |_| count(CheckStatus::NoData));
    view! {
        <section class="checked" aria-labelledby="checked-title" data-testid="checked">
            <h3 id="checked-title">"What was checked"</h3>
            <p class="quiet" data-testid="checked-sums">{move || sums()}</p>
            <ul>{rows(FOUND)}{rows(WITHOUT_RESULT)}</ul>
            <Show when=move || missing.get() != 0>
                <details data-testid="checked-missing">
                    <summary>
                        <span class="rule-mark" aria-hidden="true">"?"</span>
                        {move || format!("{} without data: what they need", plural(missing.get(), "check", "checks"))}
                    </summary>
                    <ul>{rows(NO_DATA)}</ul>
                </details>
            </Show>
            <ul>{rows(OK)}</ul>
        </section>
    }
}

/// A rule and what came of it, as shown.
#[derive(Clone, PartialEq)]
struct RuleText {
    code: String,
    status: CheckStatus,
    subject: String,
    /// What came of it.
    outcome: String,
    /// What it needs to run.
    missing: String,
}

impl RuleText {
    fn of(rule: &RuleStatus, all: &[RuleStatus]) -> Self {
        let outcome = match rule.status {
            CheckStatus::Ok => "ok".to_owned(),
            CheckStatus::Info => "note".to_owned(),
            CheckStatus::Warning => "warning".to_owned(),
            CheckStatus::Critical => "critical".to_owned(),
            CheckStatus::Explained => {
                let by = all.iter().find(|other| other.code == rule.explained_by);
                format!("explained by {}", by.map_or_else(String::new, |by| by.subject.to_string()))
            }
            // All that stand together have none.
            CheckStatus::NoData => String::new(),
            CheckStatus::Pending => {
                let title =
                    rule.pending.as_ref().map_or_else(String::new, |pending| pending.title.to_string());
                format!("pending: {title}")
            }
        };
        Self {
            code: rule.code.to_string(),
            status: rule.status,
            subject: rule.subject.to_string(),
            outcome,
            missing: rule.missing.to_string(),
        }
    }
}

fn row(rule: RuleText) -> impl IntoView {
    let (class, mark) = match rule.status {
        CheckStatus::Ok => ("ok", "✓"),
        CheckStatus::Info | CheckStatus::Warning | CheckStatus::Critical => ("found", "▲"),
        CheckStatus::Explained => ("explained", "→"),
        CheckStatus::NoData => ("unknown", "?"),
        CheckStatus::Pending => ("unknown", "…"),
    };
    let missing = (!rule.missing.is_empty()).then(|| view! { <p class="quiet">{rule.missing}</p> });
    view! {
        <li class=class data-testid="rule" data-code=rule.code data-status=rule.status.as_str()>
            <span class="rule-mark" aria-hidden="true">{mark}</span>
            <div><span>{rule.subject}</span>" "<span class="quiet">{rule.outcome}</span>{missing}</div>
        </li>
    }
}
