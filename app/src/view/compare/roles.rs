//! The baselines at hand and which of them plays which role. Own ones are stored in the page's local storage as CSV text. CSV
//! is read beside the page: most readers never open this panel, and need not fetch what reads it.

use leptos::prelude::*;
use radixscope_insight::baseline::{self, Baseline, Import, Router, Window};
use radixscope_panels::compare::{BaselineSet, ImportFiles, ImportKind, Role};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::source;
use crate::store::Store;
use crate::worker::client::Client;
use crate::worker::{BaselineText, Job, JobOutcome, WorkerResponse};

/// Where own baselines are stored.
const STORAGE_KEY: &str = "radixscope.baselines";

/// All baselines.
#[derive(Clone, Copy)]
pub(super) struct Baselines {
    store: Store,
    pub(super) set: RwSignal<BaselineSet>,
    /// Those that play the roles.
    pub(super) playing: Memo<[Option<Baseline>; 2]>,
    /// What the server could not read of them.
    pub(super) served_notes: RwSignal<Vec<String>>,
    following: StoredValue<Following>,
    serving: StoredValue<Client, LocalStorage>,
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
        let set = RwSignal::new(BaselineSet::default());
        let wanted = Memo::new(move |_| store.address.with(Role::wanted));
        let baselines = Self {
            store,
            set,
            playing: Memo::new(move |_| wanted.with(|wanted| set.with(|set| set.playing(wanted)))),
            served_notes: RwSignal::new(Vec::new()),
            following: StoredValue::new(Following::default()),
            serving: StoredValue::new_local(Client::default()),
            is_restored: RwSignal::new(false),
            opening: StoredValue::new_local(Client::default()),
            importing: StoredValue::new_local(Client::default()),
            status_text: RwSignal::new(Ok(String::new())),
        };
        baselines.read(baselines.opening, BaselineText::Reference, "", move |samples| {
            let samples = samples.map(|samples| samples.baselines).unwrap_or_default();
            set.update(|set| set.samples = samples);
            baselines.restore();
        });
        baselines
    }

    fn restore(self) {
        let Some(text) = stored() else { return self.is_restored.set(true) };
        self.read(self.opening, BaselineText::Csv(text), "Stored", move |stored| {
            match stored {
                Ok(stored) => self.set.update(|set| set.own = stored.baselines),
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
            Ok(Import { baselines, .. }) => self.set.update(|set| set.served = baselines),
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

    pub(super) fn choose(self, role: Role, name: &str) {
        self.store.address.update(|address| address.set_other(role.key(), Some(name)));
    }

    /// Takes the baselines of a CSV, or results of a load generator, routed by `router`, as one baseline; those of the same name
    /// and router are replaced. `files`: names and texts; `name`: what they are called, empty: as the first file.
    pub(super) fn import(self, files: Vec<(String, String)>, router: Router, name: &str) {
        // `None`: the panel was closed while the file was read.
        let Some(is_restored) = self.is_restored.try_get_untracked() else { return };
        let Some(all) = ImportFiles::new(&files) else { return };
        let (file, name) = (all.to_text(), all.name(name));
        let kind = match all.kind(is_restored) {
            Ok(kind) => kind,
            Err(why) => return self.status_text.set(Err(why)),
        };
        let from = match (kind, <[_; 1]>::try_from(files)) {
            (ImportKind::Csv, Ok([(_, csv)])) => BaselineText::Csv(csv),
            (_, Ok(one)) => BaselineText::Results { files: one.into(), router },
            (_, Err(files)) => BaselineText::Results { files, router },
        };
        self.read(self.importing, from, &name, move |import| match import {
            Err(error) => self.status_text.set(Err(format!("{file} was not imported: {error}."))),
            Ok(import) => self.add(import, &file),
        });
    }

    fn add(self, import: Import, file: &str) {
        let added = self.set.try_update(|set| set.add(import, file));
        let Some((status_text, playing)) = added else { return };
        for (role, name) in playing {
            self.choose(role, &name);
        }
        self.keep(status_text);
    }

    /// Saves a window of live traffic as a level.
    pub(super) fn save(self, name: &str, router: Router, window: &Window) {
        let saved = self.set.try_update(|set| set.save(name, router, window)).flatten();
        if let Some(status_text) = saved {
            self.keep(status_text);
        }
    }

    pub(super) fn delete(self, key: &str) {
        self.set.update(|set| set.delete(key));
        self.keep("Deleted.".to_owned());
    }

    /// Writes the own ones into the page's local storage.
    fn keep(self, status_text: String) {
        let text = self.set.with_untracked(|set| baseline::export(&set.own));
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
