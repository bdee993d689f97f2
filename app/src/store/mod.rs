//! What the page knows: the folded state, the link it comes over, and the signals that say that something changed.
//!
//! The state itself is no signal: it is one [`Cluster`] that frames are folded into. Two counters notify widgets to
//! look again: `version` once per drawn frame, `beat` at a pace at which numbers can be read. Nothing here knows how
//! anything looks.

mod apply;
mod as_of;
mod changes;
mod clock;
mod file;
mod history;
mod past;
mod paused_tree;
mod track;

use leptos::prelude::*;
use radixscope_model::id::{Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::Tier;
use radixscope_state::cluster::{Cluster, PoolState, SnapshotReader};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, Forest};

pub use apply::Broken;
pub use as_of::{Feed, time_of_day, zone};
pub(crate) use clock::now_ms;
pub use radixscope_panels::link::{Check, Link, Resyncs};
pub use radixscope_panels::round_robin::RoundRobinRun;
pub(crate) use track::TrackUntilDropped;

use crate::net::source::Opened;
use crate::time_range::TimeRange;
use crate::url::{Address, Panel};
pub use crate::view_context::ViewContext;
use crate::view_context::{PoolLabel, PoolQuery, ShownPools};

/// Key in the address: `host_pinned`, `disk` or `external`, the tier whose blocks the tree panel draws; absent: the device.
pub(crate) const TIER_KEY: &str = "tree.tier";

/// The state and what belongs to it.
#[derive(Default)]
struct Live {
    /// What the server sends goes here, whatever moment is shown.
    present: MomentState,
    /// The moment that is shown instead, while the reader looks back.
    past: Option<MomentState>,
    /// What of the past was fetched.
    fetched: past::SegmentCache,
    /// What the server keeps, and what each second brought.
    history: history::RetainedHistory,
    /// Run of the server that `present` belongs to; `None` before the first state.
    epoch: Option<u64>,
    /// Run of the server that is speaking.
    speaking: Option<u64>,
    /// The page's clock when the last frame came.
    received_at_ms: f64,
    /// A snapshot under way.
    reader: Option<SnapshotReader>,
    pace: clock::Pace,
    /// How many draw the tree.
    forest_keepers: u32,
    paused_tree: paused_tree::PausedTree,
    compared: changes::Compared,
}

/// What is known of one moment.
#[derive(Default)]
struct MomentState {
    cluster: Cluster,
    /// The server's clock: in the last frame, or at the moment looked back to.
    now_ms: Millis,
    /// Digest of the state after the record it was computed for.
    digest: Option<(Seq, u64)>,
}

impl Live {
    /// What panels show.
    fn shown(&self) -> &MomentState {
        self.past.as_ref().unwrap_or(&self.present)
    }

    fn shown_mut(&mut self) -> &mut MomentState {
        self.past.as_mut().unwrap_or(&mut self.present)
    }
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
    /// The workers shown, in order of first sight, without those that left long ago.
    pub listed: Memo<Vec<WorkerIx>>,
    /// Those of the pool whose tree is drawn.
    pub drawn: Memo<Vec<WorkerIx>>,
    /// Which pools are shown.
    pub pools: Memo<ShownPools>,
    /// The pool whose tree is drawn while all pools are shown; `None`: the default one.
    pub turned_to: RwSignal<Option<PoolIx>>,
    /// The pools to choose from and to distinguish; empty where there is one.
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
    /// Parts of the address that were not understood, as text.
    pub misread: RwSignal<Vec<String>>,
    /// Raised when the reader asks not to wait for the next attempt.
    pub retry: RwSignal<u32>,
    /// The moment that is shown; 0: the present.
    pub at: RwSignal<u64>,
    /// How fast it plays, in quarters of real time; 0: it stands still.
    pub speed: RwSignal<u32>,
    /// Why the moment requested is not the one shown; empty: it is.
    pub past_fault: RwSignal<String>,
    /// Whether the server replays a recording: what is newest is its end, and nothing is live.
    pub replayed: RwSignal<bool>,
    /// Whether the moment requested is still on its way.
    pub past_waits: RwSignal<bool>,
    /// The time shown once seeking has paused, as in the address, Unix milliseconds; 0: the present.
    pub debounced_at: RwSignal<u64>,
    /// Raised when more of the timeline is known.
    pub history_version: RwSignal<u32>,
    /// The recording that the reader opened in the place of the server.
    pub file: RwSignal<Option<Opened>>,
    /// The second recording that the reader opened: B is a moment of it.
    pub second: RwSignal<Option<Opened>>,
    /// Why a recording is not shown, or not whole; empty: no fault.
    pub file_note: RwSignal<String>,
    /// Raised when the state of a marked moment is here, or cannot be had.
    pub changes_fetched: RwSignal<u32>,
    /// The last simulation of round-robin; `None`: not simulated yet.
    pub round_robin: RwSignal<Option<RoundRobinRun>>,
}

impl Store {
    /// An empty store for the view at `address`.
    pub fn new((address, misread): (Address, Vec<String>)) -> Self {
        let live = StoredValue::new_local(Live::default());
        let beat = RwSignal::new(0);
        let workers = Memo::new(move |_| {
            beat.track();
            live.with_value(|live| live.shown().cluster.workers().slots())
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
        let turned_to = RwSignal::new(None);
        let pools = Memo::new(move |_| {
            beat.track();
            query.with(|query| {
                live.with_value(|live| {
                    let cluster = &live.shown().cluster;
                    ShownPools::of(cluster, query).drawing(turned_to.get()).in_tier(cluster, tier.get())
                })
            })
        });
        let workers_of = move |list: fn(&ViewContext<'_>, Millis) -> Vec<WorkerIx>| {
            Memo::new(move |_| {
                beat.track();
                let pools = pools.get();
                live.with_value(|live| {
                    let shown = live.shown();
                    list(&ViewContext::new(&shown.cluster, pools), shown.cluster.now_ms())
                })
            })
        };
        let listed = workers_of(|shown, now| shown.listed_workers(now));
        let drawn = workers_of(|shown, _| shown.drawn_workers().collect());
        let labels = Memo::new(move |_| {
            beat.track();
            let pools = pools.get();
            live.with_value(|live| ViewContext::new(&live.shown().cluster, pools).pool_labels())
        });
        Self {
            live,
            version: RwSignal::new(0),
            beat,
            workers,
            listed,
            drawn,
            pools,
            turned_to,
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
            at: RwSignal::new(0),
            speed: RwSignal::new(0),
            past_fault: RwSignal::new(String::new()),
            replayed: RwSignal::new(false),
            past_waits: RwSignal::new(false),
            debounced_at: RwSignal::new(0),
            history_version: RwSignal::new(0),
            file: RwSignal::new(None),
            second: RwSignal::new(None),
            file_note: RwSignal::new(String::new()),
            changes_fetched: RwSignal::new(0),
            round_robin: RwSignal::new(None),
        }
    }

    /// Whether a state is there at all. Tracked.
    pub fn ready(self) -> bool {
        self.ready.get()
    }

    /// Reads the state, and again whenever it changed: once per drawn frame.
    pub fn on_frame<T>(self, read: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        self.version.track_until_dropped();
        self.pools.track_until_dropped();
        self.peek(read)
    }

    /// Reads the state, and again at a readable pace.
    pub fn on_beat<T>(self, read: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        self.beat.track_until_dropped();
        self.pools.track_until_dropped();
        self.peek(read)
    }

    /// Reads the state once.
    pub fn peek<T>(self, read: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        let pools = self.pools.get_untracked();
        self.live.with_value(|live| read(&ViewContext::new(&live.shown().cluster, pools)))
    }

    /// The same; the tree is the paused copy, if there is one, or that of two moments.
    fn peek_drawn<T>(self, read: impl FnOnce(&ViewContext<'_>) -> T) -> T {
        let pools = self.pools.get_untracked();
        self.live.with_value(|live| {
            let shown = ViewContext::new(&live.shown().cluster, pools);
            let changes = live.compared.tree();
            let paused_tree = live.paused_tree.of(pools.drawn()).filter(|_| changes.is_none());
            read(&ViewContext { paused_tree, changes, ..shown })
        })
    }

    /// Looks at the state with its forest arranged and updated, and again whenever it changed: once per drawn frame.
    /// The forest is kept from one frame to the next as long as a caller needs it, see [`Store::keep_forest`].
    pub fn on_tree_frame(self, arrangement: Arrangement, look: impl FnOnce(&ViewContext<'_>, &Forest)) {
        self.version.track_until_dropped();
        self.look_at_tree(arrangement, look);
    }

    /// Like [`Store::on_tree_frame`], at a readable pace.
    pub fn on_tree_beat(self, arrangement: Arrangement, look: impl FnOnce(&ViewContext<'_>, &Forest)) {
        self.beat.track_until_dropped();
        self.look_at_tree(arrangement, look);
    }

    fn look_at_tree(self, arrangement: Arrangement, look: impl FnOnce(&ViewContext<'_>, &Forest)) {
        let pools = self.pools.get_until_dropped();
        self.live.update_value(|live| {
            if let Some(changes) = live.compared.tree_mut() {
                changes.tree_mut().build_forest(arrangement);
                changes.tree_mut().update_forest();
                return;
            }
            let state = live.past.as_mut().unwrap_or(&mut live.present);
            state.cluster.arrange_forest(pools.pool, pools.tier, arrangement);
            live.paused_tree.keep(ViewContext::new(&state.cluster, pools).tree(), pools.drawn(), arrangement);
        });
        self.peek_drawn(|shown| shown.tree().forest().map(|forest| look(shown, forest)));
    }

    /// From now on the forest tells what each frame brought and took, see
    /// [`radixscope_state::tree::forest::Forest::changes`]. To be called with every frame: a forest that is retained anew has
    /// forgotten it.
    pub fn keep_tree_changes(self) {
        self.live.update_value(|live| live.shown_mut().cluster.keep_forest_changes(true));
    }

    /// Looks at the tree that is drawn with its forest updated, once; `None` where there is none.
    pub fn with_tree<T>(self, look: impl FnOnce(&Tree, &Forest) -> T) -> Option<T> {
        self.look(|shown, forest| look(shown.tree(), forest))
    }

    /// The same with the state around it.
    pub fn look<T>(self, look: impl FnOnce(&ViewContext<'_>, &Forest) -> T) -> Option<T> {
        self.live.update_value(|live| live.shown_mut().cluster.update_forest());
        self.peek_drawn(|shown| shown.tree().forest().map(|forest| look(shown, forest)))
    }

    /// The forest is kept until the present owner is cleaned up. When a panel with the tree follows another one, the
    /// new one asks before the old one is gone, so the callers are counted.
    pub fn keep_forest(self) {
        self.live.update_value(|live| live.forest_keepers += 1);
        on_cleanup(move || {
            self.live.try_update_value(|live| {
                live.forest_keepers -= 1;
                if live.forest_keepers == 0 {
                    live.paused_tree = paused_tree::PausedTree::default();
                    live.shown_mut().cluster.drop_forest();
                }
            });
        });
    }

    /// The server's clock in full seconds: for what does not change faster.
    pub fn second(self) -> Memo<Millis> {
        Memo::new(move |_| {
            let now = self.received_ms();
            self.on_beat(|_| Millis(now.0 / 1000 * 1000))
        })
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

    /// The name of a worker's pool: in short beside it, and in full. `None` where there is one pool. Tracked.
    pub fn pool_label(self, worker: WorkerIx) -> Option<(String, String)> {
        self.labels.track_until_dropped();
        self.labels.with_untracked(|all| {
            let pool = self.peek(|shown| shown.pool_of(worker)).filter(|_| all.len() > 1)?;
            let label = all.iter().find(|label| label.pool == pool)?;
            Some((label.beside(all), label.to_text()))
        })
    }

    /// The pool whose decisions are compared with each other; `None` where there is one. Tracked.
    pub fn compared_pool(self) -> Option<PoolIx> {
        let pool = self.pool();
        self.labels.track_until_dropped();
        self.labels.with_untracked(|labels| (!labels.is_empty()).then_some(pool))
    }

    /// The last simulation of round-robin, if it is about what is shown: this moment, and this pool alone. Tracked.
    pub fn simulated_round_robin(self) -> Option<RoundRobinRun> {
        let is_one_pool = self.labels.with(Vec::is_empty) || self.pools.get().only.is_some();
        let (pool, shown_at) = (self.compared_pool(), self.debounced_at.get());
        self.round_robin.get().filter(|run| is_one_pool && run.pool == pool && run.shown_at == shown_at)
    }

    /// The pool whose tree is drawn. Tracked.
    pub fn pool(self) -> PoolIx {
        self.pools.get_until_dropped().pool
    }

    /// Digest and the record after which the state had it. Not tracked.
    pub fn digest(self) -> Option<(Seq, u64)> {
        self.live.with_value(|live| live.shown().digest)
    }

    /// Where a new connection continues: run of the server and last record.
    pub fn resume(self) -> Option<(u64, Seq)> {
        self.live.with_value(|live| Some((live.epoch?, live.present.cluster.seq())))
    }

    /// Whether any KV event of the workers shown was received; before, nothing is known of any cache. Tracked.
    pub fn has_kv_events(self) -> bool {
        self.on_beat(|shown| shown.has_kv_events())
    }

    /// How many workers are known, whatever is shown of them. Tracked.
    pub fn worker_slots(self) -> usize {
        self.workers.get_until_dropped()
    }

    /// The worker picked out everywhere, if the state knows it. Tracked.
    pub fn picked(self) -> Option<WorkerIx> {
        self.address.track_until_dropped();
        let worker = self.address.with_untracked(|address| address.worker)?;
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
