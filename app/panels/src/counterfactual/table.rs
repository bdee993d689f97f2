//! What happened, as recorded beside what was tried, figure by figure; every number with its unit.

use radixscope_insight::counterfactual::{
    Figures, FixedStateOutcome, ModelReport, OfflineReplayReport, Rank, Times,
};
use radixscope_model::id::WorkerIx;
use radixscope_router::RouterMode;

use crate::format::{self, UNKNOWN};

/// The columns: an id, a name and what it is, as many as [`ComparisonTable::columns`].
pub const COLUMNS: [(&str, &str, &str); 4] = [
    ("actual", "Actual", "What happened, as recorded"),
    ("frozen", "Replay", "The setting tried, each decision replayed on the state it saw"),
    (
        "model-recorded",
        "Model, recorded",
        "The model under the recorded setting: what its other column compares with",
    ),
    ("model-tried", "Model, tried", "The model under the setting tried"),
];

/// Requests of a worker, 0 … 1 of all; of the model's workers, which are not the real ones, none is named.
pub type WorkerShare = (Option<WorkerIx>, f64);

/// The table.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparisonTable {
    /// How many of [`COLUMNS`] there are.
    pub columns: usize,
    /// Its rows, without those that say nothing.
    pub rows: Vec<ComparisonRow>,
    /// Requests by worker, a list a column.
    pub shares: Vec<Vec<WorkerShare>>,
}

impl ComparisonTable {
    /// Of what was replayed and, where it ran, the model.
    pub fn of(replay: &OfflineReplayReport, model: Option<&ModelReport>) -> Self {
        let columns = if model.is_some() { 4 } else { 2 };
        let mut rows = rows(replay, model);
        rows.retain(|row| row.cells[..2].iter().any(|cell| cell != UNKNOWN) || model.is_some());
        let of_workers = |outcome: &FixedStateOutcome| {
            let mut shares: Vec<WorkerShare> =
                outcome.shares.iter().map(|of| (Some(of.worker), of.share)).collect();
            shares.sort_by_key(|(worker, _)| *worker);
            shares
        };
        let of_model = |figures: &Figures| figures.shares.iter().map(|&share| (None, share)).collect();
        let mut shares = vec![of_workers(&replay.actual), of_workers(&replay.tried)];
        shares
            .extend(model.into_iter().flat_map(|model| [of_model(&model.recorded), of_model(&model.tried)]));
        Self { columns, rows, shares }
    }
}

fn or_unknown<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or(UNKNOWN.to_owned(), shown)
}

/// With its sign and in groups: `+1,234`, `−5`, `0`.
pub(super) fn signed(value: f64) -> String {
    let whole = format::count(value.abs().round() as u64);
    match value {
        v if v >= 0.5 => format!("+{whole}"),
        v if v <= -0.5 => format!("−{whole}"),
        _ => "0".to_owned(),
    }
}

fn times(of: Option<Times>) -> String {
    or_unknown(of, |of| format!("{} / {}", ms(of.p50_ms), ms(of.p95_ms)))
}

fn ms(value: f64) -> String {
    if value < 10_000.0 {
        format!("{} ms", format::count(value.round() as u64))
    } else {
        format!("{:.1} s", value / 1e3)
    }
}

/// Expected number of decisions that change worker: whole where nothing is left to chance.
pub(super) fn changed(outcome: &FixedStateOutcome) -> String {
    let expected = outcome.expected_changes;
    let about = if expected == outcome.certain_changes as f64 { "" } else { "about " };
    format!("{about}{}", format::count(expected.round() as u64))
}

/// A row: its figure, what it means, and a text a column; the model's columns are empty where it did not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ComparisonRow {
    /// For tests.
    pub id: &'static str,
    /// The figure.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// As recorded, replayed, and in the model as recorded and as tried.
    pub cells: [String; 4],
}

fn rows(replayed: &OfflineReplayReport, model: Option<&ModelReport>) -> Vec<ComparisonRow> {
    let (actual, tried) = (&replayed.actual, &replayed.tried);
    // Of a model that does not fit, only which setting is better means anything.
    let fits = model.is_some_and(|model| model.calibration.fits());
    let of_model = |text: &dyn Fn(&Figures) -> String| match model.filter(|_| fits) {
        Some(model) => [text(&model.recorded), text(&model.tried)],
        None => [UNKNOWN.to_owned(), UNKNOWN.to_owned()],
    };
    let row = |id, name, meaning, real: [String; 2], model: [String; 2]| {
        let ([a, b], [c, d]) = (real, model);
        ComparisonRow { id, name, meaning, cells: [a, b, c, d] }
    };
    let is_round_robin =
        replayed.settings.is_some_and(|settings| settings.router_mode == RouterMode::RoundRobin);
    let replayed = tried.overlap_share.filter(|_| !is_round_robin);
    let both = |text: &dyn Fn(&FixedStateOutcome) -> String| [text(actual), text(tried)];
    let none = || [UNKNOWN.to_owned(), UNKNOWN.to_owned()];
    let measured = model.map(|model| model.measured);
    let saved = |outcome: &FixedStateOutcome| or_unknown(outcome.prefill_saved_tokens, signed);
    let saved_each = |outcome: &FixedStateOutcome| {
        let each = |saved: f64| signed(saved / outcome.prefill_decisions.max(1) as f64);
        or_unknown(outcome.prefill_saved_tokens, each)
    };
    let ranked = |rank: &dyn Fn(&ModelReport) -> Rank, text: &dyn Fn(&Figures) -> String| match model {
        Some(model) if !fits => [UNKNOWN.to_owned(), rank(model).in_text()],
        _ => of_model(text),
    };
    let model_saved = |of: &dyn Fn(&ModelReport) -> f64| match model.filter(|_| fits) {
        Some(model) => ["0".to_owned(), signed(of(model))],
        None => none(),
    };
    let each_in_model =
        |model: &ModelReport| model.prefill_saved_tokens() as f64 / model.tried.requests.max(1) as f64;
    vec![
        row(
            "requests",
            "Requests",
            "Decisions judged; in the model, requests counted after its warm-up",
            both(&|o| format::count(o.decisions)),
            of_model(&|f| format::count(f.requests)),
        ),
        row(
            "flips",
            "Changed worker",
            "Decisions that go to another worker, at temperature above 0 as an expected value. The model's workers are not the real ones, so it has no such count",
            ["0".to_owned(), format!("{} of {}", changed(tried), format::count(tried.decisions))],
            none(),
        ),
        row(
            "ties",
            "Ties",
            "Decisions whose lowest cost two or more workers share exactly",
            both(&|o| format::count(o.ties)),
            none(),
        ),
        row(
            "overlap",
            "KV hit rate",
            "Cached blocks on the chosen workers ÷ prompt blocks, as the router counts them; unknown where it keeps no index. The \
             replay of round-robin has none: its caches would have filled otherwise, which only the model follows",
            [or_unknown(actual.overlap_share, format::tenths), or_unknown(replayed, format::tenths)],
            of_model(&|f| or_unknown(f.overlap_share, format::tenths)),
        ),
        row(
            "hits",
            "Cache hits",
            "Prompt tokens found in the engines' caches over prompt tokens; reported by the model's engines only",
            none(),
            ranked(&|model| model.hit_rate_rank, &|f| or_unknown(f.hit_rate, format::tenths)),
        ),
        row(
            "saved",
            "Prompt tokens saved",
            "Prompt tokens that need no prefill, more (+) or fewer (−) than with the actual choices; in the model, than with the recorded setting",
            both(&saved),
            model_saved(&|model| model.prefill_saved_tokens() as f64),
        ),
        row(
            "saved-each",
            "Prompt tokens saved a request",
            "The same over the requests that it is known of",
            both(&saved_each),
            model_saved(&each_in_model),
        ),
        row(
            "spread-mean",
            "In-flight imbalance, mean",
            "Requests in flight on the most loaded worker less those on the least loaded: right after each decision, in the model four times a second",
            both(&|o| or_unknown(o.imbalance, |s| format!("{:.1}", s.mean))),
            of_model(&|f| or_unknown(f.spread_mean, |s| format!("{s:.1}"))),
        ),
        row(
            "spread-p95",
            "In-flight imbalance, p95",
            "The same; 95 of 100 are at or below",
            both(&|o| or_unknown(o.imbalance, |s| s.p95.to_string())),
            of_model(&|f| or_unknown(f.spread_p95, |s| format!("{s:.0}"))),
        ),
        row(
            "ttft",
            "TTFT, p50 / p95",
            "Actual: as the frontend measured it, or from the router's decision. Model: fitted to it. Where the model does not fit: in how many parts of the window the setting tried is better than the recorded one",
            [measured.map_or(UNKNOWN.to_owned(), |m| times(m.ttft_ms)), UNKNOWN.to_owned()],
            ranked(&|model| model.ttft_rank, &|f| times(f.ttft_ms)),
        ),
        row(
            "e2e",
            "End to end, p50 / p95",
            "As above, to the request's end",
            [measured.map_or(UNKNOWN.to_owned(), |m| times(m.e2e_ms)), UNKNOWN.to_owned()],
            ranked(&|model| model.e2e_rank, &|f| times(f.e2e_ms)),
        ),
    ]
}
