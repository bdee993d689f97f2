//! Frontends whose routers choose among the same workers run with unequal settings: which worker a request gets depends on the
//! frontend that it reaches.

use super::prelude::*;
use crate::changes::changed_numbers;
use crate::check::missing;
use radixscope_model::id::PoolIx;
use radixscope_model::record::SettingsSource;
use radixscope_state::cluster::SettingsState;

/// A frontend that was not scraped for so long may be gone, and says nothing of the present.
const FRESH_MS: u64 = 30_000;
/// Most settings that are shown.
const SHOWN: usize = 4;

pub(in crate::check) const RULE: Rule = Rule {
    // Settings that are changed on one frontend after the other differ for a while.
    hold_ms: 15_000,
    ..Rule::new("router_settings_differ", "Same settings on all routers", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools: Vec<PoolIx> = view.cluster.pools_in_use();
    if pools.iter().all(|&pool| present(view, pool).is_empty()) {
        let what = "what their routers run with";
        return RuleOutcome::no_data(missing::of_frontends(view, what, "from 1.7 on"));
    }
    RuleOutcome::of_pools(pools.into_iter().map(|pool| evaluate_pool(view, pool)), "No worker is known.")
}

/// The routers of a pool that report settings now.
fn present<'v>(view: &View<'v>, pool: PoolIx) -> Vec<&'v SettingsState> {
    let all = view.cluster.settings_of(pool, SettingsSource::PolicyEndpoint);
    let is_fresh = |frontend: &str| {
        let mut processes = view.cluster.processes().iter();
        processes.any(|process| process.name == frontend && view.now.since(process.last_ms) <= FRESH_MS)
    };
    // Of another policy no numbers are reported.
    let is_present = |state: &&SettingsState| {
        state.left_ms.is_none() && is_fresh(&state.of.reporter) && !state.latest.numbers.is_empty()
    };
    all.filter(is_present).collect()
}

fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let routers = present(view, pool);
    let Some((first, others)) = routers.split_first() else {
        return RuleOutcome::no_data("No frontend reports what the router of this pool runs with.");
    };
    match others.iter().find(|other| other.latest.numbers != first.latest.numbers) {
        Some(other) => found(view, pool, [first, other]).into(),
        None => RuleOutcome::Ok,
    }
}

fn found(view: &View<'_>, pool: PoolIx, routers: [&SettingsState; 2]) -> Finding {
    let name = view.cluster.pool(pool).map_or_else(String::new, |pool| pool.name());
    let [a, b] = routers;
    let mut found = Finding::new(
        Severity::Warning,
        format!("Routers of {name} run with different settings"),
        "Which worker a request gets depends on the frontend that it reaches. Settings changed while a router runs apply to \
         that router alone.",
    );
    for change in changed_numbers(&a.latest.numbers, &b.latest.numbers).into_iter().take(SHOWN) {
        for (router, value) in [(a, change.before), (b, change.after)] {
            let label = format!("{} of {}, /router_policy", change.name, router.of.reporter);
            found = found.evidence(label, value.map_or("unknown".to_owned(), |value| value.to_string()), "");
        }
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
        let of = RouterRef {
            reporter: frontend.to_owned(),
            router: format!("id of {frontend}"),
            namespace: "dynamo".to_owned(),
            component: "backend".to_owned(),
            ..RouterRef::default()
        };
        let numbers = scale.map(|scale| RouterNumbers {
            prefill_load_scale: Some(scale),
            router_temperature: Some(0.0),
            ..RouterNumbers::default()
        });
        stage.record(Record::Settings(Box::new(ReportedSettings {
            source: SettingsSource::PolicyEndpoint,
            of,
            revision: Some(0),
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
}
