//! Many settings tried in turn.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::super::sample::Sample;
use super::outcome::FixedStateOutcome;
use radixscope_router::RouterSettings;

/// Settings tried, what each makes of the decisions, and what to compare them with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Grid {
    /// Values of `overlap_score_weight` (A) or `prefill_load_scale` (B–E).
    pub prefill_factors: Vec<f64>,
    /// Values of `router_temperature`.
    pub temperatures: Vec<f64>,
    /// By factor, then temperature; without lists of changed decisions.
    pub outcomes: Vec<FixedStateOutcome>,
    /// What happened, as recorded.
    pub actual: FixedStateOutcome,
    /// Each worker in its turn.
    pub round_robin: FixedStateOutcome,
    /// What the latest decision was taken with.
    pub recorded: RouterSettings,
}

impl Grid {
    /// The outcome of a factor and a temperature by their places.
    pub fn outcome(&self, factor: usize, temperature: usize) -> Option<&FixedStateOutcome> {
        let places = (factor < self.prefill_factors.len()) && (temperature < self.temperatures.len());
        places.then(|| &self.outcomes[factor * self.temperatures.len() + temperature])
    }
}

impl Sample {
    /// Tries every factor at every temperature, credit and ties as recorded, and round-robin.
    ///
    /// `progress(done, total)` is called after each; if it breaks, or there is no decision, there is no grid.
    pub fn grid(
        &self,
        prefill_factors: &[f64],
        temperatures: &[f64],
        mut progress: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Grid> {
        let recorded = self.recorded()?;
        let total = prefill_factors.len() * temperatures.len();
        let mut outcomes = Vec::with_capacity(total);
        for &prefill_factor in prefill_factors {
            for &temperature in temperatures {
                let mut settings = RouterSettings { router_temperature: temperature, ..recorded };
                settings.set_prefill_factor(prefill_factor);
                outcomes.push(FixedStateOutcome { changed: Vec::new(), ..self.outcome(&settings) });
                if progress(outcomes.len(), total).is_break() {
                    return None;
                }
            }
        }
        Some(Grid {
            prefill_factors: prefill_factors.to_vec(),
            temperatures: temperatures.to_vec(),
            outcomes,
            actual: self.actual(),
            round_robin: FixedStateOutcome {
                changed: Vec::new(),
                ..self.outcome(&RouterSettings::round_robin())
            },
            recorded,
        })
    }
}
