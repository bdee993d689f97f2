//! Joining blocks that waited for their parent to the tree, once that parent appears.

use super::{NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot};

impl Tree {
    /// The parent that `orphan_parent` waited for is `parent`: its subtree moves below it.
    ///
    /// Everything below an orphan parent is held by one worker at most, its own. Does nothing where `parent` lies
    /// below the orphan parent itself: a chain that claims to be its own ancestor keeps waiting.
    pub(super) fn join(&mut self, orphan_parent: NodeId, parent: NodeId) {
        if self.is_below(parent, orphan_parent) {
            return;
        }
        // What the worker holds does not change by it.
        let changed = self.changed.take();
        let waiting = self.arena[orphan_parent];
        let worker = Slot(waiting.tokens as u16);
        self.orphan_parents.remove(&(worker, BlockHash(waiting.block)));
        let attach = !self.arena[parent].is_unattached();
        self.pass_hits(orphan_parent, parent);
        let mut merges = vec![(orphan_parent, parent)];
        while let Some((from, to)) = merges.pop() {
            let children: Vec<NodeId> = self.child_index.of(&self.arena, from).collect();
            for child in children {
                let tokens = self.arena[child].tokens;
                match self.child_index.find(&self.arena, to, tokens) {
                    Some(existing) => {
                        self.pass_hits(child, existing);
                        let first = self.first_stored(child).min(self.first_stored(existing));
                        self.arena.set_first_stored(existing, first);
                        self.hand_over(worker, child, existing);
                        // Freed already if nothing hangs below it.
                        if !self.arena[child].is_free() {
                            merges.push((child, existing));
                        }
                    }
                    None => self.reparent(worker, child, to, attach),
                }
            }
            // Goes, with what is above it up to the orphan parent, once its last child has gone.
            if !self.arena[from].is_free() {
                self.prune(from);
            }
        }
        self.changed = changed;
    }

    /// `worker` holds `existing` instead of `child`, which has the same path.
    fn hand_over(&mut self, worker: Slot, child: NodeId, existing: NodeId) {
        if !self.owners(child).contains(worker) {
            return;
        }
        let name = self.index.name(&self.arena, child, worker);
        let further = self.duplicate_hashes.names(child, worker);
        self.arena[existing].touched = self.arena[existing].touched.max(self.arena[child].touched);
        for &name in &further {
            self.remove_name(worker, name);
        }
        for name in std::iter::once(name).chain(further) {
            self.acquire(worker, existing, name);
        }
    }

    fn reparent(&mut self, worker: Slot, child: NodeId, to: NodeId, attach: bool) {
        let held = self.owners(child).contains(worker);
        let name = self.index.name(&self.arena, child, worker);
        if held {
            self.digest = self.digest.wrapping_sub(self.term(worker, child, name));
        }
        self.child_index.unlink(&mut self.arena, child);
        self.child_index.link(&mut self.arena, to, child);
        if held {
            self.digest = self.digest.wrapping_add(self.term(worker, child, name));
        }
        if attach {
            self.attach_below(worker, child);
            self.notify(|forest, nodes| forest.grafted(nodes, child));
        }
    }

    /// Counts `top` and everything below it as attached.
    fn attach_below(&mut self, worker: Slot, top: NodeId) {
        let mut todo = vec![top];
        while let Some(node) = todo.pop() {
            self.arena[node].mark_attached();
            if let Some(chains) = &mut self.chain_hashes {
                chains.add(node, self.arena[node].parent, self.arena[node].tokens);
            }
            if !self.owners(node).is_empty() {
                self.holdings_mut(worker).unattached -= 1;
                self.totals.unattached -= 1;
                self.totals.nodes += 1;
            }
            todo.extend(self.child_index.of(&self.arena, node));
        }
    }

    fn is_below(&self, node: NodeId, orphan_parent: NodeId) -> bool {
        if !self.arena[node].is_unattached() {
            return false;
        }
        let mut at = node;
        loop {
            if at == orphan_parent {
                return true;
            }
            if at == NodeId::ROOT || at == NodeId::NONE {
                return false;
            }
            at = self.arena[at].parent;
        }
    }
}
