//! The baselines: roles, import by button or drop, export, what was saved, deleting.

use leptos::prelude::*;
use radixscope_insight::baseline::{self, Router};
use radixscope_insight::recent_window::RecentFigures;
use radixscope_panels::compare::{BaselineRow, Role, can_save, name_of, name_to_save, refused, router_named};
use web_sys::File;

use super::roles::Baselines;
use crate::view::control::view;
use crate::view::file::{FileDrop, offer};

/// Reads files and hands them over together.
fn read(baselines: Baselines, files: &[File], router: Router, called: String) {
    let refuse = move |why: String| {
        // Nothing to set if the panel was closed.
        baselines.status_text.try_set(Err(why));
    };
    let sizes: Vec<(String, f64)> = files.iter().map(|file| (file.name(), file.size())).collect();
    if let Some(why) = refused(&sizes) {
        return refuse(why);
    }
    let all: Vec<_> = files.iter().map(|file| (file.name(), file.text())).collect();
    leptos::task::spawn_local(async move {
        let mut texts = Vec::with_capacity(all.len());
        for (name, text) in all {
            let text =
                wasm_bindgen_futures::JsFuture::from(text).await.ok().and_then(|text| text.as_string());
            let Some(text) = text else {
                return refuse(format!("{name} was not imported: the browser could not read it."));
            };
            texts.push((name, text));
        }
        baselines.import(texts, router, &called);
    });
}

#[component]
pub(super) fn Manage(baselines: Baselines, live: Memo<RecentFigures>) -> impl IntoView {
    let export = move |_| {
        let text = baselines.set.with_untracked(|set| baseline::export(set.all()));
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
    let rows = Memo::new(move |_| baselines.set.with(|set| set.rows()));
    let row = move |BaselineRow { key, name, about, is_own }: BaselineRow| {
        let label = format!("Delete {name}");
        view! {
            <li data-testid="cmp-baseline">
                <b>{name}</b>" "<span class="quiet">{about}</span>
                {is_own.then(|| view! {
                    <button type="button" class="plain" data-testid="cmp-delete" aria-label=label on:click=move |_| baselines.delete(&key)>"Delete"</button>
                })}
            </li>
        }
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
            <ul class="cmp-list">{move || rows.get().into_iter().map(row).collect_view()}</ul>
        </div>
    }
}

#[component]
fn Save(baselines: Baselines, live: Memo<RecentFigures>) -> impl IntoView {
    let name = RwSignal::new("My sweep".to_owned());
    let router = RwSignal::new(Router::KvAware);
    let can_save = Memo::new(move |_| live.with(|live| can_save(live, baselines.is_restored.get())));
    let save = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        let typed = name.get_untracked();
        live.with_untracked(|live| match name_to_save(&typed, live) {
            Ok(name) => baselines.save(name, router.get_untracked(), &live.window),
            Err(why) => baselines.status_text.set(Err(why.to_owned())),
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
            <button type="submit" class="cf-button" data-testid="cmp-save" prop:disabled=move || !can_save.get()>"Save"</button>
        </form>
    }
}

/// Which baseline plays which role.
#[component]
pub(super) fn Roles(baselines: Baselines) -> impl IntoView {
    let all = Memo::new(move |_| {
        let of = |baseline: &baseline::Baseline| (name_of(baseline), baseline.name().to_owned());
        baselines.set.with(|set| set.all().map(of).collect::<Vec<_>>())
    });
    Role::ALL
        .into_iter()
        .enumerate()
        .map(|(at, role)| {
            let playing = Memo::new(move |_| baselines.playing.with(|playing| playing[at].as_ref().map(name_of)));
            view! {
                <label class="cf-field"><span>{role.label()}</span>
                    <select data-testid=role.key().replace('.', "-") on:change=move |event| baselines.choose(role, &event_target_value(&event))>
                        {move || all.get().into_iter().map(|(key, name)| {
                            let is_it = { let key = key.clone(); move || playing.with(|playing| playing.as_ref() == Some(&key)) };
                            view! { <option value=key selected=is_it>{name}</option> }
                        }).collect_view()}
                    </select>
                </label>
            }
        })
        .collect_view()
}
