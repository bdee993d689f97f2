//! What the arithmetic is given, under which name, and within which bounds.

use super::{Error, Field, GB};
use radixscope_model::record::Engine;

/// The option of an engine that sets its memory fraction.
pub const fn fraction_setting(engine: Engine) -> &'static str {
    match engine {
        Engine::Vllm => "--gpu-memory-utilization",
        Engine::Sglang => "--mem-fraction-static",
        Engine::TensorRtLlm => "--free-gpu-memory-fraction",
    }
}

/// What the memory fraction is a fraction of: engines differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Convention {
    /// Of the whole memory, from which the weights are taken: `HBM × fraction − weights`.
    WholeMemory,
    /// Of what the weights leave: `(HBM − weights) × fraction`.
    FreeMemory,
}

impl Convention {
    /// Both.
    pub const ALL: [Self; 2] = [Self::WholeMemory, Self::FreeMemory];

    /// What an engine's memory fraction is a fraction of.
    pub const fn of(engine: Engine) -> Self {
        match engine {
            Engine::Vllm | Engine::Sglang => Self::WholeMemory,
            Engine::TensorRtLlm => Self::FreeMemory,
        }
    }

    /// As text, with the settings that work this way.
    pub const fn label(self) -> &'static str {
        match self {
            Self::WholeMemory => {
                "Of the whole memory, weights included (vLLM gpu_memory_utilization, SGLang mem_fraction_static)"
            }
            Self::FreeMemory => {
                "Of the memory left after the weights (TensorRT-LLM free_gpu_memory_fraction)"
            }
        }
    }

    /// Bytes for KV as a formula.
    pub const fn formula(self) -> &'static str {
        match self {
            Self::WholeMemory => "HBM × fraction − weights",
            Self::FreeMemory => "(HBM − weights) × fraction",
        }
    }
}

/// KV bytes of one token on one worker, all its GPUs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvBytes {
    /// As given.
    PerToken(u64),
    /// From the model: layers × (key + value) × KV heads × head dimension × bytes per element. With more GPUs per worker
    /// than KV heads every GPU still keeps one head, so there are as many heads as GPUs.
    Model {
        /// Attention layers.
        layers: u32,
        /// KV heads of a layer (grouped-query attention has fewer than query heads).
        kv_heads: u32,
        /// Dimension of a head.
        head_dim: u32,
        /// 2 for FP16 and BF16, 1 for FP8.
        bytes_per_element: u32,
    },
}

/// What the arithmetic needs. Lengths and limits that are not known are `None`, and so is what follows from them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inputs {
    /// HBM of one GPU in bytes, as its data sheet counts it.
    pub hbm_bytes_per_gpu: u64,
    /// GPUs of one worker (tensor parallel).
    pub gpus_per_worker: u32,
    /// Weights of one worker in bytes, all its GPUs together.
    pub weight_bytes: u64,
    /// The engine's memory fraction, 0.01 to 1.
    pub fraction: f64,
    /// What that is a fraction of.
    pub convention: Convention,
    /// KV bytes of one token.
    pub kv: KvBytes,
    /// Tokens per KV block.
    pub block_size_tokens: u32,
    /// KV blocks of one worker as the deployment reports them; `None`: they follow from memory, weights and fraction.
    pub blocks_per_worker: Option<u64>,
    /// Number of workers.
    pub workers: u32,
    /// Most sequences a worker runs at once (`max_num_seqs`, `max_running_requests`, `max_batch_size`).
    pub max_num_seqs: Option<u32>,
    /// Median length of a sequence, prompt and output together, in tokens.
    pub p50_tokens: Option<u64>,
    /// 95th percentile of the same.
    pub p95_tokens: Option<u64>,
    /// Tokens with which every sequence begins and which a worker keeps once.
    pub shared_prefix_tokens: Option<u64>,
}

/// One of the [`Inputs`], so that an error can be shown at its field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// [`Inputs::hbm_bytes_per_gpu`], in GB.
    HbmPerGpu,
    /// [`Inputs::gpus_per_worker`].
    GpusPerWorker,
    /// [`Inputs::weight_bytes`], in GB.
    Weights,
    /// [`Inputs::fraction`].
    Fraction,
    /// [`KvBytes::PerToken`].
    KvBytesPerToken,
    /// `layers` of [`KvBytes::Model`].
    Layers,
    /// `kv_heads` of [`KvBytes::Model`].
    KvHeads,
    /// `head_dim` of [`KvBytes::Model`].
    HeadDim,
    /// `bytes_per_element` of [`KvBytes::Model`].
    BytesPerElement,
    /// [`Inputs::block_size_tokens`].
    BlockSize,
    /// [`Inputs::blocks_per_worker`].
    Blocks,
    /// [`Inputs::workers`].
    Workers,
    /// [`Inputs::max_num_seqs`].
    MaxNumSeqs,
    /// [`Inputs::p50_tokens`].
    P50,
    /// [`Inputs::p95_tokens`].
    P95,
    /// [`Inputs::shared_prefix_tokens`].
    SharedPrefix,
}

impl Input {
    /// Its name on screen and in errors.
    pub const fn label(self) -> &'static str {
        self.facts().0
    }

    /// Unit in which a person types it; empty for a bare number.
    pub const fn unit(self) -> &'static str {
        self.facts().1
    }

    /// Least value allowed, in [`unit`](Self::unit).
    pub const fn least(self) -> f64 {
        self.facts().2
    }

    /// Most allowed, in [`unit`](Self::unit). Together these bounds keep every product below 2⁶⁴, and all of a worker's HBM
    /// below 2⁵³, where an `f64` counts every byte.
    pub const fn most(self) -> f64 {
        self.facts().3
    }

    const fn facts(self) -> (&'static str, &'static str, f64, f64) {
        match self {
            Self::HbmPerGpu => ("HBM per GPU", "GB", 1.0, 4e3),
            Self::GpusPerWorker => ("GPUs per worker", "", 1.0, 256.0),
            Self::Weights => ("Weights per worker", "GB", 1e-3, 1e6),
            Self::Fraction => ("Memory fraction", "", 0.01, 1.0),
            Self::KvBytesPerToken => ("KV bytes per token", "bytes", 1.0, 1e9),
            Self::Layers => ("Layers", "", 1.0, 1e4),
            Self::KvHeads => ("KV heads", "", 1.0, 1e4),
            Self::HeadDim => ("Head dimension", "", 1.0, 1e4),
            Self::BytesPerElement => ("Bytes per KV element", "bytes", 1.0, 8.0),
            Self::BlockSize => ("Block size", "tokens", 1.0, 1e6),
            Self::Blocks => ("KV blocks per worker", "", 1.0, 1e9),
            Self::Workers => ("Workers", "", 1.0, 1e4),
            Self::MaxNumSeqs => ("Sequences at once per worker", "", 1.0, 1e6),
            Self::P50 => ("Sequence length p50", "tokens", 1.0, 1e9),
            Self::P95 => ("Sequence length p95", "tokens", 1.0, 1e9),
            Self::SharedPrefix => ("Shared prefix", "tokens", 1.0, 1e9),
        }
    }

    /// `value` in [`unit`](Self::unit), if it is a number within the bounds.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn check(self, value: f64) -> Result<f64, Error> {
        // Written so that NaN fails.
        if value >= self.least() && value <= self.most() {
            Ok(value)
        } else {
            Err(Error::Range { input: self, value })
        }
    }

    /// Bytes of a memory size that was typed in GB; for [`HbmPerGpu`](Self::HbmPerGpu) and [`Weights`](Self::Weights).
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn bytes(self, gb: f64) -> Result<u64, Error> {
        Ok((self.check(gb)? * GB as f64).round() as u64)
    }
}

impl Inputs {
    /// One of them in its unit; `None` where it is not given.
    pub(super) fn value(&self, input: Input) -> Option<f64> {
        let gb = |bytes: u64| Some(bytes as f64 / GB as f64);
        let shape = |at: usize| match self.kv {
            KvBytes::PerToken(_) => None,
            KvBytes::Model { layers, kv_heads, head_dim, bytes_per_element } => {
                Some([layers, kv_heads, head_dim, bytes_per_element][at].into())
            }
        };
        match input {
            Input::HbmPerGpu => gb(self.hbm_bytes_per_gpu),
            Input::GpusPerWorker => Some(self.gpus_per_worker.into()),
            Input::Weights => gb(self.weight_bytes),
            Input::Fraction => Some(self.fraction),
            Input::KvBytesPerToken => match self.kv {
                KvBytes::PerToken(bytes) => Some(bytes as f64),
                KvBytes::Model { .. } => None,
            },
            Input::Layers => shape(0),
            Input::KvHeads => shape(1),
            Input::HeadDim => shape(2),
            Input::BytesPerElement => shape(3),
            Input::BlockSize => Some(self.block_size_tokens.into()),
            Input::Blocks => self.blocks_per_worker.map(|blocks| blocks as f64),
            Input::Workers => Some(self.workers.into()),
            Input::MaxNumSeqs => self.max_num_seqs.map(f64::from),
            Input::P50 => self.p50_tokens.map(|tokens| tokens as f64),
            Input::P95 => self.p95_tokens.map(|tokens| tokens as f64),
            Input::SharedPrefix => self.shared_prefix_tokens.map(|tokens| tokens as f64),
        }
    }

    /// Whether every input is within its bounds.
    pub(super) fn check(&self) -> Result<(), Error> {
        for Field { input, .. } in Field::ALL {
            if let Some(value) = self.value(input) {
                input.check(value)?;
            }
        }
        match (self.p50_tokens, self.p95_tokens) {
            (Some(p50), Some(p95)) if p50 > p95 => Err(Error::P50AboveP95 { p50, p95 }),
            _ => Ok(()),
        }
    }
}
