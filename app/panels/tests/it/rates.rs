//! Blocks stored and removed per second: figures, legend and points of simulated clusters.

use radixscope_export::panel::rates::RatesChart;
use radixscope_insight::block_rates::{BlockRates, band_workers};
use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;
use radixscope_panels::format::{UNKNOWN, rate};
use radixscope_panels::legend::Hidden;
use radixscope_panels::rates::{drawn, legend, means, means_title, point_ms, points_text};
use radixscope_sim::{Config, Topology};
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

fn last(folded: &Folded, seconds: u64) -> TimeSpan {
    TimeSpan { from: Millis(folded.now.0 - seconds * 1_000), until: folded.now }
}

#[test]
fn means_are_of_the_last_ten_seconds_and_the_chart_has_a_band_for_each_worker() {
    let folded = Folded::demo(Topology::Aggregated, 90);
    let (shown, span) = (folded.shown(), last(&folded, 60));
    let chart = RatesChart::of(&shown, None, span, folded.now, |_| false);
    assert_eq!(chart.bands.len(), 3);
    // The chart's last ten seconds, all bands together.
    let end = chart.times.len();
    assert_eq!((chart.step_ms, chart.times[end - 1].0 + 1_000), (1_000, folded.now.0));
    let sum = |of: fn(&BlockRates) -> &Vec<Option<f64>>| {
        chart.bands.iter().flat_map(|band| &of(band)[end - 10..]).flatten().sum::<f64>() / 10.0
    };
    let [stored, removed] = means(&shown, folded.now, true);
    assert_eq!([stored, removed], [rate(sum(|band| &band.stored)), rate(sum(|band| &band.removed))]);
    assert_eq!(means(&shown, folded.now, false), [UNKNOWN; 2].map(str::to_owned), "not current");
    assert_eq!(means_title(), "All workers, mean of the last 10 s");
    let bands = band_workers(&shown, None, span.from);
    let entries = legend(&shown, &bands, 3);
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["W1", "W2", "W3"]);
    let ids: Vec<String> = folded.cluster.workers().iter().map(|worker| worker.id.to_string()).collect();
    assert_eq!(entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>(), ids);
    assert_ne!(entries[0].colour, entries[1].colour);
    // A hidden band is not drawn.
    let hidden = Hidden::parse(&ids[1]);
    let chart = RatesChart::of(&shown, None, span, folded.now, |id| hidden.has(id));
    let left: Vec<_> = chart.bands.iter().map(|band| band.worker.unwrap().to_string()).collect();
    assert_eq!(left, ["W1", "W3"]);
}

#[test]
fn with_seven_workers_points_are_means_of_two_seconds_and_with_one_of_them_single_seconds() {
    let folded = Folded::of(Config { workers: 7, ..Config::default() }, 60);
    let (shown, span) = (folded.shown(), last(&folded, 300));
    let bands = band_workers(&shown, None, span.from);
    let of_all = point_ms(&shown, &bands, &Hidden::default(), span);
    assert_eq!((of_all, points_text(of_all).as_str()), (2_000, "means of 2 s"));
    let chart = drawn(&RatesChart::of(&shown, None, span, folded.now, |_| false));
    assert!(chart.times[1..].windows(2).all(|pair| pair[1].since(pair[0]) == of_all), "{:?}", chart.times);
    let one = shown.worker_list().next();
    let bands = band_workers(&shown, one, span.from);
    let of_one = point_ms(&shown, &bands, &Hidden::default(), span);
    assert_eq!((of_one, points_text(of_one).as_str()), (1_000, ""));
}

#[test]
fn nothing_known_has_no_band_and_no_figure() {
    let nothing = Folded { cluster: Cluster::default(), now: Millis(START.0 + 600_000) };
    let shown = nothing.shown();
    assert_eq!(means(&shown, nothing.now, true), [UNKNOWN; 2].map(str::to_owned));
    let bands = band_workers(&shown, None, START);
    assert!(legend(&shown, &bands, 0).is_empty());
    assert!(RatesChart::of(&shown, None, last(&nothing, 300), nothing.now, |_| false).bands.is_empty());
}
