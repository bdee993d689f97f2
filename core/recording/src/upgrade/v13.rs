//! Version 13: nothing was known of what routers run with. A keyframe's head ended before the lists that came with version 14, which
//! begin empty; every record of it is a record of 14.

use serde::{Deserialize, Serialize};

use radixscope_model::frame::{Batch, BatchWriter, FrameError};
use radixscope_model::id::{PoolIx, Slot};
use radixscope_model::record::Tier;
use radixscope_state::tree::TreePart;

/// Lists at the end of the head that are new: of settings.
const NEW_LISTS: usize = 1;
/// An empty list.
const EMPTY: u8 = 0;

/// A part of a keyframe in version 14.
pub(super) fn part(bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
    let part = match postcard::from_bytes(bytes)? {
        Part::Head(mut head) => {
            head.extend([EMPTY; NEW_LISTS]);
            Part::Head(head)
        }
        // The digest is of the former state.
        Part::End { hidden, .. } => Part::End { hidden, digest: None },
        tree @ Part::Tree(..) => tree,
    };
    Ok(postcard::to_allocvec(&part)?)
}

/// A batch in version 14, as a frame.
pub(super) fn batch(batch: &Batch<'_>) -> Result<Vec<u8>, FrameError> {
    let mut writer = BatchWriter::new(batch.first_seq);
    for entry in batch.entries() {
        writer.push(&entry?.1)?;
    }
    writer.finish(batch.at_ms, None)
}

/// A part of a keyframe, the same in both.
#[derive(Serialize, Deserialize)]
enum Part {
    Head(Vec<u8>),
    Tree(PoolIx, Option<Tier>, Box<TreePart>),
    End { hidden: Vec<(Slot, Option<Tier>, u64)>, digest: Option<Digest> },
}

#[derive(Serialize, Deserialize)]
struct Digest(#[serde(with = "postcard::fixint::le")] u64);
