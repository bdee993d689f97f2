//! Joins what files say with a recording of the same run. The recording's records stay as they are: the tree, workers, decisions and
//! findings. Added to them is what it does not have: what clients measured, how requests went on by logs and traces, joined by the ids of
//! requests, and metrics of roles that it did not scrape.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::BufReader;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx};
use radixscope_model::number_format::plural;
use radixscope_model::record::{
    ClientMeasured, ClientResult, Decision, Entry, LinkState, Progress, Record, Scrape,
};
use radixscope_recording::{FoldStep, Meta, RecordingError, Series};
use radixscope_state::cluster::{Cluster, SnapshotError, SnapshotReader};
use radixscope_state::sink::RecordSink as _;

use super::clocks::Noted;
use super::runs::Stretches;
use super::spool::{Merge, Spool, Spooled};
use super::timeline::{Recorded, Seconds, Source};

/// Requests whose ids are known, of the files and of the recording each; what is of more is left out.
const MAX_REQUESTS: usize = 1_000_000;
/// Requests of which something waits for their decision; beyond, the oldest are given up.
const MAX_WAITING: usize = 100_000;
/// What follows the recording's end is added up to this long after it: results of requests that were in flight.
const AFTER_MS: u64 = 60_000;

/// What became of what the files say.
#[derive(Default, Debug)]
pub(super) struct Joins {
    /// Decisions that the files brought, where the recording has none.
    pub(super) brought: Option<u64>,
    /// Results of clients that were joined with decisions of the recording.
    pub(super) results: u64,
    /// Decisions of the recording of which more is known.
    pub(super) decisions: u64,
    /// Responses with metrics.
    pub(super) scrapes: u64,
    /// Of requests that the recording does not have, of other times, or of processes that it scraped itself.
    pub(super) left_out: u64,
}

impl fmt::Display for Joins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { brought, results, decisions, scrapes, left_out } = *self;
        write!(f, "joined with the other files: {} of clients", plural(results, "result", "results"))?;
        match brought {
            Some(brought) => {
                write!(f, ", {} by them, since it has none", plural(brought, "decision", "decisions"))?;
            }
            None => write!(
                f,
                ", more known of {}, {} of metrics",
                plural(decisions, "decision", "decisions"),
                plural(scrapes, "response", "responses")
            )?,
        }
        match left_out {
            0 => Ok(()),
            n => write!(
                f,
                ", {} of other requests or times, or metrics beside its own, left out",
                plural(n, "record", "records")
            ),
        }
    }
}

/// What is added, as it is spooled.
#[derive(Serialize, Deserialize)]
enum Addition {
    Client { request: Option<String>, measured: ClientMeasured },
    Progress { request: String, progress: Progress },
    Scrape(Box<Scrape>),
}

/// The ids of requests by decision, of the first [`MAX_REQUESTS`].
#[derive(Default)]
struct RequestIds(HashMap<DecisionId, String>);

impl RequestIds {
    fn note(&mut self, decision: &Decision) {
        if let Some(id) = &decision.request_id
            && (self.0.len() < MAX_REQUESTS || self.0.contains_key(&decision.id))
        {
            self.0.insert(decision.id, id.clone());
        }
    }

    fn get(&self, decision: DecisionId) -> Option<&str> {
        self.0.get(&decision).map(String::as_str)
    }
}

/// A recording that is joined with files.
pub(super) struct Base {
    /// The file that it is.
    pub(super) ix: usize,
    pub(super) series: Series<BufReader<File>>,
    /// Decisions that it has.
    pub(super) decisions: u64,
    /// Whether it has metrics: a process under two names would count twice.
    pub(super) has_metrics: bool,
}

impl Base {
    /// Reads what there is in a recording, and notes its requests so that its clock can be compared with those of files.
    ///
    /// # Errors
    /// No keyframe of it can be read.
    pub(super) fn read(
        ix: usize,
        mut series: Series<BufReader<File>>,
        noted: &mut Noted,
        stretches: &mut Stretches,
    ) -> Result<Self, RecordingError> {
        let mut requests = RequestIds::default();
        let mut has_metrics = false;
        let end = series.play(&mut |step| {
            let FoldStep::Record { entry, .. } = step else { return };
            match &entry.record {
                Record::Decision(decision) => {
                    let at = decision.decided_ms.unwrap_or(entry.at_ms);
                    stretches.note(at);
                    if let Some(id) = &decision.request_id {
                        noted.note(id, Some(at), None);
                    }
                    requests.note(decision);
                }
                Record::Progress { decision, progress } => {
                    if let (Some(id), Some(end)) = (requests.get(*decision), progress.ended_ms) {
                        noted.note(id, None, Some(end));
                    }
                }
                Record::Scrape(_) => has_metrics = true,
                _ => {}
            }
        })?;
        has_metrics |= !end.cluster.processes().is_empty();
        let decisions = end.cluster.decisions().totals().count;
        Ok(Self { ix, series, decisions, has_metrics })
    }
}

/// Writes a recording with what the files add, which were put together as one of their own.
///
/// # Errors
/// One of them cannot be read, or the result cannot be written.
pub(super) fn join(
    base: &mut Base,
    files: &mut Series<BufReader<File>>,
    sources: &[Source],
    (to, meta): (File, &Meta),
) -> anyhow::Result<(Cluster, File, Joins)> {
    let mut joins = Joins::default();
    let additions = additions(files, base.has_metrics, &mut joins)?;
    let (from, _) = base.series.range();
    let begin = base.series.state_at(from)?.cluster;
    let known: Vec<Decision> =
        begin.decisions().newest_first().rev().map(|entry| entry.decision.clone()).collect();
    let mut joining = Joining {
        next: begin.seq(),
        recorded: Recorded::begin(begin, (to, meta), from)?,
        ids: HashMap::new(),
        waiting: IndexMap::new(),
        completed: BTreeSet::new(),
        pending: None,
        additions,
        joins,
        from,
        now: from,
        seconds: Seconds::new(from),
        failed: None,
    };
    known.iter().for_each(|decision| joining.note(decision));
    base.series.play(&mut |step| {
        if let FoldStep::Record { before, entry } = step
            && !joining.has_failed()
        {
            joining.record(before, entry);
        }
    })?;
    joining.end(sources)
}

/// What files add, in the order of time.
fn additions(
    files: &mut Series<BufReader<File>>,
    has_metrics: bool,
    joins: &mut Joins,
) -> anyhow::Result<Merge> {
    let mut spool = Spool::new()?;
    let mut requests = RequestIds::default();
    let mut failed = None;
    files.play(&mut |step| {
        let FoldStep::Record { entry, .. } = step else { return };
        let addition = match &entry.record {
            Record::Decision(decision) => {
                requests.note(decision);
                return;
            }
            Record::ClientResult(result) => Addition::Client {
                request: result.decision.and_then(|id| requests.get(id)).map(str::to_owned),
                measured: result.measured,
            },
            Record::Progress { decision, progress } => match requests.get(*decision) {
                Some(id) => Addition::Progress { request: id.to_owned(), progress: **progress },
                None => {
                    joins.left_out += 1;
                    return;
                }
            },
            Record::Scrape(_) if has_metrics => {
                joins.left_out += 1;
                return;
            }
            Record::Scrape(scrape) => Addition::Scrape(scrape.clone()),
            _ => return,
        };
        let spooled = postcard::to_allocvec(&addition)
            .map_err(std::io::Error::other)
            .and_then(|bytes| spool.push(0, entry.at_ms, &bytes));
        if let Err(error) = spooled {
            failed.get_or_insert(error);
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    spool.end_file(0)?;
    Ok(spool.merge(|_| 0)?)
}

/// What waits for the decision of a request.
#[derive(Default)]
struct Waiting {
    client: Option<ClientMeasured>,
    progress: Option<Progress>,
}

impl Waiting {
    fn count(&self) -> u64 {
        u64::from(self.client.is_some()) + u64::from(self.progress.is_some())
    }
}

/// See the module.
struct Joining {
    recorded: Recorded,
    /// The state of the recording that the next record follows.
    next: Seq,
    /// Decisions by the ids of their requests; of two choices for one the later, which is that of the response.
    ids: HashMap<String, DecisionId>,
    /// What is known of requests whose decision has not come yet, by their ids, the oldest first.
    waiting: IndexMap<String, Waiting>,
    /// Decisions of which more is known than the recording said.
    completed: BTreeSet<DecisionId>,
    /// The next addition.
    pending: Option<(Millis, Addition)>,
    additions: Merge,
    joins: Joins,
    from: Millis,
    now: Millis,
    seconds: Seconds,
    failed: Option<anyhow::Error>,
}

impl Joining {
    fn has_failed(&self) -> bool {
        self.failed.is_some() || self.recorded.has_failed()
    }

    /// Takes the next record of the recording.
    fn record(&mut self, before: &Cluster, entry: &Entry<'_>) {
        if self.next != before.seq() {
            // After a gap.
            if let Err(error) = self.begin(before, entry.at_ms) {
                self.failed = Some(error.into());
                return;
            }
        }
        self.next = Seq(before.seq().0 + 1);
        self.add_until(entry.at_ms);
        self.advance(entry.at_ms);
        match &entry.record {
            Record::Decision(decision) => self.note(decision),
            // The recording's own stands, completed by what files said before.
            Record::Progress { decision, progress } if self.completed.contains(decision) => {
                let known = self.recorded.cluster().decisions().get(*decision).map(|entry| entry.progress);
                let progress = known.map_or(**progress, |known| completed(progress, &known));
                let record = Record::Progress { decision: *decision, progress: Box::new(progress) };
                self.recorded.append(&Entry { at_ms: entry.at_ms, record });
                return;
            }
            _ => {}
        }
        self.recorded.append(entry);
        if let Record::Decision(decision) = &entry.record {
            self.add_waiting(decision);
        }
    }

    fn begin(&mut self, before: &Cluster, at: Millis) -> Result<(), SnapshotError> {
        let (mut reader, mut copy) = (SnapshotReader::default(), None);
        before.snapshot(|part| {
            if let Ok(Some(cluster)) = reader.part(&part) {
                copy = Some(cluster);
            }
        })?;
        for known in before.decisions().newest_first().collect::<Vec<_>>().into_iter().rev() {
            self.note(&known.decision);
        }
        self.recorded.restart(copy.unwrap_or_default(), at.max(self.now));
        Ok(())
    }

    fn note(&mut self, decision: &Decision) {
        if let Some(id) = &decision.request_id
            && (self.ids.len() < MAX_REQUESTS || self.ids.contains_key(id))
        {
            self.ids.insert(id.clone(), decision.id);
        }
    }

    /// What waits for the decision of a request: a recording may have it seconds later, when its other parts were known.
    fn wait(&mut self, request: String) -> &mut Waiting {
        if self.waiting.len() >= MAX_WAITING
            && !self.waiting.contains_key(&request)
            && let Some((_, given_up)) = self.waiting.shift_remove_index(0)
        {
            self.joins.left_out += given_up.count();
        }
        self.waiting.entry(request).or_default()
    }

    /// Adds what waited for a decision that was taken.
    fn add_waiting(&mut self, decision: &Decision) {
        let Some(request) = &decision.request_id else { return };
        let Some(Waiting { client, progress }) = self.waiting.shift_remove(request) else { return };
        if let Some(progress) = progress {
            self.add(self.now, Addition::Progress { request: request.clone(), progress });
        }
        if let Some(measured) = client {
            self.add(self.now, Addition::Client { request: Some(request.clone()), measured });
        }
    }

    fn add_until(&mut self, until: Millis) {
        while !self.has_failed() {
            if self.pending.is_none() {
                self.pending = match self.additions.next() {
                    Some(Ok(Spooled { at, text, .. })) => match postcard::from_bytes(&text) {
                        Ok(addition) => Some((at, addition)),
                        Err(error) => {
                            self.failed = Some(error.into());
                            None
                        }
                    },
                    Some(Err(error)) => {
                        self.failed = Some(error.into());
                        None
                    }
                    None => None,
                };
            }
            match self.pending.take() {
                Some((at, addition)) if at <= until => self.add(at, addition),
                later => {
                    self.pending = later;
                    return;
                }
            }
        }
    }

    fn add(&mut self, at: Millis, addition: Addition) {
        if at < self.from {
            self.joins.left_out += 1;
            return;
        }
        self.advance(at);
        let record = match addition {
            Addition::Client { request: None, measured } => {
                self.joins.left_out += 1;
                Record::ClientResult(Box::new(ClientResult { decision: None, measured }))
            }
            Addition::Client { request: Some(request), measured } => {
                let Some(&id) = self.ids.get(&request) else {
                    self.wait(request).client = Some(measured);
                    return;
                };
                self.joins.results += 1;
                Record::ClientResult(Box::new(ClientResult { decision: Some(id), measured }))
            }
            Addition::Progress { request, progress } => {
                let Some(&id) = self.ids.get(&request) else {
                    self.wait(request).progress = Some(progress);
                    return;
                };
                let known = self.recorded.cluster().decisions().get(id).map(|entry| entry.progress);
                let more = known.map(|known| completed(&known, &progress));
                if more == known {
                    return;
                }
                self.joins.decisions += u64::from(self.completed.insert(id));
                Record::Progress { decision: id, progress: Box::new(more.unwrap_or(progress)) }
            }
            Addition::Scrape(scrape) => {
                self.joins.scrapes += 1;
                Record::Scrape(scrape)
            }
        };
        self.recorded.append(&Entry { at_ms: self.now, record });
    }

    fn advance(&mut self, to: Millis) {
        while let Some(over) = self.seconds.next_over(to) {
            self.now = over;
            self.recorded.end_second(over);
        }
        self.now = self.now.max(to);
        self.seconds.note(self.now);
        self.recorded.reach(self.now);
    }

    fn end(mut self, sources: &[Source]) -> anyhow::Result<(Cluster, File, Joins)> {
        self.add_until(Millis(self.now.0.saturating_add(AFTER_MS)));
        if let Some(error) = self.failed {
            return Err(error);
        }
        let later = self.additions.by_ref().count();
        self.joins.left_out += u64::from(self.pending.is_some()) + later as u64;
        for Waiting { client, progress } in std::mem::take(&mut self.waiting).into_values() {
            self.joins.left_out += u64::from(progress.is_some());
            if let Some(measured) = client {
                self.add(self.now, Addition::Client { request: None, measured });
            }
        }
        let first = self.recorded.cluster().sources().len();
        for (at, source) in sources.iter().enumerate() {
            let Ok(ix) = u8::try_from(first + at) else { break };
            let (ix, at_ms) = (SourceIx(ix), self.now);
            let name = source.name.as_str().into();
            let record = Record::Source { source: ix, name, kind: source.kind };
            self.recorded.append(&Entry { at_ms, record });
            let detail = source.detail.as_str().into();
            let record = Record::SourceState { source: ix, state: LinkState::Ended, detail };
            self.recorded.append(&Entry { at_ms, record });
        }
        let (cluster, file) = self.recorded.end(self.now)?;
        Ok((cluster, file, self.joins))
    }
}

/// What is known of a request, completed by what another source says of it.
fn completed(known: &Progress, more: &Progress) -> Progress {
    Progress {
        first_token_ms: known.first_token_ms.or(more.first_token_ms),
        ended_ms: known.ended_ms.or(more.ended_ms),
        outcome: known.outcome.or(more.outcome),
        ttft_us: known.ttft_us.or(more.ttft_us),
        queue_us: known.queue_us.or(more.queue_us),
        prefill_us: known.prefill_us.or(more.prefill_us),
        itl_us: known.itl_us.or(more.itl_us),
        output_tokens: known.output_tokens.or(more.output_tokens),
        cached_tokens: known.cached_tokens.or(more.cached_tokens),
    }
}
