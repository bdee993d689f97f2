//! What to set when memory is short: the four remedies, what the live figures say of each, and the exact setting of
//! every engine. Proposed, never applied.

use super::Engine::{self, Sglang, TensorRtLlm, Vllm};
use radixscope_model::number_format;

/// Shown beside every remedy.
pub const TEST_FIRST: &str = "Change one setting at a time, and test at concurrency 1 to 2 before the full load: prefixes \
    must hit there, or memory is not the cause.";

/// From this share of the blocks on memory counts as full, in percent.
const FULL_PERCENT: u64 = 90;

/// Live figures of one worker, or of several summed up; what is not known is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CurrentUsage {
    /// Blocks of running sequences.
    pub used_blocks: Option<u64>,
    /// Blocks cached, evictable that no running sequence needs.
    pub retained_blocks: Option<u64>,
    /// Blocks there are.
    pub capacity_blocks: Option<u64>,
    /// Queued sequences.
    pub waiting_sequences: Option<u64>,
    /// Whether a finding about memory shortage is active: without one no remedy is suggested.
    pub is_short: bool,
}

/// Which remedy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemedyKind {
    /// Fewer sequences at once.
    LowerBatch,
    /// More memory for KV.
    RaiseFraction,
    /// The same block size everywhere.
    AlignBlockSizes,
    /// Other eviction, or a second tier for what is evicted.
    Retention,
}

impl RemedyKind {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 4] =
        [Self::LowerBatch, Self::RaiseFraction, Self::AlignBlockSizes, Self::Retention];

    /// As a heading.
    pub const fn label(self) -> &'static str {
        match self {
            Self::LowerBatch => "Run fewer sequences at once",
            Self::RaiseFraction => "Raise the KV memory fraction",
            Self::AlignBlockSizes => "Align the block sizes",
            Self::Retention => "Change eviction or retention",
        }
    }

    /// How to set it, engine by engine.
    pub const fn settings(self) -> &'static [EngineSetting] {
        match self {
            Self::LowerBatch => LOWER_BATCH,
            Self::RaiseFraction => RAISE_FRACTION,
            Self::AlignBlockSizes => ALIGN_BLOCK_SIZES,
            Self::Retention => RETENTION,
        }
    }
}

/// What the live figures say of a remedy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// They call for it.
    Suggested,
    /// They do not.
    NotIndicated,
    /// No data.
    Unknown,
}

impl Advice {
    /// In a word or two.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Suggested => "suggested",
            Self::NotIndicated => "not indicated",
            Self::Unknown => "unknown",
        }
    }
}

/// One setting of one engine, to copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineSetting {
    /// The engine.
    pub engine: Engine,
    /// Exact text; `N` stands for a number to choose.
    pub text: &'static str,
    /// What it does.
    pub does: &'static str,
}

/// A remedy and its evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remedy {
    /// Which.
    pub kind: RemedyKind,
    /// What the figures say.
    pub advice: Advice,
    /// Why, with the figures.
    pub why: String,
}

/// The four remedies in their order, each judged by the live figures.
pub fn remedies(live: &CurrentUsage) -> Vec<Remedy> {
    RemedyKind::ALL
        .into_iter()
        .map(|kind| {
            let (advice, why) = live.judge(kind);
            let is_asked_for = advice != Advice::Suggested || live.is_short;
            Remedy { kind, advice: if is_asked_for { advice } else { Advice::NotIndicated }, why }
        })
        .collect()
}

impl CurrentUsage {
    fn judge(&self, kind: RemedyKind) -> (Advice, String) {
        if kind == RemedyKind::AlignBlockSizes {
            let why = "Memory figures do not show block sizes. They must be the same for engine, publisher and model \
                card.";
            return (Advice::Unknown, why.to_owned());
        }
        let (Some(used), Some(capacity)) = (self.used_blocks, self.capacity_blocks.filter(|&all| all > 0))
        else {
            return (Advice::Unknown, "Used blocks or capacity are unknown.".to_owned());
        };
        let held = self.retained_blocks.map(|retained| used.saturating_add(retained));
        let is_used_up = is_full(used, capacity);
        let used_text = format!("Running sequences use {}", share(used, capacity));
        match kind {
            RemedyKind::LowerBatch | RemedyKind::RaiseFraction if is_used_up => {
                let waiting = match self.waiting_sequences {
                    Some(waiting @ 1..) => {
                        format!(", and {} sequences are queued", number_format::count(waiting))
                    }
                    _ => String::new(),
                };
                (Advice::Suggested, format!("{used_text}{waiting}."))
            }
            RemedyKind::LowerBatch => {
                let waiting = match self.waiting_sequences {
                    Some(1..) => " Sequences are queued for the batch limit or for prefill, not for memory.",
                    _ => "",
                };
                (Advice::NotIndicated, format!("{used_text}.{waiting}"))
            }
            _ => match held {
                None if kind == RemedyKind::Retention && is_used_up => (
                    Advice::Suggested,
                    format!("{used_text}: hardly any are left to cache prefixes for re-use."),
                ),
                None => (Advice::Unknown, "Cached blocks are unknown.".to_owned()),
                Some(held) if is_full(held, capacity) => {
                    let why = format!(
                        "Used and cached blocks fill {}: new sequences evict what others would re-use.",
                        share(held, capacity)
                    );
                    (Advice::Suggested, why)
                }
                Some(held) => {
                    (Advice::NotIndicated, format!("Used and cached blocks fill {}.", share(held, capacity)))
                }
            },
        }
    }
}

fn is_full(blocks: u64, capacity: u64) -> bool {
    u128::from(blocks) * 100 >= u128::from(capacity) * u128::from(FULL_PERCENT)
}

/// `96 % of 10,738 blocks`.
fn share(blocks: u64, capacity: u64) -> String {
    let percent = u128::from(blocks) * 100 / u128::from(capacity);
    format!("{percent} % of {} blocks", number_format::count(capacity))
}

const fn setting(engine: Engine, text: &'static str, does: &'static str) -> EngineSetting {
    EngineSetting { engine, text, does }
}

const LOWER_BATCH: &[EngineSetting] = &[
    setting(Vllm, "--max-num-seqs N", "Maximum sequences that a worker runs at once; more are queued."),
    setting(
        Sglang,
        "--max-running-requests N",
        "Maximum requests that a worker runs at once; more are queued.",
    ),
    setting(
        TensorRtLlm,
        "--max-batch-size N",
        "Maximum requests that a worker runs at once; more are queued.",
    ),
];

const RAISE_FRACTION: &[EngineSetting] = &[
    setting(
        Vllm,
        "--gpu-memory-utilization 0.95",
        "Share of the whole GPU memory for weights, activations and KV.",
    ),
    setting(Sglang, "--mem-fraction-static 0.90", "Share of the whole GPU memory for weights and KV."),
    setting(
        TensorRtLlm,
        "--free-gpu-memory-fraction 0.95",
        "Share of the memory left after the weights that KV gets.",
    ),
    setting(
        TensorRtLlm,
        "kv_cache_config:\n  free_gpu_memory_fraction: 0.95",
        "The same in the file of --extra-engine-args; Triton's backend calls it kv_cache_free_gpu_mem_fraction.",
    ),
];

const ALIGN_BLOCK_SIZES: &[EngineSetting] = &[
    setting(Vllm, "--block-size N", "Tokens per block of engine, publisher and model card."),
    setting(
        Sglang,
        "--page-size N",
        "Tokens per block of engine, publisher and model card; its default is 1.",
    ),
    setting(
        TensorRtLlm,
        "--kv-block-size N",
        "Tokens per block of publisher and model card, 32 by default; up to Dynamo 1.5 nothing checks that the engine's is the same.",
    ),
    setting(
        TensorRtLlm,
        "kv_cache_config:\n  tokens_per_block: N",
        "Tokens per block of the engine itself, in the file of --extra-engine-args.",
    ),
];

const RETENTION: &[EngineSetting] = &[
    setting(
        Vllm,
        "--kv-offloading-size N",
        "Keeps evicted blocks in N GiB of host memory; the order of eviction itself is least recently used and has no option.",
    ),
    setting(
        Sglang,
        "--radix-eviction-policy lfu",
        "Evicts what is used least often instead of least recently: shared prefixes stay.",
    ),
    setting(
        Sglang,
        "--enable-hierarchical-cache --hicache-ratio 2",
        "Keeps evicted blocks in host memory, here twice the GPU's cache.",
    ),
    setting(
        TensorRtLlm,
        "kv_cache_config:\n  host_cache_size: N",
        "Keeps evicted blocks in N bytes of host memory.",
    ),
    setting(
        TensorRtLlm,
        "kv_cache_retention_config",
        "An argument of a request: priority and duration for ranges of its tokens, so that a system prompt is evicted last.",
    ),
];
