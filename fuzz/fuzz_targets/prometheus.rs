//! Scraped metrics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::prometheus::decode;

fuzz_target!(|text: &[u8]| {
    let (scraped, understood) = decode(text);
    if let Err(faults) = &understood {
        radixscope_fuzz::check_faults(faults);
    }
    let Some(scraped) = &scraped else {
        assert!(understood.is_err(), "nothing was understood, and nothing was wrong");
        return;
    };
    let values =
        scraped.gauges.iter().map(|(_, value)| value).chain(scraped.counters.iter().map(|(_, value)| value));
    values.for_each(|value| assert!(*value >= 0.0));
    for histogram in &scraped.histograms {
        assert_eq!(histogram.counts.len(), histogram.bounds.len() + 1);
        assert!(histogram.bounds.len() <= 64 && histogram.bounds.is_sorted_by(|a, b| a < b));
        assert!(histogram.bounds.iter().all(|bound| bound.is_finite()) && histogram.sum >= 0.0);
    }
    for rank in &scraped.ranks {
        assert!(rank.kv_usage.is_none_or(|usage| (0.0..=1.0).contains(&usage)));
    }
    assert_eq!(decode(text).0.as_ref(), Some(scraped));
});
