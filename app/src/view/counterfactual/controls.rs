//! The form: which decisions, which setting, which way. What is typed is read when something is to be computed.

use leptos::prelude::*;
use radixscope_insight::counterfactual::DecisionRange;
use radixscope_router::numbers::{OVERLAP_SCORE_CREDIT, TEMPERATURE};
use radixscope_router::{Formula, RouterOverrides, RouterSettings};

use super::run::RunRequest;
use crate::store::{Store, ViewContext};
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
        Self {
            amount: RwSignal::new("1000".to_owned()),
            by_time: RwSignal::new(false),
            round_robin: RwSignal::new(false),
            weight: RwSignal::new("1.5".to_owned()),
            temperature: RwSignal::new("0".to_owned()),
            credit: RwSignal::new("1".to_owned()),
            with_model: RwSignal::new(false),
        }
    }

    /// Takes a setting into the form.
    pub(super) fn set(self, (weight, temperature): (f64, f64)) {
        self.round_robin.set(false);
        self.weight.set(weight.to_string());
        self.temperature.set(temperature.to_string());
    }

    /// Which decisions.
    ///
    /// # Errors
    /// What cannot be read, as text.
    pub(super) fn span(self) -> Result<DecisionRange, String> {
        let text = self.amount.get_untracked();
        let number: Option<u32> = text.trim().parse().ok().filter(|&n| n > 0);
        let is_time = self.by_time.get_untracked();
        match (number, is_time) {
            (Some(seconds), true) => Ok(DecisionRange::Ms(u64::from(seconds) * 1_000)),
            (Some(last @ ..=10_000), false) => Ok(DecisionRange::Last(last)),
            (_, false) => Err(format!("{text:?} decisions: invalid, 1 to 10000 are retained")),
            (None, true) => Err(format!("{text:?} seconds: invalid")),
        }
    }

    /// Everything.
    ///
    /// # Errors
    /// What cannot be read, as text.
    pub(super) fn request(self) -> Result<RunRequest, String> {
        let number = |name: &str, text: RwSignal<String>| {
            let text = text.get_untracked();
            crate::format::decimal(&text).ok_or_else(|| format!("{name} {text:?} is not a number"))
        };
        let settings = if self.round_robin.get_untracked() {
            RouterOverrides::round_robin()
        } else {
            RouterOverrides {
                overlap_score_weight: Some(number("overlap_score_weight", self.weight)?),
                overlap_score_credit: Some(number("overlap_score_credit", self.credit)?),
                router_temperature: Some(number("router_temperature", self.temperature)?),
                ..RouterOverrides::default()
            }
        };
        settings.validate().map_err(|error| error.to_string())?;
        Ok(RunRequest { span: self.span()?, settings, with_model: self.with_model.get_untracked() })
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
    let formula = Memo::new(move |_| {
        let pool = store.compared_pool();
        let latest = |shown: &ViewContext<'_>| {
            let latest = shown.decisions().newest_first();
            let mut of_pool = latest.filter(|decided| pool.is_none_or(|pool| decided.pool == pool)).take(100);
            of_pool.find_map(|decided| decided.decision.formula)
        };
        store.on_beat(latest).unwrap_or_default()
    });
    let factor = move || RouterSettings::new(formula.get()).prefill_factor_number();
    let turns = inputs.round_robin;
    let by_time = inputs.by_time;
    let model = inputs.with_model;
    let no_credit = Memo::new(move |_| turns.get() || formula.get() == Formula::A);
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
                <Number id="cf-weight" value=inputs.weight disabled=turns label=Memo::new(move |_| factor().name.to_owned())
                    title=Memo::new(move |_| format!("{}: factor of the prompt blocks still to compute", factor().option_text(formula.get())))/>
                <Number id="cf-temperature" value=inputs.temperature disabled=turns label="router_temperature".to_owned()
                    title=Memo::new(move |_| format!("{}: 0 takes the lowest cost, more draws", TEMPERATURE.option_text(formula.get())))/>
                <Number id="cf-credit" value=inputs.credit disabled=no_credit label="overlap_score_credit".to_owned()
                    title=Memo::new(move |_| match formula.get() {
                        Formula::A => "Dynamo 0.8 to 1.1 has no overlap score credit".to_owned(),
                        formula => {
                            let option = OVERLAP_SCORE_CREDIT.option_text(formula);
                            format!("{option}: credit of a prompt block cached on the worker")
                        }
                    })/>
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
