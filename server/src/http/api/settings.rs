//! What routers run with, in `GET /api/v1/cluster`: each number of a pool with its source, and what each source reports.

use serde::Serialize;

use radixscope_insight::whatif;
use radixscope_model::id::{Millis, PoolIx};
use radixscope_model::record::{Role, RouterNumbers, SettingsSource};
use radixscope_state::cluster::{Cluster, SettingsState, SettingsStep};

/// A number of a pool's router.
#[derive(Serialize)]
pub(super) struct NumberRow {
    name: &'static str,
    value: f64,
    source: SettingsSource,
}

/// What one source reports of one router. Names are `null` where it reports none.
#[derive(Serialize)]
pub(super) struct SettingsRow {
    source: SettingsSource,
    /// The frontend as its metrics are named, the log or the file.
    reporter: String,
    /// Its id at `/router_policy`.
    router: Option<String>,
    model: Option<String>,
    namespace: Option<String>,
    component: Option<String>,
    role: Option<Role>,
    /// When the source no longer listed the router; `null`: it does.
    left_ms: Option<Millis>,
    #[serde(flatten)]
    latest: StepRow,
    /// The settings before, oldest first; of many the latest.
    earlier: Vec<StepRow>,
}

/// Settings from one change to the next.
#[derive(Serialize)]
struct StepRow {
    /// How many times they were changed while the router ran; `null`: not reported.
    revision: Option<u64>,
    /// `null`: the router has a policy without these numbers.
    settings: Option<RouterNumbers>,
    /// The last time that others were reported; `null`: never.
    after_ms: Option<Millis>,
    /// The first time that these were reported.
    by_ms: Millis,
}

impl NumberRow {
    /// The numbers of a pool's router, as far as its formula has them.
    pub(super) fn of_pool(cluster: &Cluster, pool: PoolIx) -> Vec<Self> {
        let all = whatif::deployed_numbers(cluster, pool).into_iter();
        all.map(|of| Self { name: of.number.name, value: of.value, source: of.source }).collect()
    }
}

impl SettingsRow {
    pub(super) fn of(state: &SettingsState) -> Self {
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        Self {
            source: state.source,
            reporter: state.of.reporter.clone(),
            router: named(&state.of.router),
            model: named(&state.of.model),
            namespace: named(&state.of.namespace),
            component: named(&state.of.component),
            role: state.of.role,
            left_ms: state.left_ms,
            latest: StepRow::of(&state.latest),
            earlier: state.earlier.iter().map(StepRow::of).collect(),
        }
    }
}

impl StepRow {
    fn of(step: &SettingsStep) -> Self {
        Self {
            revision: step.revision,
            settings: Some(step.numbers).filter(|numbers| !numbers.is_empty()),
            after_ms: step.after_ms,
            by_ms: step.by_ms,
        }
    }
}
