//! A figure that stands in two places is the same in both, and no text contradicts another: overview, panels, kiosk and API, with
//! the simulator's faults and in each of its topologies.

use radixscope_model::number_format;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::figures::{number, without_names};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

/// What stands on the page, by name; what is not there is empty.
const SHOWN: &str = r#"(() => {
    const line = e => e?.innerText.replace(/\s+/g, " ").trim() ?? "";
    const find = id => document.querySelector(`[data-testid="${id}"]`);
    const all = id => [...document.querySelectorAll(`[data-testid="${id}"]`)].map(line);
    const tile = (at, id, kiosk) => {
        const e = find(id);
        if (e) return { value: line(e.querySelector("b")), status: line(e.querySelector(".tile-status")), more: line(e.querySelector(".tile-more")), state: e.className };
        const shown = find(kiosk);
        return { value: line(shown), status: line(shown?.nextElementSibling), more: line(shown?.nextElementSibling), state: shown?.parentElement.className ?? "" };
    };
    const worst = find("notice-findings");
    return {
        tiles: [["summary-ttft", "kiosk-ttft"], ["summary-itl", "kiosk-itl"], ["summary-hit-rate", "kiosk-hit-rate"], ["summary-in-flight", "kiosk-in-flight"]]
            .map(([id, kiosk], at) => tile(at, id, kiosk)),
        worst: { level: worst?.className ?? "", text: line(worst?.querySelector(".worst-text")), more: line(worst?.querySelector(".worst-more")), link: line(find("show-findings")) },
        badge: find("nav-findings") ? find("nav-findings").dataset.found ?? "0" : "",
        inFlight: all("in-flight"), queued: all("queued"), spread: all("spread-now"),
        latency: ["ttft-p95", "itl-p95"].map(id => line(find(id)?.querySelector("b"))),
        loads: ["count-in-flight-routing", "count-router-queue"].map(id => line(find(id)?.querySelector("td"))),
        resident: line(find("resident")), nodes: line(find("nodes")),
        cards: [...document.querySelectorAll("[data-testid=finding-list] > [data-testid=finding]")].map(e => e.dataset.code),
        counts: ["findings-critical", "findings-warning", "findings-info"].map(id => line(find(id))),
        none: line(find("findings-none")),
        rules: [...document.querySelectorAll("[data-testid=rule]")].map(e => e.dataset.status),
        worst_finding: line(find("kiosk-worst")),
        good: [...document.querySelectorAll("main, .summary")].some(e => /✓ No findings/.test(e.innerText.replace(/\s+/g, " "))),
        doubled: /\d \+ \d/.test(all("in-flight").join()),
    };
})()"#;

/// A view: its name, its address, and whether it has come.
const VIEWS: [(&str, &str, &str); 5] = [
    ("overview", "", "[data-testid=summary-in-flight] b"),
    ("findings", "view=findings", "[data-testid=checked-sums]"),
    ("latency", "view=latency", "[data-testid=counts] td"),
    ("workers", "view=workers", "[data-testid=resident]"),
    ("kiosk", "kiosk", "[data-testid=kiosk-in-flight]"),
];

/// What the API says of the same, in the words of the page.
struct ApiFigures {
    p95: [Option<String>; 2],
    in_flight: Vec<u64>,
    resident: Option<u64>,
    findings: Vec<Value>,
    statuses: Vec<String>,
}

impl ApiFigures {
    async fn by(server: &Radixscope) -> Self {
        let cluster = server.cluster().await;
        let (latency, checks) = (server.json("/api/v1/latency").await, server.json("/api/v1/findings").await);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let workers = list(&cluster["workers"]);
        let sizes: Vec<Value> =
            list(&cluster["pools"]).iter().map(|p| p["block_size_tokens"].clone()).collect();
        let is_one_size = sizes.windows(2).all(|pair| pair[0] == pair[1]);
        Self {
            p95: ["ttft", "itl"].map(|name| range_text(&latency[name]["figure"]["p95"])),
            in_flight: workers.iter().filter_map(|worker| worker["in_flight"].as_u64()).collect(),
            resident: is_one_size.then(|| number(&cluster["tree"], "resident")),
            findings: list(&checks["findings"]),
            statuses: list(&checks["checked"])
                .iter()
                .filter_map(|rule| rule["status"].as_str().map(str::to_owned))
                .collect(),
        }
    }

    fn count(&self, severities: &[&str]) -> usize {
        let is_meant =
            |finding: &&Value| severities.contains(&finding["severity"].as_str().unwrap_or_default());
        self.findings.iter().filter(is_meant).count()
    }

    /// `24 of 35 checks ran`.
    fn coverage(&self) -> String {
        let (all, without) =
            (self.statuses.len(), self.statuses.iter().filter(|status| *status == "no_data").count());
        if without == 0 {
            format!("all {all} checks ran")
        } else {
            format!("{} of {all} checks ran", all - without)
        }
    }
}

/// A time as the page writes it: `612 ms`, `500 ms–1 s`.
fn range_text(range: &Value) -> Option<String> {
    let text = |bound: &Value| bound.as_f64().map(|seconds| number_format::duration(seconds * 1_000.0));
    let (low, high) = text(&range["low"]).zip(text(&range["high"]))?;
    Some(if low == high { low } else { format!("{low}–{high}") })
}

/// The numbers of a text, in order: `1,234` is one.
fn numbers(text: &str) -> Vec<u64> {
    let text = text.replace(',', "");
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).expect("texts")
}

/// Two places of one figure; a place where it does not stand is empty and says nothing.
fn same(what: &str, one: &str, other: &str) -> Result<(), String> {
    wait::expect(one.is_empty() || other.is_empty() || one == other, || format!("{what}: {one} and {other}"))
}

/// Compares everything that stands on one view, with itself and with what the API says.
fn compare(shown: &Value, expected: &ApiFigures) -> Result<(), String> {
    let tile = |at: usize, part: &str| shown["tiles"][at][part].as_str().unwrap_or_default().to_owned();
    let text = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();

    for (at, p95) in expected.p95.iter().enumerate() {
        let name = ["TTFT p95", "ITL p95"][at];
        let p95 = p95.clone().unwrap_or_default();
        same(name, &tile(at, "value"), &p95)?;
        same(name, &texts(&shown["latency"])[at], &p95)?;
    }

    let all = |key: &str| {
        texts(&shown[key]).iter().map(|text| numbers(text).first().copied()).collect::<Option<Vec<u64>>>()
    };
    let (sum, most) = (expected.in_flight.iter().sum::<u64>(), expected.in_flight.iter().max());
    let tiled = numbers(&tile(3, "value"));
    if let (Some(most), [in_flight]) = (most, &tiled[..]) {
        wait::expect(*in_flight == sum, || format!("in flight: the tile {in_flight}, the API {sum}"))?;
        let named = numbers(&tile(3, "status"));
        wait::expect(named.first() == Some(most), || format!("most in flight: {named:?}, the API {most}"))?;
    }
    for place in ["inFlight", "spread"] {
        let Some(each) = all(place).filter(|each| !each.is_empty()) else { continue };
        wait::expect(each.iter().sum::<u64>() == sum, || {
            format!("in flight: {place} {each:?}, the API {sum}")
        })?;
    }
    let loads = texts(&shown["loads"]);
    if let Some(&routed) = numbers(&loads[0]).first() {
        wait::expect(routed == sum, || format!("in flight, tracked: {routed}, the API {sum}"))?;
    }
    let (each, queued) = (all("inFlight").unwrap_or_default(), texts(&shown["queued"]));
    let queued: Vec<u64> = queued.iter().map(|text| numbers(text).first().copied().unwrap_or(0)).collect();
    wait::expect(each.iter().zip(&queued).all(|(all, part)| part <= all), || {
        format!("queued {queued:?} is part of in flight {each:?}")
    })?;
    wait::expect(shown["doubled"] == json!(false), || "in flight + queued, which is part of it".to_owned())?;
    let more = tile(3, "more");
    if let Some(on_workers) = more.strip_suffix(" queued on workers").and_then(|n| numbers(n).last().copied())
    {
        let by_table: u64 = queued.iter().sum();
        wait::expect(queued.is_empty() || on_workers == by_table, || {
            format!("queued: {more}, the table {by_table}")
        })?;
    }

    // Without a KV event nothing is known of any cache; the API counts what is in its trees.
    let is_unknown = text("resident") == number_format::UNKNOWN && expected.resident == Some(0);
    if let Some(resident) = expected.resident.filter(|_| !is_unknown) {
        same("cached blocks", &text("resident"), &number_format::count(resident))?;
    }
    compare_findings(shown, expected)
}

fn compare_findings(shown: &Value, expected: &ApiFigures) -> Result<(), String> {
    let text = |key: &str| shown[key].as_str().unwrap_or_default().to_owned();
    let worst = |key: &str| shown["worst"][key].as_str().unwrap_or_default().to_owned();
    let bad = expected.count(&["critical", "warning"]);
    same("bad findings", &text("badge"), &bad.to_string())?;
    let counts = texts(&shown["counts"]);
    for (shown, severity) in counts.iter().zip(["critical", "warning", "info"]) {
        same(severity, shown, &expected.count(&[severity]).to_string())?;
    }
    let codes: Vec<&str> = expected.findings.iter().filter_map(|finding| finding["code"].as_str()).collect();
    let cards = texts(&shown["cards"]);
    wait::expect(counts[0].is_empty() || cards == codes, || format!("findings: {cards:?} and {codes:?}"))?;
    let statuses = texts(&shown["rules"]);
    wait::expect(statuses.is_empty() || statuses.len() == expected.statuses.len(), || {
        format!("{} rules", statuses.len())
    })?;

    let states: Vec<String> =
        (0..2).map(|at| shown["tiles"][at]["state"].as_str().unwrap_or_default().to_owned()).collect();
    let is_above = states.iter().any(|state| state.contains("above"));
    let (coverage, is_whole) =
        (expected.coverage(), !expected.statuses.iter().any(|status| status == "no_data"));
    let title = expected.findings.first().and_then(|finding| finding["title"].as_str()).map(without_names);
    match &title {
        Some(title) => {
            let line = without_names(&worst("text"));
            wait::expect(line.is_empty() || line.contains(title), || format!("{line}: {title}"))?;
            wait::expect(text("none").is_empty() && !shown["good"].as_bool().unwrap_or_default(), || {
                format!("no finding beside {title}")
            })?;
        }
        None => {
            let line = [worst("text"), worst("more"), text("none")].concat();
            wait::expect(line.is_empty() || line.contains(&coverage), || format!("{line}: {coverage}"))?;
            if !worst("text").is_empty() && is_above {
                wait::expect(worst("text").contains("above target for"), || {
                    format!("{} under a figure above its target", worst("text"))
                })?;
            }
        }
    }
    let is_good = worst("level").contains("good") || shown["good"] == json!(true);
    wait::expect(!is_good || is_whole && title.is_none(), || "green, and not every check ran".to_owned())?;
    wait::expect(!(is_good && is_above), || "green beside a figure above its target".to_owned())
}

/// Every view of a demo in which hardly any time passes.
async fn agree(page: &Page, args: &[&'static str]) {
    let still = ["demo", "--speed", "0.000001"];
    let server = Radixscope::start(still.iter().chain(args).copied()).await;
    server.until_source_is("live").await;
    for (name, query, sign) in VIEWS {
        page.open(&server.url(&format!("/?{query}"))).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        page.until_true("it has come", &format!("!!document.querySelector('{sign}')?.innerText")).await;
        page.until(&format!("{name} of {args:?} agrees with itself and with the API"), async |page| {
            // Windows of time go on: what changes meanwhile is read again.
            let before = page.eval(SHOWN).await;
            let expected = ApiFigures::by(&server).await;
            let after = page.eval(SHOWN).await;
            wait::expect(before == after, || "it changes".to_owned())?;
            compare(&after, &expected)
        })
        .await;
    }
    // The server ends before the page does.
    page.open("about:blank").await;
}

async fn all_agree(deployments: &[&[&'static str]]) {
    with_unrecorded_page(async |page| {
        page.size(1440, 900).await;
        for args in deployments {
            agree(page, args).await;
        }
    })
    .await;
}

#[tokio::test]
async fn figures_agree_with_two_models() {
    all_agree(&[&["--topology", "two-models", "--warm-up", "90"]]).await;
}

#[tokio::test]
async fn figures_agree_in_every_other_topology() {
    all_agree(&[
        &["--warm-up", "90"],
        &["--topology", "disaggregated", "--warm-up", "90"],
        &["--topology", "tiers", "--warm-up", "90"],
    ])
    .await;
}

#[tokio::test]
async fn figures_agree_when_requests_are_slow_or_wait() {
    all_agree(&[
        &["--fault", "memory-full", "--warm-up", "120"],
        &["--fault", "slow", "--warm-up", "120"],
        &["--fault", "hot-worker", "--warm-up", "120"],
        &["--fault", "replicas", "--warm-up", "120"],
    ])
    .await;
}

#[tokio::test]
async fn figures_agree_when_caches_are_not_known_or_not_used() {
    all_agree(&[
        &["--fault", "no-events", "--warm-up", "60"],
        &["--fault", "block-size-card", "--warm-up", "60"],
        &["--fault", "gap", "--warm-up", "60"],
        &["--fault", "kill-worker", "--warm-up", "60"],
        &["--fault", "router-restart", "--warm-up", "60"],
    ])
    .await;
}

#[tokio::test]
async fn figures_agree_under_every_other_fault() {
    all_agree(&[
        &["--fault", "block-size", "--warm-up", "60"],
        &["--fault", "block-size-oversize", "--warm-up", "60"],
        &["--fault", "block-size-partial", "--warm-up", "60"],
        &["--fault", "no-events-one", "--warm-up", "90"],
        &["--fault", "starved-worker", "--warm-up", "120"],
        &["--fault", "ghost-worker", "--warm-up", "60"],
        &["--fault", "hash-seed", "--warm-up", "60"],
        &["--fault", "mixed-planes", "--warm-up", "60"],
        &["--fault", "unknown-parents", "--warm-up", "60"],
        &["--fault", "unknown-removals", "--warm-up", "60"],
        &["--fault", "churn", "--warm-up", "240"],
        &["--fault", "approximate", "--warm-up", "90"],
    ])
    .await;
}
