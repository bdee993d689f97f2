//! A frontend's `/health`: the instances that it knows (reference §7.6). A worker's own `/health` lists none.

use super::error::{DecodeError, Reason};
use super::wire::{Fault, InField, Json, Wire, required};
use radixscope_model::id::WorkerId;
use radixscope_model::record::Topic;

/// Most instances that are read of one list.
pub const MAX_INSTANCES: usize = 4_096;
/// The endpoint that takes requests; others answer the router's questions.
const REQUESTS: &str = "generate";
/// Components that have such an endpoint and are no workers: the standalone router, and the router in a frontend (0.9).
const ROUTERS: [&str; 2] = ["router", "kv-router"];

/// What a frontend says of itself and of the workers it knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// Whether it has looked around already; one that has not (1.6: `not_ready`) may know fewer workers than there are.
    pub is_ready: bool,
    /// Workers that take requests.
    pub workers: Vec<Instance>,
}

/// A worker that a frontend knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The worker process.
    pub id: WorkerId,
    /// Dynamo namespace.
    pub namespace: String,
    /// Dynamo component.
    pub component: String,
}

/// Reads the body of an answer, whatever its status. `None`: it lists no instances, as a worker's own.
///
/// # Errors
/// The first thing that was not understood: half a list would tell of departures that did not happen.
pub fn decode(body: &[u8]) -> Result<Option<Health>, DecodeError> {
    read(&mut Json::new(body)).map_err(|fault| fault.into_error(Topic::Health.as_str()))
}

fn read<'a, W: Wire<'a>>(wire: &mut W) -> Result<Option<Health>, Fault> {
    let (mut is_ready, mut workers) = (true, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"status" => is_ready = wire.text().field("status")? != "not_ready",
            b"instances" => workers = wire.optional(instances).field("instances")?,
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    Ok(workers.map(|workers| Health { is_ready, workers }))
}

fn instances<'a, W: Wire<'a>>(wire: &mut W) -> Result<Vec<Instance>, Fault> {
    let mut workers = Vec::new();
    let mut count = 0;
    let mut left = wire.array()?;
    while wire.next_element(&mut left)? {
        count += 1;
        if count > MAX_INSTANCES {
            return Err(Fault::new(Reason::TooLarge, "holds more instances than are read", wire.at()));
        }
        workers.extend(instance(wire)?);
    }
    Ok(workers)
}

fn instance<'a, W: Wire<'a>>(wire: &mut W) -> Result<Option<Instance>, Fault> {
    let at = wire.at();
    let (mut id, mut namespace, mut component, mut endpoint) = (None, None, None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"instance_id" => id = Some(wire.u64().field("instance_id")?),
            b"namespace" => namespace = Some(wire.text().field("namespace")?),
            b"component" => component = Some(wire.text().field("component")?),
            b"endpoint" => endpoint = Some(wire.text().field("endpoint")?),
            _ => wire.skip()?,
        }
    }
    let (endpoint, component) = (required(endpoint, "endpoint", at)?, required(component, "component", at)?);
    if endpoint != REQUESTS || ROUTERS.contains(&&*component) {
        return Ok(None);
    }
    Ok(Some(Instance {
        id: WorkerId(required(id, "instance_id", at)?),
        namespace: required(namespace, "namespace", at)?.into_owned(),
        component: component.into_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let worker =
            Instance { id: WorkerId(WORKER), namespace: "dynamo".into(), component: "backend".into() };
        assert_eq!(read(&body), Ok(Some(Health { is_ready: true, workers: vec![worker] })));
    }

    #[test]
    fn a_frontend_that_is_not_ready_says_so_and_a_worker_lists_nothing() {
        let body = json!({"instances": [], "status": "not_ready"});
        assert_eq!(read(&body), Ok(Some(Health { is_ready: false, workers: vec![] })));
        let own = json!({"status": "ready", "uptime": {"secs": 3}, "endpoints": {"generate": "ready"}});
        assert_eq!(read(&own), Ok(None));
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
