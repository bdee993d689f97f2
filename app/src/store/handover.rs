//! The state as it goes from one bundle of the page to another: a head, then the state's own snapshot in parts.

use js_sys::{Array, Uint8Array};
use leptos::prelude::*;
use radixscope_model::frame::PROTOCOL_VERSION;
use radixscope_model::id::Millis;
use radixscope_state::cluster::{Cluster, SnapshotReader};
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;

use super::{Check, Link, Resyncs, Store, now_ms};

/// Everything but the state itself. Its bytes begin with the protocol's version, as every frame does.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(with = "postcard::fixint::le")]
    epoch: u64,
    now_ms: Millis,
    live: bool,
    server: String,
    check: Check,
    resyncs: Resyncs,
}

impl Store {
    /// Gives the state away as an array of byte arrays; empty where there is none to give. What is given is held by the
    /// browser, not by this bundle's memory, which could never be made smaller again.
    pub(crate) fn give(self) -> Array {
        let parts = Array::new();
        let push = |bytes: Vec<u8>| {
            parts.push(&Uint8Array::from(bytes.as_slice()));
        };
        let cluster = self.live.try_update_value(|live| {
            let head = Head {
                epoch: live.epoch?,
                now_ms: live.now_ms,
                live: self.link.get_untracked() == Link::Live,
                server: self.server.get_untracked(),
                check: self.check.get_untracked(),
                resyncs: self.resyncs.get_untracked(),
            };
            push(postcard::to_extend(&head, vec![PROTOCOL_VERSION]).ok()?);
            Some(std::mem::take(&mut live.cluster))
        });
        match cluster.flatten().map(|cluster| cluster.snapshot(push)) {
            Some(Ok(())) => parts,
            Some(Err(_)) | None => Array::new(),
        }
    }

    /// Takes over what another bundle gave; says whether it could. The next connection then resumes where the other's
    /// ended.
    pub(crate) fn take_over(self, parts: &Array) -> bool {
        self.restore(parts).is_some()
    }

    fn restore(self, parts: &Array) -> Option<()> {
        let mut parts = parts.iter().map(|part| part.dyn_into().map(|bytes: Uint8Array| bytes.to_vec()));
        let head = parts.next()?.ok()?;
        let head: Head = match head.as_slice() {
            [PROTOCOL_VERSION, head @ ..] => postcard::from_bytes(head).ok()?,
            _ => return None,
        };
        let mut reader = SnapshotReader::default();
        let cluster: Cluster = parts.find_map(|part| reader.part(&part.ok()?).ok()?)?;
        self.live.update_value(|live| {
            live.epoch = Some(head.epoch);
            live.now_ms = head.now_ms;
            live.received_at_ms = now_ms();
            live.digest = Some((cluster.seq(), cluster.digest()));
            live.cluster = cluster;
        });
        self.server.set(head.server);
        self.check.set(head.check);
        self.resyncs.set(head.resyncs);
        if head.live {
            // So it stays until something else is known: the new connection is a matter of milliseconds.
            self.link.set(Link::Live);
        }
        self.ready.set(true);
        Some(())
    }
}
