//! Processes that go away and come back (reference §8.3).

use radixscope_sim::Fault;

use crate::sim_faults::observer::{START, Seen, later};

/// The lines of the frontend's log after the one that has `words` in it.
fn lines_after<'s>(seen: &'s Seen, text: &str) -> Vec<&'s str> {
    let lines = seen.lines.iter().filter(|(log, _)| log == "frontend").map(|(_, line)| line.as_str());
    lines.skip_while(|line| !line.contains(text)).skip(1).collect()
}

fn removed(seen: &Seen) -> String {
    let id = seen.simulation.worker_id(2);
    format!(
        "WARN dynamo_llm::kv_router::subscriber: DISCOVERY: Generate endpoint instance removed, removing worker {id}"
    )
}

#[test]
fn a_killed_worker_falls_silent_and_leaves_after_its_lease() {
    let seen = later(Fault::KillWorker, 30, 90);
    let (id, report) = (seen.simulation.worker_id(2), seen.simulation.report());
    let last = seen.worker(2).last_sign_ms.map(|at| at.since(START));
    assert!(last.is_some_and(|ms| ms <= 36_000), "only routers spoke of it after its death: {last:?}");
    assert!(seen.worker(2).last_event_ms.is_some_and(|at| at.since(START) <= 30_000));
    assert_eq!(seen.scraped["worker-3"].0, 28_000, "nor is it scraped");
    assert_eq!(seen.scraped["worker-1"].0, 90_000);
    // Of its requests, and of those that were sent there in vain.
    assert!(report.failed_total > 3);
    let failed = "dynamo_frontend_requests_total{endpoint=\"chat_completions\",\
                  model=\"simulated/llama-70b-fp8\",request_type=\"stream\",status=\"error\"}";
    assert_eq!(seen.value("frontend", failed), report.failed_total as f64);
    let disconnected = seen.count_lines("Cannot recreate stream: Migration limit exhausted");
    let refused = seen.count_lines("Failed to generate completions: Connection refused (os error 111)");
    assert_eq!((disconnected + refused) as u64, report.failed_total);
    assert_eq!(seen.count_lines(&removed(&seen)), 1);
    let text = format!("Removing worker WorkerWithDpRank {{ worker_id: {id}, dp_rank: 0 }}");
    assert_eq!(seen.count_lines(&text), 1);
    let after = lines_after(&seen, &text);
    assert!(after.iter().filter(|line| line.contains("Selected worker")).count() > 50);
    assert!(after.iter().all(|line| !line.contains(&format!("worker_id={id} "))));
    let in_flight = seen.value("frontend", "dynamo_frontend_inflight_requests");
    assert!(in_flight <= 24.0, "{in_flight}");
}

#[test]
fn a_ghost_is_removed_and_goes_on() {
    let seen = later(Fault::GhostWorker, 30, 90);
    let id = seen.simulation.worker_id(2);
    assert_eq!(seen.count_lines(&removed(&seen)), 1);
    let after = lines_after(&seen, &removed(&seen));
    assert!(after.iter().any(|line| line.contains(&format!("Selected worker: worker_id={id} "))));
    assert!(after.iter().any(|line| line.contains(&format!("skipping remove operation worker_id=\"{id}\""))));
    assert!(seen.worker(2).last_event_ms.is_some_and(|at| at.since(START) > 80_000));
    assert_eq!((seen.simulation.report().failed_total, seen.scraped["worker-3"].0), (0, 90_000));
    // Its blocks were dropped when it was reported as left; it continued, and now refers to unknown blocks.
    assert!(seen.worker(2).returned_ms.is_some());
    let unknown = |at| seen.worker(at).unknown_parents_total + seen.worker(at).unknown_removed_total;
    assert_eq!((unknown(0), unknown(1)), (0, 0));
}

#[test]
fn a_restarted_router_has_a_new_id_fresh_counters_and_a_cold_index_for_a_minute() {
    let (before, cold, warm) = (
        later(Fault::RouterRestart, 60, 59),
        later(Fault::RouterRestart, 60, 75),
        later(Fault::RouterRestart, 60, 180),
    );
    let routers =
        |seen: &Seen| -> Vec<Option<u64>> { seen.worker(0).router_loads.iter().map(|l| l.router).collect() };
    assert_eq!((routers(&before).len(), routers(&cold).len()), (1, 2));
    assert_ne!(before.simulation.router_id(), cold.simulation.router_id());
    let started = |seen: &Seen| seen.value("frontend", "dynamo_frontend_time_to_first_token_seconds_count");
    assert!(started(&cold) < started(&before));
    let overlap = |seen: &Seen| {
        let now = seen.cluster.now_ms();
        let totals = seen.cluster.decisions().window(now, 10_000);
        totals.overlap_share().expect("decisions were made")
    };
    assert!(overlap(&before) > 0.6 && overlap(&warm) > 0.6);
    assert!(overlap(&cold) == 0.0);
    let after = lines_after(&cold, "KV Routing initialized");
    assert!(
        after
            .iter()
            .all(|line| !line.contains("Selected worker")
                || line.ends_with("tree size: 0, total blocks: 1200"))
    );
    assert_eq!(warm.complaints(), 0);
    let in_flight = warm.value("frontend", "dynamo_frontend_inflight_requests");
    assert!(in_flight <= 24.0 && in_flight > 10.0, "{in_flight}");
}
