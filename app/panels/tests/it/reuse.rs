//! Where reuse is lost: steps and losses are those counted from the decisions, and a session's requests are told one by one.

use radixscope_export::panel::reuse::{TREND_PARTS, empty};
use radixscope_insight::reuse::Step;
use radixscope_insight::time_range::TimeSpan;
use radixscope_panels::format;
use radixscope_panels::reuse::{
    FIGURES, all_sessions_text, bar, figure, panel, span_text, summed_over, trend,
};
use radixscope_panels::session_turns::TurnRow;
use radixscope_sim::{Config, Topology};

use crate::folded::{Folded, START};
use crate::states::{ZONE, nothing, numbers};

fn whole(folded: &Folded) -> TimeSpan {
    TimeSpan { from: START, until: folded.now }
}

#[test]
fn steps_and_losses_are_counted_from_the_decisions() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let all = panel(&folded.shown(), whole(&folded), None, "", ZONE);
    let known: Vec<_> = folded
        .cluster
        .decisions()
        .newest_first()
        .filter(|entry| entry.reuse.is_some() && entry.decision.isl_tokens.is_some() && !entry.ignores_cache)
        .collect();
    assert_eq!(all.decisions as usize, known.len());
    assert_eq!(
        summed_over(&all),
        format!("Of the prompts of {}", format::plural(known.len() as u64, "decision", "decisions"))
    );
    let prompts: u64 = known.iter().map(|entry| entry.decision.isl_tokens.unwrap()).sum();
    let step = |step: Step| all.steps.iter().find(|line| line.step == step).unwrap();
    assert_eq!(step(Step::Prompt).tokens, format::count(prompts));
    let tokens = |of: fn(&radixscope_model::record::Reuse) -> u32| -> u64 {
        known
            .iter()
            .map(|entry| {
                let size = u64::from(entry.decision.block_size_tokens.unwrap());
                (u64::from(of(entry.reuse.as_ref().unwrap())) * size).min(entry.decision.isl_tokens.unwrap())
            })
            .sum()
    };
    let (seen, held, chosen) = (
        tokens(|reuse| reuse.seen_blocks),
        tokens(|reuse| reuse.held_blocks),
        tokens(|reuse| reuse.chosen_blocks),
    );
    assert_eq!(step(Step::Seen).tokens, format::count(seen));
    assert_eq!(step(Step::Held).tokens, format::count(held));
    assert_eq!(step(Step::Chosen).tokens, format::count(chosen));
    assert_eq!(bar(step(Step::Chosen)), format::width(chosen as f64 / prompts as f64));
    assert_eq!(figure(&all, FIGURES[0].2), format!("{:.0} %", 100.0 * chosen as f64 / prompts as f64));
    assert_eq!(figure(&all, FIGURES[1].2), step(Step::Reused).text);

    // What engines computed though the chosen worker had it is lost too, where they report it.
    let unused = known.iter().map(|entry| {
        let size = u64::from(entry.decision.block_size_tokens.unwrap());
        let chosen = u64::from(entry.reuse.unwrap().chosen_blocks) * size;
        entry.progress.cached_tokens.map_or(0, |cached| chosen.saturating_sub(cached))
    });
    let lost: u64 = all.losses.iter().map(|loss| numbers(&loss.tokens)[0]).sum();
    assert_eq!(lost, prompts - chosen + unused.sum::<u64>(), "each token that was computed has one cause");
    assert!(all.losses.is_sorted_by_key(|loss| std::cmp::Reverse(numbers(&loss.tokens)[0])));
    assert!(all.half.starts_with("Avoidable losses: "), "{}", all.half);

    let bars = trend(&all, ZONE);
    assert!(!bars.is_empty() && bars.len() <= TREND_PARTS);
    for bar in &bars {
        let [(_, seen), (_, held), (_, chosen)] = bar.parts;
        assert!((0.0..=100.0).contains(&seen) && seen >= held && held >= chosen, "one in the other: {bar:?}");
        assert_eq!(bar.parts.map(|(class, _)| class), ["seen", "held", "chosen"]);
        assert_eq!(bar.title.matches(" %").count(), 3, "{}", bar.title);
    }
    assert_eq!(
        span_text(whole(&folded), ZONE),
        format!("{} to {}", ZONE.time_of_day(START), ZONE.time_of_day(folded.now))
    );

    let worker = known[0].decision.worker;
    let one = panel(&folded.shown(), whole(&folded), Some(worker), "", ZONE);
    assert_eq!(one.decisions as usize, known.iter().filter(|entry| entry.decision.worker == worker).count());
}

#[test]
fn a_sessions_requests_are_told_one_by_one() {
    let config =
        Config { topology: Topology::Aggregated, traces: true, session_affinity: true, ..Config::default() };
    let folded = Folded::of(config, 120);
    let all: Vec<_> = folded.cluster.decisions().newest_first().collect();
    let count =
        |session: &str| all.iter().filter(|entry| entry.decision.session.as_deref() == Some(session)).count();
    let session = all
        .iter()
        .filter_map(|entry| entry.decision.session.as_deref())
        .max_by_key(|session| count(session))
        .unwrap();
    let turns = TurnRow::all(&folded.cluster, session, ZONE);
    assert_eq!(turns.len(), count(session));
    assert!(turns.len() > 1);
    for (at, turn) in turns.iter().enumerate() {
        let entry = folded.cluster.decisions().get(turn.id).unwrap();
        assert_eq!(turn.number, (at + 1).to_string());
        assert_eq!(
            (turn.worker, turn.time.clone()),
            (entry.decision.worker, ZONE.time_of_day(entry.decided_ms()))
        );
        assert!(!turn.has_moved, "its turns are bound to one worker");
        assert_eq!(turn.is_slowest, turn.figures.ends_with(", the slowest"));
        assert!(
            ["Computed anew: ", "All full blocks"].iter().any(|why| turn.sentence.contains(why)),
            "{}",
            turn.sentence
        );
    }
    assert!(turns.iter().filter(|turn| turn.is_slowest).count() <= 1);
    let reuse = panel(&folded.shown(), whole(&folded), None, session, ZONE);
    assert!(reuse.decisions as usize <= turns.len() && reuse.decisions > 0);
    assert_eq!(all_sessions_text(session), Some(format!("Session {session}: show all")));
    assert_eq!((all_sessions_text(""), TurnRow::all(&folded.cluster, "", ZONE)), (None, Vec::new()));
}

#[test]
fn without_prompts_nothing_is_summed() {
    let none = nothing();
    let all = panel(&none.shown(), whole(&none), None, "", ZONE);
    assert_eq!((all.decisions, all.losses.len(), trend(&all, ZONE).len()), (0, 0, 0));
    assert_eq!(figure(&all, FIGURES[0].2), "–");
    assert!(!empty(false).head.is_empty());
}
