//! What changed between two states of a cluster, A and B: what each worker stored and evicted, what moved from one to another,
//! how requests went before each, and who came and went. Pure; knows no screen and no store of states.
//!
//! A block is one name of one worker in one tier of one pool. It is *stored* if B has it and A has not, *evicted* if A has it and
//! B has not, *kept* if both have it; what was stored and evicted in between is in neither state. A place of a prefix tree, and
//! with it the block there, *moved* if in between at least one worker lost it and at least one other gained it. Workers and pools
//! are found again by their ids and names, not by their indices.

mod requests;
mod tree;

#[cfg(test)]
mod tests;

use std::fmt;

use radixscope_model::id::{Millis, PoolIx, Slot, Worker, WorkerIx};
use radixscope_model::record::{RouterNumbers, RouterRef, Tier};
use radixscope_state::cluster::{Cluster, WorkerState};
use radixscope_state::tree::{OwnerSet, Tree};

use crate::latency::WINDOW_MS;

pub use requests::Requests;
pub use tree::{BlockChange, ChangeTree};

/// A process that was not scraped for so long does not answer, milliseconds.
const SILENT_AFTER_MS: u64 = 30_000;

/// A state and its time.
#[derive(Clone, Copy)]
pub struct ComparedState<'a> {
    /// Everything known then.
    pub cluster: &'a Cluster,
    /// When.
    pub at: Millis,
    /// The run of the server that folded it: totals of two runs do not compare.
    pub epoch: u64,
}

/// Blocks of two states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    /// At A.
    pub before: u64,
    /// At B, and not at A.
    pub stored: u64,
    /// At A, and not at B.
    pub evicted: u64,
    /// Places gained that another worker lost; in all: places that moved.
    pub moved_in: u64,
    /// Places lost that another worker gained; in all: the same places.
    pub moved_out: u64,
    /// Held at A or B outside of the picture, which the limit of nodes bounds: they have no names and are not compared.
    pub hidden: u64,
}

impl Blocks {
    /// At both.
    pub const fn retained(&self) -> u64 {
        self.before.saturating_sub(self.evicted)
    }

    /// At B.
    pub const fn after(&self) -> u64 {
        self.retained() + self.stored
    }

    fn add(&mut self, more: &Self) {
        self.before += more.before;
        self.stored += more.stored;
        self.evicted += more.evicted;
        self.hidden += more.hidden;
    }
}

/// That somebody came or went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// First seen in between.
    Came,
    /// It was gone at A and is back.
    CameBack,
    /// It left in between.
    Left,
    /// It left and came back in between, and lost its blocks.
    LeftAndCameBack,
    /// A process restarted so often.
    Restarted(u32),
    /// A process that answered at A does not answer at B.
    FellSilent,
    /// A process that did not answer at A does at B.
    RespondsAgain,
    /// Of two recordings, it was there only in that of A.
    OnlyInA,
    /// The same of B.
    OnlyInB,
}

/// A worker.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerChange {
    /// Who.
    pub id: Worker,
    /// Its index at B; of one that B does not know, that at A.
    pub ix: WorkerIx,
    /// Whether it came or went.
    pub presence: Option<Presence>,
    /// Blocks on its device.
    pub blocks: Blocks,
    /// Blocks in lower tiers, where it holds any at A or B.
    pub tiers: Vec<(Tier, Blocks)>,
    /// Blocks in its stored and removed events between A and B, those in neither state included. `None`: not known.
    pub events: Option<(u64, u64)>,
    /// Decisions for it between A and B. `None`: not known.
    pub decisions: Option<u64>,
    /// The requests before A, and those before B.
    pub requests: [Requests; 2],
    /// Whether blocks that it held at A or B are not known: more may have been stored and evicted.
    pub is_partial: bool,
}

/// A pool.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolChange {
    /// `NAMESPACE/COMPONENT`.
    pub name: String,
    /// Its workers by A and B, in order of first sight, without those that had left before.
    pub workers: Vec<WorkerChange>,
    /// On all devices.
    pub blocks: Blocks,
    /// Decisions between A and B. `None`: not known.
    pub decisions: Option<u64>,
    /// The requests before A, and those before B.
    pub requests: [Requests; 2],
}

/// All that changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Changes {
    /// Time of A and of B.
    pub at: [Millis; 2],
    /// The pools in which a worker held or holds a place, each apart: their blocks differ in kind and size.
    pub pools: Vec<PoolChange>,
    /// Scraped processes that came or went; those of two recordings are not compared.
    pub processes: Vec<(String, Presence)>,
    /// Routers of which a source reports other settings at B than at A, and which.
    pub settings: Vec<(RouterRef, Vec<NumberChange>)>,
    /// Whether A and B are of two recordings: who is in one of them only neither came nor left.
    pub is_across: bool,
}

/// A number of a router that changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NumberChange {
    /// Dynamo's name.
    pub name: &'static str,
    /// Its value before; `None`: not reported.
    pub before: Option<f64>,
    /// Its value after.
    pub after: Option<f64>,
}

impl fmt::Display for NumberChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value =
            |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        write!(f, "{} {} → {}", self.name, value(self.before), value(self.after))
    }
}

/// The numbers that differ.
pub fn changed_numbers(before: &RouterNumbers, after: &RouterNumbers) -> Vec<NumberChange> {
    let pairs = before.named().into_iter().zip(after.named());
    let change = |((name, before), (_, after))| NumberChange { name, before, after };
    pairs.map(change).filter(|change| change.before != change.after).collect()
}

impl Changes {
    /// From A to B, whichever is earlier. With `is_across` they are of two recordings, whose times and totals say nothing of
    /// each other.
    pub fn between(a: ComparedState<'_>, b: ComparedState<'_>, is_across: bool) -> Self {
        let names = pool_names(a.cluster, b.cluster);
        let pools = names.into_iter().map(|name| pool_change(name, a, b, is_across));
        // Names of processes are those of one deployment.
        let processes = if is_across { Vec::new() } else { processes(a, b) };
        Self {
            at: [a.at, b.at],
            pools: pools.filter(|pool| !pool.workers.is_empty()).collect(),
            processes,
            settings: settings(a.cluster, b.cluster),
            is_across,
        }
    }
}

/// What changed in the settings that both report of one router. Across two recordings routers have other ids.
fn settings(a: &Cluster, b: &Cluster) -> Vec<(RouterRef, Vec<NumberChange>)> {
    let after = b.settings().iter();
    let changed = after.filter_map(|after| {
        let mut before = a.settings().iter();
        let before = before.find(|before| before.source == after.source && before.of == after.of)?;
        let changed = changed_numbers(&before.latest.numbers, &after.latest.numbers);
        (!changed.is_empty()).then(|| (after.of.clone(), changed))
    });
    changed.collect()
}

/// Names of all pools, those of B first.
fn pool_names(a: &Cluster, b: &Cluster) -> Vec<String> {
    let mut names = Vec::new();
    for pool in b.pools().iter().chain(a.pools()) {
        let name = pool.name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A worker's indices in A and B.
#[derive(Clone, Copy)]
struct Member {
    id: Worker,
    at: [Option<WorkerIx>; 2],
}

/// The workers of a pool.
fn members(a: (&Cluster, Option<PoolIx>), b: (&Cluster, Option<PoolIx>)) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (side, (cluster, pool)) in [b, a].into_iter().enumerate() {
        let Some(pool) = pool else { continue };
        for ix in cluster.workers_in(pool) {
            let Some(id) = cluster.worker(ix).map(|worker| worker.id) else { continue };
            // The slot of a worker that rejoined under another index belongs to no worker.
            if cluster.worker_ix(id) != Some(ix) {
                continue;
            }
            let at = members.iter().position(|member| member.id == id).unwrap_or_else(|| {
                members.push(Member { id, at: [None; 2] });
                members.len() - 1
            });
            members[at].at[1 - side] = Some(ix);
        }
    }
    members
}

/// Whether the worker had left before both states, before all that they say of it, and was chosen by no router in between.
fn had_left(id: Worker, a: ComparedState<'_>, b: ComparedState<'_>) -> bool {
    let earlier = Millis(a.at.0.min(b.at.0).saturating_sub(WINDOW_MS));
    let known = [a, b].map(|state| {
        let ix = state.cluster.worker_ix(id)?;
        let departure = state.cluster.worker(ix)?.departure;
        Some((departure, state.cluster.decisions().totals_of(ix).count))
    });
    let left_before = known
        .iter()
        .flatten()
        .all(|(departure, _)| departure.is_some_and(|departure| departure.at_ms < earlier));
    let is_chosen = match known {
        [Some((_, at_a)), Some((_, at_b))] => at_a != at_b,
        _ => false,
    };
    left_before && !is_chosen
}

fn pool_change(name: String, a: ComparedState<'_>, b: ComparedState<'_>, is_across: bool) -> PoolChange {
    let pools = [a.cluster, b.cluster].map(|cluster| cluster.pool_by_name(&name));
    let mut members = members((a.cluster, pools[0]), (b.cluster, pools[1]));
    // Fleets that scale leave many.
    members.retain(|member| !had_left(member.id, a, b));
    let (in_all, of_workers) =
        blocks(&members, tree_of(a.cluster, pools[0], None), tree_of(b.cluster, pools[1], None));
    let worker = |(member, blocks): (&Member, Blocks)| worker_change(*member, blocks, a, b, is_across);
    let mut workers: Vec<WorkerChange> = members.iter().zip(of_workers).map(worker).collect();
    for tier in Tier::ALL {
        let (earlier, later) =
            (tree_of(a.cluster, pools[0], Some(tier)), tree_of(b.cluster, pools[1], Some(tier)));
        if earlier.totals().resident + later.totals().resident == 0 {
            continue;
        }
        let (_, of_workers) = blocks(&members, earlier, later);
        for (worker, blocks) in workers.iter_mut().zip(of_workers) {
            if blocks != Blocks::default() {
                worker.tiers.push((tier, blocks));
            }
        }
    }
    let total = |state: ComparedState<'_>, pool: Option<PoolIx>| {
        pool.map_or(0, |pool| state.cluster.decisions().totals_in(pool).count)
    };
    let decisions = rise(a, b, total(a, pools[0]), total(b, pools[1]));
    let requests = [Requests::of_pool(a, pools[0]), Requests::of_pool(b, pools[1])];
    PoolChange { name, workers, blocks: in_all, decisions, requests }
}

/// What a total rose by between two states, of which B may be the earlier one; `None`: they do not compare.
fn rise(a: ComparedState<'_>, b: ComparedState<'_>, at_a: u64, at_b: u64) -> Option<u64> {
    let (earlier, later) = if a.at <= b.at { (at_a, at_b) } else { (at_b, at_a) };
    later.checked_sub(earlier).filter(|_| a.epoch == b.epoch)
}

/// The tree of a pool's devices or of a lower tier; an empty one for a pool that is not known.
fn tree_of(cluster: &Cluster, pool: Option<PoolIx>, tier: Option<Tier>) -> &Tree {
    match (pool, tier) {
        (None, _) => Tree::empty(),
        (Some(pool), None) => cluster.tree(pool),
        (Some(pool), Some(tier)) => cluster.tier_tree(pool, tier),
    }
}

/// Blocks in all, and of each member.
fn blocks(members: &[Member], earlier: &Tree, later: &Tree) -> (Blocks, Vec<Blocks>) {
    let mut of = vec![Blocks::default(); members.len()];
    let known = MemberIndex::of(members);
    let mut retained = vec![0; members.len()];
    earlier.each_held(|worker, name| {
        let Some(member) = known.before(worker) else { return };
        of[member].before += 1;
        let held = members[member].at[1].and_then(|later_ix| later.find(later_ix.slot(), name));
        retained[member] += u64::from(held.is_some());
    });
    for (at, member) in members.iter().enumerate() {
        let holds =
            |tree: &Tree, ix: Option<WorkerIx>| ix.map(|ix| tree.holdings(ix.slot())).unwrap_or_default();
        let (before, after) = (holds(earlier, member.at[0]), holds(later, member.at[1]));
        of[at].evicted = of[at].before - retained[at];
        of[at].stored = (after.resident + after.further).saturating_sub(retained[at]);
        of[at].hidden = before.hidden + after.hidden;
    }
    let moved = moves(&known, earlier, later, &mut of);
    let mut all = Blocks { moved_in: moved, moved_out: moved, ..Blocks::default() };
    of.iter().for_each(|one| all.add(one));
    (all, of)
}

/// Counts the places that moved: in all, and for each member those that it gained and lost.
fn moves(known: &MemberIndex, earlier: &Tree, later: &Tree, of: &mut [Blocks]) -> u64 {
    let mut moved = 0;
    for places in tree::places(earlier, later) {
        let (lost, gained) = known.differences(&places.before, &places.after);
        if !lost.is_empty() && !gained.is_empty() {
            moved += places.places;
            lost.into_iter().for_each(|member| of[member].moved_out += places.places);
            gained.into_iter().for_each(|member| of[member].moved_in += places.places);
        }
    }
    moved
}

/// Which member has a slot in A, and which in B.
struct MemberIndex([Vec<Option<usize>>; 2]);

impl MemberIndex {
    fn of(members: &[Member]) -> Self {
        let mut known = Self([Vec::new(), Vec::new()]);
        for (at, member) in members.iter().enumerate() {
            for (side, ix) in member.at.into_iter().enumerate() {
                let Some(ix) = ix else { continue };
                let places = &mut known.0[side];
                if places.len() <= ix.slot().at() {
                    places.resize(ix.slot().at() + 1, None);
                }
                places[ix.slot().at()] = Some(at);
            }
        }
        known
    }

    fn before(&self, slot: Slot) -> Option<usize> {
        self.0[0].get(slot.at()).copied().flatten()
    }

    fn after(&self, slot: Slot) -> Option<usize> {
        self.0[1].get(slot.at()).copied().flatten()
    }

    /// Members that hold a place before and not after, and those that hold it after and not before.
    fn differences(&self, before: &OwnerSet, after: &OwnerSet) -> (Vec<usize>, Vec<usize>) {
        let before: Vec<usize> = before.iter().filter_map(|ix| self.before(ix)).collect();
        let after: Vec<usize> = after.iter().filter_map(|ix| self.after(ix)).collect();
        let lost = before.iter().copied().filter(|member| !after.contains(member)).collect();
        let gained = after.iter().copied().filter(|member| !before.contains(member)).collect();
        (lost, gained)
    }
}

fn worker_change(
    member: Member,
    blocks: Blocks,
    a: ComparedState<'_>,
    b: ComparedState<'_>,
    is_across: bool,
) -> WorkerChange {
    // Known under another pool before it counts as the same worker in all that is no block.
    let known =
        |cluster: &Cluster| cluster.worker_ix(member.id).filter(|&ix| cluster.workers().get(ix).is_some());
    let (before_ix, after_ix) = (known(a.cluster), known(b.cluster));
    let before = before_ix.and_then(|ix| a.cluster.worker(ix));
    let after = after_ix.and_then(|ix| b.cluster.worker(ix));
    let counted = |of: fn(&Cluster, WorkerIx) -> u64| {
        let before = before_ix.map_or(0, |ix| of(a.cluster, ix));
        rise(a, b, before, of(b.cluster, after_ix?))
    };
    let stored = counted(|cluster, ix| cluster.worker(ix).map_or(0, |worker| worker.stored_total));
    let removed = counted(|cluster, ix| cluster.worker(ix).map_or(0, |worker| worker.removed_total));
    let there = |worker: Option<&WorkerState>| worker.is_some_and(|w| w.departure.is_none());
    let came_back_between = || after.and_then(|worker| worker.returned_ms).is_some_and(|at| at > a.at);
    let presence = match (there(before), there(after)) {
        (true, false) if is_across => Some(Presence::OnlyInA),
        (false, true) if is_across => Some(Presence::OnlyInB),
        (true, false) => Some(Presence::Left),
        (false, true) if before.is_some() => Some(Presence::CameBack),
        (false, true) => Some(Presence::Came),
        (true, true) if !is_across && came_back_between() => Some(Presence::LeftAndCameBack),
        _ => None,
    };
    let is_partial = |cluster: &Cluster, ix: Option<WorkerIx>| ix.is_some_and(|ix| cluster.is_incomplete(ix));
    WorkerChange {
        id: member.id,
        ix: member.at[1].or(member.at[0]).unwrap_or(WorkerIx(u32::MAX)),
        presence,
        blocks,
        tiers: Vec::new(),
        events: stored.zip(removed),
        decisions: counted(|cluster, ix| cluster.decisions().totals_of(ix).count),
        requests: [Requests::of_worker(a, before_ix), Requests::of_worker(b, after_ix)],
        is_partial: is_partial(a.cluster, member.at[0]) || is_partial(b.cluster, member.at[1]),
    }
}

fn processes(a: ComparedState<'_>, b: ComparedState<'_>) -> Vec<(String, Presence)> {
    let answers = |state: ComparedState<'_>, last: Millis| state.at.since(last) <= SILENT_AFTER_MS;
    let mut found = Vec::new();
    for after in b.cluster.processes() {
        let before = a.cluster.processes().iter().find(|before| before.name == after.name);
        let presence = match before {
            None => Some(Presence::Came),
            Some(before) => match (answers(a, before.last_ms), answers(b, after.last_ms)) {
                (true, false) => Some(Presence::FellSilent),
                (false, true) if after.restarts == before.restarts => Some(Presence::RespondsAgain),
                _ => {
                    let times = after.restarts.saturating_sub(before.restarts);
                    (times > 0).then_some(Presence::Restarted(times))
                }
            },
        };
        found.extend(presence.map(|presence| (after.name.clone(), presence)));
    }
    found
}
