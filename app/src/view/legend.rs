//! The legend of a chart: a button for each series, which shows or hides it, or shows it alone. What is hidden is in the
//! address, so that a link shows the same.

use leptos::prelude::*;
use radixscope_panels::legend::{self, LegendEntry};

use crate::store::Store;
use crate::view::control::view;

/// Which series are hidden; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Hidden {
    store: Store,
    key: &'static str,
    ids: Memo<legend::Hidden>,
}

impl Hidden {
    /// Those that the address names at `key`.
    pub(super) fn of(store: Store, key: &'static str) -> Self {
        let named = move || store.address.with(|address| address.other(key)).unwrap_or_default();
        Self { store, key, ids: Memo::new(move |_| legend::Hidden::parse(&named())) }
    }

    /// Whether a series is. Tracked.
    pub(super) fn has(self, id: &str) -> bool {
        self.ids.with(|ids| ids.has(id))
    }

    /// All of them. Tracked.
    pub(super) fn with<T>(self, read: impl FnOnce(&legend::Hidden) -> T) -> T {
        self.ids.with(read)
    }

    fn set(self, ids: &legend::Hidden) {
        self.store.address.update(|address| address.set_other(self.key, ids.to_text().as_deref()));
    }
}

/// The buttons.
#[component]
pub(super) fn Legend(hidden: Hidden, all: Memo<Vec<LegendEntry>>) -> impl IntoView {
    let button = move |series: LegendEntry| {
        let id = StoredValue::new(series.id.clone());
        let is_hidden = move || id.with_value(|id| hidden.has(id));
        let isolate = move || {
            id.with_value(|id| {
                all.with_untracked(|all| hidden.set(&hidden.ids.get_untracked().isolated(id, all)))
            })
        };
        let press = move |event: web_sys::MouseEvent| match event.shift_key() || event.alt_key() {
            true => isolate(),
            false => id.with_value(|id| hidden.set(&hidden.ids.get_untracked().toggled(id))),
        };
        view! {
            <button class="chart-legend-item" aria-pressed=move || (!is_hidden()).to_string() data-testid="legend-item"
                title="Click: show or hide; double click or Shift: this one alone"
                on:click=press on:dblclick=move |_| isolate()>
                <i class=format!("swatch {}", series.swatch) style=format!("--c: var({})", series.colour) aria-hidden="true"></i>
                {series.name}
            </button>
        }
    };
    view! {
        <div class="chart-legend" role="group" aria-label="Series of the chart">
            <For each=move || all.get() key=|series| (series.id.clone(), series.colour.clone()) children=button/>
        </div>
    }
}
