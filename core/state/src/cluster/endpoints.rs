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

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Millis, Seq, Worker};
    use radixscope_model::record::{Entry, Record};

    #[test]
    fn a_worker_has_its_latest_name_and_it_is_part_of_the_digest() {
        let mut cluster = Cluster::default();
        let mut fold = |record| {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(1), record });
            (cluster.endpoint_of(WorkerIx(0)).map(str::to_owned), cluster.head.endpoints.len())
        };
        let named = |name: &'static str| Record::Endpoint { worker: WorkerIx(0), name: name.into() };
        assert_eq!(fold(named("nobody")), (None, 0), "a worker that is not known");
        fold(Record::new_worker(WorkerIx(0), Worker::new(7, 0), "", ""));
        assert_eq!(fold(named("a/p")), (Some("a/p".to_owned()), 1));
        assert_eq!(fold(named("a/q")), (Some("a/q".to_owned()), 1));
        let digest = cluster.digest();
        cluster.fold_endpoint(WorkerIx(0), "a/r");
        assert_ne!(cluster.digest(), digest);
    }

    #[test]
    fn names_are_bounded_and_the_oldest_goes() {
        let mut cluster = Cluster::default();
        for worker in 0..=MAX_ENDPOINTS as u32 {
            cluster.fold_endpoint(WorkerIx(worker), "x");
        }
        assert_eq!(cluster.head.endpoints.len(), MAX_ENDPOINTS);
        assert_eq!((cluster.endpoint_of(WorkerIx(0)), cluster.endpoint_of(WorkerIx(1))), (None, Some("x")));
    }
}
