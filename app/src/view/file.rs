//! Files: text or a picture given to the reader as one that the browser saves, and one taken from the reader. Nothing
//! leaves the page.

use std::time::Duration;

use crate::view::control::view;
use js_sys::Array;
use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, DragEvent, File, FileList, HtmlAnchorElement, HtmlInputElement, Url};

/// How long the file stays with the page for the browser to take it.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Has the browser save `text`.
pub(super) fn offer(name: &str, kind: &str, text: &str) -> Result<(), JsValue> {
    let bag = BlobPropertyBag::new();
    bag.set_type(kind);
    offer_blob(name, &Blob::new_with_str_sequence_and_options(&Array::of1(&text.into()), &bag)?)
}

/// Has the browser save what it holds.
pub(super) fn offer_blob(name: &str, blob: &Blob) -> Result<(), JsValue> {
    let url = Url::create_object_url_with_blob(blob)?;
    let link: HtmlAnchorElement = document().create_element("a")?.unchecked_into();
    link.set_href(&url);
    link.set_download(name);
    link.click();
    // Some browsers read the address only after the click.
    set_timeout(move || drop(Url::revoke_object_url(&url)), KEPT_FOR);
    Ok(())
}

/// Takes files, chosen by the label of the input `{id}-file` among the children, or dropped; one at a time unless `multiple`.
#[component]
pub(super) fn FileDrop(
    id: &'static str,
    /// What the browser offers to choose from.
    accept: &'static str,
    /// Id of the element that says what the file is.
    #[prop(optional)]
    described_by: Option<&'static str>,
    /// Whether several are taken together.
    #[prop(optional)]
    multiple: bool,
    #[prop(into)] on_files: Callback<Vec<File>>,
    children: Children,
) -> impl IntoView {
    let over = RwSignal::new(false);
    let give = move |files: Option<FileList>| {
        let Some(files) = files else { return };
        let most = if multiple { files.length() } else { files.length().min(1) };
        let files: Vec<File> = (0..most).filter_map(|at| files.get(at)).collect();
        if !files.is_empty() {
            on_files.run(files);
        }
    };
    let drop = move |event: DragEvent| {
        event.prevent_default();
        over.set(false);
        give(event.data_transfer().and_then(|data| data.files()));
    };
    let choose = move |event: leptos::ev::Event| {
        let input = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        let Some(input) = input else { return };
        give(input.files());
        // The same file once more is a change, too: it may have been written anew.
        input.set_value("");
    };
    let input_id = format!("{id}-file");
    view! {
        <div class="drop" class:over=move || over.get() data-testid=format!("{id}-drop")
            on:dragover=move |event: DragEvent| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false) on:drop=drop>
            <input type="file" class="hidden" id=input_id.clone() accept=accept multiple=multiple data-testid=input_id
                aria-describedby=described_by on:change=choose/>
            {children()}
        </div>
    }
}
