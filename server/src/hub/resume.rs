//! Resumes from the recording after a restart: state, history and recent batches. The run itself, and so the sequence numbers
//! of records, continues only if the recording contains everything that was published.

use std::path::Path;

use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::SourceKind;
use radixscope_state::cluster::Cluster;

use super::history::{History, HistoryLimits};
use super::log::{Published, RecentLog};
use super::replay::Replayed;
use crate::recording::{self, Newest};
use crate::time::now;

/// Recordings that ended longer ago are not resumed: caches have changed by then, and queries to workers are faster than
/// corrections.
const MAX_AWAY_MS: u64 = 60 * 60_000;

/// The resumed state.
pub(crate) struct Resumed {
    pub(super) cluster: Cluster,
    pub(super) history: Option<History>,
    pub(super) log: RecentLog,
    /// The last recorded moment.
    pub(super) at_ms: Millis,
    /// The run that continues. `None`: a new one starts, because the recording may lack published records.
    pub(crate) epoch: Option<u64>,
}

/// Limits of the resumed state.
#[derive(Clone, Copy)]
pub(crate) struct ResumeLimits {
    /// Maximum nodes of the tree.
    pub(crate) max_nodes: u32,
    /// Maximum bytes of recent batches.
    pub(crate) log_bytes: usize,
    /// Limits of the history.
    pub(crate) history: HistoryLimits,
}

impl Resumed {
    /// Reads the end of the recording in a folder. `None`: there is none that can be resumed with these sources; the reason is
    /// logged.
    pub(crate) fn read(
        folder: &Path,
        sources: &[(String, SourceKind)],
        limits: ResumeLimits,
    ) -> Option<Self> {
        let max_age_ms = u64::try_from(limits.history.max_age.as_millis()).unwrap_or(u64::MAX);
        let newest = match recording::newest(folder, max_age_ms) {
            Ok(newest) => newest?,
            Err(error) => {
                let why = format!("{error:#}");
                tracing::warn!(why, "the recording cannot be resumed; starting with an empty state");
                return None;
            }
        };
        Self::of(newest, sources, limits)
            .inspect_err(|why| tracing::info!(why, "starting with an empty state"))
            .ok()
    }

    fn of(
        Newest { mut series, is_finished }: Newest,
        sources: &[(String, SourceKind)],
        limits: ResumeLimits,
    ) -> Result<Self, String> {
        let (_, end) = series.range();
        let away_ms = now().since(end);
        if away_ms > MAX_AWAY_MS {
            return Err(format!(
                "the recording ended {} min ago; the limit for resuming is {} min",
                away_ms / 60_000,
                MAX_AWAY_MS / 60_000
            ));
        }
        let meta = series.files().last().map(|file| file.meta().clone());
        if meta.as_ref().is_some_and(|meta| meta.redacted) {
            return Err("the recording is redacted: its names are not those of the deployment".to_owned());
        }
        let recorded = meta.map(|meta| meta.sources).unwrap_or_default();
        if !is_same_deployment(&recorded, sources) {
            return Err("the recording is of other sources of KV events".to_owned());
        }
        let max_age_ms = u64::try_from(limits.history.max_age.as_millis()).unwrap_or(u64::MAX);
        let from = Millis(end.0.saturating_sub(max_age_ms));
        let read = Replayed::read_from(&mut series, from, limits.history);
        let Replayed { mut cluster, history, at_ms, epoch, is_whole } =
            read.map_err(|error| error.to_string())?;
        let is_same_limit = cluster.limit_nodes() == limits.max_nodes;
        cluster.set_limit_nodes(limits.max_nodes);
        let epoch = Some(epoch).filter(|_| is_finished && is_whole && is_same_limit);
        let next = Seq(cluster.seq().0.saturating_add(1));
        let recent = history.iter().flat_map(History::batches);
        let log = RecentLog::continued(limits.log_bytes, next, recent);
        let (seq, workers) = (cluster.seq().0, cluster.workers().len());
        tracing::info!(seq, workers, away_ms, same_run = epoch.is_some(), "resuming from the recording");
        Ok(Self { cluster, history, log, at_ms, epoch })
    }
}

/// Whether a recording of `recorded` sources, one per line, is of the same deployment: the same NATS server; without one, the
/// same discovery; without both, the same ZeroMQ broker.
fn is_same_deployment(recorded: &str, sources: &[(String, SourceKind)]) -> bool {
    let telling = [SourceKind::Nats, SourceKind::Discovery, SourceKind::Zmq, SourceKind::Engines];
    let of = |wanted: SourceKind| sources.iter().filter(move |(_, kind)| *kind == wanted);
    let Some(kind) = telling.into_iter().find(|&kind| of(kind).next().is_some()) else { return false };
    let is_recorded = |name: &str| recorded.lines().any(|line| line == recording::source_line(name, kind));
    of(kind).any(|(name, _)| is_recorded(name))
}

impl RecentLog {
    /// A log that continues with record `next`, with earlier batches if they lead up to it without a gap.
    fn continued<'b>(max_bytes: usize, next: Seq, batches: impl Iterator<Item = &'b Published>) -> Self {
        let mut log: Option<Self> = None;
        for batch in batches {
            let follows = log.take().filter(|log| log.next() == batch.first);
            let mut going = follows.unwrap_or_else(|| Self::beginning(max_bytes, batch.first));
            going.push(batch.clone());
            log = Some(going);
        }
        log.filter(|log| log.next() == next).unwrap_or_else(|| Self::beginning(max_bytes, next))
    }
}
