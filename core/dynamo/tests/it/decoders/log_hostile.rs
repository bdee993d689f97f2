//! Lines that are damaged, cut or made up: a reason or nothing, never a panic, never more memory than the line takes.

use allocation_counter::measure;
use proptest::prelude::*;
use radixscope_dynamo::error::Reason;
use radixscope_dynamo::log_line::{decode, may_matter};

use crate::decoders::log_shapes::LINES;

const JSON: &[&str] = &[
    r#"{"time":"2026-11-20T18:08:03.893701Z","level":"INFO","target":"dynamo_kv_router::scheduling::selector","message":"Selected worker","disk_blocks":0,"dp_rank":"0","host_pinned_blocks":0,"logit":14.625,"request_id":"e9980da3","router_mode":"kv","worker_id":9231963812737957267,"worker_type":"decode"}"#,
    r#"{"time":"2026-11-20T18:19:03.722832Z","level":"INFO","target":"request_span","message":"route request completed","dp_rank":"0","otel.kind":"client","overlap_blocks":"0","phase":"Aggregated","request.outcome":"success","request_id":"9b17cd7a","span_name":"kv_router.route_request","worker_id":"7668682361404475427"}"#,
    r#"{"time":"2026-11-20T18:08:03.893701Z","level":"INFO","target":"x::push_router","message":"Selected worker","dp_rank":"0","overlap_blocks":"0","phase":"Aggregated","request_id":"350e6347","router_mode":"direct","span_name":"kv_router.route_request","worker_id":"7668682386910236964"}"#,
    r#"{"level":"DEBUG","target":"x","message":"[ROUTING_INPUT] request local hashes","block_size":16,"isl_tokens":40,"local_hashes":"[1, 2]","num_blocks":2,"request_id":"e9980da3"}"#,
    r#"{"level":"INFO","target":"x","message":"Formula for worker_id=7 dp_rank=0 with 0 cached blocks: 4.625 = 1.0 * prefill_blocks + decode_blocks = 1.0 * 2.625 + 2.000"}"#,
    r#"{"message":"DISCOVERY: Generate endpoint instance removed, removing worker 7","level":"WARN","target":"x"}"#,
    r#"{"level":"WARN","target":"x","message":"Failed to find block to remove; skipping remove operation","worker_id":"7","dp_rank":0,"id":3,"block_hash":"ExternalSequenceBlockHash(9)"}"#,
];

#[test]
fn every_whole_line_of_jsonl_says_something() {
    assert!(JSON.iter().all(|line| decode(line.as_bytes()).unwrap().is_some()));
}

fn reason(line: &str) -> Reason {
    decode(line.as_bytes()).expect_err(line).reason
}

fn framed(message: &str) -> String {
    format!("2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router::scheduler: {message}")
}

#[test]
fn a_cut_line_is_truncated_or_says_what_is_left_of_it() {
    for line in LINES.iter().chain(JSON) {
        for end in 0..line.len() {
            if let Err(error) = decode(&line.as_bytes()[..end]) {
                // What is left of a number or of `Some(64)` may be none.
                let word = line[..end].rsplit(' ').next().unwrap_or_default();
                let is_in_a_number = word.contains('=') || word == "-";
                let expected = match error.reason {
                    Reason::Truncated | Reason::MissingField => true,
                    Reason::WrongType => is_in_a_number,
                    _ => false,
                };
                assert!(expected, "{error}: {}", &line[..end]);
            }
        }
    }
    // Of JSONL no part is whole.
    for line in JSON {
        let from = line.len() - 10;
        assert!((from..line.len()).all(|end| reason(&line[..end]) == Reason::Truncated));
    }
}

#[test]
fn bad_numbers_are_of_the_wrong_type() {
    for message in [
        "Selected worker: worker_id=18446744073709551616 dp_rank=0, logit: 7.625",
        "Selected worker: worker_id=7 dp_rank=4294967296, logit: 7.625",
        "Selected worker: worker_id=7 dp_rank=0, logit: NaN",
        "Selected worker: worker_id=7 dp_rank=0, logit: -inf",
        "Selected worker: worker_id=7 dp_rank=0, logit: 1e999",
        "Selected worker router_mode=\"kv\" worker_id=7 dp_rank=0 logit=NaN",
        "Selected worker router_mode=\"kv\" worker_id=+7 dp_rank=0 logit=1",
        "Selected worker router_mode=\"kv\" worker_id=7 dp_rank=-1 logit=1",
        "[ROUTING_INPUT] request local hashes request_id=\"a\" isl_tokens=4 block_size=1 num_blocks=1 local_hashes=[-1]",
        "[ROUTING_INPUT] request local hashes request_id=\"a\" isl_tokens=4 block_size=1 num_blocks=1 local_hashes=7",
    ] {
        assert_eq!(reason(&framed(message)), Reason::WrongType, "{message}");
    }
}

#[test]
fn faults_of_lines_read_well() {
    let detail = |message: &str| decode(framed(message).as_bytes()).unwrap_err().to_string();
    assert_eq!(
        detail("Selected worker: worker_id=7 dp_rank=0, logit: NaN"),
        "log: selection: expected a finite number (byte 33)"
    );
    assert_eq!(detail("Selected worker router_mode=\"kv\" dp_rank=0"), "log: worker_id: is missing (byte 0)");
    assert_eq!(
        detail("Formula for worker_id=7 dp_rank=0 with many cached blocks"),
        "log: formula: expected a finite number (byte 31)"
    );
    assert_eq!(
        detail(
            "Formula for worker_id=7 dp_rank=0 with 1 cached blocks: 3.0 = 1.0 * prefill_blocks + decode_blocks = 2.0 * 1.0 + 1.0"
        ),
        "log: formula: two different weights (byte 95)"
    );
    assert_eq!(
        detail("Adding worker WorkerWithDpRank (7, 0)"),
        "log: worker: other words than Dynamo's (byte 0)"
    );
}

#[test]
fn a_field_given_twice_is_malformed_in_jsonl() {
    let twice =
        r#"{"level":"INFO","target":"x","message":"Selected worker","worker_id":7,"worker_id":8,"logit":1}"#;
    assert_eq!(reason(twice), Reason::Malformed);
    let nested = r#"{"level":"INFO","message":"Selected worker","worker_id":{"a":[7]},"logit":1}"#;
    assert_eq!(reason(nested), Reason::MissingField);
    let two = r#"{"level":"INFO","message":"Selected worker"} {"level":"INFO"}"#;
    assert_eq!(reason(two), Reason::Malformed);
}

#[test]
fn a_line_that_is_not_utf_8_is_malformed_only_if_it_could_say_something() {
    let mut line = framed("Selected worker: worker_id=7").into_bytes();
    line.push(0xff);
    assert_eq!(decode(&line).unwrap_err().reason, Reason::Malformed);
    assert_eq!(decode(b"\xff\xfe nothing of ours"), Ok(None));
}

#[test]
fn nesting_without_end_is_refused() {
    for open in ["[", r#"{"a":"#] {
        let line = format!(r#"{{"message":"Selected worker","x":{}"#, open.repeat(100_000));
        assert_eq!(reason(&line), Reason::Truncated);
    }
}

#[test]
fn a_mebibyte_without_a_line_feed_is_read_once() {
    for byte in [b'x', b' ', b'{', b'"', b'[', b'=', b'\\', 0x1b, 0xff, b'1', b',', b':'] {
        let filler = vec![byte; 1 << 20];
        assert_eq!(decode(&filler), Ok(None));
        for (before, after) in
            [("", "Selected worker"), ("", ": Selected worker: "), ("{\"", "Selected worker")]
        {
            let line = [before.as_bytes(), &filler, after.as_bytes()].concat();
            let _ = decode(&line);
        }
        for message in [
            "Selected worker: worker_id=",
            "Selected worker a=\"",
            "[ROUTING_INPUT] request local hashes local_hashes=[",
        ] {
            let mut line = framed(message).into_bytes();
            line.extend_from_slice(&filler);
            let memory = measure(|| drop(decode(&line)));
            assert!(memory.bytes_max < 3 << 20, "{} bytes for {message}", memory.bytes_max);
        }
    }
}

#[test]
fn a_line_that_says_nothing_allocates_nothing() {
    may_matter(b"");
    let lines = [
        framed("added model model_name=\"models/tiny-llama\" namespace=\"dynamo\""),
        "\x1b[2m2026-11-20T18:17:36.202819Z\x1b[0m \x1b[32m INFO\x1b[0m \x1b[2mx\x1b[0m\x1b[2m:\x1b[0m y"
            .to_owned(),
        r#"{"time":"2026-11-20T18:19:41.618457Z","level":"DEBUG","message":"http response sent"}"#.to_owned(),
    ];
    let memory = measure(|| assert!(lines.iter().all(|line| decode(line.as_bytes()) == Ok(None))));
    assert_eq!(memory.count_total, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_damaged_line_never_panics(
        which in 0..LINES.len() + JSON.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut line = LINES.iter().chain(JSON).nth(which).unwrap().as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(line.len());
            line[at] = byte;
        }
        line.truncate(end.index(line.len() + 1));
        let _ = decode(&line);
    }

    #[test]
    fn random_lines_with_a_phrase_never_panic(
        before in "[ -~é\u{1b}]{0,40}", after in "[ -~é\u{1b}]{0,80}", which in 0..5_usize,
    ) {
        let phrase = ["Selected worker", "Formula for worker_id=", "[ROUTING_INPUT]", "route request completed", "request completed"][which];
        for line in [format!("{before}{phrase}{after}"), framed(&format!("{phrase}{after}")), format!("{{\"message\":\"{phrase}{after}")] {
            let _ = decode(line.as_bytes());
        }
    }
}
