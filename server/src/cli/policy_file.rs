//! The file of `--policy`: the one that frontends are given as `--router-policy-config`, of which the numbers of Dynamo's own
//! policies are read. What Dynamo refuses is refused here in the same words. Must not know how the numbers are used.
//!
//! Fields as `dynamo.frontend` of 1.6.1 and 1.7.0.dev20261026 names them in its errors.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use serde::de::IgnoredAny;

use radixscope_model::record::{ReportedSettings, Role, RouterNumbers, RouterRef, SettingsSource};
use radixscope_router::numbers::NUMBERS;
use radixscope_router::policy_file::POLICY_TYPE;

use super::Failure;
use crate::time::now;

/// Largest file that is read; Dynamo's own examples have a few kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// Dynamo's name of its own policy without parameters.
const BUILT_IN: &str = "default";

/// What the section of all routers may set.
const ROUTER_SETTINGS: [&str; 20] = [
    "host_cache_hit_weight",
    "disk_cache_hit_weight",
    "use_kv_events",
    "router_replica_sync",
    "router_track_active_blocks",
    "router_track_output_blocks",
    "router_assume_kv_reuse",
    "router_track_prefill_tokens",
    "router_tracking_hash",
    "router_tracking_key_file",
    "router_tracking_key_id",
    "router_prefill_load_model",
    "router_ttl_secs",
    "router_approximate_cache_policy",
    "router_event_threads",
    "use_remote_indexer",
    "serve_indexer",
    "enable_session_prefix_index",
    "shared_cache_type",
    "router_predicted_ttl_secs",
];

/// The settings of a file, if one is given.
pub(super) fn settings(file: Option<&Path>) -> Result<Vec<ReportedSettings>, Failure> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let read = read(file).with_context(|| format!("--policy {}", file.display()));
    let numbers = read.map_err(Failure::Usage)?;
    if numbers.is_empty() {
        tracing::warn!(
            file = %file.display(),
            "this policy file has no weights: Dynamo's defaults are used"
        );
    }
    let reporter = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let by_ms = now();
    let report = |(role, numbers)| ReportedSettings {
        source: SettingsSource::PolicyFile,
        of: RouterRef { reporter: reporter.clone(), role: Some(role), ..RouterRef::default() },
        revision: None,
        numbers: Some(numbers),
        after_ms: None,
        by_ms,
    };
    Ok(numbers.into_iter().map(report).collect())
}

fn read(file: &Path) -> anyhow::Result<Vec<(Role, RouterNumbers)>> {
    let bytes = std::fs::metadata(file)?.len();
    if bytes > MAX_BYTES {
        bail!("the file has {bytes} bytes; the maximum is {MAX_BYTES}");
    }
    parse(&std::fs::read_to_string(file)?)
}

/// The file. Fields without a use here are only known, so that a typing error in any is found.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    router: Option<serde_json::Map<String, serde_json::Value>>,
    #[serde(rename = "default_policy_family")]
    _default_policy_family: Option<IgnoredAny>,
    #[serde(rename = "policy_classes")]
    _policy_classes: Option<IgnoredAny>,
    #[serde(rename = "uncached_isl_buckets")]
    _uncached_isl_buckets: Option<IgnoredAny>,
    #[serde(rename = "models")]
    _models: Option<IgnoredAny>,
    #[serde(rename = "request_classifier")]
    _request_classifier: Option<IgnoredAny>,
    worker_selection: Option<WorkerSelection>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WorkerSelection {
    aggregated: Option<String>,
    prefill: Option<String>,
    decode: Option<String>,
    encode: Option<String>,
    #[serde(default)]
    instances: Vec<Instance>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Instance {
    name: String,
    #[serde(rename = "type")]
    policy: String,
    #[serde(default)]
    parameters: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The numbers for the router of each role, as far as its policy has such.
fn parse(text: &str) -> anyhow::Result<Vec<(Role, RouterNumbers)>> {
    let document: Document = serde_saphyr::from_str(text)?;
    let all = document.router.as_ref().map(router).transpose()?.unwrap_or_default();
    let WorkerSelection { aggregated, prefill, decode, encode, instances } =
        document.worker_selection.unwrap_or_default();
    let named = [
        ("aggregated", Some(Role::Aggregated), aggregated),
        ("prefill", Some(Role::Prefill), prefill),
        ("decode", Some(Role::Decode), decode),
        // Its pools are not told apart from others here.
        ("encode", None, encode),
    ];
    let mut read = Vec::new();
    for (pool, role, name) in named {
        let Some(name) = name.filter(|name| name != BUILT_IN) else {
            read.extend(role.filter(|_| !all.is_empty()).map(|role| (role, all)));
            continue;
        };
        let instance = instances.iter().find(|instance| instance.name == name);
        let instance = instance.with_context(|| {
            format!("worker_selection {pool} {name:?} does not name a configured instance")
        })?;
        if instance.policy != POLICY_TYPE {
            tracing::warn!(policy = %instance.policy, pool, "costs of this policy are not known");
            continue;
        }
        let numbers = numbers(instance).with_context(|| format!("parameters of the instance {name:?}"))?;
        // An instance's own parameter counts before that of all routers.
        read.extend(role.map(|role| (role, numbers.or(all))));
    }
    Ok(read)
}

/// The weights in the section of all routers.
fn router(section: &serde_json::Map<String, serde_json::Value>) -> anyhow::Result<RouterNumbers> {
    if let Some(name) = section.keys().find(|name| !ROUTER_SETTINGS.contains(&name.as_str())) {
        bail!("unknown router setting `{name}`, expected one of {}", ROUTER_SETTINGS.join(", "));
    }
    let weight = |name: &str| section.get(name).map(|value| number(name, value)).transpose();
    Ok(RouterNumbers {
        host_cache_hit_weight: weight("host_cache_hit_weight")?,
        disk_cache_hit_weight: weight("disk_cache_hit_weight")?,
        ..RouterNumbers::default()
    })
}

/// A number as Dynamo takes it; it has no upper limits here.
fn number(name: &str, value: &serde_json::Value) -> anyhow::Result<f64> {
    let given = value.as_f64().with_context(|| format!("{name} is {value}; it must be a number"))?;
    if !given.is_finite() || given < 0.0 {
        bail!("{name} is {given}; it must be finite and non-negative");
    }
    Ok(given)
}

/// The parameters of an instance of Dynamo's own policy.
fn numbers(instance: &Instance) -> anyhow::Result<RouterNumbers> {
    let parameters = instance.parameters.iter().flatten();
    let mut checked = serde_json::Map::new();
    for (name, value) in parameters {
        let known = NUMBERS.iter().find(|number| number.name == name && number.is_parameter());
        known.ok_or_else(|| {
            let all = NUMBERS.iter().filter(|number| number.is_parameter()).map(|number| number.name);
            anyhow!("unknown field `{name}`, expected one of {}", all.collect::<Vec<_>>().join(", "))
        })?;
        checked.insert(name.clone(), number(name, value)?.into());
    }
    Ok(serde_json::from_value(serde_json::Value::Object(checked))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_router::numbers::{OVERLAP_SCORE_CREDIT, PREFILL_LOAD_SCALE};
    use radixscope_router::{Formula, policy_file};

    fn file(parameters: &str) -> String {
        format!(
            "worker_selection:\n  aggregated: weighted\n  instances:\n    - name: weighted\n      type: \
             dynamo-default-cost-fn\n      parameters:\n        {parameters}\n"
        )
    }

    fn error(text: &str) -> String {
        format!("{:#}", parse(text).expect_err("it cannot be used"))
    }

    #[test]
    fn what_is_copied_from_a_finding_is_read() {
        let [text] = &policy_file::to_set(
            &[(PREFILL_LOAD_SCALE, 2.0), (OVERLAP_SCORE_CREDIT, 0.5)],
            Formula::E,
            Role::Prefill,
        )[..] else {
            panic!("one file")
        };
        let numbers = RouterNumbers {
            prefill_load_scale: Some(2.0),
            overlap_score_credit: Some(0.5),
            ..RouterNumbers::default()
        };
        assert_eq!(parse(text).unwrap(), [(Role::Prefill, numbers)]);
    }

    #[test]
    fn every_pool_has_its_own_instance_and_other_policies_have_no_numbers() {
        let text = "policy_classes: [{name: a}]\nworker_selection:\n  prefill: p\n  decode: default\n  aggregated: t\n  \
                    instances:\n    - {name: p, type: dynamo-default-cost-fn, parameters: {router_temperature: 1}}\n    - \
                    {name: t, type: dynamo-two-tier-cost-fn, parameters: {cache_threshold: 0.5}}\n";
        let numbers = RouterNumbers { router_temperature: Some(1.0), ..RouterNumbers::default() };
        assert_eq!(parse(text).unwrap(), [(Role::Prefill, numbers)]);
        assert!(parse("policy_classes: []\n").unwrap().is_empty());
    }

    /// As the settings that 1.7.0.dev20261026 reported after it started with these files.
    #[test]
    fn weights_of_all_routers_count_where_an_instance_has_none() {
        let read = |parameters: &str| {
            let text = format!("router:\n  host_cache_hit_weight: 0.1\n{}", file(parameters));
            parse(&text).unwrap().into_iter().map(|(_, of)| of.host_cache_hit_weight).collect::<Vec<_>>()
        };
        assert_eq!(read("prefill_load_scale: 2"), [Some(0.1); 3], "every role");
        assert_eq!(read("host_cache_hit_weight: 1.5"), [Some(1.5), Some(0.1), Some(0.1)]);
        let built_in = "router: {disk_cache_hit_weight: 0.6, use_kv_events: true}\nworker_selection: {aggregated: default}";
        let read = parse(built_in).unwrap();
        assert!(read.iter().all(|(_, of)| of.disk_cache_hit_weight == Some(0.6)), "{read:?}");
        assert_eq!(read.len(), 3, "every role");
    }

    #[test]
    fn what_dynamo_refuses_is_named() {
        for (text, expected) in [
            (file("prefil_load_scale: 2.0"), "unknown field `prefil_load_scale`, expected one of"),
            (file("overlap_score_weight: 2.0"), "unknown field `overlap_score_weight`"),
            (file("router_temperature: -1"), "router_temperature is -1"),
            (file("router_temperature: warm"), "router_temperature is \"warm\"; it must be a number"),
            (file("router_temperature: .nan"), "router_temperature"),
            ("router: {router_temperature: 1}".to_owned(), "unknown router setting `router_temperature`"),
            ("router: {host_cache_hit_weight: -1}".to_owned(), "host_cache_hit_weight is -1"),
            ("worker_selecshun: {}".to_owned(), "worker_selecshun"),
            ("worker_selection: {agg: weighted}".to_owned(), "agg"),
            ("worker_selection: {aggregated: w}".to_owned(), "\"w\" does not name a configured instance"),
            ("worker_selection: [".to_owned(), "line 1"),
            ("2".to_owned(), ""),
        ] {
            assert!(error(&text).contains(expected), "{}", error(&text));
        }
        assert!(error(&file("router_temperature: -1")).contains("parameters of the instance \"weighted\""));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        let failure = |path: &Path| match settings(Some(path)) {
            Err(Failure::Usage(error)) => format!("{error:#}"),
            _ => panic!("it cannot be used"),
        };
        assert!(failure(&path).contains("policy.yaml"));
        std::fs::write(&path, file("prefil_load_scale: 2.0")).unwrap();
        assert!(failure(&path).contains("policy.yaml"), "{}", failure(&path));
        std::fs::write(&path, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(failure(&path).contains("the maximum is"));
        std::fs::write(&path, file("prefill_load_scale: 2.0")).unwrap();
        let [of] = &settings(Some(&path)).ok().unwrap()[..] else { panic!("one") };
        assert_eq!((of.of.reporter.as_str(), of.of.role), ("policy.yaml", Some(Role::Aggregated)));
        assert!(settings(None).ok().unwrap().is_empty());
    }
}
