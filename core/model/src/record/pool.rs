//! What a pool of workers does in a deployment, and how that is known.

use serde::Deserialize;

/// What the workers of a pool do with a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Role {
    /// They compute the prompt; others generate the answer.
    Prefill,
    /// They generate the answer; others computed the prompt.
    Decode,
    /// They do both.
    Aggregated,
}

/// Where a role is known from, the best first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum RoleEvidence {
    /// The workers' model cards.
    Card,
    /// `worker_type` of a frontend's metrics.
    Metrics,
    /// `worker_type` or `phase` in a frontend's log.
    Log,
    /// The form of the routers' messages about requests.
    Messages,
    /// The name of the component, or that it stands beside one named `prefill`.
    Name,
}
