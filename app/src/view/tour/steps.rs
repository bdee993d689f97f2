//! What the tour shows, step by step: a view of the page, what of it is meant, and a sentence with the figures of the moment.

use radixscope_export::stage::{Mend, StageChange};
use radixscope_icicle::palette::label;
use radixscope_model::record::{Finding, Phase, Severity};

use crate::format::{self, UNKNOWN};
use crate::store::ViewContext;
use crate::url::Panel;
use crate::view::summary::Tile;

/// A step.
pub(super) struct Step {
    /// What fills the page.
    pub(super) panel: Panel,
    /// What is outlined, as a selector.
    pub(super) subject: &'static str,
    pub(super) title: &'static str,
    /// At most twenty words.
    pub(super) text: fn(&ViewContext<'_>, &[Tile; 5]) -> String,
    /// What the reader may do to what is shown, where it is simulated: such a step exists only there.
    pub(super) act: Option<Act>,
}

/// A change that a button makes.
pub(super) struct Act {
    pub(super) label: &'static str,
    pub(super) change: fn() -> StageChange,
}

/// All steps, in order.
pub(super) const STEPS: [Step; 7] = [
    Step {
        panel: Panel::Overview,
        subject: ".panel.tree, .kiosk-tree",
        title: "What workers remember",
        text: |shown, _| {
            let workers = format::plural(shown.workers().len() as u64, "worker", "workers");
            let held = shown.held().map_or(UNKNOWN.to_owned(), |(held, ..)| format::count(held));
            format!(
                "{workers} hold {held} cached blocks. The router sends a request where most of its prompt is cached."
            )
        },
        act: None,
    },
    Step {
        panel: Panel::Overview,
        subject: ".summary, .kiosk-figures",
        title: "What it brings",
        text: |_, tiles| {
            let value = |at: usize| match tiles[at].value.as_str() {
                "" => UNKNOWN,
                value => value,
            };
            format!("Now: KV hit rate {}, TTFT p95 {}, requests in flight: {}.", value(2), value(0), value(4))
        },
        act: None,
    },
    Step {
        panel: Panel::Tree,
        subject: ".panels > .panel",
        title: "The prefix tree",
        text: |_, _| {
            "Each box is a cached prefix; its colour says which worker holds it, or how many do.".to_owned()
        },
        act: None,
    },
    Step {
        panel: Panel::Decisions,
        subject: ".panels > .panel",
        title: "Why this worker",
        text: |shown, _| {
            let latest = shown.decisions().newest_first().find_map(|entry| {
                let cached = entry.chosen()?.overlap_blocks;
                Some((entry.decision.worker, cached, entry.decision.isl_blocks?))
            });
            match latest {
                Some((worker, cached, prompt)) => format!(
                    "The latest request went to {}: {} of {} prompt blocks were cached there. Open it to compare costs.",
                    label(worker),
                    format::count(cached.into()),
                    format::count(prompt)
                ),
                None => "Every decision with its reason: what each worker had cached, and what it would have cost.".to_owned(),
            }
        },
        act: None,
    },
    Step {
        panel: Panel::Findings,
        subject: ".panels > .panel",
        title: "What is wrong",
        text: |shown, _| {
            let is_active =
                |finding: &&Finding| finding.phase != Phase::Cleared && finding.severity > Severity::Info;
            let active = shown.cluster.findings().iter().filter(is_active).count();
            let active = format::plural(active as u64, "active finding", "active findings");
            format!("{active} now. Each names what is wrong, why, and the setting that helps.")
        },
        act: None,
    },
    Step {
        panel: Panel::Findings,
        subject: ".panels > .panel",
        title: "Break it",
        text: |_, _| "Kill a worker: within a minute a finding names it, and what to do about it.".to_owned(),
        act: Some(Act { label: "Kill a worker", change: || StageChange::Break("kill-worker".to_owned()) }),
    },
    Step {
        panel: Panel::Overview,
        subject: ".panel.workers",
        title: "And back",
        text: |_, _| {
            "Mend it: a new worker joins with an empty cache, and requests with shared prompts fill it."
                .to_owned()
        },
        act: Some(Act { label: "Mend", change: || StageChange::Mend(Mend {}) }),
    },
];
