//! Known small trees, and random ones read page by page.

use proptest::prelude::*;
use radixscope_model::id::PoolIx;
use serde_json::{Value, json};

use super::*;
use radixscope_model::id::TokensHash;
use radixscope_model::record::{Block, Entry, Record};

const AT_MS: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, at_ms: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at_ms), record });
}

fn cluster(workers: u16) -> Cluster {
    let mut cluster = Cluster::default();
    for ix in 0..workers {
        let id = Worker::new(u64::MAX - u64::from(ix), 0);
        fold(&mut cluster, AT_MS, Record::new_worker(WorkerIx(ix.into()), id, "dynamo", "backend"));
    }
    cluster
}

/// Stores blocks whose engine hash is 100 × their token hash.
fn store(cluster: &mut Cluster, ix: u16, parent: Option<u64>, tokens: &[u64]) {
    let block = |&t: &u64| Block { block_hash: BlockHash(t * 100), tokens_hash: TokensHash(t) };
    let blocks: Vec<Block> = tokens.iter().map(block).collect();
    let parent = parent.map(|p| BlockHash(p * 100));
    let at_ms = cluster.now_ms().0 + 1_000;
    fold(cluster, at_ms, Record::Stored { worker: WorkerIx(ix.into()), parent, blocks: blocks.into() });
}

fn remove(cluster: &mut Cluster, ix: u16, tokens: impl IntoIterator<Item = u64>) {
    let hashes: Vec<BlockHash> = tokens.into_iter().map(|t| BlockHash(t * 100)).collect();
    fold(cluster, cluster.now_ms().0, Record::Removed { worker: WorkerIx(ix.into()), hashes: hashes.into() });
}

/// Worker 0 holds 1-2-3-4, worker 1 holds 1-2 and 5 below it, worker 2 holds 9.
fn forked() -> Cluster {
    let mut cluster = cluster(3);
    store(&mut cluster, 0, None, &[1, 2, 3, 4]);
    store(&mut cluster, 1, None, &[1, 2, 5]);
    store(&mut cluster, 2, None, &[9]);
    cluster
}

fn picture(cluster: &Cluster) -> TreeSnapshot {
    TreeSnapshot::of(cluster, PoolIx(0), cluster.now_ms())
}

/// What a reader of the response sees.
fn read(response: impl Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(&response).expect("plain data")).expect("JSON")
}

fn no_page(cluster: &Cluster, page: &Page) -> NotFound {
    picture(cluster).page(page).err().expect("an error")
}

fn ask(cluster: &Cluster, page: &Page) -> Value {
    read(picture(cluster).page(page).expect("found"))
}

fn hashes(elements: &Value) -> Vec<&str> {
    elements.as_array().expect("elements").iter().map(|e| e["block_hash"].as_str().expect("a hash")).collect()
}

fn rows(tree: &Value) -> &Vec<Value> {
    tree["rows"].as_array().expect("rows")
}

fn levels(tree: &Value) -> Vec<u64> {
    rows(tree).iter().map(|row| row["level"].as_u64().expect("a level")).collect()
}

#[test]
fn chains_of_the_same_owners_are_one_element() {
    let tree = ask(&forked(), &Page::default());
    let shared = &tree["rows"][0];
    assert_eq!((&shared["block_hash"], &shared["len"]), (&json!("100"), &json!(2)));
    assert_eq!(shared["workers"].as_array().expect("workers").len(), 2);
    let all: Vec<_> =
        rows(&tree).iter().map(|row| [&row["level"], &row["block_hash"], &row["len"]]).collect();
    let (below, other) = ([json!(1), json!("300"), json!(2)], [json!(1), json!("500"), json!(1)]);
    assert_eq!(all[1..3], [below.each_ref(), other.each_ref()]);
    assert_eq!((all.len(), &tree["rows"][3]["level"]), (4, &json!(0)), "and what the third worker holds");
    assert_eq!(
        (&tree["truncated"], &tree["next"], &tree["blocks"]),
        (&json!(false), &json!(null), &json!(6))
    );
}

#[test]
fn an_element_says_where_it_is_what_is_below_it_and_since_when() {
    let tree = ask(&forked(), &Page::default());
    let (mut shared, below) = (tree["rows"][0].clone(), &tree["rows"][1]);
    shared.as_object_mut().expect("an object").remove("workers");
    assert_eq!(
        shared,
        json!({
            "level": 0, "block_hash": "100", "tokens_hash": "1", "position": 0, "len": 2, "last_block_hash": "200",
            "subtree_blocks": 5, "subtree_shared_blocks": 2, "subtree_copies": 2, "subtree_depth_blocks": 4,
            "hits": null, "first_stored_ms": AT_MS + 1_000, "last_touch_ms": AT_MS + 2_000,
            "subtree_last_touch_ms": AT_MS + 2_000, "branches": 2,
        })
    );
    assert_eq!(
        [&below["level"], &below["position"], &below["subtree_depth_blocks"], &below["last_touch_ms"]],
        [&json!(1), &json!(2), &json!(4), &json!(AT_MS + 1_000)]
    );
}

#[test]
fn totals_say_what_copies_cost_as_far_as_that_is_known() {
    let mut cluster = forked();
    let totals = |cluster: &Cluster, bytes| {
        ask(cluster, &Page { kv_bytes_per_token: bytes, ..Page::default() })["totals"].clone()
    };
    let expected = json!({
        "blocks": 6, "shared_blocks": 2, "copies": 2, "shown": 8, "total": 8, "block_size_tokens": null,
        "copies_tokens": null, "copies_bytes": null, "hits_window_ms": 900_000, "requests": null,
    });
    assert_eq!(totals(&cluster, Some(1024)), expected);
    for ix in 0..3 {
        let card = Record::ModelCard {
            worker: WorkerIx(ix),
            total_kv_blocks: None,
            block_size_tokens: Some(16),
            publishes_events: None,
        };
        fold(&mut cluster, AT_MS, card);
    }
    let known = totals(&cluster, Some(1024));
    assert_eq!([&known["copies_tokens"], &known["copies_bytes"]], [&json!(32), &json!(32 * 1024)]);
    assert_eq!(totals(&cluster, None)["copies_bytes"], json!(null));
}

#[test]
fn hits_count_requests_that_found_a_block_held_here_or_below() {
    let cluster = forked();
    let mut picture = picture(&cluster);
    let now = touch(cluster.now_ms());
    let at =
        |picture: &TreeSnapshot, tokens: u64| picture.tree.find_any(BlockHash(tokens * 100)).expect("held");
    let (three, two) = (at(&picture, 3), at(&picture, 2));
    picture.tree.hit(three, now - 600);
    picture.tree.hit(two, now);
    picture.tree.hit(NodeId::ROOT, now);
    let hits = |window_ms| {
        let page = Page { hits_window_ms: window_ms, ..Page::default() };
        let tree = read(picture.page(&page).expect("found"));
        [&tree["totals"]["requests"], &tree["rows"][0]["hits"], &tree["rows"][1]["hits"]].map(Value::as_u64)
    };
    assert_eq!(hits(MAX_HITS_WINDOW_MS), [Some(3), Some(2), Some(1)]);
    assert_eq!(hits(30_000), [Some(2), Some(1), Some(0)]);
}

#[test]
fn a_worker_filter_keeps_only_what_leads_to_its_blocks() {
    let page = Page { workers: Some(vec![WorkerIx(1)]), ..Page::default() };
    let tree = ask(&forked(), &page);
    assert_eq!([&tree["blocks"], &tree["shared_blocks"], &tree["copies"]], [&json!(3), &json!(2), &json!(2)]);
    assert_eq!((hashes(&tree["rows"]), levels(&tree)), (vec!["100", "500"], vec![0, 1]));
    assert_eq!(tree["rows"][0]["subtree_depth_blocks"], 3);
}

#[test]
fn a_root_begins_the_response_and_keeps_its_position() {
    let tree = ask(&forked(), &Page { root: Some(BlockHash(300)), ..Page::default() });
    let first = &tree["rows"][0];
    assert_eq!([&tree["root"], &first["len"], &first["position"]], [&json!("300"), &json!(2), &json!(2)]);
    assert_eq!((&first["level"], &first["subtree_depth_blocks"]), (&json!(0), &json!(4)));
}

#[test]
fn limit_and_depth_cut_and_say_so_but_only_the_limit_goes_on() {
    let by_limit = ask(&forked(), &Page { limit: 1, ..Page::default() });
    assert_eq!((&by_limit["truncated"], &by_limit["rows"][0]["branches"]), (&json!(true), &json!(2)));
    assert!(by_limit["next"].is_string());
    let by_depth = ask(&forked(), &Page { levels: 1, ..Page::default() });
    assert_eq!((&by_depth["truncated"], &by_depth["next"]), (&json!(true), &json!(null)));
    assert_eq!((hashes(&by_depth["rows"]), levels(&by_depth)), (vec!["100", "900"], vec![0, 0]));
}

#[test]
fn siblings_come_in_the_order_requested() {
    let mut cluster = cluster(1);
    store(&mut cluster, 0, None, &[7]);
    store(&mut cluster, 0, None, &[5, 6, 8]);
    store(&mut cluster, 0, None, &[3, 4]);
    store(&mut cluster, 0, Some(7), &[10]);
    let order = |sort| hashes(&ask(&cluster, &Page { sort, levels: 1, ..Page::default() })["rows"]).join(" ");
    assert_eq!(order(Sort::First), "700 500 300");
    assert_eq!(order(Sort::Blocks), "500 300 700");
    assert_eq!(order(Sort::Recent), "700 300 500");
    assert_eq!(order(Sort::Hash), "300 500 700");
}

#[test]
fn an_unknown_root_is_an_error() {
    let page = |root| Page { root: Some(BlockHash(root)), ..Page::default() };
    let error = no_page(&forked(), &page(9));
    assert_eq!(error.to_string(), "root=9 is not a cached block");
    let of_another = Page { workers: Some(vec![WorkerIx(2)]), ..page(300) };
    assert!(matches!(no_page(&forked(), &of_another), NotFound::WorkersBlock(_)));
}

#[test]
fn a_block_below_an_unseen_parent_has_no_position() {
    let mut cluster = cluster(1);
    store(&mut cluster, 0, Some(1), &[2, 3]);
    let tree = ask(&cluster, &Page { root: Some(BlockHash(200)), ..Page::default() });
    let first = &tree["rows"][0];
    assert_eq!([&first["position"], &first["subtree_depth_blocks"]], [&json!(null); 2]);
    assert_eq!([&first["len"], &tree["totals"]["copies"]], [&json!(2), &json!(0)]);
    let block = read(picture(&cluster).block(&BlockQuery::Tokens(TokensHash(3)), 1_000).expect("found"));
    assert_eq!((&block["block"]["position"], &block["block"]["chain"]["index"]), (&json!(null), &json!(1)));
}

#[test]
fn a_deep_tree_of_changing_owners_is_no_problem() {
    let mut cluster = cluster(2);
    let path: Vec<u64> = (1..=50_000).collect();
    store(&mut cluster, 0, None, &path);
    store(&mut cluster, 1, None, &path);
    remove(&mut cluster, 1, path.into_iter().step_by(2));
    let picture = picture(&cluster);
    let tree = read(picture.page(&Page { limit: 100_000, ..Page::default() }).expect("found"));
    assert_eq!((&tree["truncated"], &tree["next"]), (&json!(true), &json!(null)));
    let mut page = Page { levels: 100_000, limit: 20_000, ..Page::default() };
    let mut found = 0;
    loop {
        let part = read(picture.page(&page).expect("found"));
        for row in rows(&part) {
            assert_eq!([row["level"].as_u64(), row["len"].as_u64()], [Some(found), Some(1)]);
            found += 1;
        }
        match part["next"].as_str() {
            None => break,
            Some(next) => page.after = Some(next.parse().expect("a cursor")),
        }
    }
    assert_eq!(found, 50_000);
    let last = read(picture.block(&BlockQuery::Block(BlockHash(5_000_000), None), 1_000).expect("found"));
    let path = last["block"]["path"].as_array().expect("a path");
    assert_eq!((&last["block"]["path_elements"], path.len()), (&json!(50_000), MAX_PATH));
}

#[test]
fn an_empty_cluster_has_an_empty_tree() {
    let tree = ask(&Cluster::default(), &Page::default());
    assert_eq!((&tree["rows"], &tree["blocks"], &tree["next"]), (&json!([]), &json!(0), &json!(null)));
    let prefixes = read(picture(&Cluster::default()).prefixes(PrefixOrder::Hits, 5, 1_000, None));
    assert_eq!(prefixes["prefixes"], json!([]));
}

#[test]
fn a_block_is_reported_with_its_names_its_chain_and_the_way_to_it() {
    let mut cluster = forked();
    let other = Block { block_hash: BlockHash(7), tokens_hash: TokensHash(1) };
    fold(
        &mut cluster,
        AT_MS,
        Record::Stored { worker: WorkerIx(2), parent: None, blocks: vec![other].into() },
    );
    let block = |hash| {
        read(picture(&cluster).block(&BlockQuery::Block(BlockHash(hash), None), 1_000).expect("found"))
    };
    let four = block(400);
    let four = &four["block"];
    assert_eq!(
        [&four["position"], &four["len"], &four["subtree_blocks"], &four["branches"]].map(Value::as_u64),
        [Some(3), Some(1), Some(1), Some(0)]
    );
    assert_eq!(
        (&four["block_hash_hex"], &four["tokens_hash_hex"]),
        (&json!("0x0000000000000190"), &json!("0x0000000000000004"))
    );
    assert_eq!(four["chain"], json!({"block_hash": "300", "position": 2, "len": 2, "index": 1}));
    let path: Vec<&str> = hashes(&four["path"]);
    assert_eq!((path, &four["names"]), (vec!["100", "200", "300"], &json!([])));
    let by_its_other_name = block(7);
    let names = by_its_other_name["block"]["names"].as_array().expect("names").clone();
    assert_eq!(
        names.iter().map(|n| n["block_hash"].as_str()).collect::<Vec<_>>(),
        [Some("100"), Some("100"), Some("7")]
    );
    assert_eq!(by_its_other_name["block"]["block_hash"], "100");
}

#[test]
fn a_tokens_hash_under_two_prefixes_has_two_places() {
    let mut cluster = forked();
    let again = Block { block_hash: BlockHash(77), tokens_hash: TokensHash(5) };
    let parent = Some(BlockHash(900));
    fold(&mut cluster, AT_MS, Record::Stored { worker: WorkerIx(2), parent, blocks: vec![again].into() });
    let found = read(picture(&cluster).block(&BlockQuery::Tokens(TokensHash(5)), 1_000).expect("found"));
    let mut matches = hashes(&found["matches"]);
    matches.sort_unstable();
    assert_eq!(matches, ["500", "77"]);
    let picture = picture(&cluster);
    let nowhere = picture.block(&BlockQuery::Tokens(TokensHash(6)), 1_000).err();
    assert_eq!(nowhere, Some(NotFound::Block("tokens=6".to_owned())));
}

#[test]
fn the_largest_prefixes_are_those_of_the_forest() {
    let prefixes = read(picture(&forked()).prefixes(PrefixOrder::Blocks, 10, MAX_HITS_WINDOW_MS, None));
    assert_eq!(hashes(&prefixes["prefixes"]), ["100", "300", "500", "900"]);
    let first = &prefixes["prefixes"][0];
    assert_eq!(
        [&first["subtree_blocks"], &first["subtree_copies"], &first["branches"]],
        [&json!(5), &json!(2), &json!(2)]
    );
    let few = read(picture(&forked()).prefixes(PrefixOrder::Blocks, 1, MAX_HITS_WINDOW_MS, None));
    assert_eq!(hashes(&few["prefixes"]), ["100"]);
}

#[test]
fn the_hottest_prefixes_are_those_that_most_requests_found_held() {
    let cluster = forked();
    let mut picture = picture(&cluster);
    let now = touch(cluster.now_ms());
    let at =
        |picture: &TreeSnapshot, tokens: u64| picture.tree.find_any(BlockHash(tokens * 100)).expect("held");
    for tokens in [9, 9, 9, 4, 2] {
        let node = at(&picture, tokens);
        picture.tree.hit(node, now);
    }
    let prefixes = read(picture.prefixes(PrefixOrder::Hits, 10, MAX_HITS_WINDOW_MS, None));
    let hits = prefixes["prefixes"].as_array().expect("prefixes").iter().map(|e| e["hits"].as_u64());
    assert_eq!(hashes(&prefixes["prefixes"]), ["900", "100", "300"]);
    assert_eq!(hits.collect::<Vec<_>>(), [Some(3), Some(2), Some(1)]);
}

#[test]
fn a_page_goes_on_behind_an_element_that_has_gone_since() {
    let mut cluster = cluster(1);
    for tokens in [2, 4, 6, 8] {
        store(&mut cluster, 0, None, &[tokens, tokens * 1_000]);
    }
    let page = Page { sort: Sort::Hash, limit: 2, ..Page::default() };
    let first = ask(&cluster, &page);
    assert_eq!(hashes(&first["rows"]), ["200", "400"]);
    let after = first["next"].as_str().expect("more").parse().expect("a cursor");
    remove(&mut cluster, 0, [4_000, 4]);
    store(&mut cluster, 0, None, &[1]);
    store(&mut cluster, 0, None, &[5]);
    let second = ask(&cluster, &Page { after: Some(after), limit: 10, ..page });
    assert_eq!((hashes(&second["rows"]), &second["next"]), (vec!["500", "600", "800"], &json!(null)));
}

#[test]
fn an_element_that_grew_since_is_not_reported_again() {
    let mut cluster = cluster(1);
    for tokens in [2, 4, 6] {
        store(&mut cluster, 0, None, &(tokens..tokens + 2).collect::<Vec<_>>());
    }
    let page = Page { sort: Sort::Recent, limit: 1, ..Page::default() };
    let first = ask(&cluster, &page);
    assert_eq!(hashes(&first["rows"]), ["600"]);
    let after: Cursor = first["next"].as_str().expect("more").parse().expect("a cursor");
    store(&mut cluster, 0, None, &[6]);
    let second = ask(&cluster, &Page { after: Some(after), limit: 10, ..page });
    assert_eq!(hashes(&second["rows"]), ["400", "200"]);
}

#[test]
fn a_page_of_a_place_that_is_no_more_or_is_elsewhere_is_an_error() {
    let mut cluster = forked();
    let page = Page { sort: Sort::Hash, limit: 2, ..Page::default() };
    let first = ask(&cluster, &page);
    let after: Cursor = first["next"].as_str().expect("more").parse().expect("a cursor");
    let elsewhere = Page { root: Some(BlockHash(900)), after: Some(after), ..page.clone() };
    assert_eq!(no_page(&cluster, &elsewhere), NotFound::Elsewhere);
    for ix in 0..2 {
        remove(&mut cluster, ix, 1..=5);
    }
    assert_eq!(no_page(&cluster, &Page { after: Some(after), ..page }), NotFound::Place);
}

#[test]
fn only_what_was_given_as_a_cursor_is_one() {
    let cursor = Cursor {
        sort: Sort::Blocks,
        rank: u64::MAX,
        tokens: TokensHash(u64::MAX),
        block: BlockHash(u64::MAX),
        position: u32::MAX,
        above: Some(BlockHash(u64::MAX)),
    };
    let text = cursor.to_string();
    assert_eq!(text.parse(), Ok(cursor));
    let at_top = Cursor { above: None, ..cursor };
    assert_eq!(at_top.to_string().parse(), Ok(at_top));
    for bad in [
        "",
        "b",
        "b.1.2.3.4",
        "q.1.2.3.4.5",
        "b.1.2.3.4.5.6",
        "b.-1.2.3.4.5",
        "b.1.2.3.4294967296.",
        &"9".repeat(5_000),
    ] {
        assert_eq!(bad.parse::<Cursor>(), Err(BadCursor), "{bad}");
    }
    assert_eq!(format!("{text}1").parse::<Cursor>(), Err(BadCursor));
}

/// Paths from a root; equal first numbers are a common prefix.
fn paths() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let path = proptest::collection::vec(0u8..3, 1..7);
    proptest::collection::vec((0u16..3, path), 0..25)
}

fn random(paths: &[(u16, Vec<u8>)]) -> Cluster {
    let mut cluster = cluster(3);
    for (worker, path) in paths {
        let tokens = path.iter().scan(1u64, |above, &step| {
            *above = *above * 4 + u64::from(step);
            Some(*above)
        });
        store(&mut cluster, *worker, None, &tokens.collect::<Vec<_>>());
    }
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pages_one_after_the_other_are_the_whole_answer(
        paths in paths(), sort in 0..5usize, limit in 1usize..5, levels in 1usize..6, filter in 0u16..6,
        hits in proptest::collection::vec(4u64..40, 0..10),
    ) {
        let mut picture = picture(&random(&paths));
        for tokens in hits {
            if let Some(&node) = picture.tree.find_tokens(TokensHash(tokens), 1).first() {
                picture.tree.hit(node, touch(picture.at_ms));
            }
        }
        let workers = (filter < 3).then(|| vec![WorkerIx(filter.into())]);
        let page = Page { sort: Sort::NAMES[sort].1, levels, workers, limit: 100_000, ..Page::default() };
        let whole = read(picture.page(&page).expect("found"));
        prop_assert_eq!(&whole["next"], &json!(null));
        let mut pages = Vec::new();
        let mut page = Page { limit, ..page };
        loop {
            let part = read(picture.page(&page).expect("found"));
            prop_assert!(rows(&part).len() <= limit);
            prop_assert!(part["next"].is_null() || rows(&part).len() == limit);
            pages.extend(rows(&part).to_vec());
            match part["next"].as_str() {
                None => break,
                Some(next) => page.after = Some(next.parse().expect("a cursor")),
            }
        }
        prop_assert_eq!(&pages, rows(&whole));
    }

    #[test]
    fn sums_of_elements_are_those_of_all_their_blocks(paths in paths()) {
        let cluster = random(&paths);
        let tree = ask(&cluster, &Page { limit: 100_000, ..Page::default() });
        let totals = cluster.tree(PoolIx(0)).totals();
        let number = |row: &Value, name: &str| row[name].as_u64().expect("a number");
        let top = || rows(&tree).iter().filter(|row| row["level"] == 0);
        let sum = |name: &str| top().map(|row| number(row, name)).sum::<u64>();
        prop_assert_eq!(
            [sum("subtree_blocks"), sum("subtree_shared_blocks"), sum("subtree_copies")],
            [totals.nodes, totals.shared, totals.copies()]
        );
        let own: u64 = rows(&tree).iter().map(|row| number(row, "len")).sum();
        prop_assert_eq!(own, totals.nodes);
    }
}
