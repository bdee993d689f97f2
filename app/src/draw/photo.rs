//! The tree's picture and its axis as one picture with a heading, for a file. Knows no file.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{Blob, CanvasRenderingContext2d, HtmlCanvasElement};

/// Room above the picture for two lines, and below it for one, CSS pixels.
const ABOVE: f64 = 44.0;
const BELOW: f64 = 26.0;

/// What is written around the picture, and in which colours of the style sheets.
pub struct Caption {
    /// What it shows.
    pub title: String,
    /// As of when.
    pub at: String,
    /// How much there is.
    pub sums: String,
    /// Behind everything.
    pub ground: String,
    /// The title.
    pub text: String,
    /// The rest.
    pub quiet: String,
}

/// Puts the picture together and gives it as PNG later, or nothing where the browser refuses. `None`: there is no canvas.
pub fn compose(
    picture: &HtmlCanvasElement,
    axis: &HtmlCanvasElement,
    caption: &Caption,
    done: impl FnOnce(Option<Blob>) + 'static,
) -> Option<()> {
    let scale = window().device_pixel_ratio().max(0.5);
    let (head, foot) = ((ABOVE * scale).round(), (BELOW * scale).round());
    let (gutter, height) = (f64::from(axis.width()), f64::from(axis.height()));
    let width = gutter + f64::from(picture.width());
    let canvas: HtmlCanvasElement = document().create_element("canvas").ok()?.dyn_into().ok()?;
    canvas.set_width(width as u32);
    canvas.set_height((height + head + foot) as u32);
    let context: CanvasRenderingContext2d = canvas.get_context("2d").ok().flatten()?.dyn_into().ok()?;
    context.set_fill_style_str(&caption.ground);
    context.fill_rect(0.0, 0.0, width, height + head + foot);
    context.draw_image_with_html_canvas_element(axis, 0.0, head).ok()?;
    context.draw_image_with_html_canvas_element(picture, gutter, head).ok()?;
    context.set_text_baseline("middle");
    let write = |text: &str, weight: u32, px: f64, colour: &str, y: f64| {
        context.set_font(&format!("{weight} {}px system-ui, sans-serif", (px * scale).round() as u32));
        context.set_fill_style_str(colour);
        let _ = context.fill_text(text, 10.0 * scale, y);
    };
    write(&caption.title, 600, 14.0, &caption.text, 15.0 * scale);
    write(&caption.at, 400, 11.0, &caption.quiet, 33.0 * scale);
    write(&caption.sums, 400, 11.0, &caption.quiet, head + height + foot / 2.0);
    let callback = Closure::once_into_js(move |blob: Option<Blob>| done(blob));
    canvas.to_blob_with_type(callback.unchecked_ref(), "image/png").ok()
}
