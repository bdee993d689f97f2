//! The harness itself: servers start as asked, and recorded traffic comes out of NATS as it went in.

use futures_util::StreamExt;
use radixscope_tests::capture::{self, Capture};
use radixscope_tests::nats::{Access, Nats, Options};
use radixscope_tests::{replay, wait};

#[tokio::test]
async fn a_server_of_each_kind_takes_a_client_and_comes_back_on_its_port() {
    let kinds = [
        Options::default(),
        Options { jetstream: false, ..Options::default() },
        Options { access: Access::Password("user", "secret"), ..Options::default() },
        Options { access: Access::Token("t0ken"), ..Options::default() },
        Options { access: Access::Credentials, jetstream: false, ..Options::default() },
        Options { tls: true, ..Options::default() },
    ];
    for kind in kinds {
        let mut nats = Nats::with(kind).await;
        let url = nats.url();
        nats.stop();
        nats.start_again().await;
        assert_eq!(nats.url(), url);
    }
}

#[tokio::test]
async fn a_capture_comes_out_of_nats_as_it_went_in() {
    let nats = Nats::start().await;
    let client = nats.client().await;
    let mut all = client.subscribe("namespace.>").await.unwrap();
    client.flush().await.unwrap();
    let capture = Capture::load("0.9.1-no-events");
    replay::publish(&nats.client().await, &capture.messages).await;
    for sent in &capture.messages {
        let got = wait::within("the next message comes", all.next()).await.unwrap();
        assert_eq!((got.subject.as_str(), &got.payload), (sent.subject.as_str(), &sent.payload));
    }
}

#[test]
fn captures_with_a_stream_are_those_of_the_jetstream_line() {
    let with_stream: Vec<_> =
        capture::ALL.into_iter().filter(|name| Capture::load(name).has_stream()).collect();
    assert_eq!(with_stream, capture::JETSTREAM);
}

#[tokio::test]
async fn what_a_router_pulls_comes_by_again_where_somebody_listens_to_everything() {
    let nats = Nats::start().await;
    let jetstream = nats.jetstream().await;
    let (retained, _) = Capture::load("0.9.1-log-jsonl-info").split_by_stream();
    let retained = &retained[..50];
    let streams = replay::create_streams(&jetstream, retained).await;
    replay::publish_retained(&jetstream, retained).await;
    let client = nats.client().await;
    let mut everything = client.subscribe(">").await.unwrap();
    client.flush().await.unwrap();
    replay::pull_like_a_router(&jetstream, &streams[0], "4242", retained.len()).await;
    for sent in retained {
        let copy = wait::within("a copy comes by", async {
            loop {
                let message = everything.next().await.unwrap();
                if message.subject.as_str() == sent.subject {
                    return message;
                }
            }
        })
        .await;
        assert!(copy.reply.unwrap().starts_with("$JS.ACK."));
        assert_eq!(copy.payload, sent.payload);
    }
    assert_eq!(replay::consumers(&jetstream, &streams[0]).await, ["4242"]);
}
