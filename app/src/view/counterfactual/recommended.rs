//! The setting that the sweep recommends to try, as the answer at the top: what to set, what it brings in figures, and on demand how it
//! was found.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::SweepReport;
use radixscope_panels::counterfactual::{Answer, Effect};

use crate::view::clipboard::CopyButton;
use crate::view::control::view;

#[component]
pub(super) fn Recommended(report: Arc<SweepReport>) -> impl IntoView {
    let answer = Answer::of(&report)?;
    let text = answer.text;
    if !answer.is_recommended {
        return Some(view! {
            <div class="cf-why">
                <p data-testid="cf-recommendation"><b>{answer.head}</b>{text}</p>
                {how_found(answer.how_found)}
            </div>
        });
    }
    let (to_set, is_short) = (answer.to_set, answer.is_short);
    let set = (!to_set.is_empty()).then(|| {
        let copied = to_set.clone();
        let code = view! { <code data-testid="cf-recommended-setting">{to_set}</code> };
        let code = match is_short {
            true => code,
            false => view! { <details><summary>"What to set"</summary>{code}</details> },
        };
        view! { <div class="cf-set">{code}<CopyButton label="Copy what to set" id="cf-copy-setting" text=move || copied.clone()/></div> }
    });
    let effect = |Effect { what, from, to, note }: Effect| {
        view! { <div><dt>{what}</dt><dd>{from}<b>{to}</b></dd><dd class="quiet">{note}</dd></div> }
    };
    Some(view! {
        <div class="cf-why">
            <p data-testid="cf-recommendation"><b>{answer.head}</b>" "{text}</p>
            <dl class="cf-effects" data-testid="cf-effects">{answer.effects.into_iter().map(effect).collect_view()}</dl>
            {set}
            {how_found(answer.how_found)}
        </div>
    })
}

fn how_found(texts: Vec<String>) -> Option<impl IntoView> {
    (!texts.is_empty()).then(|| {
        let texts = texts.into_iter().map(|text| view! { <p>{text}</p> }).collect_view();
        view! { <details class="quiet" data-testid="cf-how"><summary>"How it was found"</summary>{texts}</details> }
    })
}
