//! Blocks that gain or lose an owner, one after the other: as long as they come from one set of owners, uses and totals are
//! counted once for all of them.

use super::owners::SetId;
use super::{NodeId, Tree};
use radixscope_model::id::Slot;

/// What one event moved and what is not counted yet. To be applied before anything else looks at sets or totals.
pub(super) struct Moves {
    worker: Slot,
    /// Set that the blocks come from; `NONE` where none was looked at.
    from: SetId,
    /// Whether the worker is in it, so that it leaves it.
    has_worker: bool,
    /// Owners in it, see [`super::owners::OwnerSets::owners`].
    owners: u32,
    /// The same with the worker toggled; `NONE` until a block moves.
    to: SetId,
    attached: i64,
    unattached: i64,
}

const NONE: SetId = SetId(u32::MAX);

impl Moves {
    pub(super) fn new(worker: Slot) -> Self {
        Self { worker, from: NONE, has_worker: false, owners: 0, to: NONE, attached: 0, unattached: 0 }
    }

    #[inline]
    pub(super) fn worker(&self) -> Slot {
        self.worker
    }

    /// Whether these are known to be owners among which the worker is.
    #[inline]
    pub(super) fn are_with_worker(&self, set: SetId) -> bool {
        self.from == set && self.has_worker
    }
}

impl Tree {
    /// Whether the worker of `moves` is in `set`, the owners of a block, and whether another one is.
    #[inline]
    pub(super) fn move_from(&mut self, moves: &mut Moves, set: SetId) -> (bool, bool) {
        if set != moves.from {
            self.apply_moves(moves);
            (moves.from, moves.owners) = (set, self.sets.owners(set));
            moves.has_worker = self.sets.get(set).contains(moves.worker);
        }
        (moves.has_worker, moves.owners > u32::from(moves.has_worker))
    }

    /// The worker of `moves` becomes an owner of a block, at whose owners was just looked, or ceases to be one. Gives its new set,
    /// which is counted as used.
    #[inline]
    pub(super) fn move_to(&mut self, moves: &mut Moves, is_unattached: bool) -> SetId {
        if moves.to == NONE {
            moves.to = self.sets.toggled(moves.from, moves.worker);
        }
        let count = if is_unattached { &mut moves.unattached } else { &mut moves.attached };
        *count += 1;
        moves.to
    }

    /// The same of `node`. Gives what both are in the digest if the worker calls the block `name`.
    #[inline]
    pub(super) fn move_owner(&mut self, moves: &mut Moves, node: NodeId, name: u64) -> u64 {
        let n = &self.arena[node];
        debug_assert!(n.set() == moves.from, "looked at");
        let (tokens, parent, is_unattached) = (n.tokens, n.parent, n.is_unattached());
        let to = self.move_to(moves, is_unattached);
        self.arena[node].change_set(to);
        super::term(moves.worker, tokens, self.above(parent), name)
    }

    /// Counts what was moved.
    #[inline]
    pub(super) fn apply_moves(&mut self, moves: &mut Moves) {
        if moves.to != NONE {
            self.count_moves(moves);
        }
    }

    fn count_moves(&mut self, moves: &mut Moves) {
        let (attached, unattached) = (moves.attached, moves.unattached);
        self.sets.move_uses(moves.from, moves.to, (attached + unattached) as u32);
        let sign = if moves.has_worker { -1 } else { 1 };
        self.count(moves.worker, moves.owners, sign * attached, sign * unattached);
        // Both may be other sets from now on.
        (moves.from, moves.to, moves.attached, moves.unattached) = (NONE, NONE, 0, 0);
    }

    /// Keeps the totals when so many blocks, which had `owners` owners each, gain `worker`, or lose it if their number is
    /// negative.
    #[inline]
    pub(super) fn count(&mut self, worker: Slot, owners: u32, attached: i64, unattached: i64) {
        let add = |total: &mut u64, by: i64| *total = total.wrapping_add_signed(by);
        let all = attached + unattached;
        self.turnover.count(all);
        let holdings = self.holdings_mut(worker);
        add(&mut holdings.resident, all);
        add(&mut holdings.unattached, unattached);
        add(&mut self.totals.resident, all);
        add(&mut self.totals.unattached, unattached);
        match owners + u32::from(all > 0) {
            1 => add(&mut self.totals.nodes, attached),
            2 => add(&mut self.totals.shared, attached),
            _ => {}
        }
    }
}
