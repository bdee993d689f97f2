//! The samples of a soak as an SVG picture: charts one below the other along the same time, faults as bands behind them. Pure.

use std::fmt::Write as _;

use super::checkpoint::{PartLines, Sample};
use super::verdict::{memory_slope, warm};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const CHART: f64 = 110.0;
const SPACE: f64 = 42.0;
/// Between two parts.
const BREAK_S: f64 = 60.0;

/// A chart: a title with its unit, and lines.
struct Chart {
    title: &'static str,
    lines: Vec<Line>,
}

struct Line {
    name: &'static str,
    class: &'static str,
    /// Points of each part.
    parts: Vec<Vec<(f64, f64)>>,
}

/// Where the parts begin along the common time.
fn begins(parts: &[PartLines]) -> Vec<f64> {
    let mut at_s = 0.0;
    let begin = |part: &PartLines| {
        let began_s = at_s;
        at_s += part.samples.last().map_or(0.0, |sample| sample.at_s) + BREAK_S;
        began_s
    };
    parts.iter().map(begin).collect()
}

fn line(
    name: &'static str,
    class: &'static str,
    (parts, begins): (&[PartLines], &[f64]),
    of: impl Fn(&Sample) -> Option<f64>,
) -> Line {
    let points = |(part, began_s): (&PartLines, &f64)| {
        part.samples.iter().filter_map(|sample| Some((began_s + sample.at_s, of(sample)?))).collect()
    };
    Line { name, class, parts: parts.iter().zip(begins).map(points).collect() }
}

/// The line of the slope through the samples after each warm-up.
fn trend((parts, begins): (&[PartLines], &[f64])) -> Option<Line> {
    let per_hour = memory_slope(parts, |sample| sample.rss_bytes)?.per_x;
    let points = |(part, began_s): (&PartLines, &f64)| {
        let samples: Vec<&Sample> = warm(part).collect();
        let count = samples.len() as f64;
        let mean = |of: fn(&Sample) -> f64| samples.iter().map(|sample| of(sample)).sum::<f64>() / count;
        let (at_s, mb) = (mean(|sample| sample.at_s), mean(|sample| sample.rss_bytes as f64 / 1e6));
        let ends = samples.first().into_iter().chain(samples.last());
        ends.map(|end| (began_s + end.at_s, mb + per_hour * (end.at_s - at_s) / 3_600.0)).collect()
    };
    Some(Line { name: "trend", class: "b", parts: parts.iter().zip(begins).map(points).collect() })
}

fn charts(parts: &[PartLines], begins: &[f64]) -> Vec<Chart> {
    let of = (parts, begins);
    let number = |number: u64| Some(number as f64);
    let lost = |sample: &Sample| sample.planes.iter().map(|p| p.published.saturating_sub(p.received)).sum();
    let missed = |sample: &Sample| sample.planes.iter().map(|plane| plane.missed).sum();
    let mut memory =
        vec![line("memory", "a", of, |sample| number(sample.rss_bytes).map(|bytes| bytes / 1e6))];
    memory.extend(trend(of));
    memory.push(line("allocated", "c", of, |sample| number(sample.anonymous_bytes).map(|bytes| bytes / 1e6)));
    let chart = |title, lines| Chart { title, lines };
    vec![
        chart("Memory of the server, MB", memory),
        chart(
            "Open descriptors, threads, viewers",
            vec![
                line("descriptors", "a", of, |sample| number(sample.descriptors)),
                line("threads", "b", of, |sample| number(sample.threads)),
                line("viewers", "c", of, |sample| number(sample.viewers.present)),
            ],
        ),
        chart(
            "Gap between batches at viewers in ten seconds, ms",
            vec![
                line("longest", "b", of, |sample| sample.viewers.gap_max_ms.and_then(number)),
                line("p99", "a", of, |sample| sample.viewers.gap_p99_ms.and_then(number)),
            ],
        ),
        chart(
            "Messages lost",
            vec![
                line("published and not received", "b", of, move |sample| number(lost(sample))),
                line("counted by the server", "a", of, move |sample| number(missed(sample))),
            ],
        ),
        chart(
            "Recording, MB",
            vec![line("recording", "a", of, |sample| {
                sample.recording_bytes.and_then(number).map(|bytes| bytes / 1e6)
            })],
        ),
        chart(
            "Processor time of the server, % of a core",
            vec![Line { name: "server", class: "a", parts: cores(parts, begins) }],
        ),
    ]
}

/// Processor time between neighbouring samples.
fn cores(parts: &[PartLines], begins: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let of = |pair: &[Sample]| {
        let (before, after) = (&pair[0], &pair[1]);
        let percent = 100.0 * (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s);
        (after.at_s, percent)
    };
    let part = |(part, began_s): (&PartLines, &f64)| {
        part.samples.windows(2).map(of).map(|(at_s, percent)| (began_s + at_s, percent)).collect()
    };
    parts.iter().zip(begins).map(part).collect()
}

/// The picture.
pub(super) fn svg(parts: &[PartLines]) -> String {
    let begins = begins(parts);
    let lasts = parts.iter().zip(&begins).filter_map(|(p, began_s)| Some(began_s + p.samples.last()?.at_s));
    let end_s = lasts.fold(1.0, f64::max);
    let x = |at_s: f64| LEFT + at_s / end_s * (WIDTH - LEFT - RIGHT);
    let charts = charts(parts, &begins);
    let height = TOP + charts.len() as f64 * (CHART + SPACE) + 10.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<style>svg{{background:#fff;color:#222}}.a,.b,.c{{fill:none;stroke-width:1.3}}\
         .a{{stroke:#1f5fbf}}.b{{stroke:#c2410c}}.c{{stroke:#15803d}}.fault{{fill:#c2410c;opacity:.13}}\
         .axis{{stroke:#999;stroke-width:.5}}</style>\n<text x=\"{LEFT}\" y=\"18\" font-size=\"14\">radixscope, \
         soak of {:.2} h; bands: a fault in force</text>\n",
        end_s / 3_600.0
    );
    let bands = parts.iter().zip(&begins).flat_map(|(part, began_s)| bands(part, *began_s));
    for (from_s, to_s, faults) in bands {
        let (from, to) = (x(from_s), x(to_s));
        let tall = height - TOP - SPACE / 2.0;
        let _ = writeln!(
            svg,
            "<rect class=\"fault\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{tall:.1}\"><title>{}</title></rect>",
            to - from,
            escaped(&faults)
        );
    }
    for (number, chart) in charts.iter().enumerate() {
        draw(&mut svg, chart, TOP + number as f64 * (CHART + SPACE), end_s, x);
    }
    svg + "</svg>\n"
}

/// From when to when which faults were in force.
fn bands(part: &PartLines, began_s: f64) -> Vec<(f64, f64, String)> {
    let mut before_s = 0.0;
    let mut bands: Vec<(f64, f64, String)> = Vec::new();
    for sample in &part.samples {
        let (from_s, to_s) = (began_s + before_s, began_s + sample.at_s);
        before_s = sample.at_s;
        if sample.faults.is_empty() {
            continue;
        }
        let faults = sample.faults.join(", ");
        match bands.last_mut().filter(|last| last.1 == from_s && last.2 == faults) {
            Some(last) => last.1 = to_s,
            None => bands.push((from_s, to_s, faults)),
        }
    }
    bands
}

fn draw(svg: &mut String, chart: &Chart, top: f64, end_s: f64, x: impl Fn(f64) -> f64) {
    let bottom = top + CHART;
    let values = || chart.lines.iter().flat_map(|line| line.parts.iter().flatten().map(|point| point.1));
    let most = round_up(values().fold(0.0, f64::max));
    let y = |value: f64| bottom - value / most * CHART;
    let right = WIDTH - RIGHT;
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.1}\">{}", top - 6.0, escaped(chart.title));
    for line in chart.lines.iter().filter(|_| chart.lines.len() > 1) {
        let colour = match line.class {
            "a" => "#1f5fbf",
            "b" => "#c2410c",
            _ => "#15803d",
        };
        let _ = write!(svg, "<tspan dx=\"12\" fill=\"{colour}\">— {}</tspan>", escaped(line.name));
    }
    svg.push_str("</text>\n");
    for value in [0.0, most / 2.0, most] {
        let at = y(value);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {at:.1}H{right}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let step_s = round_up(end_s / 8.0 / 60.0).max(1.0) * 60.0;
    let mut at_s = 0.0;
    while at_s <= end_s {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{} min</text>",
            x(at_s),
            bottom + 14.0,
            at_s / 60.0
        );
        at_s += step_s;
    }
    for line in &chart.lines {
        for part in line.parts.iter().filter(|part| !part.is_empty()) {
            let points: Vec<String> =
                part.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
            let _ = writeln!(svg, "<polyline class=\"{}\" points=\"{}\"/>", line.class, points.join(" "));
        }
    }
}

/// The next number of one digit and zeros, or of two where the second is 5.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * unit).find(|step| *step >= value).unwrap_or(10.0 * unit)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(samples: u32) -> PartLines {
        let sample = |n: u32| Sample {
            at_s: 10.0 * f64::from(n + 1),
            rss_bytes: 50_000_000 + u64::from(n),
            faults: if n == 1 || n == 2 { vec!["NATS <killed>".to_owned()] } else { Vec::new() },
            ..Sample::default()
        };
        PartLines::of_samples((0..samples).map(sample).collect())
    }

    #[test]
    fn a_picture_has_every_sample_of_every_part_and_a_band_for_each_fault() {
        let svg = svg(&[part(5), part(7)]);
        let picture = roxmltree::Document::parse(&svg).expect("well-formed");
        let of_class = |class: &str| {
            let elements = picture.descendants().filter(|node| node.attribute("class") == Some(class));
            elements.collect::<Vec<_>>()
        };
        let points =
            |node: &roxmltree::Node<'_, '_>| node.attribute("points").map_or(0, |p| p.split(' ').count());
        let memory: Vec<usize> = of_class("a").iter().map(points).take(2).collect();
        assert_eq!(memory, [5, 7]);
        let bands = of_class("fault");
        assert_eq!(bands.len(), 2, "two samples in a row are one band");
        assert_eq!(bands[0].first_element_child().and_then(|title| title.text()), Some("NATS <killed>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_file_without_samples_is_a_picture_without_lines() {
        let svg = svg(&[part(0)]);
        roxmltree::Document::parse(&svg).expect("well-formed");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([0.0, 0.9, 1.2, 97.0, 101.0, 250.0].map(round_up), [1.0, 1.0, 1.5, 100.0, 150.0, 250.0]);
    }
}
