//! The prompt as a bar of blocks, with how far each candidate held it.
//!
//! Elements: the marks are chips that can be pressed, which ECharts does not draw.

use leptos::prelude::*;
use radixscope_icicle::palette::token;
use radixscope_model::id::WorkerIx;
use radixscope_panels::decisions::strip::{PromptStrip, StripMark};

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// `chosen`: the worker whose part is filled.
#[component]
pub(super) fn Strip(store: Store, chosen: WorkerIx, strip: PromptStrip) -> impl IntoView {
    let PromptStrip { cached, marks, lanes, caption } = strip;
    let fill = move || {
        format!("width: {}; --c: var({})", format::width(cached), token(chosen.slot(), store.worker_slots()))
    };
    let mark = move |mark: StripMark| {
        let left = format!("left: {}", format::width(mark.at));
        let depth = left.clone();
        let label = format!("{left}; top: calc(1.6rem + {} * 1.5rem)", mark.lane);
        let text = mark.to_text();
        let (is_at_end, is_chosen) = (mark.is_at_end(), mark.is_chosen);
        let chips = mark.workers.into_iter().map(|worker| view! { <Chip store worker/> }).collect_view();
        view! {
            <i class="depth" class:chosen=is_chosen style=depth aria-hidden="true"></i>
            <span class="depth-label" class:last=is_at_end class:chosen=is_chosen style=label>
                {chips} {text}
            </span>
        }
    };
    view! {
        <div class="strip" data-testid="strip" style=format!("height: calc(1.8rem + {lanes} * 1.5rem)")>
            <div class="strip-bar" aria-hidden="true"><i style=move || fill()></i></div>
            {marks.into_iter().map(mark).collect_view()}
        </div>
        <p class="caption">{caption}</p>
    }
}
