//! Engines that come and go while the process runs.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use radixscope_model::record::LinkState;

use super::super::LinkReport;
use super::super::links::{Links, PublisherLink};
use super::super::peer::Timeouts;
use super::feed::Output;
use super::server_info::Layout;
use super::{Named, feed};
use crate::hub::SourceHandle;
use crate::source::gate::{Evidence, Gate};

/// Publishers of an engine that were received from, so that it can be reported that they are gone.
pub(super) type Outputs = Arc<Mutex<Vec<Arc<Output>>>>;

/// What listening to engines needs.
pub(super) struct Listening {
    pub(super) to: SourceHandle,
    pub(super) links: Links,
    pub(super) gate: Arc<Gate>,
    pub(super) timeouts: Timeouts,
    report: mpsc::Sender<(u64, PublisherLink)>,
    next_id: u64,
}

/// An engine that is listened to.
#[derive(Default)]
pub(super) struct Attached {
    pub(super) links: Vec<u64>,
    pub(super) outputs: Outputs,
    pub(super) tasks: JoinSet<()>,
}

impl Listening {
    pub(super) fn new(
        to: SourceHandle,
        links: Links,
        way: (&Arc<Gate>, Timeouts),
        report: mpsc::Sender<(u64, PublisherLink)>,
    ) -> Self {
        Self { to, links, gate: Arc::clone(way.0), timeouts: way.1, report, next_id: 0 }
    }

    /// A new connection. `name`: its target.
    pub(super) fn link(&mut self, name: String) -> LinkReport {
        self.next_id += 1;
        self.links.add(self.next_id, name);
        LinkReport { id: self.next_id, to: self.report.clone() }
    }

    /// Begins to listen to the ranks of the engine `who`.
    pub(super) fn begin(
        &mut self,
        (named, who): (&Named, &str),
        layout: &Layout,
        evidence: Evidence<'static>,
    ) -> Attached {
        let mut begun = Attached::default();
        for socket in &layout.sockets {
            let report = self.link(named.name_at(&socket.endpoint, who));
            begun.links.push(report.id);
            let way = (&self.gate, self.timeouts);
            let (feed, output) = feed((named, who), (socket, evidence), way, &self.to);
            output.link(LinkState::Connecting, "");
            begun.outputs.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&output));
            begun.tasks.spawn(feed.listen(output, report));
        }
        begun
    }

    /// Stops listening to an engine; its publishers will not come back.
    pub(super) async fn end(&mut self, engine: Attached) {
        let Attached { links, outputs, mut tasks } = engine;
        links.into_iter().for_each(|link| self.links.remove(link));
        tasks.shutdown().await;
        let outputs = std::mem::take(&mut *outputs.lock().unwrap_or_else(PoisonError::into_inner));
        for output in outputs {
            // The hub ends only with the process.
            let _ = output.ended().await;
        }
    }
}
