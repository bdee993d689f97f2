//! The calculator's form. What is typed is in the address; each fault stands at its field.

use leptos::prelude::*;
use radixscope_insight::capacity::{
    CapacityForm, Convention, Engine, Field, FieldFault, Input, PRESETS, fraction_setting,
};
use radixscope_insight::memory::live_facts;
use radixscope_insight::recent_window as live;

use super::Calculator;
use super::remedies::Remedies;
use super::results::Results;
use crate::format;
use crate::view::control::view;

#[component]
pub(super) fn CalculatorView(calculator: Calculator) -> impl IntoView {
    let faults = Memo::new(move |_| {
        calculator.read.with(|read| match read {
            Ok(inputs) => match inputs.capacity() {
                Ok(_) => Vec::new(),
                Err(error) => vec![FieldFault { input: error.input(), message: error.to_string() }],
            },
            Err(faults) => faults.clone(),
        })
    });
    view! {
        <section class="cap" aria-labelledby="cap-title" data-testid="cap">
            <h3 id="cap-title">"Capacity calculator"</h3>
            <div class="cap-columns">
                <FormView calculator faults/>
                <div class="cap-right">
                    <Results calculator faults/>
                    <Remedies calculator/>
                </div>
            </div>
        </section>
    }
}

#[component]
fn FormView(calculator: Calculator, faults: Memo<Vec<FieldFault>>) -> impl IntoView {
    let form = calculator.form;
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
    let chosen_engine = Memo::new(move |_| form.with(|form| form.engine));
    let convention = Memo::new(move |_| form.with(|form| form.convention));
    let by_shape = Memo::new(move |_| form.with(|form| form.by_shape));
    let fill = move |_| filled.set(fill_from_live(calculator));
    let fields = move |wanted: fn(Field) -> bool| {
        Field::ALL
            .into_iter()
            .filter(|&field| wanted(field))
            .map(|field| view! { <NumberField calculator faults field/> })
            .collect_view()
    };
    let other_way = move || {
        let (engine, convention) = (chosen_engine.get(), convention.get());
        (Convention::of(engine) != convention).then(|| {
            format!("{} itself counts the other way: {}.", engine.label(), Convention::of(engine).formula())
        })
    };
    view! {
        <form class="cap-form" on:submit=|event| event.prevent_default()>
            <div class="cap-line">
                <label for="cap-preset">"Preset"</label>
                <select id="cap-preset" data-testid="cap-preset" on:change=preset>
                    {PRESETS.iter().enumerate().map(|(at, preset)| view! {
                        <option value=at selected=move || form.with(|form| form.preset == at)>{preset.name}</option>
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
            <div class="cap-grid">{fields(|field| field.input != Input::KvBytesPerToken && !field.is_shape() && !is_traffic(field))}</div>
            <fieldset class="cap-group">
                <legend>"KV bytes per token"</legend>
                <div class="cap-line">
                    <label class="check-row"><input type="radio" name="cap-by" data-testid="cap-by-shape" prop:checked=move || by_shape.get()
                        on:change=move |_| calculator.change(|form| form.by_shape = true)/>"from the model's shape"</label>
                    <label class="check-row"><input type="radio" name="cap-by" data-testid="cap-by-token" prop:checked=move || !by_shape.get()
                        on:change=move |_| calculator.change(|form| form.by_shape = false)/>"as given"</label>
                </div>
                <div class="cap-grid">
                    <Show when=move || by_shape.get() fallback=move || fields(|field| field.input == Input::KvBytesPerToken)>
                        {fields(Field::is_shape)}
                    </Show>
                </div>
            </fieldset>
            <fieldset class="cap-group">
                <legend>"Traffic"</legend>
                <div class="cap-grid">{fields(is_traffic)}</div>
            </fieldset>
        </form>
    }
}

/// What depends on the requests; may be left empty.
fn is_traffic(field: Field) -> bool {
    field.is_optional && field.input != Input::Blocks
}

#[component]
fn NumberField(calculator: Calculator, faults: Memo<Vec<FieldFault>>, field: Field) -> impl IntoView {
    let input = field.input;
    let id = format!("cap-{}", field.key);
    let fault_id = format!("{id}-fault");
    let text = Memo::new(move |_| calculator.form.with(|form| form.text(input).to_owned()));
    let fault = Memo::new(move |_| {
        faults.with(|faults| {
            faults.iter().find(|fault| fault.input == input).map(|fault| fault.message.clone())
        })
    });
    let label = if input.unit().is_empty() {
        input.label().to_owned()
    } else {
        format!("{}, {}", input.label(), input.unit())
    };
    view! {
        <div class="cap-field">
            <label for=id.clone()>{label}</label>
            <input type="text" inputmode="decimal" autocomplete="off" id=id.clone() data-testid=id
                placeholder=match input {
                    Input::Blocks => "computed from memory",
                    _ if field.is_optional => "unknown",
                    _ => "",
                }
                prop:value=text aria-invalid=move || fault.with(Option::is_some).to_string() aria-describedby=fault_id.clone()
                on:input=move |event| {
                    let typed = event_target_value(&event);
                    calculator.change(|form| form.set(input, typed));
                }/>
            <p class="field-fault" id=fault_id.clone() data-testid=fault_id aria-live="polite">{fault}</p>
        </div>
    }
}

/// Puts what the deployment reports into the form; says what, and what it does not report.
fn fill_from_live(calculator: Calculator) -> String {
    let store = calculator.store;
    let (facts, lengths) =
        store.peek(|shown| (live_facts(shown, shown.pool), live::lengths(shown, store.now_ms())));
    let mut filled = Vec::new();
    let mut absent = Vec::new();
    calculator.change(|form| {
        let mut put = |input: Input, value: Option<u64>| match value {
            Some(value) => {
                form.set(input, value.to_string());
                filled.push(format!("{} {}", input.label().to_ascii_lowercase(), format::count(value)));
            }
            None => absent.push(input.label().to_ascii_lowercase()),
        };
        put(Input::BlockSize, facts.block_size_tokens.map(u64::from));
        put(Input::Blocks, facts.blocks_per_worker.map(|(least, _)| least));
        put(Input::Workers, facts.workers);
        put(Input::MaxNumSeqs, facts.max_num_seqs);
        put(Input::P50, lengths.map(|lengths| lengths.p50));
        put(Input::P95, lengths.map(|lengths| lengths.p95));
    });
    let mut status_text = match filled.is_empty() {
        true => "Not reported".to_owned(),
        false => format!("Taken: {}", filled.join(", ")),
    };
    if let Some(lengths) = lengths {
        status_text.push_str(&format!(
            " (lengths of {} by {})",
            format::plural(lengths.samples, "sequence", "sequences"),
            lengths.source.label()
        ));
    }
    if !absent.is_empty() {
        status_text.push_str(&format!(
            ". Unchanged: {}; --prometheus frontend=http://HOST:8000/metrics reports it",
            absent.join(", ")
        ));
    }
    status_text.push('.');
    status_text
}
