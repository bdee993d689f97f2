//! `radixscope serve`: shows a running Dynamo deployment.

use super::{Failure, in_kubernetes, server, sources};
use crate::config::Serve;
use crate::shutdown::Shutdown;

/// Runs until stopped.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { mut from, slo, recorded, http, limits, .. } = options;
    let record = recorded.options();
    let found = in_kubernetes::find(&mut from).await?;
    server::run(http, &limits, &slo, sources::feeds(from, found)?, record, stopped).await
}
