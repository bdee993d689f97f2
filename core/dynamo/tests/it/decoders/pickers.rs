//! Lines of endpoint pickers, in each form that they write.

use radixscope_dynamo::error::Reason;
use radixscope_dynamo::log_line::{
    Endpoint, EndpointName, Level, LogEvent, PickerLine, PickerStep, decode, may_matter,
};

const FORMS: [(&str, &str); 3] = [
    ("llm-d-router", include_str!("../../fixtures/endpoint_picker/llm-d-router.jsonl")),
    ("extension, JSON", include_str!("../../fixtures/endpoint_picker/extension-1.3.jsonl")),
    ("extension, console", include_str!("../../fixtures/endpoint_picker/extension-1.3.txt")),
];

fn lines(text: &str) -> Vec<(Option<i64>, Level, PickerLine<'_>)> {
    text.lines()
        .filter_map(|line| {
            let record = decode(line.as_bytes()).expect(line)?;
            assert!(may_matter(line.as_bytes()), "{line}");
            let LogEvent::Picker(of) = record.event else { panic!("{line}") };
            Some((record.at_us, record.level, of))
        })
        .collect()
}

fn id_of(request: u32) -> String {
    format!("7c0f6f5e-91cd-4a0c-9f6d-{request:012}")
}

#[test]
fn every_form_says_the_same_of_a_choice() {
    for (form, text) in FORMS {
        let all = lines(text);
        assert_eq!(all.len(), 3 * (1 + 9 + 1 + 1 + 1), "{form}");
        let of_first: Vec<_> =
            all.iter().filter(|(.., of)| of.request_id.as_deref() == Some(&*id_of(1))).collect();
        assert_eq!(of_first.len(), 13, "{form}");
        assert_eq!(of_first[0].2.step, PickerStep::Profile("default".into()), "{form}");
        let scored = |of: &PickerStep<'_>| match of {
            PickerStep::Scored { scorer, endpoint, score } => {
                Some((scorer.to_string(), endpoint.name.chars().nth(24), *score))
            }
            _ => None,
        };
        let scores: Vec<_> = of_first.iter().filter_map(|(.., of)| scored(&of.step)).collect();
        assert_eq!(scores.len(), 9, "{form}");
        assert_eq!(scores[0], ("queue-scorer".to_owned(), Some('b'), 1.0), "{form}");
        assert_eq!(scores[4], ("kv-cache-utilization-scorer".to_owned(), Some('g'), 0.75), "{form}");
        // Its type is another than its name.
        assert_eq!(scores[8].0, "prefix/prefix-cache-scorer", "{form}");
        let PickerStep::Candidates(candidates) = &of_first[10].2.step else { panic!("{form}") };
        let sums: Vec<f64> = candidates.iter().map(|of| of.score).collect();
        assert_eq!(sums, [3.8, 2.5, 1.5], "{form}");
        let Endpoint { name, pod, address, port, running, waiting, kv_usage, .. } = &candidates[1].endpoint;
        assert!(name.namespace == "llm-d" && name.name.starts_with("ms-llm-d-decode-7d9c8f-fghij"), "{form}");
        assert_eq!(pod.as_deref(), Some("ms-llm-d-decode-7d9c8f-fghij"), "{form}");
        assert_eq!((address.as_deref(), port.as_deref()), (Some("10.244.0.12"), Some("8000")), "{form}");
        assert_eq!((*running, *waiting, *kv_usage), (Some(2), Some(1), Some(0.2)), "{form}");
        let PickerStep::Picked { picker, endpoint: Some(picked) } = &of_first[11].2.step else {
            panic!("{form}")
        };
        assert_eq!(picker.as_deref(), Some("max-score-picker"), "{form}");
        assert_eq!(picked.name, candidates[0].endpoint.name, "{form}");
        assert_eq!(of_first[12].2.step, PickerStep::Handled("10.244.0.11:8000".into()), "{form}");
        // Verbosities have no names in the extension.
        assert_eq!(of_first[10].1, Level::Debug, "{form}");
    }
}

#[test]
fn times_are_as_fine_as_each_form_has_them() {
    let first = |at: usize| lines(FORMS[at].1)[0].0;
    assert_eq!(first(0), Some(1_795_198_014_428_411));
    assert_eq!(first(1), Some(1_795_198_014_000_000));
    assert_eq!(first(2), Some(1_795_198_014_000_000));
    let behind = format!("2026-11-20T20:00:00.123456789Z stderr F {}", FORMS[2].1.lines().nth(4).unwrap());
    let record = decode(behind.as_bytes()).unwrap().expect("a runtime's prefix hides nothing");
    assert_eq!(record.at_us, Some(1_795_198_014_000_000));
}

#[test]
fn only_lines_of_these_messages_are_read() {
    for line in [
        r#"{"level":"debug","ts":1,"msg":"EPP received request","x-request-id":"a"}"#,
        // A prompt that quotes a picker's log.
        r#"{"level":"debug","ts":1,"msg":"Incoming body","text":"Calculated score"}"#,
        r#"{"message":"Candidate pods for picking","level":"INFO","time":"2026-11-20T18:06:54Z"}"#,
    ] {
        assert_eq!(decode(line.as_bytes()), Ok(None), "{line}");
    }
}

#[test]
fn a_line_that_is_not_as_a_picker_writes_it_is_refused_and_says_where() {
    let of = |line: &str| decode(line.as_bytes()).expect_err(line);
    for (line, reason, part) in [
        (
            r#"{"msg":"Calculated score","plugin":"a/a","endpoint":{"name":"p"}}"#,
            Reason::MissingField,
            "score",
        ),
        (
            r#"{"msg":"Calculated score","plugin":"a/a","endpoint":{"name":"p"},"score":"1"}"#,
            Reason::WrongType,
            "log: invalid type",
        ),
        (r#"{"msg":"Candidate pods for picking"}"#, Reason::MissingField, "endpoints-weighted-score"),
        (
            r#"{"msg":"Candidate pods for picking","pods-weighted-score":[{"Pod":{},"Score":1}]}"#,
            Reason::MissingField,
            "NamespacedName",
        ),
        (r#"{"msg":"Candidate pods for picking","pods-weighted-score":[{"Pod":{}"#, Reason::Truncated, ""),
    ] {
        let error = of(line);
        assert_eq!(error.reason, reason, "{line}: {error}");
        assert!(error.to_string().contains(part), "{line}: {error}");
    }
    let many = vec![r#"{"Pod":{"Address":"a"},"Score":1}"#; 2_049].join(",");
    let line = format!(r#"{{"msg":"Candidate pods for picking","pods-weighted-score":[{many}]}}"#);
    assert_eq!(of(&line).reason, Reason::TooLarge);
    let name = "n".repeat(129);
    let line = format!(r#"{{"msg":"Running scheduler profile","profile":"{name}"}}"#);
    assert_eq!(of(&line).reason, Reason::TooLarge);
}

#[test]
fn what_a_picker_leaves_out_is_unknown() {
    let line = r#"{"msg":"Candidate pods for picking","pods-weighted-score":[{"Pod":{"NamespacedName":{"Namespace":"","Name":"p"},"KVCacheUsagePercent":37},"Score":0}]}"#;
    let record = decode(line.as_bytes()).unwrap().unwrap();
    let LogEvent::Picker(PickerLine { request_id: None, step: PickerStep::Candidates(all) }) = record.event
    else {
        panic!()
    };
    // More than all of a cache is no share of it.
    let name = EndpointName { namespace: "".into(), name: "p".into() };
    assert_eq!(all[0].endpoint, Endpoint { name, ..Endpoint::default() });
    let none = r#"{"msg":"Completed running picker plugin successfully","result":{"TargetEndpoints":null}}"#;
    let record = decode(none.as_bytes()).unwrap().unwrap();
    assert!(matches!(
        record.event,
        LogEvent::Picker(PickerLine { step: PickerStep::Picked { picker: None, endpoint: None }, .. })
    ));
    assert_eq!(record.at_us, None);
}

/// Cut anywhere or with a byte changed, a line is read or refused, and never more.
#[test]
fn no_damage_makes_it_panic() {
    for (_, text) in FORMS {
        // Those of one request, each at other places.
        for (first, line) in text.lines().take(text.lines().count() / 3).enumerate() {
            for at in (first % 5..line.len()).step_by(5) {
                let _ = decode(&line.as_bytes()[..at]);
                let mut damaged = line.as_bytes().to_vec();
                damaged[at] ^= 0x11;
                let _ = decode(&damaged);
            }
        }
    }
}

#[test]
fn a_gateway_s_choice_is_read_as_text_and_as_json() {
    let text = include_str!("../../fixtures/sglang_gateway/smg-1.13.0.txt");
    let json = include_str!("../../fixtures/sglang_gateway/smg-1.13.0.jsonl");
    for (form, lines) in [("text", text), ("JSON", json)] {
        let all: Vec<_> = lines.lines().filter_map(|line| decode(line.as_bytes()).expect(line)).collect();
        let choice = |at: usize| match &all[at].event {
            LogEvent::GatewayChoice(choice) => choice,
            other => panic!("{form}: {other:?}"),
        };
        let ids: Vec<_> =
            (0..all.len()).map(|at| choice(at).request_id.as_deref().unwrap_or_default()).collect();
        assert_eq!(ids, ["req-1", "req-2", "req-3", "req-4"], "{form}");
        assert_eq!(choice(0).branch.as_deref(), Some("expected_wait_fallback"), "{form}");
        assert_eq!((choice(0).matched_share, choice(2).matched_share), (Some(0.0), Some(1.0)), "{form}");
        assert_eq!(choice(1).branch.as_deref(), Some("tree_match"), "{form}");
        assert!(choice(1).worker.starts_with("http://127.0.0.1:3000"), "{form}");
        assert_eq!(choice(1).model.as_deref(), Some("llama"), "{form}");
        assert!(all[0].at_us.is_some_and(|us| us % 1_000_000 == 0), "{form}: whole seconds");
    }
}

#[test]
fn a_gateway_s_line_without_a_worker_is_refused_and_one_without_a_choice_is_none() {
    let line = r#"{"message":"Cache-aware selection","branch":"tree_match"}"#;
    assert_eq!(decode(line.as_bytes()).expect_err(line).reason, Reason::MissingField);
    let line = r#"{"message":"Cache-aware selection","worker":"none"}"#;
    assert_eq!(decode(line.as_bytes()), Ok(None));
    for line in [
        r#"{"message":"x","prompt":"Cache-aware selection worker=a"}"#,
        "2026-11-26 22:58:52 DEBUG smg::x: a prompt about Cache-aware selection worker=a",
    ] {
        assert_eq!(decode(line.as_bytes()), Ok(None), "{line}");
    }
}
