//! [`view`], which every view uses instead of Leptos' macro of this name.

/// Leptos' `view!` as an `AnyView`, so that all arms of a `match` are of one type.
macro_rules! view {
    ($($tokens:tt)*) => { ::leptos::prelude::IntoAny::into_any(::leptos::prelude::view! { $($tokens)* }) };
}
pub(super) use view;
