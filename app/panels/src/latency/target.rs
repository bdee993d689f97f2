//! Targets: in the address, so that a link has them, else those that findings are judged by.

use radixscope_model::record::LatencyTargets;

use crate::format;
use crate::url::Address;

/// Largest target that is taken, milliseconds: ten minutes.
pub const MOST_MS: f64 = 600_000.0;

/// Where a target is in the address, and which of those that findings are judged by holds without.
#[derive(Clone, Copy, Debug)]
pub struct TargetKey {
    key: &'static str,
    default_ms: fn(LatencyTargets) -> f64,
}

/// Time to first token.
pub const TTFT: TargetKey = TargetKey { key: "ttft_slo", default_ms: |targets| targets.ttft_ms };
/// Inter-token latency.
pub const ITL: TargetKey = TargetKey { key: "tpot_slo", default_ms: |targets| targets.itl_ms };

impl TargetKey {
    /// What the address says, as it is written there.
    pub fn typed(self, address: &Address) -> Option<String> {
        address.other(self.key)
    }

    /// The target that findings are judged by.
    pub fn default_ms(self, targets: LatencyTargets) -> f64 {
        (self.default_ms)(targets)
    }

    /// Writes what was typed in the field into the address; nothing if it is no target. The default is not written.
    pub fn set(self, address: &mut Address, text: &str, default_ms: f64) {
        let Some(ms) = parse(text) else { return };
        let value = (ms != default_ms).then(|| ms.to_string());
        address.set_other(self.key, value.as_deref());
    }
}

/// A target.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// In milliseconds.
    pub ms: f64,
    /// What is wrong with the address.
    pub fault: Option<String>,
}

impl Target {
    /// As the address says, else the default.
    pub fn of(key: TargetKey, typed: Option<&str>, default_ms: f64) -> Self {
        let ms = typed.and_then(parse);
        let fault = typed.filter(|_| ms.is_none()).map(|text| {
            format!(
                "{}={text} in the address is invalid: milliseconds above 0; {default_ms} is used",
                key.key
            )
        });
        Self { ms: ms.unwrap_or(default_ms), fault }
    }
}

fn parse(text: &str) -> Option<f64> {
    format::decimal(text).filter(|ms| *ms > 0.0 && *ms <= MOST_MS)
}
