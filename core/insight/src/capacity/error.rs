//! Why nothing can be computed, in sentences that name the input.

use thiserror::Error as ThisError;

use super::{Convention, GB, Input};
use radixscope_model::number_format;

/// Why inputs give no capacity.
#[derive(Clone, Copy, PartialEq, Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// Not a number, or out of bounds.
    #[error("{} is {value}; it must be between {} and {}{}", input.label(), input.least(), input.most(), unit(*input))]
    Range {
        /// Which.
        input: Input,
        /// The value given, in the input's unit.
        value: f64,
    },
    /// The lengths are the wrong way round.
    #[error("Sequence length p50 is {} tokens, above p95 of {}; it must not be the longer one", number_format::count(*p50), number_format::count(*p95))]
    P50AboveP95 {
        /// The median given.
        p50: u64,
        /// The 95th percentile given.
        p95: u64,
    },
    /// The weights leave nothing of the memory.
    #[error("Weights per worker are {:.1} GB, but {}: none is left for KV", gb(*weight_bytes), there_is(*hbm_bytes, *fraction, *convention))]
    Weights {
        /// Bytes of the weights.
        weight_bytes: u64,
        /// HBM of all GPUs of one worker, in bytes.
        hbm_bytes: u64,
        /// The memory fraction.
        fraction: f64,
        /// What it is a fraction of.
        convention: Convention,
    },
    /// Less is left than one block takes.
    #[error("Block size: one block takes {} bytes of KV, but only {} bytes are left beside the weights", number_format::count(*bytes_per_block), number_format::count(*kv_bytes))]
    Block {
        /// Bytes of one block.
        bytes_per_block: u64,
        /// Bytes for KV.
        kv_bytes: u64,
    },
}

impl Error {
    /// The input to change first.
    pub const fn input(&self) -> Input {
        match self {
            Self::Range { input, .. } => *input,
            Self::P50AboveP95 { .. } => Input::P50,
            Self::Weights { .. } => Input::Weights,
            Self::Block { .. } => Input::BlockSize,
        }
    }
}

fn gb(bytes: u64) -> f64 {
    bytes as f64 / GB as f64
}

fn unit(input: Input) -> String {
    match input.unit() {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

fn there_is(hbm_bytes: u64, fraction: f64, convention: Convention) -> String {
    let hbm = gb(hbm_bytes);
    match convention {
        Convention::WholeMemory => {
            format!("memory fraction {fraction} of {hbm:.1} GB HBM is {:.1} GB", hbm * fraction)
        }
        Convention::FreeMemory => format!("there are {hbm:.1} GB HBM"),
    }
}
