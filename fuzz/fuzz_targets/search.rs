//! What a person pastes into the tree's search.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_state::cluster::Cluster;
use radixscope_state::search::{Query, find};

fuzz_target!(|text: &str| {
    let query = Query::parse(text);
    let _ = query.to_text();
    assert!(find(&Cluster::default(), &query, 0..20).found.is_empty(), "nothing is in an empty state");
});
