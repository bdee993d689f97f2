//! `cargo xtask live VERSION --decided`: a real Dynamo whose choices something else than the cost decides, in several configurations on
//! its default event plane, and what Radixscope names as having decided. What is true is known from the requests that were sent
//! and from the frontend's own log.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
};

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::steps::Step;

/// The table's heading.
pub(super) const HEADING: &str = "\
| Dynamo | configuration | requests | cost | session | policy | right | wrong | unknown | costs shown | differing | without costs because of |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|";
/// Sends the requests.
const CLIENT: &str = include_str!("client.py");
/// Blocks of each worker: few, so that they are evicted.
const BLOCKS: &str = "400";
/// Seconds from the start of the client until everything is stopped; it needs some ten.
const SECONDS: u32 = 24;
/// Beyond that a run starts processes and stops them.
const WITHIN_S: u32 = SECONDS + 200;
const ROUTER_DEBUG: &str = "info,dynamo_llm::kv_router=debug,dynamo_kv_router=debug";
/// Costs are logged with three decimals.
const ROUNDING: f64 = 0.000_501;

/// A router with more than the cost formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Configuration {
    HardAffinity,
    SoftAffinity,
    TwoTier,
    KeyedHashes,
    Classes,
    Patched,
}

const CLASSES: &str = "\
default_policy_family: standard
uncached_isl_buckets:
  - {min_tokens: 0, bucket: warm}
  - {min_tokens: 600, bucket: cold}
policy_classes:
  - {name: standard_warm, policy_family: standard, cache_bucket: warm, quantum: 4, prefill_busy_threshold: 800}
  - {name: standard_cold, policy_family: standard, cache_bucket: cold, quantum: 1, prefill_busy_threshold: 100}
  - {name: urgent, quantum: 8, prefill_busy_threshold: 3000}
";
const TWO_TIER: &str = "\
worker_selection:
  aggregated: tiers
  instances:
    - {name: tiers, type: dynamo-two-tier-cost-fn, parameters: {balance_abs_threshold: 4}}
";

impl Configuration {
    /// All that a version has.
    pub(super) fn of(version: &str) -> Vec<Self> {
        let mut all =
            vec![Self::HardAffinity, Self::SoftAffinity, Self::TwoTier, Self::KeyedHashes, Self::Classes];
        if !version.starts_with("1.6") {
            all.push(Self::Patched);
        }
        all
    }

    const fn name(self) -> &'static str {
        match self {
            Self::HardAffinity => "hard-affinity",
            Self::SoftAffinity => "soft-affinity",
            Self::TwoTier => "two-tier",
            Self::KeyedHashes => "keyed-hashes",
            Self::Classes => "policy-classes",
            Self::Patched => "patched",
        }
    }

    /// The frontend's flags; `file` holds what [`Self::file`] gives.
    fn flags(self, file: &Path) -> String {
        let file = file.display();
        match self {
            Self::HardAffinity => "--router-session-affinity-ttl-secs 300".to_owned(),
            Self::SoftAffinity => {
                "--router-session-affinity-ttl-secs 300 --router-session-affinity-mode soft".to_owned()
            }
            Self::TwoTier | Self::Classes => format!("--router-policy-config {file}"),
            Self::KeyedHashes => format!(
                "--router-tracking-hash keyed-xxh3-v1 --router-tracking-key-file {file} --router-tracking-key-id 1"
            ),
            Self::Patched => String::new(),
        }
    }

    /// A file that the frontend reads.
    const fn file(self) -> &'static str {
        match self {
            Self::TwoTier => TWO_TIER,
            Self::Classes => CLASSES,
            // 32 bytes.
            Self::KeyedHashes => "0123456789abcdef0123456789abcdef",
            Self::HardAffinity | Self::SoftAffinity | Self::Patched => "",
        }
    }

    /// The client's options.
    const fn requests(self) -> &'static str {
        match self {
            Self::HardAffinity | Self::SoftAffinity => "--sessions 16",
            Self::TwoTier | Self::KeyedHashes => "",
            Self::Classes => "--classes standard,urgent,- --concurrency 16",
            Self::Patched => "--patch '{\"prefill_load_scale\":3.0}'",
        }
    }

    /// What decided a request.
    fn truth(self, sent: &Value) -> &'static str {
        let is_bound = sent["in_session"] == true && sent["turn"].as_u64() > Some(0);
        match self {
            Self::HardAffinity | Self::SoftAffinity if is_bound => "session_affinity",
            Self::TwoTier => "policy",
            _ => "cost",
        }
    }
}

/// What came of a configuration.
pub(super) struct Outcome {
    /// A row of the table.
    pub(super) row: String,
    /// What is not right, for the reader.
    pub(super) text: String,
    pub(super) wrong: usize,
}

/// Runs one configuration beside `binary` and compares.
///
/// # Errors
/// When the stack does not come up, or a file cannot be read.
pub(super) fn run(
    step: &mut Step<'_>,
    folder: &Path,
    binary: &Path,
    (version, of): (&str, Configuration),
) -> Result<Outcome> {
    let name = format!("{version}-decided-{}", of.name());
    let recording = folder.join("captures").join(&name);
    let (client, file) = (folder.join("client.py"), folder.join(format!("{}.config", of.name())));
    fs::write(&client, CLIENT).context("writing the client")?;
    fs::write(&file, of.file()).context("writing the configuration")?;
    let sent = folder.join(format!("{name}.sent.jsonl"));
    let python = folder.join(format!("venvs/{version}/bin/python"));
    let hook = format!(
        "until curl -fs 127.0.0.1:8321/readyz > /dev/null; do sleep 0.2; done; sleep 2; {} {} {} --out {}",
        python.display(),
        client.display(),
        of.requests(),
        sent.display()
    );
    let mut command = step.workspace.command("timeout");
    command
        .args(["--kill-after", "15", &WITHIN_S.to_string()])
        .arg(folder.join("run_dynamo.sh"))
        .args([version, "default-plane-etcd", &SECONDS.to_string(), &name])
        .env("B", folder)
        .env("BLOCKS", BLOCKS)
        .env("TRAFFIC", "0")
        .env("CAPTURE", "0")
        .env("FE_LOG", ROUTER_DEBUG)
        .env("FE_ARGS", format!("--router-replica-sync {}", of.flags(&file)))
        .env("FEENV_8000", "DYN_REQUEST_TRACE=1 DYN_REQUEST_TRACE_SINKS=nats")
        .env("RX", binary)
        .env("RX_ARGS", "--discovery etcd://127.0.0.1:2379")
        .env("HOOK", hook);
    step.run(command)?;
    compare(&sent, &recording, version, of)
}

fn compare(sent: &Path, recording: &Path, version: &str, of: Configuration) -> Result<Outcome> {
    let response = recording.join("rx/end.decisions.json");
    let response = fs::read_to_string(&response).with_context(|| format!("no {}", response.display()))?;
    let response: Value = serde_json::from_str(&response)?;
    let mut rows: BTreeMap<&str, &Value> = BTreeMap::new();
    for row in response["decisions"].as_array().context("no decisions")? {
        if let Some(id) = row["request_id"].as_str() {
            rows.insert(id, row);
        }
    }
    let costs = logged_costs(&recording.join("frontend.log.gz"))?;
    let (mut shown, mut text) = (BTreeMap::<String, usize>::new(), String::new());
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut requests, mut right, mut wrong, mut unknown, mut with_costs, mut differing) = (0, 0, 0, 0, 0, 0);
    for line in fs::read_to_string(sent).with_context(|| format!("no {}", sent.display()))?.lines() {
        let request: Value = serde_json::from_str(line)?;
        let Some(id) = request["request_id"].as_str() else { continue };
        requests += 1;
        let Some(row) = rows.get(id) else {
            wrong += 1;
            let _ = writeln!(text, "  {id}: no decision");
            continue;
        };
        let (by, truth) = (row["decided_by"].as_str(), of.truth(&request));
        match by {
            None => unknown += 1,
            Some(by) if by == truth => right += 1,
            Some(by) => {
                wrong += 1;
                let _ = writeln!(text, "  {id}: {by}, was {truth}");
            }
        }
        *shown.entry(by.unwrap_or("unknown").to_owned()).or_default() += 1;
        if row["completeness"] == "chosen only" {
            *reasons.entry(row["not_reconstructed"].as_str().unwrap_or("-")).or_default() += 1;
            continue;
        }
        let chosen = row["candidates"].as_array().into_iter().flatten().find(|of| of["selected"] == true);
        if let (Some(cost), Some(&logged)) = (chosen.and_then(|of| of["cost"].as_f64()), costs.get(id)) {
            with_costs += 1;
            if (cost - logged).abs() > ROUNDING && of != Configuration::TwoTier {
                differing += 1;
                let _ = writeln!(text, "  {id}: cost {cost}, logged {logged}");
            }
        }
    }
    if requests == 0 {
        bail!("no request was answered: see {}", recording.display());
    }
    let by = |name: &str| shown.get(name).copied().unwrap_or(0);
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let row = format!(
        "| {version} | {} | {requests} | {} | {} | {} | {right} | {wrong} | {unknown} | {with_costs} | {differing} | {} |",
        of.name(),
        by("cost"),
        by("session_affinity"),
        by("policy"),
        reasons.join(", ")
    );
    Ok(Outcome { row, text, wrong: wrong + differing })
}

/// What the router wrote that the chosen worker cost, by request.
fn logged_costs(path: &Path) -> Result<BTreeMap<String, f64>> {
    let file = File::open(path).with_context(|| format!("no {}", path.display()))?;
    let mut costs = BTreeMap::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line?;
        if !line.contains("Selected worker router_mode") && !line.contains("Selected pinned worker") {
            continue;
        }
        let value = |key: &str| {
            let rest = line.split_once(key)?.1.trim_start_matches(['=', ':', ' ', '"']);
            rest.split([' ', ',', '"']).next()
        };
        if let (Some(id), Some(Ok(cost))) = (value("request_id"), value("logit").map(str::parse)) {
            costs.entry(id.to_owned()).or_insert(cost);
        }
    }
    Ok(costs)
}
