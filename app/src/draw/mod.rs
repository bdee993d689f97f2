//! Drawing: what stands where in pixels and in which colour. Only `surface` and `photo` know a canvas.

pub mod camera;
pub mod crumb;
pub mod fading;
pub mod heat;
pub mod lanes;
pub mod palette;
pub mod raster;
pub mod strip;
pub mod viewport;
pub mod visible;

#[cfg(test)]
mod pixel_tests;
#[cfg(test)]
mod testing;

#[cfg(target_arch = "wasm32")]
pub mod chart;
#[cfg(target_arch = "wasm32")]
pub mod curves;
#[cfg(target_arch = "wasm32")]
pub mod photo;
#[cfg(target_arch = "wasm32")]
pub mod rates;
#[cfg(target_arch = "wasm32")]
pub mod surface;
#[cfg(target_arch = "wasm32")]
pub mod trend;
#[cfg(target_arch = "wasm32")]
pub mod words;
