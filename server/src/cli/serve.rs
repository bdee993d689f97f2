//! `radixscope serve`: shows a running Dynamo deployment.

use std::sync::Arc;

use radixscope_model::record::SourceKind;

use super::server::Feed;
use super::{Failure, in_kubernetes, server, sources};
use crate::config::Serve;
use crate::shutdown::Shutdown;
use crate::source::otlp::OtlpExport;
use crate::stage::Controls;

/// Runs until stopped.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    run_with(options, None, stopped).await
}

/// The same with one feed more, and the stage that steers it.
pub(super) async fn run_with(
    options: Serve,
    steered: Option<(Feed, Arc<Controls>)>,
    stopped: Shutdown,
) -> Result<(), Failure> {
    let Serve { mut from, slo, recorded, export, http, limits, .. } = options;
    let record = recorded.options().map_err(|error| Failure::Usage(error.into()))?;
    let export = OtlpExport::of(&export).map_err(|error| Failure::Usage(error.into()))?;
    let found = in_kubernetes::find(&mut from).await?;
    let mut feeds = sources::feeds(from, found)?;
    feeds.feeds.extend(export.map(|export| {
        let name = export.name().to_owned();
        Feed::of_output(name, SourceKind::OtlpExport, |hub, to, stopped| export.run(hub, to, stopped))
    }));
    if let Some((feed, controls)) = steered {
        feeds.feeds.push(feed);
        feeds.stage = Some(controls);
    }
    server::run(http, &limits, &slo, feeds, record, stopped).await
}
