//! Settings to propose: of engines by remedy, of the router by the version whose formula was received. The remedies of
//! memory are those of the capacity calculator.

use super::{Finding, View};
use crate::capacity::{Engine, RemedyKind};
use radixscope_router::Formula;

/// Prompt tokens of one step: more of them prefill sooner, fewer disturb running requests less.
const STEP_TOKENS: [(Engine, &str); 3] = [
    (Engine::Vllm, "--max-num-batched-tokens"),
    (Engine::Sglang, "--chunked-prefill-size"),
    (Engine::TensorRtLlm, "max_num_tokens"),
];

/// Remedies that are the same for many findings.
pub(super) trait EngineSettings: Sized {
    /// Adds the settings of a remedy, engine by engine. `number` stands where the setting takes one that depends on the
    /// case.
    #[must_use]
    fn remedy(self, kind: RemedyKind, number: Option<u64>) -> Self;

    /// Proposes to raise the batch limit, engine by engine.
    #[must_use]
    fn larger_batch(self, number: Option<u64>) -> Self;

    /// Proposes to make a step smaller, engine by engine.
    #[must_use]
    fn smaller_steps(self) -> Self;

    /// Proposes to let load count for more against overlap, in the router's version as far as it is known.
    #[must_use]
    fn spread_out(self, view: &View<'_>) -> Self;
}

impl EngineSettings for Finding {
    fn remedy(mut self, kind: RemedyKind, number: Option<u64>) -> Self {
        for known in kind.settings() {
            let (setting, value) = known.text.rsplit_once(' ').unwrap_or((known.text, ""));
            let number = || number.map(|n| n.to_string()).unwrap_or_default();
            let value = if value == "N" { number() } else { value.to_owned() };
            self = self.fix(
                format!("{}, {}: {}", kind.label(), known.engine.label(), known.does),
                setting,
                value,
            );
        }
        self
    }

    fn larger_batch(mut self, number: Option<u64>) -> Self {
        for known in RemedyKind::LowerBatch.settings() {
            let setting = known.text.strip_suffix(" N").unwrap_or(known.text);
            let value = number.map(|n| n.to_string()).unwrap_or_default();
            let text = format!("If memory has room, let more requests run at once, {}", known.engine.label());
            self = self.fix(text, setting, value);
        }
        self
    }

    fn smaller_steps(mut self) -> Self {
        for (engine, setting) in STEP_TOKENS {
            let text = format!(
                "Compute fewer prompt tokens in one step, so that answers wait less, {}",
                engine.label()
            );
            self = self.fix(text, setting, "");
        }
        self
    }

    fn spread_out(mut self, view: &View<'_>) -> Self {
        let formula = view.cluster.decisions().newest_first().find_map(|decided| decided.decision.formula);
        if formula.is_none_or(|f| f == Formula::A) {
            let text = "Router of Dynamo 0.8 to 1.1: let cached blocks count for less against load; 1.0 is the default";
            self = self.fix(text, "--kv-overlap-score-weight", "0.5");
        }
        if formula.is_none_or(|f| f != Formula::A) {
            let text = "Router of Dynamo 1.2 and later: let cached blocks count for less against load; 1.0 is the default";
            self = self.fix(text, "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT", "0.5");
        }
        if formula.is_none_or(|f| !matches!(f, Formula::A | Formula::B)) {
            let text = "Router of Dynamo 1.3 and later: let cached blocks count for less where prefill waits; 0.0 is the \
                        default";
            self = self.fix(text, "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY", "0.5");
        }
        if formula.is_none_or(|f| matches!(f, Formula::D | Formula::E)) {
            let text =
                "Router of Dynamo 1.4 and later: let every active request count too; 0.0 is the default";
            self = self.fix(text, "DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT", "1.0");
        }
        let text =
            "Any KV router: choose at random among workers of nearly the same cost; 0.0 is the default";
        self.fix(text, "--router-temperature", "0.3")
    }
}
