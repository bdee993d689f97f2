//! The figures of a sweep, what they are called, and one value for each.

use serde::{Deserialize, Serialize};

/// A figure of one level of concurrency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Time to first token, median.
    TtftP50,
    /// Time to first token, 95th percentile.
    TtftP95,
    /// Share of the prompts' tokens that was cached where the request went.
    HitRate,
    /// Output tokens per second, of all workers.
    OutputTokens,
    /// Finished requests per second, of all workers.
    Requests,
    /// Inter-token latency, median.
    ItlP50,
    /// Inter-token latency, 95th percentile.
    ItlP95,
    /// Whole request, median.
    E2eP50,
    /// Whole request, 95th percentile.
    E2eP95,
}

impl Figure {
    /// All, in the order of the table and of its columns.
    pub const ALL: [Self; 9] = [
        Self::TtftP50,
        Self::TtftP95,
        Self::HitRate,
        Self::OutputTokens,
        Self::Requests,
        Self::ItlP50,
        Self::ItlP95,
        Self::E2eP50,
        Self::E2eP95,
    ];

    /// Heading, unit, and names of the columns in a CSV file: of the value and of both ends of its spread.
    const fn names(self) -> [&'static str; 5] {
        match self {
            Self::TtftP50 => ["TTFT p50", "ms", "ttft_p50_ms", "ttft_p50_ms_low", "ttft_p50_ms_high"],
            Self::TtftP95 => ["TTFT p95", "ms", "ttft_p95_ms", "ttft_p95_ms_low", "ttft_p95_ms_high"],
            Self::HitRate => {
                ["Hit rate", "%", "hit_rate_percent", "hit_rate_percent_low", "hit_rate_percent_high"]
            }
            Self::OutputTokens => [
                "Output tokens",
                "tok/s",
                "output_tokens_per_s",
                "output_tokens_per_s_low",
                "output_tokens_per_s_high",
            ],
            Self::Requests => {
                ["Requests", "req/s", "requests_per_s", "requests_per_s_low", "requests_per_s_high"]
            }
            Self::ItlP50 => ["ITL p50", "ms", "itl_p50_ms", "itl_p50_ms_low", "itl_p50_ms_high"],
            Self::ItlP95 => ["ITL p95", "ms", "itl_p95_ms", "itl_p95_ms_low", "itl_p95_ms_high"],
            Self::E2eP50 => ["E2E p50", "s", "e2e_p50_s", "e2e_p50_s_low", "e2e_p50_s_high"],
            Self::E2eP95 => ["E2E p95", "s", "e2e_p95_s", "e2e_p95_s_low", "e2e_p95_s_high"],
        }
    }

    /// As a heading, without the unit.
    pub const fn label(self) -> &'static str {
        self.names()[0]
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        self.names()[1]
    }

    /// Name of its column in a CSV file, unit included.
    pub const fn column(self) -> &'static str {
        self.names()[2]
    }

    /// Names of the columns of both ends of its spread in a CSV file.
    pub const fn spread_columns(self) -> [&'static str; 2] {
        let [.., low, high] = self.names();
        [low, high]
    }

    /// Whether the lower of two values is the better: latencies yes, rates no.
    pub const fn lower_is_better(self) -> bool {
        !matches!(self, Self::HitRate | Self::OutputTokens | Self::Requests)
    }

    /// Whether `value` can be one of this figure: finite, not negative, and no more than 100 %.
    pub fn allows(self, value: f64) -> bool {
        value.is_finite() && value >= 0.0 && (self != Self::HitRate || value <= 100.0)
    }
}

/// One value for each figure.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ByFigure<T>([T; Figure::ALL.len()]);

/// Values of one level; what is not known is `None`.
pub type Figures = ByFigure<Option<f64>>;

impl<T: Copy> ByFigure<T> {
    /// The value of `figure`.
    pub fn get(&self, figure: Figure) -> T {
        self.0[figure as usize]
    }

    /// Sets the value of `figure`.
    pub fn set(&mut self, figure: Figure, value: T) {
        self.0[figure as usize] = value;
    }

    /// With the value that `of` gives for each figure.
    pub fn from_fn(mut of: impl FnMut(Figure) -> T) -> Self {
        Self(Figure::ALL.map(&mut of))
    }
}
