//! Units that figures are given in.

/// Bytes of a GiB, as engines print their KV cache.
pub const GIB: u64 = 1 << 30;
