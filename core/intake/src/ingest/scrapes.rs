//! Counters of processes over their restarts: a process that restarts counts from 0 again, and what it counted before
//! is added, so that the records' sums never fall.

use hashbrown::HashMap;

use radixscope_model::record::{Counter, Gauge, Histogram, Scrape};
use radixscope_state::cluster::MAX_PROCESSES;

/// What is remembered of each process.
#[derive(Default)]
pub(super) struct Scrapes {
    processes: HashMap<String, ProcessHistory>,
}

#[derive(Default)]
struct ProcessHistory {
    restarts: u32,
    instance: Option<u64>,
    uptime: Option<f64>,
    /// Whether there was a scrape of which a part was not understood: what was not in it did not stand at 0.
    was_partial: bool,
    counters: Vec<(Counter, Count)>,
    histograms: Vec<HistogramHistory>,
}

/// A counter at the last scrape, and what earlier processes of that name had counted.
#[derive(Clone, Copy, Default)]
struct Count {
    last: f64,
    before: f64,
}

impl Count {
    fn sum(self) -> f64 {
        self.before + self.last
    }
}

/// The same of a distribution.
struct HistogramHistory {
    last: Histogram,
    before: Histogram,
}

impl Scrapes {
    /// A scrape as it is recorded, over restarts; `None`: there are [`MAX_PROCESSES`] processes already.
    pub(super) fn scraped(&mut self, mut scrape: Scrape) -> Option<Scrape> {
        if !self.processes.contains_key(&scrape.process) {
            if self.processes.len() == MAX_PROCESSES {
                return None;
            }
            self.processes.insert(scrape.process.clone(), ProcessHistory::default());
        }
        let known = self.processes.get_mut(&scrape.process)?;
        if known.has_restarted(&scrape) {
            known.restarts = known.restarts.saturating_add(1);
            known.begin_anew();
        }
        known.instance = scrape.instance;
        known.uptime = uptime(&scrape);
        scrape.histograms.retain(|h| h.counts.len() == h.bounds.len() + 1);
        scrape.histograms.iter_mut().for_each(|histogram| known.accumulate(histogram));
        let counters = &mut scrape.counters;
        counters.iter_mut().for_each(|(counter, value)| *value = known.count(*counter, *value));
        // Dynamo shows some counters only once they have counted, and a part may not have been understood: what was
        // counted before is not forgotten.
        let missing =
            |&&(counter, _): &&(Counter, Count)| counters.iter().all(|(known, _)| *known != counter);
        let retained: Vec<_> =
            known.counters.iter().filter(missing).map(|&(counter, count)| (counter, count.sum())).collect();
        counters.extend(retained);
        let missing = |h: &&HistogramHistory| scrape.histograms.iter().all(|known| known.kind != h.last.kind);
        let retained: Vec<_> = known.histograms.iter().filter(missing).map(HistogramHistory::sum).collect();
        scrape.histograms.extend(retained);
        known.was_partial = !scrape.is_whole;
        scrape.restarts = known.restarts;
        Some(scrape)
    }
}

impl ProcessHistory {
    /// Another process under the same name: it has another id, a shorter uptime, or a counter fell.
    fn has_restarted(&self, scrape: &Scrape) -> bool {
        let is_other = self.instance.zip(scrape.instance).is_some_and(|(old, new)| old != new);
        let is_younger = self.uptime.zip(uptime(scrape)).is_some_and(|(old, new)| new < old);
        let fell = |&(counter, value): &(Counter, f64)| {
            self.counters.iter().any(|(known, count)| *known == counter && value < count.last)
        };
        is_other || is_younger || scrape.counters.iter().any(fell)
    }

    fn begin_anew(&mut self) {
        for (_, count) in &mut self.counters {
            count.before += std::mem::take(&mut count.last);
        }
        for histogram in &mut self.histograms {
            histogram.begin_anew();
        }
    }

    fn count(&mut self, counter: Counter, value: f64) -> f64 {
        let at = self.counters.iter().position(|(known, _)| *known == counter).unwrap_or_else(|| {
            // What it counted while it was not understood is not known to be new.
            let before = if self.was_partial { -value } else { 0.0 };
            self.counters.push((counter, Count { last: 0.0, before }));
            self.counters.len() - 1
        });
        let count = &mut self.counters[at].1;
        count.last = value;
        count.sum()
    }

    fn accumulate(&mut self, histogram: &mut Histogram) {
        let known = self.histograms.iter().position(|known| known.last.kind == histogram.kind);
        let at = match known {
            Some(at) if self.histograms[at].last.bounds == histogram.bounds => at,
            Some(at) => {
                self.histograms[at] = HistogramHistory::new(histogram);
                at
            }
            None => {
                self.histograms.push(HistogramHistory::new(histogram));
                self.histograms.len() - 1
            }
        };
        self.histograms[at].accumulate(histogram);
    }
}

impl HistogramHistory {
    fn new(histogram: &Histogram) -> Self {
        let none = Histogram { counts: vec![0; histogram.counts.len()], sum: 0.0, ..histogram.clone() };
        Self { last: none.clone(), before: none }
    }

    /// What was counted so far is of an earlier process.
    fn begin_anew(&mut self) {
        self.before = self.sum();
        self.last.counts.fill(0);
        self.last.sum = 0.0;
    }

    /// What was counted so far, over restarts.
    fn sum(&self) -> Histogram {
        let mut sum = self.last.clone();
        for (count, before) in sum.counts.iter_mut().zip(&self.before.counts) {
            *count = count.saturating_add(*before);
        }
        sum.sum += self.before.sum;
        sum
    }

    fn accumulate(&mut self, histogram: &mut Histogram) {
        self.last = histogram.clone();
        *histogram = self.sum();
    }
}

fn uptime(scrape: &Scrape) -> Option<f64> {
    scrape.gauges.iter().find(|(gauge, _)| *gauge == Gauge::UptimeSeconds).map(|&(_, seconds)| seconds)
}

#[cfg(test)]
#[path = "scrapes_tests.rs"]
mod tests;
