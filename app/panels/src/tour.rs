//! What the tour shows, step by step: a view of the page, what of it is meant, and a sentence with the figures of the moment; and how it
//! goes on. Which step is shown stands in the address.

use radixscope_export::stage::{Mend, StageChange};
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::record::{Finding, Phase, Severity};

use crate::format::{self, UNKNOWN};
use crate::url::{Address, Panel};

/// Key in the address: the number of the step, and how long each stays where it goes on by itself: `2`, `15s`, `2,15s`.
pub const KEY: &str = "tour";
/// How long a step stays on a kiosk, in seconds, and the bounds of what the address may say.
const STAYS_S: u32 = 10;
const STAYS_BOUNDS_S: (u32, u32) = (3, 600);

/// Figures of the page's head; empty: unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TourFigures<'a> {
    /// KV hit rate.
    pub hit_rate: &'a str,
    /// TTFT p95.
    pub ttft_p95: &'a str,
    /// Requests in flight.
    pub in_flight: &'a str,
}

/// A step.
#[derive(Debug)]
pub struct Step {
    /// What fills the page.
    pub panel: Panel,
    /// What is outlined, as a selector.
    pub subject: &'static str,
    /// Its name.
    pub title: &'static str,
    /// At most twenty words.
    pub text: fn(&ViewContext<'_>, TourFigures<'_>) -> String,
    /// What the reader may do to what is shown, where it is simulated: such a step exists only there.
    pub act: Option<Act>,
}

/// A change that a button makes.
#[derive(Debug)]
pub struct Act {
    /// What the button says.
    pub label: &'static str,
    /// What it sends.
    pub change: fn() -> StageChange,
}

/// All steps, in order.
pub static STEPS: [Step; 7] = [
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
        text: |_, TourFigures { hit_rate, ttft_p95, in_flight }| {
            let [hit_rate, ttft_p95, in_flight] =
                [hit_rate, ttft_p95, in_flight].map(|text| if text.is_empty() { UNKNOWN } else { text });
            format!("Now: KV hit rate {hit_rate}, TTFT p95 {ttft_p95}, requests in flight: {in_flight}.")
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

/// The steps of a page: what breaks something only where all is simulated, and never by itself.
pub fn steps(goes_by_itself: bool, is_simulated: bool) -> Vec<&'static Step> {
    let can_act = !goes_by_itself && is_simulated;
    STEPS.iter().filter(|step| can_act || step.act.is_none()).collect()
}

/// Where the tour is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the step, from 0.
    pub step: usize,
    /// How long a step stays, in seconds, where the address says so.
    pub stays_s: Option<u32>,
}

impl Place {
    /// Where an address says; `None`: there is no tour.
    pub fn of(address: &Address) -> Option<Self> {
        let value = address.other(KEY)?;
        let mut place = Self { step: 0, stays_s: None };
        for part in value.split(',') {
            match part.strip_suffix('s') {
                Some(seconds) => {
                    let (least, most) = STAYS_BOUNDS_S;
                    place.stays_s = seconds.parse().ok().map(|seconds: u32| seconds.clamp(least, most));
                }
                None => place.step = part.parse::<usize>().map_or(0, |number| number.saturating_sub(1)),
            }
        }
        Some(place)
    }

    fn value(self) -> String {
        let number = self.step + 1;
        self.stays_s.map_or(number.to_string(), |seconds| format!("{number},{seconds}s"))
    }
}

/// Whether an address asks for the tour.
pub fn is_asked(address: &Address) -> bool {
    address.other(KEY).is_some()
}

/// How long a step stays where the tour goes on by itself, in seconds.
pub fn stays_s(address: &Address) -> u32 {
    Place::of(address).and_then(|place| place.stays_s).unwrap_or(STAYS_S)
}

/// Shows the step that is `by` steps from the one that is shown; the tour begins anew where it goes on by itself.
pub fn go(address: &mut Address, by: isize, is_simulated: bool) {
    let Some(place) = Place::of(address) else { return };
    let goes_by_itself = address.kiosk;
    let steps = steps(goes_by_itself, is_simulated);
    let last = steps.len() - 1;
    let next = place.step.min(last).saturating_add_signed(by);
    let step = if goes_by_itself { next % steps.len() } else { next.min(last) };
    address.panel = steps[step].panel;
    address.set_other(KEY, Some(&Place { step, ..place }.value()));
}

/// Ends it where it began.
pub fn end(address: &mut Address) {
    address.panel = Panel::Overview;
    address.set_other(KEY, None);
}

/// What a key does to the tour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TourKey {
    /// Goes on by so many steps.
    Go(isize),
    /// Ends it.
    End,
}

impl TourKey {
    /// Of a key's name; `None`: it is not the tour's, or there is none.
    pub fn of(address: &Address, key: &str) -> Option<Self> {
        if !is_asked(address) {
            return None;
        }
        match key {
            "ArrowRight" => Some(Self::Go(1)),
            "ArrowLeft" => Some(Self::Go(-1)),
            "Escape" => Some(Self::End),
            _ => None,
        }
    }
}

/// The card of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Card {
    /// `2 of 5`.
    pub number: String,
    /// Its name.
    pub title: &'static str,
    /// Whether there is one before it.
    pub can_go_back: bool,
    /// What leads on.
    pub next: &'static str,
    /// Whether it is the last one.
    pub is_last: bool,
}

impl Card {
    /// Of the step at a place among `steps`.
    pub fn of(steps: &[&'static Step], at: usize) -> Self {
        let is_last = at + 1 == steps.len();
        Self {
            number: format!("{} of {}", at + 1, steps.len()),
            title: steps[at].title,
            can_go_back: at > 0,
            next: if is_last { "Done" } else { "Next →" },
            is_last,
        }
    }

    /// For those who hear the page: figures change each second, so only the step itself is read aloud.
    pub fn announcement(&self) -> String {
        format!("{}: {}", self.number, self.title)
    }
}
