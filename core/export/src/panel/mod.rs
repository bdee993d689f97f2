//! What each panel shows: its figures, series, labels, marks and the texts of what is missing, one panel a file. The page and
//! the pictures in [`svg`] only paint it.
//!
//! Knows no colour, no font and no script. Times are [`Millis`](radixscope_model::id::Millis): the page writes them in the
//! reader's time zone, pictures in UTC.

pub mod decisions;
pub mod duel;
pub mod findings;
pub mod in_flight;
pub mod lanes;
pub mod latency;
pub mod not_reused;
pub mod rates;
pub mod reuse;
pub mod session;
pub mod svg;
pub mod tree;
pub mod workers;

use std::borrow::Cow;

/// What stands where engines are listened to without a router: a head, and the rest.
const NO_ROUTER: (&str, &str) =
    ("No router", "Engines report which blocks they cache, and neither requests nor decisions.");

/// Why a panel has nothing to show, and what would fill it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmptyText {
    /// Its name in the page's document.
    pub id: &'static str,
    /// In a few words.
    pub head: &'static str,
    /// The rest; settings stand between backticks.
    pub paragraphs: Vec<Cow<'static, str>>,
}

impl EmptyText {
    fn new(id: &'static str, head: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { id, head, paragraphs: vec![text.into()] }
    }

    /// The paragraphs as one, without marks of code.
    pub fn plain(&self) -> String {
        self.paragraphs.join(" ").replace('`', "")
    }

    /// Everything in one paragraph.
    pub fn to_text(&self) -> String {
        format!("{}. {}", self.head, self.plain())
    }
}
