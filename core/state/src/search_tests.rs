//! What people paste, and what is found for it.

use proptest::prelude::*;

use super::*;
use radixscope_model::id::{Millis, Seq, Slot, Worker};
use radixscope_model::record::{Block, Decision, DecisionSource, Entry, Record};

fn numbers(text: &str) -> Vec<u64> {
    Query::parse(text).hashes.into_iter().map(|(hash, _)| hash).collect()
}

#[test]
fn a_hash_is_read_as_engines_and_the_page_write_it() {
    assert_eq!(numbers("18446744073709551615"), [u64::MAX]);
    assert_eq!(numbers("-1"), [u64::MAX]);
    assert_eq!(numbers(" 0xFfffffffffffffff\n"), [u64::MAX]);
    assert_eq!(numbers("ffffffffffffffff"), [u64::MAX]);
    assert_eq!(numbers("-9223372036854775808"), [1 << 63]);
    assert_eq!(numbers("9007199254740993"), [9_007_199_254_740_993, 0x9007_1992_5474_0993]);
}

#[test]
fn what_is_no_number_of_64_bits_is_no_hash() {
    for text in [
        "",
        "18446744073709551616",
        "-9223372036854775809",
        "0x",
        "0x10000000000000000",
        "+5",
        "--5",
        "abc",
        "1 2",
    ] {
        assert!(numbers(text).is_empty(), "{text}");
    }
}

#[test]
fn workers_and_decisions_have_their_own_forms() {
    assert_eq!(Query::parse("w3").label, Some(WorkerIx(2)));
    assert_eq!(Query::parse("W0").label, None);
    assert_eq!(Query::parse("7/2").worker, Some((7, Some(2))));
    assert_eq!(Query::parse("7").worker, Some((7, None)));
    assert_eq!(Query::parse("7/x").worker, None);
    let only = Query { decision: Some(DecisionId(12)), ..Query::default() };
    assert_eq!(Query::parse("# 12"), only);
    assert!(Query::parse("#x").is_empty() && Query::parse("  ").is_empty());
    assert!(Query::parse(&"a".repeat(MAX_TEXT + 1)).is_empty());
}

#[test]
fn it_says_what_it_understood() {
    assert_eq!(Query::parse("#7").to_text(), "number of a decision");
    assert_eq!(
        Query::parse("0x10").to_text(),
        "block hash or tokens hash, decimal 16 or beginning of a request id"
    );
    assert_eq!(
        Query::parse("-1").to_text(),
        "block hash or tokens hash, unsigned 18446744073709551615 or beginning of a request id"
    );
    assert_eq!(Query::parse("W1").to_text(), "worker W1 or beginning of a request id");
}

/// Worker 0 holds 1 2 3 of tokens 11 12 13; worker 1 calls the same tokens 1 5 6; both hold a block of tokens 12 elsewhere.
fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let mut seq = 0;
    let mut fold = |record: Record<'_>| {
        seq += 1;
        cluster.fold(Seq(seq), &Entry { at_ms: Millis(1_800_000_000_000), record });
    };
    for ix in 0..2 {
        let id = Worker::new(u64::MAX, ix);
        fold(Record::new_worker(WorkerIx(ix), id, "n", "c"));
    }
    let block = |(hash, tokens)| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(tokens) };
    for (worker, parent, pairs) in [
        (0, None, vec![(1, 11), (2, 12), (3, 13)]),
        (1, None, vec![(1, 11), (5, 12), (6, 13)]),
        (1, Some(99), vec![(7, 12)]),
    ] {
        let blocks: Vec<Block> = pairs.into_iter().map(block).collect();
        let parent = parent.map(BlockHash);
        fold(Record::Stored { worker: WorkerIx(worker), parent, blocks: blocks.into() });
    }
    for id in 1..=3 {
        let new = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
        fold(Record::Decision(Box::new(Decision { request_id: Some(format!("req-{id}")), ..new })));
    }
    cluster
}

fn found(text: &str) -> Vec<SearchHit> {
    find(&cluster(), &Query::parse(text), 0..20).found
}

#[test]
fn a_block_is_found_by_every_name_it_has() {
    let cluster = cluster();
    let shared = cluster.tree(PoolIx(0)).find(Slot(0), BlockHash(2)).expect("held");
    assert_eq!(found("2")[0], SearchHit::Block { pool: PoolIx(0), node: shared, workers: vec![WorkerIx(0)] });
    assert_eq!(
        found("0x5")[0],
        SearchHit::Block { pool: PoolIx(0), node: shared, workers: vec![WorkerIx(1)] }
    );
    let first = found("1");
    assert!(matches!(&first[0], SearchHit::Block { workers, .. } if workers.len() == 2), "{first:?}");
    let by_tokens = found("12");
    assert_eq!(by_tokens[0], SearchHit::Tokens { pool: PoolIx(0), node: shared }, "known paths come first");
    assert!(
        matches!(by_tokens[1], SearchHit::Tokens { node, .. } if !cluster.tree(PoolIx(0)).is_attached(node))
    );
    assert_eq!(by_tokens.len(), 2);
}

#[test]
fn workers_and_decisions_are_found() {
    assert_eq!(found("W2"), [SearchHit::Worker(WorkerIx(1))]);
    assert_eq!(
        found(&u64::MAX.to_string()),
        [SearchHit::Worker(WorkerIx(0)), SearchHit::Worker(WorkerIx(1))]
    );
    assert_eq!(found("18446744073709551615/1"), [SearchHit::Worker(WorkerIx(1))]);
    assert_eq!(found("#2"), [SearchHit::Decision(DecisionId(2))]);
    assert_eq!(found("REQ-"), [3, 2, 1].map(|id| SearchHit::Decision(DecisionId(id))));
    assert_eq!(found("#9"), []);
}

#[test]
fn more_results_than_requested_are_counted() {
    let of = |range| find(&cluster(), &Query::parse("req-"), range);
    assert_eq!((of(0..2).found.len(), of(0..2).total), (2, 3));
    assert_eq!((of(2..4).found, of(2..4).total), (vec![SearchHit::Decision(DecisionId(1))], 3));
    assert_eq!(of(7..9).found, []);
}

#[test]
fn blocks_are_found_by_a_part_of_any_hash() {
    let mut cluster = Cluster::default();
    let hashes = [123_456_789_u64, 991_234_500, 0xabcd_1234_0000];
    let id = Worker::new(1, 0);
    let record = Record::new_worker(WorkerIx(0), id, "n", "c");
    cluster.fold(Seq(1), &Entry { at_ms: Millis(1_800_000_000_000), record });
    for (at, hash) in hashes.into_iter().enumerate() {
        let blocks =
            vec![Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(77_000_077 + at as u64) }];
        let record = Record::Stored { worker: WorkerIx(0), parent: None, blocks: blocks.into() };
        cluster.fold(Seq(at as u64 + 2), &Entry { at_ms: Millis(1_800_000_000_000), record });
    }
    let parts = |text: &str| {
        let response = find(&cluster, &Query::parse(text), 0..20);
        let part = |found| {
            if let SearchHit::Part { hash, is_tokens, .. } = found { Some((hash, is_tokens)) } else { None }
        };
        assert_eq!(response.total, response.found.len());
        response.found.into_iter().filter_map(part).collect::<Vec<_>>()
    };
    assert_eq!(
        parts("1234"),
        [123_456_789, 991_234_500, 0xabcd_1234_0000].map(|hash| (hash, false)),
        "beginnings first"
    );
    assert_eq!(parts("0xabcd…"), [(0xabcd_1234_0000, false)]);
    assert_eq!(parts("12345..."), [(123_456_789, false)]);
    assert_eq!(parts("770000"), [77_000_077, 77_000_078, 77_000_079].map(|hash| (hash, true)));
    assert_eq!(parts("123456789"), [], "the whole hash is no part");
    assert_eq!(parts("0xffff"), []);
}

#[test]
fn the_result_says_where_it_searched_with_numbers() {
    assert_eq!(
        looked_through(&cluster()),
        "Looked through distinct blocks: 3, blocks that wait for a parent: 1, workers: 2, decisions: 3 retained of 3 received."
    );
}

proptest! {
    #[test]
    fn every_hash_is_read_back_from_each_form(hash: u64) {
        for text in [hash.to_string(), format!("{hash:#x}"), format!("{hash:016x}"), hash.cast_signed().to_string()] {
            prop_assert!(numbers(&text).contains(&hash), "{}", text);
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC*") {
        let query = Query::parse(&text);
        let _ = (query.to_text(), find(&cluster(), &query, 0..3));
    }
}
