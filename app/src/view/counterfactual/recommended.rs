//! The setting that the sweep recommends to try, as the answer at the top: what to set, what it brings, and on demand how it was found.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{SweepReport, expected_to_text, options_to_set};

use crate::view::clipboard::CopyButton;
use crate::view::control::view;

#[component]
pub(super) fn Recommended(report: Arc<SweepReport>) -> impl IntoView {
    let (grid, advice) = (report.grid.as_ref()?, report.recommendation.as_ref()?);
    let head = match (advice.outcome, advice.is_repeated) {
        (Some(_), true) => "★ Still recommended to try. ",
        (Some(_), false) => "★ Recommended to try. ",
        (None, _) => "No recommendation. ",
    };
    let set = advice.settings(grid).map(|settings| options_to_set(&settings, &grid.recorded).join("\n"));
    let set = set.filter(|set| !set.is_empty()).map(|set| {
        let text = set.clone();
        view! {
            <p class="cf-set">
                <code data-testid="cf-recommended-setting">{set}</code>
                <CopyButton label="Copy" id="cf-copy-setting" text=move || text.clone()/>
            </p>
        }
    });
    let expected = advice.expected.as_ref().and_then(expected_to_text);
    let method = (!advice.method.is_empty()).then(|| {
        let method = advice.method.clone();
        view! { <details class="quiet"><summary>"How it was found"</summary><p>{method}</p></details> }
    });
    Some(view! {
        <div class="cf-why">
            <p data-testid="cf-recommendation"><b>{head}</b>{advice.why.clone()}</p>
            {set}
            {expected.map(|expected| view! { <p data-testid="cf-expected">{expected}</p> })}
            {method}
        </div>
    })
}
