//! The timeline, the time that charts show, and moments in the address.

use radixscope_insight::time_range::{TimePoint, TimeRange, TimeSpan};
use radixscope_model::id::Millis;
use radixscope_panels::changes::{five_minutes_before, not_retained};
use radixscope_panels::time_menu::{RequestedMoment, TimeChoice, dragged, known_from};
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::timeline::{
    Bands, COLUMNS, MarkButtons, PlayButton, SPEEDS, STEPS, TimelineMark, TimelineRow, axis, flags, moment,
    newest_name, share, shown, signs, speed_name, step_title, why_none,
};
use radixscope_panels::url::{Address, Marks};
use radixscope_sim::Topology;
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

/// 2026-01-01 00:00:00, written one hour east of Greenwich.
const ZONE: TimeZone = TimeZone(3_600_000);

fn at(second: u64) -> Millis {
    Millis(START.0 + second * 1_000)
}

fn span(from: u64, until: u64) -> TimeSpan {
    TimeSpan { from: at(from), until: at(until) }
}

fn row(second: u64, marks: Vec<TimelineMark>) -> TimelineRow {
    TimelineRow { at_ms: at(second), stored: 0.0, removed: 0.0, decisions: 0.0, ttft_p95_ms: None, marks }
}

fn marking(marks: Marks) -> Address {
    let mut address = Address::default();
    address.marks = marks;
    address
}

#[test]
fn bands_name_their_largest_values_and_what_is_not_reported() {
    let mut rows: Vec<TimelineRow> = (0..120).map(|second| row(second, Vec::new())).collect();
    rows[10].stored = 1_234.0;
    rows[20].removed = 7.0;
    rows[30].decisions = 4.5;
    let bands = Bands::of(&rows, span(0, 120));
    assert_eq!(
        bands.text,
        "Blocks stored (up) and removed (down): at most 1,234 /s. Decisions: at most 4.5 /s. TTFT p95, last 60 s: not reported"
    );
    assert_eq!((bands.stored.len(), bands.removed.len()), (COLUMNS, COLUMNS));
    assert_eq!(bands.ttft, "", "no line where nothing is known");
    rows[119].ttft_p95_ms = Some(612.4);
    assert!(Bands::of(&rows, span(0, 120)).text.ends_with("TTFT p95, last 60 s: at most 612 ms"));
    let before = Bands::of(&rows, span(0, 60));
    assert!(before.text.ends_with("not reported"), "of the stretch that is drawn alone");
}

#[test]
fn a_second_shows_its_worst_mark_and_says_all_of_them() {
    let finding =
        |code, severity: &str, is_begin| TimelineMark::of_finding(code, severity.to_owned(), is_begin);
    let member = |what: &str, worker, process| TimelineMark::of_member(what.to_owned(), worker, process);
    let rows = [
        row(1, vec![finding("hot_worker", "warning", true), finding("memory_full", "critical", true)]),
        row(2, vec![finding("hot_worker", "warning", false)]),
        row(3, vec![member("left", Some("7"), None), finding("gap", "info", true)]),
        row(4, vec![member("settings_changed", None, Some("frontend")), member("joined", Some("8"), None)]),
        row(5, vec![member("restarted", None, Some("frontend"))]),
    ];
    let all = signs(&rows, span(0, 10), ZONE);
    let of = |at: usize| (all[at].class.as_str(), all[at].title.as_str());
    assert_eq!(
        of(0),
        ("moments-mark critical", "01:00:01\nhot_worker: reported, warning\nmemory_full: reported, critical")
    );
    assert_eq!(of(1), ("moments-mark resolved", "01:00:02\nhot_worker: resolved, warning"));
    assert_eq!(of(2), ("moments-mark left", "01:00:03\nWorker 7 left\ngap: reported, info"));
    assert_eq!(
        of(3),
        ("moments-mark settings_changed", "01:00:04\nRouter settings of frontend changed\nWorker 8 joined")
    );
    assert_eq!(of(4), ("moments-mark restarted", "01:00:05\nProcess frontend restarted"));
    assert!(all.iter().all(|sign| sign.id == "timeline-mark" && sign.until.is_none()));
    assert_eq!(signs(&rows, span(4, 10), ZONE).len(), 2, "those within the stretch drawn");
}

#[test]
fn a_time_without_rows_is_a_gap_as_wide_as_it_is_drawn() {
    let rows: Vec<TimelineRow> = [0, 1, 2, 20, 21].map(|second| row(second, Vec::new())).into();
    let all = signs(&rows, span(0, 21), ZONE);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].id, all[0].class.as_str()), ("timeline-gap", "moments-gap"));
    assert_eq!(all[0].title, "Nothing was received or recorded from 01:00:02 to 01:00:20");
    assert_eq!(all[0].place(span(0, 40)), (0.05, Some(0.45)));
    // It began before what is drawn, and ends after it.
    assert_eq!(all[0].place(span(10, 15)), (0.0, Some(1.0)));
    assert!(signs(&rows, span(20, 21), ZONE).is_empty());
}

#[test]
fn marked_moments_have_flags_and_buttons_that_say_which() {
    let none = MarkButtons::of(&Address::default(), false, ZONE);
    assert_eq!(
        none.titles,
        ["Mark the moment shown as A (A)", "Mark the moment shown as B (B)"].map(str::to_owned)
    );
    assert_eq!((none.are_marked, none.can_swap, none.can_clear), ([false; 2], false, false));
    let marked = marking([Some(at(10)), Some(at(90))]);
    let both = MarkButtons::of(&marked, false, ZONE);
    assert_eq!(both.titles[0], "Mark the moment shown as A (A); it is 01:00:10");
    assert_eq!((both.are_marked, both.can_swap, both.can_clear), ([true; 2], true, true));
    let all = flags(&marked, false, span(0, 100), ZONE);
    let of: Vec<_> =
        all.iter().map(|flag| (flag.name, flag.share, flag.is_late, flag.title.as_str())).collect();
    assert_eq!(of, [("A", 0.1, false, "A: 01:00:10"), ("B", 0.9, true, "B: 01:01:30")]);
    // A moment of a second recording has no place on this timeline and is not swapped.
    assert!(!MarkButtons::of(&marked, true, ZONE).can_swap);
    assert_eq!(flags(&marked, true, span(0, 100), ZONE).len(), 1);
    assert!(flags(&marked, false, span(20, 80), ZONE).is_empty(), "outside of what is drawn");
    let b_alone = marking([None, Some(at(90))]);
    let buttons = MarkButtons::of(&b_alone, false, ZONE);
    assert_eq!((buttons.can_swap, buttons.can_clear), (false, true));
}

#[test]
fn buttons_say_what_they_do() {
    let play = |is_back, is_playing| PlayButton::of(is_back, is_playing);
    assert_eq!((play(false, false).title, play(false, false).plays), ("Pause (Space)", false));
    assert_eq!((play(true, false).title, play(true, false).plays), ("Play (Space)", true));
    assert_eq!((play(true, true).title, play(true, true).plays), ("Pause the replay (Space)", false));
    assert_eq!(STEPS.map(|(name, _)| name), ["Decision", "Finding", "Block"]);
    assert_eq!(step_title(true, 0), "To the next decision");
    assert_eq!(step_title(false, 1), "To the previous finding or worker change");
    assert_eq!(step_title(false, 2), "To the previous block of the selected worker");
    assert!(SPEEDS.iter().all(|(speed, name)| *name == format!("{}×", f64::from(*speed) / 4.0)));
    assert_eq!((speed_name(4), speed_name(3)), ("1×", ""));
    assert_eq!([newest_name(false), newest_name(true)], ["Live", "End of recording"]);
    assert_eq!(moment(Millis(0), "Live", "1 s ago", ZONE), "Live");
    assert_eq!(moment(at(5), "Live", "12 s ago", ZONE), "01:00:05, 12 s ago");
}

#[test]
fn an_empty_timeline_says_which_option_keeps_it_empty() {
    assert_eq!(why_none(Millis(0), false), "No history is retained (--history 0)");
    assert_eq!(why_none(Millis(0), true), "No history is retained: the state is larger than --history-mib");
    assert_eq!(why_none(at(1), true), "");
}

#[test]
fn what_is_drawn_is_a_part_of_what_is_retained_and_stands_still_under_the_pointer() {
    let (all, held) = (span(100, 200), span(90, 190));
    assert_eq!(shown(all, None, None), all);
    assert_eq!(shown(all, None, Some(held)), span(100, 190), "what is no longer retained is not drawn");
    assert_eq!(shown(all, Some(span(120, 140)), Some(held)), span(120, 140));
    assert_eq!(share(all, at(150)), Some(0.5));
    assert_eq!((share(all, at(99)), share(all, at(201))), (None, None));
}

#[test]
fn times_of_day_stand_below_the_timeline_where_there_is_room() {
    let labels = axis(span(0, 300), 600.0);
    assert!((3..=6).contains(&labels.len()), "{labels:?}");
    let steps: Vec<u64> = labels.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(steps.iter().all(|step| *step == 60_000), "{steps:?}");
    assert!(labels.iter().all(|at| at.0 % 60_000 == 0), "at full minutes");
    // Half a label's width from both edges.
    let inside = |at: &Millis| (0.075..=0.925).contains(&span(0, 300).share(*at));
    assert!(labels.iter().all(inside));
    assert!(axis(span(0, 300), 0.0).is_empty(), "before its width is known");
}

#[test]
fn the_menu_offers_times_and_names_any_other() {
    let now = at(1_000);
    let of = |range: TimeRange| TimeChoice::of(range, range.span(now), ZONE);
    assert_eq!(of(TimeRange::default()), TimeChoice::Last(300));
    assert_eq!(of(TimeRange::last(3_600)), TimeChoice::Last(3_600));
    assert_eq!(of(TimeRange::last(90)), TimeChoice::Other("From now-90s".to_owned()));
    let fixed = TimeRange::fixed(span(60, 125));
    assert_eq!(of(fixed), TimeChoice::Other("01:01:00 – 01:02:05".to_owned()));
    let past = TimeRange { from: TimePoint::Ago(600), to: TimePoint::Ago(300) };
    assert_eq!(of(past), TimeChoice::Other("01:06:40 – 01:11:40".to_owned()));
}

#[test]
fn a_chart_that_begins_before_anything_was_known_says_so() {
    let folded = Folded::demo(Topology::Aggregated, 30);
    let begin = |seconds: u64| TimeSpan { from: Millis(folded.now.0 - seconds * 1_000), until: folded.now };
    // Workers of the simulator are there in its first second.
    let first = folded.cluster.workers().iter().map(|worker| worker.first_ms).min().unwrap();
    assert!(first.since(START) < 1_000, "{first:?}");
    assert_eq!(known_from(&folded.cluster, begin(10), ZONE), None);
    let note = known_from(&folded.cluster, begin(300), ZONE);
    assert_eq!(note.as_deref(), Some(", nothing known before 01:00:00"));
    assert_eq!(known_from(&Cluster::default(), begin(10), ZONE), None, "nothing is known at all");
}

#[test]
fn a_short_drag_is_a_click_and_a_long_one_chooses_whole_seconds() {
    let all = span(0, 300);
    assert_eq!(dragged(all, (0.5, 0.51)), None);
    assert_eq!(dragged(all, (0.8, 0.6)), Some(span(180, 240)), "to the left as to the right");
    assert_eq!(dragged(all, (0.5, 0.52)), Some(span(150, 160)), "ten seconds at least");
}

#[test]
fn a_moment_is_in_the_fragment_and_a_bad_one_is_named() {
    let of = RequestedMoment::of;
    assert_eq!((of(""), of("#panels")), (RequestedMoment::Present, RequestedMoment::Present));
    assert_eq!(of("#t=1767225600000"), RequestedMoment::At(START));
    for text in ["soon", "0", "", "-5"] {
        let why = format!(
            "t={text} in the address is invalid: a moment is Unix milliseconds; the present is shown"
        );
        assert_eq!(of(&format!("#t={text}")), RequestedMoment::Invalid(why));
    }
    assert_eq!(of(&RequestedMoment::fragment(START.0)), RequestedMoment::At(START));
    assert_eq!(RequestedMoment::fragment(0), "");
}

#[test]
fn a_moment_that_is_not_retained_is_refused_with_what_is() {
    let retained = span(100, 200);
    let why = |second| not_retained(at(second), retained, ZONE);
    assert_eq!((why(100), why(150), why(200)), (None, None, None));
    assert_eq!(
        why(99).as_deref(),
        Some("01:01:39 is no longer retained: the first retained moment is 01:01:40")
    );
    assert_eq!(why(201).as_deref(), Some("01:03:21 is still to come: the latest moment is 01:03:20"));
}

#[test]
fn the_present_is_compared_with_five_minutes_before_or_with_the_middle_of_what_is_retained() {
    assert_eq!(five_minutes_before(at(1_000), at(0)), at(700));
    assert_eq!(five_minutes_before(at(1_000), at(700)), at(700));
    assert_eq!(five_minutes_before(at(1_000), at(900)), at(950));
    assert_eq!(five_minutes_before(at(1_000), at(1_000)), at(1_000));
}
