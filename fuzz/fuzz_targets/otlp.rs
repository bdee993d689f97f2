//! Requests of OpenTelemetry's protocol: all three signals have the same form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_dynamo::otlp::{Signal, read};

fuzz_target!(|body: &[u8]| {
    for signal in [Signal::Logs, Signal::Traces, Signal::Metrics] {
        match read(signal, body) {
            Ok(export) => {
                // A record takes two bytes at least.
                let records = export.traces.len() + export.routes.len();
                assert!(records as u64 + export.not_read + export.refused <= body.len() as u64 / 2);
                assert!(export.traces.iter().all(|json| json.len() < body.len()));
                assert_eq!(export.refused > 0, export.fault.is_some());
                export.fault.iter().for_each(radixscope_fuzz::check_error);
                for span in &export.routes {
                    assert!(!span.done.request_id.is_empty() && span.done.request_id.len() < body.len());
                    assert!(span.done.outcome.as_ref().is_none_or(|outcome| outcome.len() <= 64));
                    assert!(span.line().at_us.is_none_or(|at| at > 0));
                }
            }
            Err(error) => radixscope_fuzz::check_error(&error),
        }
    }
});
