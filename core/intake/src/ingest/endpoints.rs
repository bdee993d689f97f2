//! Which worker an endpoint is that another router than Dynamo's names: one of the engines that are listened to, one of Dynamo's workers,
//! or one that only that router names.
//!
//! An engine is known by its host, and by its port too where several share the host. A worker of Dynamo in Kubernetes has an id that is made of the name of
//! its pod; so gets every other endpoint, of its address where it has no name. What an endpoint is called is recorded with its worker.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use indexmap::IndexMap;

use radixscope_dynamo::log_line::{Endpoint, GatewayChoice, LogRecord, PickerLine, PickerStep};
use radixscope_model::id::{Millis, Worker, WorkerId, WorkerIx};
use radixscope_model::record::Record;
use radixscope_state::per_worker::PerWorker;

use super::engines::MAX_RANK;
use super::{Context, Ingest, MentionKind, RequestSignal, Sink};

/// Component of endpoints that only another router names; their namespace is that of their pods.
const COMPONENT: &str = "endpoints";
/// What SGLang's gateway calls the model of workers that name none.
const UNKNOWN_MODEL: &str = "unknown";
/// Endpoints that are remembered by their address: more than a pool has.
const MAX_ADDRESSES: usize = 1 << 12;

/// What is known of endpoints.
#[derive(Default)]
pub(super) struct Endpoints {
    /// What was recorded of each worker's name.
    names: PerWorker<Option<Box<str>>>,
    /// By `ADDRESS:PORT`: lines of a choice name all endpoints again, and some lines have no more than that. Oldest first.
    by_address: IndexMap<Box<str>, WorkerIx, hashbrown::DefaultHashBuilder>,
    /// State of the engines that they were compared with: [`Engines::changes`](super::engines::Engines::changes).
    engines: u64,
}

/// The ids that Dynamo gives a worker in Kubernetes by the name of its pod: a hash of the standard library, in later versions cut so that it fits
/// a float, and whole, as in earlier ones.
fn ids_of_pod(name: &str) -> [WorkerId; 2] {
    const MASK: u64 = 0x001f_ffff_ffff_ffff;
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let whole = hasher.finish();
    [WorkerId(whole & MASK), WorkerId(whole)]
}

impl Ingest {
    /// Takes a line of a picker's log.
    pub(super) fn picker_line(
        &mut self,
        context: &Context<'_>,
        log: &str,
        (record, line): (&LogRecord<'_>, &PickerLine<'_>),
        at_ms: Millis,
        out: &mut dyn Sink,
    ) {
        let endpoints: Vec<Option<WorkerIx>> = match &line.step {
            PickerStep::Candidates(all) => {
                all.iter().map(|of| self.endpoint(context, &of.endpoint, at_ms, out)).collect()
            }
            PickerStep::Picked { endpoint: Some(endpoint), .. } => {
                vec![self.endpoint(context, endpoint, at_ms, out)]
            }
            PickerStep::Handled(address) => vec![self.endpoint_at(context, (address, None), at_ms, out)],
            PickerStep::Profile(_)
            | PickerStep::Scored { .. }
            | PickerStep::Picked { endpoint: None, .. } => Vec::new(),
        };
        let signal = RequestSignal::Picker { log, record, line, endpoints: &endpoints };
        out.observe(context.observed(self, signal));
    }

    /// Takes a line of SGLang's gateway, which names the chosen worker by its URL.
    pub(super) fn gateway_choice(
        &mut self,
        context: &Context<'_>,
        (record, choice): (&LogRecord<'_>, &GatewayChoice<'_>),
        at_ms: Millis,
        out: &mut dyn Sink,
    ) {
        let Some(worker) = self.endpoint_of_url(context, &choice.worker, at_ms, out) else { return };
        let model = choice.model.as_deref().filter(|model| *model != UNKNOWN_MODEL);
        let is_without = || out.cluster().worker(worker).is_some_and(|state| state.model.is_empty());
        if let Some(model) = model.filter(|_| is_without()) {
            out.record(context.entry(Record::Model { worker, name: model.into() }));
        }
        out.observe(context.observed(self, RequestSignal::GatewayChoice { record, choice, worker }));
    }

    /// The worker at a URL, of which nothing else is said.
    pub(super) fn endpoint_of_url(
        &mut self,
        context: &Context<'_>,
        url: &str,
        at_ms: Millis,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        let (_, place) = url.split_once("://").unwrap_or(("", url));
        let place = place.split(['/', '?', '#']).next().unwrap_or(place);
        // Data-parallel ranks have the same URL, with `@RANK` behind it.
        let (address, rank) = match place.rsplit_once('@').map(|(address, rank)| (address, rank.parse())) {
            Some((address, Ok(rank))) => (address, Some(rank)),
            _ => (place, None),
        };
        self.endpoint_at(context, (address, rank), at_ms, out)
    }

    /// The worker at `HOST:PORT`, of which nothing else is said but perhaps its rank.
    fn endpoint_at(
        &mut self,
        context: &Context<'_>,
        (address, rank): (&str, Option<u32>),
        at_ms: Millis,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        let known = self.endpoints.by_address.get(address).copied().filter(|_| rank.is_none());
        if let Some(worker) = known.filter(|&worker| out.cluster().worker(worker).is_some()) {
            return Some(worker);
        }
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let endpoint = Endpoint {
            address: Some(host.trim_matches(['[', ']']).into()),
            port: Some(port.into()),
            rank,
            ..Endpoint::default()
        };
        self.endpoint(context, &endpoint, at_ms, out)
    }

    /// The worker that an endpoint is, introduced if it is new. `None`: there are too many, which is counted.
    fn endpoint(
        &mut self,
        context: &Context<'_>,
        endpoint: &Endpoint<'_>,
        at_ms: Millis,
        out: &mut dyn Sink,
    ) -> Option<WorkerIx> {
        let (address, port) = (endpoint.address.as_deref(), endpoint.port.as_deref());
        let dp_rank = endpoint.rank.filter(|&rank| rank < MAX_RANK).unwrap_or(0);
        let socket = address.map(|host| match port.filter(|port| !port.is_empty()) {
            Some(port) if host.contains(':') => format!("[{host}]:{port}"),
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        });
        // Endpoints that have names have a port for each rank.
        let has_own_port = dp_rank == 0 || !endpoint.name.name.is_empty();
        let socket = socket.map(|socket| if has_own_port { socket } else { format!("{socket}@{dp_rank}") });
        let name = match (&*endpoint.name.namespace, &*endpoint.name.name) {
            (_, "") => socket.clone()?,
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        if std::mem::replace(&mut self.endpoints.engines, self.engines.changes()) != self.engines.changes() {
            self.endpoints.by_address.clear();
        }
        let known = socket.as_deref().and_then(|socket| self.endpoints.by_address.get(socket).copied());
        let is_same = |worker: &WorkerIx| {
            let named = self.endpoints.names.get(*worker).and_then(Option::as_deref);
            named == Some(&*name) && out.cluster().worker(*worker).is_some()
        };
        if let Some(worker) = known.filter(is_same) {
            self.interner.mention(worker, at_ms);
            return Some(worker);
        }
        let engine = address.and_then(|host| self.engines.at(host, port));
        let worker = match engine {
            Some((id, subject)) => {
                let (namespace, component) = (&*subject.namespace, &*subject.component);
                let context = context.of_component(namespace, component);
                self.mentioned(&context, Worker { id, dp_rank }, at_ms, MentionKind::Present, out)
            }
            None => {
                // The name of a pod that has several ports is that of its endpoint without the rank.
                let pod = endpoint.pod.as_deref().filter(|pod| !pod.is_empty());
                let ids = ids_of_pod(pod.unwrap_or(&name)).map(|id| Worker { id, dp_rank });
                let known = ids.into_iter().find(|id| self.interner.known(*id, out.cluster()).is_some());
                // Of a worker of Dynamo the component is known better elsewhere.
                let names = if known.is_some() { ("", "") } else { (&*endpoint.name.namespace, COMPONENT) };
                let context = context.of_component(names.0, names.1);
                self.mentioned(&context, known.unwrap_or(ids[0]), at_ms, MentionKind::Present, out)
            }
        }?;
        let known = self.endpoints.names.of(worker);
        if known.as_deref() != Some(&*name) {
            *known = Some((&*name).into());
            out.record(context.entry(Record::Endpoint { worker, name: (&*name).into() }));
        }
        if let Some(socket) = socket {
            let by_address = &mut self.endpoints.by_address;
            if by_address.len() >= MAX_ADDRESSES && !by_address.contains_key(&*socket) {
                by_address.shift_remove_index(0);
            }
            by_address.insert(socket.into(), worker);
        }
        Some(worker)
    }
}
