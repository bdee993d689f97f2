//! Limits connections by the available file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything but viewers: NATS, logs, scrapes, the runtime, rejected connections.
const OTHERS: u64 = 96;

/// `wanted`, or as many as there are descriptors for. Raises the process's limit as far as needed and allowed.
pub(super) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted as u64 + OTHERS;
    let Some(now) = limit.current.filter(|&now| now < needed) else { return wanted };
    let raised = limit.maximum.map_or(needed, |most| most.min(needed)).max(now);
    let asked = Rlimit { current: Some(raised), maximum: limit.maximum };
    let got = if setrlimit(Resource::Nofile, asked).is_ok() { raised } else { now };
    if got >= needed {
        return wanted;
    }
    let most = within(got);
    tracing::warn!(
        "at most {most} connections at a time instead of {wanted}: the process can open only {got} files (ulimit -n)"
    );
    most
}

/// Connections for this number of descriptors.
fn within(descriptors: u64) -> usize {
    let left = descriptors.saturating_sub(OTHERS).max(descriptors / 4).max(1);
    usize::try_from(left).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_kept_for_everything_else() {
        assert_eq!(within(256), 160);
        assert_eq!(within(1024), 928);
        assert_eq!(within(40), 10);
    }
}
