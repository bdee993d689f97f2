//! Deployments of more than one aggregated pool, from their NATS messages alone, against figures that were counted from
//! the same messages by other means.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::log_line::{self, LogEvent};
use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_model::record::{Role, Tier};
use radixscope_state::cluster::{Cluster, DecisionEntry};
use serde::Deserialize;

use crate::captures::figures::through_snapshot;
use crate::captures::replay::fold_recording;

#[derive(Deserialize)]
struct Expected {
    workers: Vec<ExpectedWorker>,
    pools: BTreeMap<String, ExpectedPool>,
    requests_by_pool: BTreeMap<String, ExpectedRequests>,
    requests_by_worker: Vec<ExpectedRouted>,
    requests_on_two_pools: usize,
    #[serde(default)]
    hit_rate: Vec<ExpectedHitRate>,
}

#[derive(Deserialize)]
struct ExpectedWorker {
    worker_id: String,
    dp_rank: u32,
    tier: String,
    group: String,
    blocks: u64,
    unattached: u64,
}

#[derive(Deserialize)]
struct ExpectedPool {
    nodes: u64,
    shared: u64,
    resident: u64,
}

#[derive(Deserialize)]
struct ExpectedRequests {
    requests: u64,
    isl_blocks: u64,
    overlap_blocks: u64,
    with_length: u64,
}

#[derive(Deserialize)]
struct ExpectedRouted {
    worker_id: String,
    dp_rank: u32,
    pool: String,
    added: u64,
}

#[derive(Deserialize)]
struct ExpectedHitRate {
    worker_id: String,
    decisions: u64,
    isl_blocks: u64,
    overlap_blocks: u64,
}

#[derive(Deserialize)]
struct ExpectedRequest {
    request_id: String,
    prefill_worker: String,
    prefill_cost: f64,
    decode_worker: String,
    decode_cost: f64,
    isl_tokens: u64,
    overlap_blocks: u64,
    decided: f64,
    prefill_completed: f64,
    prefill_freed: f64,
    first_token: f64,
    ended: f64,
}

fn expected(name: &str) -> Expected {
    let file = fixtures().with_file_name("topologies").join("expected.jsonl");
    let lines = BufReader::new(File::open(file).unwrap()).lines();
    let mut all =
        lines.map(|line| serde_json::from_str::<BTreeMap<String, Expected>>(&line.unwrap()).unwrap());
    all.find_map(|mut one| one.remove(name)).expect("an entry of this name")
}

fn pool(cluster: &Cluster, name: &str) -> PoolIx {
    cluster.pool_by_name(name).unwrap_or_else(|| panic!("no pool {name}"))
}

fn worker(cluster: &Cluster, id: &str, dp_rank: u32) -> WorkerIx {
    let id = radixscope_model::id::Worker::new(id.parse().unwrap(), dp_rank);
    cluster.worker_ix(id).unwrap_or_else(|| panic!("no worker {id}"))
}

/// Trees, decisions and hit rates as they were counted.
fn check(name: &str) -> Cluster {
    let want = expected(name);
    let hit_rate = &want.hit_rate;
    let (cluster, far) = fold_recording(&Recording::topology(name));
    for of in want.workers.iter().filter(|of| of.tier == "device") {
        let ix = worker(&cluster, &of.worker_id, of.dp_rank);
        assert_eq!(cluster.blocks(ix), Some(of.blocks), "{name}: blocks of {}", of.worker_id);
        assert_eq!(cluster.holdings(ix).unattached, of.unattached, "{name}");
        assert_eq!(cluster.pool_of(ix), Some(pool(&cluster, &of.group)), "{name}: pool of {}", of.worker_id);
    }
    for (of, want) in &want.pools {
        let totals = cluster.tree(pool(&cluster, of)).totals();
        let (nodes, shared, resident) = (want.nodes, want.shared, want.resident);
        assert_eq!((totals.nodes, totals.shared, totals.resident), (nodes, shared, resident), "{name}: {of}");
    }
    for (of, want) in &want.requests_by_pool {
        let decided = cluster.decisions().totals_in(pool(&cluster, of));
        if hit_rate.is_empty() {
            // Where hit rates are published, the client's probe is one of the decisions.
            assert_eq!(decided.count, want.requests, "{name}: requests of {of}");
        }
        // Of lengths that follow from tokens to prefill, lower tiers take off parts of blocks: see there.
        if want.with_length > 0 && name != "1.6.1-host" {
            let blocks = (want.isl_blocks, want.overlap_blocks);
            assert_eq!((decided.isl_blocks, decided.overlap_blocks), blocks, "{name}: prompts of {of}");
        }
    }
    for of in &want.requests_by_worker {
        let ix = worker(&cluster, &of.worker_id, of.dp_rank);
        assert_eq!(cluster.worker(ix).map(|worker| worker.sequences.added), Some(of.added), "{name}");
        assert_eq!(cluster.pool_of(ix), Some(pool(&cluster, &of.pool)), "{name}: pool of {}", of.worker_id);
    }
    let apart =
        cluster.decisions().newest_first().filter(|decided| decided.decision.other_part.is_some()).count();
    if want.hit_rate.is_empty() {
        assert_eq!(apart, 2 * want.requests_on_two_pools, "{name}: choices with another part");
    }
    for of in hit_rate {
        let ix = worker(&cluster, &of.worker_id, 0);
        let decided = cluster.decisions().totals_of(ix);
        assert_eq!(decided.count, of.decisions, "{name}: decisions for {}", of.worker_id);
        let is_decode =
            cluster.role(cluster.pool_of(ix).unwrap()).is_some_and(|(role, _)| role == Role::Decode);
        let blocks = if is_decode { (0, 0) } else { (of.isl_blocks, of.overlap_blocks) };
        assert_eq!(
            (decided.isl_blocks, decided.overlap_blocks),
            blocks,
            "{name}: prompts of {}",
            of.worker_id
        );
    }
    assert_eq!((cluster.missed_total(), cluster.rejected_total()), (0, 0), "{name}: all was understood");
    assert_eq!(cluster.digest(), far.digest(), "{name}: the same after the frames' codec");
    assert_eq!(cluster.digest(), through_snapshot(&cluster).digest(), "{name}: the same from a snapshot");
    cluster
}

#[test]
fn two_models_are_two_trees() {
    let cluster = check("1.6.1-two-models");
    let shared: Vec<u64> =
        cluster.trees().map(|(_, tree)| tree.totals().shared).filter(|&shared| shared > 0).collect();
    assert_eq!(shared, [241, 241], "one tree for both would share 1,714 blocks");
    check("0.9.1-two-models");
}

#[test]
fn blocks_of_two_sizes_are_not_added() {
    check("1.6.1-two-sizes");
}

#[test]
fn namespaces_are_apart() {
    check("1.6.1-two-namespaces");
}

#[test]
fn ranks_are_workers_of_one_pool() {
    check("1.6.1-dp2");
}

#[test]
fn host_memory_is_not_device_memory() {
    let cluster = check("1.6.1-host");
    for of in expected("1.6.1-host").workers.iter().filter(|of| of.tier == "host_pinned") {
        let ix = worker(&cluster, &of.worker_id, of.dp_rank);
        assert_eq!(
            cluster.tier_blocks(ix, Tier::Host),
            Some(of.blocks),
            "in host memory of {}",
            of.worker_id
        );
        assert_eq!(cluster.tier_blocks(ix, Tier::Disk), None, "no event of that tier was received");
        let unattached =
            cluster.tier_tree(pool(&cluster, &of.group), Tier::Host).holdings(ix.slot()).unattached;
        assert_eq!(unattached, of.unattached);
    }
    let mut isl_blocks = 0;
    for line in Recording::topology("1.6.1-host").log("frontend") {
        let Some(line) = log_line::decode(line.as_bytes()).ok().flatten() else { continue };
        let LogEvent::RequestDone(done) = line.event else { continue };
        isl_blocks += done.input_tokens.unwrap_or(0).div_ceil(16);
    }
    assert_eq!(cluster.decisions().totals().isl_blocks, isl_blocks, "by the frontend's own lengths");
    // The router's own words, which the folded state has not seen.
    let mut logged = BTreeMap::new();
    for line in Recording::topology("1.6.1-host").log("frontend") {
        let Some(line) = log_line::decode(line.as_bytes()).ok().flatten() else { continue };
        let LogEvent::Selected(selected) = line.event else { continue };
        let Some(id) = selected.ids.router else { continue };
        logged.insert(id.into_owned(), (selected.logit.value, selected.host_pinned_blocks.unwrap_or(0)));
    }
    let (mut costs, mut host, mut of) = (0, 0, 0);
    for decided in cluster.decisions().newest_first() {
        let Some(&(cost, host_blocks)) = decided.decision.request_id.as_ref().and_then(|id| logged.get(id))
        else {
            continue;
        };
        of += 1;
        costs += u32::from(decided.chosen_cost().is_some_and(|ours| (ours - cost).abs() < 1e-3));
        let chosen = decided.chosen();
        host += u32::from(chosen.is_some_and(|chosen| u64::from(chosen.host_blocks) == host_blocks));
    }
    assert_eq!((costs, host), (of, of), "costs and blocks in host memory, of {of} logged choices");
    assert!(of >= 40, "{of}");
}

#[test]
fn a_router_that_receives_no_events_changes_no_tree() {
    check("1.6.1-approx");
}

#[test]
fn adapters_salts_and_pictures_are_apart_by_hash() {
    let cluster = check("1.6.1-inject");
    for of in expected("1.6.1-inject").workers {
        let ix = worker(&cluster, &of.worker_id, of.dp_rank);
        let tier = Tier::ALL.into_iter().find(|tier| tier.as_str() == of.tier);
        let blocks = tier.map_or_else(|| cluster.blocks(ix), |tier| cluster.tier_blocks(ix, tier));
        assert_eq!(blocks, Some(of.blocks), "{} of {}", of.tier, of.worker_id);
    }
    let unknown: u64 = cluster.workers().iter().map(|worker| worker.unknown_removed_total).sum();
    let pictures: u64 = cluster.workers().iter().map(|worker| worker.multimodal_inputs_total).sum();
    assert_eq!(pictures, 1, "one run with a picture was injected");
    assert_eq!(unknown, 0, "blocks of one path under two names are removed one by one");
}

#[test]
fn prefill_looks_for_cached_blocks_and_decode_does_not() {
    let cluster = check("0.9.1-disagg");
    let decided = cluster.decisions().totals();
    assert_eq!((decided.isl_blocks, decided.overlap_blocks), (16_620, 13_916), "83.7 %, not 41.9 %");
    let is_linked = |decided: &&DecisionEntry| decided.decision.other_part.is_some();
    let linked: Vec<&DecisionEntry> = cluster.decisions().newest_first().filter(is_linked).collect();
    for decided in &linked {
        let other = decided.decision.other_part.and_then(|id| cluster.decisions().get(id)).expect("kept");
        assert_eq!(other.decision.other_part, Some(decided.decision.id), "each leads to the other");
        assert_eq!(other.decision.isl_blocks, decided.decision.isl_blocks);
        assert_ne!(other.pool, decided.pool);
    }
    println!("{} of {} linked", linked.len(), cluster.decisions().totals().count);
    assert!(linked.len() >= 120, "most pairs of messages without a request's id are unambiguous");
    check("0.9.1-disagg-sync");
    check("1.6.1-disagg-default");
}

/// Longest way of a message of the recordings from its publisher to the recorder.
const RECEIVED_WITHIN_MS: u64 = 20;

fn part<'c>(cluster: &'c Cluster, request_id: &str, pool: PoolIx) -> &'c DecisionEntry {
    let mut decisions = cluster.decisions().newest_first();
    let is_it = |decided: &&DecisionEntry| {
        decided.pool == pool && decided.decision.request_id.as_deref() == Some(request_id)
    };
    decisions.find(is_it).unwrap_or_else(|| panic!("no decision of {request_id} in {pool:?}"))
}

#[test]
fn both_choices_of_every_disaggregated_request_are_known() {
    let name = "1.6.1-disagg";
    let cluster = check(name);
    let (prefill, decode) = (pool(&cluster, "dynamo/prefill"), pool(&cluster, "dynamo/backend"));
    assert_eq!(cluster.role(prefill).map(|(role, _)| role), Some(Role::Prefill));
    assert_eq!(cluster.role(decode).map(|(role, _)| role), Some(Role::Decode));
    let ms = |seconds: f64| (seconds * 1_000.0).round() as u64;
    let mut wrong = BTreeMap::<&str, u32>::new();
    let mut count = 0;
    for want in Recording::topology(name).expected_requests::<ExpectedRequest>() {
        let (first, second) =
            (part(&cluster, &want.request_id, prefill), part(&cluster, &want.request_id, decode));
        count += 1;
        let mut hold = |what, holds: bool| *wrong.entry(what).or_default() += u32::from(!holds);
        let id = |decided: &DecisionEntry| cluster.worker(decided.decision.worker).unwrap().id.id.to_string();
        hold("prefill worker", id(first) == want.prefill_worker);
        hold("decode worker", id(second) == want.decode_worker);
        hold("linked", first.decision.other_part == Some(second.decision.id));
        hold("linked back", second.decision.other_part == Some(first.decision.id));
        hold("length", first.decision.isl_tokens == Some(want.isl_tokens));
        hold("length of decode", second.decision.isl_tokens == Some(want.isl_tokens));
        hold("overlap", first.decision.overlap_blocks == Some(want.overlap_blocks));
        hold("prefill cost", first.chosen_cost().is_some_and(|cost| (cost - want.prefill_cost).abs() < 1e-3));
        hold("decode cost", second.chosen_cost().is_some_and(|cost| (cost - want.decode_cost).abs() < 1e-3));
        // Counted when the messages were received; here their publishers' clocks count.
        let near = |at: Option<radixscope_model::id::Millis>, want: f64| {
            at.is_some_and(|at| ms(want).checked_sub(at.0).is_some_and(|late| late <= RECEIVED_WITHIN_MS))
        };
        hold("decided", near(first.decision.decided_ms, want.decided));
        hold("prefill completed", near(first.progress.first_token_ms, want.prefill_completed));
        hold("prefill freed", near(first.progress.ended_ms, want.prefill_freed));
        hold("first token", near(second.progress.first_token_ms, want.first_token));
        hold("ended", near(second.progress.ended_ms, want.ended));
    }
    assert_eq!(count, 81);
    wrong.retain(|_, count| *count > 0);
    assert!(wrong.is_empty(), "of {count} requests: {wrong:?}");
}
