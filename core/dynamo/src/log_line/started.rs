//! What routers were started with, by two lines: a frontend's whole configuration as JSON (≥ 1.6, DEBUG), and that of the router of a
//! prefill pool as Rust prints it (≥ 1.6, INFO). Seen with 1.6.1 and 1.7.0.dev20261026.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::event::StartedWith;
use radixscope_model::record::{Role, RouterNumbers};

/// Settings that, where they are given, let a file decide the numbers.
const FILES: [&str; 3] = ["router_policy_config", "router_prefill_policy", "router_decode_policy"];

#[derive(Deserialize)]
struct Dump<'a> {
    #[serde(borrow)]
    config: &'a serde_json::value::RawValue,
}

#[derive(Deserialize)]
struct Mode {
    router_mode: Option<String>,
    router_policy_config: Option<IgnoredAny>,
    router_prefill_policy: Option<IgnoredAny>,
    router_decode_policy: Option<IgnoredAny>,
}

/// The configuration of a frontend. `None`: of another program, of another mode, or a file has its numbers.
pub(super) fn dumped(json: &str) -> Option<StartedWith> {
    // Fields may follow.
    let Dump { config } = serde_json::Deserializer::from_str(json).into_iter().next()?.ok()?;
    let mode: Mode = serde_json::from_str(config.get()).ok()?;
    let has_file = [mode.router_policy_config, mode.router_prefill_policy, mode.router_decode_policy];
    if mode.router_mode.as_deref() != Some("kv") || has_file.iter().any(Option::is_some) {
        return None;
    }
    let numbers: RouterNumbers = serde_json::from_str(config.get()).ok()?;
    started(&[Role::Aggregated, Role::Prefill], numbers)
}

/// `Some(KvRouterConfig { overlap_score_credit: 1.0, … })`, somewhere in `text`.
pub(super) fn printed(text: &str) -> Option<StartedWith> {
    let (_, fields) = text.split_once("KvRouterConfig { ")?;
    let fields = || fields.split(", ").filter_map(|field| field.split_once(": "));
    if fields().any(|(name, value)| FILES.contains(&name) && value.starts_with("Some")) {
        return None;
    }
    let known = RouterNumbers::default().named();
    let number = |(name, value): (&str, &str)| {
        let known = known.iter().any(|(of, _)| *of == name);
        let value = value.strip_prefix("Some(").unwrap_or(value).trim_end_matches([')', ' ', '}']);
        known.then(|| Some((name.to_owned(), Value::from(value.parse::<f64>().ok()?)))).flatten()
    };
    let numbers: Map<String, Value> = fields().filter_map(number).collect();
    started(&[Role::Prefill], serde_json::from_value(Value::Object(numbers)).ok()?)
}

fn started(roles: &'static [Role], numbers: RouterNumbers) -> Option<StartedWith> {
    (!numbers.is_empty()).then_some(StartedWith { roles, numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(more: &str) -> String {
        format!(
            r#"{{"config":{{"router_mode":"kv","prefill_load_scale":2.0,"router_temperature":0.5,"shared_cache_multiplier":null{more}}},"dynamo_version":"1.6.1"}}"#
        )
    }

    #[test]
    fn a_configuration_has_the_numbers_of_routers_that_compute_prompts() {
        let started = dumped(&dump("")).unwrap();
        let numbers = RouterNumbers {
            prefill_load_scale: Some(2.0),
            router_temperature: Some(0.5),
            ..RouterNumbers::default()
        };
        assert_eq!(started, StartedWith { roles: &[Role::Aggregated, Role::Prefill], numbers });
        assert_eq!(dumped(&dump(r#","router_policy_config":"/etc/policy.yaml""#)), None);
        assert_eq!(dumped(&dump(r#","router_policy_config":null"#)), Some(started));
        assert_eq!(dumped(&dump("").replace("\"kv\"", "\"round-robin\"")), None);
        assert_eq!(dumped(&(dump("") + " line=98")), Some(started));
        assert_eq!(dumped("{\"config\":7}"), None);
    }

    #[test]
    fn a_printed_configuration_is_that_of_the_prefill_router() {
        let text = "block_size=16 kv_tuning=Some(KvRouterConfig { overlap_score_credit: 1.0, prefill_load_scale: 1.5, \
                    router_policy_config: None, policy_config_cache: OnceLock(<uninit>), shared_cache_multiplier: Some(0.25) })";
        let numbers = RouterNumbers {
            overlap_score_credit: Some(1.0),
            prefill_load_scale: Some(1.5),
            shared_cache_multiplier: Some(0.25),
            ..RouterNumbers::default()
        };
        assert_eq!(printed(text), Some(StartedWith { roles: &[Role::Prefill], numbers }));
        assert_eq!(printed(&text.replace("policy_config: None", "policy_config: Some(\"a.yaml\")")), None);
        assert_eq!(printed("kv_tuning=None"), None);
    }
}
