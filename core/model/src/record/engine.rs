//! The engines below Dynamo's router. Knows none of their options.

use serde::Deserialize;

/// An engine below Dynamo's router.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Engine {
    /// `python -m dynamo.vllm`.
    Vllm,
    /// `python -m dynamo.sglang`.
    Sglang,
    /// `python -m dynamo.trtllm`.
    TensorRtLlm,
}

impl Engine {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Vllm, Self::Sglang, Self::TensorRtLlm];

    /// Its name as its authors write it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::TensorRtLlm => "TensorRT-LLM",
        }
    }
}
