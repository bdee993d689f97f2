//! What is wrong with a field, beside it.

use crate::view::control::view;
use leptos::prelude::*;

use super::asking::InputFault;

/// The fault of one of `fields`, as text; nothing where it is another's, or only a hint, which stands where the response will.
#[component]
pub(super) fn FaultOf(fault: Memo<Option<InputFault>>, fields: &'static [&'static str]) -> impl IntoView {
    let message = Memo::new(move |_| {
        fault.with(|fault| {
            fault
                .as_ref()
                .filter(|fault| !fault.is_hint && fields.contains(&fault.field))
                .map(|fault| fault.message.clone())
        })
    });
    view! {
        <Show when=move || message.with(Option::is_some)>
            <p class="field-fault" role="alert">{move || message.get()}</p>
        </Show>
    }
}
