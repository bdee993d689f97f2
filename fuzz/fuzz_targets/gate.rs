//! The gate: an entry of discovery as a key, a line feed and a value; and the same bytes as a subject, a stream and an address.
//! What passes is of Dynamo's alphabet and of no special address.
#![no_main]

use std::net::{IpAddr, Ipv6Addr};

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::discovery::{DiscoveryEntry, decode};
use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_server::source::gate::{Destination, Gate, Special, plain};

fuzz_target!(|bytes: &[u8]| {
    let gate = Gate::default();
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    let (key, value) = bytes.split_at(end);
    let value = value.strip_prefix(b"\n").unwrap_or(value);
    // Also values whose keys the fuzzer did not find.
    for key in [
        &*String::from_utf8_lossy(key),
        "v1/instances/a/b/c/1",
        "v1/event_sources/namespace/a/topic/kv-events/1",
    ] {
        let endpoint = match decode(key, value) {
            Ok(DiscoveryEntry::Instance(instance)) => instance.query_endpoint(),
            Ok(DiscoveryEntry::EventSource(source)) => source.recovery,
            Ok(_) | Err(_) => None,
        };
        endpoint.iter().for_each(|endpoint| query(&gate, endpoint));
    }
    let text = String::from_utf8_lossy(bytes);
    if gate.subscription(&text).is_ok() {
        is_plain(&text);
    }
    if gate.is_stream(&text) {
        assert!(text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')));
    }
    if let Some((first, _)) = bytes.split_first_chunk::<16>() {
        address(IpAddr::V6(Ipv6Addr::from(*first)));
    }
    if let Some((first, _)) = bytes.split_first_chunk::<4>() {
        address(IpAddr::from(*first));
    }
});

/// What is sent to an endpoint that passes.
fn query(gate: &Gate, endpoint: &QueryEndpoint) {
    match gate.query(endpoint) {
        Ok(Destination::Tcp { path, .. }) => {
            assert!(path.starts_with(&format!("{:x}/", endpoint.worker.id.0)));
            is_plain(&path.replace('/', "."));
        }
        Ok(Destination::Nats { subject }) => {
            is_plain(&subject);
            assert!(subject.ends_with(&format!("-{:x}", endpoint.worker.id.0)));
        }
        Err(refused) => assert!(refused.detail.len() < 1_000 && !refused.detail.contains(char::is_control)),
    }
}

/// Tokens of letters, digits, `-` and `_`, none of which belongs to NATS itself.
fn is_plain(subject: &str) {
    assert!(!subject.starts_with(['$', '_']));
    let is_token = |token: &str| {
        !token.is_empty() && token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    assert!(subject.split('.').all(is_token), "{subject:?}");
}

/// One that is not special is so in no spelling.
fn address(ip: IpAddr) {
    assert_eq!(Special::of(ip), Special::of(plain(ip)));
    if Special::of(ip).is_none() {
        let is_special = match ip.to_canonical() {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
            IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified(),
        };
        assert!(!is_special, "{ip}");
    }
}
