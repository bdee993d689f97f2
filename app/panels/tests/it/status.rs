//! The status bar: coverage, lag, blocks and losses of simulated and recorded states; the connection in a word.

use radixscope_captures::Recording;
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::MissedCause;
use radixscope_panels::format;
use radixscope_panels::link::{Check, Link};
use radixscope_panels::status::{Connection, PastMoment, StatusFacts, server_title, verified};
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;
use crate::states::{ZONE, nothing, numbers, recorded};

#[test]
fn facts_of_a_recording_are_those_counted_from_its_messages() {
    let folded = Folded::recorded("0.9.1-worker-restart");
    let facts = StatusFacts::of(&folded.shown(), true);
    assert_eq!((facts.coverage.as_str(), facts.is_incomplete), ("4 of 4 workers", false));
    assert!(facts.coverage_title.starts_with("4 of 4 workers complete. 6,279 of "));
    assert_eq!((facts.lost.as_str(), facts.has_lost), ("0", false));
    assert_eq!(facts.lost_title, "0 lost, 0 rejected; click for causes");
    assert_eq!(facts.blocks, "6,279 / 6,279");
    assert!(
        facts
            .blocks_title
            .starts_with("6,279 of 6,279 resident blocks are shown, summed over the workers; 0 are hidden")
    );
    assert_eq!(facts.seq, format::count(folded.cluster.seq().0));
    let silent = StatusFacts::of(&Folded::recorded("0.9.1-no-events").shown(), true);
    assert_eq!((silent.coverage.as_str(), silent.is_incomplete), ("0 of 3 workers", false));
}

#[test]
fn without_a_live_source_live_figures_are_unknown() {
    let folded = Folded::demo(Topology::Aggregated, 30);
    let current = StatusFacts::of(&folded.shown(), true);
    assert_eq!(current.coverage, "3 of 3 workers");
    let old = StatusFacts::of(&folded.shown(), false);
    assert_eq!((old.coverage.as_str(), old.lag.as_str()), ("–", "–"));
    assert_eq!((old.blocks, old.seq), (current.blocks, current.seq));
    let none = StatusFacts::default();
    assert!([&none.coverage, &none.lag, &none.blocks, &none.seq, &none.lost].iter().all(|text| *text == "–"));
    let empty = StatusFacts::of(&nothing().shown(), true);
    assert_eq!((empty.lag.as_str(), empty.lost.as_str()), ("–", "0"));
}

#[test]
fn what_is_lost_is_counted_and_what_is_missing_marked() {
    let folded = Folded::fault(Fault::Gap, 120);
    let facts = StatusFacts::of(&folded.shown(), true);
    // What was in lost messages is counted with them already.
    let all = folded.cluster.sources().iter().flat_map(|source| &source.missed);
    let missed: u64 =
        all.filter(|missed| missed.cause != MissedCause::EventsInLost).map(|missed| missed.count).sum();
    assert!(missed > 0 && facts.has_lost);
    assert_eq!(numbers(&facts.lost)[0], missed, "{}", facts.lost);
    let late = recorded(&Recording::late("1.6.1-nats-late-replica-sync"));
    let facts = StatusFacts::of(&late.shown(), true);
    assert_eq!((facts.coverage.as_str(), facts.is_incomplete), ("unknown · 0 of 3 workers", true));
    let disagg = StatusFacts::of(&recorded(&Recording::topology("1.6.1-disagg")).shown(), true);
    assert_eq!(disagg.coverage, "2 of 2 workers", "decode workers publish no events");
}

#[test]
fn the_connection_is_a_word() {
    let of = |link, is_stale, replayed| {
        Connection::of_link(link, is_stale, replayed).map(|of| (of.state, of.text))
    };
    let some = |state, text: &str| Some((state, text.to_owned()));
    assert_eq!(of(Link::Live, false, None), None, "the sources say the rest");
    assert_eq!(of(Link::Live, true, None), some("stale", "Stale"));
    assert_eq!(of(Link::Live, true, Some("End of recording")), some("past", "End of recording"));
    assert_eq!(of(Link::Connecting, true, None), some("wait", "Connecting"));
    assert_eq!(of(Link::Restoring { part: 1, parts: 4 }, false, None), some("wait", "Loading 25 %"));
    assert_eq!(of(Link::Restoring { part: 0, parts: 1 }, false, None), some("wait", "Loading"));
    assert_eq!(
        of(Link::Waiting { attempts: 2, seconds: 5 }, false, None),
        some("bad", "Reconnecting in 5 s")
    );
    assert_eq!(of(Link::Incompatible { theirs: 1 }, false, None), some("bad", "Other version"));

    let folded = Folded::demo(Topology::Aggregated, 5);
    let live = Connection::of_sources(folded.cluster.sources());
    assert_eq!((live.state, live.text.as_str()), ("live", "Live"));
    let none = Connection::of_sources(&[]);
    assert_eq!((none.state, none.text.as_str()), ("wait", "No source yet"));
    assert_eq!(server_title(""), "No server has responded yet");
    assert_eq!(server_title("radixscope 0.2.0"), "Server radixscope 0.2.0");
}

#[test]
fn a_moment_of_the_past_stands_plays_or_is_on_its_way() {
    let moment = PastMoment {
        at: Millis(10 * 3_600_000),
        shown_meanwhile: None,
        speed: None,
        age: "3 min ago".to_owned(),
    };
    let text = |moment: PastMoment| Connection::of_past(&moment, ZONE).text;
    assert_eq!(text(moment.clone()), "Paused at 11:30:00, 3 min ago");
    assert_eq!(text(PastMoment { speed: Some("4×"), ..moment.clone() }), "Replay 4×, 11:30:00");
    let waits = PastMoment { shown_meanwhile: Some(Millis(9 * 3_600_000)), speed: Some("4×"), ..moment };
    assert_eq!(text(waits), "Loading 11:30:00; shown: 10:30:00");
}

#[test]
fn what_the_comparison_gave_is_said() {
    let of = |verified, different| Check { verified, equal: 0, different };
    assert_eq!(verified(of(None, 0), false), ("none", "not compared yet".to_owned()));
    assert_eq!(verified(of(None, 2), false), ("off", "2 mismatches".to_owned()));
    assert_eq!(verified(of(Some(Seq(1_234)), 0), false), ("ok", "verified at record 1,234".to_owned()));
    let before = "verified at record 1,234, 2 mismatches before".to_owned();
    assert_eq!(verified(of(Some(Seq(1_234)), 2), false), ("off", before));
    assert!(verified(of(Some(Seq(1)), 0), true).1.ends_with("the present is compared"));
}
