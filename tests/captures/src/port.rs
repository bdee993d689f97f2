//! Ports of servers that go away and come back: nobody else may get them meanwhile.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// Where the system's own choice begins, if it does not say so.
const EPHEMERAL: u16 = 32_768;
/// Below are ports of programs that a machine runs anyway.
const FIRST: u16 = 10_240;

/// A free port of 127.0.0.1 that the system gives to no connection and to nobody who asks for any port: a server that was stopped gets
/// it again.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(EPHEMERAL);
    // Where the system begins lower, its own choice is as good as any.
    let count = u64::from(first.saturating_sub(FIRST)).max(1);
    let random = RandomState::new();
    let all = (0..200_u32).map(|n| FIRST + u16::try_from(random.hash_one(n) % count).expect("a port"));
    let mut free = all.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().expect("a free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_asks_for_any_port_gets_it() {
        let port = free_port();
        assert!(port >= FIRST, "{port}");
        let others: Vec<_> = (0..200).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap().port() != port), "{port}");
    }
}
