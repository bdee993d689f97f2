//! `radixscope serve`: a Dynamo deployment over NATS, and what its logs and metrics add.

use super::checks::checks;
use super::{Failure, server, sources};
use crate::config::Serve;
use crate::shutdown::Shutdown;

/// Runs until asked to stop.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { from, judged, recorded, http, limits, .. } = options;
    let record = recorded.options();
    server::run(http, &limits, checks(&judged)?, sources::feeds(from)?, record, stopped).await
}
