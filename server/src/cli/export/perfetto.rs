//! Requests as slices per worker, in the trace event format that ui.perfetto.dev opens: queue, prefill and decode, one after
//! the other on a lane of their worker. A phase with unknown times has no slice.

use std::collections::BTreeMap;
use std::io::{Result, Write};

use serde::Serialize;
use serde_json::{Value, json};

use radixscope_model::id::Worker;
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// A phase of a request: name, begin and end in microseconds of Unix time.
type Slice = (&'static str, u64, u64);

/// A worker of the trace: its process id there, and when each of its lanes is free again.
struct Lanes {
    number: usize,
    free_us: Vec<u64>,
}

/// A trace that is being written.
pub(super) struct Trace<W: Write> {
    to: W,
    workers: BTreeMap<Worker, Lanes>,
    is_empty: bool,
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: usize,
    tid: usize,
    ts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    args: &'a Value,
}

impl<W: Write> Trace<W> {
    /// Begins a trace.
    pub(super) fn begin(mut to: W) -> Result<Self> {
        to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
        Ok(Self { to, workers: BTreeMap::new(), is_empty: true })
    }

    /// Writes the slices of a request on the worker that it was sent to.
    pub(super) fn request(&mut self, cluster: &Cluster, decided: &DecisionEntry) -> Result<()> {
        let Some(worker) = cluster.worker(decided.decision.worker).map(|state| state.id) else {
            return Ok(());
        };
        let slices = slices(decided);
        let decided_us = decided.decided_ms().0.saturating_mul(1_000);
        let begin_us = slices.first().map_or(decided_us, |&(_, begin, _)| begin);
        let end_us = slices.last().map_or(decided_us + 1, |&(.., end)| end);
        let (pid, tid) = self.lane(worker, begin_us, end_us)?;
        let decision = &decided.decision;
        let args = json!({
            "decision": decision.id,
            "request_id": decision.request_id.as_ref().map(ToString::to_string),
            "isl_tokens": decision.isl_tokens,
            "overlap_blocks": decided.overlap_blocks(),
            "output_tokens": decided.progress.output_tokens,
            "outcome": decided.progress.outcome,
        });
        if slices.is_empty() {
            return self.event(&Event {
                name: "decision",
                ph: "i",
                pid,
                tid,
                ts: decided_us,
                dur: None,
                args: &args,
            });
        }
        for (name, begin, end) in slices {
            self.event(&Event { name, ph: "X", pid, tid, ts: begin, dur: Some(end - begin), args: &args })?;
        }
        Ok(())
    }

    /// A lane of the worker that is free at that time.
    fn lane(&mut self, worker: Worker, begin_us: u64, end_us: u64) -> Result<(usize, usize)> {
        let number = self.workers.len() + 1;
        if !self.workers.contains_key(&worker) {
            let name = json!({ "name": format!("worker {worker}") });
            self.event(&Event {
                name: "process_name",
                ph: "M",
                pid: number,
                tid: 0,
                ts: 0,
                dur: None,
                args: &name,
            })?;
        }
        let lanes = self.workers.entry(worker).or_insert(Lanes { number, free_us: Vec::new() });
        let free = lanes.free_us.iter().position(|&free| free <= begin_us);
        let lane = free.unwrap_or(lanes.free_us.len());
        match lanes.free_us.get_mut(lane) {
            Some(free) => *free = end_us,
            None => lanes.free_us.push(end_us),
        }
        Ok((lanes.number, lane + 1))
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if !std::mem::take(&mut self.is_empty) {
            self.to.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut self.to, event)?)
    }

    /// Ends the trace.
    pub(super) fn end(mut self) -> Result<()> {
        self.to.write_all(b"\n]}\n")?;
        self.to.flush()
    }
}

/// Queue until the decision, prefill until the first token, decode until the end; phases with unknown times are omitted.
fn slices(decided: &DecisionEntry) -> Vec<Slice> {
    let progress = &decided.progress;
    let decided_us = decided.decided_ms().0.saturating_mul(1_000);
    let arrived_us = progress.queue_us.map(|queue| decided_us.saturating_sub(queue));
    let reported = progress.first_token_ms.map(|at| at.0.saturating_mul(1_000));
    let measured = || Some(arrived_us?.saturating_add(progress.ttft_us?));
    let first_us = reported.or_else(measured);
    let ended_us = progress.ended_ms.map(|at| at.0.saturating_mul(1_000));
    let known = [
        ("queue", arrived_us, Some(decided_us)),
        ("prefill", Some(decided_us), first_us),
        ("decode", first_us, ended_us),
    ];
    let slice = |(name, begin, end): (&'static str, Option<u64>, Option<u64>)| {
        let (begin, end) = (begin?, end?);
        (begin <= end).then_some((name, begin, end))
    };
    known.into_iter().filter_map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Millis, Seq, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Progress, Record};

    fn cluster(progress: &[Progress]) -> Cluster {
        let mut cluster = Cluster::new(100);
        let worker = WorkerIx(0);
        let mut records = vec![Record::new_worker(worker, Worker::new(7, 0), "dynamo", "backend")];
        for (id, &progress) in (1..).map(DecisionId).zip(progress) {
            records.push(Record::Decision(Box::new(Decision::new(id, worker, DecisionSource::Log))));
            records.push(Record::Progress { decision: id, progress: Box::new(progress) });
        }
        for (seq, record) in (1..).zip(records) {
            cluster.fold(Seq(seq), &Entry { at_ms: Millis(1_000), record });
        }
        cluster
    }

    fn trace(cluster: &Cluster) -> Vec<Value> {
        let mut out = Vec::new();
        let mut trace = Trace::begin(&mut out).unwrap();
        for decided in cluster.decisions().newest_first().rev() {
            trace.request(cluster, decided).unwrap();
        }
        trace.end().unwrap();
        let mut trace: Value = serde_json::from_slice(&out).unwrap();
        trace["traceEvents"].as_array_mut().unwrap().drain(..).collect()
    }

    #[test]
    fn a_request_is_queued_prefilled_and_decoded_one_after_the_other() {
        let progress = Progress {
            first_token_ms: Some(Millis(1_200)),
            ended_ms: Some(Millis(3_000)),
            queue_us: Some(50_000),
            ..Progress::default()
        };
        let events = trace(&cluster(&[progress]));
        let slices: Vec<_> = events[1..]
            .iter()
            .map(|e| (e["name"].as_str().unwrap(), e["ts"].as_u64(), e["dur"].as_u64()))
            .collect();
        let wanted = [
            ("queue", Some(950_000), Some(50_000)),
            ("prefill", Some(1_000_000), Some(200_000)),
            ("decode", Some(1_200_000), Some(1_800_000)),
        ];
        assert_eq!(slices, wanted);
        assert_eq!(events[0]["args"]["name"], "worker 7/0");
    }

    #[test]
    fn what_is_not_known_has_no_slice_and_what_overlaps_another_lane() {
        let whole = Progress {
            first_token_ms: Some(Millis(1_100)),
            ended_ms: Some(Millis(2_000)),
            ..Progress::default()
        };
        let events = trace(&cluster(&[Progress::default(), whole, whole]));
        let names: Vec<_> = events[1..].iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["decision", "prefill", "decode", "prefill", "decode"]);
        assert_ne!(events[2]["tid"], events[4]["tid"], "two requests at once");
        assert_eq!(events[2]["pid"], events[4]["pid"]);
    }
}
