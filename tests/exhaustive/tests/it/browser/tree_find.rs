//! Finding one's way in the tree as a person does: whatever is pasted is found, lists jump, details are the API's, an open
//! decision says by how much it was won, and what is saved is what is seen.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::tree_find::{explained, is_selected, open};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn a_line_of_the_lists_jumps_and_the_details_are_the_apis() {
    let (server, _) = Radixscope::standing_demo().await;
    with_page(async |page| {
        open(page, &server, "").await;
        let listed = page.attribute("[data-testid=prefix]", "data-hash").await.unwrap();
        page.click("prefix").await;
        is_selected(page, &listed).await;
        page.until("the camera goes there", async |page| {
            let now = page.attribute("#tree", "data-zoom").await;
            wait::expect(now.as_deref() == Some(&listed), || format!("{now:?}"))
        })
        .await;
        let block = server.json(&format!("/api/v1/tree/block?hash={listed}&window_s=300")).await["block"].clone();
        let number = |text: Option<String>| -> u64 {
            let text = text.unwrap_or_default().replace(',', "");
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or_else(|_| panic!("{text}"))
        };
        for (id, field) in
            [("block-subtree", "subtree_blocks"), ("block-shared", "subtree_shared_blocks"), ("block-copies", "subtree_copies"), ("block-position", "position"), ("block-children", "branches")]
        {
            assert_eq!(Some(number(page.text(id).await)), block[field].as_u64(), "{field} of {block}");
        }
        assert_eq!(page.text("block-hash").await.as_deref(), block["block_hash"].as_str());
        assert_eq!(page.text("block-hash-hex").await.as_deref(), block["block_hash_hex"].as_str());
        assert_eq!(page.text("block-tokens").await.as_deref(), block["tokens_hash"].as_str());
        let owners = page.text("block-owners").await.unwrap();
        let holders = block["workers"].as_array().unwrap().len();
        assert!(owners.contains(&format!("{holders} of 3 workers")), "{owners}");
        let chain = page.text("block-chain").await.unwrap();
        assert_eq!(chain, format!("block 1 of {}", block["chain"]["len"]));
        let stand_in = "(Object.defineProperty(navigator, 'clipboard', {value: {writeText: text => { window.copied = text; return Promise.resolve(); }}}), true)";
        page.eval(stand_in).await;
        // The column scrolls where the window is low.
        page.eval("document.querySelector('[data-testid=copy-tokens-hex]').scrollIntoView({block: 'center'})").await;
        page.click("copy-tokens-hex").await;
        page.until_true("it is copied", &format!("window.copied === {}", block["tokens_hash_hex"])).await;
        page.click("side-copies").await;
        let cluster = server.cluster().await;
        assert_eq!(Some(number(page.text("distinct-all").await)), cluster["tree"]["nodes"].as_u64());
        assert_eq!(Some(number(page.text("copies-blocks-below").await)), block["subtree_copies"].as_u64());
        assert!(page.text("bytes-unknown").await.is_some(), "what is not known says how to set it");
        page.screenshot("tree-copies").await;
        open(page, &server, &format!("&tree.block={listed}")).await;
        is_selected(page, &listed).await;
    })
    .await;
}

#[tokio::test]
async fn an_open_decision_is_painted_with_its_cost_gap_and_leads_to_the_next() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let decision = explained(&decisions);
    let id = decision["id"].as_str().unwrap();
    with_page(async |page| {
        page.open(&server.url(&format!("/?view=tree&decision={id}"))).await;
        page.until("the path is painted", async |page| {
            let end = page.attribute("#tree", "data-path-end").await.unwrap_or_default();
            wait::expect(end.starts_with(&format!("decision {id}, block ")), || end)
        })
        .await;
        page.until("all of the path is in sight", async |page| {
            let zoom = page.attribute("#tree", "data-zoom").await.unwrap_or_default();
            let wanted = format!("path to {}", decision["path"]["block_hash"].as_str().unwrap());
            wait::expect(zoom == wanted, || zoom)
        })
        .await;
        let cost_gap = page.text("decision-margin").await.unwrap();
        let cost = decision["margin_blocks"].as_f64().unwrap();
        let expected = match cost {
            0.0 => "ties with W",
            less if less < 0.0 => "above the cost of W",
            _ => "below the cost of W",
        };
        assert!(cost_gap.contains(expected), "{cost_gap}: {cost}");
        let painted = page.text("painted").await.unwrap();
        assert!(
            painted.contains("brackets show how far on each worker") && painted.contains(expected),
            "{painted}"
        );
        let shown = page
            .eval("[...document.querySelectorAll('[data-testid=tree-candidate]')].map(r => +r.dataset.depth)")
            .await;
        let mut candidates: Vec<&Value> = decision["candidates"].as_array().unwrap().iter().collect();
        candidates.sort_by(|a, b| a["cost"].as_f64().unwrap().total_cmp(&b["cost"].as_f64().unwrap()));
        let mut depths: Vec<&Value> = candidates.iter().map(|c| &c["overlap_blocks"]).collect();
        let mut seen: Vec<&Value> = shown.as_array().unwrap().iter().collect();
        depths.sort_by_key(|n| n.as_u64());
        seen.sort_by_key(|n| n.as_u64());
        assert_eq!(seen, depths);
        assert_eq!(page.attribute("[data-testid=duel]", "data-prompt").await, Some(decision["isl_blocks"].to_string()));
        let lanes = page
            .eval(
                "[...document.querySelectorAll('[data-testid=tree-candidate]')].map(r => [r.dataset.worker, +r.dataset.depth,
                    +r.dataset.computed, +r.dataset.load, +r.dataset.cost, r.classList.contains('chosen'),
                    r.querySelector('.duel-prompt').clientWidth, r.querySelector('.duel-prompt .device')?.getBoundingClientRect().width ?? 0])",
            )
            .await;
        let lanes = lanes.as_array().unwrap();
        assert_eq!(lanes[0][5], true, "the winner is first: {lanes:?}");
        let (workers, isl) = (server.cluster().await, decision["isl_blocks"].as_f64().unwrap());
        for lane in lanes {
            // W1 is the first worker that was seen.
            let at: usize = lane[0].as_str().and_then(|label| label[1..].parse().ok()).expect("W1 and so on");
            let worker = &workers["workers"][at - 1]["worker_id"];
            let candidate = candidates.iter().find(|candidate| candidate["worker_id"] == *worker).expect("the same ones");
            let number = |at: usize| lane[at].as_f64().unwrap();
            let of = |field: &str| candidate[field].as_f64().unwrap();
            assert_eq!((number(1), number(3), number(4)), (of("overlap_blocks"), of("decode_blocks"), of("cost")));
            assert_eq!(lane[5], candidate["selected"]);
            let lower = of("host_blocks") + of("disk_blocks");
            assert_eq!(number(2), (isl - of("overlap_blocks") - lower).max(0.0), "{lane} of {candidate}");
            let share = number(7) / number(6);
            assert!((share - of("overlap_blocks") / isl).abs() < 0.02, "{lane} of {isl} blocks");
        }
        assert!(page.text("decision-why").await.unwrap().contains("was chosen"));
        page.screenshot("tree-decision").await;
        page.click("decision-older").await;
        page.until("an older one is open", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            wait::expect(query.contains("decision=") && !query.contains(&format!("decision={id}")), || query)
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_is_saved_is_what_is_seen() {
    let (server, _) = Radixscope::standing_demo().await;
    with_page(async |page| {
        open(page, &server, "").await;
        page.eval("(() => { window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = blob => { window.saved.push(blob); return make.call(URL, blob); }; const click = HTMLAnchorElement.prototype.click; window.names = []; HTMLAnchorElement.prototype.click = function () { window.names.push(this.download); }; return !!click; })()").await;
        page.click("save-svg").await;
        page.until_true("there is a file", "window.saved.length === 1").await;
        page.eval("(() => { window.saved[0].text().then(text => { const svg = new DOMParser().parseFromString(text, 'image/svg+xml'); window.svg = {error: !!svg.querySelector('parsererror'), title: svg.querySelector('title')?.textContent, boxes: svg.querySelectorAll('path, rect').length}; }); return true; })()").await;
        page.until_true("it is read", "!!window.svg").await;
        let svg = page.eval("window.svg").await;
        assert_eq!(svg["error"], json!(false), "{svg}");
        assert!(svg["title"].as_str().unwrap().starts_with("Prefix tree, all prompts; width: cached blocks"), "{svg}");
        assert!(svg["boxes"].as_u64().unwrap() > 3, "{svg}");
        page.click("save-png").await;
        page.until_true("there is a second file", "window.saved.length === 2").await;
        page.eval("(() => { createImageBitmap(window.saved[1]).then(image => { const c = new OffscreenCanvas(image.width, image.height).getContext('2d'); c.drawImage(image, 0, 0); const px = new Uint32Array(c.getImageData(0, 0, image.width, image.height).data.buffer); window.png = {width: image.width, height: image.height, colours: new Set(px).size, opaque: px.every(p => p >>> 24 === 255)}; }); return true; })()").await;
        page.until_true("it is read", "!!window.png").await;
        let png = page.eval("window.png").await;
        let (_, _, width, height) = page.rectangle("#tree").await;
        assert_eq!(png["width"].as_f64(), Some(width.round()), "{png}");
        assert!(png["height"].as_f64().unwrap() > height, "room for words: {png}");
        assert!(png["colours"].as_u64().unwrap() > 8, "{png}");
        assert_eq!(png["opaque"], json!(true));
        let names = page.eval("window.names").await;
        let seq = server.cluster().await["seq"].to_string();
        for (name, end) in names.as_array().unwrap().iter().zip(["svg", "png"]) {
            let name = name.as_str().unwrap();
            assert!(name.starts_with("radixscope-tree-20") && name.ends_with(&format!(".{end}")), "{name}, {seq}");
        }
    })
    .await;
}
