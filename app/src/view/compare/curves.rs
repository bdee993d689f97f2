//! The figures by concurrency as a chart, and what it shows as text.

use leptos::prelude::*;
use radixscope_icicle::palette::{Palette, parse};
use radixscope_insight::recent_window::RecentFigures;
use radixscope_panels::compare::{self as panel, CurveLine, FIGURE_KEY, FigureChoice, HIDDEN_KEY};

use super::roles::Baselines;
use crate::draw::curves::{self, Curve, Picture};
use crate::store::Store;
use crate::theme;
use crate::view::charted::Charted;
use crate::view::control::view;
use crate::view::legend::{Hidden, Legend};

/// In the page's colours.
fn picture(shown: panel::Curves, dark: bool) -> Picture {
    let curve = |line: CurveLine| Curve {
        colour: parse(&theme::token(line.colour), dark).unwrap_or_default(),
        name: line.name,
        dashed: line.is_dashed,
        squares: line.has_squares,
        points: line.points,
        spreads: line.spreads,
    };
    Picture {
        curves: shown.lines.into_iter().map(curve).collect(),
        live: shown.live,
        marks: shown.marks,
        values: shown.values,
    }
}

#[component]
pub(super) fn Curves(
    store: Store,
    dark: Memo<bool>,
    live: Memo<RecentFigures>,
    baselines: Baselines,
) -> impl IntoView {
    let choice = Memo::new(move |_| store.address.with(FigureChoice::of));
    let shown = Memo::new(move |_| {
        let choice = choice.get();
        live.with(|live| baselines.playing.with(|playing| panel::Curves::of(choice, live, playing)))
    });
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let legend = Memo::new(move |_| shown.with(panel::Curves::legend));
    let crossovers = Memo::new(move |_| shown.with(|shown| shown.crossovers.clone()));
    let standing = Memo::new(move |_| shown.with(|shown| shown.standing.clone()));
    let description = Memo::new(move |_| shown.with(panel::Curves::description));
    let option = move |palette: &Palette| {
        let drawn = hidden.with(|hidden| shown.get().drawn(hidden));
        Some(curves::option(&picture(drawn, dark.get()), palette))
    };
    let choose =
        move |key: &'static str| store.address.update(|address| address.set_other(FIGURE_KEY, Some(key)));
    view! {
        <fieldset class="tabs"><legend class="hidden">"Figure of the chart"</legend>
            {FigureChoice::ALL.map(|of| view! {
                <label class="tab"><input type="radio" name="cmp-figure" data-testid=format!("cmp-figure-{}", of.key)
                    prop:checked=move || choice.get() == of on:change=move |_| choose(of.key)/><span>{of.name}</span></label>
            }).into_iter().collect_view()}
        </fieldset>
        <Legend hidden all=legend/>
        <Charted store dark id="cmp-chart" class="chart-box cmp-chart" description option/>
        <p class="caption" data-testid="cmp-crossovers">{crossovers}</p>
        <p class="caption" data-testid="cmp-standing">{standing}</p>
    }
}
