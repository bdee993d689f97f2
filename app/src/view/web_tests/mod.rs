//! Components with behaviour of their own, in a real browser: canvas, camera, keyboard, timeline, focus, tables. All run one after the
//! other in one page of one headless Chromium, without a server: `cargo xtask test` builds and starts them
//! (`xtask/src/components.rs`). What components say is tested on the host (`app/panels`); what needs the whole, by `tests`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod canvas;
mod cluster;
mod controls;
mod focus;
mod page;
mod page_keys;
mod time_chart;
mod timeline;
mod tree_grid;
mod tree_input;
mod virtual_table;
mod workers;

use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);
