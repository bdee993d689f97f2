//! A cost's sum, for people and as the router logs it. Must not know how the terms came about.

use std::fmt;

use super::cost::Terms;
use super::settings::Formula;

impl Terms {
    /// The sum in words, numbers rounded to three decimals: `30 = 1.0 × 25 prefill + 5 decode`.
    pub fn sum(&self) -> Sum<'_> {
        Sum(self)
    }

    /// The sum as the router's own log line has it (reference §7.3): `7.625 = 1.0 * 0.625 + 7.000`. As there, it is
    /// the cost before preferred taints, and each number is rounded on its own, so that the parts as printed need
    /// not give the sum as printed.
    pub fn log_line(&self) -> LogLine<'_> {
        LogLine(self)
    }
}

/// See [`Terms::sum`].
#[derive(Clone, Copy, Debug)]
pub struct Sum<'a>(&'a Terms);

impl fmt::Display for Sum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.0;
        write!(f, "{} = ", Short(t.cost))?;
        let multiplied = t.taint_multiplier.is_some();
        if multiplied {
            f.write_str("(")?;
        }
        if t.is_decode_only {
            write!(f, "max(0, {} decode − {} credit)", Short(t.decode_blocks), Short(t.credit_blocks))?;
        } else {
            write!(f, "{:?} × {} prefill", Rounded(t.prefill_factor), Short(t.prefill_blocks))?;
            write!(f, " + {} decode", Short(t.decode_blocks))?;
        }
        if t.active_request_blocks != 0.0 {
            write!(f, " + {} active requests", Short(t.active_request_blocks))?;
        }
        match t.taint_multiplier {
            Some(multiplier) => write!(f, ") × {} preferred taints", Short(multiplier)),
            None => Ok(()),
        }
    }
}

/// See [`Terms::log_line`].
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'a>(&'a Terms);

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.0;
        let (base, factor, prefill, decode) = (t.base(), t.prefill_factor, t.prefill_blocks, t.decode_blocks);
        let active = t.active_request_blocks;
        if t.is_decode_only {
            return write!(f, "{base:.3} = max(0, {decode:.3} - {:.3}) + {active:.3}", t.credit_blocks);
        }
        match t.formula {
            Formula::A => write!(f, "{base:.3} = {factor:.1} * {prefill:.3} + {decode:.3}"),
            Formula::B | Formula::C => write!(f, "{base:.3} = {factor:.3} * {prefill:.3} + {decode:.3}"),
            Formula::D | Formula::E => {
                write!(f, "{base:.3} = {factor:.3} * {prefill:.3} + {decode:.3} + {active:.3}")
            }
        }
    }
}

/// A number with three decimals at most.
#[derive(Clone, Copy, Debug)]
pub struct Short(pub f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", rounded(self.0))
    }
}

/// As [`Short`], but a whole number keeps its `.0`, as factors are written.
struct Rounded(f64);

impl fmt::Debug for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", rounded(self.0))
    }
}

fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e3).round() / 1e3;
    // Beyond 2^53 / 1000 rounding means nothing and may overflow.
    if rounded.is_finite() { rounded } else { value }
}
