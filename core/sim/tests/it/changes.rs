//! Changes to a cluster while it is simulated.

use std::collections::BTreeSet;

use radixscope_model::id::Millis;
use radixscope_router::RouterMode;
use radixscope_sim::{Change, ChangeError, Channel, Config, Fault, Simulation, Topology, Workload};

const START: Millis = Millis(1_700_000_000_000);

/// A small cluster that is busy within seconds.
fn small() -> Config {
    Config { concurrency: 12, blocks_per_worker: 400, workload: Workload::short(), ..Config::default() }
}

/// A simulation with what it sent.
struct Run {
    simulation: Simulation,
    messages: Vec<(Millis, Channel, String, Vec<u8>)>,
    at: Millis,
}

impl Run {
    fn new(config: Config) -> Self {
        let simulation = Simulation::new(config, START).expect("it can be simulated");
        Self { simulation, messages: Vec::new(), at: START }
    }

    fn seconds(&mut self, seconds: u64) -> &mut Self {
        self.at.0 += seconds * 1_000;
        let Self { simulation, messages, at } = self;
        simulation.run_until(*at, &mut |m| {
            messages.push((m.at_ms, m.channel, m.name.to_owned(), m.payload.to_vec()))
        });
        self
    }

    fn apply(&mut self, change: Change) -> Result<(), ChangeError> {
        let Self { simulation, messages, at } = self;
        simulation.apply(*at, change, &mut |m| {
            messages.push((m.at_ms, m.channel, m.name.to_owned(), m.payload.to_vec()))
        })
    }

    #[track_caller]
    fn change(&mut self, change: Change) -> &mut Self {
        self.apply(change).expect("it can be changed");
        self
    }

    /// What was sent since there were so many messages, of one channel.
    fn since(&self, from: usize, of: Channel) -> Vec<(&str, String)> {
        let since = self.messages[from..].iter().filter(|(_, channel, ..)| *channel == of);
        since
            .map(|(_, _, name, payload)| (name.as_str(), String::from_utf8_lossy(payload).into_owned()))
            .collect()
    }

    fn in_flight(&self) -> u32 {
        let of = |worker| self.simulation.running_and_queued(worker);
        (0..self.simulation.workers()).map(of).map(|(running, queued)| running + queued).sum()
    }

    /// Cached ÷ prompt tokens of the requests that ended since `from`.
    fn hit_rate(&self, from: Millis) -> f64 {
        let requests =
            self.simulation.report().requests.iter().filter(|request| request.finished_at_ms > from);
        let (cached, prompt) = requests.fold((0u64, 0u64), |(cached, prompt), request| {
            (cached + u64::from(request.cached_tokens), prompt + u64::from(request.isl_tokens))
        });
        cached as f64 / prompt as f64
    }
}

#[test]
fn the_same_changes_at_the_same_times_give_the_same_bytes() {
    let run = |third| {
        let mut run = Run::new(small());
        run.seconds(30)
            .change(Change::Concurrency(30))
            .seconds(20)
            .change(Change::RouterMode(RouterMode::RoundRobin));
        run.seconds(15)
            .change(Change::OverlapScoreWeight(0.5))
            .change(Change::RouterMode(RouterMode::Kv))
            .seconds(10);
        run.change(Change::Break(Fault::KillWorker))
            .seconds(20)
            .change(Change::Mend)
            .seconds(20)
            .change(third)
            .seconds(30);
        run.messages
    };
    let restart = |seed| Change::Restart { seed, fault: None };
    let first = run(restart(5));
    assert!(first == run(restart(5)), "equal changes, other bytes");
    assert!(first != run(restart(6)), "the seed changes nothing");
    assert!(first.is_sorted_by_key(|(at_ms, ..)| *at_ms), "messages are not in order of time");
}

#[test]
fn a_change_that_is_refused_leaves_everything_as_it_was() {
    let mut run = Run::new(small());
    run.seconds(30);
    for (change, why) in [
        (Change::Concurrency(0), "concurrency is 0"),
        (Change::OverlapScoreWeight(-1.0), "overlap_score_weight is -1"),
        (Change::RouterTemperature(f64::NAN), "router_temperature is NaN"),
        (Change::Break(Fault::Churn), "restart the simulation with it"),
        (Change::Mend, "nothing to mend"),
    ] {
        let error = run.apply(change).expect_err("refused").to_string();
        assert!(error.contains(why), "{error}");
    }
    run.seconds(30);
    let mut alone = Run::new(small());
    alone.seconds(30).seconds(30);
    assert!(run.messages == alone.messages);
}

#[test]
fn users_join_and_leave_and_those_in_flight_finish() {
    let mut run = Run::new(small());
    run.seconds(60);
    let few = run.in_flight();
    run.change(Change::Concurrency(120)).seconds(60);
    let (many, failed) = (run.in_flight(), run.simulation.report().failed_total);
    assert!(few <= 12 && many > 60, "{few} in flight, then {many}");
    run.change(Change::Concurrency(3)).seconds(60);
    assert!((1..=3).contains(&run.in_flight()), "{}", run.in_flight());
    assert_eq!(run.simulation.report().failed_total, failed, "requests in flight finish");
    // Back and forth at once: nobody is there twice.
    run.change(Change::Concurrency(40))
        .change(Change::Concurrency(2))
        .change(Change::Concurrency(10))
        .seconds(60);
    assert!((4..=10).contains(&run.in_flight()), "{}", run.in_flight());
}

#[test]
fn more_users_than_places_queue() {
    let mut run = Run::new(Config { max_batch: 8, ..small() });
    let queued =
        |run: &Run| -> u32 { (0..3).map(|worker| run.simulation.running_and_queued(worker).1).sum() };
    run.seconds(40);
    let before = queued(&run);
    run.change(Change::Concurrency(60)).seconds(40);
    assert!(before <= 4 && queued(&run) > 15, "{before} queued, then {}", queued(&run));
}

#[test]
fn round_robin_reuses_less_and_looks_like_a_frontend_with_other_flags() {
    let mut run = Run::new(Config { workload: Workload { starters: 12, ..Workload::short() }, ..small() });
    run.seconds(120);
    let (kv, from) = (run.hit_rate(START), run.messages.len());
    let (router, at) = (run.simulation.router_id(), run.at);
    run.change(Change::RouterMode(RouterMode::RoundRobin)).seconds(120);
    let turns = run.hit_rate(at);
    assert!(turns < kv - 0.05, "KV-aware {kv:.3}, round-robin {turns:.3}");
    assert_ne!(run.simulation.router_id(), router);
    let log = run.since(from, Channel::Log);
    assert!(log[0].1.ends_with("Runtime shutdown initiated"), "{}", log[0].1);
    assert!(log.iter().all(|(_, line)| !line.contains("Formula for worker_id")), "it still weighs costs");
    let from = run.messages.len();
    run.change(Change::OverlapScoreWeight(2.5)).change(Change::RouterMode(RouterMode::Kv)).seconds(30);
    let formulas = run.since(from, Channel::Log);
    assert!(formulas.iter().any(|(_, line)| line.contains("= 2.5 * prefill_blocks")), "another weight");
}

#[test]
fn a_frontend_of_1_6_says_what_it_restarted_with() {
    let mut run = Run::new(Config { topology: Topology::Disaggregated, ..small() });
    let from = run.seconds(20).messages.len();
    run.change(Change::OverlapScoreWeight(2.0)).change(Change::RouterTemperature(0.5)).seconds(5);
    let log = run.since(from, Channel::Log);
    let dump = log.iter().rfind(|(_, line)| line.contains("CONFIG_DUMP")).expect("it says so");
    assert!(
        dump.1.contains(r#""prefill_load_scale":2.0"#) && dump.1.contains(r#""router_temperature":0.5"#),
        "{}",
        dump.1
    );
}

#[test]
fn every_fault_that_can_begin_while_it_runs_begins_and_ends_in_every_topology() {
    for topology in Topology::ALL {
        for fault in Fault::ALL {
            let mut run = Run::new(Config { topology, blocks_per_worker: 1_000, ..small() });
            run.seconds(15);
            if fault.is_set_up() {
                assert_eq!(
                    run.apply(Change::Break(fault)),
                    Err(ChangeError::NeedsRestart { name: fault.name() })
                );
                run.change(Change::Restart { seed: 2, fault: Some(fault) }).seconds(15);
                assert_eq!(run.apply(Change::Mend), Err(ChangeError::CannotMend { name: fault.name() }));
                run.change(Change::Restart { seed: 2, fault: None });
            } else {
                run.change(Change::Break(fault)).seconds(20);
                assert_eq!(
                    run.apply(Change::Break(fault)),
                    Err(ChangeError::IsBroken { name: fault.name() })
                );
                run.change(Change::Mend);
                assert_eq!(run.apply(Change::Mend), Err(ChangeError::NothingToMend));
            }
            let before = run.simulation.report().finished_total;
            run.seconds(40);
            let report = run.simulation.report();
            assert!(
                report.finished_total > before,
                "{} {}: nothing is served",
                topology.name(),
                fault.name()
            );
            let (failed, at) = (report.failed_total, run.at);
            run.seconds(20);
            let report = run.simulation.report();
            assert_eq!(report.failed_total, failed, "{} {}", topology.name(), fault.name());
            let recent = report.requests.iter().filter(|request| request.finished_at_ms > at);
            let busy: BTreeSet<u16> = recent.map(|request| request.worker).collect();
            // Who prefills is chosen by what is cached alone: one of three may have nothing to do.
            let first = if topology == Topology::Disaggregated { 3 } else { 0 };
            let all: BTreeSet<u16> = (first..run.simulation.workers()).collect();
            assert_eq!(busy, all, "{} {}: workers that serve", topology.name(), fault.name());
        }
    }
}

#[test]
fn a_killed_worker_comes_back_as_another_one() {
    for topology in [Topology::Aggregated, Topology::Disaggregated] {
        for mended_after_s in [2, 20] {
            let mut run = Run::new(Config { topology, blocks_per_worker: 1_000, ..small() });
            run.seconds(20);
            let ids = |run: &Run| -> BTreeSet<u64> {
                (0..run.simulation.workers()).map(|worker| run.simulation.worker_id(worker)).collect()
            };
            let before = ids(&run);
            let from = run.change(Change::Break(Fault::KillWorker)).seconds(mended_after_s).messages.len();
            run.change(Change::Mend).seconds(20);
            let gone: Vec<u64> = before.difference(&ids(&run)).copied().collect();
            let [gone] = gone[..] else { panic!("{gone:?} left") };
            let deleted = run.since(from, Channel::Deletion);
            assert!(
                matches!(&deleted[..], [(key, body)] if key.ends_with(&format!("{gone:x}")) && body.is_empty())
            );
            let cards = run.since(from, Channel::Discovery);
            assert_eq!(cards.len(), 1, "one worker registers");
        }
    }
}

#[test]
fn hot_and_slow_come_and_go_in_the_figures() {
    let mut run = Run::new(Config { concurrency: 30, ..small() });
    let p95 = |run: &Run, from: Millis| -> u64 {
        let mut all: Vec<u64> = run
            .simulation
            .report()
            .requests
            .iter()
            .filter(|r| r.sent_at_ms > from)
            .map(|r| r.ttft_us)
            .collect();
        all.sort_unstable();
        all[all.len() * 95 / 100]
    };
    let share = |run: &Run, from: Millis| -> f64 {
        let all: Vec<u16> = run
            .simulation
            .report()
            .requests
            .iter()
            .filter(|r| r.sent_at_ms > from)
            .map(|r| r.worker)
            .collect();
        all.iter().filter(|&&worker| worker == 0).count() as f64 / all.len() as f64
    };
    let usual = p95(run.seconds(60), START);
    let at = run.at;
    run.change(Change::Break(Fault::Slow)).seconds(60);
    assert!(p95(&run, at) > usual * 3 / 2, "{usual} µs, slow {}", p95(&run, at));
    run.change(Change::Mend).seconds(20);
    let at = run.at;
    run.seconds(60);
    assert!(p95(&run, at) < usual * 3 / 2, "{usual} µs, mended {}", p95(&run, at));
    let at = run.at;
    run.change(Change::Break(Fault::HotWorker)).seconds(60);
    assert!(share(&run, at) > 0.55, "hot {:.2}", share(&run, at));
    run.change(Change::Mend).seconds(20);
    let at = run.at;
    run.seconds(60);
    assert!(share(&run, at) < 0.5, "mended {:.2}", share(&run, at));
}

#[test]
fn a_restart_is_a_new_deployment_and_time_goes_on() {
    let mut run = Run::new(small());
    run.seconds(30);
    let (from, router) = (run.messages.len(), run.simulation.router_id());
    let old: BTreeSet<u64> = (0..3).map(|worker| run.simulation.worker_id(worker)).collect();
    // With the same seed: the same traffic, yet other processes.
    run.change(Change::Restart { seed: 1, fault: None }).seconds(30);
    let new: BTreeSet<u64> = (0..3).map(|worker| run.simulation.worker_id(worker)).collect();
    assert!(old.is_disjoint(&new) && run.simulation.router_id() != router);
    assert_eq!(run.since(from, Channel::Deletion).len(), 3);
    assert_eq!(run.since(from, Channel::Discovery).len(), 3);
    assert!(
        run.messages.is_sorted_by_key(|(at_ms, ..)| *at_ms) && run.simulation.report().finished_total > 0
    );
}

#[test]
fn what_was_changed_holds_after_a_restart() {
    let mut run = Run::new(small());
    run.seconds(20).change(Change::Concurrency(20)).change(Change::RouterMode(RouterMode::RoundRobin));
    run.change(Change::Restart { seed: 9, fault: Some(Fault::NoEvents) }).seconds(20);
    let asked = run.simulation.asked();
    assert_eq!((asked.concurrency, asked.router.router_mode, asked.seed), (20, RouterMode::RoundRobin, 9));
}

#[test]
fn nothing_happens_in_idle_time() {
    let mut run = Run::new(small());
    run.seconds(30);
    let from = run.messages.len();
    run.simulation.pass_idle(10_000);
    run.seconds(10);
    assert_eq!(run.messages.len(), from, "something happened");
    run.seconds(10);
    assert!(run.messages.len() > from && run.messages[from].0 >= Millis(run.at.0 - 10_000));
}
