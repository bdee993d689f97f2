//! What is wrong with a field, beside it.

use crate::view::control::view;
use leptos::prelude::*;
use radixscope_panels::whatif::{InputFault, fault_of};

/// The fault of one of `fields`, as text.
#[component]
pub(super) fn FaultOf(fault: Memo<Option<InputFault>>, fields: &'static [&'static str]) -> impl IntoView {
    let message = Memo::new(move |_| fault.with(|fault| fault_of(fault.as_ref(), fields)));
    view! {
        <Show when=move || message.with(Option::is_some)>
            <p class="field-fault" role="alert">{move || message.get()}</p>
        </Show>
    }
}
