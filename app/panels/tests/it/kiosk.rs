//! The kiosk: what it says of the latest decision, of the worst finding and of the present.

use radixscope_export::FindingFilter;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_panels::findings::with_labels;
use radixscope_panels::format;
use radixscope_panels::kiosk::{
    FIGURES, FigureText, LatestDecision, NOW, WorstFinding, no_decision, pool_at, pool_label,
};
use radixscope_panels::overview::{TileSettings, tiles};
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;
use crate::states::{ZONE, faulty, nothing};

fn worst(folded: &Folded) -> WorstFinding {
    let settings =
        TileSettings { targets_ms: [500.0, 60.0], is_current: true, round_robin: None, zone: ZONE };
    WorstFinding::of(&folded.shown(), &tiles(&folded.shown(), folded.now, &settings))
}

fn now(folded: &Folded) -> [FigureText; 3] {
    NOW.map(|(_, look)| look(&folded.shown(), folded.now))
}

#[test]
fn it_says_why_the_latest_decision_went_there_and_what_is_cached() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let shown = folded.shown();
    assert!(pool_label(&shown).starts_with("dynamo/backend"), "{}", pool_label(&shown));
    let latest = folded.cluster.decisions().newest_first().next().unwrap();
    let text = LatestDecision::of(&shown, ZONE).unwrap();
    let label = format!("W{}", latest.decision.worker.0 + 1);
    assert_eq!(text.worker, latest.decision.worker);
    assert!(text.why.starts_with(&format!("{label} was chosen")), "{}", text.why);
    assert!(text.instead.is_some_and(|text| text.starts_with("Round-robin would have sent it to W")));
    let blocks = format::plural(latest.decision.isl_blocks.unwrap(), "block", "blocks");
    let expected = format!("at {}, a prompt of {blocks}", ZONE.time_of_day(latest.decided_ms()));
    assert_eq!(text.at, expected);

    let [fullest, throughput, shared] = now(&folded);
    let share = |(ix, _)| Some(folded.cluster.blocks(ix)? as f64 / folded.cluster.capacity(ix)?.value as f64);
    let most = folded.cluster.workers().indexed().filter_map(share).fold(0.0, f64::max);
    assert_eq!(fullest.value, format!("{:.0} %", 100.0 * most));
    assert!(
        fullest.of.starts_with("of W") && fullest.of.ends_with("'s KV blocks are cached: the fullest worker")
    );
    assert!(throughput.value.starts_with(|first: char| first.is_ascii_digit()), "{throughput:?}");
    assert!(
        throughput.of.starts_with("requests/s, ") && throughput.of.ends_with(" output tokens/s, last 60 s")
    );
    let totals = folded.cluster.tree(folded.cluster.default_pool()).totals();
    assert_eq!(shared.value, format!("{:.0} %", 100.0 * totals.shared as f64 / totals.nodes as f64));
    assert_eq!(FIGURES.map(|(at, _)| at), [0, 1, 2, 4]);
}

#[test]
fn it_turns_through_the_pools_that_have_blocks() {
    let folded = Folded::demo(Topology::TwoModels, 60);
    let shown = folded.shown();
    assert_eq!(pool_label(&shown), "2 pools, 6 workers");
    let pools = shown.pool_list();
    assert_eq!(pools.len(), 2);
    let turns: Vec<_> = (0..6).map(|turn| pool_at(&shown, turn).unwrap()).collect();
    assert_eq!(turns, [pools[0], pools[0], pools[1], pools[1], pools[0], pools[0]]);
    for pool in pools {
        let drawn = ShownPools::of(&folded.cluster, &PoolQuery::default()).drawing(Some(pool));
        let shown = ViewContext::new(&folded.cluster, drawn);
        let text = LatestDecision::of(&shown, ZONE).unwrap();
        assert_eq!(folded.cluster.pool_of(text.worker), Some(pool), "the latest of the pool that is drawn");
    }
    assert_eq!(pool_at(&nothing().shown(), 3), None);
}

#[test]
fn the_worst_finding_is_named_with_how_many_there_are() {
    let folded = faulty(Fault::NoEvents, 90);
    let active = FindingFilter::default().of(&folded.cluster);
    let text = worst(&folded);
    assert_eq!(text.class, active[0].severity.as_str());
    assert_eq!(text.text, with_labels(&folded.cluster, active[0], &active[0].title));
    let more = if active.len() > 1 { format!("1 of {} findings", active.len()) } else { String::new() };
    assert_eq!(text.more, more);

    let healthy = worst(&Folded::demo(Topology::Aggregated, 60));
    let is_to_come = [", a finding from ", "above target for "];
    assert!(
        healthy.text == "No findings" || is_to_come.iter().any(|text| healthy.text.contains(text)),
        "{healthy:?}"
    );
    assert!(healthy.more.contains(" checks ran"), "{}", healthy.more);
    let unchecked = worst(&nothing());
    assert_eq!(
        (unchecked.class, unchecked.head.as_str(), unchecked.text.as_str()),
        ("", "Findings", "Nothing was checked yet")
    );
}

#[test]
fn what_is_not_known_is_not_made_up() {
    let folded = Folded::recorded("0.9.1-no-events");
    let unknown: Vec<_> = now(&folded).into_iter().map(|figure| figure.value).collect();
    assert_eq!(unknown, ["–", "–", "–"]);
    let none = nothing();
    assert_eq!(LatestDecision::of(&none.shown(), ZONE), None);
    assert_eq!(no_decision(&none.shown()), "No decision received yet");
    let silent = Folded::recorded("1.6.1-mismatch");
    assert!(
        no_decision(&silent.shown()).contains("--router-replica-sync"),
        "{}",
        no_decision(&silent.shown())
    );
}
