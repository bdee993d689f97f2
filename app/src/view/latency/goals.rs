//! Targets: in the address, so that a link holds them, and in a field to change them.

use leptos::prelude::*;
use radixscope_model::record::LatencyTargets;

use crate::format;
use crate::store::Store;
use crate::view::control::view;

/// Largest target that is taken, milliseconds: ten minutes.
const MOST_MS: f64 = 600_000.0;

/// Where a target is in the address, and which of those that findings are judged by holds without.
#[derive(Clone, Copy)]
pub(in crate::view) struct TargetKey {
    key: &'static str,
    default_ms: fn(LatencyTargets) -> f64,
}

/// Time to first token.
pub(in crate::view) const TTFT: TargetKey =
    TargetKey { key: "ttft_slo", default_ms: |targets| targets.ttft_ms };
/// Time per output token.
pub(in crate::view) const TPOT: TargetKey =
    TargetKey { key: "tpot_slo", default_ms: |targets| targets.itl_ms };

/// A target.
#[derive(Clone, Copy)]
pub(in crate::view) struct LatencyTarget {
    store: Store,
    kind: TargetKey,
    /// In milliseconds.
    pub(in crate::view) ms: Memo<f64>,
    default_ms: Memo<f64>,
    fault: Memo<Option<String>>,
}

impl LatencyTarget {
    /// As the address says, else as the server judges.
    pub(in crate::view) fn of(store: Store, kind: TargetKey) -> Self {
        let text = Memo::new(move |_| store.address.with(|address| address.other(kind.key)));
        let default_ms = Memo::new(move |_| store.on_beat(|shown| (kind.default_ms)(shown.targets())));
        let ms =
            Memo::new(move |_| text.get().and_then(|text| parse(&text)).unwrap_or_else(|| default_ms.get()));
        let fault = Memo::new(move |_| {
            let text = text.get().filter(|text| parse(text).is_none())?;
            Some(format!(
                "{}={text} in the address is invalid: milliseconds above 0; {} is used",
                kind.key,
                default_ms.get()
            ))
        });
        Self { store, kind, ms, default_ms, fault }
    }

    fn set(self, text: &str) {
        let Some(ms) = parse(text) else { return };
        let value = (ms != self.default_ms.get_untracked()).then(|| ms.to_string());
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
