//! Two canvases, one above the other: pixels below, text and outlines above. With `photo` the only file that draws on
//! a canvas.

use std::cell::{Cell, RefCell};

use hashbrown::HashMap;
use js_sys::{Object, Reflect};
use leptos::prelude::*;
use radixscope_icicle::palette::{Rgb, css};
use radixscope_icicle::raster::Pixels;
use radixscope_icicle::viewport::Rect;
use wasm_bindgen::{Clamped, JsCast, JsValue};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData};

/// Text of labels and axis, CSS pixels.
const FONT_PX: f64 = 11.0;

/// The two canvases of the tree.
pub struct Surface {
    below: CanvasRenderingContext2d,
    above: CanvasRenderingContext2d,
    /// Device pixels across and down, without the axis.
    pub size: (u32, u32),
    /// Device pixels that the axis takes at the left.
    pub gutter: u32,
    /// Device pixels per CSS pixel, times what text is larger than usual.
    pub scale: f64,
    /// Widths of texts in the labels' font: the same texts are written frame after frame, and each measuring is a call
    /// out of here.
    widths: RefCell<HashMap<String, f64>>,
    /// Whether the labels' font is set.
    is_label: Cell<bool>,
}

/// Weight of the labels' font.
pub const LABEL_WEIGHT: u32 = 600;
/// Most texts whose widths are remembered.
const MAX_WIDTHS: usize = 4_096;

impl Surface {
    /// Over two canvases; `None` where the browser gives no 2D context.
    pub fn new(below: &HtmlCanvasElement, above: &HtmlCanvasElement) -> Option<Self> {
        let context = |canvas: &HtmlCanvasElement, options: &JsValue| {
            let context = canvas.get_context_with_context_options("2d", options).ok().flatten()?;
            context.dyn_into::<CanvasRenderingContext2d>().ok()
        };
        // Whole pictures of pixels are put onto the lower one: stored where this program is, that costs a tenth less.
        let options = Object::new();
        let _ = Reflect::set(&options, &"willReadFrequently".into(), &JsValue::TRUE);
        Some(Self {
            below: context(below, &options)?,
            above: context(above, &JsValue::UNDEFINED)?,
            size: (0, 0),
            gutter: 0,
            scale: 1.0,
            widths: RefCell::default(),
            is_label: Cell::default(),
        })
    }

    /// Makes the canvases fit `width` × `height` CSS pixels, of which the axis usually takes `gutter`. Where the style
    /// sheet gives it more, everything is written larger by as much. Says whether anything changed.
    pub fn fit(&mut self, width: f64, height: f64, gutter: f64) -> bool {
        let axis = self.below.canvas().map_or(0.0, |canvas| f64::from(canvas.offset_left()));
        let larger = if gutter > 0.0 { (axis / gutter).max(1.0) } else { 1.0 };
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
        resize(&self.below, size.0, size.1);
        resize(&self.above, size.0 + gutter, size.1);
        true
    }

    /// Puts the pixels on the lower canvas.
    pub fn put(&self, pixels: &Pixels) {
        let (width, height) = self.size;
        let image = ImageData::new_with_u8_clamped_array_and_sh(Clamped(pixels.bytes()), width, height);
        if let Ok(image) = image {
            let _ = self.below.put_image_data(&image, 0.0, 0.0);
        }
    }

    /// Empties the upper canvas.
    pub fn clear_above(&self) {
        let (width, height) = (f64::from(self.size.0 + self.gutter), f64::from(self.size.1));
        self.above.clear_rect(0.0, 0.0, width, height);
    }

    /// Prepares text of the ordinary size.
    pub fn font(&self, weight: u32) {
        self.is_label.set(weight == LABEL_WEIGHT);
        self.above
            .set_font(&format!("{weight} {}px system-ui, sans-serif", (FONT_PX * self.scale).round() as u32));
        self.above.set_text_baseline("middle");
    }

    /// Width of a text in device pixels.
    pub fn measure(&self, text: &str) -> f64 {
        let measured = || self.above.measure_text(text).map_or(f64::INFINITY, |m| m.width());
        if !self.is_label.get() {
            return measured();
        }
        if let Some(&width) = self.widths.borrow().get(text) {
            return width;
        }
        let width = measured();
        let mut widths = self.widths.borrow_mut();
        if widths.len() >= MAX_WIDTHS {
            widths.clear();
        }
        widths.insert(text.to_owned(), width);
        width
    }

    /// Text that begins at `x` of the tree (or ends there, `from_right`), centred on `y`.
    pub fn text(&self, text: &str, x: f64, y: f64, colour: Rgb, from_right: bool) {
        self.above.set_text_align(if from_right { "right" } else { "left" });
        self.above.set_fill_style_str(&css(colour));
        let _ = self.above.fill_text(text, x + f64::from(self.gutter), y);
    }

    /// A plate under text that begins at `x` of the tree and is centred on `y`, for grounds with a pattern.
    pub fn plate(&self, text: &str, x: f64, y: f64, colour: Rgb) {
        let (pad, half) = (3.0 * self.scale, 7.0 * self.scale);
        self.above.set_fill_style_str(&css(colour));
        let left = x + f64::from(self.gutter) - pad;
        self.above.fill_rect(left, y - half, self.measure(text) + 2.0 * pad, 2.0 * half);
    }

    /// An outline of a rectangle of the tree.
    pub fn outline(&self, rect: Rect, colour: Rgb, width: f64, dash: f64) {
        let width = width * self.scale;
        let (right, bottom) = (f64::from(self.size.0), f64::from(self.size.1));
        // A ring round a narrow box stands outside of it: inside there would be nothing left to see.
        let spread = if rect.right - rect.left < 4.0 * width { width } else { 0.0 };
        let rect = Rect { left: rect.left - spread, right: rect.right + spread, ..rect };
        let left = rect.left.max(0.0) + f64::from(self.gutter);
        let top = rect.top.max(0.0);
        let across = (rect.right.min(right) + f64::from(self.gutter) - left).max(width);
        let down = (rect.bottom.min(bottom) - top).max(width);
        self.above.set_stroke_style_str(&css(colour));
        self.above.set_line_width(width);
        let dashes = js_sys::Array::new();
        if dash > 0.0 {
            dashes.push(&JsValue::from_f64(dash * self.scale));
        }
        let _ = self.above.set_line_dash(&dashes);
        self.above.stroke_rect(left + width / 2.0, top + width / 2.0, across - width, down - width);
    }

    /// A filled rectangle of the tree.
    pub fn fill(&self, rect: Rect, colour: Rgb) {
        self.above.set_fill_style_str(&css(colour));
        let left = rect.left + f64::from(self.gutter);
        self.above.fill_rect(left, rect.top, rect.right - rect.left, rect.bottom - rect.top);
    }

    /// A filled rectangle of the tree through which what is below is seen; `opacity` 0 … 1.
    pub fn veil(&self, rect: Rect, colour: Rgb, opacity: f64) {
        self.above.set_global_alpha(opacity);
        self.fill(rect, colour);
        self.above.set_global_alpha(1.0);
    }

    /// A short line of the axis at `y`.
    pub fn tick(&self, y: f64, colour: Rgb) {
        self.above.set_fill_style_str(&css(colour));
        let gutter = f64::from(self.gutter);
        self.above.fill_rect(gutter - 5.0 * self.scale, y.round(), 4.0 * self.scale, self.scale.round());
    }
}

fn resize(context: &CanvasRenderingContext2d, width: u32, height: u32) {
    if let Some(canvas) = context.canvas() {
        canvas.set_width(width);
        canvas.set_height(height);
    }
}
