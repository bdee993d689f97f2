//! Settings to propose. `fixes.csv` lists those of each rule by engine and version; those of memory are the capacity
//! calculator's. Which of the router's apply follows from the formula that its decisions show.

use std::sync::LazyLock;

use csv::StringRecord;

use super::{Finding, View};
use crate::capacity::RemedyKind;
use radixscope_router::Formula;

/// A row of the table.
struct Row {
    /// Code of the rule, or what several rules propose; behind a `/` which case.
    rule: String,
    text: String,
    setting: String,
    /// A name in braces stands for a number that depends on the case.
    value: String,
}

impl Row {
    fn of(record: &StringRecord) -> Self {
        let [rule, text, setting, value] =
            [0, 1, 2, 3].map(|column| record.get(column).unwrap_or_default().to_owned());
        Self { rule, text, setting, value }
    }
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut reader = csv::Reader::from_reader(include_bytes!("fixes.csv").as_slice());
    // Part of the program; a test reads it.
    reader.records().filter_map(Result::ok).map(|record| Row::of(&record)).collect()
});

/// Remedies out of tables.
pub(super) trait Fixes: Sized {
    /// Adds the rows of a rule.
    #[must_use]
    fn fixes(self, rule: &str) -> Self {
        self.fixes_with(rule, &[])
    }

    /// Adds the rows of a rule, with the values that stand for names in braces; one that is not known stays empty.
    #[must_use]
    fn fixes_with(self, rule: &str, values: &[(&str, &str)]) -> Self;

    /// Adds the settings of a remedy of memory, engine by engine. `number` stands where the setting takes one that depends
    /// on the case.
    #[must_use]
    fn remedy(self, kind: RemedyKind, number: Option<u64>) -> Self;

    /// Proposes to let load count for more against overlap, in the router's version as far as it is known.
    #[must_use]
    fn spread_out(self, view: &View<'_>) -> Self;
}

impl Fixes for Finding {
    fn fixes_with(mut self, rule: &str, values: &[(&str, &str)]) -> Self {
        for row in TABLE.iter().filter(|row| row.rule == rule) {
            let name = row.value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
            // JSON has braces too.
            let name = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()));
            let value = match name {
                Some(name) => values.iter().find(|(known, _)| *known == name).map_or("", |&(_, value)| value),
                None => &row.value,
            };
            self = self.fix(row.text.as_str(), row.setting.as_str(), value.to_owned());
        }
        self
    }

    fn remedy(mut self, kind: RemedyKind, number: Option<u64>) -> Self {
        for known in kind.settings() {
            let (setting, value) = known.text.rsplit_once(' ').unwrap_or((known.text, ""));
            let number = || number.map(|n| n.to_string()).unwrap_or_default();
            let value = if value == "N" { number() } else { value.to_owned() };
            let text = format!("{}, {}: {}", kind.label(), known.engine.label(), known.does);
            self = self.fix(text, setting, value);
        }
        self
    }

    fn spread_out(mut self, view: &View<'_>) -> Self {
        let formula = view.cluster.decisions().newest_first().find_map(|decided| decided.decision.formula);
        let may_be = |is: fn(Formula) -> bool| formula.is_none_or(is);
        for (rule, applies) in [
            ("router/weight", may_be(|f| f == Formula::A)),
            ("router/credit", may_be(|f| f != Formula::A)),
            ("router/decay", may_be(|f| !matches!(f, Formula::A | Formula::B))),
            ("router/requests", may_be(|f| matches!(f, Formula::D | Formula::E))),
            ("router/temperature", true),
        ] {
            if applies {
                self = self.fixes(rule);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn every_row_of_the_table_is_read() {
        let rows = include_str!("fixes.csv").lines().filter(|line| !line.starts_with(' ')).count() - 1;
        assert_eq!(TABLE.len(), rows);
        assert!(TABLE.iter().all(|row| !row.rule.is_empty() && !row.text.is_empty()));
    }
}
