//! What has to be found in each recording, and what must not be.

use super::{Replayed, Seen, rank};

/// What a recording is expected to show. Nothing but what is named, and what names it as its cause, may be as bad as a
/// warning.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Which recording.
    pub capture: &'static str,
    /// What has to be found.
    pub must: &'static [Must],
    /// What may be found besides: consequences of what was done to the deployment.
    pub may: &'static [&'static str],
}

/// A finding that has to come.
#[derive(Clone, Copy, Debug)]
pub struct Must {
    /// Its code.
    pub code: &'static str,
    /// What it follows: an event of the timeline.
    pub after: &'static str,
    /// At most so many recorded seconds later, at the recorded pace.
    pub within_s: f64,
}

const fn healthy(capture: &'static str) -> Expected {
    Expected { capture, must: &[], may: &[] }
}

const MISMATCH: &[Must] = &[Must { code: "block_size_mismatch", after: "traffic_start", within_s: 30.0 }];

const fn mismatch(capture: &'static str) -> Expected {
    Expected { capture, must: MISMATCH, may: &[] }
}

/// Every recording.
pub const ALL: &[Expected] = &[
    healthy("0.8.1.post3-healthy"),
    healthy("0.9.1-healthy"),
    healthy("0.9.1-healthy-vllm"),
    healthy("0.9.1-localindexer"),
    healthy("0.9.1-log-jsonl-info"),
    healthy("1.0.2-healthy"),
    healthy("1.1.1-healthy"),
    healthy("1.2.1-healthy"),
    // Its workers' metrics answer only a quarter of a minute after the recording begins.
    Expected { capture: "1.3.1-healthy", must: &[], may: &["source_down"] },
    healthy("1.4.2-healthy"),
    healthy("1.4.2-replicas"),
    healthy("1.5.1-healthy"),
    healthy("1.6.1-healthy"),
    healthy("1.6.1-log-jsonl-debug"),
    healthy("1.7.0.dev20261026-healthy"),
    healthy("1.7.0.dev20261026-replicas"),
    mismatch("0.9.1-mismatch"),
    mismatch("1.1.1-mismatch"),
    mismatch("1.3.1-mismatch"),
    mismatch("1.5.1-mismatch"),
    mismatch("1.6.1-mismatch"),
    mismatch("1.7.0.dev20261026-mismatch"),
    Expected {
        capture: "0.9.1-no-events",
        must: &[Must { code: "no_events", after: "traffic_start", within_s: 60.0 }],
        may: &[],
    },
    Expected {
        capture: "0.9.1-worker-restart",
        // Ten seconds after its last sign, which it gave just before it was killed.
        must: &[Must { code: "worker_gone", after: "kill_worker", within_s: 11.0 }],
        // For half a minute its metrics are not there.
        may: &["source_down"],
    },
    Expected {
        capture: "1.7.0.dev20261026-restart",
        must: &[Must { code: "worker_gone", after: "kill_worker", within_s: 11.0 }],
        may: &["source_down", "errors"],
    },
    Expected {
        capture: "1.6.1-router-restart",
        must: &[Must { code: "router_restarted", after: "kill_frontend", within_s: 30.0 }],
        may: &[],
    },
];

/// What a recording is expected to show.
pub fn of(capture: &str) -> &'static Expected {
    ALL.iter().find(|expected| expected.capture == capture).unwrap_or_else(|| panic!("no {capture}"))
}

impl Expected {
    /// Whether everything that has to be was found and nothing else that is bad.
    ///
    /// # Errors
    /// In words, what is missing or too much.
    pub fn check_codes(&self, replayed: &Replayed) -> Result<(), String> {
        for Must { code, .. } in self.must {
            if !replayed.seen.contains_key(*code) {
                let found: Vec<_> = replayed.seen.keys().collect();
                return Err(format!("{code} was not found, only {found:?}; checked: {}", replayed.checked));
            }
        }
        let is_meant =
            |code: &str| self.must.iter().any(|must| must.code == code) || self.may.contains(&code);
        // What users feel of a fault keeps its severity and names the fault.
        let follows = |seen: &Seen| seen.finding["cause"].as_str().is_some_and(is_meant);
        let is_wrong =
            |code: &str, seen: &Seen| rank(&seen.severity) > 0 && !is_meant(code) && !follows(seen);
        match replayed.seen.iter().find(|(code, seen)| is_wrong(code, seen)) {
            Some((code, seen)) => Err(format!("{code} must not be found: {}", seen.finding)),
            None => Ok(()),
        }
    }

    /// The same, and each in time.
    ///
    /// # Errors
    /// In words, what is missing, too much or late.
    pub fn check(&self, replayed: &Replayed) -> Result<(), String> {
        self.check_codes(replayed)?;
        for Must { code, after, within_s } in self.must {
            let late_s = replayed.finding(code).at_s - replayed.event_s(after);
            if late_s > *within_s {
                return Err(format!("{code} came {late_s:.1} s after {after}, not within {within_s} s"));
            }
        }
        Ok(())
    }
}
