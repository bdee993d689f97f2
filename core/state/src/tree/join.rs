//! Joining blocks that waited for their parent to the tree, once that parent appears.

use super::{NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot};

impl Tree {
    /// The parent that `anchor` waited for is `parent`: its subtree moves below it.
    ///
    /// Everything below an anchor is held by one worker at most, the anchor's own. Does nothing where `parent` lies
    /// below the anchor itself: a chain that claims to be its own ancestor keeps waiting.
    pub(super) fn join(&mut self, anchor: NodeId, parent: NodeId) {
        if self.is_below(parent, anchor) {
            return;
        }
        let waiting = self.arena[anchor];
        let worker = Slot(waiting.tokens as u16);
        self.anchors.remove(&(worker, BlockHash(waiting.block)));
        let attach = !self.arena[parent].is_unattached();
        self.pass_hits(anchor, parent);
        let mut merges = vec![(anchor, parent)];
        while let Some((from, to)) = merges.pop() {
            let children: Vec<NodeId> = self.families.of(&self.arena, from).collect();
            for child in children {
                let tokens = self.arena[child].tokens;
                match self.families.find(&self.arena, to, tokens) {
                    Some(twin) => {
                        self.pass_hits(child, twin);
                        let first = self.first_stored(child).min(self.first_stored(twin));
                        self.arena.set_first_stored(twin, first);
                        self.hand_over(worker, child, twin);
                        // Freed already if nothing hangs below it.
                        if !self.arena[child].is_free() {
                            merges.push((child, twin));
                        }
                    }
                    None => self.reparent(worker, child, to, attach),
                }
            }
            // Goes, with what is above it up to the anchor, once its last child has gone.
            if !self.arena[from].is_free() {
                self.prune(from);
            }
        }
    }

    /// `worker` holds `twin` instead of `child`, which has the same path.
    fn hand_over(&mut self, worker: Slot, child: NodeId, twin: NodeId) {
        if !self.owners(child).contains(worker) {
            return;
        }
        let name = self.index.name(&self.arena, child, worker);
        let further = self.twins.names(child, worker);
        self.arena[twin].touched = self.arena[twin].touched.max(self.arena[child].touched);
        for &name in &further {
            self.remove_name(worker, name);
        }
        for name in std::iter::once(name).chain(further) {
            self.acquire(worker, twin, name);
        }
    }

    fn reparent(&mut self, worker: Slot, child: NodeId, to: NodeId, attach: bool) {
        let held = self.owners(child).contains(worker);
        let name = self.index.name(&self.arena, child, worker);
        if held {
            self.digest = self.digest.wrapping_sub(self.term(worker, child, name));
        }
        self.families.unlink(&mut self.arena, child);
        self.families.link(&mut self.arena, to, child);
        if held {
            self.digest = self.digest.wrapping_add(self.term(worker, child, name));
        }
        if attach {
            self.attach_below(worker, child);
            self.notify(|forest, ground| forest.grafted(ground, child));
        }
    }

    /// Counts `top` and everything below it as attached.
    fn attach_below(&mut self, worker: Slot, top: NodeId) {
        let mut todo = vec![top];
        while let Some(node) = todo.pop() {
            self.arena[node].mark_attached();
            if !self.owners(node).is_empty() {
                self.holdings_mut(worker).unattached -= 1;
                self.totals.unattached -= 1;
                self.totals.nodes += 1;
            }
            todo.extend(self.families.of(&self.arena, node));
        }
    }

    fn is_below(&self, node: NodeId, anchor: NodeId) -> bool {
        if !self.arena[node].is_unattached() {
            return false;
        }
        let mut at = node;
        loop {
            if at == anchor {
                return true;
            }
            if at == NodeId::ROOT || at == NodeId::NONE {
                return false;
            }
            at = self.arena[at].parent;
        }
    }
}
