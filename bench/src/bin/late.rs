//! Attaches a second `radixscope serve` late to a Dynamo that is running, and holds what it shows against one that was there
//! from the start. Nothing is started but the two; run it where Dynamo is.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_tests::radixscope::Radixscope;
use serde::Serialize;
use serde_json::{Value, json};

/// How often the late one is asked whether it is complete.
const POLL: Duration = Duration::from_millis(50);
/// How often the two are compared while traffic runs.
const COMPARE: Duration = Duration::from_secs(5);
/// How long connections are kept broken, and how often those that stand again are cut.
const CUT_FOR: Duration = Duration::from_secs(3);
const CUT_EVERY: Duration = Duration::from_millis(20);
/// When after it "complete" means that it was repaired.
const CUT_NOTICED: Duration = Duration::from_millis(500);
/// How long two responses about a resting cluster may take to be of the same state.
const SETTLES_WITHIN: Duration = Duration::from_secs(20);

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Seconds until the second server is started
    #[arg(long, value_name = "S", value_parser = seconds)]
    after: Duration,
    /// Seconds that it is watched
    #[arg(long = "for", value_name = "S", value_parser = seconds)]
    watched: Duration,
    /// Request the workers' blocks at once
    #[arg(long)]
    ask: bool,
    /// Break all its connections so many seconds after its start, for a while (needs `ss` and the right to kill sockets)
    #[arg(long, value_name = "S", value_parser = seconds)]
    cut: Option<Duration>,
    /// Flags of the first server; those of the second if not given
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    truth: Option<String>,
    /// Flags of the second server
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true)]
    late: String,
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// What is held against each other of one decision: overlap by worker, and who costs least.
type Weighed = (BTreeMap<String, u64>, Option<String>);

#[derive(Serialize, Default)]
struct Agreement {
    /// Decisions of which both know all candidates.
    decisions: usize,
    candidates: usize,
    wrong_overlaps: usize,
    other_cheapest: usize,
    /// Of the wrong overlaps, those in decisions that are not marked as made on a part of the blocks.
    wrong_unmarked: usize,
    /// Decisions that the late one marks as made on a part of the blocks.
    marked_partial: usize,
}

#[derive(Serialize)]
struct Result {
    /// Seconds from the start of the process until every worker is complete; `None`: never.
    complete_after_s: Option<f64>,
    /// Seconds from the end of the cut until every worker is complete again; `None`: nothing was cut, or never.
    complete_again_s: Option<f64>,
    before_complete: Agreement,
    after_complete: Agreement,
    /// Rows of the tree that only one of them has, at rest.
    tree_rows: usize,
    differing_rows: usize,
    unattached_blocks: u64,
    findings: Vec<String>,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let truth = Radixscope::start(args("serve", options.truth.as_ref().unwrap_or(&options.late))).await;
    tokio::time::sleep(options.after).await;
    let started = Instant::now();
    let late = Radixscope::start(args("serve", &options.late)).await;
    println!("listening after {:.2} s", started.elapsed().as_secs_f64());
    if options.ask {
        ask(&late).await;
    }
    let (mut complete, mut compared) = (None, Instant::now());
    let (mut cut, mut ended, mut again) = (options.cut, None, None);
    while started.elapsed() < options.watched {
        if cut.is_some_and(|after| started.elapsed() >= after) {
            cut = None;
            keep_cut(&late).await;
            ended = Some(Instant::now());
            if options.ask {
                // Only who receives events again can hold what workers answer.
                tokio::time::sleep(2 * CUT_NOTICED).await;
                ask(&late).await;
            }
            println!("cut for {} s until {:.1} s", CUT_FOR.as_secs(), started.elapsed().as_secs_f64());
        }
        let cluster = late.json("/api/v1/cluster").await;
        if complete.is_none() && is_complete(&cluster) {
            complete = Some((started.elapsed(), cluster["at_ms"].as_u64().expect("a time")));
            println!("complete after {:.2} s", started.elapsed().as_secs_f64());
        }
        // The first answers after a cut may be older than what the sources noticed of it.
        if let Some(ended) = ended.filter(|ended: &Instant| again.is_none() && ended.elapsed() > CUT_NOTICED)
            && is_complete(&cluster)
        {
            again = Some(ended.elapsed());
            println!("complete again after {:.2} s", ended.elapsed().as_secs_f64());
        }
        if compared.elapsed() >= COMPARE {
            compared = Instant::now();
            print_state(started.elapsed(), &truth.json("/api/v1/cluster").await, &cluster);
        }
        tokio::time::sleep(POLL).await;
    }
    let [true_rows, late_rows] = at_rest(&truth, &late).await;
    let differing: Vec<_> = true_rows.symmetric_difference(&late_rows).collect();
    differing.iter().take(6).for_each(|row| println!("  only one has: {row}"));
    let [theirs, ours] = [weighed(&truth).await, weighed(&late).await];
    let since = complete.map_or(u64::MAX, |(_, at_ms)| at_ms);
    let agreement = |within: &dyn Fn(u64) -> bool| agreement(&theirs, &ours, within);
    let findings = late.json("/api/v1/findings?state=all").await;
    let result = Result {
        complete_after_s: complete.map(|(after, _)| after.as_secs_f64()),
        complete_again_s: again.map(|after| after.as_secs_f64()),
        before_complete: agreement(&|at_ms| at_ms < since),
        after_complete: agreement(&|at_ms| at_ms >= since),
        tree_rows: true_rows.len(),
        differing_rows: differing.len(),
        unattached_blocks: unattached(&late.json("/api/v1/cluster").await),
        findings: codes(&findings),
    };
    let report = serde_json::to_value(&result).expect("plain data");
    println!("{report:#}");
    options.report.write(&report);
}

fn args(command: &str, flags: &str) -> Vec<String> {
    std::iter::once(command).chain(flags.split_whitespace()).map(str::to_owned).collect()
}

/// Requests the blocks of all workers, once there are any.
async fn ask(late: &Radixscope) {
    let since = Instant::now();
    while since.elapsed() < SETTLES_WITHIN {
        let asked = late.post("/api/v1/tree-dumps", "{}", &[("content-type", "application/json")]).await;
        if list(&asked.json()["workers"]).next().is_some() {
            println!(
                "asked the workers after {:.2} s: {} {}",
                since.elapsed().as_secs_f64(),
                asked.status,
                asked.text()
            );
            return;
        }
        tokio::time::sleep(POLL).await;
    }
    println!("no worker to query");
}

/// Breaks every connection that the process made, again and again.
async fn keep_cut(late: &Radixscope) {
    let (process, own_port) = (format!("pid={},", late.process().id()), format!(":{}", late.port()));
    let since = Instant::now();
    while since.elapsed() < CUT_FOR {
        let open = run_ss(&["-Htnp"]);
        let made = open.lines().filter(|line| line.contains(&process)).filter_map(|line| {
            let mut addresses = line.split_whitespace().skip(3);
            Some((addresses.next()?, addresses.next()?)).filter(|(ours, _)| !ours.ends_with(&own_port))
        });
        for (ours, theirs) in made {
            run_ss(&["-K", "src", ours, "dst", theirs]);
        }
        tokio::time::sleep(CUT_EVERY).await;
    }
}

fn run_ss(args: &[&str]) -> String {
    let output = std::process::Command::new("ss").args(args).output().expect("`ss` of iproute2");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn present(cluster: &Value) -> impl Iterator<Item = &Value> {
    list(&cluster["workers"]).filter(|worker| worker["gone"].is_null())
}

fn is_complete(cluster: &Value) -> bool {
    let mut workers = present(cluster).peekable();
    workers.peek().is_some() && workers.all(|worker| worker["knowledge"]["state"] == "complete")
}

fn unattached(cluster: &Value) -> u64 {
    present(cluster).filter_map(|worker| worker["unattached_blocks"].as_u64()).sum()
}

fn print_state(elapsed: Duration, truth: &Value, late: &Value) {
    let blocks = |cluster: &Value| -> u64 { present(cluster).filter_map(|w| w["blocks"].as_u64()).sum() };
    println!(
        "{:5.1} s: {} of {} blocks, {} unattached, {} of {} workers complete",
        elapsed.as_secs_f64(),
        blocks(late),
        blocks(truth),
        unattached(late),
        present(late).filter(|worker| worker["knowledge"]["state"] == "complete").count(),
        present(truth).count(),
    );
}

/// The rows of both trees once nothing changes any more and they are equal, else as they are when the time is over.
async fn at_rest(truth: &Radixscope, late: &Radixscope) -> [BTreeSet<String>; 2] {
    let since = Instant::now();
    loop {
        let both = [rows(truth).await, rows(late).await];
        if both[0] == both[1] || since.elapsed() > SETTLES_WITHIN {
            return both;
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn rows(server: &Radixscope) -> BTreeSet<String> {
    let cluster = server.json("/api/v1/cluster").await;
    let mut rows = BTreeSet::new();
    for pool in list(&cluster["pools"]) {
        let Some(id) = pool["pool"].as_str().or(pool["id"].as_str()) else { continue };
        let path = format!("/api/v1/tree?pool={id}&depth=10000&limit=100000&sort=hash");
        let response = server.json(&path).await;
        rows.extend(list(&response["rows"]).map(|row| {
            let of = |name: &str| row[name].to_string();
            format!(
                "{id} {} {} {} {} {} {}",
                of("position"),
                of("len"),
                of("block_hash"),
                of("tokens_hash"),
                of("last_block_hash"),
                sorted(&row["workers"])
            )
        }));
    }
    rows
}

fn sorted(workers: &Value) -> String {
    let names: BTreeSet<String> = list(workers).map(Value::to_string).collect();
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// By request id: when it was decided, whether it is marked, what was weighed.
async fn weighed(server: &Radixscope) -> BTreeMap<String, (u64, bool, Weighed)> {
    let response = server.json("/api/v1/decisions?limit=10000").await;
    let of = |decision: &Value| {
        let candidates = &decision["candidates"];
        let overlaps: BTreeMap<String, u64> = list(candidates)
            .filter_map(|c| {
                Some((format!("{}/{}", c["worker_id"], c["dp_rank"]), c["overlap_blocks"].as_u64()?))
            })
            .collect();
        let cost = |c: &&Value| c["cost"].as_f64().unwrap_or(f64::INFINITY);
        let cheapest = list(candidates).min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let cheapest = cheapest.map(|c| c["worker_id"].to_string());
        let at_ms = decision["decided_ms"].as_u64().or(decision["at_ms"].as_u64())?;
        let id = format!("{} {}", decision["request_id"].as_str()?, decision["pool"]);
        (overlaps.len() > 1).then(|| (id, (at_ms, decision["partial"] == json!(true), (overlaps, cheapest))))
    };
    list(&response["decisions"]).filter_map(of).collect()
}

fn agreement(
    theirs: &BTreeMap<String, (u64, bool, Weighed)>,
    ours: &BTreeMap<String, (u64, bool, Weighed)>,
    is_meant: &dyn Fn(u64) -> bool,
) -> Agreement {
    let mut sum = Agreement::default();
    for (id, (at_ms, _, (overlaps, cheapest))) in theirs {
        let Some((_, is_partial, (shown, shown_cheapest))) = ours.get(id) else { continue };
        if !is_meant(*at_ms) {
            continue;
        }
        sum.decisions += 1;
        sum.marked_partial += usize::from(*is_partial);
        sum.candidates += overlaps.len();
        let wrong = overlaps.iter().filter(|(worker, n)| shown.get(*worker) != Some(n)).count();
        sum.wrong_overlaps += wrong;
        if !is_partial && wrong > 0 {
            sum.wrong_unmarked += wrong;
            println!("  {id} decided {at_ms}: {overlaps:?}, late one {shown:?}");
        }
        sum.other_cheapest += usize::from(cheapest != shown_cheapest);
    }
    sum
}

fn codes(findings: &Value) -> Vec<String> {
    list(&findings["findings"])
        .filter_map(|finding| {
            Some(format!("{} {}", finding["code"].as_str()?, finding["severity"].as_str()?))
        })
        .collect()
}
