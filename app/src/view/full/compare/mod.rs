//! Live traffic beside baselines.

use leptos::prelude::*;

use crate::store::Store;

/// The panel.
#[component]
pub(crate) fn ComparePanel(store: Store, dark: Signal<bool>) -> impl IntoView {
    let _ = (store, dark);
}
