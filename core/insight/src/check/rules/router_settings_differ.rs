//! Frontends whose routers choose among the same workers run with unequal settings: which worker a request gets depends on the
//! frontend that it reaches.

use super::prelude::*;
use crate::check::missing;
use radixscope_model::id::PoolIx;
use radixscope_model::record::SettingsSource;
use radixscope_state::cluster::{ReportedRouter, SettingsState};

/// A frontend that was not scraped for so long may be gone, and says nothing of the present.
const FRESH_MS: u64 = 30_000;
/// Most settings that are shown.
const SHOWN: usize = 4;
/// Sources that report what one router of a pool runs with and name both, the most exact first.
const SOURCES: [SettingsSource; 3] =
    [SettingsSource::PolicyEndpoint, SettingsSource::Log, SettingsSource::StartUpLog];

pub(in crate::check) const RULE: Rule = Rule {
    // Settings that are changed on one frontend after the other differ for a while.
    hold_ms: 15_000,
    ..Rule::new("router_settings_differ", "Same settings on all routers", evaluate)
};

/// A number of a router, and where it is known from.
struct Number {
    name: &'static str,
    value: f64,
    source: SettingsSource,
}

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools: Vec<PoolIx> = view.cluster.pools_in_use();
    if pools.iter().all(|&pool| present(view, pool).is_empty()) {
        let what = "what their routers run with";
        return RuleOutcome::no_data(missing::of_frontends(view, what, "from 1.7 on"));
    }
    RuleOutcome::of_pools(pools.into_iter().map(|pool| evaluate_pool(view, pool)), "No worker is known.")
}

/// The routers of a pool of which settings are reported now, each with its numbers.
fn present<'v>(view: &View<'v>, pool: PoolIx) -> Vec<(&'v str, Vec<Number>)> {
    // Numbers that the workers' cards have override what frontends were started with.
    let cards = view.cluster.settings_of(pool, SettingsSource::ModelCard);
    let overridden: Vec<&str> = cards
        .filter(|state| state.left_ms.is_none())
        .flat_map(|state| state.latest.numbers.named())
        .filter_map(|(name, value)| value.map(|_| name))
        .collect();
    let routers = view.cluster.routers_of(pool).into_iter();
    let with_numbers = routers.map(|router| (router.reporter, numbers(view, &router, &overridden)));
    with_numbers.filter(|(_, numbers)| !numbers.is_empty()).collect()
}

/// Each number of a router from the most exact source that has it.
fn numbers(view: &View<'_>, router: &ReportedRouter<'_>, overridden: &[&str]) -> Vec<Number> {
    let is_fresh = |frontend: &str| {
        let mut processes = view.cluster.processes().iter();
        processes.any(|process| process.name == frontend && view.now.since(process.last_ms) <= FRESH_MS)
    };
    let is_present = |state: &SettingsState| {
        state.left_ms.is_none()
            && state.of.reporter == router.reporter
            // Of what names no pool it is not certain that it is this router's.
            && !state.of.component.is_empty()
            && (state.source != SettingsSource::PolicyEndpoint || is_fresh(&state.of.reporter))
    };
    let mut numbers: Vec<Number> = Vec::new();
    for source in SOURCES {
        let reports = router.reports.iter().filter(|state| state.source == source && is_present(state));
        for (name, value) in reports.flat_map(|state| state.latest.numbers.named()) {
            let is_overridden = source != SettingsSource::PolicyEndpoint && overridden.contains(&name);
            if let Some(value) = value.filter(|_| !is_overridden)
                && numbers.iter().all(|known| known.name != name)
            {
                numbers.push(Number { name, value, source });
            }
        }
    }
    numbers
}

fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let routers = present(view, pool);
    let Some(((first, own), others)) = routers.split_first() else {
        return RuleOutcome::no_data("No frontend reports what the router of this pool runs with.");
    };
    for (other, theirs) in others {
        let unequal: Vec<[(&str, &Number); 2]> = own
            .iter()
            .filter_map(|of| {
                let same = theirs.iter().find(|other| other.name == of.name)?;
                (same.value != of.value).then_some([(*first, of), (*other, same)])
            })
            .collect();
        if !unequal.is_empty() {
            return found(view, pool, &unequal).into();
        }
    }
    RuleOutcome::Ok
}

fn found(view: &View<'_>, pool: PoolIx, unequal: &[[(&str, &Number); 2]]) -> Finding {
    let name = view.cluster.pool(pool).map_or_else(String::new, |pool| pool.name());
    let mut found = Finding::new(
        Severity::Warning,
        format!("Routers of {name} run with different settings"),
        "Which worker a request gets depends on the frontend that it reaches. Settings changed while a router runs apply to \
         that router alone.",
    );
    for (router, number) in unequal.iter().take(SHOWN).flatten() {
        let label = format!("{} of {router}, {}", number.name, number.source.label());
        found = found.evidence(label, number.value.to_string(), "");
    }
    let workers: Vec<WorkerIx> = view.present_in(pool).collect();
    found.workers(workers).panel(PanelRef::Decisions).fixes("router_settings_differ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::record::{ProcessRole, Record, ReportedSettings, RouterNumbers, RouterRef};

    fn reported(stage: &mut Stage, frontend: &'static str, scale: Option<f64>) {
        by(stage, SettingsSource::PolicyEndpoint, (frontend, "backend"), scale);
    }

    fn by(
        stage: &mut Stage,
        source: SettingsSource,
        (reporter, component): (&str, &str),
        scale: Option<f64>,
    ) {
        let is_read = source == SettingsSource::PolicyEndpoint;
        let of = RouterRef {
            reporter: reporter.to_owned(),
            router: if is_read { format!("id of {reporter}") } else { String::new() },
            namespace: if component.is_empty() { String::new() } else { "dynamo".to_owned() },
            component: component.to_owned(),
            ..RouterRef::default()
        };
        let numbers = scale.map(|scale| RouterNumbers {
            prefill_load_scale: Some(scale),
            router_temperature: Some(0.0),
            ..RouterNumbers::default()
        });
        stage.record(Record::Settings(Box::new(ReportedSettings {
            source,
            of,
            revision: is_read.then_some(0),
            numbers,
            after_ms: None,
            by_ms: Millis(0),
        })));
    }

    fn scrape(stage: &mut Stage, frontends: &[&'static str]) {
        for frontend in frontends {
            stage.scrape(&Process::new(frontend, ProcessRole::Frontend));
        }
    }

    #[test]
    fn unequal_settings_are_shown_with_both_values() {
        let mut stage = Stage::new(1);
        assert!(stage.is_unknown(&RULE));
        scrape(&mut stage, &["a", "b"]);
        assert!(stage.is_unknown(&RULE), "up to 1.6 no frontend reports them");
        reported(&mut stage, "a", Some(1.0));
        assert!(stage.is_ok(&RULE), "it agrees with itself");
        reported(&mut stage, "b", Some(1.0));
        assert!(stage.is_ok(&RULE));
        reported(&mut stage, "b", Some(2.0));
        let found = stage.found(&RULE).unwrap();
        let evidence: Vec<_> = found.evidence.iter().map(|of| format!("{} {}", of.label, of.value)).collect();
        let expected =
            ["prefill_load_scale of a, /router_policy 1", "prefill_load_scale of b, /router_policy 2"];
        assert_eq!(evidence, expected);
        assert!(!found.fix.is_empty());
    }

    #[test]
    fn routers_that_left_and_frontends_that_do_not_respond_are_not_compared() {
        let mut stage = Stage::new(1);
        scrape(&mut stage, &["a", "b"]);
        reported(&mut stage, "a", Some(1.0));
        reported(&mut stage, "b", Some(2.0));
        assert!(stage.found(&RULE).is_some());
        stage.pass(FRESH_MS + 1);
        scrape(&mut stage, &["a"]);
        assert!(stage.is_ok(&RULE), "b was not scraped");
        scrape(&mut stage, &["b"]);
        assert!(stage.found(&RULE).is_some());
        reported(&mut stage, "b", None);
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn whatever_reports_one_router_of_a_pool_is_compared() {
        use SettingsSource::{Log, ModelCard, PolicyEndpoint, PolicyFile, StartUpLog};
        type Reports = &'static [(SettingsSource, &'static str, &'static str, f64)];
        let table: [(Reports, Option<[&str; 2]>); 11] = [
            (&[(StartUpLog, "a", "backend", 1.0)], None),
            (&[(StartUpLog, "a", "backend", 1.0), (StartUpLog, "b", "backend", 1.0)], None),
            (
                &[(StartUpLog, "a", "backend", 1.0), (StartUpLog, "b", "backend", 2.0)],
                Some(["of a, start-up log 1", "of b, start-up log 2"]),
            ),
            (&[(Log, "a", "backend", 1.0), (Log, "b", "backend", 2.0)], Some(["of a, log 1", "of b, log 2"])),
            (
                &[(Log, "a", "backend", 1.0), (StartUpLog, "b", "backend", 2.0)],
                Some(["of a, log 1", "of b, start-up log 2"]),
            ),
            // Both frontends are scraped under the names of their logs.
            (
                &[(StartUpLog, "b", "backend", 2.0), (PolicyEndpoint, "a", "backend", 1.0)],
                Some(["of a, /router_policy 1", "of b, start-up log 2"]),
            ),
            // What was changed since the start is no difference.
            (&[(PolicyEndpoint, "a", "backend", 1.0), (StartUpLog, "a", "backend", 2.0)], None),
            // A log that is not scraped under its name may be that of the frontend that is.
            (&[(PolicyEndpoint, "a", "backend", 1.0), (StartUpLog, "log", "backend", 2.0)], None),
            // Of another pool, and of none.
            (&[(StartUpLog, "a", "backend", 1.0), (StartUpLog, "b", "other", 2.0)], None),
            (&[(StartUpLog, "a", "backend", 1.0), (StartUpLog, "b", "", 2.0)], None),
            // The workers' cards override both.
            (
                &[
                    (StartUpLog, "a", "backend", 1.0),
                    (StartUpLog, "b", "backend", 2.0),
                    (ModelCard, "card", "backend", 3.0),
                    (PolicyFile, "file", "backend", 4.0),
                ],
                None,
            ),
        ];
        for (reports, expected) in table {
            let mut stage = Stage::new(1);
            scrape(&mut stage, &["a", "b"]);
            for &(source, reporter, component, scale) in reports {
                by(&mut stage, source, (reporter, component), Some(scale));
            }
            let Some(expected) = expected else {
                assert!(stage.found(&RULE).is_none(), "{reports:?}");
                continue;
            };
            let found = stage.found(&RULE).unwrap_or_else(|| panic!("{reports:?}"));
            let evidence: Vec<_> =
                found.evidence.iter().map(|of| format!("{} {}", of.label, of.value)).collect();
            assert_eq!(evidence, expected.map(|text| format!("prefill_load_scale {text}")), "{reports:?}");
        }
    }
}
