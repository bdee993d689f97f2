//! The pools: which of them every panel shows, whose tree is drawn, and what a named one is called.

use radixscope_insight::completeness::Trust;
use radixscope_insight::view_context::{PoolLabel, PoolQuery, ViewContext};
use radixscope_model::id::PoolIx;

use crate::format;

/// A pool to choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolOption {
    /// Which.
    pub pool: PoolIx,
    /// Its name in the address.
    pub name: String,
    /// What it is called.
    pub text: String,
    /// Whether it is the only one shown.
    pub is_chosen: bool,
}

/// The pools to choose from after all of them; empty: there is no choice.
pub fn options(labels: &[PoolLabel], only: Option<PoolIx>) -> Vec<PoolOption> {
    let option = |label: &PoolLabel| PoolOption {
        pool: label.pool,
        name: label.name.clone(),
        text: label.to_text(),
        is_chosen: only == Some(label.pool),
    };
    labels.iter().map(option).collect()
}

/// What a choice asks for; an empty one for all pools.
pub fn chosen(name: String) -> PoolQuery {
    PoolQuery { pool: (!name.is_empty()).then_some(name), model: None }
}

/// A pool in the tree's heading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreePool {
    /// Which.
    pub pool: PoolIx,
    /// Its name in short.
    pub name: String,
    /// What it is called in full.
    pub title: String,
    /// Of one whose tree is not drawn, how much of its blocks several workers have; `None`: it is drawn.
    pub shared: Option<String>,
}

impl TreePool {
    /// The pool whose tree is drawn, then the others; empty: there is one.
    pub fn all(shown: &ViewContext<'_>, labels: &[PoolLabel]) -> Vec<Self> {
        if labels.len() < 2 {
            return Vec::new();
        }
        let of = |label: &PoolLabel| {
            let is_drawn = label.pool == shown.pool;
            Self {
                pool: label.pool,
                name: if is_drawn { format!("Pool {}", label.short) } else { label.short.clone() },
                title: label.to_text(),
                shared: (!is_drawn).then(|| shared(shown, label.pool)),
            }
        };
        let mut all: Vec<Self> = labels.iter().map(of).collect();
        all.sort_by_key(|of| of.shared.is_some());
        all
    }
}

fn shared(shown: &ViewContext<'_>, pool: PoolIx) -> String {
    let totals = shown.cluster.tree(pool).totals();
    match totals.nodes {
        _ if Trust::of(shown.cluster, pool).withheld().is_some() => "incomplete".to_owned(),
        0 => "no block".to_owned(),
        nodes => format!("{} shared", format::percent(totals.shared as f64 / nodes as f64)),
    }
}

/// What stands in the address and no pool has.
pub fn unknown(shown: &ViewContext<'_>, query: &PoolQuery) -> Option<String> {
    // Before any worker is known every name is unknown.
    let known: Vec<String> =
        shown.pool_list().into_iter().filter_map(|at| Some(shown.pool(at)?.name())).collect();
    let (key, value) = query.find(shown.cluster).err().filter(|_| !known.is_empty())?;
    Some(format!(
        "{key}={value} in the address is invalid: there are the pools {}; all pools are shown",
        known.join(", ")
    ))
}
