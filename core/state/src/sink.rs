//! Where records go: numbered, folded and kept by the one who owns the state.

use crate::cluster::{Cluster, Follow};
use radixscope_model::id::Seq;
use radixscope_model::record::Entry;

/// Takes records in order. The server's hub keeps them for viewers too; a state alone keeps nothing but the state.
pub trait RecordSink {
    /// The state after the last record appended.
    fn cluster(&self) -> &Cluster;
    /// Appends the next record.
    fn append(&mut self, entry: &Entry<'_>);
    /// What trees note from now on.
    fn follow_blocks(&mut self, follow: Follow);
}

impl RecordSink for Cluster {
    fn cluster(&self) -> &Cluster {
        self
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.fold(Seq(self.seq().0 + 1), entry);
    }

    fn follow_blocks(&mut self, follow: Follow) {
        Self::follow_blocks(self, follow);
    }
}
