//! A component in the document: mounted over a store, found by selectors, acted on by the browser's own events. A test waits for what it
//! expects to see; it never sleeps.

use std::any::Any;
use std::cell::{Cell, RefCell};

use gloo_timers::future::TimeoutFuture;
use js_sys::{Array, Function, Promise};
use leptos::prelude::*;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Element, HtmlElement};

use crate::store::Store;
use crate::url::Address;

/// The page's style sheets, those that give components their sizes and colours.
const STYLES: [&str; 13] = [
    include_str!("../../../../style/tokens.css"),
    include_str!("../../../../style/base.css"),
    include_str!("../../../../style/bar.css"),
    include_str!("../../../../style/panel.css"),
    include_str!("../../../../style/table.css"),
    include_str!("../../../../style/moments.css"),
    include_str!("../../../../style/chart.css"),
    include_str!("../../../../style/dialog.css"),
    include_str!("../../../../style/tree.css"),
    include_str!("../../../../style/tree-paint.css"),
    include_str!("../../../../style/tree-side.css"),
    include_str!("../../../../style/tree-grid.css"),
    include_str!("../../../../style/virtual-table.css"),
];
/// A component fills the window, above what the runner of the tests shows.
const HOST_STYLE: &str = "position: fixed; inset: 0; min-height: 0; z-index: 1";
/// Id of the element that components are mounted in.
const HOST: &str = "component";
/// How often something that is waited for is looked at, and how long in all.
const LOOK_EVERY_MS: u32 = 10;
const PATIENCE_MS: f64 = 5_000.0;

/// A component in the document; it leaves with this.
pub(super) struct Mounted {
    /// What it shows.
    pub(super) store: Store,
}

thread_local! {
    /// What keeps the component mounted. Not in [`Mounted`]: a test that fails drops nothing, and what it leaves must not listen to the
    /// keys of the next one.
    static HANDLE: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    /// What changes parts of the browser back.
    static REPLACED: RefCell<Vec<Function>> = const { RefCell::new(Vec::new()) };
}

/// Mounts what `view` makes of a store and of a dark theme, at an address such as `?view=tree`.
pub(super) fn mount<V: IntoView + 'static>(
    query: &str,
    view: impl FnOnce(Store, Memo<bool>) -> V + 'static,
) -> Mounted {
    prepare();
    unmount();
    let (address, misread) = Address::parse(query);
    assert!(misread.is_empty(), "{query}: {misread:?}");
    // It outlives the component, as the page's does: what is on its way when a test ends finds it.
    let owner = Owner::new();
    let store = owner.with(|| Store::new((address, misread)));
    std::mem::forget(owner);
    let handle = leptos::mount::mount_to(host(), move || view(store, Memo::new(|_| true)).into_any());
    HANDLE.set(Some(Box::new(handle)));
    Mounted { store }
}

/// What every test needs once: style sheets and the executor of effects.
fn prepare() {
    thread_local! {
        static IS_DONE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_DONE.replace(true) {
        return;
    }
    crate::tasks::run_in_slices();
    let style = document().create_element("style").unwrap();
    style.set_text_content(Some(&STYLES.concat()));
    document().head().unwrap().append_child(&style).unwrap();
    let root = document().document_element().unwrap();
    root.set_attribute("data-theme", "dark").unwrap();
    root.set_attribute("lang", "en").unwrap();
}

/// An empty place for a component; that of a test that failed before goes.
fn host() -> HtmlElement {
    document().get_element_by_id(HOST).inspect(Element::remove);
    let host: HtmlElement = document().create_element("main").unwrap().unchecked_into();
    host.set_id(HOST);
    host.set_class_name("panels single");
    host.set_attribute("style", HOST_STYLE).unwrap();
    document().body().unwrap().append_child(&host).unwrap();
    host
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount();
    }
}

/// Takes the component out of the document, and what stood in for parts of the browser.
fn unmount() {
    drop(HANDLE.take());
    restore();
}

/// Lets something stand in for a part of the browser until [`restore`] is called, or the component leaves: a script that changes
/// something and returns a function that changes it back.
pub(super) fn replace(arguments: &str, body: &str, given: &[JsValue]) {
    let back = script(arguments, body, given);
    REPLACED.with_borrow_mut(|replaced| replaced.push(back.unchecked_into()));
}

/// Everything in the browser is itself again.
pub(super) fn restore() {
    for back in REPLACED.take().into_iter().rev() {
        back.call0(&JsValue::NULL).unwrap();
    }
}

/// The first element that matches, if any.
pub(super) fn find(selector: &str) -> Option<HtmlElement> {
    document().query_selector(&format!("#{HOST} {selector}")).unwrap().map(JsCast::unchecked_into)
}

/// The element that must be there.
pub(super) fn get(selector: &str) -> HtmlElement {
    find(selector).unwrap_or_else(|| panic!("{selector} is not in the document"))
}

/// All elements that match.
pub(super) fn all(selector: &str) -> Vec<HtmlElement> {
    let of = format!("#{HOST} {selector}");
    let found = script("of", "return [...document.querySelectorAll(of)]", &[of.into()]);
    found.unchecked_into::<Array>().iter().map(JsCast::unchecked_into).collect()
}

/// An attribute of the element that must be there.
pub(super) fn attribute(selector: &str, name: &str) -> Option<String> {
    get(selector).get_attribute(name)
}

/// Text of the element that must be there.
pub(super) fn text(selector: &str) -> String {
    get(selector).text_content().unwrap_or_default()
}

/// Id of what has the focus.
pub(super) fn focused_id() -> String {
    document().active_element().map(|element| element.id()).unwrap_or_default()
}

/// Waits until `find` gives something.
pub(super) async fn until<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let began_ms = js_sys::Date::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(js_sys::Date::now() - began_ms < PATIENCE_MS, "not within {PATIENCE_MS} ms: {what}");
        TimeoutFuture::new(LOOK_EVERY_MS).await;
    }
}

/// Waits until something is so.
pub(super) async fn until_true(what: &str, is_so: impl Fn() -> bool) {
    until(what, || is_so().then_some(())).await;
}

/// Waits until a value is the expected one; says which it is instead.
pub(super) async fn until_eq<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, now: impl Fn() -> T) {
    let began_ms = js_sys::Date::now();
    loop {
        let found = now();
        if found == expected {
            return;
        }
        let waited_ms = js_sys::Date::now() - began_ms;
        assert!(waited_ms < PATIENCE_MS, "{what}: {found:?}, expected {expected:?}");
        TimeoutFuture::new(LOOK_EVERY_MS).await;
    }
}

/// Two frames are drawn, with all tasks between them: whatever was going to happen has.
pub(super) async fn settle() {
    for _ in 0..2 {
        let mut frame = |resolve: Function, _: Function| {
            let then = Closure::once_into_js(move || resolve.call0(&JsValue::NULL));
            window().request_animation_frame(then.unchecked_ref()).unwrap();
        };
        JsFuture::from(Promise::new(&mut frame)).await.unwrap();
        TimeoutFuture::new(0).await;
    }
}

/// Calls a function of JavaScript: its body, names of its arguments, and the arguments.
pub(super) fn script(arguments: &str, body: &str, given: &[JsValue]) -> JsValue {
    let function = Function::new_with_args(arguments, body);
    let given: Array = given.iter().collect();
    function.apply(&JsValue::NULL, &given).unwrap_or_else(|error| panic!("{body}: {error:?}"))
}

/// Dispatches an event of a class of the browser's. `false`: somebody prevented what the browser does itself.
pub(super) fn dispatch(element: &Element, class: &str, name: &str, options: Value) -> bool {
    let body = "return element.dispatchEvent(new window[type](name, \
                Object.assign({bubbles: true, cancelable: true, composed: true}, JSON.parse(options))))";
    let given = [element.into(), class.into(), name.into(), options.to_string().into()];
    script("element, type, name, options", body, &given).is_truthy()
}

/// Presses a key on what has the focus. `false`: somebody took it.
pub(super) fn press(key: &str) -> bool {
    press_with(key, json!({}))
}

/// The same with more about the event, such as `{"ctrlKey": true}`.
pub(super) fn press_with(key: &str, more: Value) -> bool {
    let focused = document().active_element().unwrap();
    let mut options = json!({ "key": key });
    options.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    dispatch(&focused, "KeyboardEvent", "keydown", options)
}

/// A place within an element, as shares of its width and height, in the window.
pub(super) fn place(selector: &str, (across, down): (f64, f64)) -> (f64, f64) {
    let rect = get(selector).get_bounding_client_rect();
    ((rect.left() + across * rect.width()).round(), (rect.top() + down * rect.height()).round())
}

/// What the pointer does at a place of the window.
pub(super) fn pointer(selector: &str, name: &str, (x, y): (f64, f64), more: Value) -> bool {
    let class = match name {
        "wheel" => "WheelEvent",
        "click" | "dblclick" => "MouseEvent",
        _ => "PointerEvent",
    };
    let is_down = !matches!(name, "pointerup" | "pointerenter" | "pointerleave" | "wheel");
    let mut options = json!({
        "clientX": x, "clientY": y, "pointerId": 1, "isPrimary": true, "pointerType": "mouse", "button": 0,
        "buttons": u8::from(is_down),
    });
    options.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    dispatch(&get(selector), class, name, options)
}

/// Presses at the first place, moves to each other one, and releases at the last.
pub(super) fn drag(selector: &str, places: &[(f64, f64)], more: &Value) {
    pointer(selector, "pointerdown", places[0], more.clone());
    for place in &places[1..] {
        pointer(selector, "pointermove", *place, more.clone());
    }
    pointer(selector, "pointerup", places[places.len() - 1], more.clone());
}
