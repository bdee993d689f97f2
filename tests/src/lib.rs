//! What the end-to-end tests are made of: real programs started and ended, recorded traffic, a viewer, a browser.
//!
//! Everything here talks to the `radixscope` binary from outside, as people and their tools do; nothing knows how
//! the server works inside.
#![forbid(unsafe_code)]

pub mod api_server;
pub mod balancer;
pub mod browser;
pub mod capture;
pub mod devtools;
pub mod discovery;
pub mod endless;
pub mod envelope;
pub mod etcd;
pub mod fake_worker;
pub mod figures;
pub mod flood;
pub mod http;
pub mod kubernetes;
pub mod late;
pub mod layout;
pub mod metrics;
pub mod nats;
pub mod object_store;
pub mod one_worker;
pub mod pages;
pub mod paths;
pub mod process;
pub mod prometheus;
pub mod proxy;
pub mod radixscope;
pub mod random;
pub mod raw;
pub mod recording;
pub mod replay;
pub mod report;
pub mod slope;
pub mod synthetic_tree;
pub mod traffic;
pub mod viewer;
pub mod wait;
