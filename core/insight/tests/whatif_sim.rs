//! The simulated router's decisions asked again: at its own settings every one comes out as it was taken.

use radixscope_captures::Simulated;
use radixscope_insight::whatif::{CandidateRef, Prompt, WhatIf, WhatIfRequest, WhatIfState, deployed};
use radixscope_intake::{Intake, Received};
use radixscope_model::id::Millis;
use radixscope_model::id::PoolIx;
use radixscope_model::record::{Completeness, SourceKind};
use radixscope_router::RouterSettings;
use radixscope_sim::{Config, Simulation};
use radixscope_state::cluster::Cluster;

const START: Millis = Millis(1_767_225_600_000);
/// Three decimals are written, so that a cost is known to half of the last.
const PRINTED: f64 = 0.000_6;

#[test]
fn at_the_routers_own_settings_every_decision_comes_out_as_it_was_taken() {
    let mut simulation = Simulation::new(Config::default(), START).expect("valid");
    let (mut cluster, mut intake) = (Cluster::default(), Intake::default());
    let source =
        intake.source("simulator", SourceKind::Simulator, START, &mut cluster).expect("the first source");
    let mut simulated = Simulated::default();
    simulation.run_until(Millis(START.0 + 60_000), &mut |m| {
        let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
        intake.handle(&received, &mut cluster);
    });
    let state =
        WhatIfState { cluster: &cluster, active: Some(intake.routing().active()), now_ms: cluster.now_ms() };
    assert_eq!(deployed(&cluster, PoolIx(0)), Some(RouterSettings::default()));
    let mut engine = WhatIf::default();
    let mut asked = 0;
    for decided in cluster.decisions().newest_first() {
        let decision = &decided.decision;
        if decision.completeness == Completeness::ChosenOnly {
            continue;
        }
        let question = WhatIfRequest {
            prompt: Prompt::Recorded(decision.id),
            actual: Some(decision.id),
            options: RouterSettings::of_decision(decision).expect("it says how it was computed"),
            ..WhatIfRequest::default()
        };
        let response = engine.score(state, &question).expect("answered");
        for candidate in response.ranked() {
            let CandidateRef::Worker(worker) = candidate.candidate.worker else {
                panic!("a worker of the cluster")
            };
            let recorded = decision.candidates.iter().find(|c| c.worker == worker).expect("recorded");
            let off = (candidate.terms.cost - recorded.cost).abs();
            assert!(off < PRINTED, "{} and {}", candidate.terms.cost, recorded.cost);
        }
        let versus = response.versus.expect("compared");
        assert!(versus.above_best_blocks.expect("a candidate") < PRINTED, "{versus:?}");
        asked += 1;
    }
    assert!(asked > 50, "{asked}");
}
