//! The prefix tree as pixels: which boxes a window shows, and their colours. Pure: knows no canvas and no browser.
//!
//! ```text
//! viewport  the window, in units of the tree and in device pixels      camera  how the window moves; crumb, visible: where to
//! raster    boxes into a buffer of pixels, by their owners             heat, changes  other colours of the same boxes
//! lanes     the same window once a worker                              evicted, fading  what left lately, over the picture
//! lights    requests in flight on their paths
//! palette   colours of the theme as numbers
//! ```
//!
//! # How it works
//!
//! *Heat* is another way to fill the same boxes. Ages count from a clock in steps of five seconds and hits end at a power of two, so
//! that neither time passing nor one more request repaints anything; hits of which nothing was received have no colour. *Lanes* draw
//! the same window once a worker with one visit of the forest, below a faint outline of the whole tree; only lanes that are seen
//! cost. A sliver is known to be of one worker, or by a bit of one of the first 64. *Fading* takes what each forest update added
//! and removed, 512 changes at a time, and lays it over the picture, what is gone for a second and a half: the picture itself never waits
//! for it. *Lights* say only where each request stands and when it begins and ends; the browser moves them.
//!
//! A crate of its own because every pixel of every frame is made here: in the page it is compiled for speed, the rest for size.
#![forbid(unsafe_code)]

pub mod camera;
pub mod changes;
pub mod crumb;
pub mod evicted;
pub mod fading;
pub mod heat;
pub mod lanes;
pub mod lights;
pub mod palette;
pub mod raster;
pub mod sessions;
pub mod viewport;
pub mod visible;

#[cfg(test)]
mod pixel_tests;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
