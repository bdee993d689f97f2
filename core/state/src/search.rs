//! Finding a block, a worker or a decision by whatever a person has at hand: what a text may mean, and what the state has
//! of it. Pure; knows no screen.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::tree::NodeId;
use radixscope_model::id::{BlockHash, DecisionId, PoolIx, TokensHash, WorkerIx};
use radixscope_model::number_format::count;
use radixscope_model::sort;

/// Longest text that is looked at, in bytes: ids of requests are shorter by far.
pub const MAX_TEXT: usize = 256;
/// Shortest beginning of a request id that is looked for, in characters: nearly every id begins with some one letter.
pub const MIN_REQUEST: usize = 2;

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
    /// Number of a worker as the page labels it: `W3` is the third worker seen.
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
        query.worker = worker(text);
        query.label = text.strip_prefix(['W', 'w']).and_then(decimal).and_then(|number| {
            let at = u16::try_from(number.checked_sub(1)?).ok()?;
            Some(WorkerIx(at))
        });
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
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        for &(hash, written) in &self.hashes {
            parts.push(match written {
                Written::Decimal => "block hash or tokens hash".to_owned(),
                Written::Signed => format!("block hash or tokens hash, unsigned {hash}"),
                Written::Hex => format!("block hash or tokens hash, decimal {hash}"),
            });
        }
        parts.extend(self.label.map(|label| format!("worker W{}", label.at() + 1)));
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
pub enum Found {
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
    /// A worker.
    Worker(WorkerIx),
    /// A decision that is kept.
    Decision(DecisionId),
}

/// What was found: blocks by their engines' hash, blocks by tokens hash, workers, decisions with the newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// In this order.
    pub found: Vec<Found>,
    /// There is more than was asked for.
    pub is_cut: bool,
}

/// Looks for up to `most` things. Linear in the tree where the text is a hash.
pub fn find(cluster: &Cluster, query: &Query, most: usize) -> Answer {
    let mut found = Vec::new();
    for &(hash, _) in &query.hashes {
        found.extend(blocks(cluster, BlockHash(hash)));
    }
    // One more than wanted tells that there is more. Exact names of others keep a place.
    let exact: Vec<Found> = workers(cluster, query).into_iter().chain(decision(cluster, query)).collect();
    let room = (most + 1).saturating_sub(found.len() + exact.len());
    let mut by_tokens = Vec::new();
    for &(hash, _) in &query.hashes {
        for (pool, tree) in cluster.trees() {
            let nodes = tree.find_tokens(TokensHash(hash), room.saturating_sub(by_tokens.len()));
            by_tokens.extend(nodes.into_iter().map(|node| Found::Tokens { pool, node }));
        }
    }
    found.append(&mut by_tokens);
    found.extend(exact);
    let room = (most + 1).saturating_sub(found.len());
    found.extend(requests(cluster, query, room));
    let is_cut = found.len() > most;
    found.truncate(most);
    Answer { found, is_cut }
}

/// Each block that some worker calls so, with those who do: a hash means something only within its worker.
fn blocks(cluster: &Cluster, hash: BlockHash) -> Vec<Found> {
    let mut by_node: BTreeMap<(PoolIx, NodeId), Vec<WorkerIx>> = BTreeMap::new();
    for (at, worker) in cluster.workers().iter().enumerate() {
        let at = WorkerIx(at as u16);
        if let Some(node) = cluster.tree(worker.pool).find(at, hash) {
            by_node.entry((worker.pool, node)).or_default().push(at);
        }
    }
    let mut found: Vec<((PoolIx, NodeId), Vec<WorkerIx>)> = by_node.into_iter().collect();
    sort::sort_by_key(&mut found, |((pool, node), workers)| {
        (!cluster.tree(*pool).is_attached(*node), workers.first().copied())
    });
    found.into_iter().map(|((pool, node), workers)| Found::Block { pool, node, workers }).collect()
}

fn workers(cluster: &Cluster, query: &Query) -> Vec<Found> {
    let is_meant = |at: WorkerIx| {
        let by_id = query.worker.is_some_and(|(id, rank)| {
            cluster
                .worker(at)
                .is_some_and(|w| w.id.id.0 == id && rank.is_none_or(|rank| rank == w.id.dp_rank))
        });
        by_id || query.label == Some(at)
    };
    (0..cluster.workers().len() as u16).map(WorkerIx).filter(|&at| is_meant(at)).map(Found::Worker).collect()
}

fn decision(cluster: &Cluster, query: &Query) -> Option<Found> {
    query.decision.filter(|&id| cluster.decisions().get(id).is_some()).map(Found::Decision)
}

fn requests(cluster: &Cluster, query: &Query, most: usize) -> Vec<Found> {
    let Some(begin) = query.request.as_deref() else { return Vec::new() };
    let begins = |id: &str| id.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin));
    let of = cluster.decisions().newest_first().filter(|decided| {
        decided.decision.request_id.as_deref().is_some_and(begins)
            && Some(decided.decision.id) != query.decision
    });
    of.take(most).map(|decided| Found::Decision(decided.decision.id)).collect()
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
