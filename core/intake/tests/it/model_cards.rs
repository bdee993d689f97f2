//! Settings that workers advertise for their router, in a model card as Dynamo 1.7.0.dev20261026 writes it (1.6.1 the same, with more
//! fields), shortened.

use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{SettingsSource, SourceKind};
use radixscope_state::cluster::Cluster;

const KEY: &str = "v1/mdc/dynamo/backend/generate/6a6ca2186a536a06";

fn card(router_config: &str) -> String {
    format!(
        r#"{{"type":"Model","namespace":"dynamo","component":"backend","endpoint":"generate","instance_id":27244,"model_suffix":null,"card_json":{{"display_name":"m","kv_cache_block_size":16,"worker_type":"aggregated","router_config":{router_config}}}}}"#
    )
}

/// Temperatures that are known of the pool's router, and where from.
fn temperature(cluster: &Cluster) -> Option<(SettingsSource, f64)> {
    let state = cluster.settings().iter().find(|state| state.left_ms.is_none())?;
    Some((state.source, state.latest.numbers.router_temperature?))
}

#[test]
fn settings_in_a_model_card_are_the_routers_until_a_card_has_none() {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    intake.source("etcd", SourceKind::Discovery, Millis(0), &mut cluster).unwrap();
    let mut put = |at_ms: u64, router_config: &str, cluster: &mut Cluster| {
        let value = Some(card(router_config).into());
        let payload = Payload::Discovery { key: KEY.into(), value, lease: None };
        intake.handle(&Received { source: SourceIx(0), at_ms: Millis(at_ms), payload }, cluster);
        assert!(cluster.sources()[0].rejected.is_empty(), "{:?}", cluster.sources()[0].rejected);
    };
    let advertised = |temperature: f64| {
        format!(
            r#"{{"router_mode":"k_v","kv_router_config":{{"overlap_score_credit":1.0,"prefill_load_scale":1.0,"router_temperature":{temperature},"router_queue_threshold":null,"shared_cache_type":"none"}},"enforce_disagg":false,"session_affinity_mode":"hard"}}"#
        )
    };
    put(1_000, "null", &mut cluster);
    assert!(cluster.settings().is_empty());
    put(2_000, &advertised(0.3), &mut cluster);
    put(2_500, &advertised(0.3), &mut cluster);
    assert_eq!(temperature(&cluster), Some((SettingsSource::ModelCard, 0.3)));
    put(3_000, &advertised(0.5), &mut cluster);
    assert_eq!(temperature(&cluster), Some((SettingsSource::ModelCard, 0.5)));
    assert_eq!(cluster.settings()[0].earlier.len(), 1, "the same twice is no change");
    put(4_000, "[7]", &mut cluster);
    assert_eq!(temperature(&cluster), None, "what is not understood says nothing");
}
