//! The largest prefixes, and those most used.

use serde::Serialize;

use super::element::Element;
use super::{SumsOfAll, TreeSnapshot};
use radixscope_model::id::{Millis, Seq};
use radixscope_state::cluster::TOUCH_MS;
use radixscope_state::tree::forest::{Arrangement, Chain, Forest};

/// By what prefixes are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PrefixOrder {
    /// Blocks at and below them.
    #[default]
    Blocks,
    /// Requests that found them held.
    Hits,
}

/// The prefixes that say something new, ranked.
#[derive(Serialize)]
pub struct PrefixesResponse<'p> {
    seq: Seq,
    at_ms: Millis,
    pool: &'p str,
    by: PrefixOrder,
    totals: SumsOfAll,
    prefixes: Vec<Element<'p>>,
}

impl TreeSnapshot {
    /// Up to `most` prefixes that say something new, see [`Forest::largest`] and [`Forest::hottest`].
    pub fn prefixes(
        &self,
        by: PrefixOrder,
        most: usize,
        window_ms: u64,
        kv_bytes_per_token: Option<u64>,
    ) -> PrefixesResponse<'_> {
        let hits_window = u32::try_from(window_ms / TOUCH_MS).unwrap_or(u32::MAX);
        let forest = Forest::of(self.tree(), Arrangement { hits_window, ..Arrangement::default() });
        let ranked = match by {
            PrefixOrder::Blocks => forest.largest(most),
            PrefixOrder::Hits => forest.hottest(most),
        };
        let are_hits_known = self.requests(window_ms).is_some();
        let element =
            |&id| self.element_of(forest.chain(id), forest.children(Some(id)).len(), are_hits_known);
        PrefixesResponse {
            seq: self.seq,
            at_ms: self.at_ms,
            pool: &self.pool_name,
            by,
            totals: self.sums_of_all(window_ms, kv_bytes_per_token),
            prefixes: ranked.iter().map(element).collect(),
        }
    }

    fn element_of(&self, chain: &Chain, branches: usize, are_hits_known: bool) -> Element<'_> {
        let (tree, sums) = (self.tree(), &chain.sums);
        let below = |node| tree.children(node).next();
        let blocks = std::iter::successors(Some(chain.first), |&node| match node == chain.last {
            true => None,
            false => below(node),
        });
        Element {
            picture: self,
            level: None,
            first: chain.first,
            last: chain.last,
            len: chain.len,
            position: Some(chain.position),
            blocks: sums.blocks,
            shared: sums.shared,
            copies: sums.copies,
            depth: Some(sums.bottom),
            hits: are_hits_known.then_some(sums.hits),
            touched: blocks.map(|node| tree.touched(node)).max().unwrap_or_default(),
            subtree_touched: sums.touched,
            branches,
        }
    }
}
