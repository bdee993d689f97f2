use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::load::ActiveLoad;
use radixscope_dynamo::{active_sequence, envelope, subject, trace};
use radixscope_model::record::Topic;
use std::hint::black_box;
use std::time::{Duration, Instant};
fn fastest(rounds: usize, mut round: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            let s = Instant::now();
            round();
            s.elapsed()
        })
        .min()
        .unwrap()
}
fn main() {
    let messages: Vec<_> = Recording::all_in(&fixtures())
        .iter()
        .flat_map(Recording::subscribed)
        .filter_map(|message| Some((subject::parse(&message.subject)?.topic, message.payload)))
        .collect();
    let decode = |topic: Topic, bytes: &[u8]| {
        let Ok(body) = envelope::open(bytes) else { return };
        let (payload, format) = body.payload();
        match topic {
            Topic::KvMetrics => drop(black_box(ActiveLoad::decode(payload, format))),
            Topic::KvHitRate => drop(black_box(HitRate::decode(payload, format))),
            Topic::RequestTrace => drop(black_box(trace::decode(payload))),
            Topic::ActiveSequences => {
                let mut steps = Vec::new();
                let _ = black_box(active_sequence::decode(payload, format, &mut steps));
                black_box(steps);
            }
            _ => {}
        }
    };
    for of in [Topic::KvMetrics, Topic::KvHitRate, Topic::ActiveSequences, Topic::RequestTrace] {
        let all: Vec<_> = messages.iter().filter(|(topic, _)| *topic == of).collect();
        let took = fastest(40, || all.iter().for_each(|(topic, payload)| decode(*topic, payload)));
        println!(
            "{of:?} {} messages: {:.0} ns",
            all.len(),
            took.as_secs_f64() * 1e9 / all.len().max(1) as f64
        );
    }
}
