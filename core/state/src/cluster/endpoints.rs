//! What other routers than Dynamo's call workers: the names of their pods, or their addresses.

use super::Cluster;
use radixscope_model::id::WorkerIx;

/// Most names that are kept; as many as workers. Those of workers that left go first in, first out, so that decisions can name them for
/// as long as there is room.
const MAX_ENDPOINTS: usize = super::MAX_WORKERS;

impl Cluster {
    /// How another router than Dynamo's names a worker. `None`: none does.
    pub fn endpoint_of(&self, worker: WorkerIx) -> Option<&str> {
        let found = self.head.endpoints.iter().find(|(of, _)| *of == worker);
        found.map(|(_, name)| name.as_str())
    }

    pub(super) fn fold_endpoint(&mut self, worker: WorkerIx, name: &str) {
        let endpoints = &mut self.head.endpoints;
        match endpoints.iter_mut().find(|(of, _)| *of == worker) {
            Some((_, known)) => name.clone_into(known),
            None => {
                if endpoints.len() >= MAX_ENDPOINTS {
                    endpoints.remove(0);
                }
                endpoints.push((worker, name.to_owned()));
            }
        }
    }
}
