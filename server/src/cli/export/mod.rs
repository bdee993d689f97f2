//! `radixscope export FILE`: converts a recording for other tools: decisions as CSV, JSON or Parquet on standard output,
//! requests as slices for Perfetto, or everything as one recording file or HTML report.

pub(super) mod html;
mod perfetto;

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Stdout, Write};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};

use radixscope_export::rows::{DecisionsCsv, decision_row};
use radixscope_model::id::Millis;
use radixscope_recording::FoldStep;
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::Failure;
use crate::config::{DecisionsAs, Export};
use crate::recording::{DecisionsParquet, FinishedDecisions, copy, open};
use perfetto::Trace;

/// Folds the recording and writes each decision after its request has ended.
pub(super) fn run(options: &Export) -> Result<ExitCode, Failure> {
    let is_folded = options.decisions.is_some() || options.perfetto.is_some();
    if !is_folded && options.recording.is_none() && options.html.is_none() {
        return Err(Failure::Usage(anyhow!(
            "nothing to export: give --decisions, --perfetto, --recording or --html"
        )));
    }
    let mut series = open(&options.recordings).map_err(Failure::Usage)?;
    if let Some(to) = &options.recording {
        let copied = copy(&mut series, to, options.redact).with_context(|| to.display().to_string());
        copied.map_err(Failure::Failed)?;
    }
    if let Some(path) = &options.html {
        html::write(path, &mut series, (options.from, options.to)).map_err(Failure::Failed)?;
    }
    if !is_folded {
        return Ok(ExitCode::SUCCESS);
    }
    let mut outputs = Outputs::open(options).map_err(Failure::Usage)?;
    let mut ended = FinishedDecisions::default();
    let mut last_ms = Millis(0);
    let folded = series.play(&mut |step| match step {
        FoldStep::Record { entry, .. } => ended.note(entry),
        FoldStep::Batch { message, after, .. } if message.at_ms.since(last_ms) >= 1_000 => {
            last_ms = message.at_ms;
            ended.drain_finished(message.at_ms, after, |decided| outputs.write(after, decided));
        }
        _ => {}
    });
    let folded = folded.map_err(|error| Failure::Failed(error.into()))?;
    ended.drain_all(&folded.cluster, |decided| outputs.write(&folded.cluster, decided));
    if let Some(damaged) = folded.damaged {
        tracing::warn!(%damaged, "the recording is damaged; the readable part is exported");
    }
    outputs.end().map_err(Failure::Failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The open outputs.
struct Outputs {
    decisions: Option<Decisions>,
    trace: Option<Trace<BufWriter<File>>>,
    written: u64,
    /// The first write error; nothing is written after it.
    failed: Option<std::io::Error>,
}

/// Decisions on standard output.
enum Decisions {
    Csv(Box<DecisionsCsv<Stdout>>),
    Json(BufWriter<Stdout>),
    Parquet(Box<DecisionsParquet<Stdout>>),
}

impl Decisions {
    fn begin(form: DecisionsAs) -> anyhow::Result<Self> {
        let out = std::io::stdout();
        Ok(match form {
            DecisionsAs::Csv => Self::Csv(Box::new(DecisionsCsv::begin(out)?)),
            DecisionsAs::Json => {
                let mut to = BufWriter::new(out);
                to.write_all(b"[")?;
                Self::Json(to)
            }
            DecisionsAs::Parquet if out.is_terminal() => {
                return Err(anyhow!(
                    "Parquet is binary: redirect it to a file, as in '--decisions parquet > decisions.parquet'"
                ));
            }
            DecisionsAs::Parquet => Self::Parquet(Box::new(DecisionsParquet::begin(out)?)),
        })
    }
}

impl Outputs {
    fn open(options: &Export) -> anyhow::Result<Self> {
        let decisions = options.decisions.map(Decisions::begin).transpose()?;
        let trace = options.perfetto.as_ref().map(|path| {
            let open = || Ok(Trace::begin(BufWriter::new(File::create(path)?))?);
            let opened: anyhow::Result<_> = open();
            opened.with_context(|| path.display().to_string())
        });
        Ok(Self { decisions, trace: trace.transpose()?, written: 0, failed: None })
    }

    fn write(&mut self, cluster: &Cluster, decided: &DecisionEntry) {
        if self.failed.is_none() {
            self.failed = self.try_write(cluster, decided).err();
        }
    }

    fn try_write(&mut self, cluster: &Cluster, decided: &DecisionEntry) -> std::io::Result<()> {
        match &mut self.decisions {
            Some(Decisions::Csv(to)) => to.push(cluster, decided)?,
            Some(Decisions::Json(to)) => {
                if let Some(row) = decision_row(cluster, decided) {
                    to.write_all(if self.written == 0 { b"\n" } else { b",\n" })?;
                    serde_json::to_writer(to, &row)?;
                }
            }
            Some(Decisions::Parquet(file)) => file.push(cluster, decided)?,
            None => {}
        }
        self.written += 1;
        match &mut self.trace {
            Some(trace) => trace.request(cluster, decided),
            None => Ok(()),
        }
    }

    fn end(self) -> anyhow::Result<()> {
        if let Some(failed) = self.failed {
            return Err(failed.into());
        }
        match self.decisions {
            Some(Decisions::Csv(to)) => to.end()?,
            Some(Decisions::Json(mut to)) => {
                to.write_all(b"\n]\n")?;
                to.flush()?;
            }
            Some(Decisions::Parquet(file)) => file.end()?.flush()?,
            None => {}
        }
        self.trace.map_or(Ok(()), |trace| Ok(trace.end()?))
    }
}
