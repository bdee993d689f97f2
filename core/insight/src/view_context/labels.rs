//! What pools are called on screen, and which of them there are to choose from.

use radixscope_model::id::PoolIx;
use radixscope_model::record::Role;
use radixscope_state::cluster::{Cluster, PoolState};

use super::ViewContext;

/// What a pool is called on screen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolLabel {
    /// Which.
    pub pool: PoolIx,
    /// `NAMESPACE/COMPONENT`, as in the address.
    pub name: String,
    /// The component alone where all pools are of one namespace.
    pub short: String,
    /// What its workers do.
    pub role: Option<Role>,
    /// The models that they serve.
    pub models: String,
}

impl PoolLabel {
    fn of(cluster: &Cluster, pool: PoolIx, is_one_namespace: bool) -> Option<Self> {
        let state = cluster.pool(pool)?;
        let name = state.name();
        let short = match is_one_namespace && !state.component.is_empty() {
            true => state.component.clone(),
            false => name.clone(),
        };
        let role = cluster.role(pool).map(|(role, _)| role);
        Some(Self { pool, name, short, role, models: cluster.models_in(pool).join(", ") })
    }

    /// What distinguishes its workers from those of the other pools: role and model where they differ, else the name.
    pub fn beside(&self, all: &[PoolLabel]) -> String {
        let role = self.role.filter(|role| all.iter().any(|other| other.role != Some(*role)));
        let is_model_apart = all.iter().any(|other| other.models != self.models);
        let model = Some(self.models.as_str()).filter(|models| is_model_apart && !models.is_empty());
        // Of `organisation/model` the last part is enough in a narrow column; the whole stands in the switch.
        let model = model.map(|model| model.rsplit('/').next().unwrap_or(model));
        let parts: Vec<&str> = [role.map(Role::as_str), model].into_iter().flatten().collect();
        let is_only = all
            .iter()
            .all(|other| other.pool == self.pool || (other.role, &other.models) != (self.role, &self.models));
        if is_only && !parts.is_empty() { parts.join(" · ") } else { self.short.clone() }
    }

    /// `backend · decode · tiny-llama`, as far as it is known.
    pub fn to_text(&self) -> String {
        let role = self.role.map(Role::as_str).filter(|role| *role != self.short);
        let models = Some(self.models.as_str()).filter(|models| !models.is_empty());
        [Some(self.short.as_str()), role, models].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl ViewContext<'_> {
    /// The pools that a reader can choose from: those that workers are in, and the one shown. Workers of whom no message
    /// named the pool may be of any; they have none of their own here.
    pub fn pool_list(&self) -> Vec<PoolIx> {
        let in_use = self.cluster.pools_in_use();
        let state = |pool: PoolIx| self.cluster.pool(pool);
        let is_named = |pool: &PoolState| !pool.namespace.is_empty() && !pool.component.is_empty();
        let is_of_another = |pool: PoolIx| {
            let Some(of) = state(pool).filter(|of| !is_named(of)) else { return false };
            in_use.iter().any(|&other| {
                other != pool && state(other).is_some_and(|other| is_named(other) && other.may_be(of))
            })
        };
        let mut list: Vec<PoolIx> = in_use.iter().copied().filter(|&pool| !is_of_another(pool)).collect();
        if let Some(only) = self.only.filter(|only| !list.contains(only)) {
            list.push(only);
        }
        list
    }

    /// The same with what they are called; empty where there is no choice: one pool, and nothing asked for.
    pub fn pool_labels(&self) -> Vec<PoolLabel> {
        let list = self.pool_list();
        if list.len() < 2 && self.only.is_none() {
            return Vec::new();
        }
        let mut namespaces =
            list.iter().filter_map(|&pool| Some(self.cluster.pool(pool)?.namespace.as_str()));
        let first = namespaces.next();
        let is_one = namespaces.all(|other| Some(other) == first);
        list.iter().filter_map(|&pool| PoolLabel::of(self.cluster, pool, is_one)).collect()
    }
}
