//! The tree's canvas: pixels with text and outlines over them; beside it one for the axis, over it one for what appears and fades. With
//! `photo` and `map_mark` the only file that draws on a canvas.
//!
//! Pixels and text share a canvas, because a browser copies each canvas that was drawn on in every frame: eight megabytes for
//! one that fills a screen. What fades has its own: it changes twenty times a second over a picture that does not.

use std::cell::{Cell, RefCell};

use hashbrown::HashMap;
use js_sys::{Object, Reflect};
use leptos::prelude::*;
use radixscope_icicle::fading::Veil;
use radixscope_icicle::palette::{Rgb, css};
use radixscope_icicle::raster::Pixels;
use radixscope_icicle::viewport::Rect;
use wasm_bindgen::{Clamped, JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

/// Text of labels and axis, CSS pixels.
const FONT_PX: f64 = 11.0;

/// The tree's canvas and its axis.
pub struct Surface {
    picture: CanvasRenderingContext2d,
    axis: Option<CanvasRenderingContext2d>,
    overlay: Option<CanvasRenderingContext2d>,
    /// What of the overlay was drawn on.
    overlaid: Cell<Option<Rect>>,
    /// Device pixels across and down, without the axis.
    pub size: (u32, u32),
    /// Device pixels that the axis takes at the left.
    pub gutter: u32,
    /// Device pixels per CSS pixel, times what text is larger than usual.
    pub scale: f64,
    /// Widths of texts in the labels' font: the same texts are written frame after frame, and each measuring is a call
    /// out of here.
    widths: RefCell<HashMap<String, f64>>,
    /// The picture's colour of fills: a browser parses each that it is given.
    fill_colour: Cell<Option<Rgb>>,
}

/// Weights of the fonts of labels and axis.
const LABEL_WEIGHT: u32 = 600;
const AXIS_WEIGHT: u32 = 400;
/// Most texts whose widths are remembered.
const MAX_WIDTHS: usize = 4_096;

impl Surface {
    /// On these canvases; `None` where the browser gives no 2D context.
    pub fn new(
        picture: &HtmlCanvasElement,
        axis: Option<&HtmlCanvasElement>,
        overlay: Option<&HtmlCanvasElement>,
    ) -> Option<Self> {
        let context = |canvas: &HtmlCanvasElement, options: &JsValue| {
            let context = canvas.get_context_with_context_options("2d", options).ok().flatten()?;
            context.dyn_into::<CanvasRenderingContext2d>().ok()
        };
        // Whole pictures of pixels are put onto it: stored where this program is, that costs a tenth less. None has a transparent
        // pixel: without transparency the browser's own thread for pictures takes a quarter less for each.
        let options = Object::new();
        let _ = Reflect::set(&options, &"willReadFrequently".into(), &JsValue::TRUE);
        let _ = Reflect::set(&options, &"alpha".into(), &JsValue::FALSE);
        let drawn = context(picture, &options)?;
        // Such a canvas is black until it is drawn on: it has no size until its first picture.
        resize(&drawn, 0, 0);
        Some(Self {
            picture: drawn,
            axis: axis.and_then(|axis| context(axis, &JsValue::UNDEFINED)),
            overlay: overlay.and_then(|overlay| context(overlay, &JsValue::UNDEFINED)),
            overlaid: Cell::default(),
            size: (0, 0),
            gutter: 0,
            scale: 1.0,
            widths: RefCell::default(),
            fill_colour: Cell::default(),
        })
    }

    /// Makes the canvases fit `width` × `height` CSS pixels, of which the axis usually takes `gutter`. Where the style
    /// sheet gives it more, everything is written larger by as much. Says whether anything changed.
    pub fn fit(&mut self, width: f64, height: f64, gutter: f64) -> bool {
        let axis = || self.picture.canvas().map_or(0.0, |canvas| f64::from(canvas.offset_left()));
        let larger = if gutter > 0.0 { (axis() / gutter).max(1.0) } else { 1.0 };
        let (width, height) = (width / larger, height / larger);
        let scale = (window().device_pixel_ratio() * larger).clamp(0.5, 12.0);
        let pixels = |css: f64| (css * scale).round().max(0.0) as u32;
        let gutter = pixels(gutter);
        let size = (pixels(width).saturating_sub(gutter), pixels(height));
        if (size, gutter, scale) == (self.size, self.gutter, self.scale) {
            return false;
        }
        if self.scale != scale {
            self.widths.take();
        }
        (self.size, self.gutter, self.scale) = (size, gutter, scale);
        resize(&self.picture, size.0, size.1);
        // A canvas forgets its colours with its size.
        self.fill_colour.set(None);
        if let Some(axis) = &self.axis {
            resize(axis, gutter, size.1);
        }
        if let Some(overlay) = &self.overlay {
            resize(overlay, size.0, size.1);
            self.overlaid.set(None);
        }
        true
    }

    /// Begins a picture: its pixels, without anything over them.
    pub fn put(&self, pixels: &Pixels) {
        let (width, height) = self.size;
        let image = ImageData::new_with_u8_clamped_array_and_sh(Clamped(pixels.bytes()), width, height);
        if let Ok(image) = image {
            let _ = self.picture.put_image_data(&image, 0.0, 0.0);
        }
    }

    /// Begins the axis: empty.
    pub fn clear_axis(&self) {
        if let Some(axis) = &self.axis {
            axis.clear_rect(0.0, 0.0, f64::from(self.gutter), f64::from(self.size.1));
        }
    }

    /// Prepares labels.
    pub fn label_font(&self) {
        self.set_font(&self.picture, LABEL_WEIGHT);
    }

    /// Prepares the axis's text.
    pub fn axis_font(&self) {
        if let Some(axis) = &self.axis {
            self.set_font(axis, AXIS_WEIGHT);
            axis.set_text_align("right");
        }
    }

    fn set_font(&self, context: &CanvasRenderingContext2d, weight: u32) {
        context
            .set_font(&format!("{weight} {}px system-ui, sans-serif", (FONT_PX * self.scale).round() as u32));
        context.set_text_baseline("middle");
    }

    /// Width of a label in device pixels.
    pub fn measure(&self, text: &str) -> f64 {
        if let Some(&width) = self.widths.borrow().get(text) {
            return width;
        }
        let width = self.picture.measure_text(text).map_or(f64::INFINITY, |m| m.width());
        let mut widths = self.widths.borrow_mut();
        if widths.len() >= MAX_WIDTHS {
            widths.clear();
        }
        widths.insert(text.to_owned(), width);
        width
    }

    /// A label that begins at `x`, centred on `y`.
    pub fn text(&self, text: &str, x: f64, y: f64, colour: Rgb) {
        self.fill_with(colour);
        let _ = self.picture.fill_text(text, x, y);
    }

    fn fill_with(&self, colour: Rgb) {
        if self.fill_colour.replace(Some(colour)) != Some(colour) {
            self.picture.set_fill_style_str(&css(colour));
        }
    }

    /// A text of the axis, centred on `y`.
    pub fn axis_text(&self, text: &str, y: f64, colour: Rgb) {
        let Some(axis) = &self.axis else { return };
        axis.set_fill_style_str(&css(colour));
        let _ = axis.fill_text(text, f64::from(self.gutter) - 8.0 * self.scale, y);
    }

    /// A plate under text that begins at `x` of the tree and is centred on `y`, for grounds with a pattern.
    pub fn plate(&self, text: &str, x: f64, y: f64, colour: Rgb) {
        let (pad, half) = (3.0 * self.scale, 7.0 * self.scale);
        self.fill_with(colour);
        self.picture.fill_rect(x - pad, y - half, self.measure(text) + 2.0 * pad, 2.0 * half);
    }

    /// An outline of a rectangle of the tree.
    pub fn outline(&self, rect: Rect, colour: Rgb, width: f64, dash: f64) {
        let width = width * self.scale;
        let (right, bottom) = (f64::from(self.size.0), f64::from(self.size.1));
        // A ring round a narrow box stands outside of it: inside there would be nothing left to see.
        let spread = if rect.right - rect.left < 4.0 * width { width } else { 0.0 };
        let rect = Rect { left: rect.left - spread, right: rect.right + spread, ..rect };
        let (left, top) = (rect.left.max(0.0), rect.top.max(0.0));
        let across = (rect.right.min(right) - left).max(width);
        let down = (rect.bottom.min(bottom) - top).max(width);
        self.picture.set_stroke_style_str(&css(colour));
        self.picture.set_line_width(width);
        let dashes = js_sys::Array::new();
        if dash > 0.0 {
            dashes.push(&JsValue::from_f64(dash * self.scale));
        }
        let _ = self.picture.set_line_dash(&dashes);
        self.picture.stroke_rect(left + width / 2.0, top + width / 2.0, across - width, down - width);
    }

    /// A filled rectangle of the tree.
    pub fn fill(&self, rect: Rect, colour: Rgb) {
        self.fill_with(colour);
        self.picture.fill_rect(rect.left, rect.top, rect.right - rect.left, rect.bottom - rect.top);
    }

    /// Begins what lies over the picture: empty. Where nothing was, nothing is done.
    pub fn clear_overlay(&self) {
        if let Some((overlay, rect)) = self.overlay.as_ref().zip(self.overlaid.take()) {
            overlay.clear_rect(rect.left, rect.top, rect.right - rect.left, rect.bottom - rect.top);
        }
    }

    /// Lays a rectangle over the picture, or its outline.
    pub fn veil(&self, veil: &Veil) {
        let Some(overlay) = &self.overlay else { return };
        let (Rect { left, top, right, bottom }, line) = (veil.rect, 1.5 * self.scale);
        overlay.set_global_alpha(veil.opacity);
        if veil.is_outline {
            overlay.set_stroke_style_str(&css(veil.colour));
            overlay.set_line_width(line);
            let across = (right - left - line).max(line);
            overlay.stroke_rect(left + line / 2.0, top + line / 2.0, across, (bottom - top - line).max(line));
        } else {
            overlay.set_fill_style_str(&css(veil.colour));
            overlay.fill_rect(left, top, right - left, bottom - top);
        }
        let room = 2.0 * line;
        let drawn = Rect { left: left - room, top: top - room, right: right + room, bottom: bottom + room };
        let all = self.overlaid.get().map_or(drawn, |before| Rect {
            left: before.left.min(drawn.left),
            top: before.top.min(drawn.top),
            right: before.right.max(drawn.right),
            bottom: before.bottom.max(drawn.bottom),
        });
        self.overlaid.set(Some(all));
    }

    /// A short line of the axis at `y`.
    pub fn tick(&self, y: f64, colour: Rgb) {
        let Some(axis) = &self.axis else { return };
        axis.set_fill_style_str(&css(colour));
        let gutter = f64::from(self.gutter);
        axis.fill_rect(gutter - 5.0 * self.scale, y.round(), 4.0 * self.scale, self.scale.round());
    }
}

fn resize(context: &CanvasRenderingContext2d, width: u32, height: u32) {
    if let Some(canvas) = context.canvas() {
        canvas.set_width(width);
        canvas.set_height(height);
    }
}
