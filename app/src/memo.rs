//! Values computed from signals and kept: [`Memo`], which every view uses instead of Leptos' type of this name.
//!
//! One memo of Leptos keeps a shared value of any type, for the reason that [`crate::reactive`] has. It knows nothing of
//! what is kept.

#![expect(clippy::disallowed_types, reason = "what other modules use instead stands on it")]

use std::marker::PhantomData;
use std::sync::Arc;

use reactive_graph::computed;

use crate::reactive::{Kept, Reactive, of_type};

/// Computes what a memo keeps. A trait of its own: for each function behind `dyn Fn` two more are compiled that nobody calls.
trait Compute: Send + Sync {
    /// From the value before: the value now, and whether it is another one.
    fn compute(&self, before: Option<&Kept>) -> (Kept, bool);
}

/// Computes values of one type by a function.
struct By<T, F> {
    function: F,
    of: PhantomData<fn() -> T>,
}

impl<T, F> Compute for By<T, F>
where
    T: PartialEq + Send + Sync + 'static,
    F: Fn(Option<&T>) -> T + Send + Sync,
{
    fn compute(&self, before: Option<&Kept>) -> (Kept, bool) {
        let before = before.map(of_type::<T>);
        keep(before, (self.function)(before))
    }
}

/// A value computed from signals: computed when it is read after one of them changed, and told on only when it became
/// another one.
pub type Memo<T> = Reactive<computed::Memo<Kept>, T>;

impl<T: Send + Sync + 'static> Memo<T> {
    /// `compute` gets the value before, `None` at first.
    pub fn new(compute: impl Fn(Option<&T>) -> T + Send + Sync + 'static) -> Self
    where
        T: PartialEq,
    {
        let compute = By { function: compute, of: PhantomData };
        Self { source: memo(Box::new(compute)), of: PhantomData }
    }
}

/// What a view is given where it may change or not: text that stays.
impl From<String> for Memo<String> {
    fn from(text: String) -> Self {
        Self::new(move |_| text.clone())
    }
}

impl From<&'static str> for Memo<String> {
    fn from(text: &'static str) -> Self {
        text.to_owned().into()
    }
}

/// The default that stays.
impl<T: Clone + Default + PartialEq + Send + Sync + 'static> Default for Memo<T> {
    fn default() -> Self {
        Self::new(|_| T::default())
    }
}

/// Not inlined, like all below: the point is that they are compiled once, or once for each type.
#[inline(never)]
fn memo(compute: Box<dyn Compute>) -> computed::Memo<Kept> {
    computed::Memo::new_owning(move |before: Option<Kept>| compute.compute(before.as_ref()))
}

#[inline(never)]
fn keep<T: PartialEq + Send + Sync + 'static>(before: Option<&T>, now: T) -> (Kept, bool) {
    let is_other = before != Some(&now);
    (Arc::new(now), is_other)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use reactive_graph::owner::Owner;

    use super::*;
    use crate::signal::RwSignal;

    /// How often something was computed.
    #[derive(Clone, Default)]
    struct Count(Arc<AtomicU32>);

    impl Count {
        fn add(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn is(&self) -> u32 {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// A signal, the half of its number, and what is said of the half, with how often each was computed.
    fn chain() -> (RwSignal<u32>, Memo<u32>, Memo<String>, [Count; 2]) {
        let (number, counts) = (RwSignal::new(4), [Count::default(), Count::default()]);
        let [of_half, of_words] = counts.clone();
        let half = Memo::new(move |_| {
            of_half.add();
            number.get() / 2
        });
        let words = Memo::new(move |_| {
            of_words.add();
            half.with(u32::to_string)
        });
        (number, half, words, counts)
    }

    #[test]
    fn a_memo_is_computed_when_it_is_read_after_a_change_and_not_otherwise() {
        let owner = Owner::new();
        owner.with(|| {
            let (number, half, _, [of_half, _]) = chain();
            assert_eq!(of_half.is(), 0, "nobody has read it");
            assert_eq!((half.get(), half.get_untracked()), (2, 2));
            assert_eq!(of_half.is(), 1, "read twice");
            number.set(10);
            number.set(12);
            assert_eq!(of_half.is(), 1, "changed but not read");
            assert_eq!(half.with_untracked(|half| *half), 6);
            assert_eq!(of_half.is(), 2);
        });
    }

    #[test]
    fn a_value_that_stays_equal_is_not_told_on() {
        let owner = Owner::new();
        owner.with(|| {
            let (number, _, words, [of_half, of_words]) = chain();
            assert_eq!(words.get(), "2");
            number.set(5);
            assert_eq!(words.get(), "2");
            assert_eq!((of_half.is(), of_words.is()), (2, 1));
            number.set(6);
            assert_eq!(words.get(), "3");
            assert_eq!((of_half.is(), of_words.is()), (3, 2));
        });
    }

    #[test]
    fn the_value_before_is_given() {
        let owner = Owner::new();
        owner.with(|| {
            let number = RwSignal::new(3);
            let most = Memo::new(move |before: Option<&u32>| number.get().max(before.copied().unwrap_or(0)));
            assert_eq!(most.get(), 3);
            number.set(1);
            assert_eq!(most.get(), 3);
            number.set(7);
            assert_eq!(most.get(), 7);
        });
    }

    #[test]
    fn text_that_stays_and_a_signal_stand_where_a_memo_is_asked_for() {
        let owner = Owner::new();
        owner.with(|| {
            let (stays, owned): (Memo<String>, Memo<String>) = ("words".into(), "more".to_owned().into());
            assert_eq!((stays.get(), owned.get()), ("words".to_owned(), "more".to_owned()));
            assert!(!Memo::<bool>::default().get());
            let number = RwSignal::new(3);
            let same: Memo<u32> = number.into();
            assert_eq!(same.get(), 3);
            number.set(4);
            assert_eq!(same.get(), 4);
        });
    }

    #[test]
    fn tracking_alone_is_enough_to_be_told() {
        let owner = Owner::new();
        owner.with(|| {
            let (number, half, _, _) = chain();
            let times = Memo::new(move |before: Option<&u32>| {
                half.track();
                before.map_or(1, |times| times + 1)
            });
            assert_eq!((half.get(), times.get(), times.get()), (2, 1, 1));
            number.set(5);
            assert_eq!(times.get(), 1, "the half is the same");
            number.set(8);
            assert_eq!(times.get(), 2);
        });
    }
}
