//! Finding a block, a worker or a decision by whatever a person has at hand: what a text may mean, and what the state has
//! of it. Pure; knows no screen.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::cluster::Cluster;
use crate::hash_part::HashPart;
use crate::tree::NodeId;
use radixscope_model::id::{BlockHash, DecisionId, PoolIx, TokensHash, WorkerIx};
use radixscope_model::number_format::count;

/// Longest text that is looked at, in bytes: ids of requests are shorter by far.
pub const MAX_TEXT: usize = 256;
/// Shortest beginning of a request id that is looked for, in characters: nearly every id begins with some one letter.
pub const MIN_REQUEST: usize = 2;

/// Most results of a kind that are looked at one by one; those beyond are counted.
const MOST: usize = 10_000;

/// How a number was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Decimal.
    Decimal,
    /// Decimal below 0, as engines print hashes that they keep in signed numbers: the same 64 bits.
    Signed,
    /// Hexadecimal.
    Hex,
}

/// What a text may mean: any of these at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    /// Hashes. Sixteen digits without a letter are both a decimal and a hexadecimal number.
    pub hashes: Vec<(u64, Written)>,
    /// Digits of a hash, four or more.
    pub part: Option<HashPart>,
    /// Number of a worker as the page labels it.
    pub label: Option<WorkerIx>,
    /// Id of a worker, with a rank or without.
    pub worker: Option<(u64, Option<u32>)>,
    /// Number of a decision.
    pub decision: Option<DecisionId>,
    /// Beginning of a request's id.
    pub request: Option<String>,
}

impl Query {
    /// Reads a text; whatever it is, there is no error. Nothing of it understood is the default.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let mut query = Query::default();
        if text.is_empty() || text.len() > MAX_TEXT {
            return query;
        }
        if let Some(number) = text.strip_prefix('#') {
            query.decision = decimal(number.trim()).map(DecisionId);
            return query;
        }
        query.hashes = hashes(text);
        query.part = HashPart::parse(text);
        query.worker = worker(text);
        query.label = WorkerIx::of_label(text);
        query.decision = decimal(text).map(DecisionId);
        let is_id = text.chars().count() >= MIN_REQUEST && !text.chars().any(char::is_whitespace);
        query.request = is_id.then(|| text.to_owned());
        query
    }

    /// Whether the text means nothing that could be looked for.
    pub fn is_empty(&self) -> bool {
        *self == Query::default()
    }

    /// What was understood, in words.
    pub fn to_text(&self) -> String {
        let mut parts = Vec::new();
        for &(hash, written) in &self.hashes {
            parts.push(match written {
                Written::Decimal => "block hash or tokens hash".to_owned(),
                Written::Signed => format!("block hash or tokens hash, unsigned {hash}"),
                Written::Hex => format!("block hash or tokens hash, decimal {hash}"),
            });
        }
        parts.extend(self.part.as_ref().map(|_| "part of a block hash or tokens hash".to_owned()));
        parts.extend(self.label.map(|label| format!("worker {label}")));
        parts.extend(self.worker.map(|(_, rank)| match rank {
            Some(rank) => format!("worker id with rank {rank}"),
            None => "worker id".to_owned(),
        }));
        parts.extend(self.decision.map(|_| "number of a decision".to_owned()));
        parts.extend(self.request.as_ref().map(|_| "beginning of a request id".to_owned()));
        match parts.split_last() {
            None => String::new(),
            Some((only, [])) => only.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }
}

fn decimal(text: &str) -> Option<u64> {
    // `parse` alone would take a leading plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn hexadecimal(text: &str) -> Option<u64> {
    let is_hex = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn hashes(text: &str) -> Vec<(u64, Written)> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hexadecimal(digits).map(|hash| (hash, Written::Hex)).into_iter().collect();
    }
    if let Some(digits) = text.strip_prefix('-') {
        let signed = decimal(digits).and_then(|_| text.parse::<i64>().ok());
        return signed.map(|hash| (hash.cast_unsigned(), Written::Signed)).into_iter().collect();
    }
    // As the page writes them: sixteen digits, nothing before them.
    let bare = (text.len() == 16).then(|| hexadecimal(text)).flatten();
    let decimal = decimal(text).map(|hash| (hash, Written::Decimal));
    decimal.into_iter().chain(bare.map(|hash| (hash, Written::Hex))).collect()
}

fn worker(text: &str) -> Option<(u64, Option<u32>)> {
    match text.split_once('/') {
        None => Some((decimal(text)?, None)),
        Some((id, rank)) => Some((decimal(id)?, Some(decimal(rank)?.try_into().ok()?))),
    }
}

/// Something that was looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SearchHit {
    /// A block that these workers call so.
    Block {
        /// In which pool's tree.
        pool: PoolIx,
        /// Where it is.
        node: NodeId,
        /// Who calls it so; all of them hold it.
        workers: Vec<WorkerIx>,
    },
    /// A block whose tokens have this hash.
    Tokens {
        /// In which pool's tree.
        pool: PoolIx,
        /// Where it is.
        node: NodeId,
    },
    /// A block of which one of the hashes has the digits.
    Part {
        /// In which pool's tree.
        pool: PoolIx,
        /// Where it is.
        node: NodeId,
        /// The hash.
        hash: u64,
        /// It is the tokens hash; else what an engine calls the block.
        is_tokens: bool,
    },
    /// A worker.
    Worker(WorkerIx),
    /// A decision that is kept.
    Decision(DecisionId),
}

/// What was found: blocks by their engines' hash, blocks by tokens hash, workers and the decision named, blocks by a part of
/// a hash with those that begin with it first, decisions of requests with the newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchResult {
    /// Those asked for, in this order.
    pub found: Vec<SearchHit>,
    /// How many there are.
    pub total: usize,
}

/// Looks for things and gives those of a range. Linear in the tree where the text is a hash or a part of one.
pub fn find(cluster: &Cluster, query: &Query, range: Range<usize>) -> SearchResult {
    let mut found = Vec::new();
    for &(hash, _) in &query.hashes {
        found.extend(blocks(cluster, BlockHash(hash)));
    }
    for &(hash, _) in &query.hashes {
        for (pool, tree) in cluster.trees() {
            let nodes = tree.find_tokens(TokensHash(hash), MOST);
            found.extend(nodes.into_iter().map(|node| SearchHit::Tokens { pool, node }));
        }
    }
    found.extend(workers(cluster, query));
    found.extend(decision(cluster, query));
    let beyond = parts(cluster, query, &mut found);
    found.extend(requests(cluster, query));
    let total = found.len() + beyond;
    let found = found.into_iter().skip(range.start).take(range.len()).collect();
    SearchResult { found, total }
}

/// Adds the blocks of which a hash has the digits; gives how many there are beyond the most that are looked at.
fn parts(cluster: &Cluster, query: &Query, found: &mut Vec<SearchHit>) -> usize {
    let Some(part) = &query.part else { return 0 };
    let mut parts = Vec::new();
    let mut beyond = 0;
    for (pool, tree) in cluster.trees() {
        tree.each_hash(|node, hash, is_tokens| {
            let is_found = query.hashes.iter().any(|&(exact, _)| exact == hash);
            let Some(place) = part.place_in(hash).filter(|_| !is_found) else { return };
            if parts.len() < MOST {
                parts.push((place, is_tokens, hash, pool, node));
            } else {
                beyond += 1;
            }
        });
    }
    parts.sort();
    // Workers may share a name that is not the first one's.
    parts.dedup();
    found.extend(parts.into_iter().map(|(_, is_tokens, hash, pool, node)| SearchHit::Part {
        pool,
        node,
        hash,
        is_tokens,
    }));
    beyond
}

/// Each block that some worker calls so, with those who do: a hash means something only within its worker.
fn blocks(cluster: &Cluster, hash: BlockHash) -> Vec<SearchHit> {
    let mut by_node: BTreeMap<(PoolIx, NodeId), Vec<WorkerIx>> = BTreeMap::new();
    for (ix, worker) in cluster.workers().indexed() {
        if let Some(node) = cluster.tree(worker.pool).find(ix.slot(), hash) {
            by_node.entry((worker.pool, node)).or_default().push(ix);
        }
    }
    let mut found: Vec<((PoolIx, NodeId), Vec<WorkerIx>)> = by_node.into_iter().collect();
    found.sort_by_key(|((pool, node), workers)| {
        (!cluster.tree(*pool).is_attached(*node), workers.first().copied())
    });
    found.into_iter().map(|((pool, node), workers)| SearchHit::Block { pool, node, workers }).collect()
}

fn workers(cluster: &Cluster, query: &Query) -> Vec<SearchHit> {
    let is_meant = |at: WorkerIx| {
        let by_id = query.worker.is_some_and(|(id, rank)| {
            cluster
                .worker(at)
                .is_some_and(|w| w.id.id.0 == id && rank.is_none_or(|rank| rank == w.id.dp_rank))
        });
        by_id || query.label == Some(at)
    };
    cluster.workers().indices().filter(|&worker| is_meant(worker)).map(SearchHit::Worker).collect()
}

fn decision(cluster: &Cluster, query: &Query) -> Option<SearchHit> {
    query.decision.filter(|&id| cluster.decisions().get(id).is_some()).map(SearchHit::Decision)
}

fn requests(cluster: &Cluster, query: &Query) -> Vec<SearchHit> {
    let Some(begin) = query.request.as_deref() else { return Vec::new() };
    let begins = |id: &str| id.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin));
    let of = cluster.decisions().newest_first().filter(|decided| {
        decided.decision.request_id.as_deref().is_some_and(begins)
            && Some(decided.decision.id) != query.decision
    });
    of.take(MOST).map(|decided| SearchHit::Decision(decided.decision.id)).collect()
}

/// Where was looked, and what could not be found: what to say when there is nothing.
pub fn looked_through(cluster: &Cluster) -> String {
    let (totals, decisions) = (cluster.totals(), cluster.decisions());
    let mut text = format!(
        "Looked through distinct blocks: {}, blocks that wait for a parent: {}, workers: {}, decisions: {} retained of {} received.",
        count(totals.nodes),
        count(totals.unattached),
        count(cluster.workers().len() as u64),
        count(decisions.newest_first().len() as u64),
        count(decisions.totals().count)
    );
    if totals.hidden > 0 {
        text += &format!(
            " {} cached blocks are beyond the limit of {} and cannot be found.",
            count(totals.hidden),
            count(cluster.limit_nodes().into())
        );
    }
    text
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
