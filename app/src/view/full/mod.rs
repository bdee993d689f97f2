//! The panels of the full bundle: each fills the page. What is here is in no other bundle.

mod clipboard;
mod compare;
mod costs;
mod counterfactual;
mod file;
mod findings;
mod hint;
mod latency;
mod ledger;
mod memory;
pub(crate) mod painted;
mod prompt_text;
mod tree;
mod whatif;

use leptos::prelude::*;

use crate::store::Store;
use crate::url::Panel;

/// A panel of the full bundle; `None` for those that the first has too.
pub(crate) fn panel(panel: Panel, store: Store, dark: Signal<bool>) -> Option<AnyView> {
    Some(match panel {
        Panel::Findings => view! { <findings::FindingsPanel store/> }.into_any(),
        Panel::Latency => view! { <latency::LatencyPanel store dark/> }.into_any(),
        Panel::Decisions => view! { <ledger::LedgerPanel store/> }.into_any(),
        Panel::WhatIf => view! { <whatif::WhatIfPanel store/> }.into_any(),
        Panel::Counterfactual => view! { <counterfactual::CounterfactualPanel store/> }.into_any(),
        Panel::Memory => view! { <memory::MemoryPanel store/> }.into_any(),
        Panel::Compare => view! { <compare::ComparePanel store dark/> }.into_any(),
        Panel::Tree => view! { <tree::TreePanel store dark/> }.into_any(),
        Panel::Overview | Panel::Workers | Panel::Rates => return None,
    })
}
