//! Settings to propose. `fixes.csv` lists those of each rule by engine and version; those of memory are the capacity
//! calculator's. Which of the router's apply follows from the formula that its decisions show.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use csv::StringRecord;

use super::rules::memory_full;
use super::{Finding, View};
use crate::capacity::RemedyKind;
use radixscope_model::record::Engine;
use radixscope_router::{Formula, Role, RouterSettings, policy_file};

/// Prompts are computed in steps no smaller than this, tokens: below it, steps cost more than decode gains.
const LEAST_STEP_TOKENS: u64 = 2_048;
/// The weight of cached blocks is not lowered below this: less ignores what is cached.
const LEAST_WEIGHT: f64 = 0.1;
/// Latest decisions that show which versions of routers run.
const FORMULAS_OF: usize = 1_000;

/// A row of the table.
struct FixRow {
    /// Code of the rule, or what several rules propose; behind a `/` which case.
    rule: String,
    engine: Option<Engine>,
    text: String,
    /// `policy:NAME`: a parameter in the file of `--router-policy-config`.
    setting: String,
    /// A name in braces stands for a value that depends on the case.
    value: String,
}

impl FixRow {
    fn of(record: &StringRecord) -> Self {
        let column = |column| record.get(column).unwrap_or_default().to_owned();
        let engine = Engine::ALL.into_iter().find(|engine| engine.as_str() == column(1));
        let [rule, text, setting, value] = [0, 2, 3, 4].map(column);
        Self { rule, engine, text, setting, value }
    }

    /// The setting as it is copied, before its value.
    fn setting(&self, role: Role) -> Cow<'_, str> {
        match self.setting.strip_prefix("policy:") {
            Some(name) => policy_file::file_up_to(name, role).into(),
            None => self.setting.as_str().into(),
        }
    }

    /// Its value; `None`: it depends on what is not known.
    fn value(&self, values: &[(&str, &str)]) -> Option<String> {
        let name = self.value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        // JSON has braces too.
        let Some(name) = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())) else {
            return Some(self.value.clone());
        };
        values.iter().find(|(known, _)| *known == name).map(|&(_, value)| value.to_owned())
    }
}

static TABLE: LazyLock<Vec<FixRow>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_reader(include_bytes!("fixes.csv").as_slice());
    // Part of the program; a test reads it.
    reader.records().filter_map(Result::ok).map(|record| FixRow::of(&record)).collect()
});

/// Remedies out of tables. What is offered to copy is complete: a setting whose value is not known stands in the text.
pub(super) trait Fixes: Sized {
    /// Adds the rows of a rule.
    #[must_use]
    fn fixes(self, rule: &str) -> Self {
        self.fixes_with(rule, &[])
    }

    /// Adds the rows of a rule, with the values that stand for names in braces.
    #[must_use]
    fn fixes_with(self, rule: &str, values: &[(&str, &str)]) -> Self {
        self.fixes_of_router(rule, values, Role::Aggregated)
    }

    /// The same, where a row is about the router of a pool with this role.
    #[must_use]
    fn fixes_of_router(self, rule: &str, values: &[(&str, &str)], role: Role) -> Self;

    /// Adds the settings of a remedy of memory, engine by engine. `number` stands where the setting takes one that depends
    /// on the case.
    #[must_use]
    fn remedy(self, kind: RemedyKind, number: Option<u64>) -> Self;

    /// Proposes to run more requests at once, where memory has room for them as far as is known.
    #[must_use]
    fn larger_batch(self, view: &View<'_>) -> Self;

    /// Proposes to compute fewer prompt tokens in one step, if its limit is known and not small already.
    #[must_use]
    fn smaller_steps(self, view: &View<'_>) -> Self;

    /// Proposes to let load count for more against overlap, as routers of the versions that run take it; of all versions where
    /// none is known.
    #[must_use]
    fn spread_out(self, view: &View<'_>) -> Self;
}

impl Fixes for Finding {
    fn fixes_of_router(mut self, rule: &str, values: &[(&str, &str)], role: Role) -> Self {
        for row in TABLE.iter().filter(|row| row.rule == rule) {
            self = match row.value(values) {
                Some(value) => self.fix_of(row.engine, row.text.as_str(), row.setting(role), value),
                None => self.fix_of(row.engine, format!("{}: {}", row.text, quoted(&row.setting)), "", ""),
            };
        }
        self
    }

    fn remedy(mut self, kind: RemedyKind, number: Option<u64>) -> Self {
        for known in kind.settings() {
            let (setting, value) = known.text.rsplit_once(' ').unwrap_or((known.text, ""));
            let value = if value == "N" { number.map(|n| n.to_string()) } else { Some(value.to_owned()) };
            let text = format!("{}, {}: {}", kind.label(), known.engine.label(), known.does);
            let engine = Some(known.engine);
            self = match value.filter(|value| !value.is_empty()) {
                Some(value) => self.fix_of(engine, text, setting, value),
                None => self.fix_of(engine, format!("{text} Set by {}", quoted(setting)), "", ""),
            };
        }
        self
    }

    fn larger_batch(self, view: &View<'_>) -> Self {
        let Some(limit) = view.batch_limit() else { return self };
        let wanted = limit.saturating_mul(2);
        let number = memory_full::sequences_that_fit(view).map_or(wanted, |fits| fits.min(wanted));
        // More at once would only fill the memory.
        if number <= limit {
            return self;
        }
        self.fixes_with("any/larger_batch", &[("number", &number.to_string())])
    }

    fn smaller_steps(self, view: &View<'_>) -> Self {
        let half = view.step_tokens().map(|tokens| tokens / 2);
        match half.filter(|&half| half >= LEAST_STEP_TOKENS) {
            Some(half) => self.fixes_with("any/smaller_steps", &[("number", &half.to_string())]),
            None => self,
        }
    }

    fn spread_out(mut self, view: &View<'_>) -> Self {
        let latest = || view.cluster.decisions().newest_first().map(|decided| &decided.decision);
        let formulas: BTreeSet<Formula> =
            latest().take(FORMULAS_OF).filter_map(|decision| decision.formula).collect();
        let weight = latest().find_map(RouterSettings::of_decision).map_or(1.0, |set| set.prefill_factor());
        let half = (weight / 2.0 * 100.0).round() / 100.0;
        let may_be = |of: &[Formula]| formulas.is_empty() || of.iter().any(|f| formulas.contains(f));
        let prefills = |pool| matches!(view.cluster.role(pool), Some((Role::Prefill, _)));
        let role = match view.cluster.pools_in_use().into_iter().any(prefills) {
            true => Role::Prefill,
            false => Role::Aggregated,
        };
        use Formula::{A, B, C, D, E};
        for (rule, applies) in [
            ("router/weight", may_be(&[A]) && half >= LEAST_WEIGHT),
            ("router/credit", may_be(&[B, C, D])),
            ("router/decay", may_be(&[C, D])),
            ("router/requests", may_be(&[D])),
            ("router/temperature", may_be(&[A, B, C, D])),
            ("router/credit/file", may_be(&[E])),
            ("router/decay/file", may_be(&[E])),
            ("router/requests/file", may_be(&[E])),
            ("router/temperature/file", may_be(&[E])),
        ] {
            if applies {
                self = self.fixes_of_router(rule, &[("half", &half.to_string())], role);
            }
        }
        self
    }
}

/// A setting within a sentence.
fn quoted(setting: &str) -> String {
    format!("`{}`", setting.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::id::{DecisionId, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Record, Severity};

    #[test]
    fn every_row_of_the_table_is_read() {
        let reader = csv::Reader::from_reader(include_bytes!("fixes.csv").as_slice());
        assert_eq!(TABLE.len(), reader.into_records().filter(Result::is_ok).count());
        assert!(TABLE.len() > 100, "{}", TABLE.len());
        assert!(TABLE.iter().all(|row| !row.rule.is_empty() && !row.text.is_empty()));
    }

    #[test]
    fn what_may_be_copied_is_complete_whatever_is_known() {
        let rules: std::collections::BTreeSet<&str> = TABLE.iter().map(|row| row.rule.as_str()).collect();
        for rule in rules {
            let known = Finding::new(Severity::Info, "", "").fixes(rule);
            for fix in &known.fix {
                assert!(!radixscope_captures::is_incomplete(fix), "{rule}: {fix:?}");
            }
        }
        for kind in RemedyKind::ALL {
            let all = Finding::new(Severity::Info, "", "").remedy(kind, None);
            assert!(all.fix.iter().all(|fix| !radixscope_captures::is_incomplete(fix)), "{:?}", all.fix);
        }
    }

    #[test]
    fn a_value_that_is_not_known_leaves_the_setting_to_the_text() {
        let fix = |values: &[(&str, &str)]| {
            let finding =
                Finding::new(Severity::Info, "", "").fixes_with("block_size_mismatch/relay", values);
            finding.fix[0].clone()
        };
        let unknown = fix(&[]);
        assert!(unknown.setting.is_empty() && unknown.text.ends_with(": `--block-size`"), "{unknown:?}");
        let known = fix(&[("engine", "64")]);
        assert_eq!(
            (&*known.setting, &*known.value, known.engine),
            ("--block-size", "64", Some(Engine::Vllm))
        );
    }

    /// What is proposed beside decisions with these formulas: the settings, those of the file by the parameter's name.
    fn proposed_beside(formulas: &[Formula]) -> Vec<String> {
        let mut stage = Stage::new(1);
        for (id, &formula) in (1..).zip(formulas) {
            let mut decision = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
            decision.formula = Some(formula);
            stage.record(Record::Decision(Box::new(decision)));
        }
        let found = stage.view(|view| Finding::new(Severity::Info, "", "").spread_out(view));
        let short = |setting: &str| match setting.lines().last() {
            Some(parameter) if setting.contains("worker_selection:") => parameter.trim().to_owned(),
            _ => setting.to_owned(),
        };
        found.fix.iter().map(|fix| short(&fix.setting)).collect()
    }

    #[test]
    fn weights_are_proposed_as_the_versions_that_run_take_them() {
        const CREDIT: &str = "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT";
        const DECAY: &str = "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY";
        const REQUESTS: &str = "DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT";
        const TEMPERATURE: &str = "--router-temperature";
        const FILE: [&str; 4] = [
            "overlap_score_credit:",
            "overlap_score_credit_decay:",
            "decode_active_request_weight:",
            "router_temperature:",
        ];
        let by_weight = ["--kv-overlap-score-weight", TEMPERATURE];
        for (version, expected) in [
            ("0.8.1", &by_weight as &[&str]),
            ("0.9.1", &by_weight),
            ("1.0.2", &by_weight),
            ("1.1.1", &by_weight),
            ("1.2.1", &[CREDIT, TEMPERATURE]),
            ("1.3.1", &[CREDIT, DECAY, TEMPERATURE]),
            ("1.4.2", &[CREDIT, DECAY, REQUESTS, TEMPERATURE]),
            ("1.5.1", &[CREDIT, DECAY, REQUESTS, TEMPERATURE]),
            ("1.6.1", &FILE),
            ("1.7.0.dev20261026", &FILE),
        ] {
            let formula = Formula::of_version(version).unwrap();
            assert_eq!(proposed_beside(&[formula]), expected, "{version}");
        }
        let of_both = proposed_beside(&[Formula::D, Formula::E]);
        assert_eq!(
            of_both,
            [&[CREDIT, DECAY, REQUESTS, TEMPERATURE], FILE.as_slice()].concat(),
            "a mixed fleet"
        );
        assert_eq!(proposed_beside(&[]).len(), 9, "no version is known");
    }

    #[test]
    fn a_larger_batch_is_proposed_as_far_as_memory_reaches() {
        let proposed = |stage: &Stage| {
            let found = stage.view(|view| Finding::new(Severity::Info, "", "").larger_batch(view));
            found.fix.first().map(|fix| fix.value.to_string())
        };
        let mut stage = Stage::new(1);
        assert_eq!(proposed(&stage), None, "the limit is not known");
        stage.scrape(&Process::frontend().batch_limit(64));
        assert_eq!(proposed(&stage).as_deref(), Some("128"));
        stage.used(0, 600, 1_000);
        stage.in_flight(&[64]);
        assert_eq!(proposed(&stage).as_deref(), Some("85"), "0.8 of the memory");
        stage.used(0, 900, 1_000);
        assert_eq!(proposed(&stage), None);
    }
}
