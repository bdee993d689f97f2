//! Marks on the time axes: findings, departures and returns, each once and where it happened.

use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;
use radixscope_model::record::Phase;
use radixscope_panels::marks::{MarkTarget, marks, place};
use radixscope_panels::url::Panel;
use radixscope_sim::{Fault, Topology};

use crate::folded::{Folded, START};
use crate::states::ZONE;

fn whole(folded: &Folded) -> TimeSpan {
    TimeSpan { from: START, until: folded.now }
}

#[test]
fn findings_and_departures_are_marked_where_they_begin() {
    let folded = Folded::fault(Fault::KillWorker, 120);
    let all = marks(&folded.shown(), whole(&folded), ZONE);
    assert!(all.is_sorted_by_key(|mark| mark.from));
    for finding in folded.cluster.findings() {
        let mark = all
            .iter()
            .find(|mark| mark.to == MarkTarget::Finding(finding.code.to_string()))
            .expect("each finding");
        assert_eq!(mark.from, finding.first_ms);
        assert_eq!(mark.until, (finding.phase == Phase::Cleared).then_some(finding.last_ms));
        assert!(
            mark.text.starts_with(&format!("{}: {}", finding.severity.as_str(), finding.title)),
            "{}",
            mark.text
        );
        assert_eq!(mark.to.panel(), (Panel::Findings, None));
    }
    let (_, left) = folded
        .shown()
        .worker_list()
        .filter_map(|ix| Some((ix, folded.cluster.worker(ix)?)))
        .find(|(_, state)| state.last_departure.is_some())
        .expect("a worker was killed");
    let at = left.last_departure.unwrap().at_ms;
    let mark = all.iter().find(|mark| mark.icon == "×").expect("its departure");
    assert_eq!((mark.from, mark.until), (at, Some(at)));
    assert!(mark.text.ends_with(&format!(" left, {}", ZONE.time_of_day(at))), "{}", mark.text);
    assert_eq!(mark.to.panel(), (Panel::Workers, Some(left.id)));

    let (from, until, above) = place(mark, &all, whole(&folded));
    let share = at.since(START) as f64 / folded.now.since(START) as f64;
    assert!((from - share).abs() < 1e-9 && (until - share).abs() < 1e-9, "{from} to {until}: {share}");
    assert!(above < 4);
    // Before it nothing had happened.
    let before = TimeSpan { from: START, until: Millis(START.0 + 30_000) };
    assert_eq!(marks(&folded.shown(), before, ZONE), []);
}

#[test]
fn a_healthy_cluster_has_no_mark() {
    let folded = Folded::demo(Topology::Aggregated, 60);
    assert_eq!(marks(&folded.shown(), whole(&folded), ZONE), []);
}
