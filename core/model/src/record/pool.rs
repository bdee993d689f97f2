//! What a pool of workers does and how its router chooses, in Dynamo's terms. Knows nothing of the wire.

use serde::{Deserialize, Serialize, Serializer};

/// What the workers of a pool do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// They compute prompts and hand the KV cache over.
    Prefill,
    /// They generate tokens from a KV cache that was handed over.
    Decode,
    /// They do both. What encodes images for others is chosen by the same rules.
    #[default]
    #[serde(alias = "encode")]
    Aggregated,
}

impl Role {
    /// The role that Dynamo calls so, in any case of letters: `prefill`, `Decode`. `None`: another word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Prefill, Self::Decode, Self::Aggregated]
            .into_iter()
            .find(|role| word.eq_ignore_ascii_case(role.as_str()))
    }

    /// `worker_type` in the router's log: everything but a prefill pool logs `decode` (reference §5.7, §7.3).
    pub const fn worker_type(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Aggregated | Self::Decode => "decode",
        }
    }
}

/// A tier of a worker's KV cache below device memory, from the nearest to the farthest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Tier {
    /// Memory of the host.
    Host,
    /// Disk.
    Disk,
    /// A store outside of the worker.
    External,
}

impl Tier {
    /// Every tier, from the nearest on.
    pub const ALL: [Self; 3] = [Self::Host, Self::Disk, Self::External];

    /// The tier that Dynamo calls so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == name)
    }

    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Host => "host memory",
            Self::Disk => "disk",
            Self::External => "external storage",
        }
    }
}

/// How a role is known, the best first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum RoleEvidence {
    /// A worker's model card.
    Card,
    /// The label `worker_type` of a frontend's metrics. They say `decode` of aggregated workers too, so it is evidence only
    /// where some worker is called `prefill`.
    Metrics,
    /// `worker_type` or `phase` in a frontend's log; the same holds for `worker_type`.
    Log,
    /// The form of `AddRequest` messages.
    Wire,
    /// The component is called `prefill`.
    Name,
}

/// How a frontend chooses workers by its own account (`--router-mode`): all modes, of which few can be computed here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum RoutingMode {
    /// By cached blocks and load.
    Kv,
    /// One after the other.
    RoundRobin,
    /// At random.
    Random,
    /// The less busy of two taken at random.
    PowerOfTwoChoices,
    /// The least busy.
    LeastLoaded,
    /// By kind of device and load.
    DeviceAwareWeighted,
    /// The worker that the request names.
    Direct,
    /// A mode that this version does not know.
    Other,
}

impl RoutingMode {
    /// The mode that Dynamo calls so, in a log's form (`power-of-two-choices`), in that of its option (`power-of-two`) or in
    /// that of its spans (`RoundRobin`).
    pub fn of(word: &str) -> Self {
        const WORDS: [(&str, RoutingMode); 8] = [
            ("kv", RoutingMode::Kv),
            ("roundrobin", RoutingMode::RoundRobin),
            ("random", RoutingMode::Random),
            ("poweroftwochoices", RoutingMode::PowerOfTwoChoices),
            ("poweroftwo", RoutingMode::PowerOfTwoChoices),
            ("leastloaded", RoutingMode::LeastLoaded),
            ("deviceawareweighted", RoutingMode::DeviceAwareWeighted),
            ("direct", RoutingMode::Direct),
        ];
        let letters =
            || word.bytes().filter(|byte| !matches!(byte, b'-' | b'_')).map(|b| b.to_ascii_lowercase());
        let found = WORDS.iter().find(|(known, _)| known.bytes().eq(letters()));
        found.map_or(Self::Other, |(_, mode)| *mode)
    }
}

str_names! {
    /// Name in the API.
    Role { Prefill => "prefill", Decode => "decode", Aggregated => "aggregated" }
}
str_names! {
    /// Dynamo's name of it.
    Tier { Host => "host_pinned", Disk => "disk", External => "external" }
}
str_names! {
    /// Name in the API.
    RoleEvidence {
        Card => "model_card", Metrics => "metrics", Log => "log", Wire => "messages", Name => "component_name",
    }
}
str_names! {
    /// Dynamo's name of it.
    RoutingMode {
        Kv => "kv", RoundRobin => "round-robin", Random => "random", PowerOfTwoChoices => "power-of-two",
        LeastLoaded => "least-loaded", DeviceAwareWeighted => "device-aware-weighted", Direct => "direct",
        Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_known_in_any_case_and_nothing_else_is_one() {
        for role in [Role::Prefill, Role::Decode, Role::Aggregated] {
            assert_eq!(Role::of(role.as_str()), Some(role));
            assert_eq!(Role::of(&role.as_str().to_uppercase()), Some(role));
        }
        for other in ["", "pre", "prefills", "encode", "Chat | Completions"] {
            assert_eq!(Role::of(other), None, "{other}");
        }
    }

    #[test]
    fn modes_are_known_in_all_forms_that_dynamo_writes() {
        for (word, mode) in [
            ("kv", RoutingMode::Kv),
            ("KV", RoutingMode::Kv),
            ("round-robin", RoutingMode::RoundRobin),
            ("RoundRobin", RoutingMode::RoundRobin),
            ("round_robin", RoutingMode::RoundRobin),
            ("power-of-two", RoutingMode::PowerOfTwoChoices),
            ("power-of-two-choices", RoutingMode::PowerOfTwoChoices),
            ("device-aware-weighted", RoutingMode::DeviceAwareWeighted),
            ("least-loaded", RoutingMode::LeastLoaded),
            ("direct", RoutingMode::Direct),
            ("", RoutingMode::Other),
            ("kvx", RoutingMode::Other),
        ] {
            assert_eq!(RoutingMode::of(word), mode, "{word}");
        }
    }

    #[test]
    fn the_best_evidence_comes_first() {
        use RoleEvidence::{Card, Log, Metrics, Name, Wire};
        let mut all = [Name, Wire, Log, Metrics, Card];
        all.sort();
        assert_eq!(all, [Card, Metrics, Log, Wire, Name]);
    }
}
