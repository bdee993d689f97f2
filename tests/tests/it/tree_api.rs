//! The tree over HTTP: page by page, block by block, its largest prefixes, its picture, and what is said of bad questions.

use radixscope_tests::figures::number;
use radixscope_tests::http::HttpResponse;
use radixscope_tests::metrics;
use radixscope_tests::radixscope::Radixscope;
use roxmltree::Document;
use serde_json::Value;

/// A simulated cluster that stands still once it is warm.
async fn still() -> Radixscope {
    let server = Radixscope::start(["demo", "--warm-up", "20", "--speed", "0.000001"]).await;
    server.until_source_is("live").await;
    server
}

fn rows(response: &Value) -> &[Value] {
    response["rows"].as_array().unwrap()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is no text in {value}"))
}

/// Every row's parent is the last one before it that is a level higher: it has as many as its `branches` say, and they
/// begin where it ends.
fn hang_together(rows: &[Value]) {
    let mut path: Vec<(&Value, u64)> = Vec::new();
    let mut done = Vec::new();
    for row in rows {
        let level = number(row, "level") as usize;
        assert!(level <= path.len(), "{row}");
        done.extend(path.drain(level..));
        if let Some((parent, children)) = path.last_mut() {
            *children += 1;
            assert_eq!(number(row, "position"), number(parent, "position") + number(parent, "len"));
        }
        path.push((row, 0));
    }
    for (row, children) in done.into_iter().chain(path) {
        assert_eq!(children, number(row, "branches"), "{row}");
    }
}

#[tokio::test]
async fn the_tree_is_read_page_by_page_in_every_order() {
    let server = still().await;
    for sort in ["first", "blocks", "hits", "recent", "hash"] {
        let whole = server.json(&format!("/api/v1/tree?limit=100000&sort={sort}")).await;
        assert_eq!((&whole["truncated"], &whole["next"]), (&false.into(), &Value::Null));
        let mut pages = Vec::new();
        let mut path = format!("/api/v1/tree?limit=37&sort={sort}");
        loop {
            let page = server.json(&path).await;
            assert_eq!((&page["blocks"], &page["sort"]), (&whole["blocks"], &sort.into()));
            pages.extend_from_slice(rows(&page));
            let Some(next) = page["next"].as_str() else { break };
            assert_eq!(page["truncated"], true);
            path = format!("/api/v1/tree?limit=37&after={next}");
        }
        assert!(pages.len() > 100, "{}", pages.len());
        assert_eq!(pages, rows(&whole), "{sort}");
        hang_together(&pages);
    }
}

#[tokio::test]
async fn totals_of_the_tree_agree_wherever_they_are_reported() {
    let server = still().await;
    let cluster = server.cluster().await;
    let tree = server.json("/api/v1/tree?limit=100000&kv_bytes_per_token=1000").await;
    let totals = &tree["totals"];
    for (ours, theirs) in [
        ("blocks", "nodes"),
        ("shared_blocks", "shared"),
        ("copies", "copies"),
        ("total", "total"),
        ("shown", "shown"),
    ] {
        assert_eq!(totals[ours], cluster["tree"][theirs], "{ours}");
    }
    let all = rows(&tree);
    let copies: u64 =
        all.iter().map(|e| number(e, "len") * (e["workers"].as_array().unwrap().len() as u64 - 1)).sum();
    assert_eq!(copies, number(totals, "copies"));
    assert!(copies > 0, "starters are shared");
    let size = number(&cluster["workers"][0], "block_size_tokens");
    assert_eq!(number(totals, "copies_tokens"), copies * size);
    assert_eq!(number(totals, "copies_bytes"), copies * size * 1000);
    assert_eq!(server.json("/api/v1/tree?limit=1").await["totals"]["copies_bytes"], Value::Null);
    let samples = metrics::parse(server.get("/metrics").await.text()).expect("our own figures");
    assert_eq!(metrics::value(&samples, "radixscope_tree_duplicate_blocks", &[]), Some(copies as f64));
}

#[tokio::test]
async fn a_block_is_found_by_either_hash_and_agrees_with_the_tree() {
    let server = still().await;
    let tree = server.json("/api/v1/tree?limit=100000").await;
    let elements = rows(&tree);
    for element in elements.iter().step_by(elements.len() / 20) {
        let (hash, tokens) = (text(element, "block_hash"), text(element, "tokens_hash"));
        let by_hash = server.json(&format!("/api/v1/tree/block?hash={hash}")).await;
        let block = &by_hash["block"];
        for same in [
            "block_hash",
            "tokens_hash",
            "position",
            "len",
            "workers",
            "subtree_blocks",
            "subtree_shared_blocks",
            "subtree_copies",
            "subtree_depth_blocks",
            "hits",
            "first_stored_ms",
        ] {
            assert_eq!(block[same], element[same], "{same} of {hash}");
        }
        let hex = u64::from_str_radix(text(block, "block_hash_hex").trim_start_matches("0x"), 16).unwrap();
        assert_eq!(hex.to_string(), hash);
        let path = block["path"].as_array().unwrap();
        assert_eq!(
            (path.len() as u64, text(&path[path.len() - 1], "block_hash")),
            (number(element, "level") + 1, hash)
        );
        let owner = text(&element["workers"][0], "worker_id");
        let of_owner = server.json(&format!("/api/v1/tree/block?hash={hash}&worker={owner}")).await;
        assert_eq!(of_owner["block"], by_hash["block"]);
        let by_tokens = server.json(&format!("/api/v1/tree/block?tokens={tokens}")).await;
        let places: Vec<&str> =
            by_tokens["matches"].as_array().unwrap().iter().map(|m| text(m, "block_hash")).collect();
        assert!(places.contains(&hash), "{hash} in {places:?}");
    }
}

#[tokio::test]
async fn the_tree_is_drawn_as_a_picture_that_needs_nothing_else() {
    let server = still().await;
    let response = server.get("/api/v1/tree.svg?width=800&height=600&theme=dark&heat=recency").await;
    assert_eq!((response.status, response.header("content-type")), (200, "image/svg+xml"));
    assert_eq!(response.header("content-security-policy"), "default-src 'none'");
    assert_eq!(
        (response.header("content-disposition"), response.header("x-content-type-options")),
        ("", "nosniff")
    );
    let picture = Document::parse(response.text()).expect("XML");
    let root = picture.root_element();
    assert_eq!((root.attribute("width"), root.attribute("height")), (Some("800"), Some("600")));
    assert!(!response.text().contains("<script") && !response.text().contains("href"));
    let boxes = |response: &HttpResponse| {
        let picture = Document::parse(response.text()).expect("XML");
        picture.descendants().filter(|node| node.has_tag_name("rect")).count()
    };
    let all = boxes(&response);
    assert!(all > 50, "{all}");
    let largest = server.json("/api/v1/tree/prefixes?limit=1").await;
    let root = text(&largest["prefixes"][0], "block_hash").to_owned();
    let part = server.get(&format!("/api/v1/tree.svg?root={root}&order=stable&download=1")).await;
    assert!(part.header("content-disposition").starts_with("attachment"), "{:?}", part.headers);
    assert!((1..=all).contains(&boxes(&part)));
    let owner = text(&largest["prefixes"][0]["workers"][0], "worker_id").to_owned();
    let own = server.get(&format!("/api/v1/tree.svg?worker={owner}&by=blocks&heat=owners")).await;
    assert!(own.text().contains(&owner) && boxes(&own) < all * 2, "{}", own.text());
}

fn is_error(response: &HttpResponse, status: u16, code: &str, says: &str) {
    let body = response.json();
    assert_eq!((response.status, &body["error"]["code"]), (status, &code.into()), "{body}");
    let message = text(&body["error"], "message");
    assert!(message.contains(says) && message.len() < 400, "{says:?} in {message}");
}

#[tokio::test]
async fn bad_requests_are_refused_with_a_reason() {
    let server = still().await;
    let first = server.json("/api/v1/tree?limit=2&sort=blocks").await;
    let next = text(&first, "next");
    let long = "9".repeat(5_000);
    for (path, says) in [
        ("/api/v1/tree?after=b.1.2", "after="),
        (&format!("/api/v1/tree?after={long}"), "after="),
        (&format!("/api/v1/tree?after={next}.7"), "after="),
        (&format!("/api/v1/tree?sort=hash&after={next}"), "belongs to sort=blocks"),
        ("/api/v1/tree?sort=largest", "one of first, blocks, hits, recent, hash"),
        ("/api/v1/tree?limit=100001", "from 1 to 100000"),
        ("/api/v1/tree?depth=0", "from 1 to 10000"),
        ("/api/v1/tree?window_s=901", "from 1 to 900"),
        ("/api/v1/tree?kv_bytes_per_token=0", "kv_bytes_per_token"),
        ("/api/v1/tree/block", "expected hash="),
        ("/api/v1/tree/block?hash=1&tokens=2", "expected hash="),
        ("/api/v1/tree/block?hash=0x1f", "decimal"),
        ("/api/v1/tree/prefixes?by=size", "one of blocks, hits"),
        ("/api/v1/tree/prefixes?limit=1001", "from 1 to 1000"),
        ("/api/v1/tree.svg?width=100", "from 240 to 8192"),
        ("/api/v1/tree.svg?heat=red", "one of owner, recency, hits, owners"),
        ("/api/v1/tree.svg?theme=sepia", "one of light, dark"),
        ("/api/v1/tree.svg?colour=1", "unknown parameter"),
    ] {
        is_error(&server.get(path).await, 400, "bad_parameter", says);
    }
    for (path, says) in [
        ("/api/v1/tree/block?hash=1", "hash=1 is not a cached block"),
        ("/api/v1/tree/block?tokens=1", "tokens=1 is not a cached block"),
        ("/api/v1/tree/block?hash=1&worker=5", "no message of worker 5 was received"),
        ("/api/v1/tree.svg?root=1", "root=1 is not a cached block"),
        ("/api/v1/tree?after=b.1.2.3.4.5", "has left the tree"),
        ("/api/v1/tree/blocks", "/api/v1/tree/blocks does not exist"),
    ] {
        is_error(&server.get(path).await, 404, "not_found", says);
    }
}
