//! Latency is above its target.

use std::borrow::Cow;

use crate::capacity::RemedyKind;
use crate::check::latency::{Against, Latency, MIN_SAMPLES};
use crate::check::peers::{holding, waiting};
use crate::check::spikes::harmful;
use crate::check::{Found, Look, Rule, View};
use crate::latency::{ENABLE_FRONTEND, Quantity, WINDOW_MS};
use crate::record::Severity;
use crate::words;

/// How far back a spike counts as the cause, seconds.
const SPIKE_S: u64 = 90;
/// Decisions that an overlap needs.
const MIN_DECISIONS: u64 = 50;
/// Below it nothing is re-used.
const NO_OVERLAP: f64 = 0.05;
/// Faults of the event path after which nothing is re-used.
const BLIND: [&str; 4] = ["block_size_mismatch", "no_events", "always_zero_overlap", "event_lines_mixed"];

/// See the module.
pub(in crate::check) struct SloBreach;

/// What most likely makes requests slow, by what else is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Memory,
    Blind,
    Spread,
    Churn,
    Queue,
    Load,
}

impl Rule for SloBreach {
    fn code(&self) -> &'static str {
        "slo_breach"
    }

    fn subject(&self) -> &'static str {
        "Time to first token and between tokens against their targets"
    }

    fn hold_ms(&self) -> u64 {
        20_000
    }

    fn clear_ms(&self) -> u64 {
        60_000
    }

    fn look(&self, view: &View<'_>) -> Look {
        let targets = view.given.targets;
        let judged = |quantity, target_ms: f64| {
            let (latency, against) = Latency::judged(view, quantity, target_ms)?;
            Some((latency, against, target_ms))
        };
        let ttft = judged(Quantity::Ttft, targets.ttft_ms);
        let tpot = judged(Quantity::Tpot, targets.tpot_ms);
        let judged: Vec<_> = [ttft, tpot].into_iter().flatten().collect();
        let above: Vec<_> = judged.iter().filter(|(_, against, _)| *against == Against::Above).collect();
        if above.is_empty() {
            return no_breach(&judged);
        }
        let names: Vec<&str> = above.iter().map(|(latency, ..)| label(latency.quantity)).collect();
        let cause = cause(view);
        let mut found = Found::new(
            Severity::Warning,
            format!("{} p95 is above its target", names.join(" and ")),
            format!("One request in twenty waits longer than it should. {}", cause.words()),
        );
        for (latency, _, target_ms) in &judged {
            let what = label(latency.quantity);
            let from = format!("{}, last 60 s, {} samples", latency.source, words::count(latency.samples));
            let p95 = format!("{}; target {target_ms} ms", latency.words(&latency.p95));
            found = found.evidence(format!("{what} p95, {from}"), p95, "").evidence(
                format!("{what} p50, {from}"),
                latency.words(&latency.p50),
                "",
            );
            if let Some(share) = share_above(view, latency.quantity, *target_ms) {
                let label = format!("{what} above its target, {from}");
                found = found.evidence(label, format!("{:.1} % of the samples", share * 100.0), "");
            }
        }
        if let Some((requests, source)) = waiting(view) {
            found = found.evidence(format!("Waiting now, {source}"), words::count(requests), "requests");
        }
        let window = view.cluster.decisions().window(view.now, WINDOW_MS);
        if let Some(overlap) = window.overlap_share() {
            let label = format!(
                "Overlap of the prompts' blocks, {} decisions, last 60 s",
                words::count(window.count)
            );
            found = found.evidence(label, format!("{:.0} %", overlap * 100.0), "");
        }
        let tpot_alone = above.iter().all(|(latency, ..)| latency.quantity == Quantity::Tpot);
        cause.remedy(found, view, tpot_alone).link(cause.link()).into()
    }
}

fn no_breach(judged: &[(Latency, Against, f64)]) -> Look {
    if judged.is_empty() {
        let text = format!(
            "{MIN_SAMPLES} requests within 60 s whose latency is told are needed: by a scraped frontend \
             ({ENABLE_FRONTEND}), a log or a trace"
        );
        return Look::Unknown(text.into());
    }
    let unclear = judged.iter().find(|(_, against, _)| *against == Against::Unclear);
    let Some((latency, _, target_ms)) = unclear else { return Look::Ok };
    Look::Unknown(
        format!(
            "{} p95 is {}: the target of {target_ms} ms lies in that bucket; logs or traces from 1.4 on tell it exactly",
            label(latency.quantity),
            latency.words(&latency.p95)
        )
        .into(),
    )
}

const fn label(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Tpot => "TPOT",
        _ => "TTFT",
    }
}

/// Share of the window's samples above a target by the frontends' buckets; an estimate where the target lies within one.
fn share_above(view: &View<'_>, quantity: Quantity, target_ms: f64) -> Option<f64> {
    crate::latency::share_above(view.cluster, quantity, view.now, target_ms)
}

fn cause(view: &View<'_>) -> Cause {
    let window = view.cluster.decisions().window(view.now, WINDOW_MS);
    let overlap = window.overlap_share().filter(|_| window.count >= MIN_DECISIONS);
    let is_blind = BLIND.iter().any(|code| holding(view, code).is_some());
    let has_spikes = || harmful(view, SPIKE_S).is_some_and(|spikes| !spikes.is_empty());
    if is_blind || overlap.is_some_and(|overlap| overlap < NO_OVERLAP) {
        Cause::Blind
    } else if holding(view, "memory_full").is_some() {
        Cause::Memory
    } else if holding(view, "hot_worker").is_some() || has_spikes() {
        Cause::Spread
    } else if holding(view, "churn").is_some() {
        Cause::Churn
    } else if waiting(view).is_some_and(|(requests, _)| requests > 0) {
        Cause::Queue
    } else {
        Cause::Load
    }
}

impl Cause {
    const fn words(self) -> &'static str {
        match self {
            Self::Memory => "The likeliest cause is that running requests fill the KV cache.",
            Self::Blind => {
                "The likeliest cause is that no prefix is re-used, so every prompt is computed whole."
            }
            Self::Spread => {
                "The likeliest cause is that requests crowd on one worker while another one has room."
            }
            Self::Churn => "The likeliest cause is that prefixes are evicted before they are wanted again.",
            Self::Queue => "The likeliest cause is the queue: more requests come than run at once.",
            Self::Load => {
                "Nothing queues and prefixes are re-used, so the workers simply have more work than they finish in time."
            }
        }
    }

    const fn link(self) -> &'static str {
        match self {
            Self::Memory | Self::Churn => "view=memory",
            Self::Blind => "view=findings",
            Self::Spread | Self::Queue | Self::Load => "view=latency",
        }
    }

    fn remedy(self, found: Found, view: &View<'_>, tpot_alone: bool) -> Found {
        let less = |found: Found| -> Found {
            let none = Cow::Borrowed("");
            found.fix("Add a worker, or send fewer requests at once", none.clone(), none)
        };
        match self {
            Self::Memory => {
                found.remedy(RemedyKind::LowerBatch, None).remedy(RemedyKind::RaiseFraction, None)
            }
            Self::Blind => {
                found.fix("Look at the other findings first: events, block sizes, overlap", "", "")
            }
            Self::Spread => less(found.spread_out(view)),
            Self::Churn => found.remedy(RemedyKind::RaiseFraction, None).remedy(RemedyKind::Retention, None),
            Self::Queue => less(found.larger_batch(None)),
            Self::Load if tpot_alone => less(found.smaller_steps().remedy(RemedyKind::LowerBatch, None)),
            Self::Load => less(found.smaller_steps()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Process, Stage};
    use crate::record::{Gauge, HistogramKind, Progress};

    const BOUNDS: [f64; 4] = [0.22, 0.47, 1.0, 2.2];

    /// Samples per bucket within the last minute.
    fn stage_of(counts: [u64; 5]) -> Stage {
        let mut stage = Stage::new(2);
        let frontend =
            |counts: &[u64]| Process::frontend().histogram(HistogramKind::Ttft, &BOUNDS, counts, 1.0);
        stage.scrape(&frontend(&[7, 7, 7, 7, 7]));
        stage.pass(5_000);
        stage.scrape(&frontend(&counts.map(|count| count + 7)));
        stage
    }

    #[test]
    fn a_percentile_that_is_certainly_above_its_target_is_found() {
        let finding = stage_of([50, 20, 20, 10, 0]).found(&SloBreach).unwrap();
        assert_eq!(finding.title, "TTFT p95 is above its target");
        assert!(finding.evidence[0].value.contains("1 s–2.2 s"), "{}", finding.evidence[0].value);
        assert!(finding.evidence[2].value.starts_with("25.1 %"), "{}", finding.evidence[2].value);
    }

    #[test]
    fn below_it_is_well_and_within_the_same_bucket_unknown() {
        assert!(stage_of([50, 46, 4, 0, 0]).is_ok(&SloBreach));
        assert!(stage_of([50, 40, 10, 0, 0]).is_unknown(&SloBreach), "between 470 ms and 1 s");
    }

    #[test]
    fn few_samples_or_none_are_unknown() {
        assert!(stage_of([0, 0, 0, 40, 9]).is_unknown(&SloBreach));
        assert!(Stage::new(2).is_unknown(&SloBreach));
    }

    #[test]
    fn requests_one_by_one_tell_what_a_bucket_does_not() {
        let told = |ttft_us| {
            let mut stage = stage_of([50, 0, 10, 0, 0]);
            for _ in 0..60 {
                let id = stage.decide(0, 100, 50);
                stage.progress(id, Progress { ttft_us: Some(ttft_us), ..Progress::default() });
            }
            stage.pass(1_000);
            stage
        };
        assert!(told(640_000).found(&SloBreach).is_some());
        assert!(told(590_000).is_ok(&SloBreach));
    }

    #[test]
    fn targets_are_the_operators() {
        let mut stage = stage_of([50, 46, 4, 0, 0]);
        stage.given.targets.ttft_ms = 200.0;
        assert!(stage.found(&SloBreach).is_some());
    }

    #[test]
    fn the_likeliest_cause_is_named() {
        let slow = || stage_of([50, 20, 20, 10, 0]);
        let explained = |stage: &Stage| stage.found(&SloBreach).unwrap().explanation.into_owned();
        assert!(explained(&slow()).contains("more work"));
        let mut stage = slow();
        stage.scrape(&Process::of_worker(0).gauge(Gauge::EngineWaitingRequests, 4.0));
        assert!(explained(&stage).contains("the queue"));
        stage.holds("memory_full");
        assert!(explained(&stage).contains("KV cache"));
        stage.choose(&[30, 30], 0);
        assert!(explained(&stage).contains("no prefix"));
    }
}
