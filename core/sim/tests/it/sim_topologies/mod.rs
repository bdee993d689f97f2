//! The topologies of the simulated cluster seen from outside: their bytes go through the decoders of `radixscope-dynamo` and
//! are folded into plain sets here, and must agree with what routers and engines did.

mod costs;
mod faults;
mod requests;
mod scraped;
mod seen;
mod tiers;

use radixscope_dynamo::discovery::ModelCard;
use radixscope_dynamo::subject::{self, Transport};
use radixscope_sim::{Channel, Config, Topology};

use seen::{Folded, run, small};

/// All topologies that speak as 1.6 does.
const OF_1_6: [Topology; 3] = [Topology::Disaggregated, Topology::TwoModels, Topology::Tiers];

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    for topology in Topology::ALL {
        let (_, first) = run(small(topology), 40);
        assert!(first.len() > 500, "{}", topology.name());
        assert!(first == run(small(topology), 40).1, "{}", topology.name());
        assert!(first != run(Config { seed: 2, ..small(topology) }, 40).1, "{}", topology.name());
    }
}

#[test]
fn every_message_is_on_the_subject_of_its_pool_and_is_understood() {
    for topology in OF_1_6 {
        let (simulation, messages) = run(small(topology), 60);
        let components: &[&str] = match topology {
            Topology::Disaggregated => &["prefill", "backend"],
            Topology::TwoModels => &["backend", "backend2"],
            _ => &["backend"],
        };
        for message in messages.iter().filter(|m| m.channel == Channel::Nats) {
            let subject = subject::parse(&message.name).expect("a subject of Dynamo");
            assert_eq!((&*subject.namespace, &*subject.endpoint), ("dynamo", "generate"), "{}", message.name);
            assert!(components.contains(&&*subject.component), "{}", message.name);
            assert_eq!(subject.transport, Transport::Core);
        }
        // Panics at what it does not understand.
        let seen = Folded::of(&messages);
        for worker in 0..simulation.workers() {
            let id = simulation.worker_id(worker);
            let component = simulation.component(worker);
            assert!(seen.loads.iter().any(|load| (load.worker, &*load.component) == (id, component)));
            assert!(seen.loads.iter().all(|load| load.worker != id || load.component == component));
        }
    }
}

#[test]
fn envelopes_are_numbered_by_publishers_of_which_none_is_a_process() {
    for topology in OF_1_6 {
        let (simulation, messages) = run(small(topology), 60);
        let numbered = Folded::of(&messages).envelopes;
        // OwnLoad and first tokens of every worker but those that only prefill, events of all but those that only decode.
        let (workers, pools) = (usize::from(simulation.workers()), usize::from(topology.pools()));
        let publishers = match topology {
            Topology::Disaggregated => 3 * (2 + 2) + pools,
            _ => 3 * workers + pools,
        };
        assert_eq!(numbered.len(), publishers, "{}", topology.name());
        assert!(numbered.keys().all(|(publisher, _)| *publisher < 1 << 53), "below 2⁵³");
        assert!(simulation.worker_id(0) > 1 << 53, "instance ids are above it");
    }
}

#[test]
fn model_cards_say_what_each_worker_does_and_serves() {
    let cards = |topology| {
        let (simulation, messages) = run(small(topology), 1);
        let cards: Vec<ModelCard> = messages
            .iter()
            .filter(|m| m.channel == Channel::Discovery)
            .map(|m| ModelCard::decode(&m.payload).expect("understood").expect("a model card"))
            .collect();
        assert_eq!(cards.len(), usize::from(simulation.workers()));
        for (worker, card) in (0..).zip(&cards) {
            assert_eq!(card.instance_id.0, simulation.worker_id(worker));
            assert_eq!(card.component, simulation.component(worker));
            assert_eq!(card.block_size_tokens, Some(16));
        }
        let summary = |card: &ModelCard| {
            let role = card.worker_type.clone().expect("1.6 reports it");
            (role, card.display_name.clone(), card.runtime.kv_event_publishing_enabled)
        };
        (summary(&cards[0]), summary(&cards[cards.len() - 1]))
    };
    let summary = |role: &str, model: &str, publishes| (role.to_owned(), model.to_owned(), Some(publishes));
    const LLAMA: &str = "simulated/Llama-70B-FP8";
    assert_eq!(
        cards(Topology::Disaggregated),
        (summary("prefill", LLAMA, true), summary("decode", LLAMA, false))
    );
    let other = "simulated/Qwen-72B-FP8";
    assert_eq!(
        cards(Topology::TwoModels),
        (summary("aggregated", LLAMA, true), summary("aggregated", other, true))
    );
    assert_eq!(cards(Topology::Tiers).0, summary("aggregated", LLAMA, true));
}

#[test]
fn an_observer_of_the_events_ends_with_what_the_engines_hold() {
    for topology in OF_1_6 {
        let (simulation, messages) = run(small(topology), 200);
        let seen = Folded::of(&messages);
        for worker in 0..simulation.workers() {
            let id = simulation.worker_id(worker);
            let decodes = topology == Topology::Disaggregated && simulation.component(worker) == "backend";
            if decodes {
                assert!(!seen.held.contains_key(&id), "workers that only decode publish no events");
                assert!(simulation.cached_blocks(worker).next().is_some(), "though they hold blocks");
                continue;
            }
            let held = &seen.held[&id];
            assert_eq!(held.device, simulation.cached_blocks(worker).map(|hash| hash.0).collect());
            assert_eq!(held.host, simulation.host_blocks(worker).map(|hash| hash.0).collect());
            assert!(held.most_device <= 900, "{}: {}", topology.name(), held.most_device);
            assert_eq!(held.host.is_empty(), topology != Topology::Tiers);
        }
    }
}

/// Every key of a JSON text in its order.
fn keys(text: &str) -> Vec<&str> {
    text.split('"')
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|two| two[1].starts_with(':'))
        .map(|two| two[0])
        .collect()
}

#[test]
fn model_cards_are_written_as_recorded() {
    let recorded: Vec<&str> = include_str!("../../fixtures/cards_1_6_1.jsonl").lines().collect();
    for (topology, worker, recorded) in [
        (Topology::Disaggregated, 0, recorded[0]),
        (Topology::Disaggregated, 5, recorded[1]),
        (Topology::TwoModels, 0, recorded[2]),
    ] {
        let (_, messages) = run(small(topology), 0);
        let cards = messages.iter().filter(|m| m.channel == Channel::Discovery);
        let text = cards.map(|m| String::from_utf8_lossy(&m.payload)).nth(worker).expect("a card");
        let mut in_order = keys(recorded).into_iter();
        for key in keys(&text) {
            assert!(in_order.any(|of| of == key), "{key} is not there, or not in its place");
        }
        let read = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
        let (ours, theirs) = (read(&text), read(recorded));
        let same = |path: &str| assert_eq!(ours.pointer(path), theirs.pointer(path), "{path}");
        let card = ["worker_type", "needs", "model_type", "model_input", "migration_limit"];
        card.iter().for_each(|key| same(&format!("/card_json/{key}")));
        let runtime = [
            "tool_call_parser",
            "reasoning_parser",
            "data_parallel_start_rank",
            "data_parallel_size",
            "enable_local_indexer",
            "kv_event_publishing_enabled",
            "disaggregated_endpoint",
        ];
        runtime.iter().for_each(|key| same(&format!("/card_json/runtime_config/{key}")));
    }
}
