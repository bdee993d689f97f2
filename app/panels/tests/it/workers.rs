//! The table of workers: figures counted again from the state and known from recordings.

use radixscope_export::panel::workers::{CachedTotal, capacity_note, empty};
use radixscope_model::id::Millis;
use radixscope_panels::format;
use radixscope_panels::workers::{COLUMNS, WorkerRow, unlisted_text};
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;
use crate::states::{nothing, numbers};

/// Rows by ascending worker id.
fn rows(folded: &Folded, is_current: bool) -> Vec<WorkerRow> {
    let mut all: Vec<_> = folded.cluster.workers().indexed().map(|(ix, state)| (state.id, ix)).collect();
    all.sort_by_key(|(id, _)| (id.id.0, id.dp_rank));
    all.into_iter().filter_map(|(_, ix)| WorkerRow::of(&folded.cluster, ix, folded.now, is_current)).collect()
}

#[test]
fn rows_of_a_demo_are_counted_from_its_state() {
    let folded = Folded::demo(Topology::Aggregated, 90);
    let rows = rows(&folded, true);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let (ix, state) = folded
            .cluster
            .workers()
            .indexed()
            .find(|(_, state)| state.id.to_string() == row.figures.id)
            .unwrap();
        assert_eq!((row.sign, row.sign_title), ("active", "Active: received from it within the last 10 s"));
        assert_eq!(row.age, format::age(folded.now.since(state.last_event_ms.unwrap())));
        let blocks = folded.cluster.blocks(ix).unwrap();
        assert_eq!(numbers(&row.figures.occupancy.to_text())[0], blocks);
        let capacity = folded.cluster.capacity(ix).expect("its engine reports it").value;
        assert_eq!(row.bar(), format::width(blocks as f64 / capacity as f64));
        assert_eq!(row.pick_title(), format!("Worker {}, click to select it", state.id));
        assert_eq!(row.spoken(), format!("worker {}, active", state.id));
        assert_ne!(row.figures.stored, "–");
        let mine = folded.cluster.decisions().newest_first().filter(|entry| entry.decision.worker == ix);
        let (prompts, held) = mine.fold((0, 0), |(prompts, held), entry| {
            (prompts + entry.decision.isl_blocks.unwrap(), held + entry.overlap_blocks().unwrap_or(0))
        });
        assert_eq!(row.figures.hit_rate, format!("{:.0} %", 100.0 * held as f64 / prompts as f64));
    }
    assert_eq!(unlisted_text(&folded.shown(), 3), None);
    let unlisted = unlisted_text(&folded.shown(), 1);
    assert_eq!(unlisted.as_deref(), Some("2 workers that left more than 5 min ago: not listed"));
    assert_eq!(COLUMNS.map(|(_, name, _)| name)[..2], ["Worker", "Cached blocks"]);
}

#[test]
fn without_a_connection_nothing_is_current_and_ages_count_on() {
    let folded = Folded::demo(Topology::Aggregated, 60);
    let later = Folded { now: Millis(folded.now.0 + 30_000), cluster: folded.cluster };
    for row in rows(&later, false) {
        assert_eq!((row.sign, row.sign_title), ("unknown", "Unknown: no connection"));
        assert_eq!((row.figures.stored.as_str(), row.figures.removed.as_str()), ("–", "–"));
        assert!((30..40).contains(&numbers(&row.age)[0]) && row.age.ends_with(" s"), "{}", row.age);
    }
    for row in rows(&later, true) {
        assert_eq!(
            (row.sign, row.sign_title),
            ("quiet", "Quiet: idle or gone, nothing received for more than 10 s")
        );
    }
}

#[test]
fn a_worker_that_left_says_so() {
    let folded = Folded::fault(Fault::KillWorker, 120);
    let left: Vec<_> = rows(&folded, true).into_iter().filter(|row| row.sign == "gone").collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].sign_title, "Left: it left the deployment");
}

#[test]
fn rows_of_a_recording_are_those_counted_from_its_messages() {
    let folded = Folded::recorded("0.9.1-worker-restart");
    // By ascending worker id, counted from the messages by other means.
    let blocks: Vec<u64> =
        rows(&folded, true).iter().map(|row| numbers(&row.figures.occupancy.to_text())[0]).collect();
    assert_eq!(blocks, [1599, 1597, 1599, 1484]);
    assert_eq!(CachedTotal::of(&folded.shown()).value, "6,279");
    let note = capacity_note(&folded.cluster, folded.shown().worker_list()).expect("no card is read");
    assert!(note.starts_with("Capacity unknown for 4 workers: total_kv_blocks of the model card"), "{note}");
}

#[test]
fn unknown_stays_unknown() {
    let folded = Folded::recorded("0.9.1-no-events");
    let rows = rows(&folded, true);
    assert_eq!(rows.iter().map(|row| row.figures.occupancy.to_text()).collect::<Vec<_>>(), ["–", "–", "–"]);
    assert!(rows.iter().all(|row| row.age == "never" && row.bar() == "0.0%"));
    assert_eq!(CachedTotal::of(&folded.shown()).value, "–");
    assert!(nothing().shown().worker_list().next().is_none());
    assert_eq!(empty().head, "No worker known yet");
}

#[test]
fn what_points_at_a_block_size_mismatch_is_a_fact_of_each_worker() {
    let folded = Folded::recorded("1.6.1-mismatch");
    let rows = rows(&folded, true);
    let sum = |fact: &str| {
        let of = rows.iter().flat_map(|row| &row.figures.facts).filter(|(id, _)| *id == fact);
        let all: Vec<u64> = of.map(|(_, text)| numbers(text)[0]).collect();
        (all.len(), all.iter().sum::<u64>())
    };
    // Counted from the messages by other means.
    assert_eq!(sum("fact-empty-stores"), (3, 762));
    assert_eq!(sum("fact-unknown-removals"), (3, 7013));
}
