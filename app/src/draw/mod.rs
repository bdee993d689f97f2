//! Drawing: what stands where in pixels and in which colour. Only `surface`, `map_mark` and `photo` know a canvas.
//!
//! # How it works
//!
//! `view/tree/stage` decides how a frame is painted: everything that its pixels depend on is one value that is compared with the last
//! frame's. The tree's pixels themselves are made by `radixscope-icicle`.
//!
//! Charts are options of `charming`'s types (`option`), drawn by ECharts (`rates`, `trend`, `curves`, `strips`; `chart` alone knows
//! ECharts). By hand is what ECharts has no chart for or is too slow for: the tree, its lanes and the strips beside them.

pub mod curves;
pub mod option;
pub mod rates;
pub mod strip;
pub mod strips;
pub mod theme;
pub mod trend;

#[cfg(target_arch = "wasm32")]
pub mod annotations;
#[cfg(target_arch = "wasm32")]
pub mod chart;
#[cfg(target_arch = "wasm32")]
pub mod map_mark;
#[cfg(target_arch = "wasm32")]
pub mod photo;
#[cfg(target_arch = "wasm32")]
pub mod surface;
