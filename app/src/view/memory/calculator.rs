//! The calculator's form. What is typed is in the address; each fault stands at its field.

use leptos::prelude::*;
use radixscope_insight::capacity::{CapacityForm, Convention, Engine, Field, PRESETS, fraction_setting};
use radixscope_insight::memory::live_facts;
use radixscope_insight::recent_window::lengths;
use radixscope_panels::memory::{FieldGroup, FieldLabels, fill_from_live};

use super::Calculator;
use super::remedies::Remedies;
use super::results::Results;
use crate::view::control::view;

#[component]
pub(super) fn CalculatorView(calculator: Calculator) -> impl IntoView {
    view! {
        <section class="cap" aria-labelledby="cap-title" data-testid="cap">
            <h3 id="cap-title">"Capacity calculator"</h3>
            <div class="cap-columns">
                <FormView calculator/>
                <div class="cap-right">
                    <Results calculator/>
                    <Remedies calculator/>
                </div>
            </div>
        </section>
    }
}

#[component]
fn FormView(calculator: Calculator) -> impl IntoView {
    let Calculator { store, shown } = calculator;
    let filled = RwSignal::new(String::new());
    let preset = move |event| {
        let place = event_target_value(&event).parse().unwrap_or(0);
        calculator.change(|form| *form = CapacityForm::of_preset(place));
    };
    let engine = move |event| {
        let name = event_target_value(&event);
        let engine = Engine::ALL.into_iter().find(|engine| engine.label() == name);
        if let Some(engine) = engine {
            calculator.change(|form| {
                form.engine = engine;
                form.convention = Convention::of(engine);
            });
        }
    };
    let chosen_engine = Memo::new(move |_| shown.with(|shown| shown.form.engine));
    let convention = Memo::new(move |_| shown.with(|shown| shown.form.convention));
    let by_shape = Memo::new(move |_| shown.with(|shown| shown.form.by_shape));
    let fill = move |_| {
        let now = store.now_ms();
        let (facts, lengths) = store.peek(|shown| (live_facts(shown, shown.pool), lengths(shown, now)));
        calculator.change(|form| filled.set(fill_from_live(form, &facts, lengths)));
    };
    let fields = move |group: FieldGroup| {
        group.fields().map(|field| view! { <NumberField calculator field/> }).collect_view()
    };
    let other_way = move || shown.with(|shown| shown.other_convention());
    view! {
        <form class="cap-form" on:submit=|event| event.prevent_default()>
            <div class="cap-line">
                <label for="cap-preset">"Preset"</label>
                <select id="cap-preset" data-testid="cap-preset" on:change=preset>
                    {PRESETS.iter().enumerate().map(|(at, preset)| view! {
                        <option value=at selected=move || shown.with(|shown| shown.form.preset == at)>{preset.name}</option>
                    }).collect_view()}
                </select>
                <button type="button" class="cf-button" data-testid="cap-take" on:click=fill>"Take from live"</button>
            </div>
            <p class="help-line" aria-live="polite" data-testid="cap-taken">{filled}</p>
            <div class="cap-line">
                <label for="cap-engine">"Engine"</label>
                <select id="cap-engine" data-testid="cap-engine" on:change=engine>
                    {Engine::ALL.map(|engine| view! {
                        <option selected=move || chosen_engine.get() == engine>{engine.label()}</option>
                    }).into_iter().collect_view()}
                </select>
                <span class="quiet">"sets the fraction by "<code>{move || fraction_setting(chosen_engine.get())}</code></span>
            </div>
            <fieldset class="cap-group">
                <legend>"The fraction is"</legend>
                {Convention::ALL.map(|of| view! {
                    <label class="check-row"><input type="radio" name="cap-of" prop:checked=move || convention.get() == of
                        data-testid=format!("cap-of-{}", if of == Convention::WholeMemory { "whole" } else { "free" })
                        on:change=move |_| calculator.change(|form| form.convention = of)/>
                        <span>{of.label()}": "<span class="mono">{of.formula()}</span></span></label>
                }).into_iter().collect_view()}
                <p class="help-line">{move || other_way()}</p>
            </fieldset>
            <div class="cap-grid">{fields(FieldGroup::Memory)}</div>
            <fieldset class="cap-group">
                <legend>"KV bytes per token"</legend>
                <div class="cap-line">
                    <label class="check-row"><input type="radio" name="cap-by" data-testid="cap-by-shape" prop:checked=move || by_shape.get()
                        on:change=move |_| calculator.change(|form| form.by_shape = true)/>"from the model's shape"</label>
                    <label class="check-row"><input type="radio" name="cap-by" data-testid="cap-by-token" prop:checked=move || !by_shape.get()
                        on:change=move |_| calculator.change(|form| form.by_shape = false)/>"as given"</label>
                </div>
                <div class="cap-grid">
                    <Show when=move || by_shape.get() fallback=move || fields(FieldGroup::BytesPerToken)>
                        {fields(FieldGroup::Shape)}
                    </Show>
                </div>
            </fieldset>
            <fieldset class="cap-group">
                <legend>"Traffic"</legend>
                <div class="cap-grid">{fields(FieldGroup::Traffic)}</div>
            </fieldset>
        </form>
    }
}

#[component]
fn NumberField(calculator: Calculator, field: Field) -> impl IntoView {
    let input = field.input;
    let FieldLabels { id, label, placeholder } = FieldLabels::of(field);
    let fault_id = format!("{id}-fault");
    let text = Memo::new(move |_| calculator.shown.with(|shown| shown.form.text(input).to_owned()));
    let fault = Memo::new(move |_| calculator.shown.with(|shown| shown.fault(input)));
    view! {
        <div class="cap-field">
            <label for=id.clone()>{label}</label>
            <input type="text" inputmode="decimal" autocomplete="off" id=id.clone() data-testid=id placeholder=placeholder
                prop:value=text aria-invalid=move || fault.with(Option::is_some).to_string() aria-describedby=fault_id.clone()
                on:input=move |event| {
                    let typed = event_target_value(&event);
                    calculator.change(|form| form.set(input, typed));
                }/>
            <p class="field-fault" id=fault_id.clone() data-testid=fault_id aria-live="polite">{fault}</p>
        </div>
    }
}
