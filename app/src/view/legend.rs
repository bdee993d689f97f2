//! The legend of a chart: a button for each series, which shows or hides it, or shows it alone. What is hidden is in the
//! address, so that a link shows the same.

use leptos::prelude::*;

use crate::store::Store;
use crate::view::control::view;

/// A series.
#[derive(Clone, PartialEq)]
pub(super) struct LegendEntry {
    /// Its name in the address, without a comma.
    pub(super) id: String,
    /// Its name on screen.
    pub(super) name: String,
    /// Class of its swatch.
    pub(super) swatch: &'static str,
    /// Colour of the swatch: a token's name.
    pub(super) colour: String,
}

/// Which series are hidden; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Hidden {
    store: Store,
    key: &'static str,
    ids: Memo<Vec<String>>,
}

impl Hidden {
    /// Those that the address names at `key`.
    pub(super) fn of(store: Store, key: &'static str) -> Self {
        let ids = Memo::new(move |_| {
            let named = store.address.with(|address| address.other(key)).unwrap_or_default();
            named.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
        });
        Self { store, key, ids }
    }

    /// Whether a series is. Tracked.
    pub(super) fn has(self, id: &str) -> bool {
        self.ids.with(|ids| ids.iter().any(|hidden| hidden == id))
    }

    fn toggle(self, id: &str) {
        let mut ids = self.ids.get_untracked();
        match ids.iter().position(|hidden| hidden == id) {
            Some(at) => drop(ids.remove(at)),
            None => ids.push(id.to_owned()),
        }
        self.set(&ids);
    }

    /// Shows one of `all` alone; all of them where it is alone already.
    fn isolate(self, id: &str, all: &[LegendEntry]) {
        let others: Vec<String> = all.iter().map(|series| series.id.clone()).filter(|of| of != id).collect();
        let is_alone = !self.has(id) && others.iter().all(|of| self.has(of));
        self.set(if is_alone { &[] } else { &others });
    }

    fn set(self, ids: &[String]) {
        let value = (!ids.is_empty()).then(|| ids.join(","));
        self.store.address.update(|address| address.set_other(self.key, value.as_deref()));
    }
}

/// The buttons.
#[component]
pub(super) fn Legend(hidden: Hidden, all: Memo<Vec<LegendEntry>>) -> impl IntoView {
    let button = move |series: LegendEntry| {
        let id = StoredValue::new(series.id.clone());
        let is_hidden = move || id.with_value(|id| hidden.has(id));
        let isolate = move || id.with_value(|id| all.with_untracked(|all| hidden.isolate(id, all)));
        let press = move |event: web_sys::MouseEvent| match event.shift_key() || event.alt_key() {
            true => isolate(),
            false => id.with_value(|id| hidden.toggle(id)),
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
