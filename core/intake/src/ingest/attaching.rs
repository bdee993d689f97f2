//! What ingest hands on to who attaches to running workers, and what it gives back.

use radixscope_dynamo::kv_event::{KvData, KvEvent, ResidencyDomain, StorageTier};
use radixscope_dynamo::tree_query::{QueryFailed, TreeResponse};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{Record, Topic};

use super::{Context, Ingest, Sink, Stream};
use crate::attach::TreeDumps;
use crate::command::Command;

impl Ingest {
    /// What sources are to do, since the last call.
    pub(crate) fn commands(&mut self) -> Vec<Command> {
        self.attach.commands()
    }

    /// Queries a worker for its blocks. `false`: its endpoint is unknown, or queries are off.
    pub(crate) fn request_dump(&mut self, worker: Worker) -> bool {
        self.interner.last_known(worker).is_some_and(|ix| self.attach.request_dump(ix, worker))
    }

    /// Which workers are asked for their blocks.
    pub(crate) fn set_tree_dumps(&mut self, mode: TreeDumps) {
        self.attach.set_tree_dumps(mode);
    }

    /// How often blocks are compared; `None`: never.
    pub(crate) fn set_verify_every(&mut self, every_ms: Option<u64>) {
        self.attach.set_verify_every(every_ms);
    }

    /// Looks after all workers that are attached to; call it after every flush.
    pub(crate) fn attend(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        self.attach.look_around();
        self.send_queries(at_ms, out);
        self.attach.record_recovered(at_ms, out);
        self.record_departures(at_ms, out);
        self.await_no_departed(out);
    }

    /// A break of a connection does not wait for publishers whose workers left before it.
    fn await_no_departed(&mut self, out: &dyn Sink) {
        for publisher_id in self.attach.departed_publishers(out.cluster()) {
            for source in (0..self.tallies.len() as u8).map(SourceIx) {
                for topic in [Topic::KvEvents, Topic::KvMetrics] {
                    self.publishers.left(Stream { source, topic, publisher_id });
                }
            }
        }
    }

    /// Sends the queries that are due.
    pub(super) fn send_queries(&mut self, at_ms: Millis, out: &mut dyn Sink) {
        self.attach.tick(at_ms, out);
    }

    /// A query was answered, or was not.
    pub(super) fn tree_response(
        &mut self,
        context: &Context<'_>,
        query: u64,
        outcome: &Result<TreeResponse, QueryFailed>,
        out: &mut dyn Sink,
    ) {
        if let Some(new) = self.attach.handle_response(query, outcome, context.received.at_ms, out) {
            self.worker(context, new, out);
        }
    }
}

/// An event that a response held already.
pub(super) fn skipped_event(worker: WorkerIx, event: &KvEvent) -> Record<'static> {
    let in_device_memory = event.tier == StorageTier::Device && event.domain == ResidencyDomain::Worker;
    let (stored, removed) = match &event.data {
        KvData::Stored { blocks, .. } if in_device_memory => (Some(blocks.len() as u32), None),
        KvData::Removed { hashes } if in_device_memory => (None, Some(hashes.len() as u32)),
        _ => (None, None),
    };
    Record::SkippedEvent { worker, stored, removed }
}
