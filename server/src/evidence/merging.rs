//! Merges the records of files by time, puts them on a time line, and joins a recording of the same run with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::iter::Peekable;
use std::sync::Arc;

use anyhow::bail;
use bytes::Bytes;

use radixscope_dynamo::subject::{self, Subject};
use radixscope_insight::check::Checks;
use radixscope_intake::Payload;
use radixscope_model::id::Millis;
use radixscope_model::number_format::plural;
use radixscope_model::record::Record;
use radixscope_recording::{FoldStep, Meta, Recording, Series};
use radixscope_state::cluster::Cluster;

use super::clock_words;
use super::clocks::Clock;
use super::file::FileReport;
use super::joined::{self, Base, Joins};
use super::kind::Kind;
use super::runs::Stretch;
use super::source_kind;
use super::spool::{Merge, Spool, Spooled};
use super::tachometer::{Response, Responses};
use super::timeline::{Source, Timeline};
use crate::recording;
use crate::time::random;

/// What is merged.
pub(super) struct Merging<'m> {
    pub(super) files: &'m [FileReport],
    pub(super) clocks: &'m [Clock],
    pub(super) run: Stretch,
}

/// What came of it.
pub(super) struct Merged {
    /// The state at the end.
    pub(super) cluster: Cluster,
    /// How many records are of other runs.
    pub(super) elsewhere: u64,
    /// The recording.
    pub(super) file: File,
    /// The file of the recording that was joined, and what became of it.
    pub(super) joined: Option<(usize, Joins)>,
}

/// The records of files on their way to the time line.
struct Feed<'m> {
    merging: &'m Merging<'m>,
    records: Peekable<Merge>,
    sources: Vec<Source>,
    /// The source of each file.
    of_files: Vec<Option<usize>>,
    /// The name of each file's log or process.
    names: Vec<Arc<str>>,
    subject: Option<Arc<Subject>>,
    responses: Responses,
    /// Whether metrics are taken.
    takes_metrics: bool,
    timeline: Option<Timeline>,
    /// What the time line begins with.
    begins: Option<(Checks, File)>,
    elsewhere: u64,
    left_out: u64,
    is_stopped: &'m dyn Fn() -> bool,
}

impl Merging<'_> {
    fn feed<'m>(
        &'m self,
        spool: Spool,
        begins: Option<(Checks, File)>,
        is_stopped: &'m dyn Fn() -> bool,
    ) -> anyhow::Result<Feed<'m>> {
        let (sources, of_files) = self.sources();
        Ok(Feed {
            merging: self,
            records: spool.merge(|file| self.ahead_ms(file))?.peekable(),
            sources,
            of_files,
            names: self.files.iter().map(|file| self.log_or_process(file)).collect(),
            subject: subject::parse(subject::REQUEST_TRACE).map(Arc::new),
            responses: Responses::default(),
            takes_metrics: true,
            timeline: None,
            begins,
            elsewhere: 0,
            left_out: 0,
            is_stopped,
        })
    }

    /// Writes the recording of the files.
    ///
    /// # Errors
    /// Nothing is of the run, somebody wanted the end of it, or it cannot be written.
    pub(super) fn write(
        &self,
        spool: Spool,
        checks: Checks,
        to: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Merged> {
        let mut feed = self.feed(spool, Some((checks, to)), is_stopped)?;
        feed.until(None)?;
        let (cluster, elsewhere, file, _) = feed.end()?;
        Ok(Merged { cluster, elsewhere, file, joined: None })
    }

    /// The same, joined with a recording of the run. If it has decisions, the files complete them; otherwise they bring the requests, which
    /// meet the blocks that the recording has.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn join(
        &self,
        spool: Spool,
        checks: Checks,
        mut base: Base,
        to: File,
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Merged> {
        let meta = self.meta(&base);
        if base.decisions == 0 {
            return self.write_upon(spool, checks, &mut base, (to, &meta), is_stopped);
        }
        let files = self.write(spool, checks, tempfile::tempfile()?, is_stopped)?;
        let mut series = Series::of(vec![Recording::open(BufReader::new(files.file))?])?;
        let (cluster, file, joins) = joined::join(&mut base, &mut series, &self.sources().0, (to, &meta))?;
        Ok(Merged { cluster, elsewhere: files.elsewhere, file, joined: Some((base.ix, joins)) })
    }

    fn write_upon(
        &self,
        spool: Spool,
        checks: Checks,
        base: &mut Base,
        to: (File, &Meta),
        is_stopped: &dyn Fn() -> bool,
    ) -> anyhow::Result<Merged> {
        let mut feed = self.feed(spool, None, is_stopped)?;
        feed.takes_metrics = !base.has_metrics;
        let (from, _) = base.series.range();
        let begin = base.series.state_at(from)?.cluster;
        feed.timeline = Some(Timeline::upon(begin, &feed.sources, checks, to, from)?);
        let mut failed = None;
        base.series.play(&mut |step| {
            let FoldStep::Record { entry, .. } = step else { return };
            if failed.is_some() || is_derived(&entry.record) {
                return;
            }
            if let Err(error) = feed.until(Some(entry.at_ms)) {
                failed = Some(error);
            } else if let Some(timeline) = &mut feed.timeline {
                timeline.replay(entry);
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        feed.until(None)?;
        let (cluster, elsewhere, file, left_out) = feed.end()?;
        let joins = Joins {
            brought: Some(cluster.decisions().totals().count),
            results: cluster.clients().joined(),
            left_out,
            ..Joins::default()
        };
        Ok(Merged { cluster, elsewhere, file, joined: Some((base.ix, joins)) })
    }

    /// Of the recording and what is joined with it.
    fn meta(&self, base: &Base) -> Meta {
        let named: Vec<_> = self.sources().0.into_iter().map(|source| (source.name, source.kind)).collect();
        let (from, _) = base.series.range();
        let mut meta = recording::meta(random(), random(), from, &named);
        if let Some(last) = base.series.files().last().map(Recording::meta) {
            meta.sources = format!("{}\n{}", last.sources, meta.sources);
            meta.redacted = last.redacted;
        }
        meta
    }

    fn ahead_ms(&self, file: usize) -> i64 {
        self.clocks.get(file).map_or(0, |clock| clock.ahead_ms())
    }

    fn log_or_process(&self, file: &FileReport) -> Arc<str> {
        match file.kind {
            Kind::Metrics => file.process.as_str().into(),
            _ => file.name.as_str().into(),
        }
    }

    /// The sources of the recording: one for each kind of file and clock. With the source of each file.
    fn sources(&self) -> (Vec<Source>, Vec<Option<usize>>) {
        let mut grouped: BTreeMap<(Kind, i64), Vec<usize>> = BTreeMap::new();
        for (ix, file) in self.files.iter().enumerate() {
            if source_kind(file.kind).is_some() && file.records + file.bad > 0 {
                grouped.entry((file.kind, self.ahead_ms(ix))).or_default().push(ix);
            }
        }
        let mut of_files = vec![None; self.files.len()];
        let mut sources = Vec::new();
        for ((kind, ahead_ms), members) in grouped {
            let Some(source_kind) = source_kind(kind) else { continue };
            let records = members.iter().map(|&ix| self.files[ix].records).sum();
            let clock = clock_words(ahead_ms).map(|words| format!(", clock {words}")).unwrap_or_default();
            let detail = format!(
                "Read from {}: {}{clock}.",
                plural(members.len() as u64, "file", "files"),
                plural(records, "record", "records")
            );
            members.iter().for_each(|&ix| of_files[ix] = Some(sources.len()));
            let name = format!("files/{}{clock}", kind.as_str());
            sources.push(Source { name, kind: source_kind, ahead_ms, detail });
        }
        (sources, of_files)
    }
}

impl Feed<'_> {
    /// Hands over what is up to a time; `None`: everything.
    fn until(&mut self, at: Option<Millis>) -> anyhow::Result<()> {
        let is_due = |record: &std::io::Result<Spooled>| match (record, at) {
            (Ok(record), Some(at)) => record.at <= at,
            (Err(_), _) | (_, None) => true,
        };
        // Why writing failed, the end says.
        let has_failed = |timeline: &Option<Timeline>| timeline.as_ref().is_some_and(Timeline::has_failed);
        while !has_failed(&self.timeline)
            && let Some(record) = self.records.next_if(is_due)
        {
            self.take(record?)?;
        }
        Ok(())
    }

    fn take(&mut self, Spooled { file, at, text }: Spooled) -> anyhow::Result<()> {
        let of_run = |_: &usize| self.merging.run.covers(at);
        let Some(source) = self.of_files.get(file).copied().flatten().filter(of_run) else {
            self.elsewhere += 1;
            return Ok(());
        };
        let kind = self.merging.files[file].kind;
        if matches!(kind, Kind::Metrics | Kind::Tachometer) && !self.takes_metrics {
            self.left_out += 1;
            return Ok(());
        }
        if let Some((checks, to)) = self.begins.take() {
            let named: Vec<_> =
                self.sources.iter().map(|source| (source.name.clone(), source.kind)).collect();
            let meta = recording::meta(random(), random(), at, &named);
            self.timeline = Some(Timeline::new(&self.sources, checks, (to, &meta), at)?);
        }
        let text = Bytes::from(text);
        let payload = match (kind, &self.subject) {
            (Kind::RequestTraces, Some(subject)) => {
                Payload::Nats { subject: Arc::clone(subject), message: text }
            }
            (Kind::Log, _) => Payload::LogLine { log: Arc::clone(&self.names[file]), line: text },
            (Kind::ClientResults, _) => Payload::ClientResult { line: text },
            (Kind::Metrics, _) => Payload::Scrape { process: Arc::clone(&self.names[file]), text },
            (Kind::Tachometer, _) => {
                for response in self.responses.take(file, at, &text) {
                    self.response(response);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let Some(timeline) = &mut self.timeline else { return Ok(()) };
        timeline.take(source, at, payload);
        if (self.is_stopped)() {
            bail!("stopped while files were put together");
        }
        Ok(())
    }

    fn response(&mut self, Response { file, endpoint, at, text }: Response) {
        if let Some(source) = self.of_files.get(file).copied().flatten()
            && let Some(timeline) = &mut self.timeline
        {
            timeline.take(source, at, Payload::Scrape { process: endpoint, text: Bytes::from(text) });
        }
    }

    /// The state, how many records are of other runs, the file, and how many are left out.
    fn end(mut self) -> anyhow::Result<(Cluster, u64, File, u64)> {
        for response in self.responses.end() {
            self.response(response);
        }
        if self.responses.left_out > 0 {
            tracing::warn!(
                samples = self.responses.left_out,
                "of Tachometer's metrics some are left out: histograms whose sum it does not have, or too many in a response"
            );
        }
        let Some(timeline) = self.timeline else { bail!("no record is of this run") };
        let (cluster, file) = timeline.end()?;
        Ok((cluster, self.elsewhere, file, self.left_out))
    }
}

/// Whether a record of a recording is made anew from what the files say of requests.
fn is_derived(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::Decision(_)
            | Record::Progress { .. }
            | Record::Request(_)
            | Record::Reuse(_)
            | Record::ClientResult(_)
            | Record::InFlight { .. }
            | Record::BlockResidency { .. }
            | Record::Finding(_)
            | Record::Checked(_)
            | Record::Targets(_)
    )
}
