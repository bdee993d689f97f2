//! Recorded metrics: whole texts, or a whole text now and then and the changed lines in between.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::files;

/// One scrape of one process: the value of each series.
#[derive(Clone, Debug)]
pub struct Scrape {
    /// When, Unix seconds.
    pub at_s: f64,
    /// Of which process.
    pub process: String,
    series: BTreeMap<String, f64>,
}

/// Count and sum of a histogram.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Histogram {
    /// How many.
    pub count: u64,
    /// Of what sum.
    pub sum: f64,
}

impl Histogram {
    /// The mean; `None` without a sample.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum + other.sum }
    }
}

impl Scrape {
    /// All series of a histogram together; `None`: the process has none of that name.
    pub fn histogram(&self, name: &str) -> Option<Histogram> {
        let total = |suffix: &str| {
            let name = format!("{name}{suffix}");
            let of_name = self.series.iter().filter(|(series, _)| series.split('{').next() == Some(&name));
            of_name.map(|(_, value)| *value).reduce(|a, b| a + b)
        };
        Some(Histogram { count: total("_count")? as u64, sum: total("_sum")? })
    }

    /// Any value of a series of that name.
    pub fn gauge(&self, name: &str) -> Option<f64> {
        let mut of_name = self.series.iter().filter(|(series, _)| series.split('{').next() == Some(name));
        of_name.next().map(|(_, value)| *value)
    }
}

/// Reads the scrapes of a recording, in order.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn read(path: &Path) -> Result<Vec<Scrape>> {
    let mut latest: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    let mut scrapes = Vec::new();
    for line in files::lines(path)? {
        let line: Value = serde_json::from_str(&line).context("a scrape")?;
        let (Some(at_s), Some(process)) = (line["t"].as_f64(), line["src"].as_str()) else { continue };
        if line.get("error").is_some() {
            continue;
        }
        let series = latest.entry(process.to_owned()).or_default();
        if let Some(text) = line["text"].as_str() {
            *series = text.lines().filter_map(sample).collect();
        }
        for changed in line["d"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            match changed.strip_prefix('-') {
                Some(gone) => drop(series.remove(gone)),
                None => series.extend(sample(changed)),
            }
        }
        scrapes.push(Scrape { at_s, process: process.to_owned(), series: series.clone() });
    }
    Ok(scrapes)
}

fn sample(line: &str) -> Option<(String, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    (!line.starts_with('#')).then_some(())?;
    Some((series.to_owned(), value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_summed_over_its_labels() {
        let text = "# TYPE h histogram\nh_sum{a=\"1\"} 1.5\nh_sum{a=\"2\"} 2\nh_count{a=\"1\"} 2\nh_count{a=\"2\"} 1";
        let series = text.lines().filter_map(sample).collect();
        let scrape = Scrape { at_s: 0.0, process: "frontend".into(), series };
        let histogram = scrape.histogram("h").unwrap();
        assert_eq!(histogram, Histogram { count: 3, sum: 3.5 });
        assert_eq!(scrape.histogram("other"), None);
    }
}
