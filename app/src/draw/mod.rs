//! Drawing: what stands where in pixels and in which colour. Only `surface` and `photo` know a canvas.
//!
//! # How it works
//!
//! `paint` decides how a frame is painted, and everything that its pixels depend on is one value that is compared
//! with the last frame's. *Heat* is another way to fill the same boxes. Ages count from a clock in steps of five
//! seconds and hits end at a power of two, so that neither time passing nor one more request repaints anything; hits
//! of which nothing was received have no colour. *Lanes* draw the same window once a worker with one visit of the
//! forest, below a faint outline of the whole tree; only lanes that are seen cost. A sliver is known to be of one
//! worker, or by a bit of one of the first 64. *Fading* takes what each forest update added and removed, 512 changes at a
//! time, and lays it over the picture for half a second: the picture itself never waits for it.
//!
//! Charts are options of `charming`'s types (`option`), drawn by ECharts (`rates`, `trend`, `curves`, `strips`; `chart` alone knows
//! ECharts). By hand is what ECharts has no chart for or is too slow for: the tree, its lanes and the strips beside them.

pub mod camera;
pub mod changes;
pub mod crumb;
pub mod curves;
pub mod evicted;
pub mod fading;
pub mod heat;
pub mod lanes;
pub mod option;
pub mod palette;
pub mod raster;
pub mod rates;
pub mod strip;
pub mod strips;
pub mod theme;
pub mod trend;
pub mod viewport;
pub mod visible;

#[cfg(test)]
mod pixel_tests;
#[cfg(test)]
mod testing;

#[cfg(target_arch = "wasm32")]
pub mod annotations;
#[cfg(target_arch = "wasm32")]
pub mod chart;
#[cfg(target_arch = "wasm32")]
pub mod photo;
#[cfg(target_arch = "wasm32")]
pub mod surface;
