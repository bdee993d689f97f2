//! What the panel of changes says of two moments of recorded traffic: every count is that of plain sets, made of the recorded messages by
//! other means than ours.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_captures::{Message, Recording};
use radixscope_insight::changes::{Changes, ComparedState};
use radixscope_model::id::Millis;
use radixscope_panels::changes::{
    COLUMNS, ChangesFigures, Compared, MarkButton, NotCompared, rows, sentences,
};
use radixscope_panels::format::{UNKNOWN, count};
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::{Address, Marks};
use radixscope_sim::{Config, Fault, FaultPlan, Topology};

use crate::folded::{Folded, START};

/// What workers hold, by the messages alone: each block's name, and the place that it has.
#[derive(Clone, Default)]
struct HeldBlocks {
    /// By worker: names with their places; 0: the parent was never seen.
    workers: BTreeMap<u64, BTreeMap<u64, usize>>,
    /// Places by the place above and the hash of the tokens, numbered from 1.
    places: BTreeMap<(usize, u64), usize>,
    decisions: u64,
}

/// By column: At A, stored, evicted, moved in, moved out, retained, at B.
type Counts = [u64; 7];

impl HeldBlocks {
    fn take(&mut self, messages: &[Message]) {
        for message in messages.iter().filter(|message| !message.is_delivery_copy()) {
            if message.subject.ends_with("kv-hit-rate") {
                self.decisions += 1;
            } else if message.subject.ends_with("kv-events") {
                // JetStream carries these as plain JSON.
                self.event(&serde_json::from_slice(&message.payload).expect("JSON"));
            }
        }
    }

    fn event(&mut self, announced: &serde_json::Value) {
        let held = self.workers.entry(announced["worker_id"].as_u64().expect("a worker")).or_default();
        let data = &announced["event"]["data"];
        if let Some(stored) = data.get("stored") {
            let mut above = stored["parent_hash"].as_u64().map_or(Some(0), |hash| held.get(&hash).copied());
            for block in stored["blocks"].as_array().expect("blocks") {
                let hash = |name: &str| block[name].as_u64().expect("a hash");
                let at = above.expect("recorded from the beginning");
                let next = self.places.len() + 1;
                let place = *self.places.entry((at, hash("tokens_hash"))).or_insert(next);
                held.insert(hash("block_hash"), place);
                above = Some(place);
            }
        } else if let Some(removed) = data.get("removed") {
            for hash in removed["block_hashes"].as_array().expect("hashes") {
                held.remove(&hash.as_u64().expect("a hash"));
            }
        } else {
            held.clear();
        }
    }

    fn names(&self, worker: u64) -> BTreeSet<u64> {
        self.workers.get(&worker).map(|held| held.keys().copied().collect()).unwrap_or_default()
    }

    fn holders(&self) -> BTreeMap<usize, BTreeSet<u64>> {
        let mut holders: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (worker, held) in &self.workers {
            held.values().for_each(|place| {
                holders.entry(*place).or_default().insert(*worker);
            });
        }
        holders
    }
}

/// By worker, and in all as worker 0.
fn counts(a: &HeldBlocks, b: &HeldBlocks) -> BTreeMap<u64, Counts> {
    let mut all: BTreeMap<u64, Counts> = BTreeMap::new();
    for worker in a.workers.keys().chain(b.workers.keys()) {
        let (before, after) = (a.names(*worker), b.names(*worker));
        let of = [
            before.len(),
            after.difference(&before).count(),
            before.difference(&after).count(),
            0,
            0,
            before.intersection(&after).count(),
            after.len(),
        ];
        all.insert(*worker, of.map(|n| n as u64));
    }
    let mut sum: Counts = [0; 7];
    all.values().for_each(|of| sum.iter_mut().zip(of).for_each(|(sum, n)| *sum += n));
    let (holders_a, holders_b, none) = (a.holders(), b.holders(), BTreeSet::new());
    let places: BTreeSet<usize> = holders_a.keys().chain(holders_b.keys()).copied().collect();
    for place in places {
        let (before, after) =
            (holders_a.get(&place).unwrap_or(&none), holders_b.get(&place).unwrap_or(&none));
        let lost: Vec<&u64> = before.difference(after).collect();
        let gained: Vec<&u64> = after.difference(before).collect();
        // Distinct blocks that moved.
        if !lost.is_empty() && !gained.is_empty() {
            (sum[3], sum[4]) = (sum[3] + 1, sum[4] + 1);
            gained.into_iter().for_each(|worker| all.get_mut(worker).expect("known")[3] += 1);
            lost.into_iter().for_each(|worker| all.get_mut(worker).expect("known")[4] += 1);
        }
    }
    all.insert(0, sum);
    all
}

/// What the table shows, by worker and in all.
fn shown(changes: &Changes) -> BTreeMap<u64, [String; 7]> {
    let rows = rows(changes, &Compared::default());
    let of = |row: &radixscope_panels::changes::ChangesRow| {
        let worker = row.worker.map_or(0, |(id, _)| id.id.0);
        (worker, std::array::from_fn(|at| row.cells[at][0].clone()))
    };
    rows.iter().map(of).collect()
}

fn state(folded: &Folded, epoch: u64) -> ComparedState<'_> {
    ComparedState { cluster: &folded.cluster, at: folded.now, epoch }
}

#[test]
fn every_count_is_that_of_plain_sets_forth_and_back() {
    let messages: Vec<Message> = Recording::fixture("0.9.1-healthy").messages().collect();
    let half = messages.len() / 2;
    let (a, b) = (Folded::of_messages(&messages[..half]), Folded::of_messages(&messages));
    let mut held = HeldBlocks::default();
    held.take(&messages[..half]);
    let held_a = held.clone();
    held.take(&messages[half..]);
    for (from, to, held_from, held_to) in [(&a, &b, &held_a, &held), (&b, &a, &held, &held_a)] {
        let changes = Changes::between(state(from, 1), state(to, 1), false);
        let expected = counts(held_from, held_to);
        let texts: BTreeMap<u64, [String; 7]> =
            expected.iter().map(|(worker, of)| (*worker, of.map(count))).collect();
        assert_eq!(shown(&changes), texts);
        let all = &expected[&0];
        assert!(all[1] > 1_000 && all[2] > 1_000 && all[3] > 100, "{all:?}: enough changes");
        let figures = ChangesFigures::of(Some(&changes), None);
        assert_eq!([figures.stored, figures.evicted, figures.moved], [all[1], all[2], all[3]].map(count));
        let said = sentences(&changes, &Compared::default(), &[]);
        let decisions = count(held_to.decisions.abs_diff(held_from.decisions));
        let [stored, evicted, moved] = [all[1], all[2], all[3]].map(count);
        let sentence =
            format!("net {stored} blocks stored, {evicted} evicted, {moved} moved, {decisions} decisions.");
        assert!(said[0].starts_with("Between ") && said[0].ends_with(&sentence), "{}: {sentence}", said[0]);
        let is_back = from.now > to.now;
        let swap = "A is later than B: swap them to read forward in time.";
        assert_eq!(said.iter().any(|said| said == swap), is_back, "{said:?}");
    }
}

#[test]
fn two_recordings_are_compared_without_decisions_and_say_which_is_which() {
    let messages: Vec<Message> = Recording::fixture("0.9.1-healthy").messages().collect();
    let a = Folded::of_messages(&messages[..messages.len() / 2]);
    let b = Folded::of_messages(&messages);
    let across = Changes::between(state(&a, 1), state(&b, 2), true);
    let said = sentences(&across, &Compared { is_b_marked: true, ..Compared::default() }, &[]);
    assert!(said[0].contains(" of the second recording: net "), "{said:?}");
    assert!(said[0].contains(", decisions unknown"), "{said:?}");
    let column = COLUMNS.iter().position(|(id, ..)| *id == "decisions").unwrap();
    let table = rows(&across, &Compared::default());
    assert!(table.iter().all(|row| row.cells[column][0] == UNKNOWN), "{table:?}");
    let foreign = Folded::recorded("1.6.1-healthy");
    let changes = Changes::between(state(&a, 1), state(&foreign, 3), true);
    let said = sentences(&changes, &Compared::default(), &[]);
    assert!(said.iter().any(|said| said == "A and B have no worker in common."), "{said:?}");
    let table = rows(&changes, &Compared::default());
    let names: BTreeSet<&str> =
        table.iter().filter(|row| row.worker.is_some()).map(|row| row.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["only in A", "only in B"]));
}

#[test]
fn a_worker_that_left_is_named_and_each_pool_has_its_own_sums() {
    let config = Config {
        topology: Topology::TwoModels,
        fault: Some(FaultPlan { fault: Fault::KillWorker, after_ms: 40_000 }),
        ..Config::default()
    };
    let (a, b) = (Folded::of(config.clone(), 30), Folded::of(config, 90));
    let changes = Changes::between(state(&a, 1), state(&b, 1), false);
    let labels = b.shown().pool_labels();
    let zone = TimeZone::default();
    let said = sentences(&changes, &Compared { zone, ..Compared::default() }, &labels);
    assert_eq!(changes.pools.len(), 2);
    for (said, label) in said.iter().zip(&labels) {
        let begin = format!("Between 00:00:30 and now, 00:01:30 in {}: net ", label.short);
        assert!(said.starts_with(&begin), "{said}, not {begin}");
    }
    let gone: Vec<_> = b
        .cluster
        .workers()
        .indexed()
        .filter(|(_, state)| state.departure.is_some())
        .map(|(ix, _)| radixscope_icicle::palette::label(ix))
        .collect();
    let gone = format!("; {} left.", gone.concat());
    assert_eq!(said.iter().filter(|said| said.ends_with(&gone)).count(), 1, "{said:?}: {gone}");
    let marked = Compared { is_b_marked: true, ..Compared::default() };
    assert!(sentences(&changes, &marked, &labels)[0].starts_with("Between 00:00:30 and 00:01:30 in "));
    // One pool alone, by its name.
    let only = Compared { only: Some(labels[1].name.clone()), ..Compared::default() };
    let table = rows(&changes, &only);
    assert_eq!((table[0].name.as_str(), table[0].worker), (labels[1].name.as_str(), None));
    let of_pool = b.cluster.workers_in(labels[1].pool).count();
    assert_eq!(table.iter().filter(|row| row.worker.is_some()).count(), of_pool);
    for label in &labels {
        let changed = &changes.pools.iter().find(|of| of.name == label.name).unwrap().blocks;
        let figures = ChangesFigures::of(Some(&changes), Some(&label.name));
        assert_eq!([figures.stored, figures.evicted], [changed.stored, changed.evicted].map(count));
    }
}

#[test]
fn blocks_that_are_not_known_are_named_and_requests_stand_before_and_after() {
    let (a, b) = (Folded::demo(Topology::Aggregated, 60), Folded::demo(Topology::Aggregated, 120));
    let changes = Changes::between(state(&a, 1), state(&b, 1), false);
    let table = rows(&changes, &Compared::default());
    let column = |id: &str| COLUMNS.iter().position(|(of, ..)| *of == id).unwrap();
    let pool = &table[0];
    assert_eq!(pool.name, "All workers");
    let hit_rate = &pool.cells[column("hit-rate")];
    let share = |folded: &Folded| {
        let since = Millis(folded.now.0 - 60_000);
        let (mut cached, mut all) = (0_u64, 0_u64);
        for decided in folded.cluster.decisions().newest_first().filter(|of| of.at_ms > since) {
            let decision = &decided.decision;
            if let Some((overlap, isl)) = decision.overlap_blocks.zip(decision.isl_blocks) {
                (cached, all) = (cached + overlap, all + isl);
            }
        }
        format!("{:.0} %", cached as f64 / all as f64 * 100.0)
    };
    assert_eq!(hit_rate[0], format!("{} → {}", share(&a), share(&b)));
    assert!(hit_rate[2].starts_with("Before A: ") && hit_rate[2].contains("\nBefore B: "), "{hit_rate:?}");
    assert!(pool.cells[column("ttft-p95")][0].contains(" → "), "{pool:?}");
    let mut partial = changes.clone();
    partial.pools[0].workers[1].is_partial = true;
    let said = sentences(&partial, &Compared::default(), &[]);
    let doubt = "Blocks of W2 are not all known: more may have been stored and evicted.";
    assert!(said.iter().any(|said| said == doubt), "{said:?}");
    assert!(
        sentences(&changes, &Compared::default(), &[]).iter().all(|said| !said.contains("not all known"))
    );
}

fn marked(marks: Marks) -> Address {
    let mut address = Address::default();
    address.marks = marks;
    address
}

#[test]
fn marks_lead_to_their_moments_and_nothing_marked_says_how_to_begin() {
    let zone = TimeZone::default();
    let button = |side, marks, is_second| {
        let address = marked(marks);
        let MarkButton { text, is_enabled } = MarkButton::of(side, &address, is_second, "Live", zone);
        (text, is_enabled)
    };
    let none = [None; 2];
    assert_eq!(button(0, none, false), ("not marked".to_owned(), false));
    assert_eq!(button(1, none, false), ("Live".to_owned(), true));
    let both = [Some(START), Some(Millis(START.0 + 61_000))];
    assert_eq!(button(0, both, false), ("00:00:00".to_owned(), true));
    assert_eq!(button(1, both, true), ("00:01:01".to_owned(), false), "of a second recording");
    let why = |fault: &str, marks| NotCompared::of(fault, &marked(marks));
    assert_eq!(why("", none), NotCompared::Unmarked);
    assert_eq!(why("", both), NotCompared::Fetching);
    assert_eq!(why("it is gone", both), NotCompared::Fault("it is gone.".to_owned()));
    let figures = ChangesFigures::of(None, None);
    assert_eq!([figures.stored, figures.evicted, figures.moved], [UNKNOWN; 3].map(str::to_owned));
}
