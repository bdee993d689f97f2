//! What frontends report of their routers' settings, reading after reading: recorded when it is news, with the time of the reading
//! before, between which and this one it changed. Must not know what settings do.

use std::collections::BTreeMap;

use super::scrape::shortened;
use super::{Context, Ingest, Sink, within_bounds};
use radixscope_dynamo::error::DecodeError;
use radixscope_dynamo::router_policy::{self, RouterPolicy};
use radixscope_model::id::Millis;
use radixscope_model::record::{Record, ReportedSettings, RouterRef, SettingsSource};
use radixscope_state::cluster::{Cluster, SettingsState};

/// Most frontends whose readings are kept apart.
const MAX_FRONTENDS: usize = 64;

/// When each frontend was read last.
#[derive(Default)]
pub(super) struct RouterPolicies {
    read: BTreeMap<String, Millis>,
}

impl RouterPolicies {
    /// Takes a frontend's list of routers; gives what is news in it.
    fn listed(
        &mut self,
        frontend: &str,
        at: Millis,
        routers: &[RouterPolicy<'_>],
        cluster: &Cluster,
    ) -> Vec<ReportedSettings> {
        let before = self.read.get(frontend).copied();
        if before.is_none() && self.read.len() == MAX_FRONTENDS {
            return Vec::new();
        }
        self.read.insert(frontend.to_owned(), at);
        let source = SettingsSource::PolicyEndpoint;
        let known = || {
            let own = cluster.settings().iter();
            own.filter(|state| state.source == source && state.of.reporter == frontend)
        };
        let mut news = Vec::new();
        for router in routers {
            let of = router_ref(frontend, router);
            let known: Option<&SettingsState> = known().find(|state| state.of == of);
            let is_known = known.is_some_and(|state| {
                let latest = (state.latest.revision, state.latest.numbers);
                state.left_ms.is_none() && latest == (router.revision, router.numbers)
            });
            if is_known {
                continue;
            }
            // Of a state that was gone on from, nothing later is known than when it was reported.
            let after_ms = known.map(|state| before.unwrap_or(state.latest.by_ms));
            let numbers = Some(router.numbers);
            let revision = router.revision;
            news.push(ReportedSettings { source, of, revision, numbers, after_ms, by_ms: at });
        }
        let is_listed = |of: &RouterRef| routers.iter().any(|router| router_ref(frontend, router) == *of);
        let left = known().filter(|state| state.left_ms.is_none() && !is_listed(&state.of));
        news.extend(left.map(|state| ReportedSettings {
            source,
            of: state.of.clone(),
            revision: None,
            numbers: None,
            after_ms: before,
            by_ms: at,
        }));
        news
    }
}

/// Whose settings an entry of a list is.
fn router_ref(frontend: &str, router: &RouterPolicy<'_>) -> RouterRef {
    let text = |text: &str| shortened(text).to_owned();
    RouterRef {
        reporter: frontend.to_owned(),
        router: text(&router.router_id),
        model: text(&router.model),
        namespace: text(&router.namespace),
        component: text(&router.component),
        role: router.role,
    }
}

impl Ingest {
    pub(super) fn router_policy(
        &mut self,
        context: &Context<'_>,
        frontend: &str,
        response: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        within_bounds(response)?;
        let routers = router_policy::decode(response)?;
        let at = context.received.at_ms;
        for news in self.router_policies.listed(shortened(frontend), at, &routers, out.cluster()) {
            out.record(context.entry(Record::Settings(Box::new(news))));
        }
        Ok(())
    }
}
