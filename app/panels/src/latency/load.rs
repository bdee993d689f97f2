//! Throughput, errors, queues, lengths, the router's own work, and what became of KV events: each with its source.

use std::borrow::Cow;

use radixscope_insight::latency::{
    self, Counts, ENABLE_FRONTEND, Errors, EventCount, Quantity, RequestGauge, Times,
};
use radixscope_model::id::Millis;
use radixscope_model::number_format;
use radixscope_state::cluster::Cluster;

use crate::format;

/// What is counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// What is reported, in its order.
    pub rows: Vec<LoadRow>,
    /// What is not; `None`: all is reported.
    pub absent: Option<AbsentFigures>,
    /// What became of KV events; empty where no frontend counts them.
    pub events: Vec<EventRow>,
}

/// A line: what, how much, from where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadRow {
    /// Its name in the page's document.
    pub id: Cow<'static, str>,
    /// What is counted.
    pub what: Cow<'static, str>,
    /// How much.
    pub value: String,
    /// From where.
    pub source: String,
}

/// What no source reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbsentFigures {
    /// How many figures.
    pub heading: String,
    /// Which, each with the setting that would bring them.
    pub by_setting: Vec<(String, String)>,
}

/// KV events of one kind and fate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRow {
    /// Which.
    pub what: &'static str,
    /// Whether there are some in the last minute that should not be.
    pub is_bad: bool,
    /// In the last minute.
    pub latest: String,
    /// In the session.
    pub session: String,
}

/// The same before what is not reported is told from the rest.
struct Figure {
    id: Cow<'static, str>,
    what: Cow<'static, str>,
    /// `None`: not reported.
    value: Option<String>,
    /// Where it is not reported, what would report it.
    source: String,
}

impl Load {
    /// Over the minute before `now`.
    pub fn of(cluster: &Cluster, now: Millis) -> Self {
        let counts = latency::counts(cluster, now);
        let mut figures = of_counts(&counts);
        figures.extend(latency::request_gauges(cluster).into_iter().map(of_gauge));
        for (quantity, id, what, since) in [
            (Quantity::InputTokens, "input", "Prompt length p50 / p95", ""),
            (Quantity::OutputTokens, "output", "Output length p50 / p95", ""),
            (Quantity::RouterOverhead, "overhead", "Router overhead p50 / p95", "only from Dynamo 1.0; "),
        ] {
            let times = latency::latest(cluster, quantity, now);
            figures.push(of_quantity(id, what, since, quantity, &times));
        }
        let absent = AbsentFigures::of(&figures, counts.events.is_empty());
        Self {
            absent,
            rows: figures.into_iter().filter_map(Figure::reported).collect(),
            events: counts.events.into_iter().map(EventRow::of).collect(),
        }
    }
}

impl Figure {
    fn reported(self) -> Option<LoadRow> {
        Some(LoadRow { id: self.id, what: self.what, value: self.value?, source: self.source })
    }
}

impl AbsentFigures {
    /// What no source reports, by the setting that would bring it.
    fn of(figures: &[Figure], lacks_events: bool) -> Option<Self> {
        let events = lacks_events.then(|| {
            (format!("only from Dynamo 1.0; {ENABLE_FRONTEND}"), "KV events in the router".to_owned())
        });
        let figures = figures.iter().filter(|figure| figure.value.is_none());
        let figures = figures.map(|figure| (figure.source.clone(), figure.what.to_string()));
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for (setting, what) in figures.chain(events) {
            match all.iter_mut().find(|(known, _)| *known == setting) {
                Some((_, same)) => same.push(what),
                None => all.push((setting, vec![what])),
            }
        }
        let count: usize = all.iter().map(|(_, what)| what.len()).sum();
        (count > 0).then(|| Self {
            heading: format!("{} not reported", format::plural(count as u64, "figure", "figures")),
            by_setting: all.into_iter().map(|(setting, what)| (what.join(" · "), setting)).collect(),
        })
    }
}

impl EventRow {
    fn of(event: EventCount) -> Self {
        Self {
            what: event.what,
            is_bad: !event.is_good && event.latest > 0.0,
            latest: format::count(event.latest as u64),
            session: format::count(event.session as u64),
        }
    }
}

fn of_counts(counts: &Counts) -> Vec<Figure> {
    let absent = || format!("{ENABLE_FRONTEND}, or a log that reports when requests end");
    let throughput = counts.throughput.as_ref();
    let from = || throughput.map_or_else(absent, |t| t.source.to_owned());
    let errors = counts.errors.map(|errors| share_text(errors, "ended"));
    let session = counts.session_errors.map_or_else(absent, |e| format!("session: {}", share_text(e, "")));
    vec![
        Figure {
            id: "requests".into(),
            what: "Requests ended".into(),
            value: throughput.map(|t| format!("{}/s", number_format::digits(t.requests_per_s))),
            source: from(),
        },
        Figure {
            id: "tokens".into(),
            what: "Output tokens".into(),
            value: throughput
                .and_then(|t| t.output_tokens_per_s)
                .map(|n| format!("{}/s", number_format::digits(n))),
            source: from(),
        },
        Figure { id: "errors".into(), what: "Errors".into(), value: errors, source: session },
    ]
}

fn share_text(errors: Errors, of: &str) -> String {
    let share = errors.share().map_or(String::new(), |share| format!("{}, ", format::percent(share)));
    let text = format!("{share}{} of {} {of}", format::count(errors.failed), format::count(errors.of));
    text.trim_end().to_owned()
}

fn of_gauge(gauge: RequestGauge) -> Figure {
    Figure {
        id: gauge.id.into(),
        what: gauge.what.into(),
        value: gauge.requests.map(|n| format::count(n.round().max(0.0) as u64)),
        source: gauge.source.trim_start_matches("absent: ").to_owned(),
    }
}

fn of_quantity(
    id: &'static str,
    what: &'static str,
    since: &str,
    quantity: Quantity,
    all: &[Times],
) -> Figure {
    let first = all.first();
    let value = first.map(|times| match times.quantiles {
        Some([p50, p95, _]) => {
            format!(
                "{} / {}",
                quantity.range_text(&p50).replace(" tokens", ""),
                quantity.range_text(&p95).replacen(" tokens–", "–", 1)
            )
        }
        None => "no sample".to_owned(),
    });
    let source = first.map_or_else(
        || format!("{since}{ENABLE_FRONTEND}"),
        |times| format!("{}, {}", times.share_text(), times.source.to_text()),
    );
    Figure { id: id.into(), what: what.into(), value, source }
}
