//! The baselines at hand and which of them plays which role. Own ones are kept in the page's local storage as CSV text.

use std::collections::HashSet;

use leptos::prelude::*;
use radixscope_insight::baseline::{self, Baseline, Figure, Router, Window, save_window};

use crate::number;
use crate::store::Store;

/// Where own baselines are kept.
const STORAGE_KEY: &str = "radixscope.baselines";

/// A role in the comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Routed by cached prefix and load.
    KvAware,
    /// Routed in turn.
    RoundRobin,
}

impl Role {
    pub(super) const ALL: [Self; 2] = [Self::KvAware, Self::RoundRobin];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::KvAware => "KV-aware baseline",
            Self::RoundRobin => "Round-robin baseline",
        }
    }

    /// Key in the address; also for tests.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::KvAware => "cmp.kv",
            Self::RoundRobin => "cmp.rr",
        }
    }

    const fn router(self) -> Router {
        match self {
            Self::KvAware => Router::KvAware,
            Self::RoundRobin => Router::RoundRobin,
        }
    }
}

/// What tells a baseline from others, in the address.
pub(super) fn name_of(baseline: &Baseline) -> String {
    format!("{}:{}", baseline.router().as_str(), baseline.name())
}

/// All baselines.
#[derive(Clone, Copy)]
pub(super) struct Baselines {
    store: Store,
    samples: StoredValue<Vec<Baseline>>,
    pub(super) own: RwSignal<Vec<Baseline>>,
    /// What the last action came to, in words.
    pub(super) said: RwSignal<Result<String, String>>,
}

impl Baselines {
    pub(super) fn new(store: Store) -> Self {
        let (own, said) = match kept() {
            Some(text) => match baseline::import_with(&text, "Kept", number::decimal) {
                Ok(import) => (import.baselines, Ok(String::new())),
                Err(error) => {
                    (Vec::new(), Err(format!("Baselines kept in this browser cannot be read: {error}.")))
                }
            },
            None => (Vec::new(), Ok(String::new())),
        };
        Self {
            store,
            samples: StoredValue::new(baseline::reference_with(number::decimal)),
            own: RwSignal::new(own),
            said: RwSignal::new(said),
        }
    }

    /// Samples first. Tracked.
    pub(super) fn all(self) -> Vec<Baseline> {
        let (mut all, own) = (self.samples.get_value(), self.own.get());
        // One of the reader's takes the place of the sample of the same name.
        all.retain(|sample| own.iter().all(|baseline| name_of(baseline) != name_of(sample)));
        all.extend(own);
        all
    }

    pub(super) fn is_sample(self, baseline: &Baseline) -> bool {
        self.samples.with_value(|samples| samples.contains(baseline))
    }

    /// The one that plays `role`: as the address says, else the first that was routed so. Tracked.
    pub(super) fn playing(self, role: Role) -> Option<Baseline> {
        let wanted = self.store.address.with(|address| address.other(role.key()));
        let all = self.all();
        let named = wanted.and_then(|name| all.iter().find(|baseline| name_of(baseline) == name).cloned());
        named.or_else(|| all.into_iter().find(|baseline| baseline.router() == role.router()))
    }

    pub(super) fn choose(self, role: Role, name: &str) {
        self.store.address.update(|address| address.set_other(role.key(), Some(name)));
    }

    /// Takes the baselines of a file; those of the same name and router are replaced.
    pub(super) fn import(self, text: &str, file: &str) {
        let name = file.trim_end_matches(".csv");
        match baseline::import_with(text, name, number::decimal) {
            Err(error) => self.said.set(Err(format!("{file} was not imported: {error}."))),
            Ok(mut import) => {
                // An export holds the samples, too.
                import.baselines.retain(|baseline| !self.is_sample(baseline));
                let names: HashSet<String> = import.baselines.iter().map(name_of).collect();
                let levels: usize = import.baselines.iter().map(|baseline| baseline.rows().len()).sum();
                let mut said = format!(
                    "{file}: {} with {levels} levels taken.",
                    crate::format::plural(names.len() as u64, "baseline", "baselines")
                );
                for notice in &import.notices {
                    said.push_str(&format!(" Note: {notice}."));
                }
                self.own.update(|own| {
                    own.retain(|baseline| !names.contains(&name_of(baseline)));
                    own.extend(import.baselines);
                });
                self.keep(said);
            }
        }
    }

    /// Saves a window of live traffic as a level.
    pub(super) fn save(self, name: &str, router: Router, window: &Window) {
        let mut own = self.own.get_untracked();
        if save_window(&mut own, name, router, window) {
            let level = window.row().concurrency;
            self.own.set(own);
            let left_out: Vec<&str> = window.inexact().map(Figure::label).collect();
            let without = match left_out.is_empty() {
                true => String::new(),
                false => format!(" Not saved, as only a range is known: {}.", left_out.join(", ")),
            };
            self.keep(format!("Saved as {name}, concurrency {level}.{without}"));
        }
    }

    pub(super) fn delete(self, name: &str) {
        self.own.update(|own| own.retain(|baseline| name_of(baseline) != name));
        self.keep("Deleted.".to_owned());
    }

    /// Writes the own ones into the page's local storage.
    fn keep(self, said: String) {
        let text = self.own.with_untracked(|own| baseline::export(own));
        let storage = window().local_storage().ok().flatten();
        let is_kept = storage.is_some_and(|storage| storage.set_item(STORAGE_KEY, &text).is_ok());
        self.said.set(match is_kept {
            true => Ok(said),
            false => Err(format!(
                "{said} The browser stores nothing for this page: the baseline is lost when the page closes, so export it."
            )),
        });
    }
}

fn kept() -> Option<String> {
    let storage = window().local_storage().ok().flatten()?;
    let text = storage.get_item(STORAGE_KEY).ok().flatten()?;
    // A header alone: everything was deleted.
    (text.lines().count() > 1).then_some(text)
}
