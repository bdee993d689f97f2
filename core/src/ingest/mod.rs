//! From messages to records: the one place where Dynamo's words become ours.
//!
//! Sources hand over what they received, byte for byte; [`Ingest`] decodes it, gives workers their indices, follows
//! the publishers' sequence numbers and sums up what was lost or not understood. Stateful but pure: the same messages
//! give the same records. It does no I/O and knows nothing of the state that the records are folded into.

/// A message as a source received it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who received it.
    pub source: crate::id::SourceIx,
    /// When it was received, or stored by the broker if it is history.
    pub at_ms: crate::id::Millis,
    /// Where it was published.
    pub subject: &'a str,
    /// Where an answer was asked for.
    pub reply: Option<&'a str>,
    /// Its bytes.
    pub payload: &'a [u8],
}

/// Turns messages into records.
#[derive(Default)]
pub struct Ingest {}

impl Ingest {
    /// Announces a source. Must come before anything else about it.
    pub fn source(
        &mut self,
        _name: &str,
        _kind: crate::record::SourceKind,
        _at_ms: crate::id::Millis,
        _out: &mut dyn FnMut(crate::record::Entry<'_>),
    ) -> crate::id::SourceIx {
        crate::id::SourceIx(0)
    }

    /// Takes one message.
    pub fn message(&mut self, _message: Message<'_>, _out: &mut dyn FnMut(crate::record::Entry<'_>)) {}

    /// Loss that a source itself noticed.
    pub fn missed(
        &mut self,
        _source: crate::id::SourceIx,
        _topic: crate::record::Topic,
        _cause: crate::record::MissedCause,
        _count: u64,
    ) {
    }

    /// Says what was summed up since the last call. Call it about once a second.
    pub fn flush(&mut self, _at_ms: crate::id::Millis, _out: &mut dyn FnMut(crate::record::Entry<'_>)) {}
}
