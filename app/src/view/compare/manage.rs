//! The baselines: roles, import by button or drop, export, what was saved, deleting.

use leptos::prelude::*;
use radixscope_insight::baseline::{self, MAX_BYTES, MAX_RESULT_BYTES, MAX_RESULT_FILES, Router, SweepLevel};
use radixscope_insight::recent_window::RecentFigures;
use web_sys::File;

use super::roles::{Baselines, Role, name_of};
use crate::format;
use crate::view::control::view;
use crate::view::file::{FileDrop, offer};

/// Reads files and hands them over together.
fn read(baselines: Baselines, files: &[File], router: Router, called: String) {
    let refuse = move |name: &str, why: String| {
        // Nothing to set if the panel was closed.
        baselines.status_text.try_set(Err(format!("{name} was not imported: {why}.")));
    };
    let mut left = MAX_RESULT_BYTES as f64;
    for file in files {
        // A CSV and a single run are small; a report with all its requests is not.
        let most = if file.name().ends_with(".json") { left } else { MAX_BYTES as f64 };
        if file.size() > most {
            return refuse(&file.name(), format!("it is larger than {most} bytes"));
        }
        left -= file.size();
    }
    if files.len() > MAX_RESULT_FILES {
        return refuse(&files[0].name(), format!("at most {MAX_RESULT_FILES} files are read together"));
    }
    let all: Vec<_> = files.iter().map(|file| (file.name(), file.text())).collect();
    leptos::task::spawn_local(async move {
        let mut texts = Vec::with_capacity(all.len());
        for (name, text) in all {
            let text =
                wasm_bindgen_futures::JsFuture::from(text).await.ok().and_then(|text| text.as_string());
            let Some(text) = text else {
                return refuse(&name, "the browser could not read it".to_owned());
            };
            texts.push((name, text));
        }
        baselines.import(texts, router, &called);
    });
}

/// How far a baseline's level is: its concurrency, and what is known of its runs.
fn level_text(row: &SweepLevel) -> String {
    let runs = row.runs.finished.map(|runs| format::plural(runs, "run", "runs"));
    let samples = row.samples.map(|samples| format::plural(samples, "sample", "samples"));
    let known: Vec<String> = runs.into_iter().chain(samples).collect();
    if known.is_empty() {
        row.concurrency.to_string()
    } else {
        format!("{} ({})", row.concurrency, known.join(", "))
    }
}

fn router_named(value: &str) -> Router {
    Router::ALL.into_iter().find(|router| router.as_str() == value).unwrap_or(Router::Other)
}

#[component]
pub(super) fn Manage(baselines: Baselines, live: Memo<RecentFigures>) -> impl IntoView {
    let export = move |_| {
        let text = baseline::export(&baselines.all());
        let status_text = match offer("baselines.csv", "text/csv;charset=utf-8", &text) {
            Ok(()) => Ok("baselines.csv saved.".to_owned()),
            Err(_) => Err("baselines.csv could not be saved: the browser refused.".to_owned()),
        };
        baselines.status_text.set(status_text);
    };
    let routed = RwSignal::new(Router::KvAware);
    let called = RwSignal::new(String::new());
    let take = move |files: Vec<File>| {
        read(baselines, &files, routed.get_untracked(), called.get_untracked().trim().to_owned());
    };
    view! {
        <div class="cmp-manage">
            <FileDrop id="cmp" accept=".csv,text/csv,.json,application/json" multiple=true on_files=take>
                <p><label for="cmp-file" class="file-button">"Import results"</label>" or drop them here: JSON of aiperf, vllm bench serve or guidellm, the runs of one sweep together; or a CSV with one row per concurrency, columns as in the export.  "
                    <button type="button" class="plain" data-testid="cmp-export" on:click=export>"Export all"</button></p>
                <div class="cap-line">
                    <label for="cmp-routed">"Results were routed"</label>
                    <select id="cmp-routed" data-testid="cmp-routed" on:change=move |event| routed.set(router_named(&event_target_value(&event)))>
                        {Router::ALL.map(|r| view! { <option>{r.as_str()}</option> }).into_iter().collect_view()}
                    </select>
                    <label for="cmp-called">"and are called"</label>
                    <input id="cmp-called" type="text" maxlength="80" placeholder="as the file" data-testid="cmp-called" prop:value=called on:input=move |event| called.set(event_target_value(&event))/>
                </div>
            </FileDrop>
            <Save baselines live/>
            <p class="cmp-status" aria-live="polite" data-testid="cmp-status" class:field-fault=move || baselines.status_text.with(Result::is_err)>
                {move || match baselines.status_text.get() { Ok(status_text) | Err(status_text) => status_text }}
            </p>
            <ul class="cmp-list">
                {move || baselines.all().into_iter().map(|baseline| {
                    let name = name_of(&baseline);
                    let is_sample = baselines.is_sample(&baseline);
                    let is_served = baselines.is_served(&baseline);
                    let about = match is_sample {
                        true => format!("Sample: {}; your hardware differs", baseline.attribution()),
                        false => baseline.attribution().to_owned(),
                    };
                    let about = if is_served { format!("{about}, given to the server (--baseline)") } else { about };
                    let levels: Vec<String> = baseline.rows().iter().map(level_text).collect();
                    let label = baseline.name().to_owned();
                    view! {
                        <li data-testid="cmp-baseline">
                            <b>{label.clone()}</b>" "<span class="quiet">{format!("{}, levels {}. {about}", baseline.router().as_str(), levels.join(", "))}</span>
                            {(!is_sample && !is_served).then(|| view! {
                                <button type="button" class="plain" data-testid="cmp-delete" aria-label=format!("Delete {label}")
                                    on:click=move |_| baselines.delete(&name)>"Delete"</button>
                            })}
                        </li>
                    }
                }).collect_view()}
            </ul>
        </div>
    }
}

#[component]
fn Save(baselines: Baselines, live: Memo<RecentFigures>) -> impl IntoView {
    let name = RwSignal::new("My sweep".to_owned());
    let router = RwSignal::new(Router::KvAware);
    let missing = Memo::new(move |_| {
        let is_known = live.with(|live| live.concurrency.is_some());
        !is_known || !baselines.is_restored.get()
    });
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let typed = name.get_untracked();
        if typed.trim().is_empty() {
            baselines.status_text.set(Err("A baseline needs a name.".to_owned()));
            return;
        }
        live.with_untracked(|live| match live.concurrency {
            Some(_) => baselines.save(typed.trim(), router.get_untracked(), &live.window),
            None => baselines
                .status_text
                .set(Err("Nothing was saved: the current concurrency is unknown.".to_owned())),
        });
    };
    view! {
        <form class="cap-line" on:submit=save>
            <label for="cmp-name">"Save this window as"</label>
            <input id="cmp-name" type="text" maxlength="80" data-testid="cmp-name" prop:value=name on:input=move |event| name.set(event_target_value(&event))/>
            <select aria-label="Routed" data-testid="cmp-router" on:change=move |event| {
                let value = event_target_value(&event);
                router.set(router_named(&value));
            }>
                {Router::ALL.map(|r| view! { <option>{r.as_str()}</option> }).into_iter().collect_view()}
            </select>
            <button type="submit" class="cf-button" data-testid="cmp-save" prop:disabled=missing>"Save"</button>
        </form>
    }
}

/// Which baseline plays which role.
#[component]
pub(super) fn Roles(baselines: Baselines) -> impl IntoView {
    Role::ALL
        .map(|role| {
            let playing = Memo::new(move |_| baselines.playing(role).map(|baseline| name_of(&baseline)));
            view! {
                <label class="cf-field"><span>{role.label()}</span>
                    <select data-testid=role.key().replace('.', "-") on:change=move |event| baselines.choose(role, &event_target_value(&event))>
                        {move || baselines.all().into_iter().map(|baseline| {
                            let name = name_of(&baseline);
                            let is_it = { let name = name.clone(); move || playing.with(|playing| playing.as_ref() == Some(&name)) };
                            view! { <option value=name selected=is_it>{baseline.name().to_owned()}</option> }
                        }).collect_view()}
                    </select>
                </label>
            }
        })
        .into_iter()
        .collect_view()
}
