//! Views that are loaded when they are opened: each is a chunk of the page's program of its own (`xtask/bundle` cuts them; the
//! page's program lists them and hands the list to [`set_chunks`]). A chunk is fetched when the pointer or the focus is on the
//! link to its panel or when the view is opened, and is then cached. If it cannot be loaded, the view says so and offers to
//! try again.

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::SplitLoaderError;

use super::figure::PanelHead;
use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;

/// What a chunk shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LazyView {
    /// A panel that the overview does not show.
    Panel(Panel),
    /// The kiosk.
    Kiosk,
    /// Many clusters.
    Fleet,
    /// The overview's tree below its figures.
    OverviewTree,
    /// The chart of stored and removed blocks.
    RatesChart,
    /// The bar that steers what is shown.
    Stage,
    /// The tour.
    Tour,
}

impl LazyView {
    const fn title(self) -> &'static str {
        match self {
            Self::Panel(panel) => panel.title(),
            Self::Kiosk => "Kiosk",
            Self::Fleet => "Fleet",
            Self::OverviewTree => "The tree",
            Self::RatesChart => "The chart",
            Self::Stage => "The stage",
            Self::Tour => "The tour",
        }
    }

    /// Class of the empty box that keeps the room of a part within a panel until it is there.
    const fn box_class(self) -> Option<&'static str> {
        match self {
            Self::OverviewTree => Some("icicle-box"),
            Self::RatesChart => Some("chart-box"),
            Self::Panel(_) | Self::Kiosk | Self::Fleet | Self::Stage | Self::Tour => None,
        }
    }
}

/// A chunk on its way.
pub type Loading = Pin<Box<dyn Future<Output = Result<(), SplitLoaderError>>>>;

/// A chunk of the page's program.
#[derive(Debug)]
pub struct Chunk {
    /// What it shows.
    pub of: LazyView,
    /// Loads it, unless it is loaded already.
    pub load: fn() -> Loading,
    /// Its view, in the dark theme or not; `None` if it is not loaded.
    pub view: fn(Store, Memo<bool>) -> Option<AnyView>,
}

static CHUNKS: OnceLock<&'static [Chunk]> = OnceLock::new();

/// Sets the list of all chunks, once.
pub(crate) fn set_chunks(chunks: &'static [Chunk]) {
    let _ = CHUNKS.set(chunks);
}

fn chunk(of: LazyView) -> Option<&'static Chunk> {
    CHUNKS.get()?.iter().find(|chunk| chunk.of == of)
}

async fn load(of: LazyView) -> Result<(), SplitLoaderError> {
    match chunk(of) {
        Some(chunk) => (chunk.load)().await,
        None => Ok(()),
    }
}

/// Loads a panel's chunk before it is opened. A failure is shown when it is.
pub(super) fn preload(panel: Panel) {
    spawn_local(async move {
        let _ = load(LazyView::Panel(panel)).await;
    });
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Loading,
    Loaded,
    Failed,
}

/// A view that is loaded when it is opened.
#[component]
pub(super) fn Lazy(of: LazyView, store: Store, dark: Memo<bool>) -> impl IntoView {
    let progress = RwSignal::new(Progress::Loading);
    let begin = move || {
        progress.set(Progress::Loading);
        spawn_local(async move {
            let done = if load(of).await.is_ok() { Progress::Loaded } else { Progress::Failed };
            // The view may have been left meanwhile.
            progress.try_set(done);
        });
    };
    begin();
    let progress = Memo::new(move |_| progress.get());
    move || match progress.get() {
        Progress::Loading if let Some(class) = of.box_class() => view! {
            <div class=class aria-busy="true" data-testid="part-loading"></div>
        },
        Progress::Loaded => chunk(of)
            .and_then(|chunk| (chunk.view)(store, dark))
            .unwrap_or_else(|| view! { <Failed of store retry=begin/> }),
        Progress::Failed => view! { <Failed of store retry=begin/> },
        Progress::Loading if of == LazyView::Stage => view! { <div class="stage" aria-busy="true"></div> },
        Progress::Loading if of == LazyView::Tour => ().into_any(),
        Progress::Loading => view! {
            <section class="panel part" aria-busy="true" data-testid="part-loading">
                {head(of, store)}
                <p class="empty part-loading" role="status">{format!("Loading {}…", of.title())}</p>
            </section>
        },
    }
}

/// A part of a panel that is loaded once the first figures are painted: its program comes over the same line as they do.
#[component]
pub(super) fn AfterFigures(of: LazyView, store: Store, dark: Memo<bool>) -> impl IntoView {
    let are_painted = RwSignal::new(false);
    Effect::new(move |_| {
        if store.ready() {
            after_painting(move || {
                are_painted.try_set(true);
            });
        }
    });
    view! {
        <Show when=move || are_painted.get() fallback=move || view! { <div class=of.box_class()></div> }><Lazy of store dark/></Show>
    }
}

/// Calls `then` when what is in the document now has been painted.
pub(super) fn after_painting(then: impl FnOnce() + 'static) {
    // A task after the frame that paints it: in a frame it would hold up the next picture.
    request_animation_frame(move || set_timeout(then, Duration::ZERO));
}

fn head(of: LazyView, store: Store) -> Option<AnyView> {
    let LazyView::Panel(panel) = of else { return None };
    Some(view! { <PanelHead store panel title=panel.title()>""</PanelHead> })
}

#[component]
fn Failed(of: LazyView, store: Store, retry: impl Fn() + 'static) -> impl IntoView {
    if of == LazyView::RatesChart {
        return view! {
            <div class="chart-box">
                <p class="empty" role="alert" data-testid="part-failed">
                    "The chart was not loaded; the browser's console names the file. "
                    <button class="plain" on:click=move |_| retry() data-testid="part-again">"Try again"</button>
                </p>
            </div>
        };
    }
    if matches!(of, LazyView::Stage | LazyView::Tour) {
        return view! {
            <p class="notice warn" role="alert" data-testid="part-failed">
                <span>{format!("{} was not loaded; the browser's console names the file.", of.title())}</span>
                <button class="plain" on:click=move |_| retry() data-testid="part-again">"Try again"</button>
            </p>
        };
    }
    view! {
        <section class="panel part" data-testid="part-failed">
            {head(of, store)}
            <div class="empty" role="alert">
                <p class="empty-head">{format!("{} was not loaded", of.title())}</p>
                <p>
                    "This part of the page did not arrive; the browser's console names the file. The rest of the page still
                     works. After an update of the server, reload the page."
                </p>
                <button class="plain" on:click=move |_| retry() data-testid="part-again">"Try again"</button>
            </div>
        </section>
    }
}
