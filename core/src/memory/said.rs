//! Who tells a worker's capacity and the blocks in use, and whose word counts most.

use crate::cluster::{Cluster, ProcessState, WorkerState};
use crate::id::Millis;
use crate::record::{ModelFigures, ProcessRole, RankFigures};

/// A number of blocks with its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Said<S> {
    /// Blocks.
    pub blocks: u64,
    /// Who said it.
    pub source: S,
    /// When it was said last; `None` for what is said once.
    pub at_ms: Option<Millis>,
}

/// Who tells how many blocks there are. Earlier counts more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CapacitySource {
    /// The worker's own metrics (`dynamo_component_total_blocks`, reference §4.4).
    Engine,
    /// `total_kv_blocks` of its model card (reference §8).
    ModelCard,
    /// A frontend's `model_total_kv_blocks` (reference §4.2), where all frontends and models agree.
    Frontend,
}

impl CapacitySource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Engine => "engine's total",
            Self::ModelCard => "model card",
            Self::Frontend => "frontend's model_total_kv_blocks",
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::ModelCard => "model_card",
            Self::Frontend => "frontend",
        }
    }
}

/// Who tells how many blocks running requests use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedSource {
    /// The worker's `kv_metrics` (reference §3.2).
    KvMetrics,
    /// A gauge of its metrics, in blocks.
    Gauge,
    /// A gauge of its metrics as a share of its total.
    GaugeShare,
}

impl UsedSource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::KvMetrics => "kv_metrics",
            Self::Gauge => "engine's gauge",
            Self::GaugeShare => "engine's gauge, share × total",
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KvMetrics => "kv_metrics",
            Self::Gauge => "engine_gauge",
            Self::GaugeShare => "engine_gauge_share",
        }
    }
}

/// Every source that tells the capacity, the best first.
pub(super) fn capacities(cluster: &Cluster, state: &WorkerState) -> Vec<Said<CapacitySource>> {
    let engine = rank(cluster, state).and_then(|(process, rank)| {
        Some(Said {
            blocks: rank.total_blocks?,
            source: CapacitySource::Engine,
            at_ms: Some(process.last_ms),
        })
    });
    let said = |blocks, source| Said { blocks, source, at_ms: None };
    let card = state.capacity_blocks.map(|blocks| said(blocks, CapacitySource::ModelCard));
    let frontend = agreed(cluster, |model| model.total_kv_blocks);
    let frontend = frontend.map(|blocks| said(blocks, CapacitySource::Frontend));
    // A worker that registers before its engine is up says 0.
    [engine, card, frontend].into_iter().flatten().filter(|said| said.blocks > 0).collect()
}

/// The later word of the two that the engine gives.
pub(super) fn used(cluster: &Cluster, state: &WorkerState) -> Option<Said<UsedSource>> {
    let told = state.engine_used_blocks.map(|blocks| Said {
        blocks,
        source: UsedSource::KvMetrics,
        at_ms: state.engine_used_ms,
    });
    let gauge = rank(cluster, state).and_then(|(process, rank)| {
        let at_ms = Some(process.last_ms);
        let share = || Some((rank.kv_usage?, rank.total_blocks?));
        match rank.used_blocks {
            Some(blocks) => Some(Said { blocks, source: UsedSource::Gauge, at_ms }),
            None => share().map(|(share, total)| {
                let blocks = (share.max(0.0) * total as f64).round() as u64;
                Said { blocks, source: UsedSource::GaugeShare, at_ms }
            }),
        }
    });
    match (told, gauge) {
        (Some(told), Some(gauge)) if gauge.at_ms > told.at_ms => Some(gauge),
        (told, gauge) => told.or(gauge),
    }
}

/// What the scraped process that is this worker says of its rank. A worker is known by its id alone, which its metrics
/// carry from Dynamo 1.0 on.
fn rank<'c>(cluster: &'c Cluster, state: &WorkerState) -> Option<(&'c ProcessState, &'c RankFigures)> {
    let is_it = |process: &&ProcessState| {
        process.role == ProcessRole::Worker && process.instance() == Some(state.id.id.0)
    };
    let process = cluster.processes().iter().filter(is_it).max_by_key(|process| process.last_ms)?;
    let rank = process.ranks().iter().find(|rank| rank.dp_rank == state.id.dp_rank)?;
    Some((process, rank))
}

/// A figure of the frontends' models, if all that tell it tell the same.
pub(crate) fn agreed<T: PartialEq>(
    cluster: &Cluster,
    figure: impl Fn(&ModelFigures<'static>) -> Option<T>,
) -> Option<T> {
    let mut told = cluster.processes().iter().flat_map(|process| process.models()).filter_map(figure);
    let first = told.next()?;
    told.all(|other| other == first).then_some(first)
}
