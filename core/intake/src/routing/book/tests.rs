//! Which reports are of one choice, in whatever order they come, and which of them counts.

use super::bounds::{FORGET_MS, HOLD_MS, MAX_PROMPTS, MAX_REQUESTS, MAX_TRACED_CANDIDATES, TRACED_CHOICE};
use super::nearest::WINDOW_MS;
use super::pairs::PAIRED_WITHIN_MS;
use super::*;
use crate::routing::sessions::Binding;
use DecisionSource::{ActiveSequences, KvHitRate, Log};
use radixscope_model::record::{
    Arithmetic, Candidate, Completeness, DecidedBy, Ended, NotReconstructed, Outcome, Progress, RoutingMode,
    ScoredCandidate, Scores,
};
use radixscope_router::{Formula, RouterSettings};
use radixscope_state::cluster::MAX_CANDIDATES;

pub(super) const NOW: Millis = Millis(0);

pub(super) fn key(source: DecisionSource, at_ms: u64) -> CorrelationKey<'static> {
    CorrelationKey {
        source,
        time: ReportTime { at: Micros::of(Millis(at_ms)), is_received: false },
        is_query: false,
        worker: WorkerIx(0),
        pool: PoolIx(0),
        role: None,
        request_id: None,
        http_id: None,
        overlap_blocks: Some(3),
        isl_blocks: None,
    }
}

/// Joins a report and fills its slot.
fn report(book: &mut RequestBook, key: &CorrelationKey<'_>) -> DecisionId {
    let id = book.join(key, NOW);
    let slots = &mut book.change(id).expect("a part").slots;
    let time = key.time;
    match key.source {
        KvHitRate => {
            let overlap_blocks = key.overlap_blocks.unwrap_or(0);
            let isl_blocks = key.isl_blocks.unwrap_or(0);
            slots.hit_rate.get_or_insert(HitRate { time, router: None, isl_blocks, overlap_blocks });
        }
        Log => {
            let choice = choice(time.at.0 as f64, key.overlap_blocks).map(|of| LoggedChoice { time, ..of });
            slots.choice = slots.choice.or(choice);
        }
        ActiveSequences => {
            slots.sequence.get_or_insert(sequence(time.at.millis().0));
        }
        DecisionSource::RequestTrace | DecisionSource::SessionAffinity => {}
    }
    id
}

fn sequence(at_ms: u64) -> Sequence {
    Sequence {
        time: ReportTime { at: Micros::of(Millis(at_ms)), is_received: false },
        router: Some(9),
        adapter: None,
        full_blocks: None,
        isl_tokens: None,
        overlap_blocks: None,
        prefill_tokens: None,
        tracks_prefill: None,
        waiting_tokens: 0,
        held: HeldBlocks::default(),
    }
}

/// All choices of these in which each source keeps its own order.
fn interleavings<T: Copy>(one: &[T], other: &[T]) -> Vec<Vec<T>> {
    let count = one.len() + other.len();
    let of = |bits: u32| {
        let (mut one, mut other) = (one.iter(), other.iter());
        let next = |n: usize| if bits & (1_u32 << n) == 0 { one.next() } else { other.next() };
        (0..count).map(next).map(|of| *of.expect("as many as there are")).collect()
    };
    (0..1 << count).filter(|bits: &u32| bits.count_ones() as usize == other.len()).map(of).collect()
}

fn of_request(book: &mut RequestBook, request_id: &str) -> Option<DecisionId> {
    book.parts_of(Some(request_id), None).first().copied()
}

#[test]
fn a_log_line_and_a_message_of_one_decision_meet_in_either_order() {
    let mut book = RequestBook::default();
    let a = report(&mut book, &key(KvHitRate, 1_000));
    assert_eq!(report(&mut book, &key(Log, 1_003)), a);
    let b = report(&mut book, &key(Log, 5_000));
    assert_ne!(a, b);
    assert_eq!(report(&mut book, &CorrelationKey { isl_blocks: Some(9), ..key(KvHitRate, 4_990) }), b);
}

#[test]
fn any_order_of_alike_choices_gives_the_pairs_that_are_nearest() {
    // Lines of a log and messages of one worker, all alike, in the order of their own source.
    let reports = [
        (Log, 1_000),
        (Log, 1_100),
        (Log, 1_250),
        (KvHitRate, 1_001),
        (KvHitRate, 1_102),
        (KvHitRate, 1_251),
    ];
    let orders = interleavings(&reports[..3], &reports[3..]);
    let count = orders.len();
    for order in orders {
        let mut book = RequestBook::default();
        for &(source, at_ms) in &order {
            report(&mut book, &key(source, at_ms));
        }
        let mut pairs: Vec<(Option<u64>, Option<u64>)> = book
            .requests
            .values()
            .flat_map(|request| &request.parts)
            .map(|part| {
                let logged = part.slots.choice.map(|of| of.time.at.millis().0);
                (logged, part.slots.hit_rate.map(|of| of.time.at.millis().0))
            })
            .collect();
        pairs.sort_unstable();
        let nearest = [(1_000, 1_001), (1_100, 1_102), (1_250, 1_251)].map(|(a, b)| (Some(a), Some(b)));
        assert_eq!(pairs, nearest, "{order:?}");
    }
    assert_eq!(count, 20);
}

#[test]
fn a_nearer_message_that_names_its_request_takes_the_line_of_its_choice_over() {
    let with = |id, at_ms| CorrelationKey { request_id: Some(id), ..key(ActiveSequences, at_ms) };
    for lines in [[1_000, 1_100], [1_100, 1_000]] {
        let mut book = RequestBook::default();
        let a = report(&mut book, &with("a", 1_001));
        report(&mut book, &key(Log, lines[0]));
        let b = report(&mut book, &with("b", 1_102));
        report(&mut book, &key(Log, lines[1]));
        let logged = |id| book.part(id).and_then(|part| part.slots.choice).map(|of| of.time.at.millis().0);
        assert_eq!((logged(a), logged(b)), (Some(1_000), Some(1_100)), "{lines:?}");
        assert_eq!(book.parts.len(), 2);
    }
}

#[test]
fn a_message_without_a_time_is_of_the_decision_from_which_it_took_as_long_as_others() {
    let mut book = RequestBook::default();
    let received = |at_ms| {
        let mut key = key(KvHitRate, at_ms);
        key.time.is_received = true;
        key
    };
    let first = report(&mut book, &key(Log, 1_000));
    assert_eq!(report(&mut book, &received(1_050)), first);
    let (a, b) = (report(&mut book, &key(Log, 5_000)), report(&mut book, &key(Log, 5_010)));
    assert_eq!((report(&mut book, &received(5_049)), report(&mut book, &received(5_061))), (a, b));
    // Lines that are read behind their messages bear their own times.
    let (a, b) = (report(&mut book, &received(9_050)), report(&mut book, &received(9_060)));
    assert_eq!((report(&mut book, &key(Log, 9_001)), report(&mut book, &key(Log, 9_011))), (a, b));
}

#[test]
fn a_query_is_of_no_request_that_a_message_names() {
    let mut book = RequestBook::default();
    let with = |id, at_ms| CorrelationKey { request_id: Some(id), ..key(ActiveSequences, at_ms) };
    let query = |at_ms| CorrelationKey { is_query: true, ..key(Log, at_ms) };
    let a = report(&mut book, &with("a", 1_002));
    let found = report(&mut book, &query(1_000));
    assert_ne!(found, a);
    let b = report(&mut book, &with("b", 1_004));
    assert!(b != found && b != a);
    let only = book.name_only(WorkerIx(0), (Millis(999), Millis(1_001)), "query", NOW);
    assert_eq!(only, Some(found));
    assert_eq!(of_request(&mut book, "query"), Some(found));
}

#[test]
fn reports_that_contradict_each_other_or_lie_far_apart_are_of_two_decisions() {
    let mut book = RequestBook::default();
    let a = report(&mut book, &key(KvHitRate, 1_000));
    assert_ne!(report(&mut book, &CorrelationKey { overlap_blocks: Some(4), ..key(Log, 1_000) }), a);
    assert_ne!(report(&mut book, &CorrelationKey { worker: WorkerIx(1), ..key(Log, 1_000) }), a);
    assert_ne!(report(&mut book, &key(Log, 1_000 + WINDOW_MS + 1)), a);
}

#[test]
fn a_request_id_decides_over_everything_else() {
    let mut book = RequestBook::default();
    let with = |source, at_ms, id| CorrelationKey { request_id: Some(id), ..key(source, at_ms) };
    let a = report(&mut book, &with(Log, 1_000, "a"));
    let b = report(&mut book, &with(ActiveSequences, 1_001, "b"));
    assert_ne!(a, b);
    assert_eq!(report(&mut book, &with(ActiveSequences, 90_000, "a")), a);
    assert_eq!(of_request(&mut book, "b"), Some(b));
    assert_eq!(of_request(&mut book, "c"), None);
}

#[test]
fn a_request_has_a_decision_in_each_pool() {
    let mut book = RequestBook::default();
    let on = |worker, pool| CorrelationKey {
        request_id: Some("a"),
        worker: WorkerIx(worker),
        pool: PoolIx(pool),
        ..key(ActiveSequences, 1_000)
    };
    let (prefill, decode) = (report(&mut book, &on(0, 0)), report(&mut book, &on(2, 1)));
    assert_ne!(prefill, decode);
    assert_eq!(report(&mut book, &on(0, 0)), prefill);
    assert_eq!(report(&mut book, &on(3, 1)), decode, "tried again on another worker of the pool");
    assert_eq!(book.parts_of(Some("a"), None), [prefill, decode]);
    assert_eq!([prefill, decode].map(|id| book.other(id).map(|part| part.id)), [Some(decode), Some(prefill)]);
}

#[test]
fn lines_that_name_the_http_span_alone_are_of_the_request_that_others_name_with_it() {
    let mut book = RequestBook::default();
    book.same("r1", "h1", NOW);
    let of = |request_id, http_id, at_ms| CorrelationKey { request_id, http_id, ..key(Log, at_ms) };
    let a = report(&mut book, &of(None, Some("h1"), 1_000));
    assert_eq!(of_request(&mut book, "r1"), Some(a));
    // Attached in between: the names come behind the choice.
    let b = report(&mut book, &of(None, Some("h2"), 1_001));
    assert_eq!(of_request(&mut book, "r2"), None);
    book.same("r2", "h2", NOW);
    assert_eq!(of_request(&mut book, "r2"), Some(b));
    assert_eq!(report(&mut book, &of(Some("r2"), None, 60_000)), b);
    // An id of the client's that comes again is another request.
    book.same("r3", "h2", NOW);
    let c = report(&mut book, &of(None, Some("h2"), 70_000));
    assert_ne!(b, c);
    assert_eq!((of_request(&mut book, "r2"), of_request(&mut book, "r3")), (Some(b), Some(c)));
}

#[test]
fn of_several_unidentified_choices_of_a_worker_the_first_is_named_first() {
    let mut book = RequestBook::default();
    let choice = |at_ms| CorrelationKey { overlap_blocks: None, ..key(Log, at_ms) };
    let named = |id, at_ms| CorrelationKey { request_id: Some(id), ..key(Log, at_ms) };
    let probe = report(&mut book, &choice(100));
    let (a, b) = (report(&mut book, &choice(1_000)), report(&mut book, &choice(1_001)));
    assert_eq!(report(&mut book, &named("a", 1_001)), a);
    assert_eq!(report(&mut book, &named("b", 1_001)), b);
    let near = (Millis(99), Millis(101));
    assert_eq!(book.name_only(WorkerIx(0), near, "probe", NOW), Some(probe));
    assert_eq!(book.name_only(WorkerIx(0), near, "other", NOW), None, "it has a name now");
}

#[test]
fn steps_and_ends_wait_for_their_choice_but_not_for_ever() {
    let mut book = RequestBook::default();
    let (at, worker) = (|ms| Micros::of(Millis(ms)), (WorkerIx(0), PoolIx(0)));
    let first_token = |ms| Steps { first_token: Some(at(ms)), ..Steps::default() };
    assert_eq!(book.step("a", worker, first_token(7), NOW), None);
    assert_eq!(
        book.step("a", worker, first_token(5), NOW),
        None,
        "the router repeats the worker's, or the other way round"
    );
    let elsewhere = Steps { freed: Some((at(9), WorkerIx(2))), ..Steps::default() };
    assert_eq!(book.step("a", (WorkerIx(2), PoolIx(1)), elsewhere, NOW), None);
    let a = report(&mut book, &CorrelationKey { request_id: Some("a"), ..key(Log, 3) });
    assert_eq!(book.part(a).expect("a part").slots.steps, first_token(5));
    assert_eq!(book.take_caught_up(), [a]);
    assert!(book.complete(("b", None), completed(Some(8)), NOW).is_empty());
    assert!(
        book.expire(Millis(HOLD_MS), Micros::of(Millis(HOLD_MS + 900)), LINGER_MS, |_| false).is_empty(),
        "it may still come"
    );
    let ends =
        book.expire(Millis(HOLD_MS + 2_001), Micros::of(Millis(HOLD_MS + 2_001)), LINGER_MS, |_| false);
    assert_eq!(ends, [completed(Some(8))]);
    book.step("c", worker, first_token(5), NOW);
    book.expire(Millis(2 * FORGET_MS), Micros::of(Millis(2 * FORGET_MS)), LINGER_MS, |_| false);
    assert_eq!(book.requests.len(), 1, "that of the choice");
}

#[test]
fn a_request_that_was_routed_again_is_of_its_first_choice_in_any_order() {
    let on = |source, at_ms, worker| CorrelationKey {
        worker: WorkerIx(worker),
        request_id: Some("a"),
        overlap_blocks: Some(worker.into()),
        ..key(source, at_ms)
    };
    let (log, messages) = ([on(Log, 10, 0), on(Log, 30, 1)], [on(KvHitRate, 11, 0), on(KvHitRate, 31, 1)]);
    let mut orders = interleavings(&log, &messages);
    assert_eq!(orders.len(), 6);
    // A log of a second frontend, or a source that was received late, may report the second choice first.
    orders.extend(interleavings(&[log[1], log[0]], &[messages[1], messages[0]]));
    orders.extend(interleavings(&[log[1], log[0]], &messages));
    for order in orders {
        for is_trace_first in [false, true] {
            let mut book = RequestBook::default();
            // It names who responded.
            let trace = on(DecisionSource::RequestTrace, 5, 1);
            let mut last = is_trace_first.then(|| report(&mut book, &trace));
            for key in &order {
                let id = report(&mut book, key);
                assert_eq!(*last.get_or_insert(id), id, "one decision");
            }
            report(&mut book, &trace);
            let part = book.part(last.expect("a decision")).expect("a part");
            let choice = part.slots.choice.expect("a choice").time.at.millis();
            let hit_rate = part.slots.hit_rate.expect("a hit rate");
            assert_eq!((part.worker, choice, hit_rate.overlap_blocks), (WorkerIx(0), Millis(10), 0));
            assert_eq!(book.by_choice.len(), 1);
            assert!(book.by_choice[&WorkerIx(0)].contains(&(part.begun, part.id)));
        }
    }
}

#[test]
fn the_book_is_bounded_and_forgets_the_oldest_whole() {
    let mut book = RequestBook::default();
    for n in 0..MAX_REQUESTS as u64 + 1_000 {
        let (id, http) = (format!("r{n}"), format!("h{n}"));
        let key = CorrelationKey { request_id: Some(&id), http_id: Some(&http), ..key(Log, n * 10) };
        let part = report(&mut book, &key);
        book.set_prompt(part, PromptHashes::Chain(vec![n; 64].into()), NOW);
    }
    let sizes = [book.requests.len(), book.parts.len(), book.by_request.len(), book.by_http.len()];
    assert_eq!(sizes, [MAX_REQUESTS; 4]);
    assert_eq!(book.by_choice[&WorkerIx(0)].len(), MAX_REQUESTS);
    assert!(book.with_prompts.len() <= MAX_PROMPTS && book.prompt_blocks <= 64 * MAX_PROMPTS);
    assert_eq!(of_request(&mut book, "r0"), None);
}

#[test]
fn only_choices_that_can_be_of_one_request_alone_are_paired() {
    let mut book = RequestBook::default();
    let mut chosen = |worker: u32, at_ms, isl, is_decode| {
        let key = CorrelationKey {
            worker: WorkerIx(worker),
            isl_blocks: Some(isl),
            overlap_blocks: Some(0),
            ..key(KvHitRate, at_ms)
        };
        let id = report(&mut book, &key);
        book.pair(id, is_decode);
        (id, book.other(id).map(|part| part.id))
    };
    chosen(0, 100, 246, false);
    let (second, _) = chosen(1, 101, 242, false);
    assert_eq!(chosen(2, 105, 242, true).1, Some(second));
    assert_eq!(chosen(3, 105, 242, true).1, None, "it has its own");
    chosen(4, 106, 246, false);
    assert_eq!(chosen(5, 107, 246, true).1, None, "either could be it");
    assert_eq!(chosen(6, 108, 246, true).1, None, "and neither is what is left");
    chosen(7, 110, 9, false);
    assert_eq!(chosen(8, 111 + PAIRED_WITHIN_MS, 9, true).1, None, "too long ago");
}

fn completed(output_tokens: Option<u64>) -> Completed {
    let progress = Progress {
        ended_ms: Some(Millis(900)),
        outcome: Some(Outcome::Success),
        ttft_us: Some(93_570),
        output_tokens,
        ..Progress::default()
    };
    let ended = Ended { ended_ms: Millis(900), elapsed_us: None, isl_tokens: Some(122), progress };
    Completed { ended, is_query: false }
}

fn context(completed: Option<&Completed>) -> PartContext<'_> {
    PartContext {
        id: DecisionId(1),
        worker: WorkerIx(0),
        source: Log,
        request_id: Some("r"),
        other: None,
        completed,
        traced_costs: None,
        is_responding: true,
        block_size_tokens: Some(16),
        way: RequestWay::default(),
        is_decode: false,
        is_bypassed: false,
        ignores_cache: false,
        has_tiers: false,
        settings: RouterSettings::new(Formula::E),
        was_named: true,
        in_state: &[],
        scores_in_state: None,
        trace_id: None,
        session: None,
        may_be_bound: false,
    }
}

fn time(ms: u64) -> ReportTime {
    ReportTime { at: Micros::of(Millis(ms)), is_received: false }
}

fn candidate(overlap_blocks: u32, cost: f64) -> Candidate {
    Candidate {
        worker: WorkerIx(0),
        overlap_blocks,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks: 0.0,
        decode_blocks: 0.0,
        cost,
        tree_size: None,
    }
}

pub(super) fn choice(logit: f64, cached_blocks: Option<u64>) -> Option<LoggedChoice> {
    let (logit, chosen_by) = (Some(logit), ChosenBy::Weighing);
    Some(LoggedChoice { time: time(100), may_be_look: false, logit, chosen_by, cached_blocks, lower: None })
}

fn costs(overlap_blocks: u32) -> Option<LoggedCosts> {
    Some(LoggedCosts {
        candidates: Candidates::Here([candidate(overlap_blocks, 7.625)].into()),
        formula: Formula::A,
        prefill_factor: 1.0,
        tied: true,
        overlap_blocks: overlap_blocks.into(),
    })
}

fn reconstruction(overlap_blocks: u32, cost: f64) -> Option<Reconstruction> {
    let computed = Computed {
        candidates: Candidates::Here([candidate(overlap_blocks, cost)].into()),
        formula: Formula::E,
        prefill_factor: 1.0,
        overlap_blocks: overlap_blocks.into(),
        cost,
    };
    Some(Reconstruction { path: None, reuse: None, outcome: Ok(computed) })
}

/// As 1.2 and later report it: 7 full blocks, of which the worker held as many as leave so much to prefill.
fn added(prefill_tokens: u64) -> Option<Sequence> {
    Some(Sequence { full_blocks: Some(7), prefill_tokens: Some(prefill_tokens), ..sequence(103) })
}

fn hit_rate(isl_blocks: u64, overlap_blocks: u64) -> Option<HitRate> {
    Some(HitRate { time: time(101), router: Some(9), isl_blocks, overlap_blocks })
}

fn dispatched(cached_blocks: u64) -> Option<Dispatched> {
    Some(Dispatched { time: time(104), cached_blocks, isl_blocks: Some(8) })
}

fn trace(isl_tokens: u64, overlap_blocks: u64) -> Option<Trace> {
    Some(Trace {
        received_ms: Some(Millis(90)),
        isl_tokens: Some(isl_tokens),
        block_size_tokens: Some(16),
        overlap_blocks: Some(overlap_blocks),
        progress: Progress { ttft_us: Some(93_568), cached_tokens: Some(112), ..Progress::default() },
        is_without_prefill: false,
    })
}

/// Reports, the end of the request, and what they give.
type LengthCase<'a> = (&'static str, Slots, Option<&'a Completed>, [Option<u64>; 4]);

#[test]
fn of_several_reports_the_nearest_to_the_choice_counts() {
    let done = completed(Some(8));
    let all = Slots::default;
    let input = LoggedInput { isl_tokens: 121, block_size_tokens: 16, time: time(99) };
    // Reports, and by them: when it was decided, length in tokens and blocks, overlap.
    let rows: Vec<LengthCase<'_>> = vec![
        ("nothing", all(), None, [None; 4]),
        ("hit rate", Slots { hit_rate: hit_rate(8, 6), ..all() }, None, [Some(101), None, Some(8), Some(6)]),
        ("message", Slots { sequence: added(10), ..all() }, None, [Some(103), Some(122), Some(8), Some(7)]),
        ("trace", Slots { trace: trace(122, 5), ..all() }, None, [Some(90), Some(122), Some(8), Some(5)]),
        ("end", all(), Some(&done), [None, Some(122), Some(8), None]),
        (
            "line and hit rate",
            Slots { choice: choice(7.6, Some(4)), hit_rate: hit_rate(8, 6), ..all() },
            None,
            [Some(100), None, Some(8), Some(4)],
        ),
        (
            "line without overlap, costs, hit rate",
            Slots { choice: choice(7.6, None), costs: costs(3), hit_rate: hit_rate(8, 6), ..all() },
            None,
            [Some(100), None, Some(8), Some(3)],
        ),
        (
            "hit rate and message",
            Slots { hit_rate: hit_rate(9, 6), sequence: added(10), ..all() },
            None,
            [Some(101), Some(122), Some(8), Some(6)],
        ),
        (
            "what was looked up, message, trace, end",
            Slots { input: Some(input), sequence: added(10), trace: trace(120, 5), ..all() },
            Some(&done),
            [Some(103), Some(121), Some(8), Some(7)],
        ),
        (
            "line that follows, trace",
            Slots { dispatched: dispatched(7), trace: trace(122, 5), ..all() },
            None,
            [Some(90), Some(122), Some(8), Some(7)],
        ),
    ];
    for (name, slots, end, expected) in rows {
        let of = resolve(&slots, &context(end));
        let shown = [of.decided_ms.map(|at| at.0), of.isl_tokens, of.isl_blocks, of.overlap_blocks];
        assert_eq!(shown, expected, "{name}");
    }
}

#[test]
fn of_several_costs_those_that_the_router_wrote_count_and_none_that_contradict_it() {
    use Completeness::{AllCandidates, ChosenOnly, Reconstructed};
    let all = Slots::default;
    let failed = Reconstruction { path: None, reuse: None, outcome: Err(NotReconstructed::State) };
    let rows: Vec<(&str, Slots, Completeness, Option<NotReconstructed>)> = vec![
        ("chosen", Slots { choice: choice(7.625, Some(7)), ..all() }, ChosenOnly, None),
        ("computed", Slots { reconstruction: reconstruction(7, 7.625), ..all() }, Reconstructed, None),
        (
            "failed",
            Slots { reconstruction: Some(failed.clone()), ..all() },
            ChosenOnly,
            Some(NotReconstructed::State),
        ),
        (
            "computed as written",
            Slots { choice: choice(7.625, Some(7)), reconstruction: reconstruction(7, 7.625), ..all() },
            Reconstructed,
            None,
        ),
        (
            "another overlap",
            Slots { hit_rate: hit_rate(8, 6), reconstruction: reconstruction(7, 7.625), ..all() },
            ChosenOnly,
            Some(NotReconstructed::Overlap),
        ),
        (
            "another cost",
            Slots { choice: choice(7.7, Some(7)), reconstruction: reconstruction(7, 7.625), ..all() },
            ChosenOnly,
            Some(NotReconstructed::Cost),
        ),
        (
            "written and computed",
            Slots { costs: costs(6), reconstruction: reconstruction(7, 8.0), ..all() },
            AllCandidates,
            None,
        ),
        (
            "written, not computed",
            Slots { costs: costs(6), reconstruction: Some(failed), ..all() },
            AllCandidates,
            None,
        ),
    ];
    for (name, slots, completeness, missing) in rows {
        let of = resolve(&slots, &context(None));
        assert_eq!((of.completeness, of.not_reconstructed), (completeness, missing), "{name}");
        assert_eq!(of.candidates.is_empty(), completeness == ChosenOnly, "{name}");
        assert_eq!(of.formula.is_some(), completeness != ChosenOnly, "{name}");
    }
}

/// Reports, what the log says of the session's binding, when messages first reported one to which worker, whether choices may be
/// bound, and what decided.
type DecidedByCase = (&'static str, Slots, Option<FoundBinding>, Option<(u64, u32)>, bool, Option<DecidedBy>);

#[test]
fn what_decided_is_named_where_reports_show_it() {
    use DecidedBy::{Cost, Mode, Pinned, Policy, SessionAffinity};
    let all = Slots::default;
    let by = |chosen_by| choice(7.625, Some(7)).map(|of| LoggedChoice { chosen_by, ..of });
    let line = |chosen_by| Slots { choice: by(chosen_by), ..all() };
    let computed = || Slots { reconstruction: reconstruction(7, 7.625), ..line(ChosenBy::Weighing) };
    let mode = OtherMode { time: time(100), mode: RoutingMode::RoundRobin };
    let (here, elsewhere) = (FoundBinding::To(WorkerIx(0)), FoundBinding::To(WorkerIx(1)));
    // All lines are of 100 ms.
    let rows: Vec<DecidedByCase> = vec![
        ("nothing", all(), None, None, false, None),
        ("another mode", Slots { other_mode: Some(mode), ..all() }, None, None, false, Some(Mode)),
        ("a line of a choice", line(ChosenBy::Weighing), None, None, false, None),
        ("a line of a bound choice", line(ChosenBy::Pinned), None, None, false, Some(Pinned)),
        ("a line of a policy", line(ChosenBy::Policy), None, None, false, Some(Policy)),
        ("costs that the router wrote", Slots { costs: costs(7), ..all() }, None, None, true, Some(Cost)),
        ("costs that agree", computed(), None, None, false, Some(Cost)),
        (
            "costs that no report of the router confirms",
            Slots { reconstruction: reconstruction(7, 7.625), ..all() },
            None,
            None,
            false,
            None,
        ),
        (
            "costs that agree, may be bound, a trace without a session",
            Slots { trace: trace(122, 7), ..computed() },
            None,
            None,
            true,
            Some(Cost),
        ),
        ("costs that agree, may be bound", computed(), None, None, true, None),
        (
            "costs that agree, not bound by the log",
            computed(),
            Some(FoundBinding::None),
            None,
            true,
            Some(Cost),
        ),
        ("bound by the log", computed(), Some(here), None, true, Some(SessionAffinity)),
        ("bound elsewhere by the log", computed(), Some(elsewhere), None, true, Some(Cost)),
        ("bound before, by messages", computed(), None, Some((99, 0)), true, Some(SessionAffinity)),
        (
            "bound before, and the line says so",
            line(ChosenBy::Pinned),
            None,
            Some((99, 0)),
            true,
            Some(SessionAffinity),
        ),
        ("bound elsewhere before", computed(), None, Some((99, 1)), true, Some(Cost)),
        ("bound by this choice, or before it", computed(), None, Some((100, 0)), true, None),
        (
            "bound elsewhere, and a line of a bound choice",
            line(ChosenBy::Pinned),
            Some(elsewhere),
            None,
            true,
            Some(Pinned),
        ),
        (
            "bound before, no line",
            Slots { sequence: added(10), ..all() },
            None,
            Some((99, 0)),
            true,
            Some(SessionAffinity),
        ),
    ];
    for (name, slots, found, bound, may_be_bound, expected) in rows {
        let bindings: Vec<Binding> = bound
            .map(|(ms, worker)| Binding {
                worker: WorkerIx(worker),
                number: (None, 1),
                first: Micros::of(Millis(ms)),
            })
            .into_iter()
            .collect();
        let session = Session { name: "s".into(), found };
        let has_session = found.is_some() || bound.is_some();
        let session = has_session.then_some(SessionContext { session: &session, bindings: &bindings });
        let of = resolve(&slots, &PartContext { session, may_be_bound, ..context(None) });
        assert_eq!((of.decided_by, of.session.is_some()), (expected, has_session), "{name}");
        let is_from_messages = of.sources.contains(DecisionSource::SessionAffinity);
        assert_eq!(is_from_messages, bound.is_some() && expected == Some(SessionAffinity), "{name}");
    }
}

#[test]
fn the_line_of_a_policy_has_no_cost() {
    let mut book = RequestBook::default();
    let id = report(&mut book, &key(Log, 1_000));
    let slots = &mut book.change(id).expect("a part").slots;
    slots.choice =
        choice(0.0, Some(3)).map(|of| LoggedChoice { logit: None, chosen_by: ChosenBy::Policy, ..of });
    let decision = resolve(slots, &context(None));
    assert_eq!((decision.logit, decision.overlap_blocks), (None, Some(3)));
}

#[test]
fn a_session_is_of_the_request_whichever_id_names_it_and_a_line_says_what_was_found() {
    let mut book = RequestBook::default();
    let session = |found| Session { name: "s".into(), found };
    book.set_session((None, Some("h")), session(Some(FoundBinding::None)), NOW);
    book.same("r", "h", NOW);
    let id = report(&mut book, &CorrelationKey { request_id: Some("r"), ..key(ActiveSequences, 1_000) });
    book.take_changed();
    book.set_session((Some("r"), None), session(None), NOW);
    assert!(book.take_changed().contains(&id));
    assert_eq!(book.session_of(id), Some(&session(Some(FoundBinding::None))));
    let other = report(&mut book, &CorrelationKey { request_id: Some("q"), ..key(ActiveSequences, 1_000) });
    assert_eq!(book.session_of(other), None);
}

#[test]
fn candidates_that_the_book_has_dropped_are_those_of_the_state() {
    let mut book = RequestBook::default();
    let id = report(&mut book, &key(Log, 1_000));
    book.change(id).expect("a part").slots.costs = costs(3);
    book.count_candidates(id, 1);
    book.count_candidates(DecisionId(99), MAX_CANDIDATES);
    let slots = &book.part(id).expect("a part").slots;
    let in_state = [candidate(3, 9.5)];
    let decision = resolve(slots, &PartContext { in_state: &in_state, ..context(None) });
    assert_eq!(
        (decision.candidates, decision.completeness),
        (in_state.to_vec(), Completeness::AllCandidates)
    );
}

#[test]
fn scores_of_another_router_are_not_mixed_with_dynamo_s_costs_and_are_the_state_s_once_the_book_has_dropped_them()
 {
    let scores = |worker| Scores {
        candidates: vec![ScoredCandidate {
            worker: WorkerIx(worker),
            score: Some(1.5),
            by_scorer: vec![None],
            running: None,
            waiting: None,
            kv_usage: None,
        }],
        ..Scores::default()
    };
    let mut book = RequestBook::default();
    let id = report(&mut book, &key(Log, 1_000));
    let part = book.change(id).expect("a part");
    part.slots.scored = Some(ScoredChoice {
        time: time(1_000),
        arithmetic: Arithmetic::EndpointPicker,
        scores: Some(Box::new(scores(0))),
        is_handed: false,
    });
    book.count_candidates(id, 1);
    let decision = resolve(&book.part(id).expect("a part").slots, &context(None));
    assert_eq!(
        (decision.arithmetic, decision.decided_by),
        (Arithmetic::EndpointPicker, Some(DecidedBy::Scores))
    );
    assert_eq!(decision.scores.as_deref(), Some(&scores(0)));
    assert_eq!(decision.completeness, Completeness::AllCandidates);
    assert!(decision.candidates.is_empty() && decision.dispatched.is_none());
    book.count_candidates(DecisionId(99), MAX_CANDIDATES);
    let in_state = scores(7);
    let context = PartContext { scores_in_state: Some(&in_state), ..context(None) };
    let decision = resolve(&book.part(id).expect("a part").slots, &context);
    assert_eq!(decision.scores.as_deref(), Some(&scores(7)));
    // Handed to the worker: it was dispatched.
    book.change(id).expect("a part").slots.scored.as_mut().expect("scored").is_handed = true;
    assert_eq!(resolve(&book.part(id).expect("a part").slots, &context).dispatched, Some(true));
    let mut slots = std::mem::take(&mut book.change(id).expect("a part").slots);
    assert!(slots.take_choice(Log).scored.is_some() && slots.scored.is_none());
}

#[test]
fn where_prefill_and_decode_are_apart_each_message_contains_what_the_other_does_not() {
    let prefill = Slots {
        sequence: Some(Sequence { prefill_tokens: Some(42), waiting_tokens: 22, ..sequence(100) }),
        ..Slots::default()
    };
    let decode =
        Slots { sequence: Some(Sequence { full_blocks: Some(7), ..sequence(103) }), ..Slots::default() };
    let other = |slots| Some((DecisionId(2), slots));
    let one = resolve(&prefill, &PartContext { other: other(&decode), ..context(None) });
    assert_eq!((one.isl_tokens, one.overlap_blocks), (Some(122), Some(5)));
    assert_eq!((one.chosen_cost, one.other_part), (Some(4.0), Some(DecisionId(2))));
    let decodes = PartContext { other: other(&prefill), ignores_cache: true, ..context(None) };
    let two = resolve(&decode, &decodes);
    assert_eq!((two.isl_tokens, two.isl_blocks, two.overlap_blocks), (Some(122), Some(8), None));
    assert_eq!(two.chosen_cost, None);
    let alone = resolve(&prefill, &context(None));
    assert_eq!((alone.isl_tokens, alone.block_size_tokens), (None, Some(16)));
}

#[test]
fn the_progress_of_a_request_is_that_of_the_router_before_that_of_its_end() {
    let (done, steps) = (
        completed(Some(8)),
        Steps {
            first_token: Some(Micros::of(Millis(140))),
            freed: Some((Micros::of(Millis(880)), WorkerIx(0))),
        },
    );
    let routed =
        Routed { started_ms: None, ended_ms: Millis(890), outcome: Outcome::Cancelled, cached_blocks: None };
    let slots = Slots { routed: Some(routed), trace: trace(122, 5), steps, ..Slots::default() };
    let of = progress(&slots, &context(Some(&done)));
    assert_eq!((of.first_token_ms, of.ended_ms), (Some(Millis(140)), Some(Millis(880))));
    assert_eq!(
        (of.outcome, of.ttft_us, of.cached_tokens),
        (Some(Outcome::Cancelled), Some(93_570), Some(112))
    );
    let apart = PartContext { is_responding: false, ..context(Some(&done)) };
    assert_eq!(progress(&slots, &apart).output_tokens, None, "the response comes from the other part");
    let decision = resolve(&slots, &apart);
    assert_eq!(decision.dispatched, Some(true));
    let query = Completed { is_query: true, ..done };
    assert_eq!(resolve(&Slots::default(), &context(Some(&query))).dispatched, Some(false));
}

#[test]
fn what_a_restored_state_knew_stands_and_what_comes_since_is_added() {
    let mut known = resolve(&Slots { hit_rate: hit_rate(8, 6), ..Slots::default() }, &context(None));
    known.mode = Some(RoutingMode::Kv);
    (known.session, known.decided_by) = (Some("s".into()), Some(DecidedBy::SessionAffinity));
    let before = Progress { first_token_ms: Some(Millis(5)), ..Progress::default() };
    let restored = Some(Box::new((known.clone(), before)));
    let slots = Slots { restored, trace: trace(122, 5), ..Slots::default() };
    let of = resolve(&slots, &context(None));
    assert_eq!((of.overlap_blocks, of.isl_tokens, of.mode), (Some(6), Some(122), Some(RoutingMode::Kv)));
    assert_eq!((of.session.as_deref(), of.decided_by), (Some("s"), Some(DecidedBy::SessionAffinity)));
    assert!(of.sources.contains(KvHitRate) && of.sources.contains(DecisionSource::RequestTrace));
    let progress = progress(&slots, &context(None));
    assert_eq!((progress.first_token_ms, progress.cached_tokens), (Some(Millis(5)), Some(112)));
}

#[test]
fn costs_that_traces_have_are_bounded_also_where_each_choice_has_one_candidate() {
    let mut book = RequestBook::default();
    let most = MAX_TRACED_CANDIDATES / (1 + TRACED_CHOICE);
    for n in 0..most + 1_000 {
        let candidates = [(WorkerIx(0), n as f64)].into();
        let costs = TracedCosts { time: time(100), is_pinned: false, is_whole: true, candidates };
        book.add_traced_costs(&n.to_string(), costs, NOW);
    }
    assert_eq!(book.traced.len(), most);
    let known = |n: usize| book.requests[&book.by_request[&*n.to_string()]].traced_costs.len();
    assert_eq!(known(most + 999), 1, "the latest");
}
