//! Descriptions of a connection's state.

use std::sync::atomic::Ordering;

use radixscope_model::number_format::count;

use super::history::Progress;

/// Maximum errors of the server that are shown.
pub(super) const MAX_COMPLAINTS: usize = 4;

/// Whether history can be read.
pub(super) enum History {
    /// The list of streams was requested; no response yet.
    Requested,
    Readable,
    /// Why not, as the end of a sentence.
    Unavailable(String),
}

/// While history is read.
pub(super) fn reading(progress: &Progress) -> String {
    let read = count(progress.read.load(Ordering::Relaxed));
    let of = progress.of.load(Ordering::Relaxed);
    if of == 0 {
        return "Connected; listing JetStream streams of KV events.".to_owned();
    }
    let of = count(of);
    format!("Connected; reading history: {read} of {of} messages.")
}

/// After it was read.
pub(super) fn live(progress: &Progress, history: &History, has_no_stream: bool) -> String {
    let mut detail = match history {
        History::Unavailable(why) => format!("Connected; {why}."),
        History::Requested | History::Readable if has_no_stream => {
            "Connected; no JetStream stream of KV events (Dynamo 0.8 and 0.9 have one), so there is no history."
                .to_owned()
        }
        History::Requested | History::Readable => {
            format!("Connected; {} messages of history read.", count(progress.read.load(Ordering::Relaxed)))
        }
    };
    let left_out = progress.left_out.load(Ordering::Relaxed);
    if left_out > 0 {
        detail.push_str(&format!(" {} older messages were skipped (--history-messages).", count(left_out)));
    }
    detail
}
