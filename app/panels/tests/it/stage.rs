//! The stage: what its bar shows of what the server says, and what each control sends.

use radixscope_export::stage::{
    Mend, Restart, StageChange, StageDriver, StageEvent, StageFault, StageReport, StageRouter, Steered,
};
use radixscope_model::id::{Decimal, Millis};
use radixscope_panels::stage::{
    Controls, break_it, broken, faults, is_folded_at_first, is_wanted, mend, mend_button, news, note_fold,
    restart, summary, typed_seed, users,
};
use radixscope_panels::url::Address;
use radixscope_router::RouterMode;

fn fault(name: &str, needs_restart: bool) -> StageFault {
    StageFault {
        name: name.to_owned(),
        summary: format!("{name}, in short"),
        shows: "what it shows".to_owned(),
        needs_restart,
    }
}

fn report() -> StageReport {
    let number = |value| Steered { value, min: 0.0, max: 10.0 };
    StageReport {
        driver: StageDriver::Simulator,
        is_ready: true,
        concurrency: Steered { value: 120, min: 1, max: 512 },
        paused: false,
        router: Some(StageRouter {
            mode: RouterMode::Kv,
            overlap_score_weight: number(1.0),
            router_temperature: number(0.0),
        }),
        faults: vec![fault("kill-worker", false), fault("block-size", true), fault("gap", false)],
        fault: None,
        seed: Some(Decimal(7)),
        latest: Some(StageEvent { at_ms: Millis(1), text: "120 users".to_owned() }),
    }
}

#[test]
fn the_bar_says_in_a_line_what_is_steered_and_what_happened_last() {
    let report = report();
    assert_eq!(summary(&report), "120 users · KV-aware");
    let turns = StageRouter { mode: RouterMode::RoundRobin, ..report.router.unwrap() };
    let steered = StageReport {
        concurrency: Steered { value: 1, ..report.concurrency },
        router: Some(turns),
        paused: true,
        fault: Some("gap".to_owned()),
        ..report.clone()
    };
    assert_eq!(summary(&steered), "1 user · round-robin · paused · gap");
    assert_eq!(news(Some(&report), ""), "120 users");
    assert_eq!(news(Some(&report), "The server refused: status 409"), "The server refused: status 409");
    assert_eq!(news(None, ""), "Warming up: it can be steered in a moment");
    assert_eq!(
        news(Some(&StageReport { is_ready: false, ..report.clone() }), ""),
        "Warming up: it can be steered in a moment"
    );
    assert_eq!(news(Some(&StageReport { latest: None, ..report }), ""), "");
}

#[test]
fn there_are_controls_of_what_can_be_steered() {
    let report = report();
    let controls = Controls::of(&report);
    let all =
        Controls { has_router: true, has_faults: true, has_seed: true, is_paused: false, is_ready: true };
    assert_eq!((controls, controls.pause_button()), (all, "Pause"));
    let driven = StageReport { router: None, faults: Vec::new(), seed: None, paused: true, ..report.clone() };
    let controls = Controls::of(&driven);
    assert_eq!(
        (controls.has_router, controls.has_faults, controls.has_seed, controls.pause_button()),
        (false, false, false, "Run")
    );
    assert_eq!(
        ["40", "0", "9999", "many"].map(|typed| users(typed, report.concurrency)),
        [Some(40), Some(1), Some(512), None]
    );
}

#[test]
fn what_breaks_it_is_mended_by_what_mends_it() {
    let report = report();
    let while_running: Vec<&str> = faults(&report, false).map(|fault| fault.name.as_str()).collect();
    assert_eq!(while_running, ["kill-worker", "gap"]);
    let [set_up] = faults(&report, true).collect::<Vec<_>>()[..] else { panic!("one") };
    let running = &report.faults[0];
    assert_eq!(break_it(Some(&report), running), StageChange::Break("kill-worker".to_owned()));
    let restarted = |fault: Option<&str>| {
        StageChange::Restart(Restart { seed: Decimal(7), fault: fault.map(str::to_owned) })
    };
    assert_eq!(break_it(Some(&report), set_up), restarted(Some("block-size")));
    assert_eq!((mend(Some(&report), running), mend_button(running)), (StageChange::Mend(Mend {}), "Mend"));
    assert_eq!((mend(Some(&report), set_up), mend_button(set_up)), (restarted(None), "Restart without it"));
    assert_eq!(broken(&report), None);
    let hit = StageReport { fault: Some("gap".to_owned()), ..report.clone() };
    assert_eq!(broken(&hit).map(|fault| fault.name.as_str()), Some("gap"));
    // Equal seeds give equal traffic: nothing typed is the seed at work, and all 64 bits are kept.
    assert_eq!(typed_seed(Some(&report), " "), Some(7));
    assert_eq!(typed_seed(Some(&report), " 18446744073709551615 "), Some(u64::MAX));
    assert_eq!(
        [typed_seed(Some(&report), "-1"), typed_seed(Some(&report), "x"), typed_seed(None, "")],
        [None; 3]
    );
    assert_eq!(restart(7), restarted(None));
}

#[test]
fn the_bar_stands_in_frames_only_where_it_is_asked_for_and_folds_where_it_is_narrow() {
    let address = |query: &str| Address::parse(query).0;
    assert!(is_wanted(&address("")) && is_wanted(&address("?stage=0")));
    assert!(
        !is_wanted(&address("?kiosk"))
            && is_wanted(&address("?kiosk&stage=1"))
            && !is_wanted(&address("?kiosk&stage=0"))
    );
    let folded = |query: &str, width| is_folded_at_first(&address(query), width);
    assert_eq!([folded("", 1_200.0), folded("", 899.0)], [false, true]);
    assert_eq!([folded("?stage=0", 1_200.0), folded("?stage=1", 500.0)], [true, false]);
    let mut here = address("");
    note_fold(&mut here, true);
    assert!(folded(&here.query(), 1_200.0));
    note_fold(&mut here, false);
    assert_eq!(here, address(""));
    let mut bare = address("?kiosk&stage=1");
    note_fold(&mut bare, true);
    assert_eq!(bare, address("?kiosk&stage=1"), "there the address says whether there is a bar at all");
}
