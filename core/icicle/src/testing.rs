//! Small trees and known colours for tests.

use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::tree::Tree;

use crate::palette::Palette;

/// Colours that can be distinguished.
pub fn palette() -> Palette {
    let value = |name: &str| match name {
        "--panel" => "#101010".to_owned(),
        "--tree-shared" => "#808080".to_owned(),
        "--tree-replicas-1" => "#303038".to_owned(),
        "--tree-replicas-2" => "#484850".to_owned(),
        "--tree-replicas-3" => "#606068".to_owned(),
        "--tree-replicas-4" => "#a0a0a8".to_owned(),
        "--tree-no-worker" => "#202020".to_owned(),
        other => format!("#{0}{0}{0}0{0}", other.bytes().last().map_or(0, |b| b - b'0').min(9)),
    };
    Palette::read(value, true, 4)
}

/// `worker` stores a prompt.
pub fn store(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>) {
    store_at(tree, worker, tokens, 0);
}

/// `worker` stores a prompt at a time in the tree's own units.
pub fn store_at(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>, at: u32) {
    let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
    let blocks: Vec<Block> = tokens.into_iter().map(block).collect();
    tree.store(Slot(worker), None, &blocks, at);
}

/// The text of a token as a browser gives it.
pub fn token_text(name: &str) -> String {
    let sheet = include_str!("../../../style/tokens.css");
    let line = sheet.lines().find_map(|l| l.trim().strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} is no token")).trim().trim_end_matches(';').to_owned()
}
