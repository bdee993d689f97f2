//! A frontend's `/health`: the instances that it knows (reference §7.6). A worker's own `/health` lists none, and neither does that of a
//! frontend of 1.7.

use super::discovery::Instance;
use super::envelope::Format;
use super::error::DecodeError;
use super::request_plane::QueryEndpoint;
use super::typed::{self, Bounded, Text};
use radixscope_model::record::Topic;
use serde::Deserialize;

/// Most instances that are read of one list: two thousand workers of eight ranks, each rank with an endpoint of its own.
pub const MAX_INSTANCES: usize = 18_000;

/// What a frontend says of itself and of the workers it knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// Whether it has looked around already; one that has not (1.6: `not_ready`) may know fewer workers than there are.
    pub is_ready: bool,
    /// Workers that take requests.
    pub workers: Vec<Instance>,
    /// Who answers queries for blocks.
    pub query_endpoints: Vec<QueryEndpoint>,
}

/// Reads the body of a response, whatever its status. `None`: it lists no instances.
///
/// # Errors
/// The first thing that was not understood: half a list would tell of departures that did not happen.
pub fn decode(body: &[u8]) -> Result<Option<Health>, DecodeError> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        status: Option<Text<'a>>,
        instances: Option<Bounded<Instance, MAX_INSTANCES>>,
    }
    let Body { status, instances } = typed::decode(Topic::Health.as_str(), body, Format::Json)?;
    let is_ready = status.is_none_or(|Text(status)| status != "not_ready");
    Ok(instances.map(|Bounded(instances)| Health {
        is_ready,
        query_endpoints: instances.iter().filter_map(Instance::query_endpoint).collect(),
        workers: instances.into_iter().filter(Instance::is_worker).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::Reason;
    use radixscope_model::id::Worker;

    const WORKER: u64 = 7_668_682_361_666_917_894;

    fn instance(component: &str, endpoint: &str) -> serde_json::Value {
        json!({"component": component, "endpoint": endpoint, "namespace": "dynamo", "instance_id": WORKER,
            "transport": {"nats_tcp": "dynamo_backend.generate-6a6ca1fa"}})
    }

    fn read(body: &serde_json::Value) -> Result<Option<Health>, DecodeError> {
        decode(body.to_string().as_bytes())
    }

    #[test]
    fn the_workers_of_a_list_are_those_that_take_requests() {
        let body = json!({"status": "healthy", "endpoints": ["dyn://dynamo.backend.generate"], "instances": [
            instance("backend", "generate"), instance("backend", "worker_kv_query_source_cd50057603889"),
            instance("router", "generate"), instance("kv-router", "generate")]});
        let Health { is_ready, workers, query_endpoints } = read(&body).unwrap().unwrap();
        let workers: Vec<_> = workers.iter().map(|of| (of.instance_id.0, &*of.component)).collect();
        assert_eq!((is_ready, workers), (true, vec![(WORKER, "backend")]));
        let [query] = &query_endpoints[..] else { panic!("one answers queries: {query_endpoints:?}") };
        assert_eq!((query.worker, query.publisher_id), (Worker::new(WORKER, 0), Some(0x000c_d500_5760_3889)));
    }

    #[test]
    fn a_frontend_that_is_not_ready_says_so_and_a_worker_lists_nothing() {
        let body = json!({"instances": [], "status": "not_ready"});
        let health = Health { is_ready: false, workers: vec![], query_endpoints: vec![] };
        assert_eq!(read(&body), Ok(Some(health)));
        let own = json!({"status": "ready", "uptime": {"secs": 3}, "endpoints": {"generate": "ready"}});
        assert_eq!(read(&own), Ok(None));
        // Of a frontend of 1.7.0.dev20261026.
        assert_eq!(read(&json!({"status": "healthy", "stage": "ready"})), Ok(None));
    }

    #[test]
    fn half_a_list_is_no_list() {
        let mut bad = instance("backend", "generate");
        bad["instance_id"] = json!("6a6ca1fa");
        let body = json!({"status": "healthy", "instances": [instance("backend", "generate"), bad]});
        assert_eq!(read(&body).unwrap_err().reason, Reason::WrongType);
        let many = vec![instance("backend", "generate"); MAX_INSTANCES + 1];
        assert_eq!(read(&json!({"instances": many})).unwrap_err().reason, Reason::TooLarge);
        assert!(decode(b"{\"status\":\"healthy\",\"instances\":[").is_err());
    }
}
