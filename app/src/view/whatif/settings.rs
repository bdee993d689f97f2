//! The router's settings: formula by version, and each number that it knows as slider and field, under Dynamo's own name.

use leptos::prelude::*;
use radixscope_panels::whatif::{
    InputFault, Setting, VERSIONS, defaults_of, has_roles, in_version, role_named, settings, version,
};

use super::asking::QueryState;
use super::field::FaultOf;
use crate::store::Store;
use crate::view::control::view;

#[component]
pub(super) fn Settings(store: Store, asking: QueryState, fault: Memo<Option<InputFault>>) -> impl IntoView {
    let options = asking.options;
    let formula = Memo::new(move |_| options.with(|options| options.formula));
    let choose = move |event| {
        let version = event_target_value(&event);
        options.update(|options| *options = in_version(options, &version));
    };
    let number = move |setting: Setting| {
        let (name, symbol) = (setting.name, setting.symbol);
        let value = Memo::new(move |_| options.with(|options| setting.value(options)));
        let set = move |event| {
            if let Some(value) = crate::format::decimal(&event_target_value(&event)) {
                options.update(|options| {
                    options.set(name, value);
                });
            }
        };
        let id = format!("set-{name}");
        view! {
            <div class="setting">
                <label for=id.clone()>{name}" "<span class="quiet">{symbol}</span></label>
                <input type="range" min="0" max=setting.slider_most step="0.05" prop:value=move || value.get().to_string()
                    on:input=set aria-label=format!("{name}, slider") aria-describedby=format!("{id}-help")
                    data-testid=format!("slider-{name}")/>
                <input type="number" id=id.clone() min="0" max=setting.most step="any" prop:value=move || value.get().to_string()
                    on:change=set data-testid=id.clone()/>
                <p id=format!("{id}-help") class="help-line">{setting.help()}</p>
            </div>
        }
    };
    let numbers = move || settings(formula.get()).into_iter().map(number).collect_view();
    let has_roles = move || has_roles(formula.get());
    let role = move |event| {
        let role = role_named(&event_target_value(&event));
        options.update(|options| options.role = role);
    };
    let track =
        move |event| options.update(|options| options.track_prefill_tokens = event_target_checked(&event));
    view! {
        <fieldset class="settings">
            <legend>"Router settings"</legend>
            <div class="row">
                <label for="whatif-version">"Dynamo version"</label>
                <select id="whatif-version" on:change=choose prop:value=move || options.with(version) data-testid="whatif-version">
                    {VERSIONS.map(|(value, label)| view! {
                        <option value=value selected=move || options.with(version) == value>{label}</option>
                    }).into_iter().collect_view()}
                </select>
            </div>
            {move || numbers()}
            <Show when=has_roles>
                <div class="row">
                    <label for="whatif-role">"Pool"</label>
                    <select id="whatif-role" on:change=role>
                        <option value="aggregated">"aggregated"</option>
                        <option value="prefill">"prefill"</option>
                        <option value="decode">"decode"</option>
                    </select>
                    <label class="check-row"><input type="checkbox" prop:checked=move || options.with(|o| o.track_prefill_tokens) on:change=track/>
                        " prefill tokens tracked"</label>
                </div>
            </Show>
            <FaultOf fault fields=&["options"]/>
            <div class="row buttons">
                <button class="plain" on:click=move |_| asking.use_deployed(store) data-testid="whatif-deployed"
                    title="Settings of the decision that is scored, else those that the router runs with now, as far as they are reported">"As recorded"</button>
                <button class="plain" data-testid="whatif-defaults"
                    on:click=move |_| options.update(|options| *options = defaults_of(options))>"Dynamo's defaults"</button>
            </div>
        </fieldset>
    }
}
