//! Parts that panels share: their frame, a number with its name, what an empty panel says.

use std::cell::Cell;

use leptos::html;
use leptos::prelude::*;
use radixscope_export::panel::EmptyText;
use radixscope_insight::completeness::Trust;
use web_sys::HtmlElement;

use super::clipboard::CopyLink;
use crate::format::UNKNOWN;
use crate::keys;
use crate::store::{Feed, Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;

/// Until the server has sent its state.
pub(super) const WAITING: &str = "Waiting for the server's state";

/// A number with what it counts. The number keeps its width.
#[component]
pub(super) fn Figure(
    /// What is counted, with its unit.
    label: &'static str,
    /// For tests.
    id: &'static str,
    /// The number.
    #[prop(into)]
    value: Signal<String>,
    /// Where it comes from and over what it is taken.
    #[prop(into, optional)]
    title: Signal<String>,
) -> impl IntoView {
    view! {
        <span class="figure" title=title>
            <b data-testid=id>{value}</b>
            <span>{label}</span>
        </span>
    }
}

/// A paragraph in which text between backticks is code.
pub(super) fn prose(text: &str) -> impl IntoView + use<> {
    view! { <p>{marked(text)}</p> }
}

/// A text in which text between backticks is code.
pub(super) fn marked(text: &str) -> impl IntoView + use<> {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part.to_owned().into_any(),
        _ => view! { <code>{part.to_owned()}</code> }.into_any(),
    };
    text.split('`').enumerate().map(part).collect_view()
}

/// A figure that needs every block of the pool drawn: withheld, or marked, where blocks are missing.
#[component]
pub(super) fn TrustedFigure(
    store: Store,
    label: &'static str,
    id: &'static str,
    #[prop(into)] value: Signal<String>,
    #[prop(into)] title: Signal<String>,
) -> impl IntoView {
    let trust = Memo::new(move |_| store.on_beat(|shown| shown.trust()));
    let value = move || match trust.get() {
        Trust::Withheld(_) => UNKNOWN.to_owned(),
        Trust::Whole | Trust::Marked(_) => value.get(),
    };
    let title = move || match trust.get() {
        Trust::Withheld(why) => format!("Withheld: {why}"),
        Trust::Whole => title.get(),
        Trust::Marked(of) => format!("{}: {of}", title.get()),
    };
    let mark = move || trust.with(|trust| trust.mark().map(str::to_owned));
    view! {
        <span class="figure" class:withheld=move || trust.with(|trust| trust.withheld().is_some()) title=move || title()>
            <b data-testid=id>{move || value()}</b>
            <span>{label}</span>
            {move || mark().map(|of| view! { <em data-testid=format!("{id}-mark")>{of}</em> })}
        </span>
    }
}

/// Id of a panel's heading; of the whole where there are many.
pub(super) fn heading_id(panel: Panel) -> String {
    if panel == Panel::Overview { "panels".to_owned() } else { format!("{}-title", panel.as_str()) }
}

thread_local! {
    /// The panel that was opened last since the page was loaded, and whether its heading has had the focus.
    static OPENED: Cell<Option<(Panel, bool)>> = const { Cell::new(None) };
}

/// A panel was opened: its heading takes the focus, so that it is read aloud and the keyboard goes on from there. Now, if it is in the
/// document; else once it is.
pub(super) fn focus_heading(panel: Panel) {
    let id = heading_id(panel);
    keys::focus(&id);
    let has_focus = document().active_element().is_some_and(|element| element.id() == id);
    OPENED.set(Some((panel, has_focus)));
}

/// A heading is in the document. It may replace one that had the focus: that of a panel on its way.
fn heading_appeared(panel: Panel, heading: &HtmlElement) {
    let Some((opened, had_focus)) = OPENED.get() else { return };
    let is_free = || document().active_element().is_none_or(|element| element.tag_name() == "BODY");
    if opened == panel && (!had_focus || is_free()) {
        OPENED.set(Some((panel, heading.focus().is_ok())));
    }
}

/// What the figures of a panel come from.
const fn feed(panel: Panel) -> Feed {
    match panel {
        Panel::Overview | Panel::Tree | Panel::Workers | Panel::Rates | Panel::Memory | Panel::Changes => {
            Feed::Events
        }
        Panel::Latency | Panel::Compare => Feed::Metrics,
        _ => Feed::Any,
    }
}

/// Whether a panel shows the chosen pool alone.
const fn obeys_pool(panel: Panel) -> bool {
    !matches!(panel, Panel::Findings | Panel::Latency | Panel::Compare)
}

/// The head of a panel: name, figures, and the button that gives it the whole page.
#[component]
pub(super) fn PanelHead(
    store: Store,
    panel: Panel,
    title: &'static str,
    children: Children,
) -> impl IntoView {
    let whole = Memo::new(move |_| store.address.with(|a| a.panel == panel));
    let toggle = move |_| {
        store.address.update(|a| a.panel = if a.panel == panel { Panel::Overview } else { panel });
    };
    let name =
        move || if whole.get() { "Back to all panels".to_owned() } else { format!("{title}: whole page") };
    let arrows = move || match whole.get() {
        true => "M6 2v4H2M10 14v-4h4M10 2v4h4M6 14v-4H2",
        false => "M2 6V2h4M14 10v4h-4M10 2h4v4M6 14H2v-4",
    };
    let heading = NodeRef::<html::H2>::new();
    heading.on_load(move |heading| heading_appeared(panel, &heading));
    view! {
        <header class="panel-head">
            <h2 node_ref=heading id=heading_id(panel) tabindex="-1">{title}</h2>
            {move || store.as_of(feed(panel)).map(|at| view! {
                <span class="as-of" data-testid="as-of">"as of "{time_of_day(at)}</span>
            })}
            {move || (!obeys_pool(panel) && store.pools.get().only.is_some()).then(|| view! {
                <span class="all-pools" data-testid="all-pools" title="Its sources do not report figures by pool">"all pools"</span>
            })}
            <div class="figures">{children()}</div>
            <div class="panel-tools">
                <CopyLink store/>
                <button class="icon" on:click=toggle title=move || name() aria-label=move || name() aria-pressed=move || whole.get().to_string()
                    data-testid=format!("{}-whole", panel.as_str())>
                    <svg viewBox="0 0 16 16" aria-hidden="true">
                        <path d=move || arrows()/>
                    </svg>
                </button>
            </div>
        </header>
    }
}

/// The text of a panel without data.
#[component]
pub(super) fn EmptyPanel(text: EmptyText) -> impl IntoView {
    view! {
        <Empty id=text.id head=text.head>
            {text.paragraphs.iter().map(|text| prose(text)).collect_view()}
        </Empty>
    }
}

/// The text of a panel until the server has sent its state.
#[component]
pub(super) fn Waiting(
    /// For tests.
    id: &'static str,
) -> impl IntoView {
    view! { <Empty id head=WAITING/> }
}

/// What an empty panel says: what would fill it, and which setting that takes.
#[component]
pub(super) fn Empty(
    /// In short.
    head: &'static str,
    /// For tests.
    id: &'static str,
    /// The rest.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="empty" data-testid=id>
            <p class="empty-head">{head}</p>
            {children.map(|children| children())}
        </div>
    }
}
