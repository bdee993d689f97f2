//! The simulated router's decisions asked again: at its own settings every one comes out as it was taken.

use radixscope_insight::whatif::{CandidateRef, Prompt, WhatIf, WhatIfRequest, WhatIfState, deployed};
use radixscope_model::id::PoolIx;
use radixscope_model::record::Completeness;
use radixscope_router::RouterSettings;
use radixscope_sim::Config;

use crate::simulated::{Observed, observe};

/// Three decimals are written, so that a cost is known to half of the last.
const PRINTED: f64 = 0.000_6;

#[test]
fn at_the_routers_own_settings_every_decision_comes_out_as_it_was_taken() {
    let Observed { cluster, intake } = observe(60_000, Config::default(), |_| true);
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
