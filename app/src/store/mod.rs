//! What the page knows: the folded state, the link it comes over, and the signals that say that something changed.
//!
//! The state itself is no signal: it is one [`Cluster`] that frames are folded into. Two counters tell widgets to
//! look again: `version` once per drawn frame, `beat` at a pace at which numbers can be read. Nothing here knows how
//! anything looks.

mod apply;
mod as_of;
mod clock;
mod link;
mod still;

use leptos::prelude::*;
use radixscope_model::id::{Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::Tier;
use radixscope_state::cluster::{Cluster, PoolState, SnapshotReader};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, Forest};

pub use apply::Broken;
pub use as_of::{Feed, time_of_day, zone};
pub(crate) use clock::now_ms;
pub use link::{Check, Link, Resyncs};

pub use crate::shown::Shown;
use crate::shown::{PoolLabel, PoolQuery, ShownPools};
use crate::time_range::TimeRange;
use crate::url::{Address, Panel};

/// Key in the address: `host_pinned`, `disk` or `external`, the tier whose blocks the tree panel draws; absent: the device.
pub(crate) const TIER_KEY: &str = "tree.tier";

/// The state and what belongs to it.
#[derive(Default)]
struct Live {
    cluster: Cluster,
    /// Run of the server that `cluster` belongs to; `None` before the first state.
    epoch: Option<u64>,
    /// Run of the server that is speaking.
    speaking: Option<u64>,
    /// Server's clock in the last frame.
    now_ms: Millis,
    /// The page's clock then.
    received_at_ms: f64,
    /// A snapshot under way.
    reader: Option<SnapshotReader>,
    /// Digest of the state after the record it was computed for.
    digest: Option<(Seq, u64)>,
    pace: clock::Pace,
    /// How many draw the tree.
    forest_keepers: u32,
    still: still::Still,
}

/// Handle to everything the page knows; copied freely.
#[derive(Clone, Copy)]
pub struct Store {
    live: StoredValue<Live, LocalStorage>,
    version: RwSignal<u64>,
    beat: RwSignal<u64>,
    ready: RwSignal<bool>,
    /// How many workers are known, whatever is shown of them.
    pub workers: Memo<usize>,
    /// The workers shown, in order of first sight.
    pub listed: Memo<Vec<WorkerIx>>,
    /// Those of the pool whose tree is drawn.
    pub drawn: Memo<Vec<WorkerIx>>,
    /// Which pools are shown.
    pub pools: Memo<ShownPools>,
    /// The pools to choose from and to tell apart; empty where there is one.
    pub labels: Memo<Vec<PoolLabel>>,
    /// Where the link to the server stands.
    pub link: RwSignal<Link>,
    /// Whether nothing came for longer than the server's heartbeat allows.
    pub stale: RwSignal<bool>,
    /// What the comparison with the server's digest gave.
    pub check: RwSignal<Check>,
    /// Why the state had to be fetched anew, and how often.
    pub resyncs: RwSignal<Resyncs>,
    /// The server's version, for people.
    pub server: RwSignal<String>,
    /// The view that the address names.
    pub address: RwSignal<Address>,
    /// The time that charts showed before the reader zoomed in.
    pub unzoomed: RwSignal<Option<TimeRange>>,
    /// The time that the pointer is at, and the chart that it is over.
    pub pointed: RwSignal<Option<(Millis, String)>>,
    /// Parts of the address that were not understood, in words.
    pub misread: RwSignal<Vec<String>>,
    /// Raised when the reader asks not to wait for the next attempt.
    pub retry: RwSignal<u32>,
}

impl Store {
    /// An empty store for the view at `address`.
    pub fn new((address, misread): (Address, Vec<String>)) -> Self {
        let live = StoredValue::new_local(Live::default());
        let beat = RwSignal::new(0);
        let workers = Memo::new(move |_| {
            beat.track();
            live.with_value(|live| live.cluster.workers().len())
        });
        let address = RwSignal::new(address);
        let query = Memo::new(move |_| address.with(|address| address.pools.clone()));
        // The other panels are about what lies on the devices.
        let tier = Memo::new(move |_| {
            address.with(|address| {
                let named = || Tier::named(&address.other(TIER_KEY)?);
                (address.panel == Panel::Tree).then(named).flatten()
            })
        });
        let pools = Memo::new(move |_| {
            beat.track();
            query.with(|query| {
                live.with_value(|live| {
                    ShownPools::of(&live.cluster, query).in_tier(&live.cluster, tier.get())
                })
            })
        });
        let workers_of = move |list: fn(&Shown<'_>) -> Vec<WorkerIx>| {
            Memo::new(move |_| {
                beat.track();
                let pools = pools.get();
                live.with_value(|live| list(&Shown::new(&live.cluster, pools)))
            })
        };
        let listed = workers_of(|shown| shown.worker_list().collect());
        let drawn = workers_of(|shown| shown.drawn_workers().collect());
        let labels = Memo::new(move |_| {
            beat.track();
            let pools = pools.get();
            live.with_value(|live| Shown::new(&live.cluster, pools).pool_labels())
        });
        Self {
            live,
            version: RwSignal::new(0),
            beat,
            workers,
            listed,
            drawn,
            pools,
            labels,
            ready: RwSignal::new(false),
            link: RwSignal::new(Link::Connecting),
            stale: RwSignal::new(false),
            check: RwSignal::new(Check::default()),
            resyncs: RwSignal::new(Resyncs::default()),
            server: RwSignal::new(String::new()),
            address,
            unzoomed: RwSignal::new(None),
            pointed: RwSignal::new(None),
            misread: RwSignal::new(misread),
            retry: RwSignal::new(0),
        }
    }

    /// Whether a state is there at all. Tracked.
    pub fn ready(self) -> bool {
        self.ready.get()
    }

    /// Looks at the state, and again whenever it changed: once per drawn frame.
    pub fn on_frame<T>(self, look: impl FnOnce(&Shown<'_>) -> T) -> T {
        self.version.track();
        self.pools.track();
        self.peek(look)
    }

    /// Looks at the state with its forest arranged and settled, and again whenever it changed: once per drawn frame.
    /// The forest is kept from one frame to the next as long as somebody has asked for that, see [`Store::keep_forest`].
    pub fn on_tree_frame(self, arrangement: Arrangement, look: impl FnOnce(&Shown<'_>, &Forest)) {
        self.version.track();
        self.look_at_tree(arrangement, look);
    }

    /// Like [`Store::on_tree_frame`], at a readable pace.
    pub fn on_tree_beat(self, arrangement: Arrangement, look: impl FnOnce(&Shown<'_>, &Forest)) {
        self.beat.track();
        self.look_at_tree(arrangement, look);
    }

    fn look_at_tree(self, arrangement: Arrangement, look: impl FnOnce(&Shown<'_>, &Forest)) {
        let pools = self.pools.get();
        self.live.update_value(|live| {
            live.cluster.arrange_forest(pools.pool, pools.tier, arrangement);
            live.still.keep(Shown::new(&live.cluster, pools).tree(), pools.drawn(), arrangement);
        });
        self.peek_still(|shown| shown.tree().forest().map(|forest| look(shown, forest)));
    }

    /// From now on the forest tells what each frame brought and took, see
    /// [`radixscope_state::tree::forest::Forest::changes`]. To be said with every frame: a forest that is kept anew has
    /// forgotten it.
    pub fn keep_tree_changes(self) {
        self.live.update_value(|live| live.cluster.keep_forest_changes(true));
    }

    /// Looks at the tree that is drawn with its forest settled, once; `None` where none is kept.
    pub fn with_tree<T>(self, look: impl FnOnce(&Tree, &Forest) -> T) -> Option<T> {
        self.look(|shown, forest| look(shown.tree(), forest))
    }

    /// The same with the state around it.
    pub fn look<T>(self, look: impl FnOnce(&Shown<'_>, &Forest) -> T) -> Option<T> {
        self.live.update_value(|live| live.cluster.settle_forest());
        self.peek_still(|shown| shown.tree().forest().map(|forest| look(shown, forest)))
    }

    /// The forest is kept until the present owner is cleaned up. When a panel with the tree follows another one, the
    /// new one asks before the old one is gone, so it is counted who asked.
    pub fn keep_forest(self) {
        self.live.update_value(|live| live.forest_keepers += 1);
        on_cleanup(move || {
            self.live.try_update_value(|live| {
                live.forest_keepers -= 1;
                if live.forest_keepers == 0 {
                    live.still = still::Still::default();
                    live.cluster.fell_forest();
                }
            });
        });
    }

    /// Looks at the state, and again at a readable pace.
    pub fn on_beat<T>(self, look: impl FnOnce(&Shown<'_>) -> T) -> T {
        self.beat.track();
        self.pools.track();
        self.peek(look)
    }

    /// The server's clock in full seconds: for what does not change faster.
    pub fn second(self) -> Memo<Millis> {
        Memo::new(move |_| {
            let now = self.received_ms();
            self.on_beat(|_| Millis(now.0 / 1000 * 1000))
        })
    }

    /// Looks at the state once.
    pub fn peek<T>(self, look: impl FnOnce(&Shown<'_>) -> T) -> T {
        let pools = self.pools.get_untracked();
        self.live.with_value(|live| look(&Shown::new(&live.cluster, pools)))
    }

    /// Shows one pool, unless its tree is the one drawn anyway.
    pub fn show_pool(self, pool: PoolIx) {
        if self.pools.get_untracked().pool == pool {
            return;
        }
        if let Some(name) = self.peek(|shown| shown.cluster.pool(pool).map(PoolState::name)) {
            self.address.update(|address| address.pools = PoolQuery { pool: Some(name), model: None });
        }
    }

    /// What is to be said of a worker's pool: in short beside it, and in full. `None` where there is one pool. Tracked.
    pub fn pool_words(self, worker: WorkerIx) -> Option<(String, String)> {
        self.labels.with(|all| {
            let pool = self.peek(|shown| shown.pool_of(worker)).filter(|_| all.len() > 1)?;
            let label = all.iter().find(|label| label.pool == pool)?;
            Some((label.beside(all), label.words()))
        })
    }

    /// The pool whose decisions are compared with each other; `None` where there is one. Tracked.
    pub fn judged_pool(self) -> Option<PoolIx> {
        let pools = self.pools.get();
        self.labels.with(|labels| (!labels.is_empty()).then_some(pools.pool))
    }

    /// The pool whose tree is drawn. Tracked.
    pub fn pool(self) -> PoolIx {
        self.pools.get().pool
    }

    /// Digest and the record after which the state had it. Not tracked.
    pub fn digest(self) -> Option<(Seq, u64)> {
        self.live.with_value(|live| live.digest)
    }

    /// Where a new connection continues: run of the server and last record.
    pub fn resume(self) -> Option<(u64, Seq)> {
        self.live.with_value(|live| Some((live.epoch?, live.cluster.seq())))
    }

    /// Whether any KV event of the workers shown was received; before, nothing is known of any cache. Tracked.
    pub fn has_kv_events(self) -> bool {
        self.on_beat(|shown| {
            let mut workers = shown.worker_list().filter_map(|worker| shown.cluster.worker(worker));
            workers.any(|worker| worker.last_event_ms.is_some())
        })
    }

    /// The worker picked out everywhere, if the state knows it. Tracked.
    pub fn picked(self) -> Option<WorkerIx> {
        let worker = self.address.with(|address| address.worker)?;
        self.on_beat(|shown| {
            shown.worker_ix(worker).filter(|&ix| shown.pool_of(ix).is_some_and(|pool| shown.has(pool)))
        })
    }

    /// Picks out a worker, or none if it was picked out already; nothing where its pool is not shown.
    pub fn pick(self, worker: WorkerIx) {
        let id = self
            .peek(|shown| shown.worker(worker).filter(|state| shown.has(state.pool)).map(|state| state.id));
        let Some(id) = id else { return };
        self.address.update(|address| address.worker = (address.worker != Some(id)).then_some(id));
    }
}
