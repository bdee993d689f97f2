//! What is done when signals change: [`effect`], instead of Leptos' `Effect::new`, which compiles the task that waits
//! for changes once for each effect (docs/decisions/erased-views.md).

use leptos::prelude::Effect;

/// Runs `run` soon, and again whenever a signal that it looked at has changed, until the present owner is cleaned up. It gets
/// what it returned before.
pub(crate) fn effect<T: 'static>(mut run: impl FnMut(Option<T>) -> T + 'static) {
    let mut before = None;
    start(Box::new(move || before = Some(run(before.take()))));
}

#[expect(clippy::disallowed_methods, reason = "what other modules use instead stands on it")]
fn start(run: Box<dyn FnMut()>) {
    Effect::new(run);
}
