//! The tour: its steps, what they say of the moment, and how it goes on.

use radixscope_export::stage::{Mend, StageChange};
use radixscope_model::id::Millis;
use radixscope_model::record::{Phase, Severity};
use radixscope_panels::format::{count, plural};
use radixscope_panels::tour::{Card, Place, STEPS, TourFigures, TourKey, end, go, is_asked, stays_s, steps};
use radixscope_panels::url::{Address, Panel};
use radixscope_sim::{Fault, Topology};
use radixscope_state::cluster::Cluster;

use crate::folded::Folded;

fn address(query: &str) -> Address {
    Address::parse(query).0
}

#[test]
fn only_a_simulated_page_has_steps_that_break_something_and_never_by_itself() {
    assert_eq!(steps(false, true).len(), STEPS.len());
    let titles = |goes_by_itself, is_simulated| {
        steps(goes_by_itself, is_simulated).iter().map(|step| step.title).collect::<Vec<_>>()
    };
    let quiet =
        ["What workers remember", "What it brings", "The prefix tree", "Why this worker", "What is wrong"];
    assert_eq!(
        [titles(false, false), titles(true, true), titles(true, false)],
        [quiet.to_vec(), quiet.to_vec(), quiet.to_vec()]
    );
    let acts: Vec<_> =
        STEPS.iter().filter_map(|step| step.act.as_ref()).map(|act| (act.label, (act.change)())).collect();
    assert_eq!(
        acts,
        [
            ("Kill a worker", StageChange::Break("kill-worker".to_owned())),
            ("Mend", StageChange::Mend(Mend {}))
        ]
    );
}

#[test]
fn arrow_keys_lead_through_it_and_escape_ends_it() {
    let mut here = address("?tour=1");
    assert!(is_asked(&here) && !is_asked(&address("")));
    assert_eq!(TourKey::of(&here, "ArrowRight"), Some(TourKey::Go(1)));
    assert_eq!(TourKey::of(&here, "ArrowLeft"), Some(TourKey::Go(-1)));
    assert_eq!(
        [TourKey::of(&here, "Escape"), TourKey::of(&here, "x"), TourKey::of(&address(""), "Escape")],
        [Some(TourKey::End), None, None]
    );
    let mut panels = Vec::new();
    for _ in 0..STEPS.len() + 2 {
        panels.push(here.panel);
        go(&mut here, 1, true);
    }
    let of_steps: Vec<Panel> = STEPS.iter().map(|step| step.panel).collect();
    assert_eq!(panels[1..STEPS.len()], of_steps[1..]);
    assert_eq!(here.panel, of_steps[STEPS.len() - 1], "it stays at the last step");
    go(&mut here, -100, true);
    assert_eq!(Place::of(&here), Some(Place { step: 0, stays_s: None }));
    end(&mut here);
    assert_eq!((here.panel, is_asked(&here)), (Panel::Overview, false));
    // An address may name a step that there is not.
    let mut far = address("?tour=99");
    go(&mut far, 0, false);
    assert_eq!(Place::of(&far).unwrap().step, 4);
    let mut none = address("?view=tree");
    go(&mut none, 1, true);
    assert_eq!(none, address("?view=tree"));
}

#[test]
fn on_a_kiosk_it_begins_anew_and_the_address_says_how_long_a_step_stays() {
    let mut here = address("?kiosk&tour=5,15s");
    assert_eq!(Place::of(&here), Some(Place { step: 4, stays_s: Some(15) }));
    go(&mut here, 1, true);
    assert_eq!(Place::of(&here), Some(Place { step: 0, stays_s: Some(15) }));
    let stays = |query| stays_s(&address(query));
    assert_eq!(
        [stays("?tour=1"), stays("?tour=1s"), stays("?tour=9999s"), stays("?tour=15s"), stays("")],
        [10, 3, 600, 15, 10]
    );
}

#[test]
fn a_card_numbers_its_step() {
    let all = steps(false, false);
    let first = Card::of(&all, 0);
    assert_eq!((first.number.as_str(), first.can_go_back, first.next), ("1 of 5", false, "Next →"));
    assert_eq!(first.announcement(), "1 of 5: What workers remember");
    let last = Card::of(&all, 4);
    assert_eq!(
        (last.number.as_str(), last.can_go_back, last.next, last.is_last),
        ("5 of 5", true, "Done", true)
    );
}

#[test]
fn steps_speak_of_the_figures_of_the_moment() {
    let figures = TourFigures { hit_rate: "81.1 %", ttft_p95: "", in_flight: "118" };
    let text = |folded: &Folded, at: usize| (STEPS[at].text)(&folded.shown(), figures);
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let held: u64 = folded.shown().drawn_workers().filter_map(|worker| folded.shown().blocks(worker)).sum();
    assert_eq!(
        text(&folded, 0),
        format!(
            "3 workers hold {} cached blocks. The router sends a request where most of its prompt is cached.",
            count(held)
        )
    );
    assert_eq!(text(&folded, 1), "Now: KV hit rate 81.1 %, TTFT p95 –, requests in flight: 118.");
    let decided = folded
        .cluster
        .decisions()
        .newest_first()
        .find(|d| d.chosen().is_some() && d.decision.isl_blocks.is_some())
        .unwrap();
    let cached = decided.chosen().unwrap().overlap_blocks;
    assert_eq!(
        text(&folded, 3),
        format!(
            "The latest request went to {}: {} of {} prompt blocks were cached there. Open it to compare costs.",
            decided.decision.worker,
            count(cached.into()),
            count(decided.decision.isl_blocks.unwrap())
        )
    );
    assert_eq!(
        text(&folded, 4),
        "0 active findings now. Each names what is wrong, why, and the setting that helps."
    );
    let killed = Folded::fault(Fault::KillWorker, 100);
    let active = killed
        .cluster
        .findings()
        .iter()
        .filter(|of| of.phase != Phase::Cleared && of.severity > Severity::Info)
        .count();
    assert!(text(&killed, 4).starts_with(&plural(active as u64, "active finding", "active findings")));
    let nothing = Folded { cluster: Cluster::default(), now: Millis(1) };
    assert_eq!(
        text(&nothing, 3),
        "Every decision with its reason: what each worker had cached, and what it would have cost."
    );
    assert!(text(&nothing, 0).starts_with("0 workers hold "));
    for step in &STEPS {
        let words = (step.text)(&folded.shown(), figures).split_whitespace().count();
        assert!((1..=20).contains(&words), "{}: {words} words", step.title);
    }
}
