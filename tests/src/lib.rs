//! What the end-to-end tests are made of: real programs started and ended, recorded traffic, a viewer, a browser.
//!
//! `tests/it` has the tests that every change goes through, `exhaustive` all others.
//!
//! Everything here talks to the `radixscope` binary from outside, as people and their tools do; nothing knows how
//! the server works inside.
#![forbid(unsafe_code)]

pub mod browser;
pub mod capture;
pub mod check;
pub mod counted;
pub mod devtools;
pub mod discovery;
pub mod endless;
pub mod envelope;
pub mod etcd;
pub mod fake_worker;
pub mod figures;
pub mod fleet;
pub mod flood;
pub mod http;
pub mod late;
pub mod layout;
pub mod metrics;
pub mod nats;
pub mod one_worker;
pub mod pages;
pub mod panels;
pub mod paths;
pub mod process;
pub mod proxy;
pub mod radixscope;
pub mod raw;
pub mod recording;
pub mod replay;
pub mod scripted_workers;
pub mod traffic;
pub mod viewer;
pub mod wait;
