//! What a seed gave it must give for ever: a demo that was described, recorded or photographed can be run again.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Channel, Config, Simulation, WireMessage};
use xxhash_rust::xxh3::Xxh3Default;

const START: Millis = Millis(1_767_225_600_000);

/// What is no NATS message, or can be switched off, and is no part of what is pinned here.
fn is_optional(message: &WireMessage<'_>) -> bool {
    message.channel != Channel::Nats || message.name.ends_with(".active_sequences_events")
}

/// Messages and their digest over 300 s of the reference scenario, and what the users saw of it.
fn figures(router: RouterSettings) -> String {
    let config = Config { router, ..Config::default() };
    let mut simulation = Simulation::new(config, START).expect("the reference scenario is valid");
    let (mut messages, mut digest) = (0, Xxh3Default::new());
    let until = Millis(START.0 + 300_000);
    simulation.run_until(until, &mut |m| {
        if is_optional(&m) {
            return;
        }
        messages += 1;
        digest.update(&m.at_ms.0.to_le_bytes());
        digest.update(m.name.as_bytes());
        digest.update(m.payload);
    });
    let report = simulation.report();
    let seen = report.summary(START, until);
    format!(
        "{messages} messages {:016x}, {} routed, hit rate {:.4}, TTFT p95 {:.0} ms, E2E p50 {:.0} ms, spread p95 {}",
        digest.digest(),
        report.routed_total,
        seen.hit_rate,
        seen.ttft_ms.p95,
        seen.e2e_ms.p50,
        seen.spread.p95
    )
}

#[test]
fn a_seed_gives_what_it_always_gave() {
    let kv = RouterSettings::new(Formula::A);
    assert_eq!(
        figures(kv),
        "55259 messages a14278379e1bf491, 1112 routed, hit rate 0.8955, TTFT p95 635 ms, E2E p50 34996 ms, spread p95 29"
    );
    assert_eq!(
        figures(RouterSettings::round_robin()),
        "59775 messages e97027cb4435dd5a, 1022 routed, hit rate 0.8003, TTFT p95 884 ms, E2E p50 37961 ms, spread p95 10"
    );
}
