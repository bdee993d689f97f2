//! Which settings count: by source, by time, by router.

use super::*;
use SettingsSource::{Default as Defaults, Log, ModelCard, PolicyEndpoint, PolicyFile, StartUpLog};
use radixscope_model::id::DecisionId;
use radixscope_model::record::{
    Decision, DecisionSource, Entry, ProcessRole, Record, ReportedSettings, Role, RouterNumbers, RouterRef,
    Scrape, SettingsSource,
};
use radixscope_router::Formula;

const NOW: u64 = 1_800_000_000_000;

struct Fold {
    cluster: Cluster,
    at: u64,
}

impl Fold {
    /// A worker of `dynamo/backend`.
    fn new() -> Self {
        let mut fold = Self { cluster: Cluster::default(), at: NOW };
        fold.fold(Record::new_worker(WorkerIx(0), Worker::new(1, 0), "dynamo", "backend"));
        fold
    }

    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
    }

    fn report(&mut self, source: SettingsSource, of: &RouterRef, numbers: Option<RouterNumbers>) {
        self.report_between(source, of, numbers, (None, self.at));
    }

    fn report_between(
        &mut self,
        source: SettingsSource,
        of: &RouterRef,
        numbers: Option<RouterNumbers>,
        (after, by): (Option<u64>, u64),
    ) {
        let (of, revision) = (of.clone(), None);
        let (after_ms, by_ms) = (after.map(Millis), Millis(by));
        let report = ReportedSettings { source, of, revision, numbers, after_ms, by_ms };
        self.fold(Record::Settings(Box::new(report)));
    }

    /// The scales that are possible at a time.
    fn scales(&self, at: u64) -> Vec<Option<f64>> {
        let possible = self.cluster.numbers_at(PoolIx(0), Millis(at));
        possible.iter().map(|numbers| numbers.prefill_load_scale).collect()
    }
}

fn scale(scale: f64) -> Option<RouterNumbers> {
    Some(RouterNumbers { prefill_load_scale: Some(scale), ..RouterNumbers::default() })
}

fn router(reporter: &str) -> RouterRef {
    RouterRef {
        reporter: reporter.into(),
        namespace: "dynamo".into(),
        component: "backend".into(),
        ..RouterRef::default()
    }
}

#[test]
fn of_several_sources_the_most_exact_counts_number_by_number() {
    let all = [(PolicyEndpoint, 4.0), (Log, 3.0), (PolicyFile, 2.0)];
    // Which sources report, and what follows: the scale and its source.
    for (reported, value, source) in [
        (&[][..], 1.0, Defaults),
        (&[2], 2.0, PolicyFile),
        (&[1], 3.0, Log),
        (&[1, 2], 3.0, Log),
        (&[0], 4.0, PolicyEndpoint),
        (&[0, 2], 4.0, PolicyEndpoint),
        (&[0, 1], 4.0, PolicyEndpoint),
        (&[0, 1, 2], 4.0, PolicyEndpoint),
    ] {
        // In whatever order they come.
        for order in [reported.to_vec(), reported.iter().rev().copied().collect()] {
            let mut fold = Fold::new();
            for at in order {
                let (source, value) = all[at];
                fold.report(source, &router(source.as_str()), scale(value));
            }
            // Of another number only the file knows.
            let file = RouterNumbers { router_temperature: Some(0.5), ..RouterNumbers::default() };
            let file = RouterNumbers { prefill_load_scale: reported.contains(&2).then_some(2.0), ..file };
            fold.report(PolicyFile, &router("policy_file"), Some(file));
            let sourced = fold.cluster.sourced_settings(PoolIx(0), Formula::E);
            let of = |name: &str| {
                let found = sourced.iter().find(|of| of.number.name == name).expect("every number of E");
                (found.value, found.source)
            };
            assert_eq!(of("prefill_load_scale"), (value, source), "{reported:?}");
            assert_eq!(of("router_temperature"), (0.5, PolicyFile), "{reported:?}");
            assert_eq!(of("overlap_score_credit"), (1.0, Defaults));
            let [settings] = fold.cluster.settings_at(PoolIx(0), Formula::E, Millis(NOW))[..] else {
                panic!("one is possible")
            };
            assert_eq!((settings.prefill_load_scale, settings.router_temperature), (value, 0.5));
        }
    }
}

#[test]
fn settings_count_from_their_own_time() {
    let mut fold = Fold::new();
    let of = router("fe");
    fold.report(PolicyEndpoint, &of, scale(1.0));
    fold.report_between(PolicyEndpoint, &of, scale(2.0), (Some(NOW + 5_000), NOW + 10_000));
    fold.report_between(PolicyEndpoint, &of, scale(3.0), (Some(NOW + 20_000), NOW + 25_000));
    for (at, expected) in [
        (NOW - 60_000, &[1.0][..]),
        (NOW + 5_000, &[1.0]),
        (NOW + 5_001, &[2.0, 1.0]),
        (NOW + 9_999, &[2.0, 1.0]),
        (NOW + 10_000, &[2.0]),
        (NOW + 20_000, &[2.0]),
        (NOW + 22_000, &[3.0, 2.0]),
        (NOW + 25_000, &[3.0]),
        (NOW + 900_000, &[3.0]),
    ] {
        let expected: Vec<_> = expected.iter().map(|&scale| Some(scale)).collect();
        assert_eq!(fold.scales(at), expected, "{}", at as i64 - NOW as i64);
    }
}

#[test]
fn routers_that_differ_are_all_possible_and_those_that_left_are_not() {
    let mut fold = Fold::new();
    fold.report(PolicyEndpoint, &router("a"), scale(1.0));
    fold.at += 1_000;
    fold.report(PolicyEndpoint, &router("b"), scale(2.0));
    fold.report(PolicyEndpoint, &router("c"), scale(2.0));
    assert_eq!(fold.scales(fold.at), [Some(2.0), Some(1.0)]);
    assert_eq!(fold.scales(NOW), [Some(1.0)], "the others were not there");
    fold.at += 1_000;
    let left = fold.at;
    fold.report(PolicyEndpoint, &router("a"), None);
    assert_eq!(fold.scales(left), [Some(2.0), Some(1.0)]);
    assert_eq!(fold.scales(left + 1), [Some(2.0)]);
    // What left comes back with another id.
    let back = RouterRef { router: "2".into(), ..router("a") };
    fold.at += 1_000;
    fold.report(PolicyEndpoint, &back, scale(5.0));
    assert_eq!(fold.scales(fold.at), [Some(5.0), Some(2.0)]);
    assert_eq!(fold.cluster.settings().len(), 4);
}

#[test]
fn who_names_another_pool_is_not_meant() {
    let mut fold = Fold::new();
    fold.fold(Record::new_worker(WorkerIx(1), Worker::new(2, 0), "dynamo", "prefill"));
    let of = |component: &str| RouterRef { component: component.into(), ..router(component) };
    fold.report(PolicyEndpoint, &of("prefill"), scale(9.0));
    assert_eq!(fold.scales(NOW), [None]);
    let unnamed = RouterRef { reporter: "log".into(), ..RouterRef::default() };
    fold.report(PolicyEndpoint, &unnamed, scale(3.0));
    assert_eq!(fold.scales(NOW), [Some(3.0)], "it may be meant");
    fold.report(PolicyEndpoint, &of("backend"), scale(2.0));
    assert_eq!(fold.scales(NOW), [Some(2.0)], "by name");
    // Beside a pool that prefills the other one decodes; a file names the role alone.
    let mut fold = Fold::new();
    fold.fold(Record::new_worker(WorkerIx(1), Worker::new(2, 0), "dynamo", "prefill"));
    for (role, value) in [(Role::Prefill, 3.0), (Role::Decode, 4.0), (Role::Aggregated, 5.0)] {
        let of = RouterRef { role: Some(role), ..RouterRef::default() };
        fold.report(PolicyFile, &of, scale(value));
    }
    assert_eq!(fold.scales(NOW), [Some(4.0)]);
}

/// Scale and temperature that each source reports, and those that are possible of the pool.
#[test]
fn what_one_router_runs_with_says_nothing_of_another_one() {
    type Reports = &'static [(SettingsSource, &'static str, &'static str, (f64, Option<f64>))];
    type Expected = &'static [(f64, Option<f64>)];
    let table: [(Reports, Expected); 9] = [
        // One router by two sources.
        (
            &[(Log, "a", "backend", (2.0, None)), (StartUpLog, "a", "backend", (1.0, Some(0.5)))],
            &[(2.0, Some(0.5))],
        ),
        (&[(Log, "a", "backend", (2.0, None)), (StartUpLog, "a", "", (1.0, Some(0.5)))], &[(2.0, Some(0.5))]),
        // Two routers.
        (
            &[(Log, "b", "backend", (2.0, None)), (StartUpLog, "a", "backend", (1.0, Some(0.5)))],
            &[(1.0, Some(0.5)), (2.0, None)],
        ),
        (
            &[(StartUpLog, "a", "backend", (1.0, Some(0.5))), (StartUpLog, "b", "backend", (2.0, None))],
            &[(2.0, None), (1.0, Some(0.5))],
        ),
        (
            &[
                (PolicyEndpoint, "b", "backend", (2.0, Some(0.0))),
                (StartUpLog, "a", "backend", (1.0, Some(0.5))),
            ],
            &[(1.0, Some(0.5)), (2.0, Some(0.0))],
        ),
        // What names no pool may be of another one where a router of this one is named.
        (&[(StartUpLog, "a", "", (1.0, Some(0.5)))], &[(1.0, Some(0.5))]),
        (&[(StartUpLog, "a", "", (1.0, Some(0.5))), (Log, "b", "backend", (2.0, None))], &[(2.0, None)]),
        // A frontend may be scraped under another name than that of its log.
        (
            &[
                (PolicyEndpoint, "b", "backend", (2.0, None)),
                (StartUpLog, "log", "backend", (1.0, Some(0.5))),
            ],
            &[(2.0, Some(0.5))],
        ),
        // Cards and a file are of all routers.
        (
            &[
                (StartUpLog, "a", "backend", (1.0, Some(0.5))),
                (StartUpLog, "b", "backend", (2.0, None)),
                (ModelCard, "card", "backend", (3.0, None)),
                (PolicyFile, "file", "backend", (4.0, Some(0.25))),
            ],
            &[(3.0, Some(0.25)), (3.0, Some(0.5))],
        ),
    ];
    for (reports, expected) in table {
        let mut fold = Fold::new();
        for frontend in ["a", "b"] {
            fold.fold(Record::Scrape(Box::new(Scrape::new(frontend, ProcessRole::Frontend))));
        }
        for &(source, reporter, component, (scale, temperature)) in reports {
            let of = RouterRef { component: component.into(), ..router(reporter) };
            let namespace = if component.is_empty() { "" } else { "dynamo" }.into();
            let of = RouterRef { namespace, ..of };
            let numbers = RouterNumbers {
                prefill_load_scale: Some(scale),
                router_temperature: temperature,
                ..RouterNumbers::default()
            };
            fold.at += 1;
            fold.report(source, &of, Some(numbers));
        }
        let possible = fold.cluster.numbers_at(PoolIx(0), Millis(fold.at));
        let possible: Vec<_> = possible
            .iter()
            .map(|of| (of.prefill_load_scale.expect("reported"), of.router_temperature))
            .collect();
        assert_eq!(possible, expected, "{reports:?}");
    }
}

#[test]
fn what_a_frontend_was_started_with_is_not_that_of_another_pool() {
    let mut fold = Fold::new();
    fold.fold(Record::new_worker(WorkerIx(1), Worker::new(2, 0), "dynamo", "other"));
    let unnamed = RouterRef { reporter: "a".into(), ..RouterRef::default() };
    fold.report(StartUpLog, &unnamed, scale(1.0));
    let other = |fold: &Fold| fold.cluster.numbers_at(PoolIx(1), Millis(fold.at))[0].prefill_load_scale;
    assert_eq!((fold.scales(NOW), other(&fold)), (vec![Some(1.0)], Some(1.0)), "it may serve both");
    fold.report(StartUpLog, &router("a"), scale(1.0));
    assert_eq!((fold.scales(NOW), other(&fold)), (vec![Some(1.0)], None), "its log names workers of one");
}

#[test]
fn a_decision_has_the_settings_of_its_time() {
    let mut fold = Fold::new();
    let numbers = |scale, temperature| {
        let (scale, temperature) = (Some(scale), Some(temperature));
        Some(RouterNumbers {
            prefill_load_scale: scale,
            router_temperature: temperature,
            ..RouterNumbers::default()
        })
    };
    fold.report(PolicyEndpoint, &router("fe"), numbers(1.0, 0.25));
    let window = (Some(NOW + 5_000), NOW + 10_000);
    fold.report_between(PolicyEndpoint, &router("fe"), numbers(2.0, 0.5), window);
    let settings = |at, factor| {
        let mut decision = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::Log);
        decision.decided_ms = Some(Millis(at));
        (decision.formula, decision.prefill_factor) = (Some(Formula::E), factor);
        let settings = fold.cluster.settings_of_decision(&decision)?;
        Some((settings.prefill_load_scale, settings.router_temperature))
    };
    assert_eq!(settings(NOW, Some(1.0)), Some((1.0, 0.25)));
    assert_eq!(settings(NOW + 10_000, Some(2.0)), Some((2.0, 0.5)));
    // In between, the factor that it was computed with tells which.
    assert_eq!(settings(NOW + 7_000, Some(1.0)), Some((1.0, 0.25)));
    assert_eq!(settings(NOW + 7_000, Some(2.0)), Some((2.0, 0.5)));
    assert_eq!(settings(NOW, None), None);
}

#[test]
fn reports_are_bounded_and_survive_a_snapshot() {
    let mut fold = Fold::new();
    for n in 0..=MAX_SETTINGS as u64 {
        fold.at = NOW + n;
        fold.report(PolicyEndpoint, &router(&n.to_string()), scale(1.0));
        if n == 7 {
            fold.report(PolicyEndpoint, &router("7"), None);
        }
    }
    let kept: Vec<&str> = fold.cluster.settings().iter().map(|state| state.of.reporter.as_str()).collect();
    assert_eq!(kept.len(), MAX_SETTINGS);
    assert!(!kept.contains(&"7") && kept.contains(&"0"), "one that left is forgotten first");
    for n in 0..2 * MAX_SETTINGS_CHANGES as u64 {
        fold.at += 1;
        fold.report(PolicyEndpoint, &router("0"), scale(n as f64 + 2.0));
    }
    let state = fold.cluster.settings().iter().find(|state| state.of.reporter == "0").expect("kept");
    assert_eq!(state.earlier.len(), MAX_SETTINGS_CHANGES);
    let digest = fold.cluster.digest();
    let mut reader = SnapshotReader::default();
    let mut restored = None;
    fold.cluster.snapshot(|part| restored = reader.part(&part).expect("a part")).expect("a snapshot");
    let restored = restored.expect("the last part");
    assert_eq!((restored.digest(), restored.settings()), (digest, fold.cluster.settings()));
    // Reported again, nothing changes.
    fold.report(PolicyEndpoint, &router("0"), Some(fold.cluster.settings()[0].latest.numbers));
    assert_ne!(fold.cluster.digest(), digest, "one record more");
    assert_eq!(restored.settings(), fold.cluster.settings());
}
