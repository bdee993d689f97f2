//! What a frontend's routers run with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::router_policy::{MAX_ROUTERS, decode};

fuzz_target!(|body: &[u8]| match decode(body) {
    Ok(routers) => {
        assert!(routers.len() <= MAX_ROUTERS);
        let numbers = routers.iter().flat_map(|router| router.numbers.named());
        assert!(numbers.filter_map(|(_, value)| value).all(f64::is_finite), "JSON has no other numbers");
    }
    Err(error) => radixscope_fuzz::check_error(&error),
});
