//! How fast KV events decode, beside the plain way: serde into owned structs, as Dynamo's own router does it; and how fast
//! lines of logs are read.
//!
//! `cargo test --release -p radixscope-dynamo --test decoders speed -- --ignored --nocapture`

use std::hint::black_box;
use std::time::{Duration, Instant};

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::active_sequence;
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::kv_event::KvEvents;
use radixscope_dynamo::subject::parse;
use radixscope_dynamo::{log_line, trace};
use radixscope_model::record::Topic;

use crate::plain::{self, Payload};

/// Fastest of several rounds: what disturbs a measurement only makes it slower.
fn fastest(mut round: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    (0..15).map(timed).min().unwrap_or_default()
}

#[test]
#[ignore = "a measurement; needs full captures and a release build"]
fn lines_of_a_log_are_searched_and_read_at_this_speed() {
    for capture in Recording::all_in(&fixtures()) {
        let lines: Vec<String> = capture.log("frontend").collect();
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        let search = || lines.iter().filter(|line| log_line::may_matter(line.as_bytes())).count();
        let decode = || lines.iter().filter(|line| log_line::decode(line.as_bytes()).is_ok()).count();
        let (searched, decoded) = (fastest(|| _ = black_box(search())), fastest(|| _ = black_box(decode())));
        let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
        println!(
            "{}: {} of {} lines may matter; searched at {:.0} MB/s, read at {:.0} MB/s",
            capture.name(),
            search(),
            lines.len(),
            rate(searched),
            rate(decoded)
        );
    }
}

#[test]
#[ignore = "a measurement; needs full captures and a release build"]
fn decoding_is_faster_than_owned_structs() {
    for capture in Recording::all_in(&fixtures()) {
        let mut payloads: Vec<(Vec<u8>, Format)> = Vec::new();
        for message in capture.messages() {
            if parse(&message.subject).is_none_or(|subject| subject.topic != Topic::KvEvents)
                || message.is_delivery_copy()
            {
                continue;
            }
            let (payload, format) = open(&message.payload).unwrap().payload();
            payloads.push((payload.to_vec(), format));
        }
        let Some((_, format)) = payloads.first() else { continue };

        let mut events = KvEvents::default();
        let (mut event_count, mut hashes) = (0, 0);
        for (payload, format) in &payloads {
            events.decode(payload, *format).unwrap();
            event_count += events.events.len();
            hashes += events.blocks.len() + events.removed.len();
        }
        let ours = fastest(|| {
            for (payload, format) in &payloads {
                events.decode(black_box(payload), *format).unwrap();
                black_box(&events);
            }
        });
        let owned = fastest(|| {
            for (payload, format) in &payloads {
                black_box(plain::decode::<Payload>(black_box(payload), *format).unwrap());
            }
        });
        let bytes: usize = payloads.iter().map(|(payload, _)| payload.len()).sum();
        let ns = |time: Duration, per: usize| time.as_nanos() as f64 / per as f64;
        println!(
            "{:24} {format:?} {event_count} events, {hashes} blocks, {bytes} bytes: ns per event {:.0} (owned {:.0}), \
             ns per block {:.1} (owned {:.1}), {:.1} times as fast, {:.0} MB/s",
            capture.name(),
            ns(ours, event_count),
            ns(owned, event_count),
            ns(ours, hashes),
            ns(owned, hashes),
            owned.as_secs_f64() / ours.as_secs_f64(),
            bytes as f64 / ours.as_secs_f64() / 1e6,
        );
    }
}

#[test]
#[ignore = "a measurement; needs full captures and a release build"]
fn steps_and_traces_of_requests_are_read_at_this_speed() {
    for capture in Recording::all_in(&fixtures()) {
        let (mut steps, mut traces) = (Vec::new(), Vec::new());
        for message in capture.messages() {
            let topic = parse(&message.subject).map(|subject| subject.topic);
            if let (Some(Topic::ActiveSequences), Ok(body)) = (topic, open(&message.payload)) {
                let (payload, format) = body.payload();
                steps.push((payload.to_vec(), format));
            } else if topic == Some(Topic::RequestTrace) {
                traces.push(message.payload.to_vec());
            }
        }
        let mut read = Vec::new();
        let step_time = fastest(|| {
            for (payload, format) in &steps {
                read.clear();
                active_sequence::decode(black_box(payload), *format, &mut read).unwrap();
                black_box(&read);
            }
        });
        let trace_time = fastest(|| {
            for payload in &traces {
                black_box(trace::decode(black_box(payload)).unwrap());
            }
        });
        let ns = |time: Duration, count: usize| time.as_nanos() as f64 / count.max(1) as f64;
        println!(
            "{:24} ns per message: {} steps {:.0} ({:?}), {} traces {:.0}",
            capture.name(),
            steps.len(),
            ns(step_time, steps.len()),
            steps.first().map(|(_, format)| format),
            traces.len(),
            ns(trace_time, traces.len()),
        );
    }
}
