//! How much of what workers hold is known, as text, and whether figures of the tree are shown: the same for page, API and
//! findings. Knows no threshold of a rule and nothing of how workers are queried.

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::number_format::count;
use radixscope_model::record::{KnowledgeWhy, QueryState};
use radixscope_state::cluster::{Cluster, Coverage, KnowledgeState, ResidentSource, Sourced};

/// From this share of the held blocks on, shares of blocks are shown, with a mark: what is missing cannot turn them.
pub const ENOUGH: f64 = 0.95;

/// Whether figures that need every block of a pool may stand: shares, copies, depths, who holds most of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// They may.
    Whole,
    /// They are, with this note: they are of the known part, which is nearly all.
    Marked(String),
    /// They may not, and this is why, in a sentence.
    Withheld(String),
}

impl Trust {
    /// Of the tree of a pool.
    pub fn of(cluster: &Cluster, pool: PoolIx) -> Self {
        let coverage = cluster.coverage([pool]);
        if coverage.is_whole() {
            return Self::Whole;
        }
        match coverage.share() {
            Some(share) if share >= ENOUGH => Self::Marked(format!("of the known {}", share_text(&coverage))),
            Some(_) => Self::Withheld(format!(
                "{} of the cached blocks are known, so this share would be wrong",
                share_text(&coverage)
            )),
            None if lost_only(cluster, pool) => {
                Self::Marked("of the known blocks: events were lost".to_owned())
            }
            None => Self::Withheld(format!(
                "Blocks of {} are missing, how many is unknown",
                of_workers(coverage.incomplete, coverage.workers)
            )),
        }
    }

    /// Words beside a figure that is shown with a mark.
    pub fn mark(&self) -> Option<&str> {
        match self {
            Self::Marked(note) => Some(note),
            Self::Whole | Self::Withheld(_) => None,
        }
    }

    /// Why nothing is shown.
    pub fn withheld(&self) -> Option<&str> {
        match self {
            Self::Withheld(why) => Some(why),
            Self::Whole | Self::Marked(_) => None,
        }
    }
}

/// Whether no worker lacks more than what was lost on the way since we listen.
fn lost_only(cluster: &Cluster, pool: PoolIx) -> bool {
    let is_lost = |why| matches!(why, KnowledgeWhy::EventsLost | KnowledgeWhy::ConnectionBroke);
    let lacking = cluster.incomplete_in(pool);
    lacking.iter().filter_map(|&ix| cluster.worker(ix)).all(|state| is_lost(state.knowledge.why))
}

/// `54 %`, never more than is known; `?` where it is not known how many blocks are held.
pub fn share_text(coverage: &Coverage) -> String {
    match coverage.share() {
        Some(share) if coverage.is_whole() => format!("{} %", (share * 100.0).round()),
        Some(share) => format!("{} %", (share * 100.0).floor().min(99.0)),
        None => "an unknown share".to_owned(),
    }
}

/// `54 % of used blocks · 2 of 3 workers complete`.
pub fn coverage_text(coverage: &Coverage) -> String {
    let workers = format!("{} workers complete", of(coverage.complete, coverage.workers));
    match coverage.share() {
        _ if coverage.is_whole() => workers,
        Some(_) => format!("{} of used blocks · {workers}", share_text(coverage)),
        None => format!("unknown share of used blocks · {workers}"),
    }
}

/// The same where there is little room and the heading names what is counted: `54 % · 2 of 3 workers`.
pub fn short_coverage_text(coverage: &Coverage) -> String {
    let workers = of_workers(coverage.complete, coverage.workers);
    match coverage.share() {
        _ if coverage.is_whole() => workers,
        Some(_) => format!("{} · {workers}", share_text(coverage)),
        None => format!("unknown · {workers}"),
    }
}

fn of(part: u32, whole: u32) -> String {
    format!("{} of {}", count(part.into()), count(whole.into()))
}

fn of_workers(part: u32, whole: u32) -> String {
    format!("{} workers", of(part, whole))
}

/// A note for a response about a prompt where the tree of its pool lacks blocks; `None`: it lacks none.
pub fn note(cluster: &Cluster, pool: PoolIx) -> Option<String> {
    let coverage = cluster.coverage([pool]);
    (!coverage.is_whole()).then(|| {
        format!(
            "The tree lacks blocks ({}): workers may have more of the prompt cached than shown, so the ranking may be wrong.",
            coverage_text(&coverage)
        )
    })
}

/// `861 of 1,600 used blocks`; `861 blocks, of how many is unknown`.
pub fn known_text(cluster: &Cluster, worker: WorkerIx) -> String {
    match cluster.known_of_used(worker) {
        (known, Some(used)) => format!("{} of {} used blocks", count(known), count(used.value)),
        (known, None) => format!("{} blocks, of how many is unknown", count(known)),
    }
}

/// Where the number of used blocks is known from, to follow a comma.
pub fn used_text(used: Option<Sourced<u64, ResidentSource>>) -> &'static str {
    match used.map(|used| used.source) {
        Some(ResidentSource::Complete) => "its tree is complete",
        Some(ResidentSource::Full(source)) => source.label(),
        None => "not known",
    }
}

/// Why so much is known of a worker, in a few words that could follow `because`.
pub const fn why_text(why: KnowledgeWhy) -> &'static str {
    match why {
        KnowledgeWhy::NoEvents => "no KV event of it was received",
        KnowledgeWhy::FromFirstEvent => "every KV event of it was received, the first included",
        KnowledgeWhy::History => "the history of its KV events was read from the first on",
        KnowledgeWhy::Dump => "it was queried for all its blocks, and every KV event since was received",
        KnowledgeWhy::Cleared => "it dropped all its blocks, and every KV event since was received",
        KnowledgeWhy::JoinedLate => "it stored blocks before this dashboard listened",
        KnowledgeWhy::EventsLost => "KV events of it were lost",
        KnowledgeWhy::ConnectionBroke => {
            "the connection for its KV events broke, and what it published meanwhile is unknown"
        }
        KnowledgeWhy::Restarted => {
            "another process publishes under its id, and what it stored before is unknown"
        }
    }
}

/// What is done about it; `None`: nothing, and nothing need be.
pub fn query_text(knowledge: &KnowledgeState, now: Millis) -> Option<String> {
    let detail = &knowledge.asking_detail;
    let with_detail = |status: &str| match detail.is_empty() {
        true => status.to_owned(),
        false => format!("{status}: {detail}"),
    };
    Some(match knowledge.asking {
        QueryState::No if knowledge.is_complete() => return None,
        QueryState::No => with_detail("it is not queried for its blocks"),
        QueryState::NoEndpoint => with_detail("its endpoint for queries is unknown"),
        QueryState::OnRequest => with_detail("it can be queried for its blocks, on request"),
        QueryState::Waiting => with_detail("it will be queried for its blocks"),
        QueryState::Dump => "it is being queried for all its blocks".to_owned(),
        QueryState::Range => "it is being queried for the lost events".to_owned(),
        QueryState::Joining => "its response is being merged with its events".to_owned(),
        QueryState::Failed { next_ms: Some(next) } => {
            let seconds = next.since(now).div_ceil(1_000);
            format!("{}; next try in {} s", with_detail("the last query failed"), count(seconds))
        }
        QueryState::Failed { next_ms: None } => {
            format!("{}; it is queried again on request", with_detail("the last query failed"))
        }
    })
}
