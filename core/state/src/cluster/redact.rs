//! The state with pseudonyms in place of names and ids, see [`crate::redact`].

use super::{Cluster, Head, WorkerState};
use crate::redact::{self, Pseudonyms};

impl Cluster {
    /// Replaces names and ids.
    pub fn redact(&mut self, names: &mut dyn Pseudonyms) {
        let Head {
            sources,
            workers,
            pools,
            departed,
            decisions,
            processes,
            routers,
            findings,
            settings,
            policy_classes,
            engines,
            endpoints,
            indexers,
            ..
        } = &mut self.head;
        // Texts may repeat these, so they come first.
        for source in sources {
            source.name = redact::name(source.kind.as_str(), &source.name, names);
            names.leave_out(&source.detail);
            source.detail.clear();
            for rejected in &mut source.rejected {
                names.leave_out(&rejected.sample);
                rejected.sample.clear();
            }
        }
        workers.iter_mut().for_each(|(_, worker)| worker.redact(names));
        departed.each(|worker| worker.redact(names));
        for pool in pools {
            pool.namespace = redact::name("namespace", &pool.namespace, names);
        }
        processes.iter_mut().for_each(|process| process.redact(names));
        routers.iter_mut().for_each(|router| router.id = names.number(router.id));
        settings.iter_mut().for_each(|state| state.redact(names));
        policy_classes.iter_mut().for_each(|of| redact::policy_classes(of, names));
        engines.iter_mut().for_each(|feed| redact::engine(feed, names));
        endpoints.iter_mut().for_each(|(_, endpoint)| *endpoint = redact::name("endpoint", endpoint, names));
        indexers.iter_mut().for_each(|state| redact::indexer(&mut state.report, names));
        decisions.redact(names);
        findings.redact(names);
    }
}

impl WorkerState {
    fn redact(&mut self, names: &mut dyn Pseudonyms) {
        self.id = redact::worker(self.id, names);
        for load in &mut self.router_loads {
            load.router = load.router.map(|router| names.number(router));
        }
        names.leave_out(&self.knowledge.asking_detail);
        self.knowledge.asking_detail.clear();
    }
}
