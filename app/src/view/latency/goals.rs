//! Targets: in the address, so that a link holds them, and in a field to change them.

use leptos::prelude::*;
pub(in crate::view) use radixscope_panels::latency::{ITL as TPOT, TTFT};
use radixscope_panels::latency::{MOST_MS, Target, TargetKey};

use crate::store::Store;
use crate::view::control::view;

/// A target.
#[derive(Clone, Copy)]
pub(in crate::view) struct LatencyTarget {
    store: Store,
    key: TargetKey,
    /// In milliseconds.
    pub(in crate::view) ms: Memo<f64>,
    default_ms: Memo<f64>,
    fault: Memo<Option<String>>,
}

impl LatencyTarget {
    /// As the address says, else as the server judges.
    pub(in crate::view) fn of(store: Store, key: TargetKey) -> Self {
        let typed = Memo::new(move |_| store.address.with(|address| key.typed(address)));
        let default_ms = Memo::new(move |_| store.on_beat(|shown| key.default_ms(shown.targets())));
        let target =
            Memo::new(move |_| typed.with(|typed| Target::of(key, typed.as_deref(), default_ms.get())));
        let ms = Memo::new(move |_| target.with(|target| target.ms));
        let fault = Memo::new(move |_| target.with(|target| target.fault.clone()));
        Self { store, key, ms, default_ms, fault }
    }

    fn set(self, text: &str) {
        let default_ms = self.default_ms.get_untracked();
        self.store.address.update(|address| self.key.set(address, text, default_ms));
    }
}

/// The field.
#[component]
pub(super) fn TargetField(goal: LatencyTarget, id: &'static str) -> impl IntoView {
    view! {
        <label class="goal">
            "Target for p95"
            <input type="number" min="1" max=MOST_MS step="any" data-testid=format!("{id}-target")
                prop:value=move || goal.ms.get().to_string()
                on:change=move |event| goal.set(&event_target_value(&event))/>
            "ms"
        </label>
        {move || goal.fault.get().map(|fault| view! { <span class="field-fault" role="alert">{fault}</span> })}
    }
}
