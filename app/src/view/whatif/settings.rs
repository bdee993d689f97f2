//! The router's settings: formula by version, and each number that it knows as slider and field, under Dynamo's own name.

use leptos::prelude::*;
use radixscope_router::{Formula, Role, RouterSettings};

use super::asking::{InputFault, QueryState};
use super::field::FaultOf;
use crate::store::Store;
use crate::view::control::view;

/// Versions that decide differently: a version that stands for them, and who they are.
const VERSIONS: [(&str, &str); 6] = [
    ("0.9", "Dynamo 0.8–0.9"),
    ("1.1", "Dynamo 1.0–1.1"),
    ("1.2", "Dynamo 1.2"),
    ("1.3", "Dynamo 1.3"),
    ("1.5", "Dynamo 1.4–1.5"),
    ("1.6", "Dynamo 1.6–1.7"),
];

fn version(options: &RouterSettings) -> &'static str {
    let is = |(version, _): &&(&str, &str)| {
        RouterSettings::of_version(version)
            .is_some_and(|of| of.formula == options.formula && of.tie_break == options.tie_break)
    };
    VERSIONS.iter().find(is).map_or("", |(version, _)| version)
}

/// The same settings in another version: what both know is kept.
fn in_version(before: &RouterSettings, version: &str) -> RouterSettings {
    let Some(mut options) = RouterSettings::of_version(version) else { return *before };
    for (number, value) in before.numbers() {
        if number.formulas.contains(&options.formula) && number.formulas.contains(&before.formula) {
            options.set(number.name, value);
        }
    }
    options.set_prefill_factor(before.prefill_factor());
    options
}

/// Where a slider ends; the field beside it takes more.
fn slider_most(name: &str, most: Option<f64>) -> f64 {
    most.unwrap_or(match name {
        "decode_active_request_weight" => 50.0,
        "router_temperature" => 2.0,
        _ => 4.0,
    })
}

#[component]
pub(super) fn Settings(store: Store, asking: QueryState, fault: Memo<Option<InputFault>>) -> impl IntoView {
    let options = asking.options;
    let formula = Memo::new(move |_| options.with(|options| options.formula));
    let choose = move |event| {
        let version = event_target_value(&event);
        options.update(|options| *options = in_version(options, &version));
    };
    let numbers = move || {
        let formula = formula.get();
        let known = RouterSettings::new(formula).numbers().into_iter().map(|(number, _)| number);
        known
            .filter(|number| number.formulas.contains(&formula))
            .map(|number| {
                let value = Memo::new(move |_| {
                    let all = options.get().numbers();
                    all.into_iter().find(|(of, _)| of.name == number.name).map_or(0.0, |(_, value)| value)
                });
                let set = move |event| {
                    if let Some(value) = crate::format::decimal(&event_target_value(&event)) {
                        options.update(|options| {
                            options.set(number.name, value);
                        });
                    }
                };
                let help = format!("{}. {}", number.meaning, number.option_text(formula));
                let most = slider_most(number.name, number.most);
                let id = format!("set-{}", number.name);
                view! {
                    <div class="setting">
                        <label for=id.clone()>{number.name}" "<span class="quiet">{number.symbol}</span></label>
                        <input type="range" min="0" max=most step="0.05" prop:value=move || value.get().to_string()
                            on:input=set aria-label=format!("{}, slider", number.name) aria-describedby=format!("{id}-help")
                            data-testid=format!("slider-{}", number.name)/>
                        <input type="number" id=id.clone() min="0" max=number.most step="any" prop:value=move || value.get().to_string()
                            on:change=set data-testid=id.clone()/>
                        <p id=format!("{id}-help") class="help-line">{help}</p>
                    </div>
                }
            })
            .collect_view()
    };
    let has_roles = move || matches!(formula.get(), Formula::D | Formula::E);
    let role = move |event| {
        let role = match event_target_value(&event).as_str() {
            "prefill" => Role::Prefill,
            "decode" => Role::Decode,
            _ => Role::Aggregated,
        };
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
                    on:click=move |_| options.update(|options| {
                        if let Some(defaults) = RouterSettings::of_version(version(options)) {
                            *options = defaults;
                        }
                    })>"Dynamo's defaults"</button>
            </div>
        </fieldset>
    }
}
