//! `GET /api/v1/tree`: a subtree with its chains compressed, bounded in elements and levels.
//!
//! The text is written while walking: a nested value built first would be dropped and serialised by recursion, and
//! depth comes from outside.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};

use radixscope_core::cluster::{Cluster, touched_ms};
use radixscope_core::id::{BlockHash, WorkerIx};
use radixscope_core::tree::{NodeId, Step, Tree};

use super::params::{Params, WorkerFilter};
use crate::http::error::{ApiError, code};
use crate::hub::Hub;

const DEFAULT_LIMIT: u64 = 1_000;
const MAX_LIMIT: u64 = 100_000;
/// Levels of nesting unless asked otherwise: each is an array and an object, and common JSON readers stop at 128.
const DEFAULT_LEVELS: u64 = 60;
const MAX_LEVELS: u64 = 10_000;

#[derive(Clone, Copy)]
struct Wanted {
    root: Option<BlockHash>,
    filter: Option<WorkerFilter>,
    levels: usize,
    limit: u64,
}

pub(super) async fn tree(State(hub): State<Hub>, uri: Uri) -> Result<Response, ApiError> {
    let params = Params::of(&uri, &["worker", "root", "depth", "limit"])?;
    let wanted = Wanted {
        root: params.u64("root")?.map(BlockHash),
        filter: params.worker()?,
        levels: params.within("depth", 1, MAX_LEVELS)?.unwrap_or(DEFAULT_LEVELS) as usize,
        limit: params.within("limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT),
    };
    let json = hub.read(move |view| of(view.cluster, view.at_ms.0, wanted)).await??;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

fn of(cluster: &Cluster, at_ms: u64, wanted: Wanted) -> Result<String, ApiError> {
    let tree = cluster.tree();
    let workers = wanted.filter.map(|filter| filter.among(cluster)).transpose()?;
    let root = match wanted.root {
        None => NodeId::ROOT,
        Some(hash) => {
            let found = match &workers {
                Some(workers) => workers.iter().find_map(|&w| tree.find(w, hash)),
                None => tree.find_any(hash),
            };
            found.ok_or_else(|| {
                let whose = if workers.is_some() { "that worker holds" } else { "any worker holds" };
                ApiError::new(code::NOT_FOUND, format!("root={hash} is no block that {whose}"))
            })?
        }
    };
    let counts = Counts::below(tree, root, workers.as_deref());
    let mut writer = Writer { cluster, counts, json: String::new(), left: wanted.limit, truncated: false };
    let _ = write!(writer.json, "{{\"seq\":{},\"at_ms\":{at_ms},\"root\":", cluster.seq());
    match wanted.root {
        Some(hash) => {
            let _ = write!(writer.json, "\"{hash}\"");
        }
        None => writer.json.push_str("null"),
    }
    let _ = write!(writer.json, ",\"blocks\":{},\"children\":[", writer.counts.blocks[0]);
    writer.elements(root, wanted.levels);
    let truncated = writer.truncated;
    let _ = write!(writer.json, "],\"truncated\":{truncated}}}");
    Ok(writer.json)
}

/// Per node of a subtree, by its place in pre-order.
struct Counts {
    /// Blocks in its subtree that a worker in question holds, itself included.
    blocks: Vec<u32>,
    /// Nodes in its subtree, itself included.
    nodes: Vec<u32>,
    /// Children with at least one such block below them.
    branches: Vec<u32>,
}

impl Counts {
    fn below(tree: &Tree, root: NodeId, workers: Option<&[WorkerIx]>) -> Self {
        let is_held = |node: NodeId| {
            let owners = tree.owners(node);
            workers.map_or(!owners.is_empty(), |workers| workers.iter().any(|&w| owners.contains(w)))
        };
        let mut counts = Self { blocks: Vec::new(), nodes: Vec::new(), branches: Vec::new() };
        let mut path: Vec<usize> = Vec::new();
        for step in tree.walk(root) {
            match step {
                Step::Enter { node, .. } => {
                    path.push(counts.blocks.len());
                    counts.blocks.push(u32::from(is_held(node)));
                    counts.nodes.push(1);
                    counts.branches.push(0);
                }
                Step::Leave { .. } => {
                    let Some(at) = path.pop() else { break };
                    if let Some(&above) = path.last() {
                        counts.blocks[above] += counts.blocks[at];
                        counts.nodes[above] += counts.nodes[at];
                        counts.branches[above] += u32::from(counts.blocks[at] > 0);
                    }
                }
            }
        }
        counts
    }
}

/// A node and its place in pre-order.
#[derive(Clone, Copy)]
struct Place {
    node: NodeId,
    at: usize,
}

struct Writer<'c> {
    cluster: &'c Cluster,
    counts: Counts,
    json: String,
    /// Elements that may still be written.
    left: u64,
    truncated: bool,
}

/// An element whose children are being written.
struct Open {
    /// Children that are not yet written, last first.
    rest: Vec<Place>,
    /// Whether one was written before.
    has_child: bool,
}

impl Writer<'_> {
    /// Writes the elements below [`NodeId::ROOT`], or the one element that `root` begins.
    fn elements(&mut self, root: NodeId, levels: usize) {
        let first = Place { node: root, at: 0 };
        let rest = match root {
            NodeId::ROOT => self.children(first),
            _ => vec![first],
        };
        let mut open = vec![Open { rest, has_child: false }];
        while let Some(level) = open.last_mut() {
            let Some(next) = level.rest.pop() else {
                open.pop();
                if !open.is_empty() {
                    self.json.push_str("]}");
                }
                continue;
            };
            if self.left == 0 {
                self.truncated = true;
                level.rest.clear();
                continue;
            }
            if std::mem::replace(&mut level.has_child, true) {
                self.json.push(',');
            }
            let end = self.element(next);
            let mut rest = self.children(end);
            if open.len() >= levels && !rest.is_empty() {
                self.truncated = true;
                rest.clear();
            }
            open.push(Open { rest, has_child: false });
        }
    }

    /// Writes the chain that begins at `first` up to its children, and gives its last block.
    fn element(&mut self, first: Place) -> Place {
        self.left -= 1;
        let tree = self.cluster.tree();
        let owners = tree.owners_key(first.node);
        let (mut end, mut len, mut touched) = (first, 1u32, tree.touched(first.node));
        while self.counts.branches[end.at] == 1
            && let Some(next) = self.children(end).pop()
            && tree.owners_key(next.node) == owners
        {
            end = next;
            len += 1;
            touched = touched.max(tree.touched(next.node));
        }
        let _ = write!(
            self.json,
            "{{\"block_hash\":\"{}\",\"tokens_hash\":\"{}\",\"len\":{len},\"last_block_hash\":\"{}\",\"workers\":[",
            tree.block_hash(first.node),
            tree.tokens_hash(first.node),
            tree.block_hash(end.node),
        );
        for (i, owner) in tree.owners(first.node).iter().enumerate() {
            let Some(worker) = self.cluster.worker(owner) else { continue };
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(
                self.json,
                "{comma}{{\"worker_id\":\"{}\",\"dp_rank\":{}}}",
                worker.id.id, worker.id.dp_rank
            );
        }
        let _ = write!(
            self.json,
            "],\"subtree_blocks\":{},\"last_touch_ms\":{},\"branches\":{},\"children\":[",
            self.counts.blocks[first.at],
            touched_ms(touched),
            self.counts.branches[end.at],
        );
        end
    }

    /// Children of `place` that lead to a held block, last first.
    fn children(&self, place: Place) -> Vec<Place> {
        let mut at = place.at + 1;
        let mut children = Vec::with_capacity(self.counts.branches[place.at] as usize);
        for node in self.cluster.tree().children(place.node) {
            if self.counts.blocks[at] > 0 {
                children.push(Place { node, at });
            }
            at += self.counts.nodes[at] as usize;
        }
        children.reverse();
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_core::id::{Millis, Seq, TokensHash, Worker};
    use radixscope_core::record::{Block, Entry, Record};
    use serde_json::{Value, json};

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(1_800_000_000_000), record });
    }

    fn worker(cluster: &mut Cluster, ix: u16) {
        let id = Worker::new(u64::MAX - u64::from(ix), 0);
        let (namespace, component) = ("dynamo".into(), "backend".into());
        fold(cluster, Record::Worker { worker: WorkerIx(ix), id, namespace, component });
    }

    /// Stores blocks whose engine hash is 100 × their token hash.
    fn store(cluster: &mut Cluster, ix: u16, parent: Option<u64>, tokens: &[u64]) {
        let block = |&t: &u64| Block { block_hash: BlockHash(t * 100), tokens_hash: TokensHash(t) };
        let blocks: Vec<Block> = tokens.iter().map(block).collect();
        let parent = parent.map(|p| BlockHash(p * 100));
        fold(cluster, Record::Stored { worker: WorkerIx(ix), parent, blocks: blocks.into() });
    }

    /// Worker 0 holds 1-2-3-4, worker 1 holds 1-2 and 5 below it.
    fn two_workers() -> Cluster {
        let mut cluster = Cluster::default();
        worker(&mut cluster, 0);
        worker(&mut cluster, 1);
        store(&mut cluster, 0, None, &[1, 2, 3, 4]);
        store(&mut cluster, 1, None, &[1, 2, 5]);
        cluster
    }

    fn ask(cluster: &Cluster, root: Option<u64>, worker: Option<&str>, levels: usize, limit: u64) -> Value {
        let query = format!("/x?worker={}", worker.unwrap_or_default());
        let filter = Params::of(&query.parse().unwrap(), &["worker"]).unwrap().worker().unwrap();
        let wanted = Wanted { root: root.map(|r| BlockHash(r * 100)), filter, levels, limit };
        serde_json::from_str(&of(cluster, 0, wanted).unwrap()).unwrap()
    }

    #[test]
    fn chains_of_the_same_owners_are_one_element() {
        let tree = ask(&two_workers(), None, None, 60, 100);
        let shared = &tree["children"][0];
        assert_eq!((&shared["block_hash"], &shared["len"]), (&json!("100"), &json!(2)));
        assert_eq!(shared["workers"].as_array().unwrap().len(), 2);
        assert_eq!(shared["subtree_blocks"], 5);
        assert_eq!(shared["last_touch_ms"], 1_800_000_000_000u64);
        let below: Vec<_> =
            shared["children"].as_array().unwrap().iter().map(|c| (&c["block_hash"], &c["len"])).collect();
        assert_eq!(below, [(&json!("300"), &json!(2)), (&json!("500"), &json!(1))]);
        assert_eq!((&tree["truncated"], &tree["blocks"]), (&json!(false), &json!(5)));
    }

    #[test]
    fn a_worker_filter_keeps_only_what_leads_to_its_blocks() {
        let tree = ask(&two_workers(), None, Some("18446744073709551614"), 60, 100);
        assert_eq!(tree["blocks"], 3);
        let below = &tree["children"][0]["children"];
        assert_eq!(below.as_array().unwrap().len(), 1);
        assert_eq!(below[0]["block_hash"], "500");
    }

    #[test]
    fn a_root_begins_the_answer() {
        let tree = ask(&two_workers(), Some(3), None, 60, 100);
        assert_eq!((&tree["root"], &tree["children"][0]["len"]), (&json!("300"), &json!(2)));
    }

    #[test]
    fn limit_and_depth_cut_and_say_so() {
        let by_limit = ask(&two_workers(), None, None, 60, 1);
        assert_eq!((&by_limit["truncated"], &by_limit["children"][0]["branches"]), (&json!(true), &json!(2)));
        let by_depth = ask(&two_workers(), None, None, 1, 100);
        assert_eq!(by_depth["truncated"], true);
        assert_eq!(by_depth["children"][0]["children"], json!([]));
    }

    #[test]
    fn an_unknown_root_is_an_error() {
        let wanted = Wanted { root: Some(BlockHash(9)), filter: None, levels: 1, limit: 1 };
        assert!(of(&two_workers(), 0, wanted).is_err());
    }

    #[test]
    fn a_deep_tree_of_changing_owners_is_no_problem() {
        let mut cluster = Cluster::default();
        worker(&mut cluster, 0);
        worker(&mut cluster, 1);
        let path: Vec<u64> = (1..=50_000).collect();
        store(&mut cluster, 0, None, &path);
        store(&mut cluster, 1, None, &path);
        let hashes: Vec<BlockHash> = path.iter().step_by(2).map(|t| BlockHash(t * 100)).collect();
        fold(&mut cluster, Record::Removed { worker: WorkerIx(1), hashes: hashes.into() });
        let tree = ask(&cluster, None, None, 60, 100_000);
        assert_eq!(tree["truncated"], true);
        let wanted = Wanted { root: None, filter: None, levels: 100_000, limit: 100_000 };
        assert_eq!(of(&cluster, 0, wanted).unwrap().matches("\"len\":1").count(), 50_000);
    }

    #[test]
    fn an_empty_cluster_has_an_empty_tree() {
        let tree = ask(&Cluster::default(), None, None, 60, 10);
        assert_eq!((&tree["children"], &tree["blocks"]), (&json!([]), &json!(0)));
    }
}
