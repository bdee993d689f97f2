//! The mark on the map of the whole tree: what lies outside of the window is veiled, the window is outlined, and a funnel leads from it to
//! the picture below. A canvas, because it follows the camera: elements that move make the browser compute styles and layout in every
//! frame, which costs as much as the picture itself.

use radixscope_icicle::palette::{Palette, css};
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

/// Height of the funnel below the map, as in the style sheet (`.minimap-all`), share of the canvas.
const FUNNEL: f64 = 0.25;
/// Least width and height of the marked window, and its outline, CSS pixels.
const LEAST: f64 = 4.0;
const LINE: f64 = 2.0;
/// Opacities of the veil and of the funnel.
const VEIL: f64 = 0.6;
const FUNNEL_OPACITY: f64 = 0.3;

/// The part of the tree that the picture shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Its left edge, share of the whole width.
    pub left: f64,
    /// Its right edge.
    pub right: f64,
    /// Its top, share of the whole depth.
    pub top: f64,
    /// Its bottom.
    pub bottom: f64,
}

/// The canvas over the map and the funnel.
pub struct MapMark(CanvasRenderingContext2d);

impl MapMark {
    /// On this canvas; `None` where the browser gives no 2D context.
    pub fn new(canvas: &HtmlCanvasElement) -> Option<Self> {
        canvas.get_context("2d").ok().flatten()?.dyn_into().ok().map(Self)
    }

    /// Draws the mark on `width` × `height` CSS pixels.
    pub fn draw(&self, (width, height): (f64, f64), window: Window, palette: &Palette) {
        let (Self(context), scale) = (self, leptos::prelude::window().device_pixel_ratio().clamp(0.5, 12.0));
        let (width, height) = ((width * scale).round(), (height * scale).round());
        if let Some(canvas) = context.canvas()
            && (f64::from(canvas.width()), f64::from(canvas.height())) != (width, height)
        {
            canvas.set_width(width as u32);
            canvas.set_height(height as u32);
        }
        let map = (height * (1.0 - FUNNEL)).round();
        let least = LEAST * scale;
        let (left, top) = ((window.left * width).round(), (window.top * map).round());
        let right = (window.right * width).round().max(left + least).min(width);
        let bottom = (window.bottom * map).round().max(top + least).min(map);
        let (left, top) = (left.min(right - least), top.min(bottom - least));
        context.clear_rect(0.0, 0.0, width, height);
        context.set_global_alpha(VEIL);
        context.set_fill_style_str(&css(palette.ground));
        context.fill_rect(0.0, 0.0, left, map);
        context.fill_rect(right, 0.0, width - right, map);
        context.fill_rect(left, 0.0, right - left, top);
        context.fill_rect(left, bottom, right - left, map - bottom);
        context.set_global_alpha(FUNNEL_OPACITY);
        context.set_fill_style_str(&css(palette.focus));
        context.begin_path();
        context.move_to(left, map);
        context.line_to(right, map);
        context.line_to(width, height);
        context.line_to(0.0, height);
        context.fill();
        context.set_global_alpha(1.0);
        context.set_stroke_style_str(&css(palette.focus));
        let line = LINE * scale;
        context.set_line_width(line);
        context.stroke_rect(left + line / 2.0, top + line / 2.0, right - left - line, bottom - top - line);
    }
}
