//! The open decision beside the tree: as text, with its candidates over the same prompt, and the way to the next one; and what is said of
//! its path on the picture.

use radixscope_export::panel::duel::{Duel, DuelLane};
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, PoolIx, WorkerIx};
use radixscope_router::explain::Short;
use radixscope_state::cluster::{DecisionEntry, PoolState};
use radixscope_state::tree::NodeId;

use super::choice::Choice;
use crate::format::{self, UNKNOWN};

/// Depths that are labelled at most: the deepest, and the chosen one's.
const DEPTHS: usize = 8;

/// What the tab says before a decision is opened.
pub const NONE_OPEN: &str = "No decision is open. Open the latest one with a known prompt here, any other one in Decisions or by search. \
    Its path is outlined, with a bracket where each candidate's cached part ends.";

/// What it says of one that is not there.
pub fn gone_text(id: DecisionId) -> String {
    format!("Decision {id} is no longer retained, or was not received yet.")
}

/// The pool to show for a decision whose path is in another one than the pool drawn; `None`: it is drawn already, or a pool was chosen.
pub fn pool_to_show(shown: &ViewContext<'_>, id: DecisionId) -> Option<PoolIx> {
    let end = shown.decisions().get(id)?.decision.path?;
    shown.pool_of(end.worker).filter(|&pool| pool != shown.pool && shown.only.is_none())
}

/// The last block of a decision's path that is still there.
pub fn end_of_path(shown: &ViewContext<'_>, id: DecisionId) -> Option<Crumb> {
    let (tree, path) = (shown.live_tree(), shown.decisions().get(id)?.decision.path?);
    let slot = shown.slot(path.worker)?;
    let node = tree.find(slot, path.block_hash).filter(|&node| tree.is_attached(node))?;
    Some(Crumb::at(tree, node, tree.position(node)))
}

/// Which way from the open decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecisionStep {
    /// The one before it.
    Older,
    /// The one after it.
    Newer,
    /// The latest.
    Latest,
}

/// The next decision in this direction that names blocks of the pool drawn; `None`: there is no other.
pub fn next_with_path(
    shown: &ViewContext<'_>,
    from: Option<DecisionId>,
    step: DecisionStep,
) -> Option<DecisionId> {
    let has_path =
        |d: &&DecisionEntry| d.decision.path.is_some_and(|end| shown.pool_of(end.worker) == Some(shown.pool));
    let mut paths = shown.decisions().newest_first().filter(has_path).map(|d| d.decision.id);
    let next = match (step, from) {
        (DecisionStep::Latest, _) | (_, None) => paths.next(),
        (DecisionStep::Older, Some(from)) => paths.find(|&id| id < from),
        (DecisionStep::Newer, Some(from)) => paths.rev().find(|&id| id > from),
    };
    next.filter(|&id| Some(id) != from)
}

/// The open decision.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenDecision {
    /// Which, and how long its prompt is.
    pub head: String,
    /// By how much it was won.
    pub cost_gap: String,
    /// Its candidates, where they are known.
    pub lanes: Option<LaneTable>,
    /// How many candidates are not listed, as text.
    pub more: Option<String>,
    /// Why it was taken.
    pub why: String,
    /// Whether the tree was not whole when it was taken.
    pub is_partial: bool,
    /// The request, where it is known.
    pub request: Option<String>,
}

/// Every candidate over the same prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct LaneTable {
    /// Blocks of the prompt.
    pub prompt: u64,
    /// The chosen one first, then by cost.
    pub lanes: Vec<CandidateLane>,
}

/// A candidate: what it had cached, what it would have computed, its load.
#[derive(Clone, PartialEq, Debug)]
pub struct CandidateLane {
    /// Who.
    pub worker: WorkerIx,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// Blocks that it had cached on its device.
    pub device: u64,
    /// Blocks that it would have computed.
    pub computed: Option<u64>,
    /// Blocks of its active requests.
    pub load: f64,
    /// What was compared.
    pub cost: f64,
    /// Widths of the blocks on the device, in lower tiers and to compute, of the prompt; `None`: there are none.
    pub parts: [Option<String>; 3],
    /// Width of the load, of the greatest.
    pub load_width: String,
    /// Cached blocks: on the device and in lower tiers.
    pub cached_text: String,
    /// Blocks to compute.
    pub computed_text: String,
    /// Load.
    pub load_text: String,
    /// Cost.
    pub cost_text: String,
    /// How much more it costs than the chosen one: ` +12`, ` −3`.
    pub beyond_text: Option<String>,
    /// The cost as a sum.
    pub sum: String,
}

impl OpenDecision {
    /// Of a retained decision.
    pub fn of(decided: &DecisionEntry) -> Self {
        let decision = &decided.decision;
        let duel = Duel::of(decided);
        let left_out = duel.as_ref().map_or(0, |duel| duel.left_out);
        let prompt = decision
            .isl_blocks
            .map_or(UNKNOWN.to_owned(), |blocks| format::plural(blocks, "block", "blocks"));
        Self {
            head: format!("#{}, prompt of {prompt}", decision.id),
            cost_gap: format!("{} {}", label(decision.worker), decided.cost_gap_text(label)),
            lanes: duel.map(LaneTable::of),
            more: (left_out > 0).then(|| {
                format!("{} with a higher cost are under Decisions.", format::count(left_out as u64))
            }),
            why: decided.why(label),
            is_partial: decided.partial,
            request: decision.request_id.as_ref().map(|request| format!("Request {request}")),
        }
    }
}

impl LaneTable {
    fn of(duel: Duel) -> Self {
        let Duel { prompt, most_load, lanes, .. } = duel;
        let share = |part: f64, whole: f64| format::width(if whole > 0.0 { part / whole } else { 0.0 });
        let lane = |lane: DuelLane| {
            let DuelLane { worker, device, lower, computed, load, cost, beyond_chosen, is_chosen, sum } =
                lane;
            let part = |blocks: u64| (blocks > 0).then(|| share(blocks as f64, prompt as f64));
            let lower_text = if lower > 0 { format!("+{}", format::count(lower)) } else { String::new() };
            let beyond_text = (!is_chosen).then(|| {
                let sign = if beyond_chosen < 0.0 { '−' } else { '+' };
                format!(" {sign}{}", Short(tenth(beyond_chosen.abs())))
            });
            CandidateLane {
                worker,
                is_chosen,
                device,
                computed,
                load,
                cost,
                parts: [part(device), part(lower), part(computed.unwrap_or(0))],
                load_width: share(load, most_load),
                cached_text: format!("{}{lower_text}", format::count(device)),
                computed_text: computed.map_or(UNKNOWN.to_owned(), format::count),
                load_text: Short(tenth(load)).to_string(),
                cost_text: Short(tenth(cost)).to_string(),
                beyond_text,
                sum,
            }
        };
        Self { prompt, lanes: lanes.into_iter().map(lane).collect() }
    }
}

/// With one decimal.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// What the tab says of the picture: `description` where it shows the path.
pub fn path_note(choice: &Choice, description: &str) -> String {
    match choice {
        choice if choice.table => "The table shows no path: choose Icicle to see it.".to_owned(),
        choice if choice.lanes => "Lanes show no path: choose Icicle to see it.".to_owned(),
        _ => description.to_owned(),
    }
}

/// What is known of the path of a decision on the tree that is drawn.
#[derive(Clone, PartialEq, Debug)]
pub enum DecisionPath<'a> {
    /// There is none to show, and why.
    None(String),
    /// The decision names no cached block. Blocks that were gone behind it stand alone, and are told of with [`no_path_text`].
    NoBlock(&'a DecisionEntry),
    /// It ends at this block.
    EndsAt(&'a DecisionEntry, NodeId),
}

impl<'a> DecisionPath<'a> {
    /// Of a decision.
    pub fn of(shown: &ViewContext<'a>, id: DecisionId) -> Self {
        let Some(decided) = shown.cluster.decisions().get(id) else {
            return Self::None(format!("Decision {id} is no longer retained, so its path is unknown"));
        };
        let end = decided.decision.path;
        let pool = end.map_or(Some(decided.pool), |end| shown.pool_of(end.worker));
        if let Some(other) = pool.filter(|&pool| pool != shown.pool) {
            let name = shown.cluster.pool(other).map(PoolState::name).unwrap_or_default();
            return Self::None(format!("Decision {id} is of pool {name}, whose tree is not the one drawn"));
        }
        if shown.tier.is_some() {
            return Self::None(format!(
                "The path of decision {id} is on the devices: choose Device to see it"
            ));
        }
        let Some(end) = end else { return Self::NoBlock(decided) };
        let found = shown.slot(end.worker).and_then(|slot| shown.tree().find(slot, end.block_hash));
        match found {
            Some(node) => Self::EndsAt(decided, node),
            None => Self::None(format!(
                "The blocks of decision {id} have left the tree since: {} evicted the last one",
                label(end.worker)
            )),
        }
    }
}

/// What is said of a decision without a cached block. `ghost`: what is said of blocks that were gone, where they are drawn.
pub fn no_path_text(id: DecisionId, ghost: Option<&str>) -> String {
    let ghost = ghost.map_or(String::new(), |ghost| format!(". Dashed at the right: {ghost}"));
    format!("Decision {id} names no cached block, so there is no path to show{ghost}")
}

/// What is said of a path that does not begin at the top.
pub fn unattached_text(id: DecisionId) -> String {
    format!("The blocks of decision {id} are unattached: their parent was never received")
}

/// What is said of a path of `depth` blocks that is outlined. `missing`: what is said of blocks that were gone behind it.
pub fn path_text(decided: &DecisionEntry, depth: u64, missing: Option<&str>) -> String {
    let worker = label(decided.decision.worker);
    let missing = missing.map_or(String::new(), |missing| format!(" Dashed below: {missing}."));
    format!(
        "Decision {} for {worker}: {} of its prompt were cached, outlined; brackets show how far on each worker. {worker}: {}.{missing}",
        decided.decision.id,
        format::plural(depth, "block", "blocks"),
        decided.cost_gap_text(label),
    )
}

/// The label at a path's end.
pub fn end_label(id: DecisionId, depth: u64) -> String {
    format!("decision {id}, block {}", format::count(depth))
}

/// A bracket at the depth that a candidate held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bracket {
    /// Blocks of the prompt that it held.
    pub depth: u32,
    /// Who.
    pub worker: WorkerIx,
    /// Its label.
    pub text: String,
}

/// A bracket for each candidate, from the top down; of many, the deepest and the chosen one's.
pub fn brackets(decided: &DecisionEntry) -> Vec<Bracket> {
    let chosen = decided.decision.worker;
    let mut depths: Vec<(u32, WorkerIx)> =
        decided.decision.candidates.iter().map(|c| (c.overlap_blocks, c.worker)).collect();
    if depths.is_empty() {
        depths.extend(decided.overlap_blocks().map(|held| (u32::try_from(held).unwrap_or(u32::MAX), chosen)));
    }
    depths.sort_by_key(|&(depth, worker)| (worker != chosen, std::cmp::Reverse(depth), worker));
    depths.truncate(DEPTHS);
    depths.sort();
    let bracket = |(depth, worker): (u32, WorkerIx)| {
        let won = match worker == chosen {
            true => format!(" chosen, {}", decided.cost_gap_text(label)),
            false => String::new(),
        };
        Bracket { depth, worker, text: format!("{} {}{won}", label(worker), format::count(depth.into())) }
    };
    depths.into_iter().map(bracket).collect()
}

/// What is said of a session's requests that are outlined: `seen` of all.
pub fn session_text(session: &str, requests: usize, seen: usize) -> String {
    format!(
        "Session {session}: {}, {seen} outlined in the colours of their workers; numbers stand where their cached blocks end.",
        format::plural(requests as u64, "request", "requests")
    )
}
