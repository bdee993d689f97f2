//! The setting that the sweep recommends to try, as the answer at the top: what to set, what it brings in figures, and on demand how it
//! was found.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{
    Grid, Interval, Recommendation, SweepReport, expected_to_text, options_to_set,
};

use crate::format;
use crate::view::clipboard::CopyButton;
use crate::view::control::view;

/// Lines of a setting up to which it is shown at once.
const SHOWN_LINES: usize = 3;

#[component]
pub(super) fn Recommended(report: Arc<SweepReport>) -> impl IntoView {
    let (grid, advice) = (report.grid.as_ref()?, report.recommendation.as_ref()?);
    let Some(settings) = advice.settings(grid) else {
        return Some(
            view! {
                <div class="cf-why">
                    <p data-testid="cf-recommendation"><b>"No recommendation. "</b>{advice.why.clone()}</p>
                    {how_found(vec![advice.method.clone()])}
                </div>
            }
            .into_any(),
        );
    };
    let head = if advice.is_repeated { "★ Still recommended to try" } else { "★ Recommended to try" };
    let set = options_to_set(&settings, &grid.recorded).join("\n");
    let set = (!set.is_empty()).then(|| {
        let (text, is_short) = (set.clone(), set.lines().count() <= SHOWN_LINES);
        let code = view! { <code data-testid="cf-recommended-setting">{set}</code> };
        let code = match is_short {
            true => code.into_any(),
            false => view! { <details><summary>"What to set"</summary>{code}</details> }.into_any(),
        };
        view! { <div class="cf-set">{code}<CopyButton label="Copy what to set" id="cf-copy-setting" text=move || text.clone()/></div> }
    });
    let effect = |Effect { what, from, to, note }: Effect| {
        view! { <div><dt>{what}</dt><dd>{from}<b>{to}</b></dd><dd class="quiet">{note}</dd></div> }
    };
    let expected = advice.expected.as_ref().and_then(expected_to_text);
    let found =
        [Some(format!("{}.", advice.why.trim_end_matches('.'))), expected, Some(advice.method.clone())];
    Some(
        view! {
            <div class="cf-why">
                <p data-testid="cf-recommendation"><b>{head}</b>" "{settings.to_string()}</p>
                <dl class="cf-effects" data-testid="cf-effects">{effects(grid, advice).into_iter().map(effect).collect_view()}</dl>
                {set}
                {how_found(found.into_iter().flatten().collect())}
            </div>
        }
        .into_any(),
    )
}

fn how_found(texts: Vec<String>) -> Option<impl IntoView> {
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| {
        let texts = texts.into_iter().map(|text| view! { <p>{text}</p> }).collect_view();
        view! { <details class="quiet" data-testid="cf-how"><summary>"How it was found"</summary>{texts}</details> }
    })
}

/// A figure as it was, as it would be, and what is known of the difference.
struct Effect {
    what: &'static str,
    from: String,
    to: String,
    note: String,
}

/// What a recommended setting changes.
fn effects(grid: &Grid, advice: &Recommendation) -> Vec<Effect> {
    let Some(outcome) = advice.outcome.and_then(|at| grid.outcomes.get(at)) else { return Vec::new() };
    let mut all = Vec::new();
    if let (Some(share), Some(expected)) = (grid.actual.overlap_share, &advice.expected) {
        let Interval { value, low, high } = expected.hit_rate_gain;
        let points = |share: f64| format!("{:+.1}", share * 100.0).replace('-', "−");
        all.push(Effect {
            what: "KV hit rate",
            from: format!("{:.1} → ", share * 100.0),
            to: format!("{:.1} %", (share + value) * 100.0),
            note: format!("{} points, {} to {}", points(value), points(low), points(high)),
        });
    }
    if let Some(expected) = &advice.expected
        && let (Some(of), Some((_, from))) = (expected.ttft_p95_ms, expected.measured_ttft_ms)
    {
        let interval = format!("{:.0} to {:.0} ms", of.low, of.high);
        all.push(Effect {
            what: "TTFT p95, expected",
            from: format!("{from:.0} → "),
            to: format!("{:.0} ms", of.value),
            note: match (of.low..=of.high).contains(&from) {
                true => format!("{interval}: the change is within its uncertainty"),
                false => interval,
            },
        });
    }
    if let (Some(from), Some(to)) = (grid.actual.imbalance, outcome.imbalance) {
        all.push(Effect {
            what: "In-flight imbalance p95",
            from: format!("{} → ", from.p95),
            to: to.p95.to_string(),
            note: "requests".to_owned(),
        });
    }
    let saved = outcome.prefill_saved_tokens.map_or(String::new(), |tokens| {
        let fewer = if tokens < 0.0 { "more" } else { "fewer" };
        format!("{} prompt tokens {fewer} to compute", format::count(tokens.abs().round() as u64))
    });
    all.push(Effect {
        what: "Decisions that change worker",
        from: String::new(),
        to: format!("{:.0} of {}", outcome.expected_changes, format::count(outcome.decisions)),
        note: saved,
    });
    all
}
