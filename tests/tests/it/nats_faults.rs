//! What happens when NATS is not there, goes away, or refuses: said in words, and put right without a restart.

use std::net::Ipv4Addr;

use radixscope_tests::capture::Capture;
use radixscope_tests::figures;
use radixscope_tests::nats::{Access, Nats, Options};
use radixscope_tests::proxy::Proxy;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::Value;

/// Replays a capture and compares the figures.
async fn until_receiving(nats: &Nats, server: &Radixscope, name: &'static str) -> Value {
    server.until_ready().await;
    let capture = Capture::load(name);
    replay::publish(&nats.client().await, &capture.messages).await;
    let cluster = server.until_quiet(capture.publications() as u64).await;
    figures::of(name).check_cluster(&cluster).unwrap();
    cluster
}

async fn until_refused(server: &Radixscope) -> String {
    server.until_source_is("refused").await;
    let response = server.get("/readyz").await;
    assert_eq!(response.status, 503);
    let detail = response.json()["sources"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.len() > 20, "in words: {detail}");
    detail
}

#[tokio::test]
async fn absent_at_the_start_and_there_later() {
    let mut nats = Nats::start().await;
    nats.stop();
    let server = Radixscope::serve(&nats.url()).await;
    let cluster = server.until_source_is("connecting").await;
    assert!(!cluster["sources"][0]["detail"].as_str().unwrap().is_empty());
    let response = server.get("/readyz").await;
    assert_eq!(response.status, 503, "{}", response.text());
    assert_eq!(server.get("/healthz").await.status, 200, "not ready, but alive");
    nats.start_again().await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn what_a_stream_kept_while_we_were_away_is_not_lost() {
    let mut nats = Nats::start().await;
    let capture = Capture::load("0.9.1-healthy-vllm");
    let (retained, rest) = capture.split_by_stream();
    let jetstream = nats.jetstream().await;
    let streams = replay::create_streams(&jetstream, &retained).await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let thirds: Vec<_> = retained.chunks(retained.len().div_ceil(3)).collect();
    replay::publish_retained(&jetstream, thirds[0]).await;
    server
        .until_cluster("the first third is in", |cluster| {
            let stored = figures::sum(cluster["workers"].as_array().unwrap(), "stored_total");
            wait::expect(stored > 1000, || stored.to_string())
        })
        .await;
    // NATS goes away; when it is back, the workers are faster than we are.
    nats.stop();
    server.until_source_is("connecting").await;
    nats.start_again().await;
    let jetstream = nats.jetstream().await;
    replay::publish_retained(&jetstream, thirds[1]).await;
    replay::publish_retained(&jetstream, thirds[2]).await;
    server.until_ready().await;
    replay::publish(&nats.client().await, &rest).await;
    let cluster = server.until_quiet(capture.publications() as u64).await;
    figures::of(capture.name).check_cluster(&cluster).unwrap();
    assert_eq!(cluster["sources"][0]["missed"], Value::Array(Vec::new()), "nothing is lost");
    for stream in &streams {
        assert!(replay::consumers(&jetstream, stream).await.is_empty());
    }
}

#[tokio::test]
async fn what_core_nats_lost_while_we_were_away_is_counted() {
    let mut nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("0.9.1-localindexer");
    let third = capture.messages.len() / 3;
    let (before, rest) = capture.messages.split_at(third);
    let (during, after) = rest.split_at(third);
    replay::publish(&nats.client().await, before).await;
    server.until_quiet(before.len() as u64).await;
    nats.stop();
    server.until_source_is("connecting").await;
    nats.start_again().await;
    server.until_ready().await;
    // `during` was published while there was no NATS, so it is lost.
    replay::publish(&nats.client().await, after).await;
    server.until_quiet((before.len() + after.len()) as u64).await;
    // A gap counts as loss once nothing can come late any more.
    let lost =
        |topic: &str| during.iter().filter(|m| m.subject.ends_with(&format!(".{topic}"))).count() as u64;
    let cluster = server
        .until_cluster("the losses of every topic are counted", |cluster| {
            let missed = cluster["sources"][0]["missed"].as_array().unwrap();
            for topic in ["kv-events", "kv-hit-rate", "kv_metrics"] {
                let reported = missed.iter().find(|m| m["topic"] == topic && m["cause"] == "envelope_gap");
                let count = reported.map(|m| figures::number(m, "count"));
                wait::expect(count == Some(lost(topic)), || {
                    format!("{topic} of {}: {missed:?}", lost(topic))
                })?;
            }
            Ok(())
        })
        .await;
    let of_workers = figures::sum(cluster["workers"].as_array().unwrap(), "missed");
    assert!(of_workers >= lost("kv-events"), "lost events are put down to their workers: {of_workers}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_with_a_reason_and_recovers_when_put_right() {
    let access = Access::Password("dynamo", "right");
    let mut nats = Nats::with(Options { access, ..Options::default() }).await;
    let login = ["--nats-user", "dynamo", "--nats-password", "wr0ng-secret"];
    let server = Radixscope::serve_with(&nats.url(), &login).await;
    let detail = until_refused(&server).await;
    let everything = format!("{detail} {} {}", server.get("/readyz").await.text(), server.process().output());
    assert!(!everything.contains("wr0ng-secret"), "a password is shown nowhere: {everything}");
    nats.set_access(Access::Password("dynamo", "wr0ng-secret")).await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn a_password_that_is_changed_while_connected_is_refused_and_recovers() {
    let access = Access::Password("dynamo", "first");
    let mut nats = Nats::with(Options { access, ..Options::default() }).await;
    let login = ["--nats-user", "dynamo", "--nats-password", "first"];
    let server = Radixscope::serve_with(&nats.url(), &login).await;
    server.until_ready().await;
    nats.set_access(Access::Password("dynamo", "second")).await;
    until_refused(&server).await;
    nats.set_access(Access::Password("dynamo", "first")).await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn a_token_lets_us_in_and_no_token_does_not() {
    let nats = Nats::with(Options { access: Access::Token("s3same"), ..Options::default() }).await;
    let without = Radixscope::serve(&nats.url()).await;
    until_refused(&without).await;
    let server = Radixscope::serve_with(&nats.url(), &["--nats-token", "s3same"]).await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn a_credentials_file_lets_us_in_and_none_does_not() {
    // Operator mode without a system account has no JetStream.
    let options = Options { access: Access::Credentials, jetstream: false, ..Options::default() };
    let nats = Nats::with(options).await;
    let without = Radixscope::serve(&nats.url()).await;
    until_refused(&without).await;
    let file = nats.credentials_file();
    let server = Radixscope::serve_with(&nats.url(), &["--nats-creds", file.to_str().unwrap()]).await;
    until_receiving(&nats, &server, "1.6.1-log-jsonl-debug").await;
}

#[tokio::test]
async fn tls_needs_the_authority_that_signed_the_server() {
    let nats = Nats::with(Options { tls: true, ..Options::default() }).await;
    let untrusting = Radixscope::serve(&nats.url()).await;
    let cluster = untrusting
        .until_cluster("the certificate is refused in words", |cluster| {
            let detail = cluster["sources"][0]["detail"].as_str().unwrap().to_lowercase();
            wait::expect(detail.contains("certificate"), || cluster["sources"][0].to_string())
        })
        .await;
    assert_ne!(cluster["sources"][0]["state"], "live");
    let ca = nats.ca_file();
    let server = Radixscope::serve_with(&nats.url(), &["--nats-tls-ca", ca.to_str().unwrap()]).await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

/// What a server that cannot be reached by TLS is said to lack, in a word that the text has to hold.
async fn assert_tls_fails(url: &str, flags: &[&str], word: &str) {
    let server = Radixscope::serve_with(url, flags).await;
    let detail = until_refused(&server).await;
    assert!(detail.contains("--nats-tls-ca") && detail.contains(word), "{detail}");
}

#[tokio::test]
async fn every_failure_of_tls_says_what_to_change() {
    let nats = Nats::with(Options { tls: true, ..Options::default() }).await;
    assert_tls_fails(&nats.url(), &[], "Set --nats-tls-ca (RADIXSCOPE_NATS_TLS_CA) to the CA that signed")
        .await;
    let ca = nats.ca_file();
    let ca = ["--nats-tls-ca", ca.to_str().unwrap()];
    let elsewhere = Proxy::start_at(Ipv4Addr::new(127, 0, 0, 2), nats.port()).await;
    assert_tls_fails(&format!("tls://127.0.0.2:{}", elsewhere.port()), &ca, "another name").await;
    let other = Nats::with(Options { tls: true, ..Options::default() }).await;
    let other = other.ca_file();
    assert_tls_fails(&nats.url(), &["--nats-tls-ca", other.to_str().unwrap()], "did not sign").await;
    let plain = Nats::start().await;
    let address = format!("127.0.0.1:{}", plain.port());
    assert_tls_fails(&format!("tls://{address}"), &[], "does not speak TLS").await;
    assert_tls_fails(&format!("nats://{address}"), &ca, "--nats-tls-ca requires it").await;
    let strict = Nats::with(Options { tls: true, verify: true, ..Options::default() }).await;
    let ca = strict.ca_file();
    assert_tls_fails(&strict.url(), &["--nats-tls-ca", ca.to_str().unwrap()], "requires client certificates")
        .await;
}

#[tokio::test]
async fn a_user_who_may_subscribe_to_nothing_is_refused_and_recovers_when_allowed() {
    let access = Access::Limited("{ deny: \">\" }");
    let mut nats = Nats::with(Options { access, ..Options::default() }).await;
    let server = Radixscope::serve(&nats.url()).await;
    let detail = until_refused(&server).await;
    assert!(detail.contains("\"namespace.*.component.*.kv-events\""), "{detail}");
    nats.set_access(Access::Limited("\">\"")).await;
    until_receiving(&nats, &server, "0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn a_user_who_may_see_one_namespace_only_is_not_ready_unless_that_is_all_it_asks_for() {
    let allow = "{ allow: [\"namespace.dynamo.>\", \"*.kv-events\", \"dynamo.>\", \"_INBOX.>\"] }";
    let nats = Nats::with(Options { access: Access::Limited(allow), ..Options::default() }).await;
    let server = Radixscope::serve(&nats.url()).await;
    let cluster = server.until_source_is("partial").await;
    let detail = cluster["sources"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("\"namespace.*.kv_metrics\"") && detail.contains("--namespace"), "{detail}");
    assert!(!detail.contains("\"*.kv-events\""), "that one is allowed: {detail}");
    let response = server.get("/readyz").await;
    assert_eq!(response.status, 503);
    assert!(response.json()["message"].as_str().unwrap().contains("\"namespace.*.kv_metrics\""));
    let narrow = Radixscope::serve_with(&nats.url(), &["--namespace", "dynamo"]).await;
    until_receiving(&nats, &narrow, "1.6.1-log-jsonl-debug").await;
}

#[tokio::test]
async fn a_denied_namespace_is_not_ready() {
    let deny = "{ deny: \"namespace.dynamo.>\" }";
    let nats = Nats::with(Options { access: Access::Limited(deny), ..Options::default() }).await;
    let server = Radixscope::serve_with(&nats.url(), &["--namespace", "dynamo"]).await;
    server.until_source_is("partial").await;
    assert_eq!(server.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn without_jetstream_core_messages_are_all_there_is_and_that_is_fine() {
    let nats = Nats::with(Options { jetstream: false, ..Options::default() }).await;
    let server = Radixscope::serve(&nats.url()).await;
    until_receiving(&nats, &server, "1.6.1-log-jsonl-debug").await;
}

#[tokio::test]
async fn a_namespace_narrows_what_is_received() {
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), &["--namespace", "other"]).await;
    server.until_ready().await;
    let client = nats.client().await;
    let capture = Capture::load("0.9.1-log-jsonl-info");
    replay::publish(&client, &capture.messages).await;
    let renamed: Vec<_> = Capture::load("0.9.1-localindexer")
        .messages
        .into_iter()
        .map(|mut m| {
            m.subject = m.subject.replace("namespace.dynamo.", "namespace.other.");
            m
        })
        .collect();
    replay::publish(&client, &renamed).await;
    let cluster = server.until_quiet(renamed.len() as u64).await;
    figures::of("0.9.1-localindexer").check_cluster(&cluster).unwrap();
}
