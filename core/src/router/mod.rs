//! What Dynamo's router computes, computed again. Knows nothing of who holds which block.

pub mod hash;
