//! Tracking of what outlives its readers.

use leptos::prelude::*;
use leptos::reactive::graph::{AnySource, Observer, Source as _, ToAnySource as _};

/// What rows, chips and other short-lived parts of the page track in the store, which is there for hours. reactive_graph 0.2 never
/// removes a dropped reader from the lists of subscribers, and goes through those lists at each change.
pub(crate) trait TrackUntilDropped: Track {
    /// Itself, without its type.
    fn source(&self) -> AnySource;

    /// Tracks it, and removes the reader from its subscribers when the reader is dropped or runs again.
    fn track_until_dropped(&self) {
        self.track();
        if let Some(reader) = Observer::get() {
            let source = self.source();
            on_cleanup(move || source.remove_subscriber(&reader));
        }
    }

    /// Its value, tracked so.
    fn get_until_dropped(&self) -> Self::Value
    where
        Self: GetUntracked,
    {
        self.track_until_dropped();
        self.get_untracked()
    }
}

impl<T: Send + Sync + 'static> TrackUntilDropped for RwSignal<T> {
    fn source(&self) -> AnySource {
        self.to_any_source()
    }
}

impl<T: Send + Sync + 'static> TrackUntilDropped for Memo<T> {
    fn source(&self) -> AnySource {
        ArcMemo::from(*self).to_any_source()
    }
}
