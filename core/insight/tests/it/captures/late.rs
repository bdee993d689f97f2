//! Attaching to deployments that have run for minutes: what workers answer and the events from then on give what they hold,
//! block for block, as recordings of the whole run tell it.

use radixscope_model::id::Worker;
use radixscope_model::record::{KnowledgeWhy, QueryState, TreeKnowledge};

use crate::captures::late_player::Player;

/// Whether every worker that is there holds what it held in truth.
#[track_caller]
fn is_true(player: &Player, workers: usize) {
    let mut compared = 0;
    for (&worker, truth) in player.truth() {
        let Some(ix) = player.cluster.worker_ix(worker) else { continue };
        let state = player.cluster.worker(ix).unwrap();
        if state.departure.is_some() {
            continue;
        }
        compared += 1;
        let knowledge = (state.knowledge.state, state.knowledge.why);
        assert_eq!(knowledge.0, TreeKnowledge::Complete, "{worker:?}: {knowledge:?}");
        let held = player.held(worker);
        assert_eq!(held.len(), truth.blocks.len(), "blocks of {worker:?} at event {}", truth.last_event_id);
        assert!(held == truth.blocks, "blocks, parents or tokens of {worker:?} differ");
    }
    assert_eq!(compared, workers);
    // Except for the second before the first response.
    let faults: Vec<_> = player.found.iter().filter(|code| *code != "tree_partial").collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(player.cluster.totals().unattached, 0);
}

#[test]
fn over_nats_a_dump_and_the_events_since_are_the_truth() {
    for name in ["1.6.1-nats-late", "1.6.1-nats-late-replica-sync"] {
        let mut player = Player::new(name, "late", Some(1.0));
        player.play(|_, _, _| {});
        is_true(&player, 3);
        assert!(player.queries.iter().all(Option::is_none), "nothing was lost: {:?}", player.queries);
        assert_eq!(player.queries.len(), 3, "{name}: each worker is asked once");
        for state in player.cluster.workers().iter() {
            assert_eq!(state.knowledge.why, KnowledgeWhy::Dump);
        }
    }
}

/// Loses a message now and then, and several in a row.
fn now_and_then(message: usize) -> bool {
    message.is_multiple_of(97) || (150..155).contains(&message)
}

#[test]
fn events_lost_on_the_way_are_got_back() {
    let mut player = Player::new("1.6.1-nats-late", "late", Some(1.0));
    player.loses = now_and_then;
    player.play(|_, _, _| {});
    assert!(player.lost > 8, "{} lost", player.lost);
    is_true(&player, 3);
    assert!(player.queries.iter().flatten().count() >= 8, "{:?}", player.queries);
    let source = &player.cluster.sources()[0];
    assert!(source.missed_total() >= player.lost as u64);
    for missed in &source.missed {
        assert_eq!(missed.lost(), 0, "{missed:?}");
    }
}

#[test]
fn workers_of_0_9_are_queried_on_request_only() {
    let mut player = Player::new("0.9.1-localindexer-late", "late", Some(1.0));
    player.play(|_, _, _| {});
    assert!(player.queries.is_empty());
    for state in player.cluster.workers().iter() {
        let knowledge = &state.knowledge;
        assert_eq!((knowledge.state, knowledge.why), (TreeKnowledge::Partial, KnowledgeWhy::JoinedLate));
        assert_eq!(knowledge.asking, QueryState::OnRequest);
    }
}

fn queried_once(name: &str) -> Player {
    let mut player = Player::new(name, "late", Some(1.0));
    let workers: Vec<Worker> = player.truth().keys().copied().collect();
    let mut requested = vec![false; workers.len()];
    player.play(|intake, cluster, _| {
        for (&worker, requested) in workers.iter().zip(&mut requested) {
            if !*requested && cluster.worker_ix(worker).is_some() {
                *requested = intake.request_dump(worker);
                assert!(*requested, "its endpoint is known");
            }
        }
    });
    player
}

#[test]
fn a_dump_of_0_9_without_a_number_and_the_events_since_are_the_truth() {
    let player = queried_once("0.9.1-localindexer-late");
    is_true(&player, 3);
    assert_eq!(player.queries, [None, None, None]);
}

/// Event plane and discovery as they are by default, in files or in etcd.
const BY_DEFAULT: [&str; 2] = ["1.6.1-zmq-default", "1.7.0.dev20261026-zmq-etcd"];

#[test]
fn over_zeromq_from_discovery_alone_a_late_viewer_is_complete() {
    for name in BY_DEFAULT {
        let mut player = Player::new(name, "mid", Some(1.0));
        player.play(|_, _, _| {});
        is_true(&player, 3);
        assert_eq!(player.queries, [None, None, None], "{name}");
    }
}

#[test]
fn over_zeromq_from_the_first_event_on_nothing_is_unknown() {
    for name in BY_DEFAULT {
        let mut player = Player::new(name, "mid", None);
        player.play(|_, cluster, _| {
            for state in cluster.workers().iter() {
                assert_eq!((state.unknown_removed_total, state.unknown_parents_total), (0, 0));
                assert_ne!(state.knowledge.state, TreeKnowledge::Partial);
            }
        });
        is_true(&player, 3);
    }
}

#[test]
fn workers_that_are_killed_and_started_again_are_complete_from_their_first_event() {
    let mut player = Player::new("1.6.1-zmq-etcd-restarts", "end", None);
    player.play(|_, _, _| {});
    assert!(player.found.remove("worker_gone") && player.found.remove("worker_stopped"), "two were killed");
    is_true(&player, 3);
    assert_eq!(player.cluster.workers().len(), 5, "two were started anew");
    assert_eq!(player.cluster.workers().iter().filter(|w| w.departure.is_some()).count(), 2);
}

#[test]
fn a_worker_that_lists_fewer_blocks_than_it_holds_is_believed() {
    for name in ["1.6.1-vllm-relay", "0.9.1-vllm-relay-localindexer"] {
        let mut player = Player::new(name, "late", Some(1.0));
        player.play(|intake, cluster, _| {
            for state in cluster.workers().iter() {
                let asking = state.knowledge.asking;
                if asking == QueryState::OnRequest {
                    intake.request_dump(state.id);
                }
            }
        });
        for state in player.cluster.workers().iter() {
            let ix = player.cluster.worker_ix(state.id).unwrap();
            assert_eq!(state.knowledge.state, TreeKnowledge::Complete, "{name}");
            let held = player.cluster.holdings(ix);
            println!("{name} {:?}: {held:?} unknown removed {}", state.id, state.unknown_removed_total);
            assert!((900..=1_700).contains(&held.resident), "{held:?}");
        }
    }
}

#[test]
fn after_restarts_only_those_who_are_there_are_queried() {
    let mut player = Player::new("1.6.1-zmq-etcd-restarts", "end", Some(1.0));
    player.play(|_, _, _| {});
    is_true(&player, 3);
    assert_eq!(player.queries, [None, None, None]);
}
