//! Blocks stored and removed per second over time, one band per worker.

use radixscope_export::panel::rates::{self, RatesChart};
use radixscope_icicle::palette::{Pattern, label, token};
use radixscope_insight::block_rates::{BandWorkers, BlockRates, OTHERS};
use radixscope_insight::time_range::{TimePoint, TimeRange, TimeSpan};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_state::cluster::TimeSteps;

use crate::format::UNKNOWN;
use crate::legend::{Hidden, LegendEntry};

/// Key in the address: the bands that are hidden, workers by their ids.
pub const HIDDEN_KEY: &str = "rates.hide";
/// So that ECharts does not hold up the page for long or often, as it draws anew with each point: 50 lines of 300 points take it 165 ms,
/// of 60 points 46 ms, of 30 points six tenths of that.
const MAX_POINTS: usize = 2_500;
/// So many steps are drawn as one point, where single ones are too many.
const STEPS_PER_POINT: [usize; 4] = [1, 2, 5, 10];

/// Blocks stored and removed per second, mean of the last seconds; unknown where they are not current.
pub fn means(shown: &ViewContext<'_>, now: Millis, is_current: bool) -> [String; 2] {
    match is_current {
        true => rates::means(shown, None, now),
        false => [UNKNOWN, UNKNOWN].map(str::to_owned),
    }
}

/// What the means are of.
pub fn means_title() -> String {
    format!("All workers, {}", rates::mean_window())
}

/// A button for each band; the colours are those of so many workers.
pub fn legend(shown: &ViewContext<'_>, bands: &[BandWorkers], workers: usize) -> Vec<LegendEntry> {
    let entry = |band: &BandWorkers| {
        let (name, swatch, colour) = match band.worker {
            Some(worker) => {
                (label(worker), Pattern::of(worker.slot()).class(), token(worker.slot(), workers))
            }
            None => (OTHERS.to_owned(), "", "--tree-shared".to_owned()),
        };
        LegendEntry { id: band.id(shown), name, swatch, colour }
    };
    bands.iter().map(entry).collect()
}

/// Length of the chart's points with these bands, milliseconds.
pub fn point_ms(shown: &ViewContext<'_>, bands: &[BandWorkers], hidden: &Hidden, span: TimeSpan) -> u64 {
    point_ms_of(bands.iter().filter(|band| !hidden.has(&band.id(shown))).count(), span)
}

/// What a point is, where it is not one second.
pub fn points_text(point_ms: u64) -> String {
    match point_ms / 1_000 {
        0..=1 => String::new(),
        seconds => format!("means of {seconds} s"),
    }
}

/// The time that the chart shows. It moves on when a point is complete, which with many bands takes seconds: drawing the chart
/// takes tens of milliseconds, and until then it would be nearly the same. A moment of the past (`is_back`) and a time that was chosen
/// are shown as they are.
pub fn whole_points(
    before: Option<TimeSpan>,
    span: TimeSpan,
    range: TimeRange,
    is_back: bool,
    point_ms: u64,
) -> TimeSpan {
    if is_back || !matches!(range.to, TimePoint::Ago(_)) {
        return span;
    }
    let point_ms = point_ms.max(1);
    let place = |span: &TimeSpan| (span.until.0 / point_ms, span.until.since(span.from));
    before.filter(|before| place(before) == place(&span)).unwrap_or(span)
}

/// How many steps one point stands for, where so many bands have so many steps each.
fn steps_per_point(bands: usize, steps: usize) -> usize {
    let fits = |per_point: &&usize| (2 * bands * steps).div_ceil(**per_point) <= MAX_POINTS;
    let [.., most] = STEPS_PER_POINT;
    STEPS_PER_POINT.iter().find(fits).copied().unwrap_or(most)
}

/// Length of a point in a chart of `span` with so many bands, milliseconds.
fn point_ms_of(bands: usize, span: TimeSpan) -> u64 {
    let steps = TimeSteps::between(span.from, span.until, span.until);
    let of_step = steps.len_s() * 1_000;
    of_step * steps_per_point(bands, steps.begins().count()) as u64
}

/// The chart with no more points than are drawn: each the mean of its steps that are known.
pub fn drawn(rates: &RatesChart) -> RatesChart {
    let steps = steps_per_point(rates.bands.len(), rates.times.len());
    // Points begin at whole multiples of their length: their values stay the same while time goes on.
    let step_ms = rates.step_ms.max(1) * steps as u64;
    let is_first = |at: &usize| *at == 0 || rates.times[*at].0 / step_ms != rates.times[at - 1].0 / step_ms;
    let firsts: Vec<usize> = (0..rates.times.len()).filter(is_first).collect();
    let means = |values: &[Option<f64>]| {
        let mean = |(at, &first): (usize, &usize)| {
            let end = firsts.get(at + 1).copied().unwrap_or(values.len());
            let known = values.get(first..end).into_iter().flatten().flatten();
            let (sum, count) = known.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        firsts.iter().enumerate().map(mean).collect()
    };
    let band = |band: &BlockRates| BlockRates {
        worker: band.worker,
        stored: means(&band.stored),
        removed: means(&band.removed),
    };
    RatesChart {
        bands: rates.bands.iter().map(band).collect(),
        times: firsts.iter().map(|&at| rates.times[at]).collect(),
        step_ms,
        span: rates.span,
    }
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::WorkerIx;

    use super::*;

    #[test]
    fn many_bands_are_drawn_with_fewer_points() {
        let times: Vec<Millis> = (0..300).map(|s| Millis((s + 1_003) * 1_000)).collect();
        let band = |worker| BlockRates {
            worker: Some(WorkerIx(worker)),
            stored: (0..300)
                .map(|s| {
                    Some(if s == 20 { 10_000.0 } else { f64::from(s) })
                        .filter(|_| s != 3 && !(7..12).contains(&s))
                })
                .collect(),
            removed: vec![None; 300],
        };
        let of = |bands: u32| {
            let span = TimeSpan { from: Millis(1_003_000), until: Millis(1_303_000) };
            let rates = RatesChart {
                bands: (0..bands).map(band).collect(),
                times: times.clone(),
                step_ms: 1_000,
                span,
            };
            drawn(&rates)
        };
        let minutes = |minutes: u64| TimeSpan { from: Millis(0), until: Millis(minutes * 60_000) };
        assert_eq!(
            [(4, 5), (5, 5), (20, 5), (24, 5), (24, 1)].map(|(n, m)| point_ms_of(n, minutes(m))),
            [1_000, 2_000, 5_000, 10_000, 2_000]
        );
        assert_eq!(of(4).times.len(), 300);
        let many = of(20);
        assert_eq!((many.bands.len(), many.times.len(), many.step_ms), (20, 61, 5_000));
        // Points begin at multiples of 5 s; the first has the two seconds before the first such one.
        assert_eq!(many.times[..4], [1_003_000, 1_005_000, 1_010_000, 1_015_000].map(Millis));
        assert_eq!(many.bands[0].stored[..4], [Some(0.5), Some(4.25), None, Some(14.0)]);
        // The scale is of what is drawn: 20 times the mean of the five seconds with the peak.
        assert_eq!(many.highest(), 20.0 * (17.0 + 18.0 + 19.0 + 10_000.0 + 21.0) / 5.0);
        assert_eq!((many.times[60], many.bands[0].removed[60]), (Millis(1_300_000), None));
    }

    #[test]
    fn points_longer_than_a_second_are_named() {
        assert_eq!([0, 1_000, 2_000, 15_000].map(points_text), ["", "", "means of 2 s", "means of 15 s"]);
    }

    #[test]
    fn the_chart_moves_on_when_a_point_is_complete() {
        let at = |until: u64| TimeSpan { from: Millis(until - 300_000), until: Millis(until) };
        let live = TimeRange::last(300);
        let moved =
            |before, until, range, is_back| whole_points(Some(at(before)), at(until), range, is_back, 5_000);
        assert_eq!(moved(1_005_000, 1_009_000, live, false), at(1_005_000));
        assert_eq!(moved(1_005_000, 1_010_000, live, false), at(1_010_000));
        assert_eq!(moved(1_005_000, 1_009_000, live, true), at(1_009_000), "a moment of the past");
        assert_eq!(moved(1_005_000, 1_009_000, TimeRange::fixed(at(1_009_000)), false), at(1_009_000));
        let shorter = TimeSpan { from: Millis(949_000), until: Millis(1_009_000) };
        assert_eq!(whole_points(Some(at(1_005_000)), shorter, TimeRange::last(60), false, 5_000), shorter);
        assert_eq!(whole_points(None, at(1_009_000), live, false, 5_000), at(1_009_000));
    }
}
