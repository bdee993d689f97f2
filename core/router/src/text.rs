//! Settings in words. Must not know where they were found.

use std::fmt;

use super::numbers::TEMPERATURE;
use super::settings::{Role, RouterMode, RouterSettings};

impl fmt::Display for RouterSettings {
    /// In one line: the factor of the prefill term, what differs from Dynamo's defaults and matters to the formula, and
    /// the temperature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.router_mode == RouterMode::RoundRobin {
            return f.write_str("round-robin");
        }
        let factor = self.prefill_factor_number();
        write!(f, "{} {}", factor.name, self.prefill_factor())?;
        for (number, value) in self.numbers() {
            let is_shown = number == TEMPERATURE || value != number.default;
            if is_shown && number != factor && number.formulas.contains(&self.formula) {
                write!(f, ", {} {value}", number.name)?;
            }
        }
        if self.role != Role::Aggregated {
            write!(f, ", {} pool", self.role.worker_type())?;
        }
        if !self.track_prefill_tokens {
            f.write_str(", prefill tokens not tracked")?;
        }
        Ok(())
    }
}
