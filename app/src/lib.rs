//! The page: a viewer that runs the same fold as the server and draws what it knows.
//!
//! ```text
//! net     the link: frames in, reconnecting           store   the state, the signals that say it changed
//! view    one file a panel, reads the store           draw    pixels, colours, canvas, chart
//! worker  long jobs beside the page, without Leptos   keys    the keyboard
//! theme   dark or light
//! past    any moment of what the server keeps
//! player  a recording in the server's place, in a Web Worker
//! asset   addresses of the page's files             tasks   effects, a few at a time
//! ```
//! What panels show is computed by `radixscope_panels`, which is tested on the host, as is what needs no browser here (`draw::rates` …).
#![forbid(unsafe_code)]

pub mod draw;
pub mod net;
pub mod past;
pub mod player;
pub mod worker;

pub use radixscope_insight::{time_range, view_context};
pub use radixscope_panels::{format, paste, time_zone, url};

#[cfg(test)]
mod style_sheets;

#[cfg(target_arch = "wasm32")]
mod asset;
#[cfg(target_arch = "wasm32")]
pub mod keys;
#[cfg(target_arch = "wasm32")]
pub mod store;
#[cfg(target_arch = "wasm32")]
mod tasks;
#[cfg(target_arch = "wasm32")]
pub mod theme;
#[cfg(target_arch = "wasm32")]
#[expect(unreachable_pub, reason = "what the component macro writes is public whatever the component is")]
#[expect(
    clippy::redundant_closure,
    reason = "in a view, `move ||` marks what is computed again when a signal changes"
)]
pub mod view;

/// Puts the page into the document. `chunks` are the views that it loads when they are opened.
#[cfg(target_arch = "wasm32")]
pub fn start(chunks: &'static [view::lazy::Chunk]) {
    console_error_panic_hook::set_once();
    view::lazy::set_chunks(chunks);
    tasks::run_in_slices();
    leptos::mount::mount_to_body(view::App);
}
