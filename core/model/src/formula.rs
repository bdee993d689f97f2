//! Dynamo's cost formulas by name: which version uses which. What they compute is in the router's own crate.

use serde::{Deserialize, Serialize};

/// Which of Dynamo's cost formulas (reference §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Formula {
    /// 0.8 to 1.1: weight · prefill + decode.
    #[default]
    A,
    /// 1.2: credits for what lies in device, host, disk and shared caches.
    B,
    /// 1.3: as B, with credit that decays under prefill load, and preferred taints.
    C,
    /// 1.4 and 1.5: as C, with a cost for each active request, and a rule of its own for decode pools.
    D,
    /// 1.6 and 1.7: D restated; no cache input at all for plain decode pools.
    E,
}

impl Formula {
    /// All, oldest first.
    pub const ALL: [Formula; 5] = [Formula::A, Formula::B, Formula::C, Formula::D, Formula::E];

    /// Its letter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Formula::A => "A",
            Formula::B => "B",
            Formula::C => "C",
            Formula::D => "D",
            Formula::E => "E",
        }
    }

    /// The default formula of a Dynamo version such as `0.9.1`, `v1.4.2` or `1.6.1rc2`; `None` for versions that the
    /// reference does not cover (before 0.8, after 1.7).
    pub fn of_version(version: &str) -> Option<Formula> {
        Some(match major_minor(version)? {
            (0, 8 | 9) | (1, 0 | 1) => Formula::A,
            (1, 2) => Formula::B,
            (1, 3) => Formula::C,
            (1, 4 | 5) => Formula::D,
            (1, 6 | 7) => Formula::E,
            _ => return None,
        })
    }
}

/// The two first numbers of a Dynamo version such as `0.9.1`, `v1.4.2` or `1.6.1rc2`; `None` for what is none.
pub fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v').unwrap_or(version).split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor[..end].parse().ok()?))
}
