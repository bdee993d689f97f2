//! Changes in sentences.

use radixscope_icicle::palette::label;
use radixscope_insight::changes::{Blocks, Changes, Presence, Requests, WorkerChange};
use radixscope_insight::latency::{Quantity, source_text};
use radixscope_insight::view_context::PoolLabel;
use radixscope_model::id::Millis;

use super::{Compared, pools};
use crate::format::{self, UNKNOWN};

/// In a word or two.
pub(super) fn presence(of: Presence) -> String {
    match of {
        Presence::Came => "joined",
        Presence::CameBack => "came back",
        Presence::Left => "left",
        Presence::LeftAndCameBack => "left and came back",
        Presence::FellSilent => "no longer responds",
        Presence::RespondsAgain => "responds again",
        Presence::OnlyInA => "only in A",
        Presence::OnlyInB => "only in B",
        Presence::Restarted(1) => "restarted",
        Presence::Restarted(times) => return format!("restarted {times} times"),
    }
    .to_owned()
}

/// What changed in each pool shown, and who came and went.
pub fn sentences(changes: &Changes, shown: &Compared, labels: &[PoolLabel]) -> Vec<String> {
    let [a, b] = changes.at;
    let time_of_day = |at: Millis| shown.zone.time_of_day(at);
    let until = if changes.is_across {
        format!("{} of the second recording", time_of_day(b))
    } else if shown.is_b_marked {
        time_of_day(b)
    } else {
        format!("now, {}", time_of_day(b))
    };
    let span = format!("Between {} and {until}", time_of_day(a));
    let is_one = changes.pools.len() == 1;
    let mut all: Vec<String> = pools(changes, shown)
        .map(|pool| {
            let label = labels.iter().find(|label| label.name == pool.name);
            let name = label.map_or(pool.name.as_str(), |label| &label.short);
            let of = if is_one { String::new() } else { format!(" in {name}") };
            let who: Vec<String> = pool.workers.iter().filter_map(who).collect();
            let who = if who.is_empty() { String::new() } else { format!("; {}", who.join(", ")) };
            format!("{span}{of}: {}{}{who}.", blocks(&pool.blocks), decisions(pool.decisions))
        })
        .collect();
    if changes.is_across {
        let is_alone = |worker: &WorkerChange| worker.presence.is_some();
        if changes.pools.iter().flat_map(|pool| &pool.workers).all(is_alone) {
            all.push("A and B have no worker in common.".to_owned());
        }
    } else if a > b {
        all.push("A is later than B: swap them to read forward in time.".to_owned());
    }
    let processes: Vec<String> =
        changes.processes.iter().map(|(name, of)| format!("{name} {}", presence(*of))).collect();
    if !processes.is_empty() {
        all.push(format!("Processes: {}.", processes.join(", ")));
    }
    for (router, numbers) in &changes.settings {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        all.push(format!("Router settings of {}: {}.", router.reporter, numbers.join(", ")));
    }
    all.extend(doubts(changes));
    all
}

fn blocks(blocks: &Blocks) -> String {
    let stored = format::plural(blocks.stored, "block", "blocks");
    let (evicted, moved) = (format::count(blocks.evicted), format::count(blocks.moved_in));
    format!("net {stored} stored, {evicted} evicted, {moved} moved")
}

fn decisions(count: Option<u64>) -> String {
    match count {
        Some(count) => format!(", {}", format::plural(count, "decision", "decisions")),
        None => ", decisions unknown".to_owned(),
    }
}

fn who(worker: &WorkerChange) -> Option<String> {
    Some(format!("{} {}", label(worker.ix), presence(worker.presence?)))
}

/// What keeps the counts from being whole.
fn doubts(changes: &Changes) -> Vec<String> {
    let workers = || changes.pools.iter().flat_map(|pool| &pool.workers);
    let partial: Vec<String> =
        workers().filter(|worker| worker.is_partial).map(|worker| label(worker.ix)).collect();
    let hidden: u64 = changes.pools.iter().map(|pool| pool.blocks.hidden).sum();
    let mut doubts = Vec::new();
    if !partial.is_empty() {
        let names = partial.join(", ");
        doubts.push(format!("Blocks of {names} are not all known: more may have been stored and evicted."));
    }
    if hidden > 0 {
        let count = format::plural(hidden, "block", "blocks");
        doubts.push(format!("{count} beyond the limit of the tree at A or B: not compared."));
    }
    doubts
}

/// Cached share of prompts before A and before B: in short, how many decisions each is of, and in full.
pub(super) fn hit_rate(requests: &[Requests; 2], at: [Millis; 2]) -> [String; 3] {
    let short = requests
        .each_ref()
        .map(|of| of.decisions.overlap_share().map_or(UNKNOWN.to_owned(), format::percent));
    let counts = requests.each_ref().map(|of| format::count(of.decisions.with_blocks));
    let full = [0, 1].map(|side| {
        let Requests { decisions, .. } = &requests[side];
        format!(
            "{} of {} prompt blocks cached, {}{}",
            format::count(decisions.overlap_blocks),
            format::count(decisions.isl_blocks),
            format::plural(decisions.with_blocks, "decision", "decisions"),
            since(&requests[side], at[side])
        )
    });
    [arrow(short), arrow(counts), sides(full)]
}

/// What the minute before a mark is, and where the retained decisions do not reach back so far, how far they do.
fn since(requests: &Requests, at: Millis) -> String {
    match at.since(requests.since(at)) / 1_000 {
        60 => " in the 60 s before".to_owned(),
        seconds => format!(" in the {seconds} s before that are retained"),
    }
}

/// A percentile of the time to first token before A and before B, and the same.
pub(super) fn ttft(requests: &[Requests; 2], percentile: usize) -> [String; 3] {
    let of = |requests: &Requests| {
        let range = requests.ttft.as_ref()?.quantiles?[percentile];
        Some(Quantity::Ttft.range_text(&range))
    };
    let short = requests.each_ref().map(|requests| of(requests).unwrap_or(UNKNOWN.to_owned()));
    let counts = requests.each_ref().map(|of| {
        let times = of.ttft.as_ref();
        times.map_or("0".to_owned(), |times| format::count(times.samples))
    });
    let full = requests.each_ref().map(|of| match &of.ttft {
        Some(times) => source_text(std::slice::from_ref(times), Quantity::Ttft),
        None => "not reported".to_owned(),
    });
    [arrow(short), arrow(counts), sides(full)]
}

fn arrow([a, b]: [String; 2]) -> String {
    format!("{a} → {b}")
}

fn sides([a, b]: [String; 2]) -> String {
    format!("Before A: {a}\nBefore B: {b}")
}
