//! Findings: cards say what the checks found, workers by their labels; what was checked is listed whole.

use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::setting_line;
use radixscope_model::id::Worker;
use radixscope_model::record::{CheckStatus, Finding, Phase, Severity};
use radixscope_panels::findings::card::{FindingCard, FixRow, cause_title, evidence_time, times};
use radixscope_panels::findings::checked::Checked;
use radixscope_panels::findings::{
    ListedFindings, NoFinding, active_titles, counts, moment, news, resolved_text, severity_choices,
    with_labels,
};
use radixscope_panels::url::Panel;
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;
use crate::states::{ZONE, address, faulty, nothing};

fn found<'f>(folded: &'f Folded, code: &str) -> &'f Finding {
    let all = folded.cluster.findings();
    all.iter().find(|finding| finding.code == code).unwrap_or_else(|| panic!("{code} is not in {all:?}"))
}

/// A text with the labels of the simulator's workers, which are known in the order of their ids.
fn labelled(folded: &Folded, text: &str) -> String {
    let mut ids: Vec<Worker> = folded.cluster.workers().indexed().map(|(_, state)| state.id).collect();
    ids.sort_by_key(|id| (id.id.0, id.dp_rank));
    let names = ids.iter().enumerate().map(|(at, id)| (format!("worker {id}"), format!("W{}", at + 1)));
    names.fold(text.to_owned(), |text, (name, label)| text.replace(&name, &label))
}

#[test]
fn a_card_says_what_the_checks_found() {
    let folded = faulty(Fault::NoEventsOne, 90);
    let all = FindingFilter::default().of(&folded.cluster);
    let names_one = |finding: &&&Finding| {
        finding.phase == Phase::Warn && labelled(&folded, &finding.title) != finding.title
    };
    let finding = *all.iter().find(names_one).unwrap_or_else(|| panic!("none names a worker: {all:?}"));
    let card = FindingCard::of(&folded.cluster, finding);
    assert_eq!(
        (card.title.clone(), card.full_title.as_str()),
        (labelled(&folded, &finding.title), &*finding.title)
    );
    assert_ne!(card.title, card.full_title, "it names a worker: {}", card.title);
    assert_eq!(card.class, finding.severity.as_str());
    assert!(card.severity.to_lowercase().contains(finding.severity.as_str()), "{}", card.severity);
    assert_eq!((card.phase, card.taken_ms), ("Active", None));
    assert_eq!(card.evidence.len(), finding.evidence.len());
    for (row, evidence) in card.evidence.iter().zip(&finding.evidence) {
        assert_eq!(row.label, labelled(&folded, &evidence.label));
        assert_eq!((row.value.as_str(), row.unit.as_str()), (&*evidence.value, &*evidence.unit));
    }
    assert!(!card.fixes.is_empty() && !card.evidence.is_empty());
    for (row, fix) in card.fixes.iter().zip(&finding.fix) {
        assert_eq!(*row, FixRow { text: fix.text.to_string(), setting: setting_line(fix) });
    }
    let head = if card.fixes.len() > 1 { "What to do, one of these" } else { "What to do" };
    assert_eq!(FindingCard::fixes_title(&card.fixes), head);
    assert_eq!(card.workers, finding.workers);
    assert_eq!(card.shown_by.0, Panel::from(finding.panel));
    assert_eq!(card.shown_by.1.is_some(), finding.selects_worker);

    let (first, last) =
        (moment(finding.first_ms, folded.now, ZONE), moment(finding.last_ms, folded.now, ZONE));
    assert_eq!(times(finding, folded.now, ZONE), format!("since {first}, last seen {last}"));
    assert!(first.starts_with(&ZONE.time_of_day(finding.first_ms)) && first.ends_with(" ago)"), "{first}");

    let over = Finding { phase: Phase::Cleared, ..finding.clone() };
    let card = FindingCard::of(&folded.cluster, &over);
    assert_eq!((card.phase, card.taken_ms), ("Resolved", Some(finding.last_ms)));
    assert!(times(&over, folded.now, ZONE).contains(", seen until "));
    assert_eq!(evidence_time(finding.last_ms, folded.now, ZONE), format!("Evidence at {last}"));
}

#[test]
fn the_address_and_the_picked_worker_filter_the_list() {
    let folded = faulty(Fault::NoEvents, 90);
    let active = FindingFilter::default().of(&folded.cluster);
    let codes =
        |query: &str, is_over| ListedFindings::of(&address(query), None).codes(&folded.cluster, is_over);
    let all: Vec<String> = active.iter().map(|finding| finding.code.to_string()).collect();
    assert_eq!(codes("", false), all);
    let over = folded.cluster.findings().iter().filter(|finding| finding.phase == Phase::Cleared).count();
    assert_eq!(codes("", true).len(), over);
    for (severity, name) in
        [(Severity::Critical, "critical"), (Severity::Warning, "warning"), (Severity::Info, "info")]
    {
        let of: Vec<String> = active
            .iter()
            .filter(|finding| finding.severity == severity)
            .map(|finding| finding.code.to_string())
            .collect();
        assert_eq!(codes(&format!("severity={name}"), false), of, "{name}");
        let at = 2 - severity as usize;
        let (number, word) = counts(&folded.shown())[at].clone();
        let expected = match (severity, of.len()) {
            (Severity::Critical, _) => "critical",
            (Severity::Warning, 1) => "warning",
            (Severity::Warning, _) => "warnings",
            (Severity::Info, 1) => "note",
            (Severity::Info, _) => "notes",
        };
        assert_eq!((number, word), (of.len().to_string(), expected));
    }
    let about = found(&folded, "no_events");
    for (worker, _) in folded.cluster.workers().indexed() {
        let of_worker = ListedFindings { severity: None, worker: Some(worker) }.codes(&folded.cluster, false);
        let is_its = about.workers.is_empty() || about.workers.contains(&worker);
        assert_eq!(of_worker.contains(&"no_events".to_owned()), is_its);
    }
    let choices: Vec<_> = severity_choices().into_iter().map(|choice| (choice.value, choice.text)).collect();
    let expected = [
        (None, "All"),
        (Some("critical"), "◆ Critical"),
        (Some("warning"), "▲ Warning"),
        (Some("info"), "● Note"),
    ];
    assert_eq!(choices, expected.map(|(value, text)| (value, text.to_owned())));
    assert_eq!(resolved_text(3), "Resolved: 3");
    // An unknown name lists all.
    assert_eq!(codes("severity=none", false), all);
}

#[test]
fn new_findings_are_read_out_once() {
    let folded = faulty(Fault::NoEvents, 90);
    let now = active_titles(&folded.cluster);
    let codes: Vec<String> = now.iter().map(|(code, _)| code.clone()).collect();
    assert_eq!(news(&codes, &now), None);
    let text = news(&codes[1..], &now).unwrap();
    assert_eq!(text, format!("New finding: {}", now[0].1));
    let titles: Vec<&str> = now.iter().map(|(_, title)| title.as_str()).collect();
    assert_eq!(news(&[], &now), Some(format!("New finding: {}", titles.join("; "))));
}

#[test]
fn a_symptom_names_its_cause() {
    let folded = faulty(Fault::NoEvents, 90);
    let cause = found(&folded, "no_events");
    assert_eq!(cause_title(&folded.cluster, "no_events"), with_labels(&folded.cluster, cause, &cause.title));
    assert_eq!(cause_title(&folded.cluster, "what_is_over"), "what_is_over");
}

#[test]
fn every_rule_is_listed_with_what_came_of_it() {
    for folded in [Folded::demo(Topology::Aggregated, 60), faulty(Fault::NoEvents, 90)] {
        let rules = folded.cluster.checked();
        let checked = Checked::of(rules);
        let groups = [&checked.found, &checked.without_result, &checked.no_data, &checked.ok];
        assert_eq!(groups.iter().map(|group| group.len()).sum::<usize>(), rules.len());
        let count =
            |statuses: &[CheckStatus]| rules.iter().filter(|rule| statuses.contains(&rule.status)).count();
        let bad = [CheckStatus::Critical, CheckStatus::Warning, CheckStatus::Info];
        let no_data = count(&[CheckStatus::NoData]);
        assert_eq!(
            checked.sums,
            format!(
                "{} ok, {} found, {} explained, {no_data} no data",
                count(&[CheckStatus::Ok]),
                count(&bad),
                count(&[CheckStatus::Explained]),
            )
        );
        assert!(checked.found.is_sorted_by_key(|row| bad.iter().position(|status| *status == row.status)));
        assert!(checked.ok.iter().all(|row| row.outcome == "ok" && row.mark == ("ok", "✓")));
        assert!(checked.no_data.iter().all(|row| row.outcome.is_empty() && !row.missing.is_empty()));
        let head = checked.no_data_text.as_deref().expect("some have no data");
        assert_eq!(head, format!("{no_data} checks without data: what they need"));
        for row in &checked.without_result {
            let expected = if row.status == CheckStatus::Explained { "explained by " } else { "pending: " };
            assert!(row.outcome.len() > expected.len() && row.outcome.starts_with(expected), "{row:?}");
        }
    }
    assert_eq!(Checked::of(&[]).sums, "0 ok, 0 found, 0 explained, 0 no data");
    assert_eq!(Checked::of(&[]).no_data_text, None);
}

#[test]
fn where_nothing_is_found_it_is_said_what_that_rests_on() {
    let folded = Folded::demo(Topology::Aggregated, 60);
    let rules = folded.cluster.checked().len();
    let all = ListedFindings::default();
    let NoFinding::Healthy { text, is_good, since } = NoFinding::of(&folded.cluster, all, folded.now, ZONE)
    else {
        panic!("nothing is found")
    };
    assert!(text.starts_with("No findings") && text.contains(&format!(" of {rules} checks ran")), "{text}");
    assert!(!is_good, "some rules have no data in the demo");
    let source = &folded.cluster.sources()[0];
    assert_eq!(since, format!("Listening since {}.", moment(source.since_ms, folded.now, ZONE)));
    let critical = ListedFindings { severity: Some(Severity::Critical), worker: None };
    let filtered = NoFinding::of(&folded.cluster, critical, folded.now, ZONE);
    assert_eq!(filtered, NoFinding::Filtered("No finding of this kind"));
    let NoFinding::Unchecked(text) = NoFinding::of(&nothing().cluster, all, folded.now, ZONE) else {
        panic!("nothing was checked")
    };
    assert_eq!((text.id, text.head), ("findings-unchecked", "Nothing was checked yet"));
}
