//! Targets: in the address, so that a link holds them, and in a field to change them.

use leptos::prelude::*;

use crate::format;
use crate::store::Store;
use crate::view::control::view;

/// Largest target that is taken, milliseconds: ten minutes.
const MOST_MS: f64 = 600_000.0;

/// Where a target is in the address, and its default.
#[derive(Clone, Copy)]
pub(in crate::view) struct TargetKey {
    key: &'static str,
    default_ms: f64,
}

/// Time to first token.
pub(in crate::view) const TTFT: TargetKey = TargetKey { key: "ttft_slo", default_ms: 600.0 };
/// Time per output token.
pub(in crate::view) const TPOT: TargetKey = TargetKey { key: "tpot_slo", default_ms: 60.0 };

/// A target.
#[derive(Clone, Copy)]
pub(in crate::view) struct LatencyTarget {
    store: Store,
    kind: TargetKey,
    /// In milliseconds.
    pub(in crate::view) ms: Memo<f64>,
    fault: Memo<Option<String>>,
}

impl LatencyTarget {
    /// As the address says.
    pub(in crate::view) fn of(store: Store, kind: TargetKey) -> Self {
        let text = Memo::new(move |_| store.address.with(|address| address.other(kind.key)));
        let ms = Memo::new(move |_| text.get().and_then(|text| parse(&text)).unwrap_or(kind.default_ms));
        let fault = Memo::new(move |_| {
            let text = text.get().filter(|text| parse(text).is_none())?;
            Some(format!(
                "{}={text} in the address is invalid: milliseconds above 0; {} is used",
                kind.key, kind.default_ms
            ))
        });
        Self { store, kind, ms, fault }
    }

    fn set(self, text: &str) {
        let Some(ms) = parse(text) else { return };
        let value = (ms != self.kind.default_ms).then(|| ms.to_string());
        self.store.address.update(|address| *address = address.with_other(self.kind.key, value.as_deref()));
    }
}

fn parse(text: &str) -> Option<f64> {
    format::decimal(text).filter(|ms| *ms > 0.0 && *ms <= MOST_MS)
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
