//! What it costs that workers hold the same blocks: in all, and below the selected block.

use radixscope_insight::completeness::Trust;
use radixscope_state::redundancy::{BlockSize, Redundancy, gib};

use crate::format::{self, UNKNOWN};

/// Figures of the panel's head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiesFigures {
    /// Share of distinct blocks on several workers.
    pub shared: String,
    /// What that is.
    pub shared_title: String,
    /// Share of cached blocks that are duplicates.
    pub copies: String,
    /// What that is.
    pub copies_title: String,
}

impl CopiesFigures {
    /// Of all blocks.
    pub fn of(all: Redundancy) -> Self {
        Self {
            shared: percent(all.shared_share()),
            shared_title: format!(
                "{} of {} distinct blocks are cached on two workers or more",
                format::count(all.shared),
                format::count(all.blocks)
            ),
            copies: percent(all.copies_share()),
            copies_title: format!(
                "{} of {} cached blocks are duplicates of another worker's",
                format::count(all.copies),
                format::count(all.held())
            ),
        }
    }
}

/// A row of the table: id, name, and its text of the whole tree and of the selected prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiesRow {
    /// For tests.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Of the whole tree.
    pub all: String,
    /// Of the selected prefix.
    pub below: String,
}

/// The section.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopiesTable {
    /// Its rows.
    pub rows: Vec<CopiesRow>,
    /// What it comes to.
    pub sentence: String,
    /// Whether bytes are unknown, because no event reports the model's shape.
    pub are_bytes_unknown: bool,
}

/// What a row says of blocks of a size.
type RowText = fn(Redundancy, BlockSize) -> String;

const ROWS: [(&str, &str, RowText); 6] = [
    ("Distinct blocks", "distinct", |of, _| format::count(of.blocks)),
    ("On several workers", "several", |of, _| {
        format!("{}, {}", format::count(of.shared), percent(of.shared_share()))
    }),
    ("Duplicate blocks", "copies-blocks", |of, _| format::count(of.copies)),
    ("Share of memory", "copies-share", |of, _| percent(of.copies_share())),
    ("In tokens", "copies-tokens", |of, size| {
        size.tokens(of.copies).map_or(UNKNOWN.to_owned(), format::count)
    }),
    ("In GiB", "copies-bytes", |of, size| size.bytes(of.copies).map_or(UNKNOWN.to_owned(), gib)),
];

impl CopiesTable {
    /// `below`: of the prefix that is selected, if one is. Where blocks are missing, what needs every block is withheld.
    pub fn of(all: Redundancy, below: Option<Redundancy>, size: BlockSize, trust: &Trust) -> Self {
        let withheld = trust.withheld();
        let row = |(name, id, of): (&'static str, &'static str, RowText)| {
            let is_shown = id == "distinct" || withheld.is_none();
            let cell = |from: Option<Redundancy>| {
                from.filter(|_| is_shown).map_or(UNKNOWN.to_owned(), |from| of(from, size))
            };
            CopiesRow { id, name, all: cell(Some(all)), below: cell(below) }
        };
        let sentence = match (withheld, below) {
            (Some(why), _) => format!("Withheld: {why}."),
            (None, Some(below)) => format!("Selected prefix: {}", below.sentence(size)),
            (None, None) => all.sentence(size),
        };
        let are_bytes_unknown = size.bytes_per_token.is_none();
        Self { rows: ROWS.into_iter().map(row).collect(), sentence, are_bytes_unknown }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.to_owned(), format::percent)
}
