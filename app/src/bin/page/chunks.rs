//! The views that are chunks of the page's program: `xtask/bundle` cuts the program at these functions.
//!
//! They are here and not in the library, because `wasm_split` exports each function by name, and a linker keeps what is
//! exported: in the library, every program would contain every view.

use futures_util::FutureExt;
use leptos::prelude::*;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use radixscope_app::store::Store;
use radixscope_app::url::Panel;
use radixscope_app::view::lazy::{Chunk, LazyView};
use radixscope_app::view::{
    ChangesPanel, ComparePanel, CounterfactualPanel, FindingsPanel, FleetPage, Kiosk, LatencyPanel,
    LedgerPanel, MemoryPanel, OverviewTreeView, RatesChartView, ReusePanelView, StageBar, TourCard,
    TreePanel, WhatIfPanel,
};

/// Declares [`CHUNKS`]: for each its name, the view that is in it, and how that is made.
macro_rules! chunks {
    ($($name:ident: $of:expr, |$store:ident, $dark:ident| $view:expr;)*) => {
        $(mod $name {
            use super::*;

            #[wasm_split($name, wasm_split_path = ::leptos::wasm_split, fallible, preload(load))]
            pub(super) fn $name($store: Store, $dark: Memo<bool>) -> Result<AnyView, SplitLoaderError> {
                Ok($view.into_any())
            }
        })*

        /// Every chunk.
        pub(crate) static CHUNKS: &[Chunk] = &[$(Chunk {
            of: $of,
            load: || Box::pin($name::load()),
            view: |store, dark| $name::$name(store, dark).now_or_never()?.ok(),
        }),*];
    };
}

chunks! {
    findings: LazyView::Panel(Panel::Findings), |store, _dark| view! { <FindingsPanel store/> };
    latency: LazyView::Panel(Panel::Latency), |store, dark| view! { <LatencyPanel store dark/> };
    memory: LazyView::Panel(Panel::Memory), |store, _dark| view! { <MemoryPanel store/> };
    tree: LazyView::Panel(Panel::Tree), |store, dark| view! { <TreePanel store dark/> };
    decisions: LazyView::Panel(Panel::Decisions), |store, _dark| view! { <LedgerPanel store/> };
    reuse: LazyView::Panel(Panel::Reuse), |store, _dark| view! { <ReusePanelView store/> };
    whatif: LazyView::Panel(Panel::WhatIf), |store, _dark| view! { <WhatIfPanel store/> };
    counterfactual: LazyView::Panel(Panel::Counterfactual), |store, _dark| view! { <CounterfactualPanel store/> };
    compare: LazyView::Panel(Panel::Compare), |store, dark| view! { <ComparePanel store dark/> };
    changes: LazyView::Panel(Panel::Changes), |store, dark| view! { <ChangesPanel store dark/> };
    overview_tree: LazyView::OverviewTree, |store, dark| view! { <OverviewTreeView store dark/> };
    rates: LazyView::RatesChart, |store, dark| view! { <RatesChartView store dark/> };
    fleet: LazyView::Fleet, |store, _dark| view! { <FleetPage store/> };
    stage: LazyView::Stage, |store, _dark| view! { <StageBar store/> };
    tour: LazyView::Tour, |store, _dark| view! { <TourCard store/> };
    kiosk: LazyView::Kiosk, |store, dark| view! { <Kiosk store dark/> };
}
