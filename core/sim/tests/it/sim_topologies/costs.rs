//! What routers log of their choices, recomputed from the messages alone (reference topologies §1, §4).

use std::collections::{HashMap, HashSet};

use radixscope_dynamo::active_sequence::SequenceChange;
use radixscope_dynamo::log_line::{LogEvent, Selected};
use radixscope_model::record::Role;
use radixscope_sim::{Config, Simulation, Topology};

use crate::sim_topologies::seen::{Folded, Message, run, small};

const B: f64 = 16.0;

/// A router's load, as in its messages.
#[derive(Default)]
struct Router {
    /// Tokens to prefill by request and worker, until the first token.
    prefilling: HashMap<(String, u64), u64>,
    /// Chain of each request and its worker, until it is freed.
    running: HashMap<(String, u64), Vec<u64>>,
}

impl Router {
    fn prefill_tokens(&self, worker: u64) -> u64 {
        self.prefilling.iter().filter(|((_, at), _)| *at == worker).map(|(_, tokens)| tokens).sum()
    }

    /// Blocks of the requests on a worker, with those of `chain`.
    fn blocks_with(&self, worker: u64, chain: &[u64]) -> usize {
        let running = self.running.iter().filter(|((_, at), _)| *at == worker);
        running.flat_map(|(_, blocks)| blocks).chain(chain).collect::<HashSet<_>>().len()
    }
}

/// A choice with what was known when it was made.
struct Choice {
    selected: Selected<'static>,
    /// Device blocks of the chain's beginning on the chosen worker, and host blocks that go on there.
    overlap: (usize, usize),
    prefill_tokens: u64,
    /// Of the message that followed.
    hint: Option<u64>,
    blocks_with: usize,
    chain: Vec<u64>,
}

/// Every choice, in order.
fn choices(messages: &[Message]) -> Vec<Choice> {
    let (mut seen, mut routers): (Folded, HashMap<String, Router>) = Default::default();
    let mut chosen: Vec<Choice> = Vec::new();
    for message in messages {
        let (lines, reported) = (seen.lines.len(), seen.reported.len());
        seen.fold(message);
        for reported in &seen.reported[reported..] {
            let router = routers.entry(reported.component.clone()).or_default();
            let key = (reported.request_id.clone(), reported.worker);
            match &reported.step {
                SequenceChange::Added(added) => {
                    let choice = chosen.last_mut().expect("a choice comes first");
                    assert_eq!(choice.selected.ids.key(), Some(&*reported.request_id));
                    let chain = added.token_sequence.clone().unwrap_or_default();
                    let held = seen.held.get(&reported.worker);
                    let on_device = |hash: &&u64| held.is_some_and(|held| held.device.contains(hash));
                    let on_host = |hash: &&u64| held.is_some_and(|held| held.host.contains(hash));
                    let device = chain.iter().take_while(on_device).count();
                    choice.overlap = (device, chain[device..].iter().take_while(on_host).count());
                    choice.prefill_tokens = router.prefill_tokens(reported.worker);
                    choice.blocks_with = router.blocks_with(reported.worker, &chain);
                    choice.hint = added.initial_effective_prefill_tokens;
                    choice.chain = chain.clone();
                    router.prefilling.extend(choice.hint.map(|tokens| (key.clone(), tokens)));
                    router.running.insert(key, chain);
                }
                SequenceChange::PrefillCompleted => {
                    router.prefilling.remove(&key);
                }
                SequenceChange::Freed => {
                    router.prefilling.remove(&key);
                    router.running.remove(&key);
                }
            }
        }
        for line in &seen.lines[lines..] {
            if let LogEvent::Selected(selected) = &line.event {
                chosen.push(Choice {
                    selected: selected.clone(),
                    overlap: (0, 0),
                    prefill_tokens: 0,
                    hint: None,
                    blocks_with: 0,
                    chain: Vec::new(),
                });
            }
        }
    }
    chosen
}

fn chosen(config: Config, seconds: u64) -> (Simulation, Vec<Choice>) {
    let (simulation, messages) = run(config, seconds);
    let choices = choices(&messages);
    assert!(choices.len() > 100, "{}", choices.len());
    (simulation, choices)
}

#[test]
fn a_prefill_router_counts_tokens_and_a_decode_router_blocks() {
    let (_, choices) = chosen(small(Topology::Disaggregated), 120);
    let (mut loaded, mut shared) = (0, 0);
    for choice in &choices {
        let cost = match choice.selected.worker_type.map(Role::as_str) {
            Some("prefill") => {
                loaded += u32::from(choice.prefill_tokens > 0);
                (choice.prefill_tokens + choice.hint.expect("a hint")) as f64 / B
            }
            _ => {
                shared += u32::from(choice.blocks_with > choice.chain.len());
                choice.blocks_with as f64
            }
        };
        assert!(choice.selected.logit.reads_as(cost), "{:?} is not {cost}", choice.selected);
    }
    assert!(loaded > 10 && shared > 50, "{loaded} {shared}");
}

#[test]
fn the_chain_and_the_hint_of_the_two_messages_give_length_and_overlap() {
    let (simulation, messages) = run(small(Topology::Disaggregated), 120);
    let choices = choices(&messages);
    let mut hits = 0;
    for pair in choices.iter().filter(|choice| choice.hint.is_some()) {
        let id = pair.selected.ids.key();
        let Some(decode) = choices.iter().find(|of| of.hint.is_none() && of.selected.ids.key() == id) else {
            continue;
        };
        let (hint, chain) = (pair.hint.expect("a hint"), decode.chain.len() as u64);
        let isl = chain * 16 + hint % 16;
        let overlap = (isl - hint) / 16;
        let reported = pair.selected.cached_blocks.expect("reported where prompts are computed");
        assert!(reported.reads_as(overlap as f64), "{reported:?} is not {overlap}");
        hits += u32::from(overlap > 0);
    }
    assert!(hits > 30, "{hits}");
    assert!(simulation.report().requests.iter().any(|request| request.isl_tokens % 16 > 0));
}

#[test]
fn each_model_is_routed_by_its_own_load_and_caches() {
    let (_, choices) = chosen(small(Topology::TwoModels), 120);
    let mut hits = 0;
    for choice in &choices {
        let cost =
            (choice.prefill_tokens + choice.hint.expect("a hint")) as f64 / B + choice.blocks_with as f64;
        assert!(choice.selected.logit.reads_as(cost), "{:?} is not {cost}", choice.selected);
        hits += u32::from(choice.overlap.0 > 0);
    }
    assert!(hits > 50, "{hits}");
}

#[test]
fn host_blocks_that_go_on_the_device_prefix_earn_three_quarters() {
    let (simulation, choices) = chosen(small(Topology::Tiers), 200);
    let isl_of: HashMap<(u64, usize), u64> = simulation
        .report()
        .decisions
        .iter()
        .map(|of| ((of.prompt.last().map_or(0, |hash| hash.0), of.prompt.len()), of.isl_tokens.into()))
        .collect();
    let (mut host_hits, mut with_length) = (0, 0);
    for choice in &choices {
        let (device, host) = choice.overlap;
        assert_eq!(choice.selected.host_pinned_blocks, Some(host as u64));
        host_hits += u32::from(host > 0);
        let hint = choice.hint.expect("a hint");
        let cost = (choice.prefill_tokens + hint) as f64 / B + choice.blocks_with as f64;
        assert!(choice.selected.logit.reads_as(cost), "{:?} is not {cost}", choice.selected);
        // Where the simulator retained the decision, its length confirms the hint.
        let key = (choice.chain.last().copied().unwrap_or(0), choice.chain.len());
        if let Some(isl) = isl_of.get(&key) {
            let cached = (device as f64 + 0.75 * host as f64) * B;
            assert_eq!(hint, isl - cached as u64);
            with_length += 1;
        }
    }
    assert!(host_hits > 20 && with_length > 20, "{host_hits} {with_length}");
}
