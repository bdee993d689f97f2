//! What a person pastes into the tree's search.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_core::cluster::Cluster;
use radixscope_core::search::{Query, find};

fuzz_target!(|text: &str| {
    let query = Query::parse(text);
    let _ = query.words();
    assert!(find(&Cluster::default(), &query, 20).found.is_empty(), "nothing is in an empty state");
});
