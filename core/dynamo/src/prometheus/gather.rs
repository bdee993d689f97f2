//! Samples, gathered into figures: the best name of each, summed over labels. A figure of which a sample is bad is left
//! out: what is left of it would be wrong.

use std::collections::BTreeMap;

use super::alias::{
    self, AIBRIX_ONLY, Alias, ClassValue, FRONTEND, Hint, LabelCondition, MetricMeaning, ModelValue,
    QueueValue, RankValue, ServerValue, WorkerValue,
};
use super::buckets::{Buckets, HistogramSeries};
use super::line::Sample;
use super::{DecodeError, Faults, Reason, RouterWorkerState, Scraped, Server, whole};
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{
    Counter, Engine, Gauge, HistogramKind, MAX_CLASS_BYTES, ModelFigures, PolicyClassFigures, ProcessRole,
    QueueFigures, RankFigures, Role, RoutingState, WorkerFigures,
};

/// Most models of a frontend, workers of a frontend, and ranks of a worker.
const MAX_MODELS: usize = 256;
const MAX_WORKERS: usize = 4_096;
const MAX_RANKS: usize = 256;
/// Most queues of a frontend: one a model and role.
const MAX_QUEUES: usize = 4 * MAX_MODELS;
/// Most classes of policy of a frontend, each with its role.
const MAX_CLASSES: usize = 64;
/// Longest URL of an engine that a router other than Dynamo's names.
const MAX_URL_BYTES: usize = 256;
/// The class of a router that was given none.
const DEFAULT_CLASS: &str = "default";
/// The label of the worker that a router's metric is about.
const ROUTER_WORKER: &str = "router_worker_id";

/// What the samples so far come to.
#[derive(Default)]
pub(super) struct Gather<'t> {
    /// A frontend's own prefix, with its underscore, where it is not Dynamo's.
    prefix: Option<&'t str>,
    samples: u64,
    hint: Option<Hint>,
    engine: Option<Engine>,
    instance: Option<u64>,
    router: Option<u64>,
    gauges: BTreeMap<Gauge, Best<f64>>,
    counters: BTreeMap<Counter, Best<f64>>,
    histograms: BTreeMap<HistogramKind, Best<Buckets>>,
    models: Vec<ModelFigures>,
    workers: BTreeMap<Worker, WorkerFigures<Worker>>,
    states: BTreeMap<WorkerId, RouterWorkerState>,
    discovered: Option<u64>,
    servers: BTreeMap<String, Server>,
    queues: Vec<QueueFigures>,
    are_queues_bad: bool,
    classes: BTreeMap<(String, Option<Role>), PolicyClassFigures>,
    are_classes_bad: bool,
    /// Names of models in labels, by the index that workers and queues have until all models are known.
    names: Vec<String>,
    ranks: Vec<(RankFigures, RankSources)>,
}

/// A figure under the best of its names so far.
struct Best<T> {
    rank: u8,
    figure: T,
    is_bad: bool,
}

/// Ranks of the names that a rank's figures came from.
#[derive(Clone, Copy, Default)]
struct RankSources {
    usage: u8,
    used: u8,
    total: u8,
}

/// The place for a name of this rank; `None`: a better one was seen.
fn place<K: Ord, T: Default>(map: &mut BTreeMap<K, Best<T>>, key: K, rank: u8) -> Option<&mut Best<T>> {
    let new = || Best { rank, figure: T::default(), is_bad: false };
    let best = map.entry(key).or_insert_with(new);
    if rank < best.rank {
        *best = new();
    }
    (best.rank == rank).then_some(best)
}

impl<'t> Gather<'t> {
    pub(super) fn new(prefix: Option<&'t str>) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Samples taken, of known metrics and others.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes one sample. Of a metric that we do not know nothing can be wrong.
    pub(super) fn take(&mut self, sample: &Sample<'_>, faults: &mut Faults) {
        self.samples += 1;
        self.identify(sample);
        let name = self.canonical(&sample.name);
        let (base, part) = match HistogramSeries::of(&name) {
            Some((base, part)) => (base, Some(part)),
            None => (&*name, None),
        };
        let (mut matched, mut is_counted) = (false, false);
        for alias in
            alias::aliases_of(&name).filter(|alias| !matches!(alias.means, MetricMeaning::Histogram(_)))
        {
            let is_it = has_labels(alias, sample);
            matched |= is_it;
            if let Err(error) = self.figure(alias, sample, is_it) {
                self.spoil(alias);
                // A sample is one fault, however many figures it is of.
                if !std::mem::replace(&mut is_counted, true) {
                    count(faults, error);
                }
            }
        }
        for alias in
            alias::aliases_of(base).filter(|alias| matches!(alias.means, MetricMeaning::Histogram(_)))
        {
            let Some(part) = part.filter(|_| has_labels(alias, sample)) else { continue };
            if let Err(error) = self.bucket(alias, part, sample) {
                self.spoil(alias);
                count(faults, error);
            }
        }
        self.hint = self.hint.max(alias::hint(&name, matched));
        self.engine = self.engine.or_else(|| alias::engine(&name));
    }

    /// A line about this metric could not be read.
    pub(super) fn bad_line(&mut self, name: &str) {
        let name = self.canonical(name);
        let base = HistogramSeries::of(&name).map_or(&*name, |(base, _)| base);
        for alias in alias::aliases_of(&name).chain(alias::aliases_of(base)) {
            self.spoil(alias);
        }
    }

    /// A frontend's metric under Dynamo's own prefix.
    fn canonical<'n>(&self, name: &'n str) -> std::borrow::Cow<'n, str> {
        match self.prefix.and_then(|prefix| name.strip_prefix(prefix)) {
            Some(rest) => format!("{FRONTEND}{rest}").into(),
            None => name.into(),
        }
    }

    /// A process's own id: hexadecimal at its components' metrics, decimal at its router's (≥ 1.0, reference §4.3).
    fn identify(&mut self, sample: &Sample<'_>) {
        if self.instance.is_none() && sample.name.starts_with("dynamo_component_") {
            let id = sample.label("worker_id").filter(|id| id.len() <= 16);
            self.instance = id.and_then(|id| u64::from_str_radix(id, 16).ok());
        }
        if self.router.is_none() && sample.name.starts_with("dynamo_router_") {
            self.router = sample.label("router_id").and_then(|id| id.parse().ok());
        }
    }

    fn figure(&mut self, alias: &Alias, sample: &Sample<'_>, is_it: bool) -> Result<(), DecodeError> {
        if let (MetricMeaning::Count(counter), false) = (alias.means, is_it) {
            // The metric is there, under other labels: of ours there were none yet, which is known. With a label that ours must
            // not have it is about something else.
            if !alias.labels.iter().any(|(_, is)| *is == LabelCondition::Absent) {
                place(&mut self.counters, counter, alias.rank);
            }
            return Ok(());
        }
        if !is_it {
            return Ok(());
        }
        let value = sane(sample)?;
        match alias.means {
            MetricMeaning::Value(gauge) => {
                if let Some(best) = place(&mut self.gauges, gauge, alias.rank) {
                    best.figure += value;
                }
            }
            MetricMeaning::Count(counter) => {
                if let Some(best) = place(&mut self.counters, counter, alias.rank) {
                    best.figure += value;
                }
            }
            MetricMeaning::Histogram(_) => {}
            MetricMeaning::Model(of) => self.model(of, sample, value)?,
            MetricMeaning::Worker(of) => self.worker(of, sample, value)?,
            MetricMeaning::Rank(of) => self.rank(of, alias.rank, sample, value)?,
            MetricMeaning::State => self.state(sample, value)?,
            MetricMeaning::Queue(of) => self.queue(of, sample, value)?,
            MetricMeaning::Class(of) => self.class(of, sample, value)?,
            MetricMeaning::Server(of) => self.server(of, sample, value)?,
            MetricMeaning::Discovered => {
                self.discovered = Some(self.discovered.unwrap_or(0) + number(sample, value)?);
            }
        }
        Ok(())
    }

    fn state(&mut self, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let Some(id) = sample.label(ROUTER_WORKER) else { return Err(missing(sample, ROUTER_WORKER)) };
        let id = WorkerId(id.parse().map_err(|_| wrong(sample, ROUTER_WORKER))?);
        let state = match (sample.label("state"), sample.label("reason")) {
            _ if value == 0.0 => return Ok(()),
            (Some("available"), _) => RoutingState::Available,
            (Some("pending"), _) => RoutingState::Pending,
            (Some("excluded"), Some("unavailable")) => RoutingState::Unavailable,
            // Of states that are not known yet nothing follows.
            _ => RoutingState::Excluded,
        };
        if self.states.len() == MAX_WORKERS && !self.states.contains_key(&id) {
            return Err(too_many("workers", MAX_WORKERS));
        }
        let (role, model) = (role_of(sample), self.name_of_model(sample));
        let known = self.states.entry(id).or_insert(RouterWorkerState { id, state, role, model });
        // Of several pools of one router the best counts.
        if state > known.state {
            *known = RouterWorkerState { id, state, role: role.or(known.role), model: model.or(known.model) };
        }
        Ok(())
    }

    fn queue(&mut self, of: QueueValue, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let value = number(sample, value)?;
        let (role, model) = (role_of(sample), self.name_of_model(sample));
        let ix = match self.queues.iter().position(|queue| (queue.role, queue.model) == (role, model)) {
            Some(ix) => ix,
            None if self.queues.len() == MAX_QUEUES => return Err(too_many("queues", MAX_QUEUES)),
            None => {
                self.queues.push(QueueFigures { model, role, requests: None, prompt_tokens: None });
                self.queues.len() - 1
            }
        };
        let known = match of {
            QueueValue::Requests => &mut self.queues[ix].requests,
            QueueValue::PromptTokens => &mut self.queues[ix].prompt_tokens,
        };
        // Queues of several classes of policy are one.
        *known = Some(known.unwrap_or(0).saturating_add(value));
        Ok(())
    }

    /// Up to 1.4 there are no classes.
    fn class(&mut self, of: ClassValue, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let Some(class) = sample.label("policy_class") else { return Ok(()) };
        if class.is_empty() || class.len() > MAX_CLASS_BYTES {
            let problem = format!("policy_class: expected 1 to {MAX_CLASS_BYTES} bytes");
            return Err(DecodeError::new(Reason::TooLarge, problem));
        }
        let (value, key) = (number(sample, value)?, (class.to_owned(), role_of(sample)));
        if self.classes.len() == MAX_CLASSES && !self.classes.contains_key(&key) {
            return Err(too_many("classes of policy", MAX_CLASSES));
        }
        let (class, role) = key.clone();
        let new = || PolicyClassFigures { class, role, ..PolicyClassFigures::default() };
        let known = self.classes.entry(key).or_insert_with(new);
        let figure = match of {
            ClassValue::QueuedRequests => &mut known.queued_requests,
            ClassValue::QueuedTokens => &mut known.queued_tokens,
            ClassValue::Received => &mut known.received,
            ClassValue::Refused => &mut known.refused,
        };
        // Models and reasons are one.
        *figure = Some(figure.unwrap_or(0).saturating_add(value));
        Ok(())
    }

    fn server(&mut self, of: ServerValue, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let value = number(sample, value)?;
        let Some(url) = sample.label("server") else { return Err(missing(sample, "server")) };
        if url.is_empty() || url.len() > MAX_URL_BYTES {
            let problem = format!("server: expected 1 to {MAX_URL_BYTES} bytes");
            return Err(DecodeError::new(Reason::TooLarge, problem));
        }
        if self.servers.len() == MAX_WORKERS && !self.servers.contains_key(url) {
            return Err(too_many("servers", MAX_WORKERS));
        }
        let new = || Server { url: url.to_owned(), requests: None, is_healthy: None };
        let known = self.servers.entry(url.to_owned()).or_insert_with(new);
        match of {
            ServerValue::Requests => known.requests = Some(value),
            ServerValue::IsHealthy => known.is_healthy = Some(value > 0),
        }
        Ok(())
    }

    /// Index into `names` of the model in a label. `None`: the label is missing, or there are more models than are kept apart.
    fn name_of_model(&mut self, sample: &Sample<'_>) -> Option<u16> {
        let name = sample.label("model")?;
        let known = self.names.iter().position(|known| known == name);
        let ix = known.or_else(|| {
            (self.names.len() < MAX_MODELS).then(|| {
                self.names.push(name.to_owned());
                self.names.len() - 1
            })
        });
        ix.and_then(|ix| u16::try_from(ix).ok())
    }

    fn bucket(
        &mut self,
        alias: &Alias,
        part: HistogramSeries,
        sample: &Sample<'_>,
    ) -> Result<(), DecodeError> {
        let MetricMeaning::Histogram(kind) = alias.means else { return Ok(()) };
        let Some(best) = place(&mut self.histograms, kind, alias.rank) else { return Ok(()) };
        best.figure.take(part, sample.label("le"), sane(sample)?)
    }

    fn model(&mut self, of: ModelValue, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let Some(name) = sample.label("model") else { return Err(missing(sample, "model")) };
        let value = number(sample, value)?;
        let ix = match self.models.iter().position(|model| model.name == name) {
            Some(ix) => ix,
            None if self.models.len() == MAX_MODELS => return Err(too_many("models", MAX_MODELS)),
            None => {
                self.models.push(ModelFigures {
                    name: name.to_owned(),
                    block_size_tokens: None,
                    total_kv_blocks: None,
                    max_num_seqs: None,
                    max_num_batched_tokens: None,
                    context_length: None,
                });
                self.models.len() - 1
            }
        };
        let model = &mut self.models[ix];
        match of {
            ModelValue::BlockSize => model.block_size_tokens = u32::try_from(value).ok(),
            ModelValue::TotalBlocks => model.total_kv_blocks = Some(value),
            ModelValue::MaxSeqs => model.max_num_seqs = Some(value),
            ModelValue::MaxBatchedTokens => model.max_num_batched_tokens = Some(value),
            ModelValue::ContextLength => model.context_length = Some(value),
        }
        Ok(())
    }

    fn worker(&mut self, of: WorkerValue, sample: &Sample<'_>, value: f64) -> Result<(), DecodeError> {
        let label = if of == WorkerValue::Registered { ROUTER_WORKER } else { "worker_id" };
        let Some(id) = sample.label(label) else { return Err(missing(sample, label)) };
        let id: u64 = id.parse().map_err(|_| wrong(sample, label))?;
        let worker = Worker::new(id, dp_rank(sample, &["dp_rank"])?);
        let value = number(sample, value)?;
        if self.workers.len() == MAX_WORKERS && !self.workers.contains_key(&worker) {
            return Err(too_many("workers", MAX_WORKERS));
        }
        let known = self.workers.entry(worker).or_insert_with(|| WorkerFigures::new(worker));
        known.role = role_of(sample).or(known.role);
        match of {
            WorkerValue::DecodeBlocks => known.decode_blocks = Some(value),
            WorkerValue::PrefillTokens => known.prefill_tokens = Some(value),
            WorkerValue::Registered => known.registered = Some(value > 0),
            WorkerValue::ActiveRequests => {
                known.active_requests = Some(known.active_requests.unwrap_or(0).saturating_add(value));
            }
        }
        Ok(())
    }

    fn rank(
        &mut self,
        of: RankValue,
        source: u8,
        sample: &Sample<'_>,
        value: f64,
    ) -> Result<(), DecodeError> {
        let dp_rank = dp_rank(sample, &["dp_rank", "engine"])?;
        let ix = match self.ranks.iter().position(|(known, _)| known.dp_rank == dp_rank) {
            Some(ix) => ix,
            None if self.ranks.len() == MAX_RANKS => return Err(too_many("ranks", MAX_RANKS)),
            None => {
                let none = RankFigures { dp_rank, kv_usage: None, used_blocks: None, total_blocks: None };
                self.ranks.push((none, RankSources::default()));
                self.ranks.len() - 1
            }
        };
        let (known, sources) = &mut self.ranks[ix];
        match of {
            RankValue::Usage if value > 1.0 => {
                let text = format!("{}: {value} is no share of a cache", sample.name);
                return Err(DecodeError::new(Reason::WrongType, text));
            }
            RankValue::Usage => better(&mut known.kv_usage, &mut sources.usage, source, value),
            RankValue::UsedBlocks => {
                better(&mut known.used_blocks, &mut sources.used, source, number(sample, value)?);
            }
            RankValue::TotalBlocks => {
                better(&mut known.total_blocks, &mut sources.total, source, number(sample, value)?);
            }
            RankValue::TotalBlocksInLabel => {
                // Before the engine has measured its memory it is `None`.
                if let Some(blocks) = sample.label("num_gpu_blocks").and_then(|blocks| blocks.parse().ok()) {
                    better(&mut known.total_blocks, &mut sources.total, source, blocks);
                }
            }
        }
        Ok(())
    }

    fn spoil(&mut self, alias: &Alias) {
        match alias.means {
            MetricMeaning::Value(gauge) => mark(place(&mut self.gauges, gauge, alias.rank)),
            MetricMeaning::Count(counter) => mark(place(&mut self.counters, counter, alias.rank)),
            MetricMeaning::Histogram(kind) => mark(place(&mut self.histograms, kind, alias.rank)),
            // Each of these is a figure of its own: the others are right.
            MetricMeaning::Model(_)
            | MetricMeaning::Worker(_)
            | MetricMeaning::Rank(_)
            | MetricMeaning::State
            | MetricMeaning::Server(_)
            | MetricMeaning::Discovered => {}
            // These are sums over classes of policy.
            MetricMeaning::Queue(_) => self.are_queues_bad = true,
            MetricMeaning::Class(_) => self.are_classes_bad = true,
        }
    }

    /// The figures.
    pub(super) fn finish(mut self, faults: &mut Faults) -> Scraped {
        if self.hint != Some(Hint::Aibrix) {
            self.counters.retain(|_, best| best.rank != AIBRIX_ONLY);
        }
        let mut histograms = Vec::new();
        for (kind, best) in self.histograms.into_iter().filter(|(_, best)| !best.is_bad) {
            match best.figure.finish(kind) {
                Ok(histogram) => histograms.push(histogram),
                Err(error) => count(faults, error),
            }
        }
        let named: Vec<Option<u16>> = self.names.iter().map(|name| model_of(&self.models, name)).collect();
        let model = |name: Option<u16>| name.and_then(|name| *named.get(usize::from(name))?);
        let queues = self.queues.iter().filter(|_| !self.are_queues_bad);
        let has_classes = self.classes.keys().any(|(class, _)| class != DEFAULT_CLASS);
        let classes = if has_classes && !self.are_classes_bad { self.classes } else { BTreeMap::new() };
        let is_other_router = matches!(self.hint, Some(Hint::ProductionStack | Hint::Aibrix));
        Scraped {
            role: match self.hint {
                Some(Hint::Frontend) => ProcessRole::Frontend,
                Some(Hint::Engine | Hint::Handler) => ProcessRole::Worker,
                Some(Hint::Router) => ProcessRole::Router,
                Some(Hint::ProductionStack) => ProcessRole::ProductionStackRouter,
                Some(Hint::Aibrix) => ProcessRole::AibrixGateway,
                None => ProcessRole::Other,
            },
            engine: self.engine.filter(|_| !is_other_router),
            instance: self.instance.or(self.router),
            gauges: good(self.gauges),
            counters: good(self.counters),
            histograms,
            models: self.models,
            workers: self.workers.into_values().collect(),
            ranks: self.ranks.into_iter().map(|(rank, _)| rank).collect(),
            queues: queues.map(|of| QueueFigures { model: model(of.model), ..*of }).collect(),
            policy_classes: classes.into_values().collect(),
            states: self
                .states
                .values()
                .map(|of| RouterWorkerState { model: model(of.model), ..*of })
                .collect(),
            discovered: self.discovered,
            servers: self.servers.into_values().collect(),
        }
    }
}

/// The model of a name in a label. Some metrics write it in small letters.
fn model_of(models: &[ModelFigures], name: &str) -> Option<u16> {
    let exactly = models.iter().position(|model| model.name == name);
    let found = exactly.or_else(|| models.iter().position(|model| model.name.eq_ignore_ascii_case(name)));
    found.and_then(|ix| u16::try_from(ix).ok())
}

fn good<K>(figures: BTreeMap<K, Best<f64>>) -> Vec<(K, f64)> {
    figures.into_iter().filter(|(_, best)| !best.is_bad).map(|(key, best)| (key, best.figure)).collect()
}

fn mark<T>(best: Option<&mut Best<T>>) {
    if let Some(best) = best {
        best.is_bad = true;
    }
}

/// Takes a value from a better source, or from the same if it is larger (several engines of one rank).
fn better<T: PartialOrd>(known: &mut Option<T>, known_source: &mut u8, source: u8, value: T) {
    let is_better = match known {
        None => true,
        Some(_) if source < *known_source => true,
        Some(known) => source == *known_source && value > *known,
    };
    if is_better {
        *known = Some(value);
        *known_source = source;
    }
}

fn has_labels(alias: &Alias, sample: &Sample<'_>) -> bool {
    alias.labels.iter().all(|(name, is)| match (sample.label(name), is) {
        (Some(value), LabelCondition::Text(text)) => value == *text,
        (Some(value), LabelCondition::Not(texts)) => !texts.contains(&value),
        (value, LabelCondition::Besides(text)) => value != Some(*text),
        (value, LabelCondition::Absent) => value.is_none(),
        (None, _) => false,
    })
}

/// A value that can be counted with: no metric of ours is negative or without bounds.
fn sane(sample: &Sample<'_>) -> Result<f64, DecodeError> {
    if sample.value.is_finite() && sample.value >= 0.0 {
        return Ok(sample.value);
    }
    Err(DecodeError::new(Reason::WrongType, format!("{} cannot be {}", sample.name, sample.value)))
}

fn number(sample: &Sample<'_>, value: f64) -> Result<u64, DecodeError> {
    whole(value).ok_or_else(|| {
        DecodeError::new(Reason::WrongType, format!("{}: {value} is no whole number", sample.name))
    })
}

fn dp_rank(sample: &Sample<'_>, labels: &[&str]) -> Result<u32, DecodeError> {
    match labels.iter().find_map(|label| sample.label(label)) {
        None => Ok(0),
        Some(rank) => rank.parse().map_err(|_| wrong(sample, labels[0])),
    }
}

/// What the router takes a worker for.
fn role_of(sample: &Sample<'_>) -> Option<Role> {
    sample.label("worker_type").and_then(Role::of)
}

fn missing(sample: &Sample<'_>, label: &str) -> DecodeError {
    DecodeError::new(Reason::MissingField, format!("{} without the label {label}", sample.name))
}

fn wrong(sample: &Sample<'_>, label: &str) -> DecodeError {
    DecodeError::new(Reason::WrongType, format!("{}: the label {label} is no number", sample.name))
}

fn too_many(what: &str, most: usize) -> DecodeError {
    DecodeError::new(Reason::TooLarge, format!("more than {most} {what}"))
}

fn count(faults: &mut Faults, error: DecodeError) {
    faults.count(error.reason, || error);
}
