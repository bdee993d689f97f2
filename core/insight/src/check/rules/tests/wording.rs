//! What rules say keeps to the house's rules of writing.

use super::{Stage, block_size, completeness, engines, events, routers, sources, workers};
use crate::check::rules::ALL;
use radixscope_model::record::{CheckStatus, Finding, MissedCause, Record, Topic};

/// A state for every fault, with the code under which it is found.
fn stages() -> Vec<(&'static str, Stage)> {
    vec![
        ("block_size_mismatch", block_size::oversize()),
        ("block_size_mismatch", block_size::emptied()),
        ("block_size_mismatch", block_size::router(260)),
        ("block_size_mismatch", block_size::cards()),
        ("no_events", events::one_silent()),
        ("event_planes_mixed", events::two_lines()),
        ("unknown_parents", events::unknown_parents()),
        ("unknown_removals", events::unknown_removals()),
        ("event_gaps", events::gap()),
        ("event_encoding_unknown", engines::strange()),
        ("tree_partial", engines::late()),
        ("engine_hashes_differ", events::other_hashes()),
        ("tree_partial", events::late()),
        ("tree_partial", completeness::failed()),
        ("tree_drift", completeness::diverged()),
        ("indexer_differs", completeness::indexed()),
        ("router_receives_no_events", routers::deaf()),
        ("approximate_mode", routers::guesses()),
        ("approximate_mode", routers::guesses_of_1_6()),
        ("not_kv_routing", routers::by_turns()),
        ("not_kv_routing", routers::not_by_kv()),
        ("not_kv_routing", routers::direct()),
        ("models_share_a_pool", workers::two_models()),
        ("zero_overlap", routers::nothing_shared()),
        ("zero_overlap", block_size::router(130)),
        ("router_restarted", routers::restart(15)),
        ("cold_tree", routers::restart(0)),
        ("worker_gone", workers::silent()),
        ("worker_stopped", workers::stopped()),
        ("ghost_worker", workers::ghost()),
        ("behind", sources::behind()),
        ("source_down", sources::down()),
        ("nothing_received", sources::silence()),
        ("own_losses", own_losses()),
        ("own_losses", sources::gap()),
    ]
}

fn own_losses() -> Stage {
    let mut stage = Stage::new();
    let (source, topic, cause) = (radixscope_model::id::SourceIx(0), Topic::KvEvents, MissedCause::QueueFull);
    stage.record(Record::Missed { source, worker: None, topic, cause, count: 3 });
    stage.pass(2);
    stage
}

/// How many sentences a text has: full stops that end it or are followed by a space.
fn sentences(text: &str) -> usize {
    text.matches(". ").count() + usize::from(text.ends_with('.'))
}

fn assert_well_worded(finding: &Finding) {
    assert_eq!(sentences(&finding.explanation), 2, "{}: {}", finding.code, finding.explanation);
    assert!(!finding.title.is_empty() && !finding.title.ends_with('.'), "{}", finding.title);
    assert!(!finding.evidence.is_empty(), "{} has no evidence", finding.code);
    assert!(!finding.fix.is_empty(), "{} has no remedy, and does not say why", finding.code);
    assert!(!finding.selects_worker || !finding.workers.is_empty(), "{} selects no worker", finding.code);
    let rows = finding.evidence.iter();
    let labels = rows.clone().map(|row| row.label.trim());
    assert!(labels.clone().all(|label| !label.is_empty()), "{finding:#?}");
    assert!(rows.clone().all(|row| !row.value.trim().is_empty()), "{finding:#?}");
    assert!(finding.fix.iter().all(|fix| !fix.text.is_empty()), "{finding:#?}");
    let fixes = finding.fix.iter().map(|fix| &*fix.text);
    let texts = [&*finding.title, &*finding.explanation].into_iter().chain(labels).chain(fixes);
    for text in texts {
        assert!(!text.contains('!') && !text.contains("  "), "{}: {text:?}", finding.code);
    }
}

#[test]
fn every_finding_is_well_worded() {
    for (code, stage) in stages() {
        assert_well_worded(stage.found(code));
        stage.cluster.findings().iter().for_each(assert_well_worded);
    }
}

#[test]
fn codes_are_unique_and_in_snake_case_and_every_rule_says_what_it_looks_at() {
    let mut codes: Vec<_> = ALL.iter().map(|rule| rule.code).collect();
    for (rule, code) in ALL.iter().zip(&codes) {
        assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{code}");
        assert!(!code.starts_with('_') && !code.ends_with('_') && !code.contains("__"), "{code}");
        assert!(!rule.subject.is_empty() && !rule.subject.ends_with('.'), "{code}");
    }
    codes.sort_unstable();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all, "a code twice");
}

#[test]
fn without_input_there_are_no_findings() {
    let mut stage = Stage::new();
    stage.pass(20);
    assert!(stage.codes().is_empty());
    assert_eq!(stage.cluster.checked().len(), ALL.len(), "every rule says what came of it");
}

/// What shows on the screen as removals without stores, unknown parents or an overlap of 0 is not ticked off.
#[test]
fn what_follows_from_a_fault_is_explained_by_it_and_not_ok() {
    for (stage, code, by) in [
        (block_size::oversize(), "unknown_removals", "block_size_mismatch"),
        (block_size::emptied(), "unknown_parents", "block_size_mismatch"),
        (block_size::router(260), "zero_overlap", "block_size_mismatch"),
    ] {
        assert_eq!(stage.status(code), (CheckStatus::Explained, by), "{code}");
        assert_eq!(stage.status(by), (CheckStatus::Critical, ""), "{code}");
    }
}
