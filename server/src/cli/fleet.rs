//! `radixscope fleet`: asks many Radixscopes for their figures and serves a page with all of them.

use super::{Failure, server};
use crate::config;
use crate::fleet::Fleet;
use crate::shutdown::Shutdown;

/// Runs until stopped.
pub(super) async fn run(options: config::Fleet, stopped: Shutdown) -> Result<(), Failure> {
    let config::Fleet { members, serving, .. } = options;
    let fleet = Fleet::new(&members).map_err(|error| Failure::Usage(error.into()))?;
    server::show_fleet(serving, fleet, stopped).await
}
