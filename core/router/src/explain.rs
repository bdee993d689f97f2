//! A cost's sum, for people. Must not know how the terms came about.

use std::fmt;

use super::cost::Terms;

impl Terms {
    /// The sum in words, numbers rounded to three decimals: `30 = 1.0 × 25 prefill + 5 decode`.
    pub fn sum(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| {
            write!(f, "{} = ", Short(self.cost))?;
            if self.taint_multiplier.is_some() {
                f.write_str("(")?;
            }
            if self.is_decode_only {
                let (decode, credit) = (Short(self.decode_blocks), Short(self.credit_blocks));
                write!(f, "max(0, {decode} decode − {credit} credit)")?;
            } else {
                // A whole number keeps its `.0`, as factors are written.
                write!(f, "{:?} × {} prefill", rounded(self.prefill_factor), Short(self.prefill_blocks))?;
                write!(f, " + {} decode", Short(self.decode_blocks))?;
            }
            if self.active_request_blocks != 0.0 {
                write!(f, " + {} active requests", Short(self.active_request_blocks))?;
            }
            match self.taint_multiplier {
                Some(multiplier) => write!(f, ") × {} preferred taints", Short(multiplier)),
                None => Ok(()),
            }
        })
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

fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e3).round() / 1e3;
    // Beyond 2^53 / 1000 rounding means nothing and may overflow.
    if rounded.is_finite() { rounded } else { value }
}
