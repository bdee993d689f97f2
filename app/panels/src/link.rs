//! Where the link to the server stands, and how sure we are of what came over it. Plain values.

use radixscope_model::id::Seq;

/// The link to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Trying.
    Connecting,
    /// Fetching the whole state: so many parts of so many.
    Restoring {
        /// Parts received.
        part: u32,
        /// Parts in all.
        parts: u32,
    },
    /// Receiving records.
    Live,
    /// Lost; the next attempt comes in so many seconds.
    Waiting {
        /// Attempts that failed in a row.
        attempts: u32,
        /// Seconds until the next.
        seconds: u32,
    },
    /// The server speaks another protocol version than this page.
    Incompatible {
        /// The version it speaks.
        theirs: u8,
    },
}

impl Link {
    /// Name for tests and style sheets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Link::Connecting => "connecting",
            Link::Restoring { .. } => "restoring",
            Link::Live => "live",
            Link::Waiting { .. } => "reconnecting",
            Link::Incompatible { .. } => "incompatible",
        }
    }
}

/// What the comparison of our state's digest with the server's gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Check {
    /// The last record after which both were equal.
    pub verified: Option<Seq>,
    /// Comparisons that were equal.
    pub equal: u64,
    /// Comparisons that were not, each of which led to a new snapshot.
    pub different: u64,
}

/// Why the state was fetched anew.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resyncs {
    /// The server found that we did not keep up.
    pub behind: u64,
    /// Records it did not send for that.
    pub skipped: u64,
    /// A frame or record could not be read, or did not continue what we had.
    pub unreadable: u64,
    /// The last such as text.
    pub why: String,
}
