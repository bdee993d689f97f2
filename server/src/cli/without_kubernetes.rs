//! `--kubernetes` in a binary that was built without it.

use std::sync::Arc;

use super::Failure;
use super::server::Feed;
use crate::config::{InvalidOption, Sources};
use crate::source::discovery::DiscoverySource;
use crate::source::gate::Gate;
use crate::source::nats::Whereabouts;

/// There is none.
pub(super) enum InKubernetes {}

/// There is none.
#[derive(Debug, serde::Serialize)]
pub(super) enum Table {}

impl Table {
    pub(super) fn namespace(&self) -> Option<&str> {
        match *self {}
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

/// Refuses `--kubernetes`.
pub(super) async fn find(from: &mut Sources) -> Result<Option<InKubernetes>, Failure> {
    match from.kubernetes.kubernetes {
        true => Err(needs_feature("--kubernetes")),
        false => Ok(None),
    }
}

/// Refuses what needs Kubernetes.
pub(super) fn needs_feature(asked_for: &str) -> Failure {
    Failure::Usage(InvalidOption::needs_feature(asked_for, "kubernetes").into())
}

impl InKubernetes {
    pub(super) fn table(&self) -> Table {
        match *self {}
    }

    pub(super) fn forget_missing(&mut self) {
        match *self {}
    }

    pub(super) fn nats(&self) -> Option<Whereabouts> {
        match *self {}
    }

    pub(super) fn discovery(&self, _: &Sources) -> Result<Option<DiscoverySource>, Failure> {
        match *self {}
    }

    pub(super) fn gate(&self, _: Gate) -> Gate {
        match *self {}
    }

    pub(super) fn feeds(self, _: &Sources, _: &Arc<Gate>) -> Result<Vec<Feed>, Failure> {
        match self {}
    }
}
