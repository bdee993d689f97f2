//! Choices, legend, lanes and the short texts round the picture.

use radixscope_export::tree::svg::Heat;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::viewport::Region;
use radixscope_insight::changes::BlockChange;
use radixscope_model::id::{Millis, Slot, WorkerIx};
use radixscope_panels::format::{count, plural};
use radixscope_panels::tree::{
    BlockSummary, CONTROLS, ChangeKey, Choice, LANE_SECONDS, LaneContent, Narrow, PathBar, PauseReason,
    PictureFacts, RequestsInFlight, SideTab, TreePlacement, WorkerKey, axis_unit, blocks_and_coverage,
    distinct_blocks, fill_text, highest_rate, hits_end_text, hits_note, known_requests, lights_text,
    lights_title, oldest_text, path_note, picked_text, picture_sums, replica_steps, replicas_end,
    shared_text, showing, shown_of, tip_place, turn_text,
};
use radixscope_panels::url::Address;
use radixscope_sim::{Config, Topology};
use radixscope_state::tree::forest::{Arrangement, Order, Width};

use super::{as_on_page, with_forest};
use crate::folded::Folded;

#[test]
fn each_control_chooses_what_it_says_and_the_address_keeps_it() {
    for group in CONTROLS {
        for segment in group.all {
            let mut address = Address::parse("?view=tree&tree.heat=hits&tree.width=hits&tree.lanes=1").0;
            (segment.choose)(&mut address);
            let choice = Choice::of(TreePlacement::Page, &Address::parse(&address.query()).0);
            let on: Vec<&str> = group.all.iter().filter(|of| (of.is_on)(&choice)).map(|of| of.id).collect();
            assert_eq!(on, [segment.id], "of {}, exactly one is chosen", group.name);
        }
    }
    let plain = Choice::of(TreePlacement::Page, &Address::parse("?view=tree").0);
    assert_eq!(
        (plain.heat, plain.lanes, plain.table, plain.needs_hits()),
        (Heat::Owner, false, false, false)
    );
    let hits = Choice::of(TreePlacement::Page, &Address::parse("?tree.width=hits").0);
    assert!(hits.needs_hits() && hits.arrangement.width == Width::Hits);
    // The overview's picture obeys the order alone.
    let address = Address::parse("?order=stable&tree.heat=hits&tree.table=1").0;
    let overview = Choice::of(TreePlacement::Overview, &address);
    assert_eq!(
        (overview.arrangement.order, overview.heat, overview.table),
        (Order::Stable, Heat::Owner, false)
    );
    assert_eq!([axis_unit(&plain, Some(32)), axis_unit(&plain, None)], [Some("tokens"), Some("blocks")]);
    let (table, lanes) = (Choice { table: true, ..plain }, Choice { lanes: true, ..plain });
    assert_eq!([axis_unit(&table, None), axis_unit(&lanes, None)], [None, None]);
    assert_eq!(path_note(&table, "a path"), "The table shows no path: choose Icicle to see it.");
    assert_eq!(path_note(&lanes, "a path"), "Lanes show no path: choose Icicle to see it.");
    assert_eq!(path_note(&plain, "a path"), "a path");
}

#[test]
fn legends_say_what_colours_mean_in_numbers() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let now = folded.now;
    with_forest(&mut folded, as_on_page(), |shown, forest| {
        let requests = known_requests(shown, now);
        assert_eq!(requests, forest.requests());
        let most = forest.children(None).iter().map(|&id| forest.chain(id).sums.hits).max().unwrap();
        let end = hits_end_text(requests, Some(forest)).unwrap();
        assert!(end.ends_with(&format!(" in 5 min (most: {})", count(most.into()))), "{end}");
        assert_eq!(hits_end_text(0, Some(forest)), None);
        assert!(
            oldest_text(Some(forest), now).ends_with("ago") || !oldest_text(Some(forest), now).is_empty()
        );
        let note = hits_note(requests, Some((shown.tree(), forest)));
        assert_eq!(
            note,
            format!(
                "Hits of the last 5 minutes, from {} whose cached blocks are known",
                plural(requests.into(), "request", "requests")
            )
        );
        assert_eq!(hits_note(0, None), "No hit is known in the last 5 minutes, so hits rank nothing");
        let totals = shown.tree().totals();
        assert_eq!(distinct_blocks(totals, true), count(totals.nodes));
        assert_eq!(distinct_blocks(totals, false), "–");
        assert!(shared_text(totals).ends_with('%'));
        assert_eq!(
            shown_of(totals),
            format!("{}/{}", count(totals.resident - totals.hidden), count(totals.resident))
        );
        assert!(picture_sums(totals).starts_with(&format!(
            "{} distinct blocks, {} on several workers, 0 hidden",
            count(totals.nodes),
            count(totals.shared)
        )));
        assert!(blocks_and_coverage(shown).starts_with(&plural(
            totals.nodes,
            "distinct block",
            "distinct blocks"
        )));
    });
    let by_hits = Arrangement { width: Width::Hits, ..as_on_page() };
    with_forest(&mut folded, by_hits, |shown, forest| {
        let note = hits_note(forest.requests(), Some((shown.tree(), forest)));
        let all = count(forest.sums().blocks.into());
        assert!(
            note.ends_with("are known")
                || note.ends_with(&format!("of {all} blocks are in boxes without a hit and are hidden")),
            "{note}"
        );
    });
    assert_eq!(
        [replicas_end(1), replicas_end(3), replicas_end(17)],
        ["1 worker".to_owned(), "3 workers".to_owned(), "17 workers, in steps from 17 on".to_owned()]
    );
    assert_eq!(picked_text(WorkerIx::first(Slot(1))), "dimmed: not on W2");
    let workers = |n: u16| (0..n).map(|slot| WorkerIx::first(Slot(slot))).collect::<Vec<_>>();
    let key = WorkerKey::of(&workers(3));
    assert_eq!((key.listed.len(), key.more, key.beyond_ticks), (3, None, None));
    let key = WorkerKey::of(&workers(25));
    assert_eq!((key.listed.len(), key.more.as_deref()), (20, Some("+5 more")));
    assert_eq!(key.beyond_ticks.as_deref(), Some("more than 16 workers: their number"));
    assert!(
        replica_steps(3)
            .iter()
            .all(|(token, text)| token.starts_with("--tree-replicas-") && !text.is_empty())
    );
    assert_eq!(replica_steps(2).len(), 1, "two workers share in one way");
    let narrow = Narrow { boxes: 37, blocks: 1_204, workers: 0b1011, hits: 0 };
    assert_eq!(narrow.to_text(false), "37 boxes, 1,204 blocks, 3 workers");
    assert_eq!(
        Narrow { hits: 1, ..narrow }.to_text(true),
        "37 boxes, 1,204 blocks, 3 workers or more, 1 hit"
    );
    assert!(narrow.to_text_of_changes().starts_with("37 boxes, 1,204 blocks: "));
    let key = ChangeKey::of(BlockChange::ALL[0], 1_000).unwrap();
    assert_eq!((key.count.as_str(), key.title), ("1,000", "The same workers hold it at A and at B"));
    assert_eq!(
        ChangeKey::of(BlockChange::Elsewhere, 0),
        None,
        "only where a worker is selected is there any"
    );
    assert_eq!(ChangeKey::of(BlockChange::Elsewhere, 2).unwrap().name, "not on the selected worker");
}

#[test]
fn a_lane_says_how_much_its_worker_holds_and_what_came_and_went() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 90);
    let (shown, now) = (folded.shown(), Millis(folded.now.0 / 1_000 * 1_000));
    let top = highest_rate(&shown, now);
    for worker in shown.drawn_workers() {
        let lane = LaneContent::of(&shown, worker, now).unwrap();
        assert_eq!((lane.stored.len() as u64, lane.removed.len() as u64), (LANE_SECONDS, LANE_SECONDS));
        let known: Vec<_> = shown.rates(worker, now, LANE_SECONDS).filter_map(|(_, bucket)| bucket).collect();
        let stored: u64 = known.iter().map(|bucket| u64::from(bucket.stored)).sum();
        assert!(
            lane.description.contains(&format!("; {} blocks stored, ", count(stored))),
            "{}",
            lane.description
        );
        assert!(
            lane.description.starts_with(&format!("{worker}, worker {}", lane.id)),
            "{}",
            lane.description
        );
        assert!(lane.stored.iter().flatten().all(|&blocks| blocks <= top));
        assert!(lane.description.contains(&lane.figures.blocks_text()));
        let held = shown.blocks(worker).unwrap();
        let capacity = shown.capacity(worker).map(|capacity| capacity.value);
        let expected = match capacity {
            Some(blocks) => {
                format!("{} full", radixscope_panels::format::percent(held as f64 / blocks as f64))
            }
            None => format!("{} blocks", radixscope_panels::format::short(held)),
        };
        assert_eq!(fill_text(&shown, worker), expected);
    }
    let silent = Folded::without_events(30);
    let shown = silent.shown();
    let worker = shown.drawn_workers().next().unwrap();
    let lane = LaneContent::of(&shown, worker, silent.now).unwrap();
    assert!(
        lane.description.contains("blocks unknown, ")
            && lane.description.ends_with("no KV event received, so what is cached is unknown"),
        "{}",
        lane.description
    );
    assert_eq!(fill_text(&shown, worker), "unknown");
    assert_eq!(highest_rate(&shown, silent.now), 1.0, "no curve is divided by zero");
    assert_eq!(blocks_and_coverage(&shown), "");
}

#[test]
fn the_reader_is_told_where_the_camera_is_and_why_the_tree_is_paused() {
    let mut folded = Folded::demo(Topology::AggregatedV0_9, 30);
    let now = folded.now;
    with_forest(&mut folded, Arrangement::default(), |shown, forest| {
        let all = Region::all(forest);
        let bottom = all.bottom as u64;
        assert_eq!(
            showing(all, forest, None),
            format!("Blocks 0–{} of the prompt, 100 % of the tree's blocks across", count(bottom))
        );
        let part = Region { x1: all.x1 / 50.0, top: 2.5, bottom: 9.5, ..all };
        assert_eq!(
            showing(part, forest, Some(32)),
            "Blocks 2–10 of the prompt, tokens 64–320, 2.0 % of the tree's blocks across"
        );
        let choice = Choice::default();
        let iso = "2026-01-01T00:00:30.000Z";
        let facts = PictureFacts::of(shown, forest, all, &choice, iso);
        assert_eq!(facts.title, "Prefix tree, all prompts; width: cached blocks; colour: worker");
        let seq = shown.seq().0;
        assert_eq!(
            (facts.at, facts.name),
            (format!("{iso}, record {}", count(seq)), format!("radixscope-tree-2026-01-01T00-00-30-{seq}"))
        );
        let hits = Choice { heat: Heat::Hits, ..choice };
        let facts = PictureFacts::of(shown, forest, part, &hits, iso);
        assert_eq!(
            facts.title,
            "Prefix tree, positions 3 to 10; width: cached blocks; colour: hits of the last 5 min"
        );

        let first = forest.children(None)[0];
        let block = BlockSummary::of(shown, forest, first, 0);
        let chain = forest.chain(first);
        assert_eq!((block.position, block.len, block.above), (0, chain.len, 0));
        assert_eq!(block.tokens_of().as_deref(), Some("0–31"));
        assert_eq!((block.place(), block.hash_name()), ("0 (tokens 0–31)".to_owned(), "Block hash"));
        let sentence = block.sentence(now);
        assert!(
            sentence.starts_with(&format!(
                "Block 0 of the prompt, {} in a row, on ",
                plural(chain.len.into(), "block", "blocks")
            )),
            "{sentence}"
        );
        assert!(sentence.ends_with(&format!("hash {}", block.hash)), "{sentence}");
        // Beyond its end a box has no block: the last one is meant.
        assert_eq!(BlockSummary::of(shown, forest, first, u32::MAX).position, chain.end() - 1);

        let at = |position| Crumb { position, ..Crumb::of(shown.tree(), forest, first) };
        let path: Vec<Crumb> = [0, 10, 20, 30, 40, 1_000].map(at).to_vec();
        let bar = PathBar::of(&path, Some(32));
        assert_eq!(
            bar.first.iter().chain(&bar.last).map(|item| item.crumb.position).collect::<Vec<_>>(),
            [0, 30, 40, 1_000]
        );
        assert_eq!(bar.between.as_deref(), Some("2 boxes between"));
        let last = bar.last.last().unwrap();
        assert!(last.is_last && last.token.as_deref() == Some("32,000"));
        assert!(last.title().starts_with("Zoom to block 1000 and what is below it: hash "));
        let short = PathBar::of(&path[..3], None);
        assert_eq!((short.first.len(), short.last.len(), short.between), (1, 2, None));
        assert!(short.first[0].token.is_none() && PathBar::of(&[], None).first.is_empty());
    });
    assert_eq!(
        PauseReason::of(true, true).map(PauseReason::to_text),
        Some("Paused while the pointer is here")
    );
    assert_eq!(
        PauseReason::of(false, true).map(PauseReason::to_text),
        Some("Paused while a box has the focus")
    );
    assert_eq!(PauseReason::of(false, false), None);

    let two = Folded::demo(Topology::TwoModels, 10);
    let shown = two.shown();
    let labels = shown.pool_labels();
    let text = turn_text(&labels, labels[1].pool).unwrap();
    assert!(text.ends_with(", pool 2 of 2"), "{text}");
    assert_eq!(turn_text(&[], shown.pool), None);
    let many = Folded::of(Config { workers: 20, ..Config::default() }, 5);
    assert_eq!(WorkerKey::of(&many.shown().drawn_workers().collect::<Vec<_>>()).listed.len(), 20);
}

#[test]
fn each_request_in_prefill_ends_where_its_workers_cached_blocks_do() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let shown = folded.shown();
    let requests = RequestsInFlight::of(&shown);
    let decisions = folded.cluster.decisions();
    let is_reported = decisions.newest_first().take(256).any(|d| {
        d.progress.ended_ms.is_some() || d.progress.ttft_us.is_some() || d.progress.first_token_ms.is_some()
    });
    assert!(is_reported && !requests.known.is_empty());
    for request in &requests.known {
        let decided = decisions.get(request.id).unwrap();
        let path = decided.decision.path.unwrap();
        assert!(
            request.cached <= path.blocks && u64::from(request.cached) <= decided.overlap_blocks().unwrap()
        );
        assert_eq!(Some(request.worker), shown.slot(decided.decision.worker));
        assert_eq!(shown.tree().block_hash_by(request.end, path.worker.slot()), path.block_hash);
        let has_token = decided.progress.ttft_us.is_some()
            || decided.progress.first_token_ms.is_some()
            || decided.progress.ended_ms.is_some();
        assert!(!request.is_computed || !has_token, "{request:?}");
    }
    assert_eq!(lights_text(3, 0, 0), "prompts in prefill: 3");
    assert_eq!(lights_text(1_000, 2, 3), "prompts in prefill: 1,000, 2 not drawn, 3 without a known path");
    assert!(lights_title().contains(" new ones a second"));
}

#[test]
fn the_text_beside_the_pointer_stands_where_there_is_room_and_tabs_go_round() {
    assert_eq!(tip_place((100.0, 50.0), (800.0, 400.0)), "left:114px;top:64px");
    assert_eq!(tip_place((700.0, 350.0), (800.0, 400.0)), "right:114px;bottom:64px");
    assert_eq!(SideTab::ALL.map(SideTab::name), ["Largest", "Hottest", "Duplicates", "Decision"]);
    let after = |at, key| SideTab::after(at, key);
    assert_eq!(
        [after(0, "ArrowRight"), after(3, "ArrowRight")],
        [Some(SideTab::Hottest), Some(SideTab::Largest)]
    );
    assert_eq!(
        [after(0, "ArrowLeft"), after(2, "Home"), after(0, "End")],
        [Some(SideTab::Decision), Some(SideTab::Largest), Some(SideTab::Decision)]
    );
    assert_eq!(after(0, "x"), None);
    assert_eq!(SideTab::Copies.id(), "side-tab-copies");
}
