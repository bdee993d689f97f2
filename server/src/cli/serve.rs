//! `radixscope serve`: shows a running Dynamo deployment.

use super::checks::checks;
use super::{Failure, server, sources};
use crate::config::Serve;
use crate::shutdown::Shutdown;

/// Runs until stopped.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { from, slo, recorded, http, limits, .. } = options;
    let record = recorded.options();
    server::run(http, &limits, checks(&slo)?, sources::feeds(from)?, record, stopped).await
}
