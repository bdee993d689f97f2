//! What is asked for over HTTP: a process's metrics, and a frontend's list of workers.

use super::instances::{List, ListKind};
use super::interner::ranks_of;
use super::{Context, Ingest, MentionKind, Sink, within_bounds};
use radixscope_dynamo::discovery::Instance;
use radixscope_dynamo::error::{DecodeError, Faults};
use radixscope_dynamo::health::Health;
use radixscope_dynamo::prometheus::Server;
use radixscope_dynamo::{health, prometheus};
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{
    DepartureCause, MissedCause, PolicyClasses, Record, RoleEvidence, Scrape, Topic, WorkerFigures,
};
use radixscope_state::cluster::Cluster;

/// Longest name of a process, in characters; what is longer is cut.
const MAX_NAME_CHARS: usize = 128;

impl Ingest {
    pub(super) fn scrape(
        &mut self,
        context: &Context<'_>,
        process: &str,
        text: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Faults> {
        within_bounds(text)?;
        let (scraped, understood) = prometheus::decode(text);
        let Some(scraped) = scraped else { return understood };
        let at_ms = context.received.at_ms;
        let mut workers = Vec::with_capacity(scraped.workers.len());
        for routed in &scraped.workers {
            let mention = self.mentioned(context, routed.worker, at_ms, MentionKind::Weak, out);
            if let Some(worker) = mention {
                workers.push(routed.named(worker));
                if let Some(role) = routed.role {
                    self.role(context, worker, role, RoleEvidence::Metrics, out);
                }
            }
        }
        for of in &scraped.states {
            for rank in ranks_or_first(of.id, out.cluster()) {
                let mention = self.mentioned(context, rank, at_ms, MentionKind::Weak, out);
                let Some(worker) = mention else { continue };
                let ix = workers.iter().position(|known| known.worker == worker).unwrap_or_else(|| {
                    workers.push(WorkerFigures::new(worker));
                    workers.len() - 1
                });
                let known = &mut workers[ix];
                (known.state, known.model) = (Some(of.state), of.model);
                known.role = known.role.or(of.role);
            }
        }
        for server in &scraped.servers {
            if let Some(worker) = self.endpoint_of_url(context, &server.url, at_ms, out) {
                let Server { requests: active_requests, is_healthy: registered, .. } = *server;
                workers.push(WorkerFigures { active_requests, registered, ..WorkerFigures::new(worker) });
            }
        }
        // Of a text of which a part was not understood, a worker may be missing.
        let listed = understood.is_ok().then(|| workers_of(&scraped)).flatten();
        let classes = scraped.policy_classes;
        let scraped = self.scrapes.scraped(Scrape {
            engine: scraped.engine,
            // An engine without Dynamo has no id of its own.
            instance: scraped.instance.or_else(|| self.engines.worker_id(process).map(|id| id.0)),
            is_whole: understood.is_ok(),
            gauges: scraped.gauges,
            counters: scraped.counters,
            histograms: scraped.histograms,
            models: scraped.models,
            workers,
            ranks: scraped.ranks,
            queues: scraped.queues,
            ..Scrape::new(shortened(process), scraped.role)
        });
        match scraped {
            Some(scraped) => {
                let run = scraped.restarts;
                out.record(context.entry(Record::Scrape(Box::new(scraped))));
                if out.cluster().policy_classes_of(shortened(process)) != classes {
                    let news = PolicyClasses { process: shortened(process).to_owned(), classes };
                    out.record(context.entry(Record::PolicyClasses(Box::new(news))));
                }
                if let Some((health, kind)) = listed {
                    let list = List { frontend: shortened(process), kind, run };
                    self.listed(context, list, &health, out);
                }
            }
            None => self.tallies[context.received.source.at()].miss(
                None,
                Topic::Metrics,
                MissedCause::TooManyProcesses,
                1,
            ),
        }
        understood
    }

    pub(super) fn health(
        &mut self,
        context: &Context<'_>,
        frontend: &str,
        response: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        within_bounds(response)?;
        let Some(health) = health::decode(response)? else { return Ok(()) };
        // A frontend that started anew is not distinguished from one that did not; one that has not looked around says so.
        let list = List { frontend: shortened(frontend), kind: ListKind::Instances, run: 0 };
        self.listed(context, list, &health, out);
        self.attach.query_endpoints(list.frontend, &health.query_endpoints);
        Ok(())
    }

    /// Takes a frontend's list of workers.
    fn listed(&mut self, context: &Context<'_>, list: List<'_>, health: &Health, out: &mut dyn Sink) {
        let Some(changes) = self.instances.listed(list, context.received.at_ms, health) else { return };
        let why =
            if list.kind == ListKind::Instances { DepartureCause::Health } else { DepartureCause::Metrics };
        for new in changes.new {
            let context = context.of_component(&new.namespace, &new.component);
            for rank in ranks_or_first(new.instance_id, out.cluster()) {
                self.worker(&context, rank, out);
            }
        }
        // Where discovery is read it decides: a frontend's list follows it.
        for id in changes.departed.into_iter().filter(|id| self.discovered.is_there(*id) != Some(true)) {
            for (_, worker) in ranks_of(id, out.cluster()) {
                out.record(context.entry(Record::Left { worker, why }));
            }
        }
        for id in changes.returned.into_iter().filter(|id| self.discovered.is_there(*id) != Some(false)) {
            for (_, worker) in ranks_of(id, out.cluster()) {
                out.record(context.entry(Record::Rejoined { worker }));
            }
        }
    }
}

/// The known ranks of a worker; the first one where none is.
pub(super) fn ranks_or_first(id: WorkerId, cluster: &Cluster) -> Vec<Worker> {
    let mut ranks: Vec<Worker> = ranks_of(id, cluster).into_iter().map(|(id, _)| id).collect();
    if ranks.is_empty() {
        ranks.push(Worker { id, dp_rank: 0 });
    }
    ranks
}

/// The workers that a frontend's router knows, by its own gauges. `None`: unknown, which an empty list alone
/// does not: it may just not be filled yet.
fn workers_of(scraped: &prometheus::Scraped) -> Option<(Health, ListKind)> {
    let instance = |id| Instance::worker(id, "", "");
    let list = |ids: &mut dyn Iterator<Item = WorkerId>| Health {
        is_ready: true,
        workers: ids.map(instance).collect(),
        query_endpoints: Vec::new(),
    };
    if !scraped.states.is_empty() || scraped.discovered == Some(0) {
        let known = &mut scraped.states.iter().map(|of| of.id);
        return Some((list(known), ListKind::RouterStates));
    }
    let mut ids: Vec<WorkerId> = scraped
        .workers
        .iter()
        .filter(|worker| worker.registered == Some(true))
        .map(|w| w.worker.id)
        .collect();
    ids.dedup();
    (!ids.is_empty()).then(|| (list(&mut ids.into_iter()), ListKind::Registered))
}

pub(super) fn shortened(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME_CHARS).map_or(name, |(end, _)| &name[..end])
}
