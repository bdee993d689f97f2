//! Every rule with what came of it, so that "no findings" says what it rests on.

use radixscope_model::record::{CheckStatus, RuleStatus};

use crate::format;

/// Statuses of findings, the worst first.
const FOUND: &[CheckStatus] = &[CheckStatus::Critical, CheckStatus::Warning, CheckStatus::Info];
const WITHOUT_RESULT: &[CheckStatus] = &[CheckStatus::Pending, CheckStatus::Explained];

/// What was found and what is to come, then rules without data, because they hide something, then the rest.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Checked {
    /// How many there are of each.
    pub sums: String,
    /// What was found, the worst first.
    pub found: Vec<RuleRow>,
    /// What is to come, and what is explained by another finding.
    pub without_result: Vec<RuleRow>,
    /// What has no data, with what it needs.
    pub no_data: Vec<RuleRow>,
    /// Above these; `None`: there are none.
    pub no_data_text: Option<String>,
    /// The rest.
    pub ok: Vec<RuleRow>,
}

/// A rule and what came of it, as shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRow {
    /// Its code.
    pub code: String,
    /// What came of it.
    pub status: CheckStatus,
    /// Class and mark of that.
    pub mark: (&'static str, &'static str),
    /// What it checks.
    pub subject: String,
    /// What came of it as text.
    pub outcome: String,
    /// What it needs to run; empty: it has it.
    pub missing: String,
}

impl Checked {
    /// Of the rules in the order in which they run.
    pub fn of(rules: &[RuleStatus]) -> Self {
        let rows = |statuses: &[CheckStatus]| -> Vec<RuleRow> {
            let with = |&status: &CheckStatus| rules.iter().filter(move |rule| rule.status == status);
            statuses.iter().flat_map(with).map(|rule| RuleRow::of(rule, rules)).collect()
        };
        let count = |status| rules.iter().filter(|rule| rule.status == status).count() as u64;
        let missing = count(CheckStatus::NoData);
        Self {
            sums: format!(
                "{} ok, {} found, {} explained, {} no data",
                format::count(count(CheckStatus::Ok)),
                format::count(FOUND.iter().copied().map(count).sum()),
                format::count(count(CheckStatus::Explained)),
                format::count(missing)
            ),
            found: rows(FOUND),
            without_result: rows(WITHOUT_RESULT),
            no_data: rows(&[CheckStatus::NoData]),
            no_data_text: (missing > 0).then(|| {
                format!("{} without data: what they need", format::plural(missing, "check", "checks"))
            }),
            ok: rows(&[CheckStatus::Ok]),
        }
    }
}

impl RuleRow {
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
            mark: match rule.status {
                CheckStatus::Ok => ("ok", "✓"),
                CheckStatus::Info | CheckStatus::Warning | CheckStatus::Critical => ("found", "▲"),
                CheckStatus::Explained => ("explained", "→"),
                CheckStatus::NoData => ("unknown", "?"),
                CheckStatus::Pending => ("unknown", "…"),
            },
            subject: rule.subject.to_string(),
            outcome,
            missing: rule.missing.to_string(),
        }
    }
}
