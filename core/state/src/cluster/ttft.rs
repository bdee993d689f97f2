//! What the time to first token of one request is made of: waiting before a worker got it, computing its prompt, and what comes
//! between. Each part has its source; what no source reports is unknown and never worked out of a guess. Pure.

use super::{DecisionEntry, RequestParts};
use radixscope_model::record::DecisionSource;

/// The source of the times when a request was decided, prefilled and freed.
const NO_MESSAGES: &str = "replica sync has it (--router-replica-sync), or request traces";

/// A part of the time to first token.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TtftPart {
    /// What it is called.
    pub name: &'static str,
    /// How long it took; `None`: not reported.
    pub ms: Option<f64>,
    /// Where it is known from; for a missing figure, the source that would report it.
    pub source: &'static str,
}

impl TtftPart {
    fn first_known(
        name: &'static str,
        ways: [(Option<f64>, &'static str); 2],
        unknown: &'static str,
    ) -> Self {
        let found = ways.into_iter().find_map(|(ms, source)| Some((ms.filter(|ms| *ms >= 0.0)?, source)));
        let (ms, source) = found.map_or((None, unknown), |(ms, source)| (Some(ms), source));
        Self { name, ms, source }
    }
}

impl DecisionEntry {
    /// Queue, prefill and first token, in that order. `parts`: both choices for the request, where prefill and decode are
    /// apart.
    pub fn ttft_parts(&self, parts: Option<RequestParts<'_>>) -> [TtftPart; 3] {
        let (prefill, decode) = parts.map_or((self, self), |parts| (parts.prefill, parts.decode));
        let measured = decode.progress.ttft_us.or(prefill.progress.ttft_us).map(in_ms);
        let traced = |of: fn(&DecisionEntry) -> Option<u64>| of(decode).or(of(prefill)).map(in_ms);
        let queued = traced(|of| of.progress.queue_us);
        let computed = traced(|of| of.progress.prefill_us);
        let decided = prefill.decided_ms().0 as f64;
        let first_token = decode.progress.first_token_ms.map(|at| at.0 as f64);
        let before = measured.zip(first_token).map(|(ttft, at)| ttft - (at - decided));
        let is_traced = [prefill, decode].iter().any(|of| of.is_from(DecisionSource::RequestTrace));
        let queued_by = match is_traced {
            true => "request trace: prefill_wait_time_ms",
            false => "frontend's log: from 'request received' to the choice",
        };
        let queue = TtftPart::first_known(
            "Queue",
            [
                (queued, queued_by),
                (before, "TTFT as the frontend measured it, less the time from decision to first token"),
            ],
            "request traces have it (DYN_REQUEST_TRACE=1, Dynamo 1.4 and later), or the frontend's log (1.5 and later)",
        );
        if parts.is_none() {
            let since = first_token.map(|at| at - decided);
            let prefill = TtftPart::first_known(
                "Prefill",
                [
                    (computed, "request trace: prefill_time_ms; waiting at the worker included"),
                    (since, "from the decision to the first token; waiting at the worker included"),
                ],
                NO_MESSAGES,
            );
            let apart = "apart: the first token ends prefill";
            return [queue, prefill, TtftPart { name: "First token", ms: None, source: apart }];
        }
        let freed = prefill.progress.ended_ms.map(|at| at.0 as f64);
        let on_worker = (freed.map(|at| at - decided), "from the decision to the end on the prefill worker");
        let rest =
            measured.zip(queued).zip(computed).map(|((ttft, queued), computed)| ttft - queued - computed);
        let handed_over =
            (first_token.zip(freed).map(|(at, freed)| at - freed), "from prefill freed to the first token");
        [
            queue,
            TtftPart::first_known(
                "Prefill",
                [on_worker, (computed, "request trace: prefill_time_ms")],
                NO_MESSAGES,
            ),
            TtftPart::first_known(
                "First token",
                [handed_over, (rest, "TTFT less queue and prefill of the request trace")],
                NO_MESSAGES,
            ),
        ]
    }
}

fn in_ms(us: u64) -> f64 {
    us as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::*;
    use radixscope_model::id::Millis;

    fn entry() -> DecisionEntry {
        let mut entry = decided(Some(100), Some(40), &[]);
        entry.decision.decided_ms = Some(Millis(1_000));
        entry
    }

    fn ms(parts: [TtftPart; 3]) -> [Option<f64>; 3] {
        parts.map(|part| part.ms)
    }

    #[test]
    fn a_trace_reports_queue_and_prefill() {
        let mut one = entry();
        (one.progress.queue_us, one.progress.prefill_us) = (Some(1_500), Some(20_000));
        one.progress.ttft_us = Some(21_500);
        assert_eq!(ms(one.ttft_parts(None)), [Some(1.5), Some(20.0), None]);
    }

    #[test]
    fn messages_report_prefill_and_with_the_frontend_s_time_the_queue() {
        let mut one = entry();
        assert_eq!(ms(one.ttft_parts(None)), [None, None, None]);
        one.progress.first_token_ms = Some(Millis(1_127));
        let parts = one.ttft_parts(None);
        assert_eq!(ms(parts), [None, Some(127.0), None]);
        assert!(parts[0].source.contains("DYN_REQUEST_TRACE"), "{parts:?}");
        one.progress.ttft_us = Some(130_000);
        assert_eq!(ms(one.ttft_parts(None)), [Some(3.0), Some(127.0), None]);
        one.progress.ttft_us = Some(126_000);
        assert_eq!(one.ttft_parts(None)[0].ms, None, "clocks that disagree tell nothing");
    }

    #[test]
    fn where_prefill_and_decode_are_apart_each_has_its_part() {
        let (mut prefill, mut decode) = (entry(), entry());
        prefill.progress.ended_ms = Some(Millis(1_145));
        decode.progress.first_token_ms = Some(Millis(1_158));
        let both = RequestParts { prefill: &prefill, decode: &decode };
        assert_eq!(ms(decode.ttft_parts(Some(both))), [None, Some(145.0), Some(13.0)]);
        assert_eq!(prefill.ttft_parts(Some(both)), decode.ttft_parts(Some(both)), "whichever is open");
    }
}
