//! The largest prefixes, and those most used.

use std::fmt::Write as _;

use super::Picture;
use super::element::Element;
use radixscope_state::cluster::TOUCH_MS;
use radixscope_state::tree::forest::{Arrangement, Chain, Forest};

/// By what prefixes are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// Blocks at and below them.
    #[default]
    Blocks,
    /// Requests that found them held.
    Hits,
}

impl Picture {
    /// Up to `most` prefixes that say something new, see [`Forest::largest`] and [`Forest::hottest`], as JSON.
    pub fn prefixes(&self, by: By, most: usize, window_ms: u64, kv_bytes_per_token: Option<u64>) -> String {
        let tree = self.tree();
        let hits_window = u32::try_from(window_ms / TOUCH_MS).unwrap_or(u32::MAX);
        let forest = Forest::of(tree, Arrangement { hits_window, ..Arrangement::default() });
        let ranked = match by {
            By::Blocks => forest.largest(most),
            By::Hits => forest.hottest(most),
        };
        let mut json = String::from("{");
        self.write_head(&mut json);
        let by = match by {
            By::Blocks => "blocks",
            By::Hits => "hits",
        };
        let _ = write!(json, ",\"by\":\"{by}\",\"totals\":");
        self.write_totals(&mut json, window_ms, kv_bytes_per_token);
        json.push_str(",\"prefixes\":[");
        let requests = self.requests(window_ms);
        for (i, &id) in ranked.iter().enumerate() {
            let chain = forest.chain(id);
            json.push_str(if i > 0 { ",{" } else { "{" });
            self.element_of(chain, requests.is_some()).write(self, &mut json);
            let _ = write!(json, ",\"branches\":{}}}", forest.children(Some(id)).len());
        }
        json.push_str("]}");
        json
    }

    fn element_of(&self, chain: &Chain, hits_are_known: bool) -> Element {
        let (tree, sums) = (self.tree(), &chain.sums);
        let below = |node| tree.children(node).next();
        let blocks = std::iter::successors(Some(chain.first), |&node| match node == chain.last {
            true => None,
            false => below(node),
        });
        Element {
            first: chain.first,
            last: chain.last,
            len: chain.len,
            position: Some(chain.position),
            blocks: sums.blocks,
            shared: sums.shared,
            copies: sums.copies,
            depth: Some(sums.bottom),
            hits: hits_are_known.then_some(sums.hits),
            touched: blocks.map(|node| tree.touched(node)).max().unwrap_or_default(),
            subtree_touched: sums.touched,
        }
    }
}
