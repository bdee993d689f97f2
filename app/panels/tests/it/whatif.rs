//! What-if: the answers are those of the router's arithmetic, known from the worked example and from recorded costs.

use radixscope_insight::whatif::{Blocks, CandidateRef, Hashes, MAX_ADDED, WhatIf, WorkerChanges};
use radixscope_model::id::{BlockHash, DecisionId, Millis, Worker};
use radixscope_panels::costs::CostScale;
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::Address;
use radixscope_panels::whatif::{
    FetchedPrompt, FleetTable, InputFault, LoadPart, Mode, MomentText, Query, Response, TokenIds, Wanted,
    busy, cached_prefix_of_latest, defaults_of, describe, example_rows, exclude, fault_of, has_roles,
    in_version, is_excluded, latest, newer, older, pool, prefix_workers, respond, role_named, set_busy,
    settings, settings_known_for, token_blocks, version,
};
use radixscope_router::{Formula, Role, RouterSettings, example};
use radixscope_sim::Topology;
use radixscope_state::cluster::DecisionEntry;

use crate::folded::Folded;

fn ask(folded: &Folded, query: Query) -> Result<Response, InputFault> {
    respond(&mut WhatIf::default(), &folded.shown(), folded.now, query)
}

fn costs(response: &Response) -> Vec<f64> {
    response.rows.iter().map(|row| row.terms.cost).collect()
}

fn example() -> Query {
    Query { mode: Mode::Example, options: example::SETTINGS, ..Query::default() }
}

/// The latest decision of which every candidate's cost was logged.
fn with_candidates(folded: &Folded) -> &DecisionEntry {
    let mut latest = folded.cluster.decisions().newest_first();
    latest.find(|decided| decided.decision.candidates.len() == 3).expect("the log has all candidates")
}

#[test]
fn the_worked_example_is_won_by_its_second_worker_and_without_it_by_the_first() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 10);
    let response = ask(&folded, example()).unwrap();
    assert_eq!(costs(&response), [30.0, 90.0, 99.0]);
    assert_eq!(response.headline, "Worker 2 wins");
    assert_eq!(response.cost_gap, "Cost gap 60 blocks to the next");
    assert_eq!(response.prompt, "1,600 tokens in 100 blocks of 16");
    assert_eq!(response.rows[0].label, "Worker 2");
    assert_eq!(response.rows[0].worker, None);
    assert!(response.rows[0].is_chosen && !response.rows[1].is_chosen);
    let text = response.rows[0].on(&CostScale::of_rows(&response.rows));
    assert!(text.about.ends_with("; 75 blocks saved by the cache"), "{}", text.about);
    assert_eq!([text.cost.as_str(), &text.probability, &text.cached], ["30", "100 %", "75"]);
    assert_eq!((response.more.as_str(), response.versus.as_ref()), ("", None));

    let mut changes = WorkerChanges::default();
    exclude(&mut changes, CandidateRef::Example(1), true);
    assert!(is_excluded(&changes, CandidateRef::Example(1)));
    let without = ask(&folded, Query { changes: changes.clone(), ..example() }).unwrap();
    assert_eq!((costs(&without), without.headline.as_str()), (vec![90.0, 99.0], "Worker 1 wins"));
    exclude(&mut changes, CandidateRef::Example(1), false);
    assert_eq!(changes, WorkerChanges::default());

    // 10 more blocks on the first one, which has 90, and 1 more on the third, which has 99.
    set_busy(&mut changes, CandidateRef::Example(0), LoadPart::Decode, " 10 ");
    set_busy(&mut changes, CandidateRef::Example(2), LoadPart::Decode, "1");
    exclude(&mut changes, CandidateRef::Example(1), true);
    let tied = ask(&folded, Query { changes: changes.clone(), ..example() }).unwrap();
    assert_eq!(tied.headline, "Worker 1, Worker 3 tie");
    assert_eq!(tied.cost_gap, "The lowest cost is shared: a tie");
    assert!(tied.rows.iter().all(|row| row.marks == ["load changed"] && row.probability == Some(0.5)));
    assert_eq!(LoadPart::Decode.of(&busy(&changes, CandidateRef::Example(0))), 10);
    set_busy(&mut changes, CandidateRef::Example(0), LoadPart::Decode, "0");
    set_busy(&mut changes, CandidateRef::Example(2), LoadPart::Decode, "no number");
    assert!(changes.busy.is_empty(), "0 is no change");

    let rows = example_rows();
    assert_eq!(
        rows.iter().map(|row| (row.number, row.cached, row.cost)).collect::<Vec<_>>(),
        [(1, 20, 90.0), (2, 75, 30.0), (3, 10, 99.0)]
    );
    assert_eq!(rows.iter().filter(|row| row.wins).map(|row| row.number).collect::<Vec<_>>(), [2]);
    assert!(
        rows.iter()
            .all(|row| row.prefill == 100.0 - f64::from(row.cached) && row.cost == row.prefill + row.decode)
    );
}

#[test]
fn a_recorded_decision_costs_what_its_router_logged_and_is_compared_with_the_choice() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let shown = folded.shown();
    let decided = with_candidates(&folded);
    let id = decided.decision.id;
    let options = settings_known_for(&shown, Some(id));
    assert_eq!(
        (options.formula, options.overlap_score_weight),
        (Formula::A, 1.0),
        "as the simulator runs it"
    );
    let query = Query { decision: format!(" {id} "), options, ..Query::default() };
    let response = ask(&folded, query.clone()).unwrap();
    let mut logged: Vec<f64> = decided.decision.candidates.iter().map(|candidate| candidate.cost).collect();
    logged.sort_by(f64::total_cmp);
    // The log writes three decimals of each.
    let close = |a: f64, b: f64| (a - b).abs() < 1e-3;
    assert!(costs(&response).iter().zip(&logged).all(|(&a, &b)| close(a, b)), "{response:?} of {logged:?}");
    assert_eq!(response.rows.len(), logged.len());
    assert_eq!(response.rows.iter().map(|row| row.rank).collect::<Vec<_>>(), [1, 2, 3]);
    for row in &response.rows {
        let candidate = decided.decision.candidates.iter().find(|of| Some(of.worker) == row.worker).unwrap();
        assert_eq!((row.overlap_blocks, row.ghost), (candidate.overlap_blocks, Some(candidate.cost)));
        assert_eq!(row.marks.contains(&"actual choice"), candidate.worker == decided.decision.worker);
    }
    let (sentence, changes_worker) = response.versus.clone().unwrap();
    assert!(!changes_worker && Response::versus_head(changes_worker) == "Same worker", "{sentence}");
    assert!(sentence.starts_with(&format!("The router chose {}.", decided.decision.worker)), "{sentence}");

    // The formula's prefill term is weighed: each cost grows by that much of it.
    let heavier = RouterSettings { overlap_score_weight: 1.25, ..options };
    let response = ask(&folded, Query { options: heavier, ..query.clone() }).unwrap();
    for row in &response.rows {
        let candidate = decided.decision.candidates.iter().find(|of| Some(of.worker) == row.worker).unwrap();
        let expected = candidate.cost + 0.25 * candidate.prefill_blocks;
        assert!(close(row.terms.cost, expected), "{row:?}");
    }

    let text = describe(decided, TimeZone::default());
    let worker = decided.decision.worker;
    assert!(
        text.starts_with(&format!(
            "{worker} at {}: {worker} had ",
            TimeZone::default().time_of_day(decided.decided_ms())
        )),
        "{text}"
    );
    assert!(text.contains("3 candidates known"), "{text}");

    let ids: Vec<DecisionId> = folded.cluster.decisions().newest_first().map(|d| d.decision.id).collect();
    assert_eq!(
        latest(&shown),
        folded
            .cluster
            .decisions()
            .newest_first()
            .find(|d| !d.decision.candidates.is_empty())
            .map(|d| d.decision.id)
    );
    assert_eq!(older(&shown, Some(ids[3])), Some(ids[4]));
    assert_eq!(newer(&shown, Some(ids[3])), Some(ids[2]));
    assert_eq!((newer(&shown, Some(ids[0])), older(&shown, ids.last().copied())), (None, None));
    assert_eq!((older(&shown, None), newer(&shown, None)), (latest(&shown), latest(&shown)));
}

#[test]
fn a_prompt_meets_the_tree_as_it_is_now_in_any_form() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let shown = folded.shown();
    // A length is cached nowhere, and is cut into the cluster's blocks.
    let response = ask(&folded, Query { mode: Mode::Length, ..Query::default() }).unwrap();
    assert_eq!(response.prompt, "4,000 tokens in 125 blocks of 32");
    assert!(response.rows.iter().all(|row| row.overlap_blocks == 0));
    assert_eq!(response.rows.len(), 3);
    assert!(response.notes.iter().any(|note| note.contains("estimates of router")), "{:?}", response.notes);
    let small = Query { mode: Mode::Length, block_size: " 16 ".to_owned(), ..Query::default() };
    assert_eq!(ask(&folded, small).unwrap().prompt, "4,000 tokens in 250 blocks of 16");

    // From where the latest prompt's cached part ends, that much is cached.
    let (worker, block) = cached_prefix_of_latest(&shown).unwrap();
    let ix = shown.worker_ix(worker).unwrap();
    let tree = shown.tree();
    let depth = tree.position(tree.find(shown.slot(ix).unwrap(), block).unwrap()) + 1;
    let query = Query {
        mode: Mode::Prefix,
        prefix_worker: worker.to_string(),
        prefix_block: block.to_string(),
        new_tokens: 320,
        ..Query::default()
    };
    let response = ask(&folded, query.clone()).unwrap();
    assert_eq!(
        response.prompt,
        format!(
            "{} tokens in {} blocks of 32",
            radixscope_panels::format::count(u64::from(depth) * 32 + 320),
            depth + 10
        )
    );
    let row = response.rows.iter().find(|row| row.worker == Some(ix)).unwrap();
    assert_eq!(row.overlap_blocks, depth);
    // The rank of a worker may be left out.
    let by_id = Query { prefix_worker: worker.id.to_string(), ..query };
    assert_eq!(ask(&folded, by_id).unwrap().rows, response.rows);

    // The hashes of the same blocks, each with all before it, as the server gives them for a decision.
    let chain = FetchedPrompt::Done(
        DecisionId(1),
        Ok(Blocks { hashes: Hashes::Chain(vec![1, 2]), isl_tokens: Some(70), block_size_tokens: Some(32) }),
    );
    let fetched =
        Query { decision: "1".to_owned(), live_tree: true, fetched: chain.clone(), ..Query::default() };
    let id = with_candidates(&folded).decision.id;
    let fetched = Query {
        decision: id.to_string(),
        fetched: FetchedPrompt::Done(
            id,
            match chain {
                FetchedPrompt::Done(_, blocks) => blocks,
                _ => unreachable!(),
            },
        ),
        ..fetched
    };
    assert_eq!(ask(&folded, fetched).unwrap().prompt, "70 tokens in 3 blocks of 32");

    let ids: Vec<u32> = (0..5_000).map(|i| i * 7 % 1_000).collect();
    let pasted = TokenIds::pasted(&format!("{ids:?} x"));
    assert_eq!(
        (pasted.ids.as_slice(), pasted.described.as_str()),
        (ids.as_slice(), "5,000 pasted token ids")
    );
    assert_eq!(pasted.complaint.as_deref(), Some("1 piece is not a whole number and ignored: “x”"));
    let blocks = token_blocks(&ids, "", shown.block_tokens(), ("", ""));
    let tokens =
        Query { mode: Mode::Tokens, has_token_ids: true, token_blocks: blocks.clone(), ..Query::default() };
    assert_eq!(ask(&folded, tokens).unwrap().prompt, "5,000 tokens in 157 blocks of 32");
    let Some(Blocks { hashes: Hashes::Local(hashes), .. }) = blocks.clone() else { panic!("{blocks:?}") };
    assert_eq!(hashes.len(), 156, "full blocks alone have hashes");
    assert_ne!(blocks, token_blocks(&ids, "", Some(32), ("a LoRA", "")));
    assert_eq!(token_blocks(&ids, "0", Some(32), ("", "")), None);
    assert_eq!(token_blocks(&ids, "", None, ("", "")), None);
}

#[test]
fn what_stands_in_the_way_is_said_at_its_field() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 10);
    let fault = |query: Query| ask(&folded, query).unwrap_err();
    let of = |mode| Query { mode, ..Query::default() };
    let hints = [
        (
            of(Mode::Recorded),
            "decision",
            "Choose a decision: it appears here once the router places a request",
        ),
        (of(Mode::Prefix), "after", "Choose a worker on which the prefix is cached"),
        (of(Mode::Text), "prompt", "The text has no token ids yet: choose a tokenizer and enter a text"),
        (of(Mode::Tokens), "prompt", "Paste token ids to see where their prompt would go"),
        (of(Mode::Hashes), "prompt", "Paste block hashes to see where their prompt would go"),
        (
            Query { decision: "7".to_owned(), live_tree: true, ..Query::default() },
            "decision",
            "Fetching the prompt's hashes from the server …",
        ),
    ];
    for (query, field, message) in hints {
        let fault = fault(query);
        assert_eq!((fault.field, fault.message.as_str(), fault.is_hint), (field, message, true));
        assert_eq!(fault_of(Some(&fault), &[field]), None, "a hint stands where the response will");
    }
    let typed = fault(Query { decision: "7a".to_owned(), ..Query::default() });
    assert_eq!(typed.message, "“7a” is not a decision: expected its number, as Decisions shows it");
    assert_eq!(fault_of(Some(&typed), &["decision", "after"]), Some(typed.message.clone()));
    assert_eq!(fault_of(Some(&typed), &["workers"]), None);
    assert_eq!(fault_of(None, &["workers"]), None);
    let size = fault(Query { block_size: "many".to_owned(), ..of(Mode::Length) });
    assert_eq!(
        (size.field, size.message.as_str()),
        ("block_size_tokens", "“many” is not a block size: expected a whole number of tokens")
    );
    let unknown_size = fault(Query { has_token_ids: true, ..of(Mode::Tokens) });
    assert_eq!(unknown_size.field, "block_size_tokens");
    let refused = FetchedPrompt::Done(DecisionId(7), Err("The server refused to give the prompt".to_owned()));
    let refused =
        fault(Query { decision: "7".to_owned(), live_tree: true, fetched: refused, ..Query::default() });
    assert_eq!((refused.message.as_str(), refused.is_hint), ("The server refused to give the prompt", false));
    let worker =
        prefix_workers(&folded.shown(), &folded.shown().drawn_workers().collect::<Vec<_>>())[0].0.clone();
    let empty = Query { prefix_worker: worker, ..of(Mode::Prefix) };
    assert!(fault(empty.clone()).is_hint);
    assert!(!fault(Query { prefix_block: "0x12".to_owned(), ..empty }).is_hint);
    // What core refuses is said as a sentence.
    let gone = fault(Query { decision: "987654321".to_owned(), ..Query::default() });
    assert_eq!(gone.field, "decision");
    assert!(gone.message.starts_with(|c: char| c.is_uppercase()), "{}", gone.message);
    let excluded =
        WorkerChanges { left_out: (0..3).map(CandidateRef::Example).collect(), ..WorkerChanges::default() };
    assert_eq!(fault(Query { changes: excluded, ..example() }).field, "workers");
}

#[test]
fn with_two_models_the_pool_is_named_and_a_decision_is_scored_in_its_own() {
    let folded = Folded::demo(Topology::TwoModels, 40);
    let shown = folded.shown();
    let [first, second] = shown.pool_list()[..] else { panic!("two pools") };
    let name = |pool| folded.cluster.pool(pool).map(radixscope_state::cluster::PoolState::name).unwrap();
    let length = ask(&folded, Query { mode: Mode::Length, ..Query::default() }).unwrap();
    assert!(length.prompt.ends_with(&format!(" · pool {}", name(shown.pool))), "{}", length.prompt);
    assert!(!ask(&folded, example()).unwrap().prompt.contains("pool"));
    let other = if shown.pool == first { second } else { first };
    let decided =
        folded.cluster.decisions().newest_first().find(|d| d.pool == other).expect("both get prompts");
    let id = decided.decision.id.to_string();
    assert_eq!(pool(&shown, Mode::Recorded, &id), other);
    assert_eq!(pool(&shown, Mode::Length, &id), shown.pool);
    let workers = FleetTable::workers(&shown, other);
    assert!(!workers.is_empty() && workers.iter().all(|&worker| shown.pool_of(worker) == Some(other)));
    let response = ask(&folded, Query { decision: id, ..Query::default() }).unwrap();
    assert!(response.prompt.ends_with(&format!(" · pool {}", name(other))), "{}", response.prompt);
}

#[test]
fn workers_are_added_up_to_a_bound_and_active_requests_count_where_the_formula_has_them() {
    let folded = Folded::demo(Topology::Aggregated, 10);
    let workers = FleetTable::workers(&folded.shown(), folded.shown().pool);
    let table = |changes: &WorkerChanges, formula| FleetTable::of(&workers, Mode::Length, formula, changes);
    let as_is = table(&WorkerChanges::default(), Formula::A);
    assert_eq!(as_is.listed, workers.iter().map(|&worker| CandidateRef::Worker(worker)).collect::<Vec<_>>());
    assert!(as_is.can_add && !as_is.can_remove && !as_is.can_reset && !as_is.counts_requests);
    assert_eq!(as_is.unlisted, None);
    let full = WorkerChanges { added: MAX_ADDED, ..WorkerChanges::default() };
    let full = table(&full, Formula::E);
    assert!(!full.can_add && full.can_remove && full.can_reset && full.counts_requests);
    assert_eq!(full.listed.len(), workers.len() + MAX_ADDED as usize);
    let example = FleetTable::of(&workers, Mode::Example, Formula::A, &WorkerChanges::default());
    assert_eq!(example.listed, (0..3).map(CandidateRef::Example).collect::<Vec<_>>());
    let many: Vec<_> = workers.iter().copied().cycle().take(100).collect();
    let many = FleetTable::of(&many, Mode::Length, Formula::A, &WorkerChanges::default());
    assert_eq!(
        (many.listed.len(), many.unlisted.as_deref()),
        (64, Some("36 more workers are weighed but not listed"))
    );
    // An added worker is idle and empty: of a prompt that is cached nowhere, it costs the prompt alone.
    let changes = WorkerChanges { added: 1, ..WorkerChanges::default() };
    let options = settings_known_for(&folded.shown(), None);
    let response = ask(&folded, Query { mode: Mode::Length, changes, options, ..Query::default() }).unwrap();
    let added = response.rows.iter().find(|row| row.label == "New 1").expect("it is weighed");
    assert_eq!((added.worker, added.overlap_blocks), (None, 0));
    // 125 blocks to compute and 125 to carry; the load of the others is unknown so early, and taken as none.
    assert_eq!(costs(&response), [250.0; 4]);
    assert_eq!(response.headline, "W1, W2, W3, New 1 tie");
    assert!(added.about.contains("idle, added here"), "{}", added.about);
}

#[test]
fn each_version_has_its_numbers_and_keeps_what_both_know() {
    let old = RouterSettings {
        overlap_score_weight: 1.75,
        router_temperature: 0.3,
        ..RouterSettings::of_version("0.9").unwrap()
    };
    assert_eq!(version(&old), "0.9");
    let new = in_version(&old, "1.6");
    assert_eq!(version(&new), "1.6");
    assert_eq!((new.prefill_factor(), new.router_temperature), (1.75, 0.3));
    assert_eq!(in_version(&old, "no version"), old);
    assert_eq!(defaults_of(&new), RouterSettings::of_version("1.6").unwrap());
    let names = |formula| settings(formula).iter().map(|setting| setting.name).collect::<Vec<_>>();
    assert_eq!(names(Formula::A), ["overlap_score_weight", "router_temperature"]);
    assert!(names(Formula::E).contains(&"decode_active_request_weight"));
    let weight = settings(Formula::A)[0];
    assert_eq!((weight.value(&old), weight.slider_most), (1.75, 4.0));
    assert!(weight.help().contains("DYN_"), "{}", weight.help());
    let slider = |name| settings(Formula::E).into_iter().find(|of| of.name == name).unwrap().slider_most;
    assert_eq!([slider("decode_active_request_weight"), slider("router_temperature")], [50.0, 2.0]);
    assert_eq!([Formula::A, Formula::D, Formula::E].map(has_roles), [false, true, true]);
    assert_eq!(
        ["prefill", "decode", "anything"].map(role_named),
        [Role::Prefill, Role::Decode, Role::Aggregated]
    );
}

#[test]
fn the_address_says_what_is_asked_and_the_head_which_state() {
    let wanted = |query| Wanted::of(&Address::parse(query).0);
    assert_eq!(wanted("?view=whatif"), None);
    assert_eq!(wanted("?view=whatif&decision=12&example=1"), Some(Wanted::Decision(DecisionId(12))));
    assert_eq!(wanted("?view=whatif&prefix=7/1:99"), Some(Wanted::Prefix(Worker::new(7, 1), BlockHash(99))));
    assert_eq!(wanted("?view=whatif&prefix=7:99"), Some(Wanted::Prefix(Worker::new(7, 0), BlockHash(99))));
    assert_eq!(wanted("?view=whatif&prefix=seven:99"), None);
    assert_eq!(wanted("?view=whatif&example=1"), Some(Wanted::Example));

    let at = 1_700_000_000_000;
    let moment = |fixed, at| {
        let MomentText { state, is_fixed, button } = MomentText::of(fixed, at, TimeZone::default());
        (state, is_fixed, button)
    };
    assert_eq!(moment(None, 0), ("Live state".to_owned(), false, "Freeze"));
    assert_eq!(moment(None, at), ("State at 22:13:20".to_owned(), false, "Freeze"));
    let fixed = Some((Millis(at), 12_345));
    assert_eq!(moment(fixed, 0), ("Fixed at 22:13:20, record 12,345".to_owned(), true, "Back to live"));
    assert_eq!(moment(fixed, at).2, "Unfreeze");
}

#[test]
fn where_blocks_are_unknown_the_answer_says_so() {
    let recorded = Folded::recorded("0.9.1-healthy");
    let shown = recorded.shown();
    assert!(latest(&shown).is_some(), "the router's replicas name its decisions");
    let response =
        ask(&recorded, Query { mode: Mode::Length, block_size: "32".to_owned(), ..Query::default() })
            .unwrap();
    assert_eq!(response.rows.len(), shown.drawn_workers().count());
    assert_eq!(response.prompt, "4,000 tokens in 125 blocks of 32");
    let silent = Folded::without_events(40);
    let response = ask(&silent, Query { mode: Mode::Length, ..Query::default() }).unwrap();
    assert!(response.rows.iter().all(|row| row.overlap_blocks == 0));
    let nothing = Folded { cluster: radixscope_state::cluster::Cluster::default(), now: Millis(1) };
    assert_eq!(latest(&nothing.shown()), None);
    assert_eq!(cached_prefix_of_latest(&nothing.shown()), None);
    assert!(ask(&nothing, Query { mode: Mode::Length, ..Query::default() }).is_err());
    assert_eq!(costs(&ask(&nothing, example()).unwrap()), [30.0, 90.0, 99.0], "the example needs no cluster");
}
