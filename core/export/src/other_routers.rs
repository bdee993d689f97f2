//! What routers other than Dynamo's count: the same in the API and on the page.

use serde::{Serialize, Serializer};

use radixscope_insight::other_routers::{OtherRouter, Tally};
use radixscope_model::id::{Millis, Worker};
use radixscope_model::number_format::{UNKNOWN, count, percent, plural};
use radixscope_model::record::{Counter, ProcessRole};
use radixscope_state::cluster::Cluster;

/// A router.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OtherRouterRow {
    /// As the operator named it.
    pub name: String,
    /// `production_stack_router` or `aibrix_gateway`.
    pub role: ProcessRole,
    /// Last successful scrape.
    pub last_ms: Millis,
    /// Seconds that every `latest` covers.
    pub window_s: f64,
    /// Its choices by reason; empty: it does not count them.
    pub choices: Vec<TallyRow>,
    /// Its choices by the share of the prompt that the chosen engine had by its index; empty: it does not count them.
    pub matched: Vec<TallyRow>,
    /// What else it counts.
    pub counts: Vec<TallyRow>,
    /// Publishers of KV events that it is connected to; `null`: not reported.
    pub publishers: Option<u64>,
    /// Whether its index follows KV events, or else its own choices; `null`: not reported.
    pub follows_events: Option<bool>,
    /// The engines that it routes to.
    pub engines: Vec<RoutedEngineRow>,
}

/// Something that is counted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TallyRow {
    /// What, by its name for programs (`by_prefix` …).
    #[serde(serialize_with = "id")]
    pub what: Counter,
    /// Over the last `window_s`.
    pub latest: u64,
    /// Since it was first scraped.
    pub session: u64,
}

/// An engine as such a router counts it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RoutedEngineRow {
    /// Which worker it is here.
    pub worker: Worker,
    /// What the router calls it; `null`: not known any more.
    pub endpoint: Option<String>,
    /// Requests that run there; `null`: not reported, which is so before the first.
    pub requests: Option<u64>,
    /// Whether the router sends requests there; `null`: not reported.
    pub is_healthy: Option<bool>,
}

/// The name of a counter for programs.
fn id<S: Serializer>(counter: &Counter, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(words(*counter).0)
}

/// Name for programs, for people, and what it is in a sentence.
const fn words(counter: Counter) -> (&'static str, &'static str, &'static str) {
    match counter {
        Counter::ChosenByPrefix => {
            ("by_prefix", "by prefix", "an engine that had a part of the prompt was chosen")
        }
        Counter::PrefixSkipped => (
            "prefix_skipped",
            "prefix skipped",
            "engines had a part of the prompt, but all of them were too busy: the least busy engine was chosen",
        ),
        Counter::NoPrefix => {
            ("no_prefix", "no prefix", "no engine had a part of the prompt: the least busy engine was chosen")
        }
        Counter::MatchedNothing => ("0", "none", "the chosen engine had nothing of the prompt"),
        Counter::MatchedQuarter => {
            ("1-25", "up to a quarter", "the chosen engine had up to 25 % of the prompt")
        }
        Counter::MatchedHalf => ("26-50", "up to half", "the chosen engine had up to 50 % of the prompt"),
        Counter::MatchedThreeQuarters => {
            ("51-75", "up to three quarters", "the chosen engine had up to 75 % of the prompt")
        }
        Counter::MatchedMore => ("76-100", "more", "the chosen engine had more than 75 % of the prompt"),
        Counter::ReceivedRequests => {
            ("received", "received", "requests received, also those for which there was no engine")
        }
        Counter::RequestsOk => ("answered", "answered", "requests answered"),
        Counter::RequestsFailed => ("failed", "failed", "requests that failed"),
        Counter::ChoicesFailed => ("no_choice", "no choice", "requests for which no engine could be chosen"),
        Counter::LoadsUnbalanced => (
            "unbalanced",
            "loads unbalanced",
            "choices among the least busy engines alone, because loads were too far apart",
        ),
        Counter::EventsMissed => {
            ("events_missed", "KV events missed", "KV events that its index missed, by their numbers")
        }
        _ => ("other", "other", "other"),
    }
}

impl OtherRouterRow {
    /// All that are scraped, in the order of their first scrape.
    pub fn all(cluster: &Cluster, now: Millis) -> Vec<Self> {
        OtherRouter::all(cluster, now).into_iter().map(|router| Self::of(cluster, router)).collect()
    }

    fn of(cluster: &Cluster, router: OtherRouter) -> Self {
        let tally = |Tally { counter, latest, session }| TallyRow { what: counter, latest, session };
        let rows = |of: Vec<Tally>| of.into_iter().map(tally).collect();
        let engines = router.engines.iter().filter_map(|of| {
            Some(RoutedEngineRow {
                worker: cluster.worker(of.worker)?.id,
                endpoint: cluster.endpoint_of(of.worker).map(str::to_owned),
                requests: of.requests,
                is_healthy: of.is_healthy,
            })
        });
        Self {
            engines: engines.collect(),
            name: router.name,
            role: router.role,
            last_ms: router.last_ms,
            window_s: router.window_s,
            choices: rows(router.choices),
            matched: rows(router.matched),
            counts: rows(router.counts),
            publishers: router.publishers,
            follows_events: router.follows_events,
        }
    }

    /// Which make it is.
    pub const fn make(&self) -> &'static str {
        match self.role {
            ProcessRole::ProductionStackRouter => "production-stack router",
            _ => "AIBrix gateway",
        }
    }

    /// What it counts, a line each, with an explanation.
    pub fn lines(&self) -> Vec<TallyLine> {
        let shares = |label, rows: &[TallyRow], of: &str| {
            let sum: u64 = rows.iter().map(|row| row.latest).sum();
            let session: u64 = rows.iter().map(|row| row.session).sum();
            let part =
                |row: &TallyRow| format!("{} {}", percent(row.latest as f64 / sum as f64), words(row.what).1);
            let explain = |row: &TallyRow| {
                let (_, name, what) = words(row.what);
                format!("{name}: {what}: {} of {}", count(row.latest), count(sum))
            };
            let parts: Vec<String> = rows.iter().map(part).collect();
            let mut title: Vec<String> = rows.iter().map(explain).collect();
            title.push(format!("{} since it was first scraped", plural(session, of, &format!("{of}s"))));
            let text = match sum {
                0 => format!("no {of} in this time"),
                sum => format!("{}, of {}", parts.join(" · "), plural(sum, of, &format!("{of}s"))),
            };
            TallyLine { label, text, title: title.join(".\n") }
        };
        let mut lines = Vec::new();
        if !self.choices.is_empty() {
            lines.push(shares("Chosen", &self.choices, "choice"));
        }
        if !self.matched.is_empty() {
            lines.push(shares("Prompt matched", &self.matched, "choice"));
        }
        if !self.counts.is_empty() {
            let part = |row: &TallyRow| format!("{} {}", words(row.what).1, count(row.latest));
            let explain = |row: &TallyRow| {
                format!("{}: {} since it was first scraped", words(row.what).2, count(row.session))
            };
            lines.push(TallyLine {
                label: "Requests",
                text: self.counts.iter().map(part).collect::<Vec<_>>().join(" · "),
                title: self.counts.iter().map(explain).collect::<Vec<_>>().join(".\n"),
            });
        }
        lines.extend(self.index_line());
        lines.extend(self.engines_line());
        lines
    }

    fn index_line(&self) -> Option<TallyLine> {
        let text = match (self.follows_events, self.publishers) {
            (None, None) => return None,
            (Some(false), _) => "follows its own choices, not the engines' KV events".to_owned(),
            (_, Some(n)) => format!("follows the KV events of {}", plural(n, "engine", "engines")),
            (Some(true), None) => "follows the engines' KV events".to_owned(),
        };
        let title = "What its index of cached prefixes is made of. An index of its own choices does not know what engines evicted";
        Some(TallyLine { label: "Index", text, title: title.to_owned() })
    }

    fn engines_line(&self) -> Option<TallyLine> {
        if self.engines.is_empty() {
            return None;
        }
        let known: Vec<u64> = self.engines.iter().filter_map(|of| of.requests).collect();
        let running = if known.is_empty() { UNKNOWN.to_owned() } else { count(known.iter().sum()) };
        let left_out = self.engines.iter().filter(|of| of.is_healthy == Some(false)).count() as u64;
        let left_out = match left_out {
            0 => String::new(),
            n => format!(", {} left out as not healthy", count(n)),
        };
        let each = |of: &RoutedEngineRow| {
            let requests = of.requests.map_or(UNKNOWN.to_owned(), count);
            let name = of.endpoint.clone().unwrap_or_else(|| of.worker.to_string());
            let health = if of.is_healthy == Some(false) { ", not healthy" } else { "" };
            format!("{name}: {requests} running{health}")
        };
        Some(TallyLine {
            label: "Engines",
            text: format!("{running} running on {}{left_out}", count(self.engines.len() as u64)),
            title: self.engines.iter().map(each).collect::<Vec<_>>().join("\n"),
        })
    }
}

/// A line of figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TallyLine {
    /// What they are of.
    pub label: &'static str,
    /// The figures, each with its unit.
    pub text: String,
    /// What each means, and its denominator.
    pub title: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Seq, WorkerIx};
    use radixscope_model::record::{Entry, Gauge, Record, Scrape, WorkerFigures};

    fn cluster(scrapes: impl IntoIterator<Item = Scrape>) -> Cluster {
        let mut cluster = Cluster::default();
        let mut records = vec![Record::new_worker(WorkerIx(0), Worker::new(7, 0), "", "")];
        records.push(Record::Endpoint { worker: WorkerIx(0), name: "10.0.0.7:8000".into() });
        records.extend(scrapes.into_iter().map(|scrape| Record::Scrape(Box::new(scrape))));
        for record in records {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(seq.0 * 1_000), record });
        }
        cluster
    }

    fn lines(rows: &[OtherRouterRow]) -> Vec<(&'static str, String)> {
        rows.iter().flat_map(OtherRouterRow::lines).map(|line| (line.label, line.text)).collect()
    }

    #[test]
    fn figures_of_choices_have_their_denominators_and_what_is_not_reported_is_left_out() {
        let scrape = |n: f64| Scrape {
            counters: vec![
                (Counter::ChosenByPrefix, 3.0 * n),
                (Counter::PrefixSkipped, 0.0),
                (Counter::NoPrefix, n),
                (Counter::EventsMissed, 2.0),
            ],
            gauges: vec![(Gauge::ConnectedPublishers, 2.0), (Gauge::IndexFollowsEvents, 1.0)],
            ..Scrape::new("gateway", ProcessRole::AibrixGateway)
        };
        let cluster = cluster([scrape(0.0), scrape(2.0)]);
        let rows = OtherRouterRow::all(&cluster, Millis(5_000));
        let expected = [
            ("Chosen", "75 % by prefix · 0 % prefix skipped · 25 % no prefix, of 8 choices".to_owned()),
            ("Requests", "KV events missed 0".to_owned()),
            ("Index", "follows the KV events of 2 engines".to_owned()),
        ];
        assert_eq!(lines(&rows), expected);
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(json["choices"][0]["what"], "by_prefix");
        assert_eq!(json["role"], "aibrix_gateway");
    }

    #[test]
    fn requests_of_engines_are_unknown_before_the_first_and_no_share_of_nothing_is_shown() {
        let figures = |requests| WorkerFigures {
            active_requests: requests,
            registered: Some(false),
            ..WorkerFigures::new(WorkerIx(0))
        };
        let scrape = |requests| Scrape {
            workers: vec![figures(requests)],
            ..Scrape::new("router", ProcessRole::ProductionStackRouter)
        };
        let shown = |requests| lines(&OtherRouterRow::all(&cluster([scrape(requests)]), Millis(5_000)));
        let text = |running: &str| format!("{running} running on 1, 1 left out as not healthy");
        assert_eq!(shown(None), [("Engines", text(UNKNOWN))]);
        assert_eq!(shown(Some(3)), [("Engines", text("3"))]);
        let idle = Scrape {
            counters: vec![(Counter::ChosenByPrefix, 3.0)],
            ..Scrape::new("gateway", ProcessRole::AibrixGateway)
        };
        let rows = OtherRouterRow::all(&cluster([idle]), Millis(5_000));
        assert_eq!(lines(&rows), [("Chosen", "no choice in this time".to_owned())]);
    }
}
