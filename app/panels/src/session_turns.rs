//! The requests of a session, one by one: where each ran, what it lost and why.

use radixscope_export::panel::session::{Turn, turns};
use radixscope_icicle::palette::label;
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_state::cluster::Cluster;

use crate::time_zone::TimeZone;

/// A request.
#[derive(Clone, PartialEq, Debug)]
pub struct TurnRow {
    /// Its decision.
    pub id: DecisionId,
    /// Its place, from 1.
    pub number: String,
    /// When its worker was chosen.
    pub time: String,
    /// On which worker it ran.
    pub worker: WorkerIx,
    /// Whether the one before it ran on another one.
    pub has_moved: bool,
    /// Its figures.
    pub figures: String,
    /// Whether its first token took longest of all.
    pub is_slowest: bool,
    /// What happened.
    pub sentence: String,
}

impl TurnRow {
    /// Those of a session; none where the session is empty.
    pub fn all(cluster: &Cluster, session: &str, zone: TimeZone) -> Vec<Self> {
        if session.is_empty() {
            return Vec::new();
        }
        turns(cluster, session, label).into_iter().map(|turn| Self::of(turn, zone)).collect()
    }

    fn of(turn: Turn, zone: TimeZone) -> Self {
        let slowest = if turn.is_slowest { ", the slowest" } else { "" };
        Self {
            id: turn.id,
            number: turn.number.to_string(),
            time: zone.time_of_day(turn.at_ms),
            worker: turn.worker,
            has_moved: turn.moved_from.is_some(),
            figures: format!("{}{slowest}", turn.figures()),
            is_slowest: turn.is_slowest,
            sentence: turn.sentence,
        }
    }
}
