//! What is asked for over HTTP: a process's metrics, and a frontend's list of workers.

use std::borrow::Cow;

use super::{Context, Ingest, Mention, Message, Sink, within_bounds};
use crate::dynamo::error::{DecodeError, Faults};
use crate::dynamo::subject::{Subject, Transport};
use crate::dynamo::{health, prometheus};
use crate::id::Worker;
use crate::record::{GoneWhy, MissedCause, Record, Scrape, Topic, WorkerFigures};

/// Longest name of a process, in characters; what is longer is cut.
const MAX_NAME_CHARS: usize = 128;

impl Ingest {
    pub(super) fn metrics(
        &mut self,
        message: &Message<'_>,
        process: &str,
        out: &mut dyn Sink,
    ) -> Result<(), Faults> {
        within_bounds(message)?;
        let (scraped, understood) = prometheus::decode(message.payload);
        let Some(scraped) = scraped else { return understood };
        let context = Context::without_subject(message, Topic::Metrics);
        let mut workers = Vec::with_capacity(scraped.workers.len());
        for said in &scraped.workers {
            let mention = self.mentioned(&context, said.id, message.at_ms, Mention::Weak, out);
            if let Some(worker) = mention {
                let &prometheus::RoutedWorker { decode_blocks, prefill_tokens, registered, .. } = said;
                workers.push(WorkerFigures { worker, decode_blocks, prefill_tokens, registered });
            }
        }
        let scraped = self.scrapes.scraped(Scrape {
            process: Cow::Borrowed(shortened(process)),
            role: scraped.role,
            instance: scraped.instance,
            is_whole: understood.is_ok(),
            gauges: scraped.gauges.into(),
            counters: scraped.counters.into(),
            histograms: scraped.histograms,
            models: scraped.models,
            workers: workers.into(),
            ranks: scraped.ranks.into(),
        });
        match scraped {
            Some(scraped) => out.record(context.entry(Record::Scrape(scraped))),
            None => {
                self.tallies[message.source.at()].miss(None, Topic::Metrics, MissedCause::TooManyProcesses, 1)
            }
        }
        understood
    }

    pub(super) fn health(
        &mut self,
        message: &Message<'_>,
        frontend: &str,
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        within_bounds(message)?;
        let Some(health) = health::decode(message.payload)? else { return Ok(()) };
        let Some(changes) = self.instances.listed(shortened(frontend), message.at_ms, &health) else {
            return Ok(());
        };
        for new in changes.new {
            let (namespace, component) = (new.namespace.as_str(), new.component.as_str());
            let transport = Transport::Core;
            let subject = Subject { topic: Topic::Health, namespace, component, endpoint: "", transport };
            let context = Context { subject, ..Context::without_subject(message, Topic::Health) };
            let mut ranks: Vec<Worker> =
                self.interner.ranks_of(new.id).into_iter().map(|(id, _)| id).collect();
            if ranks.is_empty() {
                ranks.push(Worker { id: new.id, dp_rank: 0 });
            }
            for rank in ranks {
                self.worker(&context, rank, out);
            }
        }
        let context = Context::without_subject(message, Topic::Health);
        for id in changes.gone {
            for (_, worker) in self.interner.ranks_of(id) {
                out.record(context.entry(Record::Gone { worker, why: GoneWhy::Health }));
            }
        }
        for id in changes.returned {
            for (_, worker) in self.interner.ranks_of(id) {
                out.record(context.entry(Record::Returned { worker }));
            }
        }
        Ok(())
    }
}

fn shortened(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME_CHARS).map_or(name, |(end, _)| &name[..end])
}
