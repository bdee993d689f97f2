//! What may be copied from a finding: complete settings, and no two that contradict each other. Knows no rule.

use std::collections::BTreeMap;

use radixscope_model::record::{Finding, Fix};

/// Options that take no value.
const SWITCHES: [&str; 6] = [
    "--enable-local-indexer",
    "--no-kv-events",
    "--publish-events-and-metrics",
    "--publish-kv-events",
    "--router-replica-sync",
    "--router-reset-states",
];
/// What stands in a text for something that the reader has to fill in.
const PLACEHOLDERS: [&str; 7] = ["HOST", "PORT", "DIR", "URL", "NAMESPACE", "{", "<"];

/// Whether the setting of a remedy cannot be used as it is copied: its value is missing, or is something to fill in.
pub fn is_incomplete(fix: &Fix) -> bool {
    let (setting, value) = (fix.setting.trim(), fix.value.trim());
    if setting.is_empty() {
        return false;
    }
    let is_json = value.starts_with('{') && value.ends_with('}');
    let has_placeholder = PLACEHOLDERS.iter().any(|name| value.contains(name) || setting.contains(name));
    // A value in words is none: `one value`, `the engine's own block size`.
    let is_words = value.contains(' ') && !is_json;
    let is_option = setting.starts_with('-') || setting.ends_with(':') || is_variable(setting);
    let needs_value = !SWITCHES.contains(&setting) && (is_option || is_file_setting(setting));
    (value.is_empty() && needs_value) || (has_placeholder && !is_json) || is_words
}

fn is_variable(setting: &str) -> bool {
    setting.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A key of an engine's file of options: `max_num_tokens`, `kv_cache_config.tokens_per_block`.
fn is_file_setting(setting: &str) -> bool {
    setting.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'.'))
}

/// Settings that findings propose with different values, in words: whoever follows one acts against the other.
pub fn contradictions<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<String> {
    let mut proposed: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for finding in findings {
        for fix in finding.fix.iter().filter(|fix| !fix.setting.trim().is_empty()) {
            proposed.entry(fix.setting.trim()).or_default().push((fix.value.trim(), &finding.code));
        }
    }
    proposed.retain(|_, values| values.iter().any(|(value, _)| *value != values[0].0));
    let text = |(setting, values): (&str, Vec<(&str, &str)>)| {
        let each: Vec<String> = values.iter().map(|(value, code)| format!("{value:?} by {code}")).collect();
        format!("{setting}: {}", each.join(", "))
    };
    proposed.into_iter().map(text).collect()
}
