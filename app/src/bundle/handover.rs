//! One bundle gives the page to another: a function on the window that the giver leaves and the taker calls. The bundles
//! share the document but no memory; bytes go between them.

use js_sys::{Array, Function, Reflect};
use leptos::prelude::*;
use wasm_bindgen::prelude::*;

use super::MOUNTED;
use crate::store::Store;

/// Name of the function on the window.
const OFFER: &str = "radixscopeHandOver";

/// What another bundle gave.
pub(crate) struct Handed(Array);

impl Handed {
    /// Puts it into `store`. Nothing of it is taken if it does not fit, as after an update of the server; the page then
    /// joins like a newcomer.
    pub(crate) fn put_into(self, store: Store) {
        store.take_over(&self.0);
    }
}

/// Offers the page to another bundle. Whoever accepts gets the state, and this page is gone when the call returns:
/// elements, listeners, socket, memory of the state.
pub(crate) fn offer(store: Store) {
    let give = Closure::once_into_js(move || {
        let _ = Reflect::delete_property(&window(), &OFFER.into());
        let handed = store.give();
        MOUNTED.take();
        handed
    });
    let _ = Reflect::set(&window(), &OFFER.into(), &give);
}

/// Accepts what another bundle offers.
pub(super) fn receive() -> Option<Handed> {
    let give: Function = Reflect::get(&window(), &OFFER.into()).ok()?.dyn_into().ok()?;
    give.call0(&JsValue::UNDEFINED).ok()?.dyn_into().ok().map(Handed)
}
