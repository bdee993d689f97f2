//! What the switch between pools and the tree's heading say of deployments with several pools.

use radixscope_captures::Recording;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_panels::pools::{TreePool, chosen, options, unknown};
use radixscope_sim::Topology;
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

fn queried<'f>(folded: &'f Folded, query: &PoolQuery) -> ViewContext<'f> {
    ViewContext::new(&folded.cluster, ShownPools::of(&folded.cluster, query))
}

#[test]
fn two_models_of_a_recording_are_two_pools_with_their_own_trees() {
    let messages: Vec<_> = Recording::topology("1.6.1-two-models").messages().collect();
    let folded = Folded::of_messages(&messages);
    let shown = folded.shown();
    let labels = shown.pool_labels();
    let all = options(&labels, None);
    let mut names: Vec<&str> = all.iter().map(|option| option.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["dynamo/backend", "dynamo/backend2"]);
    assert!(all.iter().all(|option| !option.is_chosen), "all are shown");
    assert_eq!(shown.worker_list().count(), 4);
    // Counted when the fixture was made.
    let nodes = |name: &str| {
        let shown = queried(&folded, &chosen(name.to_owned()));
        shown.tree().totals().nodes
    };
    assert_eq!((nodes("dynamo/backend"), nodes("dynamo/backend2")), (2_365, 2_366));
    let heading = TreePool::all(&shown, &labels);
    assert_eq!(heading.len(), 2);
    assert!(heading[0].shared.is_none() && heading[0].name.starts_with("Pool backend"), "{heading:?}");
    assert_eq!(heading[1].shared.as_deref(), Some("10 % shared"));
    // The other one is drawn.
    let other = queried(&folded, &chosen(all[1].name.clone()));
    let labels = other.pool_labels();
    let heading = TreePool::all(&other, &labels);
    assert_eq!((heading[0].pool, heading[0].shared.as_ref()), (all[1].pool, None));
    assert_eq!(options(&labels, other.only).iter().filter(|option| option.is_chosen).count(), 1);
    assert_eq!(other.worker_list().count(), 2);
}

#[test]
fn one_pool_has_no_choice_and_no_heading() {
    let folded = Folded::demo(Topology::Aggregated, 20);
    let shown = folded.shown();
    let labels = shown.pool_labels();
    assert!(options(&labels, None).is_empty() && TreePool::all(&shown, &labels).is_empty());
    let nothing = Folded { cluster: Cluster::default(), now: START };
    assert!(options(&nothing.shown().pool_labels(), None).is_empty());
}

#[test]
fn prefill_and_decode_are_two_pools_of_which_one_has_no_block_events() {
    let folded = Folded::demo(Topology::Disaggregated, 40);
    let shown = folded.shown();
    let labels = shown.pool_labels();
    let texts: Vec<String> = options(&labels, None).into_iter().map(|option| option.text).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    let is_named = |role: &str| texts.iter().filter(|text| text.contains(role)).count() == 1;
    assert!(is_named("prefill") && is_named("decode"), "{texts:?}");
    let heading = TreePool::all(&shown, &labels);
    assert!(heading[0].title.contains("prefill"), "the pool with the caches is drawn: {heading:?}");
    assert_eq!(heading[1].shared.as_deref(), Some("no block"));
}

#[test]
fn a_name_that_no_pool_has_is_refused_with_those_that_there_are() {
    let folded = Folded::demo(Topology::TwoModels, 20);
    let why = |pool: Option<&str>, model: Option<&str>| {
        let query = PoolQuery { pool: pool.map(str::to_owned), model: model.map(str::to_owned) };
        unknown(&queried(&folded, &query), &query)
    };
    let names: Vec<String> = folded.shown().pool_labels().into_iter().map(|label| label.name).collect();
    let refused = |key: &str| {
        Some(format!(
            "{key} in the address is invalid: there are the pools {}; all pools are shown",
            names.join(", ")
        ))
    };
    assert_eq!(why(Some("dynamo/none"), None), refused("pool=dynamo/none"));
    assert_eq!(why(None, Some("gpt")), refused("model=gpt"));
    assert_eq!(why(Some(&names[0]), None), None);
    assert_eq!(why(None, None), None);
    let nothing = Folded { cluster: Cluster::default(), now: START };
    let query = chosen("dynamo/none".to_owned());
    assert_eq!(unknown(&queried(&nothing, &query), &query), None, "before any worker is known");
    assert_eq!(chosen(String::new()), PoolQuery::default());
}
