//! Events of a worker that arrive while it is queried: kept to be applied once more after its response. Knows nothing of queries.

use std::ops::Range;

use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents};

/// Most events kept: at the highest rate ever measured of one worker, the events of ten seconds.
pub(super) const MAX_EVENTS: usize = 100_000;
/// Most blocks and hashes kept with them: 32 MiB.
const MAX_HASHES: usize = 1 << 21;

/// See the module.
#[derive(Default)]
pub(super) struct Queue {
    queued: KvEvents,
}

impl Queue {
    /// Keeps an event of `kv`. `false`: there is no room.
    pub(super) fn push(&mut self, event: &KvEvent, kv: &KvEvents) -> bool {
        let kept = &mut self.queued;
        if kept.events.len() == MAX_EVENTS || kept.blocks.len() + kept.removed.len() > MAX_HASHES {
            return false;
        }
        let data = match &event.data {
            KvData::Stored { parent, start_position, blocks, multimodal_inputs } => {
                let blocks = copied(&mut kept.blocks, kv.blocks_of(blocks));
                KvData::Stored {
                    parent: *parent,
                    start_position: *start_position,
                    blocks,
                    multimodal_inputs: *multimodal_inputs,
                }
            }
            KvData::Removed { hashes } => {
                KvData::Removed { hashes: copied(&mut kept.removed, kv.removed_of(hashes)) }
            }
            KvData::Cleared => KvData::Cleared,
        };
        kept.events.push(KvEvent { data, ..event.clone() });
        true
    }

    /// The events, in the order in which they came.
    pub(super) fn events(&self) -> &KvEvents {
        &self.queued
    }

    /// Events from number `from` on, with what they lie in.
    pub(super) fn from(&self, from: Option<u64>) -> impl Iterator<Item = &KvEvent> {
        self.queued.events.iter().filter(move |event| from.is_none_or(|from| event.event_id >= from))
    }
}

fn copied<T: Copy>(all: &mut Vec<T>, new: &[T]) -> Range<u32> {
    let start = all.len() as u32;
    all.extend_from_slice(new);
    start..all.len() as u32
}
