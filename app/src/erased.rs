//! Leptos makes code of its own for every closure that it is given. Here closures are boxed first, so that all of them
//! share one: what a page loads comes before the call through a pointer that this costs.

use leptos::prelude::*;

/// Runs `run` soon, and again whenever a signal changed that it read.
pub(crate) fn effect(run: impl FnMut() + 'static) {
    fn boxed(mut run: Box<dyn FnMut()>) {
        Effect::new(move |_| run());
    }
    boxed(Box::new(run));
}

/// Runs `run` before the next frame is painted.
pub(crate) fn next_frame(run: impl FnOnce() + 'static) {
    request_animation_frame(Box::new(run) as Box<dyn FnOnce()>);
}

/// In place of Leptos' own: `children` while `when` is true, else `fallback`; built anew only when that changes.
#[component]
pub(crate) fn Show(
    #[prop(into)] when: Signal<bool>,
    children: ChildrenFn,
    #[prop(optional, into)] fallback: ViewFn,
) -> impl IntoView {
    let when = Memo::new(move |_| when.get());
    move || if when.get() { children() } else { fallback.run() }
}

/// An item's key and what makes its view.
type Entry = (u64, Box<dyn FnOnce() -> AnyView + Send>);

/// The views of `items`, each of which stays in the document for as long as its key is listed.
pub(crate) fn list<T: Send + 'static>(
    items: impl Fn() -> Vec<T> + Send + 'static,
    key: fn(&T) -> u64,
    view: impl Fn(T) -> AnyView + Clone + Send + 'static,
) -> AnyView {
    fn boxed(entries: Box<dyn Fn() -> Vec<Entry> + Send>) -> AnyView {
        view! { <For each=entries key=|entry| entry.0 children=|entry| entry.1()/> }.into_any()
    }
    boxed(Box::new(move || {
        let entry = |item: T| {
            let view = view.clone();
            (key(&item), Box::new(move || view(item)) as Box<dyn FnOnce() -> AnyView + Send>)
        };
        items().into_iter().map(entry).collect()
    }))
}
