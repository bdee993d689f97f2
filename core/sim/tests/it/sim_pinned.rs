//! What a seed gave it must give for ever: a demo that was described, recorded or photographed can be run again.

use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Channel, Config, Fault, FaultPlan, Simulation, WireMessage};
use xxhash_rust::xxh3::Xxh3Default;

use crate::observed::START;

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

/// Digest of every message, whatever it travels by, over 90 s of a small cluster.
fn whole(config: Config) -> u64 {
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut digest = Xxh3Default::new();
    simulation.run_until(Millis(START.0 + 90_000), &mut |m| {
        digest.update(&m.at_ms.0.to_le_bytes());
        digest.update(&[m.channel as u8]);
        digest.update(m.name.as_bytes());
        digest.update(m.payload);
    });
    digest.digest()
}

#[test]
fn the_aggregated_topology_gives_what_it_gave_before_there_were_others() {
    let small = || Config { concurrency: 40, blocks_per_worker: 3_000, ..Config::default() };
    let healthy = format!("healthy {:016x}", whole(small()));
    let faulty = Fault::ALL.map(|fault| {
        let after_ms = if fault.ends_something() { 30_000 } else { 0 };
        let config = Config { fault: Some(FaultPlan { fault, after_ms }), ..small() };
        format!("{} {:016x}", fault.name(), whole(config))
    });
    let digests: Vec<String> = std::iter::once(healthy).chain(faulty).collect();
    expect_test::expect![[r#"
        healthy 0586a30ca6cd35aa
        block-size 740751a4865e4426
        block-size-oversize 99ca4f0190ca974e
        block-size-partial 5952511c6802f061
        block-size-card 1a16d1a347b322f6
        no-events 2d729e2fe3e57218
        no-events-one 1ae1e356fa5ccf4b
        hot-worker 52c4371f21feed9b
        starved-worker fe86ef81b25d76a9
        gap 3ab5b6684f3e540b
        kill-worker 78a202b955f2c42b
        ghost-worker 5cf4bcec7ede7387
        router-restart 81d3eb5b82a2ed61
        hash-seed ea2b32e076ad5642
        mixed-planes dd16760133797ab9
        unknown-parents a5f6ea6c2710a14d
        unknown-removals 87030777a11d09fe
        churn d1333e0f517ce39b
        memory-full 10aa4bbd90036e2a
        slow 29fa287fbd026b22
        replicas 910333de18fb74c2
        approximate 00ccd1ec89b3486c"#]]
    .assert_eq(&digests.join("\n"));
}
