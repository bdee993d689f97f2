//! A recording as a whole: every decision with all that routers report of it, and the figures beside.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::Worker;
use crate::capture::Capture;
use crate::discovery::{Discovery, Role};
use crate::files;
use crate::metrics::{self, Histogram, Scrape};
use crate::router::{self, Decision, Fact};

/// Dynamo's histogram of the share of each prompt that the chosen worker held.
const HIT_RATE: &str = "dynamo_component_router_kv_hit_rate";

/// A recording.
#[derive(Default)]
pub struct Recording {
    /// Every decision, in order.
    pub decisions: Vec<Decision>,
    /// What its messages report.
    pub capture: Capture,
    /// What its discovery held.
    pub discovery: Discovery,
    /// Its scrapes, in order.
    pub scrapes: Vec<Scrape>,
    /// Time to first token and mean time between tokens, in milliseconds, of every request whose end a log reports.
    pub times_ms: Vec<(Option<f64>, Option<f64>)>,
    /// What its clients noted.
    pub clients: Vec<Client>,
}

/// A request as its client saw it.
#[derive(Clone, Debug)]
pub struct Client {
    /// The router's id of it.
    pub request_id: String,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of it that the engine reused.
    pub cached_tokens: Option<u64>,
    /// Where it ran; where prefill and decode are apart, where its prompt was computed.
    pub prefill_worker_id: Option<u64>,
    /// Where it ran, or was decoded.
    pub decode_worker_id: Option<u64>,
}

impl Recording {
    /// Reads a folder.
    ///
    /// # Errors
    /// When the messages or a frontend's log are missing, or something cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        let mut capture = Capture::read(&Self::messages(folder)?)?;
        let discovery = files::find(folder, &["discovery.jsonl.gz", "discovery.jsonl"]);
        let discovery = discovery.map(|path| Discovery::read(&path)).transpose()?.unwrap_or_default();
        for (&id, card) in &discovery.cards {
            // Ranks beyond the first are known by their messages.
            capture.pools.entry((id, 0)).or_insert_with(|| card.pool.clone());
        }
        if !discovery.cards.is_empty() {
            capture.leave(|worker| discovery.cards.get(&worker.0).is_some_and(|card| card.is_there));
        }
        let mut decisions = Vec::new();
        let logs = frontend_logs(folder)?;
        if logs.is_empty() {
            bail!("no frontend's log in {shown}");
        }
        let mut times_ms = Vec::new();
        for log in logs {
            let lines = files::lines(&log)?;
            decisions.extend(router::read(&lines));
            times_ms.extend(router::times(&lines));
        }
        decisions.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        let scrapes = files::find(folder, &["metrics.jsonl.gz", "cap.prom.jsonl.gz"]);
        let scrapes = scrapes.map(|path| metrics::read(&path)).transpose()?.unwrap_or_default();
        let mut clients = Vec::new();
        for names in [["traffic.jsonl.gz", "traffic.jsonl"], ["traffic2.jsonl.gz", "traffic2.jsonl"]] {
            let lines = files::find(folder, &names).map(|path| files::lines(&path)).transpose()?;
            clients.extend(lines.unwrap_or_default().iter().filter_map(|line| client(line)));
        }
        let block_size = block_size(&scrapes);
        router::hit_rates(&mut decisions, &capture.hit_rates);
        router::link(&mut decisions, &capture.pools, &discovery);
        router::added(&mut decisions, &capture.added, block_size);
        // Again, as messages may have named requests.
        router::link(&mut decisions, &capture.pools, &discovery);
        router::steps(&mut decisions, &capture);
        for decision in &mut decisions {
            let blocks =
                decision.isl_tokens.reported().zip(block_size).map(|(tokens, size)| tokens.div_ceil(size));
            decision.isl_blocks.or_reported(blocks);
            if decision.is_prompt_known && decision.overlap_blocks == Fact::NotReported {
                // What the worker held can be computed from the hashes, although no line counts it.
                decision.overlap_blocks = Fact::Unsure;
            }
            decision.part_only();
            decision.on_device();
        }
        Ok(Self { decisions, capture, discovery, scrapes, times_ms, clients })
    }

    /// The file of a folder's messages.
    pub(crate) fn messages(folder: &Path) -> Result<PathBuf> {
        let found = files::find(folder, &["nats.jsonl.gz", "cap.nats.jsonl.gz"]);
        found.with_context(|| format!("no recorded messages in {}", folder.display()))
    }

    /// Choices that the client's own notes contradict: another worker or length.
    pub fn contradicted(&self) -> (usize, usize) {
        let noted = self.clients.iter().flat_map(|client| {
            let is_of = |decision: &&Decision| decision.request_id.reported() == Some(&client.request_id);
            self.decisions.iter().filter(is_of).map(move |decision| (decision, client))
        });
        let is_contradicted = |(decision, client): &(&Decision, &Client)| {
            let isl = decision.isl_tokens.reported().zip(client.prompt_tokens.as_ref());
            let id = match decision.role {
                Role::Decode => client.decode_worker_id,
                Role::Prefill | Role::Aggregated => client.prefill_worker_id,
            };
            id.is_some_and(|id| id != decision.worker.0) || isl.is_some_and(|(a, b)| a != b)
        };
        let noted: Vec<_> = noted.collect();
        (noted.iter().filter(|pair| is_contradicted(pair)).count(), noted.len())
    }

    /// The routers' own histogram of hit rates at a moment at which it holds every decision so far, and how many decisions
    /// those are. Nothing after a query that ran nothing, which some versions count, and nothing where a decision's length
    /// or overlap is not reported.
    pub fn hit_rate(&self) -> Option<(usize, Histogram)> {
        let is_known = |decision: &Decision| {
            let is_said =
                decision.isl_blocks.reported().is_some() && decision.overlap_blocks.reported().is_some();
            is_said && decision.is_dispatched != Some(false) && decision.request_id != Fact::Unsure
        };
        let known = self.decisions.iter().take_while(|decision| is_known(decision)).count();
        let until_s = self.decisions.get(known).map_or(f64::INFINITY, |decision| decision.at_s);
        let mut of: BTreeMap<&str, Histogram> = BTreeMap::new();
        let mut found = None;
        for scrape in self.scrapes.iter().take_while(|scrape| scrape.at_s < until_s) {
            let Some(histogram) = scrape.histogram(HIT_RATE) else { continue };
            of.insert(&scrape.process, histogram);
            let total = of.values().fold(Histogram::default(), |sum, one| sum.plus(*one));
            let before = self.decisions.iter().filter(|decision| decision.at_s < scrape.at_s).count();
            if total.count > 0 && total.count == before as u64 {
                found = Some((before, total));
            }
        }
        found
    }

    /// Every worker that anything names, with its pool.
    pub fn workers(&self) -> BTreeMap<Worker, String> {
        let mut workers = self.capture.pools.clone();
        for decision in &self.decisions {
            workers.entry(decision.worker).or_default();
        }
        workers
    }

    /// Every pool that anything names.
    pub fn pools(&self) -> BTreeSet<&str> {
        self.capture.pools.values().map(String::as_str).collect()
    }

    /// A histogram over all of the recording, summed over processes whose name begins so.
    pub fn histogram(&self, name: &str, processes: &str) -> Option<Histogram> {
        let mut last = BTreeMap::new();
        for scrape in self.scrapes.iter().filter(|scrape| scrape.process.starts_with(processes)) {
            if let Some(histogram) = scrape.histogram(name) {
                last.insert(scrape.process.as_str(), histogram);
            }
        }
        last.into_values().reduce(Histogram::plus)
    }
}

/// The logs of a folder's frontends.
pub(crate) fn frontend_logs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("frontend") && (name.ends_with(".log.gz") || name.ends_with(".log")) {
            logs.push(path);
        }
    }
    logs.sort();
    Ok(logs)
}

fn block_size(scrapes: &[Scrape]) -> Option<u64> {
    let mut of = scrapes.iter().rev();
    let size = of.find_map(|scrape| scrape.gauge("dynamo_frontend_model_kv_cache_block_size"))?;
    (size >= 1.0).then_some(size as u64)
}

fn client(line: &str) -> Option<Client> {
    let line: Value = serde_json::from_str(line).ok()?;
    let worker = |of: &str| line["nvext"].as_array()?.iter().find_map(|part| part["worker_id"][of].as_u64());
    Some(Client {
        request_id: line["id"].as_str()?.strip_prefix("chatcmpl-")?.to_owned(),
        prompt_tokens: line["usage"]["prompt_tokens"].as_u64(),
        cached_tokens: line["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64(),
        prefill_worker_id: worker("prefill_worker_id"),
        decode_worker_id: worker("decode_worker_id"),
    })
}
