//! The page comes in two bundles of this crate. `first` is what every viewer loads; `full` has every panel. When the
//! reader opens a panel that `first` has not, it loads `full` and hands the page over: state, address, place in the
//! log. Which code is in which bundle follows from [`Bundle::panel`] alone: what `first` never names is not in it.

mod handover;
mod load;

use std::any::Any;
use std::cell::RefCell;

use leptos::prelude::*;

use crate::store::Store;
use crate::url::Panel;
use crate::view;
use crate::view::tree::Painter;

pub(crate) use handover::{Handed, offer};
pub(crate) use load::keep_open;

/// A bundle of the page.
pub trait Bundle: 'static {
    /// Whether every panel is in it.
    const FULL: bool;

    /// What paints the path of an open decision on the tree.
    const PAINTER: Option<Painter>;

    /// A panel that fills the page and is in the full bundle alone; `None` for the others.
    fn panel(panel: Panel, store: Store, dark: Signal<bool>) -> Option<AnyView>;
}

/// The overview and the panels it is made of.
pub struct First;

impl Bundle for First {
    const FULL: bool = false;
    const PAINTER: Option<Painter> = None;

    fn panel(_: Panel, _: Store, _: Signal<bool>) -> Option<AnyView> {
        None
    }
}

/// Everything.
pub struct Full;

impl Bundle for Full {
    const FULL: bool = true;
    const PAINTER: Option<Painter> = Some(view::full::painted::PAINTER);

    fn panel(panel: Panel, store: Store, dark: Signal<bool>) -> Option<AnyView> {
        view::full::panel(panel, store, dark)
    }
}

thread_local! {
    /// The page in the document; dropping it takes the page out and ends everything that belongs to it.
    static MOUNTED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Puts the page into the document; the full bundle takes it over from the first, if that is there.
pub fn start<B: Bundle>() {
    console_error_panic_hook::set_once();
    let handed = if B::FULL { handover::receive() } else { None };
    let Some(body) = document().body() else { return };
    let mounted = leptos::mount::mount_to(body, move || view::app::<B>(handed));
    MOUNTED.set(Some(Box::new(mounted)));
}
