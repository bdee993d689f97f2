//! The status bar: is it connected, is it current, is it complete, is it right.

use radixscope_export::panel::workers::UNKNOWN_SIZES;
use radixscope_insight::completeness::{coverage_text, short_coverage_text};
use radixscope_insight::view_context::{Unit, ViewContext};
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;
use radixscope_state::cluster::SourceState;

use crate::format::{self, UNKNOWN};
use crate::link::{Check, Link};
use crate::time_zone::TimeZone;

/// Where the link to the server stands, in a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// For the style sheet.
    pub state: &'static str,
    /// The word.
    pub text: String,
}

/// A moment of the past that is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PastMoment {
    /// Which was asked for.
    pub at: Millis,
    /// Which is shown, while that is on its way.
    pub shown_meanwhile: Option<Millis>,
    /// How fast it plays; `None`: it stands.
    pub speed: Option<&'static str>,
    /// How long ago it was.
    pub age: String,
}

impl Connection {
    /// Which moment is shown, and whether it stands or plays.
    pub fn of_past(past: &PastMoment, zone: TimeZone) -> Self {
        let at = zone.time_of_day(past.at);
        let text = match (past.shown_meanwhile, past.speed) {
            (Some(shown), _) => format!("Loading {at}; shown: {}", zone.time_of_day(shown)),
            (None, None) => format!("Paused at {at}, {}", past.age),
            (None, Some(speed)) => format!("Replay {speed}, {at}"),
        };
        Self { state: "past", text }
    }

    /// Of the link; `replayed`: what the newest is called where a recording is replayed. `None`: it is live, and sources say the rest.
    pub fn of_link(link: Link, is_stale: bool, replayed: Option<&str>) -> Option<Self> {
        let (state, text) = match link {
            Link::Live => match replayed {
                Some(newest) => ("past", newest.to_owned()),
                None if is_stale => ("stale", "Stale".to_owned()),
                None => return None,
            },
            Link::Connecting => ("wait", "Connecting".to_owned()),
            Link::Restoring { part, parts } if parts > 1 => {
                ("wait", format!("Loading {}", format::percent(f64::from(part) / f64::from(parts))))
            }
            Link::Restoring { .. } => ("wait", "Loading".to_owned()),
            Link::Waiting { seconds, .. } => ("bad", format!("Reconnecting in {seconds} s")),
            Link::Incompatible { .. } => ("bad", "Other version".to_owned()),
        };
        Some(Self { state, text })
    }

    /// Live, but is what the server hears live? The worst source speaks.
    pub fn of_sources(sources: &[SourceState]) -> Self {
        let has = |wanted: LinkState| sources.iter().any(|source| source.state == wanted);
        let (state, text) = if sources.is_empty() {
            ("wait", "No source yet")
        } else if has(LinkState::Refused) {
            ("bad", "Source refused")
        } else if has(LinkState::Partial) {
            ("bad", "Subjects denied")
        } else if has(LinkState::Connecting) {
            ("wait", "Source connecting")
        } else if has(LinkState::CatchingUp) {
            ("wait", "Catching up")
        } else if has(LinkState::Ended) {
            ("wait", "Source ended")
        } else {
            ("live", "Live")
        };
        Self { state, text: text.to_owned() }
    }
}

/// What the word says of itself: which server it is about.
pub fn server_title(server: &str) -> String {
    if server.is_empty() { "No server has responded yet".to_owned() } else { format!("Server {server}") }
}

/// The facts beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatusFacts {
    /// How much of what workers hold is known.
    pub coverage: String,
    /// What that is of.
    pub coverage_title: String,
    /// Whether some of it is not known.
    pub is_incomplete: bool,
    /// How late the slowest recent message was.
    pub lag: String,
    /// Blocks in the trees, and blocks that workers hold.
    pub blocks: String,
    /// The same in full.
    pub blocks_title: String,
    /// The last record.
    pub seq: String,
    /// What was lost or invalid.
    pub lost: String,
    /// The same in full.
    pub lost_title: String,
    /// Whether anything was.
    pub has_lost: bool,
}

impl Default for StatusFacts {
    /// Before there is a state.
    fn default() -> Self {
        let unknown = || UNKNOWN.to_owned();
        Self {
            coverage: unknown(),
            coverage_title: unknown(),
            is_incomplete: false,
            lag: unknown(),
            blocks: unknown(),
            blocks_title: unknown(),
            seq: unknown(),
            lost: unknown(),
            lost_title: unknown(),
            has_lost: false,
        }
    }
}

impl StatusFacts {
    /// Of what is shown. Without a live source of KV events (`is_current` is false) live figures are unknown.
    pub fn of(shown: &ViewContext<'_>, is_current: bool) -> Self {
        let live = |text: String| if is_current { text } else { UNKNOWN.to_owned() };
        let coverage = shown.coverage();
        let used = coverage.used_blocks.map_or("an unknown number of".to_owned(), format::count);
        let lag = shown.sources().iter().filter_map(|s| s.lag_ms).max();
        let (blocks, blocks_title) = blocks(shown);
        let (missed, rejected, gaps) = (shown.missed_total(), shown.rejected_total(), shown.gaps_total());
        let is_bound = shown.is_missed_total_at_least();
        let and_gaps = match gaps {
            0 => String::new(),
            gaps => format!(" and {}", unknown_gaps(gaps)),
        };
        Self {
            coverage: live(short_coverage_text(&coverage)),
            coverage_title: format!(
                "{}. {} of {used} blocks that workers have are in the tree. Complete: every block of the worker is known. Workers that left and decode workers that by design publish no KV events do not count; click for what is missing",
                coverage_text(&coverage),
                format::count(coverage.known_blocks)
            ),
            is_incomplete: !coverage.is_whole(),
            lag: live(lag.map_or(UNKNOWN.to_owned(), format::lag)),
            blocks,
            blocks_title,
            seq: format::count(shown.seq().0),
            lost: match gaps {
                0 => format::bound(format::short(missed + rejected), is_bound),
                gaps => format!("≥ {} + {}", format::short(missed + rejected), unknown_gaps(gaps)),
            },
            lost_title: format!(
                "{} lost{and_gaps}, {} rejected; click for causes",
                format::bound(format::count(missed), is_bound),
                format::count(rejected)
            ),
            has_lost: missed + rejected + gaps > 0 || is_bound,
        }
    }
}

fn blocks(shown: &ViewContext<'_>) -> (String, String) {
    let Some((held, in_tree, unit)) = shown.held() else {
        return (UNKNOWN.to_owned(), UNKNOWN_SIZES.to_owned());
    };
    let title = match unit {
        Unit::Blocks => format!(
            "{} of {} resident blocks are shown, summed over the workers; {} are hidden by the memory limit",
            format::count(in_tree),
            format::count(held),
            format::count(held - in_tree)
        ),
        Unit::Tokens => format!(
            "In tokens, for pools have blocks of different size: {} of {} in resident blocks are shown, summed over the workers",
            format::count(in_tree),
            format::count(held)
        ),
    };
    (format!("{} / {}", format::short(in_tree), format::short(held)), title)
}

/// Times without connection that cost an unknown number of messages.
fn unknown_gaps(gaps: u64) -> String {
    if gaps == 1 {
        "1 gap of unknown size".to_owned()
    } else {
        format!("{} gaps of unknown size", format::count(gaps))
    }
}

/// What the comparison with the server's digest gave: for the style sheet, and as text.
pub fn verified(check: Check, is_past: bool) -> (&'static str, String) {
    if is_past {
        return ("none", "folded from what the server keeps; the present is compared".to_owned());
    }
    match (check.verified, check.different) {
        (Some(seq), 0) => ("ok", format!("verified at record {}", format::count(seq.0))),
        (Some(seq), n) => {
            ("off", format!("verified at record {}, {n} mismatches before", format::count(seq.0)))
        }
        (None, 0) => ("none", "not compared yet".to_owned()),
        (None, n) => ("off", format!("{n} mismatches")),
    }
}
