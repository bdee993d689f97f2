//! [`view`], [`Show`] and [`For`], which views use instead of Leptos' macro and components of these names: they behave the
//! same, but all that Leptos compiles for each kind of element that a function returns, each condition, each list and each
//! row stands here for one type (docs/decisions/erased-views.md).

use std::hash::{DefaultHasher, Hash, Hasher};

use leptos::control_flow;
use leptos::either::Either;
use leptos::prelude::*;

use crate::memo::Memo;

/// Leptos' `view!`, erased: an `AnyView`.
macro_rules! view {
    ($($tokens:tt)*) => { ::leptos::prelude::IntoAny::into_any(::leptos::prelude::view! { $($tokens)* }) };
}
pub(super) use view;

/// Shows its children while `when` holds, and `fallback` otherwise.
#[component]
pub(super) fn Show(
    when: impl Fn() -> bool + Send + Sync + 'static,
    children: ChildrenFn,
    #[prop(optional, into)] fallback: ViewFn,
) -> impl IntoView {
    let when = Memo::new(move |_| when());
    show(when, children, fallback)
}

fn show(when: Memo<bool>, children: ChildrenFn, fallback: ViewFn) -> AnyView {
    let shown = move || match when.get() {
        true => Either::Left(children()),
        false => Either::Right(fallback.run()),
    };
    shown.into_any()
}

/// One child for each of a list. A child whose key stays is kept.
#[component]
pub(super) fn For<I, T, K, V>(
    each: impl Fn() -> I + Send + 'static,
    key: impl Fn(&T) -> K + Send + 'static,
    children: impl Fn(T) -> V + Clone + Send + 'static,
) -> impl IntoView
where
    I: IntoIterator<Item = T> + 'static,
    T: Send + 'static,
    K: Hash + 'static,
    V: IntoView + 'static,
{
    let rows = move || {
        let row = |item: T| {
            let (key, children) = (hash(&key(&item)), children.clone());
            Row { key, view: Box::new(move || children(item).into_any()) }
        };
        each().into_iter().map(row).collect()
    };
    rows_view(Box::new(rows))
}

/// A row, which is made when its key is new.
struct Row {
    /// Of 64 bits: two keys of a list are never alike by chance.
    key: u64,
    view: Box<dyn FnOnce() -> AnyView + Send>,
}

fn hash(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn rows_view(each: Box<dyn Fn() -> Vec<Row> + Send>) -> AnyView {
    view! { <control_flow::For each key=|row| row.key children=|row| (row.view)()/> }.into_any()
}
