//! What becomes of a finding's remedies before it is reported: a symptom leaves them to its cause, and of engines only those
//! that run are advised. Knows no rule.

use std::collections::BTreeSet;

use super::{RuleOutcome, View};
use radixscope_model::record::{Engine, Finding, LogSignal, ProcessRole};

/// The outcome with the remedies that apply.
pub(super) fn complete(outcome: RuleOutcome, view: &View<'_>) -> RuleOutcome {
    match outcome {
        RuleOutcome::Found(finding) => RuleOutcome::Found(with_remedies_that_apply(finding, view)),
        other => other,
    }
}

fn with_remedies_that_apply(mut finding: Finding, view: &View<'_>) -> Finding {
    // Two remedies of one fault may contradict each other.
    if !finding.cause.is_empty() {
        finding.fix.clear();
        return finding;
    }
    let engines = engines(view);
    let applies = |engine: Option<Engine>| engine.is_none_or(|engine| engines.contains(&engine));
    // A fault that only another engine has identifies the engine better than its metrics.
    let mut named = finding.fix.iter().filter(|fix| fix.engine.is_some());
    if named.any(|fix| applies(fix.engine)) {
        finding.fix.retain(|fix| applies(fix.engine));
    }
    finding
}

/// The engine that was chosen, else those that workers run, by the names of their metrics, by how they are listened to or by a log that
/// only one of them writes; empty: unknown.
fn engines(view: &View<'_>) -> BTreeSet<Engine> {
    if let Some(chosen) = view.criteria.engine {
        return BTreeSet::from([chosen]);
    }
    let workers = view.processes().filter(|process| process.role == ProcessRole::Worker);
    let by_metrics = workers.filter_map(|process| process.engine);
    let listened_to = view.cluster.engines().iter().filter_map(|feed| feed.engine);
    let known: BTreeSet<Engine> = by_metrics.chain(listened_to).collect();
    if !known.is_empty() {
        return known;
    }
    let is_trtllm = view.cluster.sign(|sign| matches!(sign, LogSignal::Oversize { .. })).is_some();
    is_trtllm.then_some(Engine::TensorRtLlm).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::record::Severity;

    fn finding() -> Finding {
        Finding::new(Severity::Warning, "Slow", "One. Two.")
            .fix_of(Some(Engine::Vllm), "vLLM", "--max-num-seqs", "30")
            .fix_of(Some(Engine::Sglang), "SGLang", "--max-running-requests", "30")
            .fix("Or add a worker", "", "")
    }

    fn texts(stage: &Stage, finding: Finding) -> Vec<String> {
        let finding = stage.view(|view| with_remedies_that_apply(finding, view));
        finding.fix.into_iter().map(|fix| fix.text.into_owned()).collect()
    }

    #[test]
    fn remedies_of_the_engine_that_runs_are_left() {
        let mut stage = Stage::new(1);
        assert_eq!(texts(&stage, finding()).len(), 3, "where none is known, all");
        stage.scrape(&Process::of_worker(0).engine(Engine::Sglang));
        assert_eq!(texts(&stage, finding()), ["SGLang", "Or add a worker"]);
        stage.criteria.engine = Some(Engine::Vllm);
        assert_eq!(texts(&stage, finding()), ["vLLM", "Or add a worker"]);
        stage.criteria.engine = Some(Engine::TensorRtLlm);
        assert_eq!(texts(&stage, finding()).len(), 3, "it has nothing of the kind");
    }

    #[test]
    fn a_symptom_has_no_remedy_of_its_own() {
        assert!(texts(&Stage::new(1), finding().cause("memory_full")).is_empty());
    }
}
