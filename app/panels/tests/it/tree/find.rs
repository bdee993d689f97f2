//! Finding one's way: whatever is pasted is found, lists name the largest prefixes, details are the block's, an open decision says by how
//! much it was won.

use radixscope_icicle::crumb::Crumb;
use radixscope_insight::completeness::Trust;
use radixscope_model::id::{BlockHash, DecisionId, Millis, Seq, Slot, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Decision, DecisionSource, Entry, Record};
use radixscope_panels::format::{count, plural};
use radixscope_panels::tree::{
    CopiesFigures, CopiesTable, DecisionPath, DecisionStep, Detail, EmptyList, Hovered, LINES, Narrow,
    OpenDecision, PrefixList, Ranked, SearchKey, SearchResults, Subject, Way, brackets, end_label,
    end_of_path, gone_text, linked_block, next_with_path, no_path_text, path_text, pool_to_show,
};
use radixscope_sim::Topology;
use radixscope_state::cluster::{Cluster, DecisionEntry};
use radixscope_state::redundancy::{BlockSize, Redundancy};
use radixscope_state::tree::forest::Arrangement;

use super::{as_on_page, with_forest};
use crate::folded::Folded;

/// The latest decision whose prompt was held and of which all candidates are known.
fn explained(folded: &Folded) -> DecisionEntry {
    let mut latest = folded.cluster.decisions().newest_first();
    let found = latest.find(|d| {
        let is_known = d.decision.path.is_some() && d.decision.candidates.len() == 3;
        is_known && end_of_path(&folded.shown(), d.decision.id).is_some()
    });
    found.expect("a decision whose prompt was held").clone()
}

#[test]
fn whatever_is_pasted_is_found() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let shown = folded.shown();
    let decided = explained(&folded);
    let BlockHash(hash) = decided.decision.path.unwrap().block_hash;
    let find = |text: &str| SearchResults::of(&shown, text, 0);
    let end = end_of_path(&shown, decided.decision.id).unwrap();
    for text in [hash.to_string(), format!(" {hash:#x} "), hash.cast_signed().to_string()] {
        let results = find(&text);
        assert_eq!(results.lines[0].way, Way::Block(shown.pool, end), "{text}");
        assert_eq!(results.lines[0].main, format!("Block at position {}", count(end.position.into())));
        assert!(results.summary().contains("block hash or tokens hash"), "{}", results.summary());
        assert!(results.blocks(shown.pool).contains(&end));
    }
    let by_tokens = find(&end.tokens.to_string());
    assert!(
        by_tokens.lines.iter().any(|line| line.more.contains(&format!("block hash {hash}"))),
        "{by_tokens:?}"
    );
    let worker = shown.drawn_workers().nth(1).unwrap();
    let results = find("W2");
    assert_eq!((results.lines[0].way, results.lines[0].group), (Way::Worker(worker), "Workers"));
    assert_eq!(results.lines[0].more, plural(shown.blocks(worker).unwrap(), "block", "blocks"));
    let id = decided.decision.id;
    let results = find(&format!("#{id}"));
    assert_eq!((results.lines.len(), results.lines[0].way), (1, Way::Decision(id)));
    assert_eq!(results.summary(), "1 result for number of a decision");
    let held = plural(decided.overlap_blocks().unwrap(), "block", "blocks");
    assert_eq!(results.lines[0].more, format!("for {}, {held} cached", decided.decision.worker));
    assert_eq!(SearchKey::of("Enter", Some(&results), 0, true), Some(SearchKey::Go));

    let nothing = find("0xdeadbeef");
    let summary = nothing.summary();
    assert!(
        summary.starts_with("Nothing found for 0xdeadbeef as ") && summary.contains("decimal 3735928559"),
        "{summary}"
    );
    assert!(summary.contains("Looked through distinct blocks"), "{summary}");
    assert!(find("a b").summary().starts_with("Not understood: "));
    assert!(nothing.groups().is_empty());
}

/// A worker, and what is received after it.
fn with_records(records: Vec<Record<'static>>) -> Folded {
    let (mut cluster, now) = (Cluster::default(), Millis(1_800_000_000_000));
    let worker = Record::new_worker(WorkerIx::first(Slot(0)), Worker::new(7, 0), "dynamo", "backend");
    for record in std::iter::once(worker).chain(records) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: now, record });
    }
    Folded { cluster, now }
}

#[test]
fn a_part_of_a_hash_is_found_as_logs_print_it() {
    // Each block is found by its name and by its tokens, which are one number here.
    let long = 8_446_744_073_709_551_000_u64;
    let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
    let blocks: Vec<Block> = (long..long + 30).map(block).collect();
    let stored = Record::Stored { worker: WorkerIx::first(Slot(0)), parent: None, blocks: blocks.into() };
    let folded = with_records(vec![stored]);
    let shown = folded.shown();
    let find = |text: &str, from| SearchResults::of(&shown, text, from);
    for text in ["8446744073709551012…", "844674…1012"] {
        assert_eq!(find(text, 0).total, 2, "{text}");
        assert_eq!(
            find(text, 0).blocks(shown.pool).iter().map(|crumb| crumb.position).collect::<Vec<_>>(),
            [12, 12]
        );
    }
    let hex = format!("{:x}", long + 12);
    assert!(
        find(&hex[..15], 0).summary().contains("part of a block hash"),
        "{}",
        find(&hex[..15], 0).summary()
    );
    let all = [0, 20, 40].map(|from| find("4407370955", from));
    for (results, shown) in all.iter().zip(["1–20 shown", "21–40 shown", "41–60 shown"]) {
        assert!(
            results.summary().starts_with("60 results for ") && results.summary().ends_with(shown),
            "{}",
            results.summary()
        );
    }
    assert_eq!(all.each_ref().map(|results| results.beside(true)), [Some(20), Some(40), None]);
    assert_eq!(all[0].lines[0].way, Way::Block(shown.pool, linked_block(&shown, BlockHash(long)).unwrap()));
}

#[test]
fn results_are_turned_over_and_walked_by_keys() {
    // 45 decisions whose requests' ids begin alike.
    let worker = WorkerIx::first(Slot(0));
    let mut records = Vec::new();
    for id in 0..45 {
        let mut decision = Decision::new(DecisionId(id), worker, DecisionSource::Log);
        decision.request_id = Some(format!("chat-{id}"));
        records.push(Record::Decision(Box::new(decision)));
    }
    let folded = with_records(records);
    let shown = folded.shown();
    let first = SearchResults::of(&shown, "chat-", 0);
    assert_eq!(first.total, 45);
    assert_eq!((first.lines.len(), first.from), (20, 0));
    assert_eq!(first.summary(), "45 results for beginning of a request id, 1–20 shown");
    assert_eq!((first.beside(true), first.beside(false)), (Some(20), None));
    let second = SearchResults::of(&shown, &first.text, 20);
    assert_eq!((second.beside(false), second.beside(true)), (Some(0), Some(40)));
    let last = SearchResults::of(&shown, "chat-", 40);
    assert_eq!((last.lines.len(), last.beside(true), last.beside(false)), (5, None, Some(20)));
    assert!(
        last.summary().ends_with(", 41–45 shown") && last.lines[0].more == "for W1, cached part unknown",
        "{last:?}"
    );
    let key = |key, results, at, is_open| SearchKey::of(key, Some(results), at, is_open);
    assert_eq!(key("ArrowDown", &first, 3, true), Some(SearchKey::Mark(4)));
    assert_eq!(key("ArrowUp", &first, 3, true), Some(SearchKey::Mark(2)));
    assert_eq!(key("ArrowUp", &first, 0, true), Some(SearchKey::Mark(19)), "there are none before them");
    assert_eq!(
        key("ArrowDown", &first, 19, true),
        Some(SearchKey::Turn { is_next: true, marks_last: false })
    );
    assert_eq!(key("ArrowUp", &second, 0, true), Some(SearchKey::Turn { is_next: false, marks_last: true }));
    assert_eq!(key("ArrowDown", &first, 3, false), Some(SearchKey::Open));
    assert_eq!(key("PageDown", &first, 3, true), Some(SearchKey::Turn { is_next: true, marks_last: false }));
    assert_eq!(
        [key("Escape", &first, 3, true), key("Escape", &first, 3, false)],
        [Some(SearchKey::Close), Some(SearchKey::Leave)]
    );
    assert_eq!(SearchKey::of("ArrowDown", None, 0, true), None);
    let groups = first.groups();
    assert_eq!(groups.iter().map(|(_, lines)| lines.len()).sum::<usize>(), 20);
    assert!(groups.windows(2).all(|pair| pair[0].0 != pair[1].0));
}

#[test]
fn lists_name_the_largest_and_the_most_used_prefixes() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 60);
    with_forest(&mut folded, as_on_page(), |shown, forest| {
        let tree = shown.tree();
        let list = PrefixList::of(shown, forest, Ranked::Largest, LINES);
        assert_eq!(u64::from(list.blocks), tree.totals().nodes);
        assert!(list.lines.len() <= LINES && !list.lines.is_empty());
        assert!(list.lines.is_sorted_by(|a, b| a.blocks >= b.blocks));
        for line in &list.lines {
            let prefix = tree.prefix(line.crumb.node(tree).unwrap()).unwrap();
            assert_eq!((line.blocks, line.copies), (prefix.blocks, prefix.copies));
            assert!(!line.owners.is_empty());
        }
        let line = &list.lines[0];
        let main = list.main_text(Ranked::Largest, line);
        assert!(
            main.starts_with(&plural(line.blocks.into(), "block", "blocks")) && main.ends_with('%'),
            "{main}"
        );
        assert_eq!(
            list.bar(Ranked::Largest, line),
            format!("--share:{:.1}%", f64::from(line.blocks) / f64::from(list.blocks) * 100.0)
        );
        assert!(line.title().starts_with("Go there. At and below it: "));
        let place = if line.last == 0 {
            "block 0".to_owned()
        } else {
            format!("blocks 0–{}", count(line.last.into()))
        };
        assert_eq!(line.place(), place);
        assert_eq!(list.head(Ranked::Largest), "By cached blocks at and below. Near-duplicates hidden.");
        let hottest = PrefixList::of(shown, forest, Ranked::Hottest, LINES);
        assert!(hottest.requests > 0 && hottest.lines.is_sorted_by(|a, b| a.hits >= b.hits));
        assert_eq!(
            hottest.head(Ranked::Hottest),
            format!(
                "By requests of the last 5 min that found them cached, of {} known.",
                plural(hottest.requests.into(), "request", "requests")
            )
        );
        let line = &hottest.lines[0];
        assert!(hottest.main_text(Ranked::Hottest, line).starts_with(&plural(
            line.hits.into(),
            "hit",
            "hits"
        )));
        assert_eq!(hottest.other_text(Ranked::Hottest, line), hottest.main_text(Ranked::Largest, line));
        let few = PrefixList::of(shown, forest, Ranked::Largest, 1);
        assert!(few.is_cut && few.can_grow(1) && !few.can_grow(100), "the table has more");
    });
    let text = |by, requests, blocks| match EmptyList::of(by, requests, blocks, || None) {
        EmptyList::Text(text) => text,
        EmptyList::Hint(text, hint) => format!("{text} {}", hint.text),
    };
    assert_eq!(text(Ranked::Largest, 3, 0), "No cached block. The list fills with the first stored one.");
    assert_eq!(text(Ranked::Largest, 3, 7), "No prefix is known from its beginning.");
    assert_eq!(text(Ranked::Hottest, 3, 7), "None of 3 requests in the last 5 min found a cached block.");
    assert!(text(Ranked::Hottest, 0, 7).starts_with("Prompts are not visible: "));
    // Without a log and without the routers' sync no request is known.
    let mut silent = Folded::without_requests(20);
    with_forest(&mut silent, as_on_page(), |shown, forest| {
        let hottest = PrefixList::of(shown, forest, Ranked::Hottest, LINES);
        assert_eq!((hottest.requests, hottest.lines.len()), (0, 0));
        let largest = PrefixList::of(shown, forest, Ranked::Largest, LINES);
        assert_eq!(largest.other_text(Ranked::Largest, &largest.lines[0]), "hits unknown");
        let EmptyList::Hint(..) =
            EmptyList::of(Ranked::Hottest, 0, largest.blocks, || shown.decisions_hint())
        else {
            panic!("a source would show prompts");
        };
    });
}

#[test]
fn the_details_of_a_block_are_those_of_the_tree() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let now = folded.now;
    with_forest(&mut folded, as_on_page(), |shown, forest| {
        let tree = shown.tree();
        let largest = PrefixList::of(shown, forest, Ranked::Largest, LINES);
        let crumb = largest.lines[0].crumb;
        let detail = Detail::of(shown, forest, crumb).unwrap();
        let node = crumb.node(tree).unwrap();
        let prefix = tree.prefix(node).unwrap();
        assert_eq!(detail.owners, shown.owners(tree.owners(node)).collect::<Vec<_>>());
        assert_eq!(detail.holders_text(3), format!("{} of 3 workers", detail.owners.len()));
        assert_eq!(detail.position_text(None), "0");
        assert_eq!(detail.position_text(Some(32)), "0, tokens 0–31");
        let at = Detail { crumb: Crumb { position: 1_000, ..crumb }, ..detail.clone() };
        assert_eq!(at.position_text(Some(16)), "1,000, tokens 16,000–16,015");
        assert_eq!(detail.box_text(), format!("block 1 of {}", count(prefix.chain_len.into())));
        assert_eq!(detail.children_text(), count(prefix.children.into()));
        assert!(
            detail.subtree_text().starts_with(&plural(prefix.blocks.into(), "block", "blocks")),
            "{}",
            detail.subtree_text()
        );
        assert!(detail.hits_text().contains(&format!(
            "{} of {}",
            count(prefix.hits.into()),
            plural(forest.requests().into(), "request", "requests")
        )));
        assert_eq!(detail.deepest_text(), format!("block {}", count(u64::from(prefix.bottom - 1))));
        assert_eq!((detail.names_text(), detail.above), (Vec::new(), None));
        assert!(detail.first_stored <= detail.last_stored && detail.last_stored <= now);
        let copies = plural(prefix.copies, "block", "blocks");
        assert_eq!(detail.copies_text(BlockSize { tokens: None, bytes_per_token: None }), copies);
        let sized = BlockSize { tokens: Some(32), bytes_per_token: Some(131_072) };
        assert!(
            detail.copies_text(sized).starts_with(&format!("{copies}, "))
                && detail.copies_text(sized).ends_with("GiB"),
            "{}",
            detail.copies_text(sized)
        );
        assert!(detail.shared_text().contains(&plural(Redundancy::from(&prefix).shared, "block", "blocks")));
        assert_eq!(Detail { requests: 0, ..detail.clone() }.hits_text(), "– prompts not visible");

        assert_eq!(linked_block(shown, crumb.hash), Some(crumb));
        assert_eq!(linked_block(shown, BlockHash(1)), None);
        let narrow = Hovered::NarrowBoxes(Narrow { boxes: 2, blocks: 2, workers: 1, hits: 0 });
        let other = Crumb { position: 9, ..crumb };
        assert_eq!(
            Subject::crumb(Some(crumb), Some(Hovered::Block(other))),
            Some(crumb),
            "what is selected comes first"
        );
        assert_eq!(Subject::crumb(None, Some(Hovered::Block(other))), Some(other));
        assert_eq!(Subject::crumb(None, Some(narrow)), None);
        let gone = Crumb { hash: BlockHash(1), position: 1_234, ..crumb };
        assert_eq!(Detail::of(shown, forest, gone), None);
        assert_eq!(
            Subject::of(gone, true, None).evicted_text().as_deref(),
            Some("Block 1 at position 1,234 was evicted from every worker.")
        );
        assert_eq!(Subject::of(gone, false, None), Subject::Nothing);
        assert_eq!(Subject::of(crumb, false, Some(detail.clone())).block(), Some(&detail));

        // What copies cost, in all and below the prefix.
        let (all, below) = (Redundancy::from(tree.totals()), Redundancy::from(&prefix));
        let size = BlockSize { tokens: Some(32), bytes_per_token: None };
        let table = CopiesTable::of(all, Some(below), size, &Trust::Whole);
        let row = |id| table.rows.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row("distinct").all, count(tree.totals().nodes));
        assert_eq!(
            (row("copies-blocks").below.as_str(), row("copies-tokens").below.as_str()),
            (count(prefix.copies).as_str(), count(prefix.copies * 32).as_str())
        );
        assert_eq!((row("copies-bytes").all.as_str(), table.are_bytes_unknown), ("–", true));
        assert!(table.sentence.starts_with("Selected prefix: "));
        let figures = CopiesFigures::of(all);
        assert_eq!(
            figures.shared_title,
            format!(
                "{} of {} distinct blocks are cached on two workers or more",
                count(all.shared),
                count(all.blocks)
            )
        );
        let withheld = CopiesTable::of(all, None, size, &Trust::Withheld("blocks are missing".into()));
        assert_eq!(withheld.sentence, "Withheld: blocks are missing.");
        assert!(withheld.rows.iter().all(|row| row.id == "distinct" || row.all == "–"));
        assert_eq!(withheld.rows[0].all, count(all.blocks), "what is in the tree is known");
    });
}

#[test]
fn an_open_decision_says_by_how_much_it_was_won_and_leads_to_the_next() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let decided = explained(&folded);
    let id = decided.decision.id;
    with_forest(&mut folded, Arrangement::default(), |shown, _| {
        let open = OpenDecision::of(&decided);
        let decision = &decided.decision;
        let isl = decision.isl_blocks.unwrap();
        assert_eq!(open.head, format!("#{id}, prompt of {}", plural(isl, "block", "blocks")));
        assert!(open.cost_gap.starts_with(&format!("{} ", decision.worker)), "{}", open.cost_gap);
        assert!(open.why.contains("was chosen"), "{}", open.why);
        let lanes = open.lanes.unwrap();
        assert_eq!((lanes.prompt, lanes.lanes.len(), open.more), (isl, 3, None));
        assert!(
            lanes.lanes[0].is_chosen
                && lanes.lanes[0].worker == decision.worker
                && lanes.lanes[0].beyond_text.is_none()
        );
        for lane in &lanes.lanes {
            let candidate = decision.candidates.iter().find(|of| of.worker == lane.worker).unwrap();
            let held = u64::from(candidate.overlap_blocks);
            assert_eq!((lane.device, lane.load, lane.cost), (held, candidate.decode_blocks, candidate.cost));
            assert_eq!(lane.computed, Some(isl.saturating_sub(held)));
            assert_eq!(lane.cached_text, count(held));
            let width = (held > 0).then(|| format!("{:.1}%", held as f64 / isl as f64 * 100.0));
            assert_eq!(lane.parts[0], width);
        }
        // On the picture.
        let DecisionPath::EndsAt(_, node) = DecisionPath::of(shown, id) else { panic!("it is there") };
        let depth = u64::from(shown.tree().position(node)) + 1;
        let text = path_text(&decided, depth, None);
        assert!(
            text.starts_with(&format!(
                "Decision {id} for {}: {} of its prompt were cached",
                decision.worker,
                plural(depth, "block", "blocks")
            )),
            "{text}"
        );
        assert!(
            text.contains("brackets show how far on each worker")
                && text.ends_with(&format!(
                    "{}: {}.",
                    decision.worker,
                    decided.cost_gap_text(radixscope_icicle::palette::label)
                )),
            "{text}"
        );
        assert!(
            path_text(&decided, depth, Some("3 blocks evicted"))
                .ends_with(" Dashed below: 3 blocks evicted.")
        );
        assert_eq!(end_label(id, depth), format!("decision {id}, block {}", count(depth)));
        let all = brackets(&decided);
        assert_eq!(all.len(), 3);
        assert!(all.is_sorted_by_key(|bracket| bracket.depth));
        for bracket in &all {
            let is_chosen = bracket.worker == decision.worker;
            assert_eq!(bracket.text.contains(" chosen, "), is_chosen, "{bracket:?}");
        }
        assert_eq!(end_of_path(shown, id).map(|crumb| crumb.hash), decision.path.map(|path| path.block_hash));
        assert_eq!(pool_to_show(shown, id), None, "its pool is drawn");

        let with_path: Vec<DecisionId> = shown
            .decisions()
            .newest_first()
            .filter(|d| d.decision.path.is_some())
            .map(|d| d.decision.id)
            .collect();
        let next = |from, way| next_with_path(shown, from, way);
        assert_eq!(next(None, DecisionStep::Older), Some(with_path[0]));
        assert_eq!(next(Some(with_path[2]), DecisionStep::Older), Some(with_path[3]));
        assert_eq!(next(Some(with_path[2]), DecisionStep::Newer), Some(with_path[1]));
        assert_eq!(next(Some(with_path[2]), DecisionStep::Latest), Some(with_path[0]));
        assert_eq!(
            [next(Some(with_path[0]), DecisionStep::Latest), next(Some(with_path[0]), DecisionStep::Newer)],
            [None, None]
        );
        let unknown = DecisionId(987_654);
        assert_eq!(
            DecisionPath::of(shown, unknown),
            DecisionPath::None("Decision 987654 is no longer retained, so its path is unknown".to_owned())
        );
        assert_eq!(gone_text(unknown), "Decision 987654 is no longer retained, or was not received yet.");
        assert_eq!(
            no_path_text(unknown, Some("2 blocks")),
            "Decision 987654 names no cached block, so there is no path to show. Dashed at the right: 2 blocks"
        );
    });
}

#[test]
fn with_two_models_results_and_paths_name_their_pool() {
    let folded = Folded::demo(Topology::TwoModels, 40);
    let shown = folded.shown();
    let other = shown.pool_list().into_iter().find(|&pool| pool != shown.pool).unwrap();
    let decided = folded
        .cluster
        .decisions()
        .newest_first()
        .find(|d| d.pool == other && d.decision.path.is_some())
        .expect("both get prompts");
    let id = decided.decision.id;
    assert_eq!(pool_to_show(&shown, id), Some(other));
    let DecisionPath::None(why) = DecisionPath::of(&shown, id) else { panic!("it is not the tree drawn") };
    let name = folded.cluster.pool(other).unwrap().name();
    assert_eq!(why, format!("Decision {id} is of pool {name}, whose tree is not the one drawn"));
    let hash = decided.decision.path.unwrap().block_hash;
    let results = SearchResults::of(&shown, &hash.to_string(), 0);
    let line = results.lines.iter().find(|line| matches!(line.way, Way::Block(pool, _) if pool == other));
    assert!(line.is_some_and(|line| line.more.contains(&format!(", in pool {name}"))), "{results:?}");
    assert!(results.blocks(shown.pool).len() < results.lines.len());
    let nothing = Folded { cluster: Cluster::default(), now: Millis(1) };
    assert!(
        SearchResults::of(&nothing.shown(), "123456", 0).summary().starts_with("Nothing found for 123456")
    );
    assert_eq!(next_with_path(&nothing.shown(), None, DecisionStep::Latest), None);
}
