//! Stands in for `wasm_split_helpers`, of which nothing is used: why is in `Cargo.toml`.
#![forbid(unsafe_code)]
