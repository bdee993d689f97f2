//! What follows from the lines of a soak: a table of figures, each within its budget, beyond it, or not known because the run was
//! too short. Pure.

use radixscope_bench::slope::{Slope, slope};

use super::checkpoint::{PartLines, Plane, SAMPLE_EVERY_S, Sample};

const MB: f64 = 1e6;
/// By how much memory may grow after the warm-up, MB an hour.
const MAX_SLOPE: f64 = 1.0;
/// The slope is known if its standard error is at most this, MB an hour: a run of minutes shows noise alone.
const MAX_SLOPE_ERROR: f64 = 0.5;
/// Descriptors and threads are counted while viewers and connections come and go: the fewest of a third of the run are those that
/// stay. By so many they may rise from the first third to the last.
const MAX_MORE: u64 = 3;
/// Samples that a third needs: five minutes, in which each kind of fault has usually come and gone.
const LEAST_IN_A_THIRD: usize = (300 / SAMPLE_EVERY_S) as usize;

/// How a figure stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Within its budget.
    Within,
    /// Beyond it.
    Beyond,
    /// The run was too short, or ended too early, to know.
    Unknown,
    /// It has no budget.
    Figure,
}

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row {
    /// What it is.
    pub(super) what: &'static str,
    /// The figure with its unit.
    pub(super) figure: String,
    /// The most that it may be.
    pub(super) budget: &'static str,
    /// How it stands.
    pub(super) outcome: Outcome,
}

/// All figures of the parts.
pub(super) fn rows(parts: &[PartLines]) -> Vec<Row> {
    let mut rows =
        vec![memory(parts), allocated(parts), flat("open descriptors", parts, |sample| sample.descriptors)];
    rows.push(flat("threads", parts, |sample| sample.threads));
    rows.extend([digests(parts), broken(parts), losses(parts), blocks(parts), log(parts), recording(parts)]);
    rows.extend([unexpected(parts), gaps(parts), memory_at_the_end(parts), duration(parts)]);
    rows
}

/// How all of it stands: beyond if one row is, else unknown if one row is.
pub(super) fn outcome(rows: &[Row]) -> Outcome {
    let has = |outcome| rows.iter().any(|row| row.outcome == outcome);
    match (has(Outcome::Beyond), has(Outcome::Unknown)) {
        (true, _) => Outcome::Beyond,
        (false, true) => Outcome::Unknown,
        (false, false) => Outcome::Within,
    }
}

/// The figures as a Markdown table.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = String::from("| What | Figure | Budget | |\n|---|---|---|---|\n");
    for Row { what, figure, budget, outcome } in rows {
        let outcome = match outcome {
            Outcome::Within => "within",
            Outcome::Beyond => "**beyond**",
            Outcome::Unknown => "not known",
            Outcome::Figure => "",
        };
        text += &format!("| {what} | {figure} | {budget} | {outcome} |\n");
    }
    text
}

/// The samples of a part after its warm-up.
pub(super) fn warm(part: &PartLines) -> impl Iterator<Item = &Sample> {
    let from_s = part.part.warm_up_s;
    part.samples.iter().filter(move |sample| sample.at_s >= from_s)
}

fn row(what: &'static str, figure: String, budget: &'static str, outcome: Outcome) -> Row {
    Row { what, figure, budget, outcome }
}

fn judged(is_within: bool) -> Outcome {
    if is_within { Outcome::Within } else { Outcome::Beyond }
}

/// By how much memory grows after the warm-up of the parts, MB an hour.
pub(super) fn memory_slope(parts: &[PartLines], bytes: fn(&Sample) -> u64) -> Option<Slope> {
    let point = |sample: &Sample| (sample.at_s / 3_600.0, bytes(sample) as f64 / MB);
    let points = |part| warm(part).map(point).collect();
    slope(&parts.iter().map(points).collect::<Vec<_>>())
}

fn memory(parts: &[PartLines]) -> Row {
    let (what, budget) = ("memory after the warm-up, slope by least squares", "≤ 1 MB/h");
    let Some(slope) = memory_slope(parts, |sample| sample.rss_bytes) else {
        return row(what, "too few samples".to_owned(), budget, Outcome::Unknown);
    };
    // Growth that is clear from its noise is growth, however short the run.
    let outcome = match slope {
        Slope { per_x, error } if per_x - 2.0 * error > MAX_SLOPE => Outcome::Beyond,
        // Where twice its error still leaves it within, it is within.
        Slope { per_x, error } if per_x + 2.0 * error <= MAX_SLOPE => Outcome::Within,
        Slope { error, .. } if error > MAX_SLOPE_ERROR => Outcome::Unknown,
        Slope { per_x, .. } => judged(per_x <= MAX_SLOPE),
    };
    row(what, in_mb_per_hour(&slope), budget, outcome)
}

fn in_mb_per_hour(slope: &Slope) -> String {
    format!("{:.2} MB/h, standard error {:.2}", slope.per_x, slope.error)
}

fn allocated(parts: &[PartLines]) -> Row {
    let slope = memory_slope(parts, |sample| sample.anonymous_bytes);
    let figure = slope.map_or_else(|| "too few samples".to_owned(), |slope| in_mb_per_hour(&slope));
    row("of that without the pages of the program", figure, "", Outcome::Figure)
}

fn flat(what: &'static str, parts: &[PartLines], of: fn(&Sample) -> u64) -> Row {
    let budget = "fewest of the last third at most 3 more than of the first";
    let mut figures = Vec::new();
    let mut outcome = Outcome::Unknown;
    for part in parts {
        let samples: Vec<u64> = warm(part).map(of).collect();
        let third = samples.len() / 3;
        let fewest = |samples: &[u64]| samples.iter().copied().min();
        let (first, last) = (fewest(&samples[..third]), fewest(&samples[samples.len() - third..]));
        let (Some(first), Some(last)) = (first, last) else { continue };
        figures.push(format!("{first} → {last}"));
        if third < LEAST_IN_A_THIRD {
            continue;
        }
        let is_flat = last <= first + MAX_MORE;
        outcome = if outcome == Outcome::Beyond { outcome } else { judged(is_flat) };
    }
    if figures.is_empty() {
        figures.push("too few samples".to_owned());
    }
    row(what, figures.join("; "), budget, outcome)
}

/// The last sample of each part.
fn last_samples(parts: &[PartLines]) -> impl Iterator<Item = &Sample> {
    parts.iter().filter_map(|part| part.samples.last())
}

fn digests(parts: &[PartLines]) -> Row {
    let sum = |of: fn(&Sample) -> u64| last_samples(parts).map(of).sum::<u64>();
    let (checks, different) = (sum(|s| s.viewers.checks), sum(|s| s.viewers.differences));
    let healed = sum(|s| s.viewers.healed);
    let figure = format!("{different} of {checks} compared, {healed} of them healed");
    let outcome = if checks == 0 { Outcome::Unknown } else { judged(different == healed) };
    row("digests of viewers other than the server's", figure, "none unhealed", outcome)
}

fn broken(parts: &[PartLines]) -> Row {
    let sum = |of: fn(&Sample) -> u64| last_samples(parts).map(of).sum::<u64>();
    let (broken, joined) = (sum(|s| s.viewers.broken), sum(|s| s.viewers.joined));
    let not_taken = sum(|s| s.viewers.not_taken);
    let mut figure = format!(
        "{broken} of {joined}, {not_taken} attempts to join failed; {} records skipped",
        sum(|s| s.viewers.skipped)
    );
    if let Some(why) = last_samples(parts).find_map(|sample| sample.viewers.broken_why.as_ref()) {
        figure += &format!("; {why}");
    }
    row("viewers' connections that broke", figure, "none", judged(broken == 0))
}

/// Whether what was lost on this plane is what the server says, or said to be at least so much.
pub(super) fn is_counted(plane: &Plane) -> bool {
    match plane.published.checked_sub(plane.received) {
        Some(lost) => plane.missed == lost || plane.missed < lost && plane.is_at_least,
        None => false,
    }
}

fn losses(parts: &[PartLines]) -> Row {
    let mut figures = Vec::new();
    let mut outcome = Outcome::Within;
    for part in parts {
        let Some(end) = &part.end else {
            outcome = if outcome == Outcome::Beyond { outcome } else { Outcome::Unknown };
            figures.push("a part without its end".to_owned());
            continue;
        };
        for plane in &end.planes {
            let at_least = if plane.is_at_least { "at least " } else { "" };
            let lost = plane.published.cast_signed() - plane.received.cast_signed();
            let Plane { kind, published, missed, .. } = plane;
            figures.push(format!("{kind}: {lost} of {published} lost, counted {at_least}{missed}"));
            if !is_counted(plane) {
                outcome = Outcome::Beyond;
            }
        }
    }
    row("messages lost", figures.join("; "), "every one counted", outcome)
}

/// After all that was lost, workers were queried: what is shown of them is what they hold.
fn blocks(parts: &[PartLines]) -> Row {
    let workers = || parts.iter().filter_map(|part| part.end.as_ref()).flat_map(|end| &end.workers);
    let wrong = workers().filter(|worker| worker.shown != Some(worker.held)).count();
    let incomplete = workers().filter(|worker| !worker.is_complete).count();
    let outcome = match parts.iter().all(|part| part.end.is_some()) {
        _ if wrong + incomplete > 0 => Outcome::Beyond,
        true => Outcome::Within,
        false => Outcome::Unknown,
    };
    let figure =
        format!("{} workers, {wrong} with other blocks, {incomplete} not complete", workers().count());
    row(
        "blocks of workers at the end against those that they hold",
        figure,
        "all equal and complete",
        outcome,
    )
}

fn log(parts: &[PartLines]) -> Row {
    let ends = || parts.iter().filter_map(|part| part.end.as_ref());
    let (written, read) =
        (ends().map(|end| end.log_lines).sum::<u64>(), ends().map(|end| end.log_lines_read).sum::<u64>());
    let outcome = match ends().count() == parts.len() {
        _ if read != written => Outcome::Beyond,
        true => Outcome::Within,
        false => Outcome::Unknown,
    };
    row(
        "lines about routing, read of those written to the log",
        format!("{read} of {written}"),
        "all",
        outcome,
    )
}

fn recording(parts: &[PartLines]) -> Row {
    let budget = "a gap named for each full disk; records again; readable";
    let mut outcome = Outcome::Within;
    let mut figures = Vec::new();
    for part in parts {
        let Some(end) = &part.end else {
            outcome = if outcome == Outcome::Beyond { outcome } else { Outcome::Unknown };
            continue;
        };
        let mut figure = format!("{} full disks, {} gaps", end.full_disks, end.recording_gaps);
        for error in end.recording_error.iter().chain(&end.recording_unreadable) {
            figure += &format!(", {error}");
            outcome = Outcome::Beyond;
        }
        if end.recording_gaps < end.full_disks {
            outcome = Outcome::Beyond;
        }
        figures.push(figure);
    }
    row("recording", figures.join("; "), budget, outcome)
}

/// What nobody caused begins so in the file.
pub(super) const UNEXPECTED: &str = "unexpected: ";

fn unexpected(parts: &[PartLines]) -> Row {
    let events = parts.iter().flat_map(|part| &part.events);
    let unexpected: Vec<&str> = events.filter_map(|event| event.what.strip_prefix(UNEXPECTED)).collect();
    let figure = match unexpected.first() {
        None => "none".to_owned(),
        Some(first) => format!("{}, the first: {first}", unexpected.len()),
    };
    row("what nobody caused", figure, "none", judged(unexpected.is_empty()))
}

fn gaps(parts: &[PartLines]) -> Row {
    let samples = parts.iter().flat_map(|part| &part.samples);
    let mut p99: Vec<u64> = samples.filter_map(|sample| sample.viewers.gap_p99_ms).collect();
    p99.sort_unstable();
    let figure = match (p99.get(p99.len() / 2), p99.last()) {
        (Some(median), Some(most)) => format!("median {median} ms, most {most} ms"),
        _ => "too few samples".to_owned(),
    };
    row("p99 gap between batches at viewers, of ten seconds", figure, "", Outcome::Figure)
}

fn memory_at_the_end(parts: &[PartLines]) -> Row {
    let figures = parts.iter().filter_map(|part| {
        let (last, most) = (part.samples.last()?, part.samples.iter().map(|sample| sample.rss_bytes).max()?);
        Some(format!("{:.0} MB, most {:.0} MB", last.rss_bytes as f64 / MB, most as f64 / MB))
    });
    row("memory at the end", figures.collect::<Vec<_>>().join("; "), "", Outcome::Figure)
}

fn duration(parts: &[PartLines]) -> Row {
    let total_s: f64 = last_samples(parts).map(|sample| sample.at_s).sum();
    let faults =
        parts.iter().flat_map(|part| &part.events).filter(|event| event.what.ends_with(BEGINS)).count();
    let published = last_samples(parts).flat_map(|sample| &sample.planes).map(|plane| plane.published);
    let per_s = published.sum::<u64>() as f64 / total_s.max(1.0);
    let hours = total_s / 3_600.0;
    let figure = format!("{hours:.2} h in {} parts, {faults} faults, {per_s:.0} events/s", parts.len());
    row("sampled", figure, "", Outcome::Figure)
}

/// A fault that begins is written so.
pub(super) const BEGINS: &str = " begins";

#[cfg(test)]
mod tests {
    use super::super::checkpoint::{End, Event, ViewerFigures, WorkerBlocks};
    use super::*;

    fn part(rss: impl Fn(usize) -> u64, samples: usize) -> PartLines {
        let sample = |n: usize| Sample {
            at_s: 10.0 * n as f64,
            rss_bytes: rss(n),
            descriptors: 40 + n as u64 % 20,
            threads: 9,
            viewers: ViewerFigures { checks: n as u64, ..ViewerFigures::default() },
            ..Sample::default()
        };
        PartLines { end: Some(End::default()), ..PartLines::of_samples((0..samples).map(sample).collect()) }
    }

    fn outcome_of(part: PartLines, what: &str) -> Outcome {
        let rows = rows(&[part]);
        rows.iter().find(|row| row.what.starts_with(what)).expect("a row").outcome
    }

    /// Noise of a few MB that has no trend.
    fn noise(n: usize) -> u64 {
        (n as u64).wrapping_mul(7_919) % 5 * 1_000_000
    }

    #[test]
    fn memory_that_grows_is_told_from_noise_and_a_short_run_from_a_quiet_one() {
        assert_eq!(outcome_of(part(|n| 200_000_000 + noise(n), 2_000), "memory after"), Outcome::Within);
        // 3.6 MB an hour.
        let grows = |n: usize| 200_000_000 + noise(n) + n as u64 * 10_000;
        assert_eq!(outcome_of(part(grows, 2_000), "memory after"), Outcome::Beyond);
        // 3.6 MB an hour less, with an error above that of a slope that is known.
        let falls = |n: usize| 200_000_000 + 4 * noise(n) - n as u64 * 10_000;
        assert_eq!(outcome_of(part(falls, 400), "memory after"), Outcome::Within);
        assert_eq!(outcome_of(part(noise, 12), "memory after"), Outcome::Unknown);
        assert_eq!(outcome_of(part(noise, 0), "memory after"), Outcome::Unknown);
    }

    #[test]
    fn descriptors_that_stay_are_found_among_those_that_come_and_go() {
        assert_eq!(outcome_of(part(|_| 1, 300), "open descriptors"), Outcome::Within);
        let mut leaks = part(|_| 1, 300);
        leaks.samples.iter_mut().enumerate().for_each(|(n, sample)| sample.descriptors += n as u64 / 30);
        assert_eq!(outcome_of(leaks, "open descriptors"), Outcome::Beyond);
        assert_eq!(outcome_of(part(|_| 1, 30), "open descriptors"), Outcome::Unknown);
    }

    #[test]
    fn a_loss_is_counted_exactly_or_at_least() {
        let plane = |missed, is_at_least| Plane {
            kind: "nats".to_owned(),
            published: 10,
            received: 6,
            missed,
            is_at_least,
        };
        assert!(is_counted(&plane(4, false)) && is_counted(&plane(4, true)) && is_counted(&plane(3, true)));
        assert!(
            !is_counted(&plane(3, false)) && !is_counted(&plane(5, false)) && !is_counted(&plane(5, true))
        );
        let mut lost = part(|_| 1, 3);
        lost.end = Some(End { planes: vec![plane(3, false)], ..End::default() });
        assert_eq!(outcome_of(lost, "messages lost"), Outcome::Beyond);
        let mut killed = part(|_| 1, 3);
        killed.end = None;
        assert_eq!(outcome_of(killed, "messages lost"), Outcome::Unknown);
    }

    #[test]
    fn a_worker_whose_blocks_are_not_those_that_it_holds_fails_a_run() {
        let worker = |shown, is_complete| WorkerBlocks { worker_id: 1, held: 4, shown, is_complete };
        for (worker, outcome) in [
            (worker(Some(4), true), Outcome::Within),
            (worker(Some(3), true), Outcome::Beyond),
            (worker(Some(4), false), Outcome::Beyond),
            (worker(None, false), Outcome::Beyond),
        ] {
            let mut ended = part(|_| 1, 3);
            ended.end = Some(End { workers: vec![worker], ..End::default() });
            assert_eq!(outcome_of(ended, "blocks of workers"), outcome);
        }
    }

    #[test]
    fn an_unhealed_digest_and_what_nobody_caused_fail_a_run() {
        let mut differs = part(|_| 1, 3);
        differs.samples[2].viewers.differences = 1;
        assert_eq!(outcome_of(differs.clone(), "digests"), Outcome::Beyond);
        differs.samples[2].viewers.healed = 1;
        assert_eq!(outcome_of(differs, "digests"), Outcome::Within);
        let mut crashed = part(|_| 1, 3);
        crashed.events.push(Event { at_s: 1.0, what: format!("{UNEXPECTED}the server ended") });
        assert_eq!(outcome(&rows(&[crashed])), Outcome::Beyond);
    }

    #[test]
    fn a_recording_that_names_no_gap_for_a_full_disk_fails_a_run() {
        let mut full = part(|_| 1, 3);
        full.end = Some(End { full_disks: 2, recording_gaps: 1, ..End::default() });
        assert_eq!(outcome_of(full, "recording"), Outcome::Beyond);
    }
}
