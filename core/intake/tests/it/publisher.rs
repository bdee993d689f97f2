//! Engines that publish without Dynamo.

use std::sync::Arc;

use radixscope_dynamo::subject::Subject;
use radixscope_intake::EnginePublisher;
use radixscope_model::id::WorkerId;
use radixscope_model::record::Engine;

/// The publisher of the engine that is listened to at `name`, which serves a model.
pub(crate) fn publisher(name: &str, id: u64, engine: Engine, model: &str) -> EnginePublisher {
    EnginePublisher {
        name: name.into(),
        engine_name: name.into(),
        engine: Some(engine),
        worker_id: WorkerId(id),
        rank: None,
        key: id,
        subject: Arc::new(Subject::of_engines(model)),
    }
}
