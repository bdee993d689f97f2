//! What the exhaustive tests are made of beside what the default tier has: stand-ins and real servers of Kubernetes, of object
//! stores and of Prometheus, and what stands between viewers and replicas.
#![forbid(unsafe_code)]

pub mod api_server;
pub mod balancer;
pub mod kubernetes;
pub mod object_store;
pub mod prometheus;
pub mod resources;
