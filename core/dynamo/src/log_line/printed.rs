//! Numbers as they were printed, and whether printed terms make up a printed cost.

use std::fmt;

use super::event::{Formula, Terms};

/// A finite number together with how exactly it was printed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Printed {
    /// The number that was read.
    pub value: f64,
    /// Digits after the decimal point.
    pub decimals: u8,
}

impl Printed {
    /// Most significant digits after the decimal point of an f64.
    const MAX_DECIMALS: usize = 60;

    /// Reads a number as Rust prints one: digits, perhaps a sign, a fraction, an exponent; neither `NaN` nor `inf`.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > 400
            || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
        {
            return None;
        }
        let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
        let decimals = fraction.saturating_sub(exponent.parse::<i64>().unwrap_or(0));
        Some(Self { value, decimals: decimals.clamp(0, Self::MAX_DECIMALS as i64) as u8 })
    }

    /// Whether `value`, printed with as many decimals, reads the same.
    pub fn reads_as(self, value: f64) -> bool {
        let Self { value: own, decimals } = self;
        let decimals = usize::from(decimals);
        // Minus zero prints a meaningless sign.
        format!("{:.decimals$}", value + 0.0) == format!("{:.decimals$}", own + 0.0)
    }

    /// By how much the true number may differ from the printed one.
    fn half_unit(self) -> f64 {
        0.5 * 10f64.powi(-i32::from(self.decimals))
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.*}", usize::from(self.decimals), self.value)
    }
}

impl Formula<'_> {
    /// The cost computed from the printed terms, in blocks. It [reads as](Printed::reads_as) the printed cost where
    /// the terms lost nothing by being rounded for print.
    pub fn recomputed(&self) -> f64 {
        match self.terms {
            Terms::Weighted { weight, prefill_blocks, decode_blocks } => {
                weight.value * prefill_blocks.value + decode_blocks.value
            }
            Terms::Scaled {
                scale, adjusted_prefill_blocks, decode_blocks, active_request_blocks, ..
            } => {
                let active = active_request_blocks.map_or(0.0, |blocks| blocks.value);
                scale.value * adjusted_prefill_blocks.value + decode_blocks.value + active
            }
            Terms::Decode { decode_blocks, overlap_credit_blocks, active_request_blocks } => {
                (decode_blocks.value - overlap_credit_blocks.value).max(0.0) + active_request_blocks.value
            }
        }
    }

    /// Whether the printed cost can be that of the printed terms, given that every printed number is rounded.
    pub fn adds_up(&self) -> bool {
        let product = |factor: Printed, blocks: Printed| {
            let (f, b) = (factor.half_unit(), blocks.half_unit());
            factor.value.abs() * b + blocks.value.abs() * f + f * b
        };
        let rounding = match self.terms {
            Terms::Weighted { weight, prefill_blocks, decode_blocks } => {
                product(weight, prefill_blocks) + decode_blocks.half_unit()
            }
            Terms::Scaled {
                scale, adjusted_prefill_blocks, decode_blocks, active_request_blocks, ..
            } => {
                let active = active_request_blocks.map_or(0.0, Printed::half_unit);
                product(scale, adjusted_prefill_blocks) + decode_blocks.half_unit() + active
            }
            Terms::Decode { decode_blocks, overlap_credit_blocks, active_request_blocks } => {
                decode_blocks.half_unit()
                    + overlap_credit_blocks.half_unit()
                    + active_request_blocks.half_unit()
            }
        };
        let logit = self.logit.value;
        // The last term is the error of computing in 64 bits.
        let within = rounding + self.logit.half_unit() + logit.abs() * 1e-12;
        (self.recomputed() - logit).abs() <= within
    }
}
