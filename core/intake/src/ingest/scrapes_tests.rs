//! Processes under hand-made scrapes: windows, restarts, and what is new when it first appears.

use super::*;
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::HistogramKind;
use radixscope_model::record::{Entry, ProcessRole, Record};
use radixscope_state::cluster::{Cluster, ProcessState};

const NOW: u64 = 1_800_000_000_000;

#[derive(Default)]
struct Process {
    scrapes: Scrapes,
    cluster: Cluster,
    at: u64,
}

#[derive(Clone, Copy, Default)]
struct Says<'a> {
    requests: Option<f64>,
    uptime_s: Option<f64>,
    instance: Option<u64>,
    ttft: Option<(&'a [u64], f64)>,
    is_broken: bool,
}

const BOUNDS: [f64; 2] = [0.1, 1.0];

impl Process {
    fn new() -> Self {
        Self { at: NOW, ..Self::default() }
    }

    fn state(&self) -> &ProcessState {
        &self.cluster.processes()[0]
    }

    /// A scrape, two seconds after the last one.
    fn says(&mut self, says: Says<'_>) -> &mut Self {
        let gauges: Vec<_> = says.uptime_s.map(|value| (Gauge::UptimeSeconds, value)).into_iter().collect();
        let counters: Vec<_> = says.requests.map(|value| (Counter::RequestsOk, value)).into_iter().collect();
        let histogram = |(counts, sum): (&[u64], f64)| Histogram {
            kind: HistogramKind::Ttft,
            bounds: BOUNDS.to_vec(),
            counts: counts.to_vec(),
            sum,
        };
        let scrape = Scrape {
            instance: says.instance,
            is_whole: !says.is_broken,
            gauges,
            counters,
            histograms: says.ttft.map(histogram).into_iter().collect(),
            ..Scrape::new("fe", ProcessRole::Frontend)
        };
        self.scraped(scrape);
        self
    }

    fn scraped(&mut self, scrape: Scrape) {
        self.at += 2_000;
        let record = Record::Scrape(Box::new(self.scrapes.scraped(scrape).expect("one process")));
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
    }

    fn requests(&mut self, value: f64) -> &mut Self {
        self.says(Says { requests: Some(value), ..Says::default() })
    }

    fn counted(&self) -> Option<f64> {
        self.state().counted(Counter::RequestsOk)
    }
}

#[test]
fn what_a_process_had_counted_before_the_first_scrape_is_not_ours() {
    let mut process = Process::new();
    process.requests(1_000.0);
    assert_eq!(
        (process.counted(), process.state().counter_value(Counter::RequestsOk)),
        (Some(0.0), Some(1_000.0))
    );
    process.requests(1_007.0);
    assert_eq!(process.counted(), Some(7.0));
}

#[test]
fn a_counter_that_appears_later_rose_from_zero_unless_a_scrape_was_broken() {
    let mut process = Process::new();
    process.says(Says::default()).requests(3.0);
    assert_eq!(process.counted(), Some(3.0));
    let mut process = Process::new();
    process.says(Says { is_broken: true, ..Says::default() }).requests(3.0);
    assert_eq!(process.counted(), Some(0.0));
    let mut process = Process::new();
    process.says(Says::default()).says(Says { ttft: Some((&[1, 2, 0], 1.5)), ..Says::default() });
    let all = process.state().session(HistogramKind::Ttft).expect("offered");
    assert_eq!((all.count(), all.sum()), (3, 1.5));
}

#[test]
fn a_restart_is_noticed_by_counters_uptime_or_id_and_nothing_is_counted_twice() {
    let full = Says { requests: Some(10.0), uptime_s: Some(100.0), instance: Some(1), ..Says::default() };
    for after in [
        Says { requests: Some(4.0), uptime_s: Some(102.0), ..full },
        Says { requests: Some(12.0), uptime_s: Some(1.0), ..full },
        Says { requests: Some(12.0), uptime_s: Some(102.0), instance: Some(2), ..full },
    ] {
        let mut process = Process::new();
        process.requests(0.0).says(full).says(after);
        assert_eq!(process.state().restarts, 1);
        assert_eq!(process.state().restarted_ms, Some(Millis(process.at)));
        assert_eq!(process.counted(), Some(10.0 + after.requests.unwrap()));
    }
    let mut process = Process::new();
    process.says(full).says(Says { requests: Some(12.0), uptime_s: Some(102.0), ..full });
    assert_eq!((process.state().restarts, process.counted()), (0, Some(2.0)));
}

#[test]
fn a_window_holds_what_came_in_it() {
    let mut process = Process::new();
    for i in 0..200u64 {
        process.says(Says {
            requests: Some(i as f64),
            ttft: Some((&[i, 0, 0], i as f64 / 20.0)),
            ..Says::default()
        });
    }
    let now = Millis(process.at);
    let since = |seconds: u64| Millis(process.at - seconds * 1_000);
    assert_eq!(process.state().counted_since(Counter::RequestsOk, since(60)), Some(30.0));
    let last = process.state().distribution(HistogramKind::Ttft, since(60), now).expect("offered");
    let before = process.state().distribution(HistogramKind::Ttft, since(120), since(60)).expect("offered");
    assert_eq!((last.count(), before.count()), (30, 30));
    assert!((last.mean().unwrap() - 0.05).abs() < 1e-9);
    // Longer ago than five minutes one scrape each half a minute is kept, here that of 336 s ago; of a time before the
    // first scrape, all.
    assert_eq!(process.state().counted_since(Counter::RequestsOk, since(350)), Some(168.0));
    assert_eq!(process.state().counted_since(Counter::RequestsOk, since(600)), Some(199.0));
    assert_eq!(process.state().session(HistogramKind::Ttft).unwrap().count(), 199);
    assert_eq!(process.state().counted_since(Counter::Migrations, since(60)), None);
}

#[test]
fn a_histogram_with_other_buckets_begins_anew() {
    let mut process = Process::new();
    process.says(Says { ttft: Some((&[5, 0, 0], 0.1)), ..Says::default() });
    let other = Histogram { kind: HistogramKind::Ttft, bounds: vec![0.5], counts: vec![7, 0], sum: 1.0 };
    process.scraped(Scrape { histograms: vec![other], ..Scrape::new("fe", ProcessRole::Frontend) });
    assert_eq!(process.state().session(HistogramKind::Ttft).unwrap().count(), 7);
}
