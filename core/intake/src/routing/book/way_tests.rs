//! Looks that a router takes at both pools before it chooses are no choices.

use super::tests::{NOW, choice, key};
use super::*;
use radixscope_model::record::Role;

const PREFILL: PoolIx = PoolIx(1);
const DECODE: PoolIx = PoolIx(2);

/// A line of a choice as the log has it: role, worker and time in milliseconds.
fn line(book: &mut RequestBook, (role, worker, at_ms): (Role, u32, u64)) -> DecisionId {
    let pool = if role == Role::Prefill { PREFILL } else { DECODE };
    let line = CorrelationKey {
        role: Some(role),
        worker: WorkerIx(worker),
        pool,
        request_id: Some("r"),
        overlap_blocks: None,
        ..key(DecisionSource::Log, at_ms)
    };
    book.pass_look(&line);
    let id = book.join(&line, NOW);
    let slots = &mut book.change(id).expect("a part").slots;
    let of_line = choice(worker.into(), None).map(|of| LoggedChoice { time: line.time, ..of });
    slots.choice = slots.choice.or(of_line);
    id
}

/// Worker and cost (the same number) of the choices that stand, by role.
fn standing(lines: &[(Role, u32, u64)]) -> Vec<(Option<Role>, u32, Option<f64>)> {
    let mut book = RequestBook::default();
    let ids: BTreeSet<DecisionId> = lines.iter().map(|&of| line(&mut book, of)).collect();
    let parts = ids.into_iter().filter_map(|id| book.part(id));
    parts.map(|of| (of.role(), of.worker.0, of.slots.choice.and_then(|choice| choice.logit))).collect()
}

#[test]
fn what_was_looked_at_before_a_choice_gives_way_to_it() {
    use Role::{Decode, Prefill};
    let (prefill, decode) = (
        |worker: u32| (Some(Prefill), worker, Some(f64::from(worker))),
        |worker: u32| (Some(Decode), worker, Some(f64::from(worker))),
    );
    let cases = [
        ("plain", vec![(Prefill, 1, 10), (Decode, 3, 12)], vec![prefill(1), decode(3)]),
        (
            "tried again",
            vec![(Prefill, 1, 10), (Decode, 3, 12), (Prefill, 2, 90), (Decode, 4, 92)],
            vec![prefill(1), decode(3)],
        ),
        (
            "looked at decode",
            vec![(Decode, 4, 10), (Prefill, 1, 11), (Decode, 3, 12)],
            vec![decode(3), prefill(1)],
        ),
        (
            "looked at both",
            vec![(Decode, 4, 10), (Prefill, 2, 11), (Prefill, 1, 12), (Decode, 3, 13)],
            vec![decode(3), prefill(1)],
        ),
        ("aggregated", vec![(Decode, 4, 10)], vec![decode(4)]),
    ];
    for (name, lines, expected) in cases {
        assert_eq!(standing(&lines), expected, "{name}");
    }
}

#[test]
fn facts_of_a_way_are_added_up_whichever_line_comes_first() {
    let mut book = RequestBook::default();
    let arrived = RequestWay { arrived: Some(Micros(5)), ..RequestWay::default() };
    let bypassed = RequestWay { is_bypassed: true, ..RequestWay::default() };
    book.add_way((Some("r"), None), bypassed, NOW);
    book.add_way((None, Some("h")), arrived, NOW);
    book.same("r", "h", NOW);
    assert_eq!(book.arrival_of("r"), Some(Micros(5)));
    let id = line(&mut book, (Role::Decode, 3, 10));
    assert_eq!(book.way_of(id), RequestWay { is_bypassed: true, ..arrived });
}
