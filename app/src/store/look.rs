//! How the state is looked at. A hundred places do it with a function of their own each: what leads to the state is compiled
//! once, behind [`Look`] (docs/decisions/erased-views.md).

use leptos::prelude::WithValue;

use super::{Store, ViewContext};

/// Looks at the state. A trait of its own, as for memos: for each function behind `dyn FnMut` one more is compiled that
/// nobody calls.
trait Look {
    fn look(&mut self, shown: &ViewContext<'_>);
}

/// A function that looks once, and then what it found.
enum Once<F, T> {
    Looks(F),
    Found(T),
    Looking,
}

impl<F: FnOnce(&ViewContext<'_>) -> T, T> Look for Once<F, T> {
    fn look(&mut self, shown: &ViewContext<'_>) {
        if let Self::Looks(look) = std::mem::replace(self, Self::Looking) {
            *self = Self::Found(look(shown));
        }
    }
}

impl<F, T> Once<F, T> {
    fn found(self) -> T {
        match self {
            Self::Found(found) => found,
            Self::Looks(_) | Self::Looking => unreachable!("the state is always there to be looked at"),
        }
    }
}

impl Store {
    /// Looks at the state, and again whenever it changed: once per drawn frame.
    pub fn on_frame<T>(self, look: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        self.version.track();
        self.pools.track();
        self.peek(look)
    }

    /// Looks at the state, and again at a readable pace.
    pub fn on_beat<T>(self, look: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        self.track_beat();
        self.peek(look)
    }

    /// Looks at the state once.
    pub fn peek<T>(self, look: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        let mut look = Once::Looks(look);
        self.show(&mut look);
        look.found()
    }

    /// The same; the tree is the copy, where one is held, or that of two moments.
    pub(super) fn peek_still<T>(self, look: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        let mut look = Once::Looks(look);
        self.show_still(&mut look);
        look.found()
    }

    #[inline(never)]
    fn track_beat(self) {
        self.beat.track();
        self.pools.track();
    }

    #[inline(never)]
    fn show(self, look: &mut dyn Look) {
        let pools = self.pools.get_untracked();
        self.live.with_value(|live| look.look(&ViewContext::new(&live.shown().cluster, pools)));
    }

    #[inline(never)]
    fn show_still(self, look: &mut dyn Look) {
        let pools = self.pools.get_untracked();
        self.live.with_value(|live| {
            let shown = ViewContext::new(&live.shown().cluster, pools);
            let changes = live.compared.tree();
            let still = live.still.of(pools.drawn()).filter(|_| changes.is_none());
            look.look(&ViewContext { still, changes, ..shown });
        });
    }
}
