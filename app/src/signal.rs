//! Values that are set: [`RwSignal`], which every view uses instead of Leptos' type of this name, for the reason that
//! [`crate::reactive`] has. It knows nothing of what is kept.

#![expect(clippy::disallowed_types, reason = "what other modules use instead stands on it")]

use std::marker::PhantomData;
use std::sync::Arc;

use reactive_graph::signal;
use reactive_graph::traits::{GetUntracked, Set, UpdateUntracked};

use crate::memo::Memo;
use crate::reactive::{Kept, Reactive, of_other_type, of_type};

/// A value that is set and looked at.
pub type RwSignal<T> = Reactive<signal::RwSignal<Kept>, T>;

impl<T: Send + Sync + 'static> RwSignal<T> {
    /// A signal that has `value` from the start.
    pub fn new(value: T) -> Self {
        Self { source: made(Arc::new(value)), of: PhantomData }
    }

    /// A copy of the value, if it still lives.
    pub fn try_get_untracked(self) -> Option<T>
    where
        T: Clone,
    {
        self.try_with_untracked(T::clone)
    }

    /// Looks at the value, if it still lives.
    pub fn try_with_untracked<R>(self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.source.try_get_untracked().map(|kept| look(of_type(&kept)))
    }

    /// Sets the value and tells whoever watches, also when it is equal; nothing where it no longer lives.
    pub fn set(self, value: T) {
        put(self.source, Arc::new(value));
    }

    /// The same; whether it still lives.
    pub fn try_set(self, value: T) -> bool {
        put(self.source, Arc::new(value))
    }

    /// Changes the value and tells whoever watches; nothing where it no longer lives. `change` must not look at this
    /// signal.
    pub fn update(self, change: impl FnOnce(&mut T)) {
        self.try_update(change);
    }

    /// The same; what `change` returns, if the value still lives.
    pub fn try_update<R>(self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut kept = take(self.source)?;
        let changed = change(of_type_mut(&mut kept));
        put(self.source, kept);
        Some(changed)
    }
}

/// What is only looked at.
impl<T: Clone + PartialEq + Send + Sync + 'static> From<RwSignal<T>> for Memo<T> {
    fn from(signal: RwSignal<T>) -> Self {
        Self::new(move |_| signal.get())
    }
}

/// Not inlined, like all below: the point is that they are compiled once.
#[inline(never)]
fn made(kept: Kept) -> signal::RwSignal<Kept> {
    signal::RwSignal::new(kept)
}

/// Takes the value out to change it.
#[inline(never)]
fn take(signal: signal::RwSignal<Kept>) -> Option<Kept> {
    let nothing: Kept = Arc::new(());
    signal.try_update_untracked(|kept| std::mem::replace(kept, nothing))
}

/// Nobody else has the value: who looks at it is not here at the same time.
#[inline(never)]
fn of_type_mut<T: 'static>(kept: &mut Kept) -> &mut T {
    match Arc::get_mut(kept).and_then(|kept| kept.downcast_mut()) {
        Some(value) => value,
        None => of_other_type(),
    }
}

#[inline(never)]
fn put(signal: signal::RwSignal<Kept>, kept: Kept) -> bool {
    signal.try_set(kept).is_none()
}

#[cfg(test)]
mod tests {
    use reactive_graph::owner::Owner;

    use super::*;

    /// A signal with its length, which says how often it was computed.
    fn words() -> (RwSignal<String>, Memo<(usize, u32)>) {
        let words = RwSignal::new("two".to_owned());
        let len = Memo::new(move |before: Option<&(usize, u32)>| {
            (words.with(String::len), before.map_or(1, |(_, times)| times + 1))
        });
        (words, len)
    }

    #[test]
    fn who_watches_is_told_of_what_is_set_and_of_what_is_changed() {
        Owner::new().with(|| {
            let (words, len) = words();
            assert_eq!((len.get(), len.get()), ((3, 1), (3, 1)));
            words.set("three".to_owned());
            assert_eq!((words.get(), len.get()), ("three".to_owned(), (5, 2)));
            words.update(|words| words.push('s'));
            assert_eq!((words.get_untracked(), len.get()), ("threes".to_owned(), (6, 3)));
            assert_eq!(words.try_update(std::mem::take), Some("threes".to_owned()));
            assert_eq!(len.get(), (0, 4));
            words.set(String::new());
            assert_eq!(len.get(), (0, 5), "equal, but set");
        });
    }

    #[test]
    fn who_looks_without_tracking_is_told_nothing() {
        Owner::new().with(|| {
            let words = RwSignal::new(1);
            let seen = Memo::new(move |_| words.get_untracked() + words.with_untracked(|words| *words));
            assert_eq!(seen.get(), 2);
            words.set(5);
            assert_eq!(seen.get(), 2);
        });
    }

    #[test]
    fn a_signal_whose_owner_is_gone_takes_nothing_and_has_nothing() {
        let owner = Owner::new();
        let (words, _) = owner.with(words);
        assert!(words.try_set("four".to_owned()));
        owner.cleanup();
        assert!(!words.try_set("five".to_owned()));
        words.update(|_| unreachable!("there is nothing to change"));
        assert_eq!((words.try_get_untracked(), words.try_with_untracked(String::len)), (None, None));
    }
}
