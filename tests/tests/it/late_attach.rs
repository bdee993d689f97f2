//! Recordings of real Dynamo that ran already, replayed through real sockets to the program that attaches to them: in the end it
//! shows what the workers held in truth, block for block.

use radixscope_tests::late::{Attaching, Deployment, FoundBy, source, truth};
use serde_json::json;

fn nothing(_: u64) -> bool {
    false
}

/// Attaches, receives everything, and compares; `kind`: the event plane.
async fn is_the_truth(attaching: Attaching, kind: &str) {
    let mut deployment = Deployment::start(attaching).await;
    deployment.at_once = u64::MAX;
    let server = deployment.attach().await;
    deployment.play(&server, false).await;
    let cluster = truth::agrees(&server, deployment.truth(), &[]).await;
    let plane = source(&cluster, kind);
    assert_eq!(
        (&plane["missed_total"], &plane["rejected"], &plane["dropped"]),
        (&json!(0), &json!([]), &json!(0))
    );
    assert!(deployment.queried().iter().all(|(_, start)| start.is_none()), "{:?}", deployment.queried());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_nats_a_late_viewer_holds_what_the_workers_hold() {
    let attaching = Attaching {
        name: "1.6.1-nats-late-replica-sync",
        before: Some(("late", 1.0)),
        found_by: FoundBy::Frontend,
        loses: nothing,
    };
    is_the_truth(attaching, "nats").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_zeromq_a_late_viewer_holds_what_the_workers_hold() {
    let attaching = Attaching {
        name: "1.6.1-zmq-default",
        before: Some(("mid", 1.0)),
        found_by: FoundBy::Folder,
        loses: nothing,
    };
    is_the_truth(attaching, "zmq").await;
}
