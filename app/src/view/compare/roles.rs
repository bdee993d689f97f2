//! The baselines at hand and which of them plays which role. Own ones are stored in the page's local storage as CSV text. CSV
//! is read beside the page: most readers never open this panel, and need not fetch what reads it.

use std::collections::HashSet;

use leptos::prelude::*;
use radixscope_insight::baseline::{self, Baseline, Figure, Import, Router, Window, is_results, save_window};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::source;
use crate::store::Store;
use crate::worker::client::Client;
use crate::worker::{BaselineText, Job, JobOutcome, WorkerResponse};

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

    /// The role of baselines that were routed so.
    fn of(router: Router) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.router() == router)
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
    /// Those that the server was given (`--baseline`).
    served: RwSignal<Vec<Baseline>>,
    /// What the server could not read of them.
    pub(super) served_notes: RwSignal<Vec<String>>,
    following: StoredValue<Following>,
    serving: StoredValue<Client, LocalStorage>,
    pub(super) own: RwSignal<Vec<Baseline>>,
    /// Whether the stored ones were read: nothing is stored over them before.
    pub(super) is_restored: RwSignal<bool>,
    /// Who reads what is there when the panel opens, and who reads files: neither ends the other's job.
    opening: StoredValue<Client, LocalStorage>,
    importing: StoredValue<Client, LocalStorage>,
    /// What the last action came to, as text.
    pub(super) status_text: RwSignal<Result<String, String>>,
}

/// Where reading the server's baselines stands.
#[derive(Default)]
enum Following {
    /// The text that was read last is known.
    Read(String),
    /// Nothing is known yet.
    #[default]
    Begin,
    /// A request is under way.
    Waiting,
    /// The server has none: it is not asked again.
    None,
}

impl Baselines {
    pub(super) fn new(store: Store) -> Self {
        let baselines = Self {
            store,
            samples: RwSignal::new(Vec::new()),
            served: RwSignal::new(Vec::new()),
            served_notes: RwSignal::new(Vec::new()),
            following: StoredValue::new(Following::default()),
            serving: StoredValue::new_local(Client::default()),
            own: RwSignal::new(Vec::new()),
            is_restored: RwSignal::new(false),
            opening: StoredValue::new_local(Client::default()),
            importing: StoredValue::new_local(Client::default()),
            status_text: RwSignal::new(Ok(String::new())),
        };
        baselines.read(baselines.opening, BaselineText::Reference, "", move |samples| {
            baselines.samples.set(samples.map(|samples| samples.baselines).unwrap_or_default());
            baselines.restore();
        });
        baselines
    }

    fn restore(self) {
        let Some(text) = stored() else { return self.is_restored.set(true) };
        self.read(self.opening, BaselineText::Csv(text), "Stored", move |stored| {
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

    /// Asks the server for its baselines, unless a request is under way or the server has none. Folders of results grow while an
    /// experiment runs, so this is asked again and again.
    pub(super) fn follow(self) {
        let last = self.following.try_update_value(|following| match std::mem::take(following) {
            Following::Begin => Some(String::new()),
            Following::Read(last) => Some(last),
            same @ (Following::Waiting | Following::None) => {
                *following = same;
                None
            }
        });
        let Some(Some(last)) = last else { return };
        self.following.set_value(Following::Waiting);
        leptos::task::spawn_local(async move {
            let next = match served().await {
                // The connection was lost, as the page says: what is known stays.
                Err(()) => Following::Read(last),
                Ok(text) if text.is_empty() => Following::None,
                Ok(text) => {
                    if text != last {
                        self.serve(text.clone());
                    }
                    Following::Read(text)
                }
            };
            // Nothing to set if the panel was closed.
            self.following.try_set_value(next);
        });
    }

    fn serve(self, csv: String) {
        let notes = csv.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect();
        // `Some`: the panel was closed meanwhile.
        if self.served_notes.try_set(notes).is_some() || !has_rows(&csv) {
            return;
        }
        self.read(self.serving, BaselineText::Csv(csv), "", move |served| match served {
            Ok(Import { baselines, .. }) => self.served.set(baselines),
            Err(error) => {
                self.served_notes.set(vec![format!("The server's baselines cannot be read: {error}")])
            }
        });
    }

    /// Has baselines read beside the page; `done` gets what they are, or what is wrong with them.
    fn read(
        self,
        reader: StoredValue<Client, LocalStorage>,
        from: BaselineText,
        name: &str,
        done: impl Fn(Result<Import, String>) + 'static,
    ) {
        let job = Job::Baselines { from, name: name.to_owned() };
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

    /// The server's first, then samples. Tracked.
    pub(super) fn all(self) -> Vec<Baseline> {
        let (mut all, own) = (self.served.get(), self.own.get());
        all.extend(self.samples.get());
        // One of the reader's takes the place of another of the same name.
        all.retain(|other| own.iter().all(|baseline| name_of(baseline) != name_of(other)));
        all.extend(own);
        all
    }

    /// Those of the server whose experiment has runs to come. Tracked.
    pub(super) fn running(self) -> Vec<Baseline> {
        self.served.with(|served| {
            let is_running =
                |baseline: &&Baseline| baseline.progress().is_some_and(|progress| !progress.is_complete());
            served.iter().filter(is_running).cloned().collect()
        })
    }

    pub(super) fn is_served(self, baseline: &Baseline) -> bool {
        self.served.with_untracked(|served| served.contains(baseline))
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

    /// Takes the baselines of a CSV, or results of a load generator, routed by `router`, as one baseline; those of the same name
    /// and router are replaced. `files`: names and texts; `name`: what they are called, empty: as the first file.
    pub(super) fn import(self, files: Vec<(String, String)>, router: Router, name: &str) {
        // `None`: the panel was closed while the file was read.
        let Some(is_restored) = self.is_restored.try_get_untracked() else { return };
        let file = match &files[..] {
            [] => return,
            [(file, _)] => file.clone(),
            [(file, _), others @ ..] => {
                format!("{file} and {}", crate::format::plural(others.len() as u64, "file", "files"))
            }
        };
        if !is_restored {
            let status_text = "was not imported: the baselines stored in this browser are not read yet.";
            return self.status_text.set(Err(format!("{file} {status_text}")));
        }
        let first = files[0].0.trim_end_matches(".csv").trim_end_matches(".json");
        let name = if name.is_empty() { first } else { name }.to_owned();
        let are_results = files.iter().all(|(_, text)| is_results(text));
        let from = match <[_; 1]>::try_from(files) {
            Ok([(_, csv)]) if !are_results => BaselineText::Csv(csv),
            Ok(one) => BaselineText::Results { files: one.into(), router },
            Err(files) if are_results => BaselineText::Results { files, router },
            Err(_) => {
                let status_text =
                    "were not imported: only results of a load generator are read together, a CSV alone.";
                return self.status_text.set(Err(format!("{file} {status_text}")));
            }
        };
        self.read(self.importing, from, &name, move |import| match import {
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
        let playing: Vec<(Role, String)> =
            import.baselines.iter().filter_map(|new| Some((Role::of(new.router())?, name_of(new)))).collect();
        self.own.update(|own| {
            own.retain(|baseline| !names.contains(&name_of(baseline)));
            own.extend(import.baselines);
        });
        // What was just brought is what the reader wants to see.
        for (role, name) in playing {
            self.choose(role, &name);
        }
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

/// The server's baselines as CSV; empty if it has none, as a recording or an older server. `Err`: it did not respond.
async fn served() -> Result<String, ()> {
    let response = JsFuture::from(source::request("api/v1/baselines.csv", &RequestInit::new())).await;
    let response: Response = response.map_err(drop)?.unchecked_into();
    match response.status() {
        200 => {
            let text = JsFuture::from(response.text().map_err(drop)?).await.map_err(drop)?;
            text.as_string().ok_or(())
        }
        400..=499 => Ok(String::new()),
        _ => Err(()),
    }
}

/// Whether there is a line below the header.
fn has_rows(csv: &str) -> bool {
    csv.lines().filter(|line| !line.starts_with('#')).nth(1).is_some()
}

fn stored() -> Option<String> {
    let storage = window().local_storage().ok().flatten()?;
    let text = storage.get_item(STORAGE_KEY).ok().flatten()?;
    // A header alone: everything was deleted.
    (text.lines().count() > 1).then_some(text)
}
