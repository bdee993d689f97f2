//! Options of the checks: SLO targets, baselines, engine.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use radixscope_model::record::Engine;

use super::BaselineAt;

/// SLO targets, baselines and engine of the checks.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Checks")]
pub struct SloTargets {
    /// Target of TTFT p95 (time to first token), in milliseconds
    #[arg(long, env = "RADIXSCOPE_SLO_TTFT_MS", value_name = "MS", default_value_t = 600.0, value_parser = milliseconds)]
    pub slo_ttft_ms: f64,
    /// Target of ITL p95 (inter-token latency), in milliseconds
    #[arg(long, env = "RADIXSCOPE_SLO_ITL_MS", value_name = "MS", default_value_t = 60.0, value_parser = milliseconds)]
    pub slo_itl_ms: f64,
    /// Baseline to compare live figures with: a concurrency sweep as CSV, with columns such as router, concurrency and
    /// ttft_p95_ms; or results of aiperf, vllm bench serve or guidellm, a file or a folder that may still grow, with how their
    /// requests were routed: kv-aware=PATH, round-robin=PATH or other=PATH; can be repeated [default: none]
    #[arg(long, env = "RADIXSCOPE_BASELINE", value_name = "[ROUTER=]PATH", value_delimiter = ',')]
    pub baseline: Vec<BaselineAt>,
    /// Engine whose settings findings propose [default: what the workers' metrics and logs show; if neither does, all]
    #[arg(long, env = "RADIXSCOPE_ENGINE", value_name = "ENGINE", value_parser = engine())]
    pub engine: Option<Engine>,
}

fn engine() -> impl TypedValueParser<Value = Engine> {
    let names = PossibleValuesParser::new(Engine::ALL.map(Engine::as_str));
    names.try_map(|name| Engine::ALL.into_iter().find(|engine| engine.as_str() == name).ok_or("no engine"))
}

fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ms) if ms > 0.0 && ms <= 3_600_000.0 => Ok(ms),
        Ok(_) => Err("expected more than 0 and at most an hour".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
