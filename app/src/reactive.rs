//! What [`Memo`](crate::memo::Memo) and [`RwSignal`](crate::signal::RwSignal) have in common: a shared value of any type
//! that Leptos keeps, read as what it is.
//!
//! Leptos compiles what watches, computes, compares and notifies once for each type that is kept. The page keeps about a
//! hundred types, and each costs every viewer some hundred bytes. Here Leptos keeps values of one type only, and only
//! computing, comparing and copying are compiled for each type.

#![expect(clippy::disallowed_types, reason = "what other modules use instead stands on it")]

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use reactive_graph::traits::{Get, GetUntracked, Track};
use reactive_graph::{computed, signal};

/// A value of any type.
pub(crate) type Kept = Arc<dyn Any + Send + Sync>;

/// Where Leptos keeps a value.
pub(crate) trait Source: Copy + Send + Sync + 'static {
    fn tracked(self) -> Kept;
    fn untracked(self) -> Kept;
    fn track_only(self);
}

/// A value of type `T` that changes with time. Copied freely; it lives as long as the owner that it was made under.
pub struct Reactive<S, T> {
    pub(crate) source: S,
    pub(crate) of: PhantomData<fn() -> T>,
}

impl<S: Copy, T> Clone for Reactive<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Copy, T> Copy for Reactive<S, T> {}

#[expect(private_bounds, reason = "there are two sources, and others are not meant to be written")]
impl<S: Source, T: Send + Sync + 'static> Reactive<S, T> {
    /// A copy of the value. Tracked.
    pub fn get(self) -> T
    where
        T: Clone,
    {
        of_type::<T>(&self.source.tracked()).clone()
    }

    /// A copy of the value.
    pub fn get_untracked(self) -> T
    where
        T: Clone,
    {
        of_type::<T>(&self.source.untracked()).clone()
    }

    /// Looks at the value. Tracked.
    pub fn with<R>(self, look: impl FnOnce(&T) -> R) -> R {
        look(of_type(&self.source.tracked()))
    }

    /// Looks at the value.
    pub fn with_untracked<R>(self, look: impl FnOnce(&T) -> R) -> R {
        look(of_type(&self.source.untracked()))
    }

    /// Whoever watches now is told when the value changes.
    pub fn track(self) {
        self.source.track_only();
    }
}

// Not inlined: the point is that each is compiled once.
macro_rules! source {
    ($of:ty) => {
        impl Source for $of {
            #[inline(never)]
            fn tracked(self) -> Kept {
                self.get()
            }

            #[inline(never)]
            fn untracked(self) -> Kept {
                self.get_untracked()
            }

            fn track_only(self) {
                self.track();
            }
        }
    };
}

source!(computed::Memo<Kept>);
source!(signal::RwSignal<Kept>);

#[inline(never)]
pub(crate) fn of_type<T: 'static>(kept: &Kept) -> &T {
    match kept.downcast_ref() {
        Some(value) => value,
        None => of_other_type(),
    }
}

#[inline(never)]
pub(crate) fn of_other_type() -> ! {
    unreachable!("what is kept for a type is of that type only")
}

#[cfg(target_arch = "wasm32")]
mod in_views {
    //! A value stands in a view as a function would.

    use std::sync::Mutex;

    use leptos::tachys::reactive_graph::{ReactiveFunction, SharedReactiveFunction};

    use super::{Arc, Reactive, Source};

    impl<S: Source, T: Clone + Send + Sync + 'static> ReactiveFunction for Reactive<S, T> {
        type Output = T;

        fn invoke(&mut self) -> T {
            self.get()
        }

        fn into_shared(self) -> SharedReactiveFunction<T> {
            Arc::new(Mutex::new(move || self.get()))
        }
    }
}
