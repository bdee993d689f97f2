//! The row of a cluster: each cell leads into its page, to the panel that explains the figure.

use leptos::prelude::*;
use radixscope_export::fleet::MemberReport;
use radixscope_panels::fleet::{
    AxesOf, Cell, Column, MemberRow, SPARK_SIZE, SparkPaths, age_cell, cell_id, state_cell,
};

use super::poll::Feed;
use crate::view::control::view;

/// The row.
#[component]
pub(super) fn Row(
    member: Memo<Option<MemberReport>>,
    /// Which row it is now.
    place: Memo<usize>,
    /// The cell that the tabulator leads to.
    focused: RwSignal<(usize, usize)>,
    axes: Memo<AxesOf>,
    feed: Feed,
) -> impl IntoView {
    let row = Memo::new(move |_| {
        let axes = axes.get();
        member.with(|member| member.as_ref().map(|of| MemberRow::of(of, &axes)).unwrap_or_default())
    });
    let of = move |at: usize| Memo::new(move |_| row.with(|row| row.cells[at].clone()));
    let link = move |column: usize, view_name: &'static str, cell: Memo<Cell>| {
        let href = Memo::new(move |_| {
            member.with(|member| member.as_ref().map_or_else(String::new, |of| of.href(view_name)))
        });
        let here = move || (place.get(), column);
        view! {
            <a id=move || cell_id(here()) href=href rel="noreferrer" title=move || cell.with(|of| of.title.clone())
                tabindex=move || if focused.get() == here() { "0" } else { "-1" }
                on:focus=move |_| focused.set((place.get_untracked(), column)) class=move || cell.with(|of| of.class)>
                <b>{move || cell.with(|of| of.value.clone())}</b>
                <span class="cell-sub">{move || cell.with(|of| of.more.clone())}</span>
            </a>
        }
    };
    let state = Memo::new(move |_| {
        let now = feed.now_ms.get();
        member.with(|member| member.as_ref().map(|of| state_cell(of, now)).unwrap_or_default())
    });
    let age = Memo::new(move |_| {
        let now = feed.now_ms.get();
        member.with(|member| member.as_ref().map(|of| age_cell(of, now)).unwrap_or_default())
    });
    let hit_paths = Memo::new(move |_| row.with(|row| row.hit_paths.clone()));
    let ttft_paths = Memo::new(move |_| row.with(|row| row.ttft_paths.clone()));
    let target = Memo::new(move |_| row.with(|row| row.target_y));
    view! {
        <tr class=move || format!("fleet-row {}", row.with(|row| row.class)) data-testid="fleet-row" data-name=move || row.with(|row| row.name.clone())
            data-state=move || row.with(|row| row.state)>
            <th scope="row" class=Column::Name.class()>{link(0, "", state)}</th>
            <td class=Column::Worst.class() data-label="Findings">{link(1, "findings", of(0))}</td>
            <td class=Column::HitRate.class() data-label="KV hit rate">
                {link(2, "decisions", of(1))}<Spark paths=hit_paths target=Memo::new(|_| None)/>
            </td>
            <td class=Column::Ttft.class() data-label="TTFT p95">
                {link(3, "latency", of(2))}<Spark paths=ttft_paths target/>
            </td>
            <td class=Column::Reuse.class() data-label="Reuse lost most to">{link(4, "reuse", of(3))}</td>
            <td class=Column::Workers.class() data-label="Workers">{link(5, "workers", of(4))}</td>
            <td class=Column::Requests.class() data-label="Requests/s">{link(6, "rates", of(5))}</td>
            <td class=Column::Age.class() data-label="Answered">
                <span title=move || age.with(|of| of.title.clone())>{move || age.with(|of| of.value.clone())}</span>
            </td>
        </tr>
    }
}

/// A line over the last minutes. What it says stands beside it.
#[component]
fn Spark(paths: Memo<SparkPaths>, target: Memo<Option<f64>>) -> impl IntoView {
    let (width, height) = SPARK_SIZE;
    view! {
        <svg class="fleet-line" viewBox=format!("0 0 {width} {height}") preserveAspectRatio="none" aria-hidden="true">
            {move || target.get().map(|y| view! { <path class="target" d=format!("M0 {y:.1}H{width}")/> })}
            <path class="band" d=move || paths.with(|of| of.band.clone())/>
            <path class="line" d=move || paths.with(|of| of.line.clone())/>
        </svg>
    }
}
