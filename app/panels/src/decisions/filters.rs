//! Filters of the table of decisions: their values, each with the decisions that it lists.

use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_state::cluster::{ByFilter, ClientFilter, DecisionKind, HIT_SHARE};

use super::list::DecisionList;
use crate::format;

/// Workers to choose from in a list; any other is chosen in the table of workers.
const LISTED: usize = 256;

/// What the filter by what decided says of itself.
pub const BY_TITLE: &str = "What decided: the lowest cost, the session that is bound to a worker, another policy or mode. Decisions that the cost \
                 did not decide are no ties and skip no better-cached worker";
/// What the filter by clients' results says of itself.
pub const CLIENT_TITLE: &str =
    "What the client measured of the request: its time to first token against the target, or that it failed";
/// What the field to search in says of itself.
pub const FIND_TITLE: &str =
    "Text in the ids of request and session, in the name of worker, pool or model, or in the reason";

/// A worker to choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerChoice {
    /// Which.
    pub worker: WorkerIx,
    /// In the address.
    pub id: Worker,
    /// Label and id.
    pub text: String,
}

/// The workers that a reader can choose from: those of the pools shown.
pub fn workers(shown: &ViewContext<'_>) -> Vec<WorkerChoice> {
    let known = shown.workers().indexed().filter(|(_, state)| shown.has(state.pool));
    let choice = |(worker, id): (WorkerIx, Worker)| {
        let text = format!("{} ({id})", label(worker));
        WorkerChoice { worker, id, text }
    };
    known.map(|(worker, state)| choice((worker, state.id))).take(LISTED).collect()
}

/// A value of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// In the address.
    pub value: &'static str,
    /// On screen.
    pub text: &'static str,
    /// Decisions that it lists.
    pub count: u32,
}

impl Choice {
    /// Name and count.
    pub fn to_text(text: &str, count: u32) -> String {
        format!("{text} {}", format::count(count.into()))
    }
}

/// What decided. What decided none of them is left out, unless it is chosen.
pub fn by_choices(list: &DecisionList, only: Option<ByFilter>) -> Vec<Choice> {
    let choice = |(by, count): (ByFilter, u32)| Choice { value: by.as_str(), text: by.to_text(), count };
    let is_listed = |choice: &Choice| choice.count > 0 || only.is_some_and(|by| by.as_str() == choice.value);
    ByFilter::ALL.into_iter().zip(list.picked.of_by).map(choice).filter(is_listed).collect()
}

/// What clients measured; empty where no client's results are read and none is chosen.
pub fn client_choices(list: &DecisionList, only: Option<ClientFilter>) -> Vec<Choice> {
    let is_measured = |(kind, count): (ClientFilter, u32)| count > 0 && kind != ClientFilter::Unknown;
    let all = || ClientFilter::ALL.into_iter().zip(list.picked.of_client);
    if only.is_none() && !all().any(is_measured) {
        return Vec::new();
    }
    all().map(|(kind, count)| Choice { value: kind.as_str(), text: kind.to_text(), count }).collect()
}

/// The button that lists the decisions of all sessions again; `None`: they are.
pub fn session_text(session: &str) -> Option<String> {
    (!session.is_empty()).then(|| format!("Session {session} ×"))
}

/// A kind's name for people; `None` is every kind.
pub const fn kind_name(kind: Option<DecisionKind>) -> &'static str {
    match kind {
        None => "All",
        Some(DecisionKind::Hit) => "Hit",
        Some(DecisionKind::Partial) => "Partial",
        Some(DecisionKind::Miss) => "Miss",
        Some(DecisionKind::Tie) => "Tie",
        Some(DecisionKind::LostAffinity) => "Better-cached worker skipped",
        Some(DecisionKind::Unknown) => "Unknown",
    }
}

/// What is read out when a kind is chosen.
pub fn kind_status(kind: Option<DecisionKind>, count: u32) -> String {
    format!("{}: {}", kind_name(kind), format::plural(count.into(), "decision", "decisions"))
}

/// What decisions are of a kind.
pub fn kind_title(kind: Option<DecisionKind>) -> String {
    match kind {
        None => "Every decision".to_owned(),
        Some(DecisionKind::Hit) => {
            format!(
                "At least {} of the prompt's full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(DecisionKind::Partial) => {
            format!(
                "Some, but less than {} of the full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(DecisionKind::Miss) => "No block of the prompt was cached on the chosen worker".to_owned(),
        Some(DecisionKind::Tie) => {
            "The router reported a tie, or several workers share the lowest known cost".to_owned()
        }
        Some(DecisionKind::LostAffinity) => {
            "Another worker had more of the prompt cached than the chosen one".to_owned()
        }
        Some(DecisionKind::Unknown) => "The prompt's length or its cached part is unknown".to_owned(),
    }
}
