//! Several servers for one deployment behind one address, as `deploy/kubernetes` runs them: each knows everything by itself,
//! and whose server ends is served by another.

use radixscope_exhaustive::balancer::Balancer;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::metrics;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::viewer::Viewer;
use radixscope_tests::{replay, wait};
use serde_json::Value;

/// Two servers that received the same, and the load balancer before them.
async fn replicas(nats: &Nats, capture: &Capture) -> (Vec<Radixscope>, Balancer) {
    let servers = vec![Radixscope::serve(&nats.url()).await, Radixscope::serve(&nats.url()).await];
    for server in &servers {
        server.until_ready().await;
    }
    replay::publish(&nats.client().await, &capture.messages).await;
    let mut known = Vec::new();
    for server in &servers {
        known.push(of_dynamo(&server.until_quiet(capture.publications() as u64).await));
    }
    assert_eq!(known[0], known[1], "each is complete by itself");
    let ports: Vec<u16> = servers.iter().map(Radixscope::port).collect();
    let balancer = Balancer::start(ports).await;
    (servers, balancer)
}

/// What of the state is Dynamo's and not the server's own: the workers with what they hold, and the decisions.
fn of_dynamo(cluster: &Value) -> Value {
    let workers = cluster["workers"].as_array().expect("workers").iter().map(|worker| {
        ["worker_id", "dp_rank", "blocks", "stored_total", "removed_total"].map(|field| worker[field].clone())
    });
    let workers: Vec<_> = workers.collect();
    assert!(!workers.is_empty(), "there are workers");
    serde_json::json!([workers, cluster["tree"]["blocks"], cluster["decisions"]["count"]])
}

/// Which of the servers has a viewer.
async fn serving(servers: &[Radixscope]) -> usize {
    wait::until("one of them serves the viewer", async || {
        for (at, server) in servers.iter().enumerate() {
            let metrics = metrics::parse(server.get("/metrics").await.text())?;
            if metrics::value(&metrics, "radixscope_viewers", &[]) == Some(1.0) {
                return Ok(at);
            }
        }
        Err("none does".to_owned())
    })
    .await
}

#[tokio::test]
async fn viewers_of_a_server_that_is_killed_go_on_at_another() {
    let nats = Nats::start().await;
    let (mut servers, balancer) = replicas(&nats, &Capture::load("0.9.1-worker-restart")).await;
    let url = format!("ws://{}/ws", balancer.authority());
    let (one, two) = (Viewer::connect(&url, None).await, Viewer::connect(&url, None).await);
    for viewer in [&one, &two] {
        viewer.until("it has the state", |seen| seen.state.as_ref().map(drop).ok_or_else(String::new)).await;
    }
    let epochs = [&one, &two].map(|viewer| viewer.with(|seen| seen.epoch));
    assert_ne!(epochs[0], epochs[1], "each server has one of them");

    servers[0].kill();
    let (ended, other) = wait::until("one of them is cut off", async || {
        let ended = [&one, &two].map(|viewer| viewer.with(|seen| seen.ended.is_some()));
        match ended {
            [true, false] => Ok((0, 1)),
            [false, true] => Ok((1, 0)),
            now => Err(format!("{now:?}")),
        }
    })
    .await;
    let viewers = [one, two];
    let stayed = viewers[other].with(|seen| seen.epoch);
    let mut viewers = viewers.map(Some);
    let resume = viewers[ended].take().expect("it is there").cut();
    let moved = Viewer::connect(&url, Some(resume)).await;
    moved
        .until("it is given the other server's state", |seen| {
            wait::expect(seen.snapshots == 1 && seen.epoch == stayed, || {
                format!("{} snapshots", seen.snapshots)
            })
        })
        .await;
    moved.agrees_with(&servers[1]).await;
    viewers[other].as_ref().expect("it is there").agrees_with(&servers[1]).await;
}

/// Servers count their records each for itself: the same number may mean another state until the page has moved.
async fn has_the_state_of(page: &Page, server: &Radixscope) {
    page.until("the page has this server's state", async |page| {
        let (cluster, digest) = (server.cluster().await, page.attribute("body", "data-digest").await);
        wait::expect(cluster["digest"].as_str() == digest.as_deref(), || format!("{digest:?}"))
    })
    .await;
}

#[tokio::test]
async fn a_page_whose_server_is_killed_moves_over_where_it_was() {
    let nats = Nats::start().await;
    let (mut servers, balancer) = replicas(&nats, &Capture::load("0.9.1-worker-restart")).await;
    with_page(async |page| {
        let worker = servers[0].cluster().await["workers"][0]["worker_id"].as_str().expect("an id").to_owned();
        page.open(&format!("http://{}/?theme=dark&view=workers&worker={worker}", balancer.authority())).await;
        let first = serving(&servers).await;
        // Its first state may have come from the other one.
        has_the_state_of(page, &servers[first]).await;
        let address = page.address().await;
        let held = page.blocks_of_workers(&servers[first]).await;
        // From here on every notice that was ever shown is kept.
        page.eval(
            "(window.notices = new Set(), new MutationObserver(() => document.querySelectorAll('[data-testid^=notice-]') \
             .forEach(e => window.notices.add(e.dataset.testid))) \
             .observe(document.body, {childList: true, subtree: true}), true)",
        )
        .await;

        servers[first].kill();
        let other = &servers[1 - first];
        has_the_state_of(page, other).await;
        page.until_true("the page is live", "document.body.dataset.connection === 'live'").await;
        assert_eq!(page.address().await, address, "the address stays");
        assert_eq!(page.blocks_of_workers(other).await, held, "and what is shown");
        let other = "[...window.notices].filter(n => !['notice-reconnecting', 'notice-connecting'].includes(n))";
        assert_eq!(page.eval(other).await, serde_json::json!([]), "nothing but that it connects was announced");
        page.screenshot("moved-over").await;
        // With the test's end the page is asked for complaints: there must be none.
    })
    .await;
}

#[tokio::test]
async fn servers_without_nats_stay_within_reach_for_those_who_want_to_know_why() {
    let mut nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    nats.stop();
    wait::until("it notices", async || {
        let response = server.try_get("/readyz").await?;
        wait::expect(response.status == 503, || response.text().to_owned())
    })
    .await;
    let response = server.get("/readyz?once").await;
    assert_eq!(response.status, 200, "Kubernetes goes on sending people here");
    assert_eq!(response.json()["ready"], false, "and the body agrees: {}", response.text());
    // One that never was ready is waited for.
    let never = Radixscope::serve(&nats.url()).await;
    assert_eq!(never.get("/readyz?once").await.status, 503);
}
