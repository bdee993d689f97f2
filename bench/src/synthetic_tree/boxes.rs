//! What a picture of the tree consists of, by the generator's own knowledge: an icicle's boxes.

use std::cmp::Reverse;

use super::segments::Segments;

/// A run of blocks with the same owners and without a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawn {
    /// The run above, by its place in the list.
    pub parent: Option<u32>,
    /// Left edge, in distinct blocks.
    pub x: u64,
    /// Distinct blocks in it and below.
    pub width: u64,
    /// Blocks above it.
    pub depth: u32,
    /// Blocks in it.
    pub len: u32,
    /// Workers that hold it, a bit each.
    pub owners: u32,
}

/// Siblings stand side by side from the left edge of what is above them, the largest left.
pub(super) fn of(segments: &Segments) -> Vec<Drawn> {
    // What is above has a smaller id than what is below: one pass up sums, one pass down places.
    let n = segments.iter().count();
    let mut width = vec![0u64; n];
    let mut roots = Vec::new();
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); n];
    for (id, segment) in segments.iter().filter(|(_, segment)| segment.len > 0).rev() {
        width[id as usize] += u64::from(segment.len);
        match segments.parent(id) {
            Some(parent) => {
                width[parent as usize] += width[id as usize];
                below[parent as usize].push(id);
            }
            None => roots.push(id),
        }
    }
    let mut x = vec![0u64; n];
    let place = |x: &mut [u64], mut ids: Vec<u32>, mut edge: u64| {
        ids.sort_by_key(|&id| (Reverse(width[id as usize]), id));
        for id in ids {
            x[id as usize] = edge;
            edge += width[id as usize];
        }
    };
    place(&mut x, roots, 0);
    let mut boxes: Vec<Drawn> = Vec::new();
    let mut box_of = vec![0u32; n];
    for (id, segment) in segments.iter().filter(|(_, segment)| segment.len > 0) {
        let (at, left) = (id as usize, x[id as usize]);
        place(&mut x, std::mem::take(&mut below[at]), left);
        let parent = segments.parent(id).map(|parent| box_of[parent as usize]);
        let above = parent.map(|parent| &mut boxes[parent as usize]);
        match above {
            Some(above) if above.owners == segment.owners && segments.is_only_child(id) => {
                above.len += segment.len;
                box_of[at] = parent.unwrap_or_default();
            }
            _ => {
                box_of[at] = boxes.len() as u32;
                let (width, depth) = (width[at], segment.depth);
                boxes.push(Drawn { parent, x: left, width, depth, len: segment.len, owners: segment.owners });
            }
        }
    }
    boxes
}
