//! How many KV blocks fit into a worker's memory, how many sequences fit into these blocks, and what to set when they
//! do not. Pure arithmetic on what a person types or what was measured; must not know the state or a page.
//!
//! `tokens = (HBM × fraction − weights) ÷ bytes per token`, `blocks = tokens ÷ block size`, each rounded down. Activations,
//! CUDA graphs and the runtime also take memory that is not counted here: an engine reports fewer blocks, never more.

mod arithmetic;
mod error;
mod form;
#[cfg(test)]
mod form_tests;
mod inputs;
mod presets;
mod remedies;
#[cfg(test)]
mod tests;
mod text;

pub use arithmetic::{Capacity, Fit, MaxBatch};
pub use error::Error;
pub use form::{CapacityForm, Field, FieldFault};
pub use inputs::{Convention, Input, Inputs, KvBytes, fraction_setting};
pub use presets::{PRESETS, Preset, REFERENCE, reference_blocks_per_worker};
pub use radixscope_model::record::Engine;
pub use remedies::{Advice, CurrentUsage, EngineSetting, Remedy, RemedyKind, TEST_FIRST, remedies};
pub use text::{FitSentence, against_live, fit_sentences};

/// Bytes of a GB, as data sheets count HBM.
pub const GB: u64 = 1_000_000_000;
pub use radixscope_model::units::GIB;
