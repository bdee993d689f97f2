//! Inputs to start from. Memory as data sheets count it, weights as parameters × bytes, shapes as the models' own
//! configuration; nothing here was measured.

use super::{Convention, Engine, GB, Inputs, KvBytes};

/// The reference scenario: three H200 (141 GB) workers, Llama 70B in FP8 with FP8 KV, fraction 0.90, block 32, batch 64;
/// prompts of 12,700 tokens at p95, and some 830 tokens of output.
///
/// With 32 tokens a block: (141 GB × 0.90 − 70.6 GB) ÷ 163,840 B = 343,627 tokens = 10,738 blocks, which is what its workers
/// have. TensorRT-LLM's own formula gives 12,084, from which activations and the runtime are still to be taken.
pub const REFERENCE: Inputs = Inputs {
    hbm_bytes_per_gpu: 141 * GB,
    gpus_per_worker: 1,
    weight_bytes: LLAMA_70B_PARAMETERS,
    fraction: 0.90,
    convention: Convention::WholeMemory,
    kv: llama_70b(FP8_BYTES),
    block_size_tokens: 32,
    blocks_per_worker: None,
    workers: 3,
    max_num_seqs: Some(64),
    p50_tokens: None,
    p95_tokens: Some(12_700 + 830),
    shared_prefix_tokens: None,
};

/// Blocks one worker of the reference scenario holds; 0 for a block size that is 0 or that nothing has room for.
pub fn reference_blocks_per_worker(block_size_tokens: u32) -> u32 {
    let capacity = Inputs { block_size_tokens, ..REFERENCE }.capacity();
    capacity.map_or(0, |capacity| u32::try_from(capacity.blocks_per_worker).unwrap_or(u32::MAX))
}

/// Inputs with a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preset {
    /// Model, precision of weights and KV, GPUs of one worker.
    pub name: &'static str,
    /// The engine, whose formula the inputs follow.
    pub engine: Engine,
    /// The inputs. Lengths and limits belong to the traffic and are mostly `None`.
    pub inputs: Inputs,
}

/// To choose from; the first is the reference scenario.
pub const PRESETS: [Preset; 5] = [
    Preset {
        name: "Reference: Llama 70B FP8, 1 × H200, TensorRT-LLM",
        engine: Engine::TensorRtLlm,
        inputs: Inputs { convention: Convention::of(Engine::TensorRtLlm), ..REFERENCE },
    },
    Preset {
        name: "Llama 3.1 8B FP16, FP16 KV, 1 × H100 80 GB",
        engine: Engine::Vllm,
        inputs: on_vllm(80, 1, LLAMA_8B_PARAMETERS * 2, LLAMA_8B_FP16_KV),
    },
    Preset {
        name: "Llama 3.1 8B FP16, FP16 KV, 1 × L40S 48 GB",
        engine: Engine::Vllm,
        inputs: on_vllm(48, 1, LLAMA_8B_PARAMETERS * 2, LLAMA_8B_FP16_KV),
    },
    Preset {
        name: "Llama 3.1 70B FP8, FP16 KV, 2 × H100 80 GB",
        engine: Engine::Vllm,
        inputs: on_vllm(80, 2, LLAMA_70B_PARAMETERS, llama_70b(FP16_BYTES)),
    },
    Preset {
        name: "Llama 3.1 70B FP16, FP16 KV, 4 × H100 80 GB",
        engine: Engine::Vllm,
        inputs: on_vllm(80, 4, LLAMA_70B_PARAMETERS * 2, llama_70b(FP16_BYTES)),
    },
];

const FP8_BYTES: u32 = 1;
const FP16_BYTES: u32 = 2;
const LLAMA_8B_PARAMETERS: u64 = 8_030_000_000;
/// Parameters, and so bytes in FP8.
const LLAMA_70B_PARAMETERS: u64 = 70_600_000_000;
const LLAMA_8B_FP16_KV: KvBytes =
    KvBytes::Model { layers: 32, kv_heads: 8, head_dim: 128, bytes_per_element: FP16_BYTES };

const fn llama_70b(bytes_per_element: u32) -> KvBytes {
    KvBytes::Model { layers: 80, kv_heads: 8, head_dim: 128, bytes_per_element }
}

/// One worker of vLLM with 0.90 of the memory and its usual 16 tokens a block.
const fn on_vllm(hbm_gb: u64, gpus_per_worker: u32, weight_bytes: u64, kv: KvBytes) -> Inputs {
    Inputs {
        hbm_bytes_per_gpu: hbm_gb * GB,
        gpus_per_worker,
        weight_bytes,
        fraction: 0.90,
        convention: Convention::WholeMemory,
        kv,
        block_size_tokens: 16,
        blocks_per_worker: None,
        workers: 1,
        max_num_seqs: None,
        p50_tokens: None,
        p95_tokens: None,
        shared_prefix_tokens: None,
    }
}
