//! View models: what each panel of the page shows (rows, figures, order, labels, texts of empty panels, what is enabled), computed from the
//! folded state as plain values. The page's components only paint them.
//!
//! A module for each panel. A model is made of a [`ViewContext`](radixscope_insight::view_context::ViewContext), a time and the reader's
//! settings; it knows no signal, no clock, no network and no browser, so that everything a panel states is tested on the host.
#![forbid(unsafe_code)]

pub mod changes;
pub mod compare;
pub mod costs;
pub mod counterfactual;
pub mod decisions;
pub mod findings;
pub mod fleet;
pub mod format;
pub mod keys;
pub mod kiosk;
pub mod latency;
pub mod legend;
pub mod link;
pub mod losses;
pub mod marks;
pub mod memory;
pub mod notices;
pub mod overview;
pub mod paste;
pub mod pools;
pub mod prompt_text;
pub mod rates;
pub mod reuse;
pub mod round_robin;
pub mod session_turns;
pub mod stage;
pub mod status;
pub mod time_menu;
pub mod time_zone;
pub mod timeline;
pub mod tour;
pub mod tree;
pub mod url;
pub mod whatif;
pub mod workers;
