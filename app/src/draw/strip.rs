//! A narrow strip over time as an SVG path: steps, filled down to zero, with holes where nothing is known. Pure.
//!
//! By hand: one of these stands beside every lane, where a chart for each would cost more than the lanes themselves.

use std::fmt::Write;

/// The path of `values`, one unit wide each, in a box `height` high whose top is `most`. Unknown values are holes.
pub fn area(values: impl IntoIterator<Item = Option<f64>>, most: f64, height: f64) -> String {
    let y = |value: f64| height - (value / most.max(1.0)).clamp(0.0, 1.0) * height;
    let mut path = String::new();
    let mut is_open = false;
    for (x, value) in values.into_iter().enumerate() {
        // Writing into a string cannot fail.
        match value {
            Some(value) => {
                let _ = if is_open {
                    write!(path, "V{:.1}H{}", y(value), x + 1)
                } else {
                    write!(path, "M{x} {height}V{:.1}H{}", y(value), x + 1)
                };
            }
            None if is_open => {
                let _ = write!(path, "V{height}Z");
            }
            None => {}
        }
        is_open = value.is_some();
    }
    if is_open {
        let _ = write!(path, "V{height}Z");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::area;

    #[test]
    fn values_are_steps_down_to_zero() {
        assert_eq!(area([Some(0.0), Some(5.0), Some(10.0)], 10.0, 20.0), "M0 20V20.0H1V10.0H2V0.0H3V20Z");
    }

    #[test]
    fn what_is_not_known_is_a_hole() {
        assert_eq!(area([None, Some(10.0), None, Some(10.0)], 10.0, 20.0), "M1 20V0.0H2V20ZM3 20V0.0H4V20Z");
        assert_eq!(area([None, None], 10.0, 20.0), "");
    }

    #[test]
    fn nothing_leaves_the_box() {
        assert_eq!(area([Some(99.0)], 10.0, 20.0), "M0 20V0.0H1V20Z");
    }
}
