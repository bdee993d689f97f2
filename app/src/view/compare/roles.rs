//! The baselines at hand and which of them plays which role. Own ones are stored in the page's local storage as CSV text. CSV
//! is read beside the page: most readers never open this panel, and need not fetch what reads it.

use std::collections::HashSet;

use leptos::prelude::*;
use radixscope_insight::baseline::{self, Baseline, Figure, Import, Router, Window, save_window};

use crate::store::Store;
use crate::worker::client::Client;
use crate::worker::{Job, JobOutcome, WorkerResponse};

/// Where own baselines are stored.
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
    samples: RwSignal<Vec<Baseline>>,
    pub(super) own: RwSignal<Vec<Baseline>>,
    /// Whether the stored ones were read: nothing is stored over them before.
    pub(super) is_restored: RwSignal<bool>,
    /// Who reads what is there when the panel opens, and who reads files: neither ends the other's job.
    opening: StoredValue<Client, LocalStorage>,
    importing: StoredValue<Client, LocalStorage>,
    /// What the last action came to, as text.
    pub(super) status_text: RwSignal<Result<String, String>>,
}

impl Baselines {
    pub(super) fn new(store: Store) -> Self {
        let baselines = Self {
            store,
            samples: RwSignal::new(Vec::new()),
            own: RwSignal::new(Vec::new()),
            is_restored: RwSignal::new(false),
            opening: StoredValue::new_local(Client::default()),
            importing: StoredValue::new_local(Client::default()),
            status_text: RwSignal::new(Ok(String::new())),
        };
        baselines.read(baselines.opening, None, "", move |samples| {
            baselines.samples.set(samples.map(|samples| samples.baselines).unwrap_or_default());
            baselines.restore();
        });
        baselines
    }

    fn restore(self) {
        let Some(text) = stored() else { return self.is_restored.set(true) };
        self.read(self.opening, Some(text), "Stored", move |stored| {
            match stored {
                Ok(stored) => self.own.set(stored.baselines),
                Err(error) => {
                    self.status_text
                        .set(Err(format!("Baselines stored in this browser cannot be read: {error}.")));
                }
            }
            self.is_restored.set(true);
        });
    }

    /// Has CSV read beside the page, the reference sweeps for `None`; `done` gets what it holds, or what is wrong with it.
    fn read(
        self,
        reader: StoredValue<Client, LocalStorage>,
        csv: Option<String>,
        name: &str,
        done: impl Fn(Result<Import, String>) + 'static,
    ) {
        let job = Job::Baselines { csv, name: name.to_owned() };
        let on_response = move |response| match response {
            WorkerResponse::Done { outcome: JobOutcome::Baselines(read), .. } => done(read),
            WorkerResponse::Failed { message, .. } => {
                self.status_text
                    .set(Err(format!("Baselines cannot be read: {message}. Load the page again.")));
            }
            WorkerResponse::Ready | WorkerResponse::Progress { .. } | WorkerResponse::Done { .. } => {}
        };
        reader.with_value(|reader| reader.run(job, on_response));
    }

    /// Samples first. Tracked.
    pub(super) fn all(self) -> Vec<Baseline> {
        let (mut all, own) = (self.samples.get(), self.own.get());
        // One of the reader's takes the place of the sample of the same name.
        all.retain(|sample| own.iter().all(|baseline| name_of(baseline) != name_of(sample)));
        all.extend(own);
        all
    }

    pub(super) fn is_sample(self, baseline: &Baseline) -> bool {
        self.samples.with_untracked(|samples| samples.contains(baseline))
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
    pub(super) fn import(self, text: String, file: String) {
        // `None`: the panel was closed while the file was read.
        let Some(is_restored) = self.is_restored.try_get_untracked() else { return };
        if !is_restored {
            let status_text = "was not imported: the baselines stored in this browser are not read yet.";
            return self.status_text.set(Err(format!("{file} {status_text}")));
        }
        let name = file.trim_end_matches(".csv").to_owned();
        self.read(self.importing, Some(text), &name, move |import| match import {
            Err(error) => self.status_text.set(Err(format!("{file} was not imported: {error}."))),
            Ok(import) => self.add(import, &file),
        });
    }

    fn add(self, mut import: Import, file: &str) {
        // An export holds the samples, too.
        import.baselines.retain(|baseline| !self.is_sample(baseline));
        let levels: usize = import.baselines.iter().map(|baseline| baseline.rows().len()).sum();
        let count = crate::format::plural(import.baselines.len() as u64, "baseline", "baselines");
        let mut status_text = format!("{file}: {count} with {levels} levels imported.");
        for notice in &import.notices {
            status_text.push_str(&format!(" Note: {notice}."));
        }
        let names: HashSet<String> = import.baselines.iter().map(name_of).collect();
        self.own.update(|own| {
            own.retain(|baseline| !names.contains(&name_of(baseline)));
            own.extend(import.baselines);
        });
        self.keep(status_text);
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
    fn keep(self, status_text: String) {
        let text = self.own.with_untracked(|own| baseline::export(own));
        let storage = window().local_storage().ok().flatten();
        let is_stored = storage.is_some_and(|storage| storage.set_item(STORAGE_KEY, &text).is_ok());
        self.status_text.set(match is_stored {
            true => Ok(status_text),
            false => Err(format!(
                "{status_text} The browser stores nothing for this page: the baseline is lost when the page closes, so export it."
            )),
        });
    }
}

fn stored() -> Option<String> {
    let storage = window().local_storage().ok().flatten()?;
    let text = storage.get_item(STORAGE_KEY).ok().flatten()?;
    // A header alone: everything was deleted.
    (text.lines().count() > 1).then_some(text)
}
