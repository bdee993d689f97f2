//! How different two colours look: CIECAM02 in the uniform space of Luo, Cui and Li (2006), as its authors publish it, for
//! sRGB on a screen; and colours as they look with a colour-vision deficiency, by Machado, Oliveira and Fernandes (2009) in
//! full severity.

use crate::colour::Rgb;

type Vector = [f64; 3];
type Matrix = [Vector; 3];

const XYZ_OF_SRGB: Matrix = [
    [0.412_456_4, 0.357_576_1, 0.180_437_5],
    [0.212_672_9, 0.715_152_2, 0.072_175_0],
    [0.019_333_9, 0.119_192_0, 0.950_304_1],
];
const CAT02: Matrix = [[0.7328, 0.4296, -0.1624], [-0.7036, 1.6975, 0.0061], [0.0030, 0.0136, 0.9834]];
const CAT02_INVERSE: Matrix = [
    [1.096_123_820_835_514, -0.278_869_000_218_287, 0.182_745_179_382_773],
    [0.454_369_041_975_359, 0.473_533_154_307_412, 0.072_097_803_717_229],
    [-0.009_627_608_738_429, -0.005_698_031_216_113, 1.015_325_639_954_543],
];
const HUNT_POINTER_ESTEVEZ: Matrix =
    [[0.38971, 0.68898, -0.07868], [-0.22981, 1.18340, 0.04641], [0.0, 0.0, 1.0]];
/// Luminance that the eye is adapted to, in cd/m²: a room of 64 lux, a fifth of it reflected.
const ADAPTED: f64 = 64.0 / std::f64::consts::PI / 5.0;
/// Relative luminance of the background.
const BACKGROUND: f64 = 20.0;
/// Of an average surround: its influence and its chromatic induction.
const SURROUND: (f64, f64) = (0.69, 1.0);

/// How a colour is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vision {
    Normal,
    Protan,
    Deutan,
    Tritan,
}

impl Vision {
    pub(super) const ALL: [Self; 4] = [Self::Normal, Self::Protan, Self::Deutan, Self::Tritan];

    const fn matrix(self) -> Matrix {
        match self {
            Self::Normal => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Self::Protan => [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
            Self::Deutan => [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
            Self::Tritan => [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        }
    }
}

/// How different two colours look; about 1 is just seen side by side.
pub(super) fn distance(a: Rgb, b: Rgb, vision: Vision) -> f64 {
    let (a, b) = (place(a, vision), place(b, vision));
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn times(matrix: &Matrix, vector: Vector) -> Vector {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// Responses of the cones after adaptation to the white of the screen.
fn responses(xyz: Vector) -> Vector {
    let white = times(&XYZ_OF_SRGB, [100.0; 3]);
    let degree = 1.0 - (1.0 / 3.6) * ((-ADAPTED - 42.0) / 92.0).exp();
    let (seen, of_white) = (times(&CAT02, xyz), times(&CAT02, white));
    let adapted = std::array::from_fn(|i| (white[1] * degree / of_white[i] + 1.0 - degree) * seen[i]);
    times(&HUNT_POINTER_ESTEVEZ, times(&CAT02_INVERSE, adapted)).map(|x| {
        let part = (level() * x.abs() / 100.0).powf(0.42);
        (400.0 * part / (part + 27.13)).copysign(x) + 0.1
    })
}

/// Factor of the luminance that the eye is adapted to.
fn level() -> f64 {
    let k = (1.0 / (5.0 * ADAPTED + 1.0)).powi(4);
    0.2 * k * 5.0 * ADAPTED + 0.1 * (1.0 - k).powi(2) * (5.0 * ADAPTED).cbrt()
}

/// Lightness, and the two axes of colour.
fn place(rgb: Rgb, vision: Vision) -> Vector {
    let seen = times(&vision.matrix(), rgb.map(linear)).map(|c| c.clamp(0.0, 1.0));
    let share = BACKGROUND / 100.0;
    let induction = 0.725 * (1.0 / share).powf(0.2);
    let achromatic = |[r, g, b]: Vector| (2.0 * r + g + b / 20.0 - 0.305) * induction;
    let [r, g, b] = responses(times(&XYZ_OF_SRGB, seen).map(|c| 100.0 * c));
    let (red_green, yellow_blue) = (r - 12.0 * g / 11.0 + b / 11.0, (r + g - 2.0 * b) / 9.0);
    let hue = yellow_blue.atan2(red_green);
    let lightness = achromatic([r, g, b]).max(0.0)
        / achromatic(responses(times(&XYZ_OF_SRGB, [1.0; 3]).map(|c| 100.0 * c)));
    let lightness = 100.0 * lightness.powf(SURROUND.0 * (1.48 + share.sqrt()));
    let eccentricity = 0.25 * ((hue + 2.0).cos() + 3.8);
    let strength = 50_000.0 / 13.0 * SURROUND.1 * induction * eccentricity * red_green.hypot(yellow_blue)
        / (r + g + 21.0 / 20.0 * b);
    let chroma = strength.powf(0.9) * (lightness / 100.0).sqrt() * (1.64 - 0.29_f64.powf(share)).powf(0.73);
    let colourfulness = (1.0 + 0.0228 * chroma * level().powf(0.25)).ln() / 0.0228;
    [1.7 * lightness / (1.0 + 0.007 * lightness), colourfulness * hue.cos(), colourfulness * hue.sin()]
}
