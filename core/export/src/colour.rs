//! Colours as three bytes: mixed, written, and compared by how well they are read on each other. Which colour means what
//! is not known here.

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// For style sheets, canvases and attributes.
pub fn css(colour: Rgb) -> String {
    let [red, green, blue] = colour;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// `over` laid over `under` with this opacity, 0 … 1.
pub fn blend(under: Rgb, over: Rgb, opacity: f64) -> Rgb {
    let mix = |u: u8, o: u8| (f64::from(u) + (f64::from(o) - f64::from(u)) * opacity).round() as u8;
    [mix(under[0], over[0]), mix(under[1], over[1]), mix(under[2], over[2])]
}

/// Contrast ratio of two colours by WCAG 2.2, 1 … 21.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    if a > b { a / b } else { b / a }
}

/// Of black and white, the one that is read best on `ground`.
pub fn ink(ground: Rgb) -> Rgb {
    let (black, white) = ([0; 3], [255; 3]);
    if contrast(black, ground) >= contrast(white, ground) { black } else { white }
}

fn luminance(rgb: Rgb) -> f64 {
    let linear = |c: u8| match f64::from(c) / 255.0 {
        c if c <= 0.04045 => c / 12.92,
        c => ((c + 0.055) / 1.055).powf(2.4),
    };
    0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2])
}
