//! Colours as three bytes: mixed, written, and compared by how well they are read on each other. Which colour means what
//! is not known here.

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// For style sheets, canvases and attributes.
pub fn css(colour: Rgb) -> String {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or('0');
    std::iter::once('#')
        .chain(colour.into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]))
        .collect()
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
        c => to_the_2_4((c + 0.055) / 1.055),
    };
    0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2])
}

/// `x` to the power of 2.4 for 0.05 … 1: its square by the fifth root of its square. The library's `powf` is for every
/// power, and nearly a hundredth of the first bundle.
fn to_the_2_4(x: f64) -> f64 {
    let square = x * x;
    // Newton's steps down from 1 to the root: a few to come near, a few to be exact.
    let root = (0..12).fold(1.0, |root, _| 0.8 * root + 0.2 * square / (root * root * root * root));
    square * root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shade_has_the_luminance_that_the_standard_gives_it() {
        for shade in 11..=255_u8 {
            let x = (f64::from(shade) / 255.0 + 0.055) / 1.055;
            assert!((to_the_2_4(x) - x.powf(2.4)).abs() < 1e-12, "{shade}");
        }
    }
}
