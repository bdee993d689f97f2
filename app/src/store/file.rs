//! A recording that the reader opened in the place of the server. Knows no widget.

use js_sys::Array;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::{Store, time_of_day};
use crate::format;
use crate::net::socket;
use crate::net::source::{self, Opened};

/// What a page with a recording inside keeps it in: an array of files.
const INSIDE: &str = "radixscopeFiles";

/// The files that the page came with.
fn inside() -> Option<Array> {
    crate::asset::from_document(INSIDE).dyn_into().ok()
}

impl Store {
    /// Begins to ask: the files that the page came with, or the server.
    pub(crate) fn begin(self) {
        match inside() {
            Some(files) => self.open_files(files, false),
            None => leptos::task::spawn_local(socket::run(self)),
        }
    }

    /// Shows the files of a recording, or compares what is shown with its end, as B; where they cannot be opened, says why and
    /// shows what was shown before.
    pub fn open_files(self, files: Array, is_second: bool) {
        self.file_note.set("Opening the recording".to_owned());
        leptos::task::spawn_local(async move {
            match source::open(&files, is_second).await {
                Ok(opened) => {
                    self.file_note.set(lost(&opened));
                    if is_second {
                        let (from, until) = (opened.from, opened.until);
                        self.second.set(Some(opened));
                        self.compare_anew();
                        self.address.update(|address| {
                            let [a, b] = &mut address.marks;
                            a.get_or_insert(self.moment_ms());
                            *b = b.filter(|at| *at >= from && *at <= until).or(Some(until));
                        });
                    } else {
                        // Moments marked before may be none of this recording.
                        let (from, until) = (opened.from, opened.until);
                        self.address.update(|address| {
                            address.marks =
                                address.marks.map(|mark| mark.filter(|at| *at >= from && *at <= until));
                        });
                        self.file.set(Some(opened));
                        self.ask_anew();
                    }
                }
                Err(why) => self.file_note.set(format!("Not opened: {why}")),
            }
        });
    }

    /// Shows again what the page came with: files, or the server's present.
    pub fn close_file(self) {
        self.file_note.set(String::new());
        if let Some(files) = inside() {
            return self.open_files(files, false);
        }
        source::close();
        self.file.set(None);
        self.ask_anew();
    }

    /// B is no longer a moment of a second recording.
    pub fn close_second(self) {
        if self.second.with_untracked(Option::is_some) {
            source::close_second();
            self.second.set(None);
            self.compare_anew();
            self.address.update(|address| address.marks[1] = None);
        }
    }

    /// Whether the file shown is one that the page did not come with. Tracked.
    pub fn can_close_file(self) -> bool {
        let came_with = || inside().map(|files| web_sys::File::from(files.get(0)).name());
        self.file.with(|file| file.as_ref().is_some_and(|file| Some(&file.name) != came_with().as_ref()))
    }

    /// Forgets earlier requests; what is shown stays until there is something else.
    fn ask_anew(self) {
        self.back_to_live();
        self.compare_anew();
        self.forget_place();
        self.live.update_value(|live| live.history = Default::default());
        self.check.set(Default::default());
        self.stale.set(false);
        self.history_version.set(0);
        leptos::task::spawn_local(async move {
            // The end of a file is there at once, and asking for what is retained begins with it.
            if source::DataSource::now().is_file() {
                self.replayed.set(true);
            }
            socket::run(self).await;
        });
    }
}

fn lost(opened: &Opened) -> String {
    match opened.lost_bytes {
        0 => String::new(),
        bytes => format!(
            "{} was not written to its end: {} bytes after {} are lost",
            opened.name,
            format::short(bytes),
            time_of_day(opened.until)
        ),
    }
}
