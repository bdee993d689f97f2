//! The counterfactual: what the form asks, and what is shown of a replay, a sweep and the model, from decisions of a simulated cluster.

use std::ops::ControlFlow;
use std::sync::Arc;

use radixscope_captures::Simulated;
use radixscope_insight::counterfactual::{
    DecisionRange, Facts, OfflineReplayReport, Sample, Selection, SweepReport, TEMPERATURES, headline,
    resimulate, weights_with,
};
use radixscope_intake::{Intake, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_panels::counterfactual::{
    AboutText, Answer, Assumptions, ChangedTable, ComparisonTable, FieldTexts, Form, HeatMap, Metric,
    RunProgress, Stamp, failure_text, latest_formula, newer_than,
};
use radixscope_panels::format::{count, tenths};
use radixscope_panels::time_zone::TimeZone;
use radixscope_router::{Formula, RouterOverrides};
use radixscope_sim::{Config, Simulation, Topology};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::folded::{Folded, START};

fn go(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn sample(folded: &Folded, span: DecisionRange) -> Sample {
    Sample::of(&folded.cluster, Selection::of(span))
}

fn replay(folded: &Folded, overrides: RouterOverrides) -> OfflineReplayReport {
    sample(folded, DecisionRange::Last(300)).evaluate(overrides)
}

/// The setting that the router runs with: nothing can change.
fn as_deployed() -> RouterOverrides {
    RouterOverrides {
        overlap_score_weight: Some(1.0),
        router_temperature: Some(0.0),
        ..RouterOverrides::default()
    }
}

fn cell<'a>(table: &'a ComparisonTable, id: &str, column: usize) -> &'a str {
    let row = table.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{id} in {table:?}"));
    &row.cells[column]
}

#[test]
fn what_is_typed_is_read_or_named() {
    let form = Form::default();
    let request = form.request().unwrap();
    assert_eq!(request.span, DecisionRange::Last(1_000));
    assert_eq!(request.settings.overlap_score_weight, Some(1.5));
    assert!(!request.with_model);
    let of = |change: fn(&mut Form)| {
        let mut form = Form::default();
        change(&mut form);
        form
    };
    assert_eq!(
        of(|form| (form.amount, form.by_time) = (" 90 ".to_owned(), true)).span(),
        Ok(DecisionRange::Ms(90_000))
    );
    assert_eq!(of(|form| form.amount = "10000".to_owned()).span(), Ok(DecisionRange::Last(10_000)));
    for (typed, by_time, error) in [
        ("10001", false, "\"10001\" decisions: invalid, 1 to 10000 are retained"),
        ("0", false, "\"0\" decisions: invalid, 1 to 10000 are retained"),
        ("soon", true, "\"soon\" seconds: invalid"),
    ] {
        let form = Form { amount: typed.to_owned(), by_time, ..Form::default() };
        assert_eq!(form.span(), Err(error.to_owned()));
        assert_eq!(form.request(), Err(error.to_owned()));
    }
    assert_eq!(
        of(|form| form.weight = "heavy".to_owned()).request(),
        Err("overlap_score_weight \"heavy\" is not a number".to_owned())
    );
    assert!(of(|form| form.temperature = "-1".to_owned()).request().is_err(), "Dynamo would refuse it");
    // Round-robin knows no numbers: what is typed there does not matter.
    let turns = of(|form| (form.round_robin, form.weight) = (true, String::new())).request().unwrap();
    assert_eq!(turns.settings, RouterOverrides::round_robin());
}

#[test]
fn fields_are_called_as_in_the_version_that_runs() {
    let old = Folded::demo(Topology::AggregatedV0_9, 20);
    let formula = latest_formula(&old.shown(), None);
    assert_eq!(formula, Formula::A);
    let texts = FieldTexts::of(formula);
    assert_eq!((texts.weight, texts.has_credit), ("overlap_score_weight", false));
    assert_eq!(texts.credit_title, "Dynamo 0.8 to 1.1 has no overlap score credit");
    assert!(texts.weight_title.ends_with(": factor of the prompt blocks still to compute"));
    let texts = FieldTexts::of(Formula::E);
    assert_eq!((texts.weight, texts.has_credit), ("prefill_load_scale", true));
    assert!(
        texts.credit_title.ends_with(": credit of a prompt block cached on the worker"),
        "{}",
        texts.credit_title
    );
}

#[test]
fn a_replay_is_compared_with_what_happened_figure_by_figure() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 90);
    let shown = folded.shown();
    let same = replay(&folded, as_deployed());
    assert_eq!(same.about.considered, 300);
    let table = ComparisonTable::of(&same, None);
    assert_eq!((table.columns, table.shares.len()), (2, 2));
    assert_eq!(cell(&table, "requests", 0), count(same.about.judged));
    // The same setting takes the same workers, but where several have the lowest cost.
    let ties: u64 = cell(&table, "ties", 1).parse().unwrap();
    assert!(same.tried.expected_changes <= ties as f64, "{} of {ties}", same.tried.expected_changes);
    assert_eq!(cell(&table, "saved", 0), "0");
    // What neither column knows has no row while the model did not run.
    assert!(table.rows.iter().all(|row| row.id != "hits"));
    // Recounted from the decisions: requests by worker, and cached ÷ prompt blocks.
    let mut latest: Vec<_> = shown.decisions().newest_first().take(300).collect();
    let judged = same.about.judged as usize;
    assert_eq!(judged, 300, "the log has all candidates");
    for (worker, share) in &table.shares[0] {
        let chosen = latest.iter().filter(|decided| Some(decided.decision.worker) == *worker).count();
        assert!((share - chosen as f64 / judged as f64).abs() < 1e-9, "{worker:?}: {share}");
    }
    let labels: Vec<_> = table.shares[0].iter().map(|(worker, _)| worker.unwrap()).collect();
    assert!(labels.is_sorted() && labels.len() == 3, "{labels:?}");
    let sum = |of: fn(&DecisionEntry) -> Option<u64>| latest.iter().filter_map(|d| of(d)).sum::<u64>();
    let (cached, prompts) = (sum(|d| d.overlap_blocks()), sum(|d| d.decision.isl_blocks));
    assert_eq!(cell(&table, "overlap", 0), tenths(cached as f64 / prompts as f64));

    let turns = replay(&folded, RouterOverrides::round_robin());
    let table = ComparisonTable::of(&turns, None);
    assert_eq!(cell(&table, "overlap", 1), "–", "only the model follows how caches would have filled");
    let changed = cell(&table, "flips", 1);
    assert!(changed.ends_with(&format!(" of {}", count(turns.tried.decisions))), "{changed}");
    assert!(headline(&turns).contains(&format!("of {} decisions", count(turns.tried.decisions))));
    let list = ChangedTable::of(&turns);
    assert_eq!(list.rows.len(), turns.tried.changed.len());
    assert!(
        !list.rows.is_empty()
            && list.caption.starts_with(&format!("{} decisions, oldest first", list.rows.len()))
    );
    latest.reverse();
    let ids: Vec<_> = latest.iter().map(|decided| decided.decision.id).collect();
    let places: Vec<_> =
        list.rows.iter().map(|row| ids.iter().position(|id| *id == row.decision).unwrap()).collect();
    assert!(places.is_sorted(), "oldest first");
    let row = &list.rows[0];
    let decided = shown.decisions().get(row.decision).unwrap();
    assert_eq!(row.from.0, decided.decision.worker);
    assert_ne!(row.to.0, row.from.0);
    let cost = |worker| decided.decision.candidates.iter().find(|of| of.worker == worker).unwrap().cost;
    let difference = cost(row.to.0) - cost(row.from.0);
    let sign = if difference < 0.0 { "−" } else { "+" };
    let of = |text: &str| text.trim_start_matches(['−', '+']).parse::<f64>().unwrap();
    assert!(
        row.difference.starts_with(sign) && (of(&row.difference) - difference.abs()).abs() < 0.06,
        "{row:?}: {difference}"
    );
    assert_eq!(ChangedTable::of(&same).caption, "No decision would most likely change worker.");

    // When and on what.
    let stamp = Stamp { at_ms: Millis(1_700_000_000_000), pool: None, about: &turns.about };
    let text = stamp.to_text(TimeZone::default());
    assert!(text.starts_with("Computed at 22:13:20 on 300 decisions, "), "{text}");
    assert!(text.ends_with(&format!(", record {}.", count(folded.cluster.seq().0))), "{text}");
    let in_pool = Stamp { pool: Some("dynamo/backend"), ..stamp }.to_text_with_newer(TimeZone::default(), 2);
    assert!(
        in_pool.contains(" in pool dynamo/backend, ") && in_pool.ends_with(". 2 newer decisions since."),
        "{in_pool}"
    );
    let to = turns.about.to_ms.unwrap();
    assert_eq!(newer_than(&shown, to, None), 0);
    let from = turns.about.from_ms.unwrap();
    let after = shown.decisions().newest_first().filter(|decided| decided.decided_ms() > from).count();
    assert_eq!(newer_than(&shown, from, Some(shown.pool)), after);
    let about = AboutText::of(&turns.about);
    assert_eq!(about.hint, None);
    assert_eq!(about.text.contains("in flight."), turns.about.running > 0, "{}", about.text);
}

#[test]
fn the_map_has_a_cell_a_setting_and_is_walked_with_keys() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let sample = sample(&folded, DecisionRange::Last(100));
    let weights = weights_with(sample.latest_weight());
    let report: SweepReport = sample.sweep(&weights, &TEMPERATURES, None, go).expect("it is not ended");
    let grid = report.grid.clone().unwrap();
    let map = HeatMap::of(Arc::new(report.clone())).unwrap();
    let (rows, columns) = (map.weights().len(), map.temperatures().len());
    assert_eq!((rows, columns), (weights.len(), TEMPERATURES.len()));
    assert_eq!(map.name(), format!("All {} settings", rows * columns));
    // The simulator's router runs with weight 1 and temperature 0.
    let present = (weights.iter().position(|&weight| weight == 1.0).unwrap(), 0);
    assert!(map.mark(present).1.starts_with("present"), "{:?}", map.mark(present));
    assert_eq!(map.setting(present), Some((1.0, 0.0)));
    assert_eq!(map.text(present, Metric::Changed), "0.0", "the present setting changes nothing");
    assert!(map.present_text().unwrap().starts_with("Present: "));
    let outcome = grid.outcome(present.0, present.1).unwrap();
    let note = map.note(present).unwrap();
    assert!(
        note.starts_with(
            "overlap_score_weight 1, router_temperature 0: 0 of 100 decisions change worker; KV hit rate "
        ),
        "{note}"
    );
    assert!(note.contains(&format!("(actual {})", tenths(grid.actual.overlap_share.unwrap()))), "{note}");
    assert_eq!(
        map.label(present, Metric::Overlap),
        Some(format!("{:.1}: {note}", outcome.overlap_share.unwrap() * 100.0))
    );
    assert_eq!(map.status_text(present), format!("{note}."));

    let changed = |at: usize| grid.outcomes[at].expected_changes / grid.outcomes[at].decisions as f64;
    let most = (0..grid.outcomes.len()).max_by(|&a, &b| changed(a).total_cmp(&changed(b))).unwrap();
    let most_at = (most / columns, most % columns);
    let shade = |at| map.shade(at, Metric::Changed).unwrap();
    assert!(shade(most_at) > shade(present) && shade(present) == 0);
    assert_eq!(map.legend(Metric::Changed), ["0.0".to_owned(), map.text(most_at, Metric::Changed)]);

    let (last_row, last_column) = (rows - 1, columns - 1);
    let from = (1, 1);
    for (key, to) in [
        ("ArrowUp", (0, 1)),
        ("ArrowDown", (2, 1)),
        ("ArrowLeft", (1, 0)),
        ("ArrowRight", (1, 2)),
        ("Home", (1, 0)),
        ("End", (1, last_column)),
        ("PageUp", (0, 1)),
        ("PageDown", (last_row, 1)),
    ] {
        assert_eq!(map.after(from, key), Some(to), "{key}");
    }
    assert_eq!(map.after((0, 0), "ArrowUp"), Some((0, 0)));
    assert_eq!(map.after((last_row, last_column), "ArrowDown"), Some((last_row, last_column)));
    assert_eq!(map.after(from, "x"), None);
    assert_eq!(Metric::ALL.map(|metric| Metric::named(metric.key())), Metric::ALL);
    assert_eq!(Metric::named("no metric"), Metric::Changed);

    let answer = Answer::of(&report).unwrap();
    assert!(!answer.how_found.is_empty());
    match report.recommendation.as_ref().and_then(|advice| advice.outcome) {
        Some(at) => {
            assert!(answer.is_recommended && answer.head.starts_with('★'));
            assert_eq!(map.begin_at(), (at / columns, at % columns));
            assert!(map.mark(map.begin_at()).0.ends_with('★'));
            let effect = answer.effects.last().unwrap();
            assert_eq!(effect.what, "Decisions that change worker");
            assert_eq!(effect.to, format!("{:.0} of 100", grid.outcomes[at].expected_changes));
        }
        None => {
            assert!(!answer.is_recommended && answer.effects.is_empty() && answer.to_set.is_empty());
            assert_eq!(answer.head, "No recommendation. ");
            assert_eq!(map.begin_at(), present);
        }
    }
}

#[test]
fn without_decisions_that_can_be_judged_it_says_what_is_missing() {
    // A frontend whose log is not read names no candidates, and without its replicas' sync none can be computed.
    let folded = Folded::without_requests(30);
    let report = replay(&folded, as_deployed());
    assert_eq!(report.about.judged, 0);
    let about = AboutText::of(&report.about);
    if report.about.considered > 0 {
        assert!(about.text.starts_with("Left out: "), "{}", about.text);
    }
    assert!(about.hint.is_some_and(|hint| hint.contains("--router-replica-sync")));
    assert!(
        HeatMap::of(Arc::new(SweepReport { about: report.about.clone(), grid: None, recommendation: None }))
            .is_none()
    );
    assert!(Answer::of(&SweepReport { about: report.about, grid: None, recommendation: None }).is_none());
    let silent = Folded::without_events(40);
    assert!(replay(&silent, as_deployed()).about.judged > 0, "costs are logged whatever is cached");
}

#[test]
fn progress_and_failures_are_said_in_whole_sentences() {
    let step = RunProgress { what: "Replaying".to_owned(), step: 1, steps: 1, part: None };
    assert_eq!(step.to_text(), "Replaying");
    assert_eq!(RunProgress { steps: 3, ..step }.to_text(), "1 of 3: Replaying");
    let fetching = RunProgress::fetching(250_000, Some(1_500_000));
    assert_eq!(fetching.to_text(), "2 of 3: Fetching recorded prompts, 250 kB of 1.5 MB");
    assert_eq!(fetching.part, Some((250_000, 1_500_000)));
    assert_eq!(RunProgress::fetching(999, None).what, "Fetching recorded prompts, 0 kB");
    assert_eq!(failure_text("cancelled".to_owned()), "cancelled");
    assert!(
        failure_text("no prompt is known of these".to_owned())
            .contains("known of these. Prompts can be played again once")
    );
}

#[test]
fn the_model_stands_beside_the_replay_with_its_assumptions() {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("simulated", SourceKind::Simulator, START, &mut cluster).unwrap();
    let (mut simulation, mut simulated) =
        (Simulation::new(Config::default(), START).unwrap(), Simulated::default());
    simulation.run_until(Millis(START.0 + 60_000), &mut |message| {
        let received = Received { source, at_ms: message.at_ms, payload: simulated.payload(&message) };
        intake.handle(&received, &mut cluster);
    });
    let span = DecisionRange::Last(60);
    let facts = Facts::of(&cluster, Selection::of(span));
    let arrivals = intake.routing().arrivals();
    let turns = resimulate(arrivals, &facts, span, RouterOverrides::round_robin(), go).unwrap();
    let replayed = Sample::of(&cluster, Selection::of(span)).evaluate(RouterOverrides::round_robin());
    let table = ComparisonTable::of(&replayed, Some(&turns));
    assert_eq!((table.columns, table.shares.len()), (4, 4));
    assert!(
        table.shares[2].iter().all(|(worker, _)| worker.is_none()),
        "the model's workers are not the real ones"
    );
    for row in ["flips", "ties"] {
        assert_eq!([cell(&table, row, 2), cell(&table, row, 3)], ["–", "–"], "the model has no such count");
    }
    match turns.calibration.fits() {
        true => {
            assert_eq!(cell(&table, "hits", 2), tenths(turns.recorded.hit_rate.unwrap()));
            assert_eq!(cell(&table, "saved", 2), "0");
        }
        // Only which setting is better means anything then.
        false => {
            assert_eq!([cell(&table, "requests", 2), cell(&table, "hits", 2)], ["–", "–"]);
            assert_eq!(cell(&table, "ttft", 3), turns.ttft_rank.in_text());
        }
    }
    let assumptions = Assumptions::of(&turns);
    assert_eq!(assumptions.fits, turns.calibration.fits());
    assert!(!assumptions.calibration.is_empty() && !assumptions.assumptions.is_empty());
    assert_eq!(assumptions.replayed, format!("{} recorded arrivals were replayed.", count(turns.arrivals)));
    assert!(
        assumptions.routers.starts_with("Recorded: ")
            && assumptions.routers.contains(" Tried: The router chooses workers round-robin."),
        "{}",
        assumptions.routers
    );
    assert!(
        assumptions.made_of.starts_with("Made of: ")
            && assumptions.made_of.contains("workers 3 (from the recorded decisions)"),
        "{}",
        assumptions.made_of
    );
}
