//! What operators build on: figures in Prometheus, rules and dashboards over them, the API by its description.

mod grafana;
mod openapi;
mod prometheus;
