//! What routers run with: every source's own report with its changes, and the one place that decides between them. Settings are
//! known for a time, not for good: from Dynamo 1.7 on they change while a router runs.
//!
//! A number of a router counts from the first source that reports it, in the order of [`SOURCES`]. Where several settings may have
//! applied, because routers of a pool differ or because a change lies between two reports, all of them are given; who knows more
//! of a decision can tell which. What is reported of one router says nothing of another one of the same pool.

use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::redact::{self, Pseudonyms};
use radixscope_model::id::{Millis, PoolIx};
use radixscope_model::record::{Decision, ReportedSettings, Role, RouterNumbers, RouterRef, SettingsSource};
use radixscope_router::numbers::NumberDoc;
use radixscope_router::{Formula, RouterSettings};

/// Most reports kept; of more, one of a router that left is forgotten, else the one that is oldest.
pub const MAX_SETTINGS: usize = 128;
/// Changes of one router that are kept, the latest. They are made by hand.
pub const MAX_SETTINGS_CHANGES: usize = 16;
/// Most settings that are given as possible at a time.
const MAX_POSSIBLE: usize = 4;
/// The sources that are reported, the most exact first.
const SOURCES: [SettingsSource; 5] = [
    SettingsSource::PolicyEndpoint,
    SettingsSource::ModelCard,
    SettingsSource::Log,
    SettingsSource::StartUpLog,
    SettingsSource::PolicyFile,
];

/// Of them, those that report what one router runs with, and name who reports it: a frontend or its log.
const OF_ONE_ROUTER: [SettingsSource; 3] =
    [SettingsSource::PolicyEndpoint, SettingsSource::Log, SettingsSource::StartUpLog];

/// What one source reports of one router.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingsState {
    /// Where it is known from.
    pub source: SettingsSource,
    /// Whose settings.
    pub of: RouterRef,
    /// When the source no longer listed this router; `None`: it does.
    pub left_ms: Option<Millis>,
    /// What it runs with, as far as it is known.
    pub latest: SettingsStep,
    /// What it ran with before, oldest first; of many changes the latest.
    pub earlier: Vec<SettingsStep>,
}

/// Settings from one change to the next.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingsStep {
    /// How many times they had been changed while the router ran; `None`: not reported.
    pub revision: Option<u64>,
    /// The settings.
    pub numbers: RouterNumbers,
    /// They began to apply after this; `None`: they are the first that are known.
    pub after_ms: Option<Millis>,
    /// They applied by then.
    pub by_ms: Millis,
}

impl SettingsState {
    /// What it ran with, oldest first.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &SettingsStep> {
        self.earlier.iter().chain([&self.latest])
    }

    fn first(&self) -> &SettingsStep {
        self.earlier.first().unwrap_or(&self.latest)
    }

    /// Whether this was known of the router at a time.
    fn covers(&self, at: Millis) -> bool {
        self.first().by_ms <= at && self.left_ms.is_none_or(|left| at <= left)
    }

    /// How far a time lies from those at which something was known of the router.
    fn distance_ms(&self, at: Millis) -> u64 {
        let before = self.first().by_ms.since(at);
        before.max(self.left_ms.map_or(0, |left| at.since(left)))
    }

    /// What may have applied at a time: two where a change was noticed only later. Before the first report it counts.
    fn possible_at(&self, at: Millis) -> impl Iterator<Item = RouterNumbers> + '_ {
        let mut next: Option<&SettingsStep> = None;
        let mut applied = self.first();
        for step in self.steps().rev() {
            if step.by_ms <= at {
                applied = step;
                break;
            }
            next = Some(step);
        }
        let next = next.filter(|next| next.after_ms.is_some_and(|after| after < at));
        next.into_iter().chain([applied]).map(|step| step.numbers)
    }

    /// Whether a router that chooses among these workers could be meant. `None`: no; `Some(true)`: by both names.
    fn concerns(&self, namespace: &str, component: &str, role: Option<Role>) -> Option<bool> {
        let agree = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        let is_exact = !namespace.is_empty()
            && !component.is_empty()
            && self.of.namespace == namespace
            && self.of.component == component;
        let may_be = agree(&self.of.namespace, namespace)
            && agree(&self.of.component, component)
            && self.of.role.zip(role).is_none_or(|(own, theirs)| own == theirs);
        // Lines of a log are about workers: those of a pool whose name is not known yet are about no other pool.
        let is_of_other =
            self.source == SettingsSource::Log && self.of.component.is_empty() && !component.is_empty();
        (is_exact || (may_be && !is_of_other)).then_some(is_exact)
    }
}

/// The reports, in order of first sight.
pub(super) trait SettingsReports {
    /// A source reported something new.
    fn reported(&mut self, at: Millis, report: &ReportedSettings);
}

impl SettingsReports for Vec<SettingsState> {
    fn reported(&mut self, at: Millis, report: &ReportedSettings) {
        let &ReportedSettings { source, ref of, revision, numbers, after_ms, by_ms } = report;
        let known = self.iter().position(|state| state.source == source && state.of == *of);
        let Some(numbers) = numbers else {
            if let Some(left) = known.and_then(|ix| self.get_mut(ix)) {
                left.left_ms = Some(at);
            }
            return;
        };
        let step = SettingsStep { revision, numbers, after_ms, by_ms };
        let Some(state) = known.and_then(|ix| self.get_mut(ix)) else {
            if self.len() == MAX_SETTINGS {
                let order = |ix: &usize| self.get(*ix).map(|of| (of.left_ms.is_none(), of.latest.by_ms));
                let forgotten = (0..self.len()).min_by_key(order).unwrap_or(0);
                self.remove(forgotten);
            }
            self.push(SettingsState {
                source,
                of: of.clone(),
                left_ms: None,
                latest: step,
                earlier: Vec::new(),
            });
            return;
        };
        state.left_ms = None;
        if (state.latest.revision, state.latest.numbers) == (revision, numbers) {
            return;
        }
        if state.earlier.len() == MAX_SETTINGS_CHANGES {
            state.earlier.remove(0);
        }
        state.earlier.push(std::mem::replace(&mut state.latest, step));
    }
}

/// A router of a pool, as all sources that report of it alone tell.
#[derive(Clone, PartialEq, Debug)]
pub struct ReportedRouter<'c> {
    /// Who reports it: a frontend, or the name of a log.
    pub reporter: &'c str,
    /// What each source reports, in order of first sight.
    pub reports: Vec<&'c SettingsState>,
}

impl ReportedRouter<'_> {
    /// How far a time lies from those at which something was known of it.
    fn distance_ms(&self, at: Millis) -> u64 {
        self.reports.iter().map(|state| state.distance_ms(at)).min().unwrap_or(u64::MAX)
    }
}

/// A number of a pool's router, with where it is known from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SourcedNumber {
    /// Which.
    pub number: NumberDoc,
    /// Its value.
    pub value: f64,
    /// Where it is known from.
    pub source: SettingsSource,
}

impl Cluster {
    /// What sources report of routers' settings, in order of first sight.
    pub fn settings(&self) -> &[SettingsState] {
        &self.head.settings
    }

    /// What one source reports of the routers of a pool.
    pub fn settings_of(
        &self,
        pool: PoolIx,
        source: SettingsSource,
    ) -> impl Iterator<Item = &SettingsState> + '_ {
        let role = self.role(pool).map(|(role, _)| role);
        let concerns = move |state: &SettingsState| {
            let of = self.pool(pool)?;
            state.concerns(&of.namespace, &of.component, role).filter(|_| state.source == source)
        };
        // Who names the pool is meant before who names none.
        let is_named = self.head.settings.iter().any(|state| concerns(state) == Some(true));
        self.head
            .settings
            .iter()
            .filter(move |state| concerns(state).is_some_and(|is_exact| is_exact || !is_named))
    }

    /// The routers of a pool of which something is reported, each with what all sources report of it, in order of first sight.
    pub fn routers_of(&self, pool: PoolIx) -> Vec<ReportedRouter<'_>> {
        let role = self.role(pool).map(|(role, _)| role);
        let Some(of) = self.pool(pool) else { return Vec::new() };
        let is_of_one = |state: &&SettingsState| OF_ONE_ROUTER.contains(&state.source);
        let concerns = |state: &SettingsState| state.concerns(&of.namespace, &of.component, role);
        let all = || self.head.settings.iter().filter(is_of_one);
        let is_meant = |state: &&SettingsState| match concerns(state) {
            None => false,
            Some(true) => true,
            // Who names pools means those. Where others name this one, who names none may serve another one.
            Some(false) => {
                let is_own = |other: &&SettingsState| other.of.reporter == state.of.reporter;
                let names_pools =
                    |other: &SettingsState| other.source == state.source && !other.of.component.is_empty();
                let is_named = |other: &SettingsState| concerns(other) == Some(true);
                let (named_by_itself, named) = (all().filter(is_own).any(is_named), all().any(is_named));
                !all().filter(is_own).any(names_pools) && (named_by_itself || !named)
            }
        };
        let meant: Vec<&SettingsState> = all().filter(is_meant).collect();
        let is_read = |state: &&&SettingsState| state.source == SettingsSource::PolicyEndpoint;
        let mut routers: Vec<ReportedRouter<'_>> = Vec::new();
        for &state in meant.iter().filter(is_read).chain(meant.iter().filter(|state| !is_read(state))) {
            let reporter = state.of.reporter.as_str();
            match routers.iter_mut().find(|router| router.reporter == reporter) {
                Some(router) => router.reports.push(state),
                None => {
                    // A frontend is scraped under the name of its log, or under another one: then it may be any that is read.
                    let is_scraped = self.processes().iter().any(|process| process.name == reporter);
                    let mut read = routers.iter_mut().filter(|router| {
                        router.reports.iter().any(|of| of.source == SettingsSource::PolicyEndpoint)
                    });
                    if let (false, Some(first)) = (is_scraped || is_read(&&state), read.next()) {
                        first.reports.push(state);
                        read.for_each(|router| router.reports.push(state));
                    } else {
                        routers.push(ReportedRouter { reporter, reports: vec![state] });
                    }
                }
            }
        }
        routers
    }

    /// The numbers that the router of a pool may have run with at a time, at least one set and of several the one that was reported
    /// last first. What is `None` is reported by no source.
    pub fn numbers_at(&self, pool: PoolIx, at: Millis) -> Vec<RouterNumbers> {
        // Mostly so up to 1.6, and this is computed for each decision.
        if self.head.settings.is_empty() {
            return vec![RouterNumbers::default()];
        }
        let mut all: Vec<RouterNumbers> = Vec::new();
        for router in self.routers_at(pool, at) {
            let mut possible = vec![RouterNumbers::default()];
            for source in SOURCES {
                let reported = self.reported_at(&router, pool, source, at);
                if reported.is_empty() {
                    continue;
                }
                let mut both: Vec<RouterNumbers> = Vec::new();
                for numbers in possible.iter().flat_map(|before| reported.iter().map(|more| before.or(*more)))
                {
                    if !both.contains(&numbers) && both.len() < MAX_POSSIBLE {
                        both.push(numbers);
                    }
                }
                possible = both;
            }
            for numbers in possible {
                if !all.contains(&numbers) && all.len() < MAX_POSSIBLE {
                    all.push(numbers);
                }
            }
        }
        all
    }

    /// Routers of a pool that were there at a time, the one that was reported last first; where none was, those that were known next to
    /// it, and where nothing is reported of any, one of which nothing is.
    fn routers_at(&self, pool: PoolIx, at: Millis) -> Vec<ReportedRouter<'_>> {
        let mut routers = self.routers_of(pool);
        let nearest = routers.iter().map(|router| router.distance_ms(at)).min().unwrap_or(0);
        routers.retain(|router| router.distance_ms(at) == nearest);
        let latest = |router: &ReportedRouter<'_>| router.reports.iter().map(|of| of.latest.by_ms).max();
        routers.sort_by_key(|router| std::cmp::Reverse(latest(router)));
        if routers.is_empty() {
            routers.push(ReportedRouter { reporter: "", reports: Vec::new() });
        }
        routers
    }

    /// What one source may have meant by a router of a pool at a time.
    fn reported_at(
        &self,
        router: &ReportedRouter<'_>,
        pool: PoolIx,
        source: SettingsSource,
        at: Millis,
    ) -> Vec<RouterNumbers> {
        let mut all: Vec<&SettingsState> = if OF_ONE_ROUTER.contains(&source) {
            router.reports.iter().copied().filter(|state| state.source == source).collect()
        } else {
            self.settings_of(pool, source).collect()
        };
        // Where none was known at that time, what was known next to it counts.
        let nearest = all.iter().map(|state| state.distance_ms(at)).min().unwrap_or(0);
        all.retain(|state| state.covers(at) || (nearest > 0 && state.distance_ms(at) == nearest));
        all.sort_by_key(|state| std::cmp::Reverse(state.latest.by_ms));
        let mut reported: Vec<RouterNumbers> = Vec::new();
        for numbers in all.iter().flat_map(|state| state.possible_at(at)) {
            if !reported.contains(&numbers) {
                reported.push(numbers);
            }
        }
        reported
    }

    /// What the router of a pool may have run with at a time under a formula, as [`Self::numbers_at`]; what no source reports is
    /// Dynamo's default, for the role of the pool.
    pub fn settings_at(&self, pool: PoolIx, formula: Formula, at: Millis) -> Vec<RouterSettings> {
        let role = self.role(pool).map_or(Role::Aggregated, |(role, _)| role);
        let settings = |numbers: RouterNumbers| defaults(formula, role).with_numbers(&numbers);
        self.numbers_at(pool, at).into_iter().map(settings).collect()
    }

    /// What a decision was made with, where its formula is known: the factor that it was computed with, everything else as it was
    /// reported for its time.
    pub fn settings_of_decision(&self, decision: &Decision) -> Option<RouterSettings> {
        let own = RouterSettings::of_decision(decision)?;
        let pool = self.pool_of(decision.worker).unwrap_or_default();
        let possible = self.numbers_at(pool, decision.decided_ms.unwrap_or(self.head.now_ms));
        let with = |numbers: &RouterNumbers| own.with_numbers(numbers);
        let fits = possible.iter().map(with).find(|of| of.prefill_factor() == own.prefill_factor());
        let mut settings = fits.or_else(|| possible.first().map(with)).unwrap_or(own);
        settings.set_prefill_factor(own.prefill_factor());
        Some(settings)
    }

    /// What the router of a pool runs with now, number by number; `formula` has those. Of several possible ones the one that was
    /// reported last.
    pub fn sourced_settings(&self, pool: PoolIx, formula: Formula) -> Vec<SourcedNumber> {
        let now = self.head.now_ms;
        let role = self.role(pool).map_or(Role::Aggregated, |(role, _)| role);
        let defaults = defaults(formula, role);
        let routers = self.routers_at(pool, now);
        let known = SOURCES.map(|source| {
            let reported = routers.first().map(|router| self.reported_at(router, pool, source, now));
            (source, reported.and_then(|of| of.first().copied()).unwrap_or_default())
        });
        let all = defaults.numbers().into_iter().filter(|(number, _)| number.formulas.contains(&formula));
        all.map(|(number, default)| {
            let value = |numbers: &RouterNumbers| {
                numbers
                    .named()
                    .into_iter()
                    .find(|(name, _)| *name == number.name)
                    .and_then(|(_, value)| value)
            };
            let found = known.iter().find_map(|(source, numbers)| Some((*source, value(numbers)?)));
            let (source, value) = found.unwrap_or((SettingsSource::Default, default));
            SourcedNumber { number, value, source }
        })
        .collect()
    }
}

/// What Dynamo sets for the router of a pool with this role.
fn defaults(formula: Formula, role: Role) -> RouterSettings {
    let mut settings = RouterSettings::new(formula).in_role(role);
    // A decode router of formula A weighs the prompt by 0 where one from B on leaves it out.
    if role == Role::Decode && formula == Formula::A {
        settings.overlap_score_weight = 0.0;
    }
    settings
}

impl SettingsState {
    pub(super) fn redact(&mut self, names: &mut dyn Pseudonyms) {
        redact::router_ref(self.source, &mut self.of, names);
    }
}
