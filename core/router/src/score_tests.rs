use super::*;
use crate::cost::{Load, Overlap};
use crate::settings::Formula;

fn worker(device: u32, decode_blocks: u64) -> WorkerInput {
    WorkerInput {
        load: Some(Load { active_prefill_tokens: 0, decode_blocks, active_requests: 0 }),
        overlap: Overlap::device(device),
        ..WorkerInput::default()
    }
}

#[test]
fn a_tie_has_no_cost_gap_and_several_choices() {
    let mut scores = Scores::default();
    let options = RouterSettings::new(Formula::E);
    score(&options, &RoutedRequest::new(160, 16), &[worker(2, 10), worker(0, 8), worker(0, 30)], &mut scores);
    assert!(scores.is_tie());
    assert_eq!(scores.cost_gap_blocks(), Some(0.0));
    assert_eq!(scores.choices().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(scores.probabilities(), [0.5, 0.5, 0.0]);
    assert_eq!((scores.draw(0.4), scores.draw(0.6)), (Some(0), Some(1)));
}

#[test]
fn one_candidate_or_none_has_no_cost_gap() {
    let mut scores = Scores::default();
    let options = RouterSettings::new(Formula::A);
    score(&options, &RoutedRequest::new(160, 16), &[worker(2, 10)], &mut scores);
    assert_eq!((scores.cost_gap_blocks(), scores.is_tie(), scores.choice_count()), (None, false, 1));
    score(&options, &RoutedRequest::new(160, 16), &[], &mut scores);
    assert_eq!((scores.len(), scores.cost_gap_blocks(), scores.draw(0.5)), (0, None, None));
}

#[test]
fn scoring_again_allocates_nothing() {
    let workers: Vec<_> = (0..1_000).map(|n| worker(n % 97, u64::from(n) % 41)).collect();
    let mut scores = Scores::default();
    for temperature in [0.0, 0.7] {
        let options = RouterSettings { router_temperature: temperature, ..RouterSettings::new(Formula::E) };
        let request = RoutedRequest::new(160_000, 16);
        score(&options, &request, &workers, &mut scores);
        let info = allocation_counter::measure(|| score(&options, &request, &workers, &mut scores));
        assert_eq!(info.count_total, 0);
    }
}
