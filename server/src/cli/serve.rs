//! `radixscope serve`: a Dynamo deployment over NATS.

use radixscope_core::record::SourceKind;

use super::{Failure, server};
use crate::config::Serve;
use crate::shutdown::Shutdown;
use crate::source::nats;

/// Runs until asked to stop.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { nats: listen_to, http, limits, .. } = options;
    let source = nats::Source::new(listen_to).map_err(|error| Failure::Usage(error.into()))?;
    let named = (source.name().to_owned(), SourceKind::Nats);
    server::run(http, &limits, named, stopped, |handle, stopped| source.run(handle, stopped)).await
}
