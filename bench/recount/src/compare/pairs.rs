//! Which decision that is shown is which decision that was made.

use serde_json::Value;

use crate::Worker;
use crate::router::Decision;

/// A decision without the request's id is the decision whose time is this close, seconds.
const NEAR_S: f64 = 1.0;

/// For each decision the decision that shows it; and how many decisions show none. `shift_s` leads from recorded times to
/// those that are shown.
pub(super) fn pairs<'v>(
    decisions: &[Decision],
    shown: &'v [Value],
    shift_s: f64,
) -> (Vec<Option<&'v Value>>, usize) {
    let mut open: Vec<&Value> = shown.iter().rev().collect();
    let mut of = vec![None; decisions.len()];
    for (decision, of) in decisions.iter().zip(&mut of) {
        let Some(id) = decision.request_id.reported() else { continue };
        let at = open.iter().position(|row| row["request_id"] == **id && is_at(row, decision.worker));
        *of = at.map(|at| open.remove(at));
    }
    // First those whose cost identifies them.
    for must_cost in [true, false] {
        for (decision, of) in decisions.iter().zip(&mut of).filter(|(_, of)| of.is_none()) {
            let away = |row: &Value| {
                let fits = is_at(row, decision.worker)
                    && (decision.request_id.reported().is_none() || row["request_id"].is_null())
                    && (!must_cost || row["logit"].as_f64().is_some_and(|cost| decision.is_logit(cost)));
                let away = (decided_s(row)? - (decision.at_s + shift_s)).abs();
                (fits && away < NEAR_S).then_some(away)
            };
            let near = open.iter().enumerate().filter_map(|(at, row)| Some((at, away(row)?)));
            let nearest = near.min_by(|a, b| a.1.total_cmp(&b.1));
            *of = nearest.map(|(at, _)| open.remove(at));
        }
    }
    (of, open.len())
}

fn decided_s(row: &Value) -> Option<f64> {
    let ms = row["decided_ms"].as_u64().or_else(|| row["at_ms"].as_u64())?;
    Some(ms as f64 / 1_000.0)
}

pub(super) fn is_at(row: &Value, worker: Worker) -> bool {
    worker_of(row) == Some(worker)
}

/// Worker and rank of a row.
pub(super) fn worker_of(row: &Value) -> Option<Worker> {
    Some((row["worker_id"].as_str()?.parse().ok()?, row["dp_rank"].as_u64()?))
}
