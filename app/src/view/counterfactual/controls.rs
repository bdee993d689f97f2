//! The form: which decisions, which setting, which way. What is typed is read when something is to be computed.

use leptos::prelude::*;
use radixscope_panels::counterfactual::{FieldTexts, Form, latest_formula};

use crate::store::Store;
use crate::view::control::view;

/// What is typed and chosen.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub(super) amount: RwSignal<String>,
    by_time: RwSignal<bool>,
    pub(super) round_robin: RwSignal<bool>,
    pub(super) weight: RwSignal<String>,
    pub(super) temperature: RwSignal<String>,
    credit: RwSignal<String>,
    with_model: RwSignal<bool>,
}

impl Inputs {
    pub(super) fn new() -> Self {
        let Form { amount, by_time, round_robin, weight, temperature, credit, with_model } = Form::default();
        Self {
            amount: RwSignal::new(amount),
            by_time: RwSignal::new(by_time),
            round_robin: RwSignal::new(round_robin),
            weight: RwSignal::new(weight),
            temperature: RwSignal::new(temperature),
            credit: RwSignal::new(credit),
            with_model: RwSignal::new(with_model),
        }
    }

    /// Takes a setting into the form.
    pub(super) fn set(self, (weight, temperature): (f64, f64)) {
        self.round_robin.set(false);
        self.weight.set(weight.to_string());
        self.temperature.set(temperature.to_string());
    }

    /// The form as it stands.
    pub(super) fn form(self) -> Form {
        Form {
            amount: self.amount.get_untracked(),
            by_time: self.by_time.get_untracked(),
            round_robin: self.round_robin.get_untracked(),
            weight: self.weight.get_untracked(),
            temperature: self.temperature.get_untracked(),
            credit: self.credit.get_untracked(),
            with_model: self.with_model.get_untracked(),
        }
    }
}

#[component]
fn Number(
    id: &'static str,
    #[prop(into)] label: Signal<String>,
    value: RwSignal<String>,
    #[prop(into, optional)] disabled: Signal<bool>,
    #[prop(into)] title: Signal<String>,
) -> impl IntoView {
    view! {
        <label class="cf-field" title=title>
            <span>{label}</span>
            <input type="number" min="0" step="any" inputmode="decimal" data-testid=id prop:value=value
                prop:disabled=disabled on:input=move |event| value.set(event_target_value(&event))/>
        </label>
    }
}

/// The form. `compute` and `sweep` begin the computation.
#[component]
pub(super) fn Controls(
    store: Store,
    inputs: Inputs,
    #[prop(into)] busy: Signal<bool>,
    #[prop(into)] again: Signal<bool>,
    compute: Callback<()>,
    sweep: Callback<()>,
    /// What is under way: beside the buttons, so that nothing jumps.
    children: Children,
) -> impl IntoView {
    let texts = Memo::new(move |_| {
        let pool = store.compared_pool();
        FieldTexts::of(store.on_beat(|shown| latest_formula(shown, pool)))
    });
    let text = move |of: fn(&FieldTexts) -> String| Memo::new(move |_| texts.with(of));
    let turns = inputs.round_robin;
    let by_time = inputs.by_time;
    let model = inputs.with_model;
    let no_credit = Memo::new(move |_| turns.get() || texts.with(|texts| !texts.has_credit));
    let radio = |name: &'static str,
                 id: &'static str,
                 on: Signal<bool>,
                 choose: Callback<()>,
                 text: &'static str| {
        view! {
            <label class="cf-radio"><input type="radio" name=name data-testid=id prop:checked=on on:change=move |_| choose.run(())/>{text}</label>
        }
    };
    let set = |signal: RwSignal<bool>, value: bool| Callback::new(move |()| signal.set(value));
    view! {
        <form class="cf-form" on:submit=move |event| { event.prevent_default(); compute.run(()); }>
            <div class="cf-line">
                <label class="cf-field">
                    <span>"Latest"</span>
                    <input type="number" min="1" step="1" data-testid="cf-last" prop:value=inputs.amount
                        on:input=move |event| inputs.amount.set(event_target_value(&event))/>
                </label>
                <select aria-label="Unit" data-testid="cf-unit" on:change=move |event| by_time.set(event_target_value(&event) == "s")>
                    <option value="n">"decisions"</option>
                    <option value="s">"seconds"</option>
                </select>
                <fieldset><legend class="hidden">"Router"</legend>
                    {radio("cf-router", "cf-by-cost", Signal::derive(move || !turns.get()), set(turns, false), "KV-aware")}
                    {radio("cf-router", "cf-round-robin", turns.into(), set(turns, true), "Round-robin")}
                </fieldset>
                <Number id="cf-weight" value=inputs.weight disabled=turns label=text(|texts| texts.weight.to_owned())
                    title=text(|texts| texts.weight_title.clone())/>
                <Number id="cf-temperature" value=inputs.temperature disabled=turns label="router_temperature".to_owned()
                    title=text(|texts| texts.temperature_title.clone())/>
                <Number id="cf-credit" value=inputs.credit disabled=no_credit label="overlap_score_credit".to_owned()
                    title=text(|texts| texts.credit_title.clone())/>
            </div>
            <div class="cf-line">
                <fieldset><legend class="hidden">"Way"</legend>
                    {radio("cf-way", "cf-way-frozen", Signal::derive(move || !model.get()), set(model, false), "Replay, fixed state")}
                    {radio("cf-way", "cf-way-model", model.into(), set(model, true), "Replay and simulate")}
                </fieldset>
                <button type="submit" class="primary" data-testid="cf-compute" prop:disabled=busy>
                    {move || if again.get() { "Recompute" } else { "Compute" }}
                </button>
                <button type="button" class="cf-button" data-testid="cf-sweep" prop:disabled=busy on:click=move |_| sweep.run(())>
                    "Sweep overlap_score_weight × router_temperature"
                </button>
                {children()}
            </div>
        </form>
    }
}
