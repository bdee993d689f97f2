//! What to set when memory is short: each remedy, what the live figures say of it, and the settings to copy.

use radixscope_insight::capacity::{Advice, Engine, EngineSetting, Remedy, RemedyKind, remedies};
use radixscope_insight::memory;
use radixscope_insight::view_context::{PoolLabel, ViewContext};
use radixscope_model::id::Millis;

/// All remedies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remedies {
    /// In the order in which they are tried.
    pub rows: Vec<RemedyRow>,
    /// Whether any is suggested: they are open then.
    pub is_suggested: bool,
}

/// A remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemedyRow {
    /// Which.
    pub kind: RemedyKind,
    /// Sign of what the figures say.
    pub icon: &'static str,
    /// For the style sheet.
    pub class: &'static str,
    /// What the figures say, in a word or two.
    pub advice: &'static str,
    /// Why.
    pub why: String,
}

impl Remedies {
    /// Of the pool that is drawn.
    pub fn of(shown: &ViewContext<'_>, now: Millis) -> Self {
        let judged = remedies(&memory::live(shown, shown.pool, now));
        let is_suggested = judged.iter().any(|remedy| remedy.advice == Advice::Suggested);
        Self { rows: judged.into_iter().map(RemedyRow::of).collect(), is_suggested }
    }

    /// Their heading: for which engine and, where there are several, which pool.
    pub fn heading(engine: Engine, drawn: Option<&PoolLabel>) -> String {
        let pool = drawn.map_or(String::new(), |label| format!(", pool {}", label.short));
        format!("If memory is short, with {}{pool}", engine.label())
    }

    /// That nothing calls for them.
    pub fn note(&self) -> Option<&'static str> {
        (!self.is_suggested).then_some("No active finding says that memory is short.")
    }
}

impl RemedyRow {
    fn of(remedy: Remedy) -> Self {
        let (icon, class) = match remedy.advice {
            Advice::Suggested => ("▲", "suggested"),
            Advice::NotIndicated => ("–", "not-indicated"),
            Advice::Unknown => ("?", "unknown"),
        };
        Self { kind: remedy.kind, icon, class, advice: remedy.advice.label(), why: remedy.why }
    }
}

/// How an engine is set so.
pub fn settings(kind: RemedyKind, engine: Engine) -> impl Iterator<Item = &'static EngineSetting> {
    kind.settings().iter().filter(move |setting| setting.engine == engine)
}
