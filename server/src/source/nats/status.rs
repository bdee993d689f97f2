//! Where a connection stands, in words.

use std::sync::atomic::Ordering;

use radixscope_model::number_format::count;

use super::history::Progress;

/// Complaints of the server that are shown.
pub(super) const MAX_COMPLAINTS: usize = 4;

/// Whether history can be read.
pub(super) enum History {
    /// Which streams there are was asked and not answered yet.
    Asked,
    Readable,
    /// Why not, as the end of a sentence.
    Not(String),
}

/// While history is read.
pub(super) fn reading(progress: &Progress) -> String {
    let read = count(progress.read.load(Ordering::Relaxed));
    let of = progress.of.load(Ordering::Relaxed);
    if of == 0 {
        return "Connected; asking which streams of KV events there are.".to_owned();
    }
    let of = count(of);
    format!("Connected; reading history: {read} of {of} messages.")
}

/// Once it was read.
pub(super) fn live(progress: &Progress, history: &History, has_no_stream: bool) -> String {
    let mut words = match history {
        History::Not(why) => format!("Connected; {why}."),
        History::Asked | History::Readable if has_no_stream => {
            "Connected; no stream of KV events there (Dynamo 0.8 and 0.9 have one), so no history is known."
                .to_owned()
        }
        History::Asked | History::Readable => {
            format!("Connected; {} messages of history read.", count(progress.read.load(Ordering::Relaxed)))
        }
    };
    let left_out = progress.left_out.load(Ordering::Relaxed);
    if left_out > 0 {
        words.push_str(&format!(" {} older ones were excluded (--history-messages).", count(left_out)));
    }
    words
}
