//! The three layers side by side: live, and both baselines at the same concurrency.

use leptos::prelude::*;
use radixscope_insight::baseline::Figure;
use radixscope_insight::recent_window::RecentFigures;
use radixscope_panels::compare::FigureRow;

use super::roles::Baselines;
use crate::view::control::view;

#[component]
pub(super) fn Table(live: Memo<RecentFigures>, baselines: Baselines) -> impl IntoView {
    let all =
        Memo::new(move |_| live.with(|live| baselines.playing.with(|playing| FigureRow::all(live, playing))));
    let row = move |at: usize| {
        let figure = Figure::ALL[at];
        let of = move |read: fn(&FigureRow) -> String| {
            Memo::new(move |_| all.with(|all| all.get(at).map(read)).unwrap_or_default())
        };
        let id = |column: &str| format!("cmp-{}-{column}", figure.column());
        let (live_text, live_sub) = (of(|l| l.live.0.clone()), of(|l| l.live.1.clone()));
        let bases = [of(|l| l.base[0].0.clone()), of(|l| l.base[1].0.clone())];
        let whys = [of(|l| l.base[0].1.clone()), of(|l| l.base[1].1.clone())];
        let diffs = [of(|l| l.differences[0].0.clone()), of(|l| l.differences[1].0.clone())];
        let classes = [of(|l| l.differences[0].1.to_owned()), of(|l| l.differences[1].1.to_owned())];
        view! {
            <tr>
                <th scope="row">{figure.label()}" "<span class="quiet">{figure.unit()}</span></th>
                <td class="n" title=live_sub><b data-testid=id("live")>{live_text}</b></td>
                <td class="n" title=whys[0] data-testid=id("kv")>{bases[0]}</td>
                <td class=move || format!("n cmp-diff {}", classes[0].get()) data-testid=id("kv-diff")>{diffs[0]}</td>
                <td class="n" title=whys[1] data-testid=id("rr")>{bases[1]}</td>
                <td class=move || format!("n cmp-diff {}", classes[1].get()) data-testid=id("rr-diff")>{diffs[1]}</td>
            </tr>
        }
    };
    view! {
        <table class="cmp-table" data-testid="cmp-table">
            <thead><tr>
                <th scope="col">"Figure"</th>
                <th scope="col" class="n">"Live"</th>
                <th scope="col" class="n">"KV-aware"</th>
                <th scope="col" class="n" title="Live against the KV-aware baseline at the same concurrency">"Live vs baseline"</th>
                <th scope="col" class="n">"Round-robin"</th>
                <th scope="col" class="n" title="Live against the round-robin baseline at the same concurrency">"Live vs baseline"</th>
            </tr></thead>
            <tbody>{(0..Figure::ALL.len()).map(row).collect_view()}</tbody>
        </table>
    }
}
