//! Subjects and names of streams.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::subject::{
    is_delivery_copy, is_kv_event_stream, kv_event_stream_subject, parse, slug, subscriptions_of,
};
use radixscope_model::record::Topic;

fuzz_target!(|text: &str| {
    if let Some(subject) = parse(text) {
        let names_none = subject.topic == Topic::RequestTrace;
        assert_eq!(subject.namespace.is_empty(), names_none, "only request traces name no namespace");
        let _ = subject.is_in(text);
        assert!(
            subject.component.is_empty() <= subject.endpoint.is_empty(),
            "an endpoint without a component"
        );
    }
    let _ = is_delivery_copy(Some(text));
    if is_kv_event_stream(text) && !text.contains('.') {
        assert!(parse(&kv_event_stream_subject(text)).is_some());
    }
    assert!(slug(text).chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-')));
    if let Some(subjects) = subscriptions_of(text) {
        assert!(subjects.iter().all(|subject| !subject.contains('>')));
    }
});
