//! What NVIDIA Dynamo's KV-cache-aware router says, folded into one state.
//!
//! Pure: no I/O, no async, no clock, no randomness, nothing of the web. It compiles for the host and for
//! `wasm32-unknown-unknown`, so that the server, the browser and a recording run the same fold.
//!
//! Arrows point one way: `id ← router ← record ← dynamo, tree ← cluster ← check ← ingest ← routing ← listen, whatif`; nothing here uses
//! `sim` but `counterfactual`, which also reads `cluster`, `router` and `routing`, and its callers. `capacity` and `baseline`
//! use nothing of the others but `words`, `range` and a rule of `export`; `memory` and `live` read `cluster` into them.
#![forbid(unsafe_code)]

pub mod ages;
pub mod baseline;
pub mod capacity;
pub mod check;
pub mod cluster;
pub mod colour;
pub mod counterfactual;
pub mod dynamo;
pub mod export;
pub mod frame;
pub mod id;
pub mod ingest;
pub mod latency;
pub mod listen;
pub mod live;
pub mod memory;
pub mod range;
pub mod record;
pub mod redundancy;
pub mod router;
pub mod routing;
pub mod search;
pub mod sim;
pub mod spread;
pub mod tokenizer;
pub mod tree;
pub mod whatif;
pub mod words;
