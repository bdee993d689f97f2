//! What happened, as recorded beside what was tried, figure by figure; every number with its unit.

use leptos::prelude::*;
use radixscope_insight::counterfactual::{
    Figures, FixedStateOutcome, ModelReport, OfflineReplayReport, Rank, Times,
};
use radixscope_model::id::WorkerIx;
use radixscope_router::RouterMode;

use crate::format::{self, UNKNOWN};
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

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
struct ComparisonRow {
    id: &'static str,
    name: &'static str,
    meaning: &'static str,
    cells: [String; 4],
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

/// The comparison.
#[component]
pub(super) fn Comparison(
    store: Store,
    replay: Memo<Option<std::sync::Arc<OfflineReplayReport>>>,
    model: Memo<Option<std::sync::Arc<ModelReport>>>,
) -> impl IntoView {
    const COLUMNS: [&str; 4] = ["actual", "frozen", "model-recorded", "model-tried"];
    move || {
        let replay = replay.get()?;
        let model = model.get();
        let has_model = model.is_some();
        let count = if has_model { 4 } else { 2 };
        let body = rows(&replay, model.as_deref())
            .into_iter()
            .filter(|row| has_model || row.cells[..2].iter().any(|c| c != UNKNOWN));
        let body = body.map(|row| {
            let cells = row.cells.into_iter().zip(COLUMNS).take(count);
            let cells = cells.map(|(text, column)| view! { <td class="n" data-testid=format!("cf-{}-{column}", row.id)>{text}</td> });
            view! { <tr><th scope="row" title=row.meaning>{row.name}</th>{cells.collect_view()}</tr> }
        });
        let body = body.collect_view();
        let shares = |outcome: &FixedStateOutcome| {
            outcome.shares.iter().map(|of| (Some(of.worker), of.share)).collect::<Vec<_>>()
        };
        let anonymous =
            |figures: &Figures| figures.shares.iter().map(|&share| (None, share)).collect::<Vec<_>>();
        let mut bars = vec![shares(&replay.actual), shares(&replay.tried)];
        bars.iter_mut().for_each(|of| of.sort_by_key(|(worker, _)| *worker));
        if let Some(model) = &model {
            bars.extend([anonymous(&model.recorded), anonymous(&model.tried)]);
        }
        Some(view! {
            <table class="cf-table" data-testid="cf-table">
                <thead><tr>
                    <th scope="col">"Figure"</th>
                    <th scope="col" class="n" title="What happened, as recorded">"Actual"</th>
                    <th scope="col" class="n" title="The setting tried, each decision replayed on the state it saw">"Replay"</th>
                    {has_model.then(|| view! {
                        <th scope="col" class="n" title="The model under the recorded setting: what its other column compares with">"Model, recorded"</th>
                        <th scope="col" class="n" title="The model under the setting tried">"Model, tried"</th>
                    })}
                </tr></thead>
                <tbody>
                    {body}
                    <tr class="cf-shares">
                        <th scope="row" title="Requests of each worker, in % of all. The model's workers are not the real ones: most loaded first">"Requests by worker"</th>
                        {bars.into_iter().map(|of| view! { <td>{of.into_iter().map(|(worker, share)| view! { <ShareBar store worker share/> }).collect_view()}</td> }).collect_view()}
                    </tr>
                </tbody>
            </table>
        })
    }
}

#[component]
fn ShareBar(store: Store, #[prop(into)] worker: Option<WorkerIx>, share: f64) -> impl IntoView {
    view! {
        <span class="cf-share">
            {worker.map(|worker| view! { <Chip store worker/> })}
            <span class="meter" aria-hidden="true"><i style=format!("width:{}", format::width(share))></i></span>
            <span class="n">{format::tenths(share)}</span>
        </span>
    }
}
