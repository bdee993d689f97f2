//! Every line of every recorded log: nothing about routing or the path of events is overlooked, printed costs are those of their
//! printed terms, and what was chosen is what the costs say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::log_line::{Formula, LogEvent, LogRecord, Selected, decode, may_matter};
use radixscope_model::record::LogSignal;
use serde_json::Value;

/// The logs of a capture, each with a name to show: of the frontend, one more for every time that it was started again,
/// and of the workers.
fn logs(capture: &Recording) -> Vec<(String, Vec<String>)> {
    let log = |process: &String| (format!("{}/{process}", capture.name()), capture.log(process).collect());
    capture.logs().iter().map(log).collect()
}

fn all_logs(version: &str) -> Vec<(String, Vec<String>)> {
    let logs: Vec<_> = Recording::all_in(&fixtures()).iter().flat_map(logs).collect();
    let of_version: Vec<_> = logs.into_iter().filter(|(name, _)| name.starts_with(version)).collect();
    assert!(!of_version.is_empty(), "no recorded logs of {version}");
    of_version
}

fn decoded(line: &str) -> Option<LogRecord<'_>> {
    decode(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn kind(event: &LogEvent<'_>) -> &'static str {
    match event {
        LogEvent::Formula(_) => "formula",
        LogEvent::Tie(_) => "tie",
        LogEvent::Stopping => "stopping",
        LogEvent::Selected(_) => "selected",
        LogEvent::SelectedWithoutKv(_) => "selected without KV",
        LogEvent::Unreachable(_) => "unreachable",
        LogEvent::SessionLookup(_) => "session lookup",
        LogEvent::Dispatched(_) => "dispatched",
        LogEvent::RoutingBest(_) => "best",
        LogEvent::RoutingInput(_) => "input",
        LogEvent::RouteDone(_) => "route done",
        LogEvent::RoutedDirectly(_) => "routed directly",
        LogEvent::PrefillBypassed(_) => "prefill bypassed",
        LogEvent::OverlapRefreshed(_) => "overlap refreshed",
        LogEvent::RequestReceived(_) => "received",
        LogEvent::RequestDone(_) => "request done",
        LogEvent::Picker(_) => "picker",
        LogEvent::GatewayChoice(_) => "gateway choice",
        LogEvent::StartedWith(_) => "started with",
        LogEvent::WorkerAdded(_) => "added",
        LogEvent::WorkerRemoved(_) => "removed",
        LogEvent::InstanceRemoved(_) => "instance removed",
        LogEvent::Signal { sign, .. } => match sign {
            LogSignal::RouterStarted => "router started",
            LogSignal::ParentUnknown => "parent unknown",
            LogSignal::BlockUnknown => "block unknown",
            LogSignal::PublisherSize { publisher: 16, engine: 32 } => "publisher size",
            LogSignal::UsesJetStream => "uses JetStream",
            other => panic!("no recorded log says {other:?}"),
        },
    }
}

/// Counted without the decoder: the words that only lines of this kind have.
fn expected(lines: &[String]) -> BTreeMap<&'static str, usize> {
    let has = |line: &str, text: &[&str]| text.iter().all(|word| line.contains(word));
    let kinds: [(&'static str, &[&str]); 19] = [
        ("started with", &["CONFIG_DUMP: "]),
        ("formula", &["ormula for worker_id="]),
        ("tie", &["Multiple workers tied"]),
        ("stopping", &["Runtime shutdown initiated"]),
        ("selected", &["Selected worker"]),
        ("dispatched", &["Selected worker", "direct"]),
        ("best", &["[ROUTING] Best: "]),
        ("input", &["[ROUTING_INPUT]"]),
        ("route done", &["route request ", "kv_router.route_request"]),
        ("received", &["service::metrics", "request received"]),
        ("request done", &["service::metrics", "request completed"]),
        ("added", &["Adding worker WorkerWithDpRank"]),
        ("removed", &["Removing worker WorkerWithDpRank"]),
        ("instance removed", &["instance removed, removing worker"]),
        ("router started", &["KV Routing initialized"]),
        ("parent unknown", &["skipping store operation"]),
        ("block unknown", &["skipping remove operation"]),
        ("publisher size", &["Block size must be 16", "Block size is: 32"]),
        ("uses JetStream", &["using JetStream subscription"]),
    ];
    let count = |text: &[&str]| {
        let is_direct = text.contains(&"direct");
        let matching = lines.iter().filter(|line| has(line, text));
        // Both kinds begin in the same words.
        matching
            .filter(|line| is_direct || !(text == ["Selected worker"] && line.contains("\"direct\"")))
            .count()
    };
    kinds.iter().map(|(kind, text)| (*kind, count(text))).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn every_line_about_routing_is_found_and_no_other() {
    let mut total = 0;
    for version in ["0.8.1", "0.9.1", "1.0.2", "1.1.1", "1.2.1", "1.3.1", "1.4.2", "1.5.1", "1.6.1", "1.7.0"]
    {
        for (name, lines) in all_logs(version) {
            let mut found = BTreeMap::new();
            for line in &lines {
                let event = decoded(line);
                assert!(event.is_none() || may_matter(line.as_bytes()), "{line}");
                if let Some(line) = event {
                    *found.entry(kind(&line.event)).or_insert(0) += 1;
                }
            }
            assert_eq!(found, expected(&lines), "{name}");
            total += found.values().sum::<usize>();
        }
    }
    assert!(total > 5_000, "{total} lines of all logs say something");
}

#[test]
fn every_line_bears_the_time_at_which_it_was_written() {
    for version in ["0.9.1", "1.6.1"] {
        for (name, lines) in all_logs(version) {
            let mut last = 0;
            for line in lines.iter().filter_map(|line| decoded(line)) {
                let at = line.at_us.expect("every line has a time");
                // Threads write at the same time: lines may be a little out of order.
                assert!(at > last - 1_000_000, "{name}: {at} after {last}");
                last = at;
            }
        }
    }
}

/// One decision of 0.9: what stands from one `Selected worker` to the next.
#[derive(Default)]
struct DecisionEntry {
    formulas: Vec<Formula<'static>>,
    tie: bool,
}

impl DecisionEntry {
    /// Whether the costs lead to this worker, and whether they were equal.
    fn check(&self, selected: &Selected<'_>) -> bool {
        let min = self.formulas.iter().map(|f| f.logit.value).fold(f64::INFINITY, f64::min);
        let best: Vec<&Formula<'_>> = self.formulas.iter().filter(|f| f.logit.value == min).collect();
        let chosen = best.iter().find(|f| f.worker == selected.worker).expect("the cheapest is chosen");
        assert_eq!(chosen.logit, selected.logit);
        assert_eq!(Some(chosen.cached_blocks), selected.cached_blocks);
        assert_eq!(self.tie, best.len() > 1, "a tie is announced where there is one");
        best.len() > 1
    }
}

#[test]
fn logits_of_0_9_are_those_of_their_terms_and_the_cheapest_worker_is_chosen() {
    let (mut decisions, mut ties) = (0, 0);
    for (name, lines) in all_logs("0.9.1") {
        let mut open = DecisionEntry::default();
        for line in lines.iter().filter_map(|line| decoded(line)) {
            match line.event {
                LogEvent::Formula(formula) => {
                    assert!(formula.logit.reads_as(formula.recomputed()), "{name}: {formula:?}");
                    assert!(formula.adds_up(), "{name}: {formula:?}");
                    if let LogEvent::Formula(formula) = LogEvent::Formula(formula).into_owned() {
                        open.formulas.push(formula);
                    }
                }
                LogEvent::Tie(_) => open.tie = true,
                LogEvent::Selected(selected) => {
                    ties += usize::from(open.check(&selected));
                    decisions += 1;
                    open = DecisionEntry::default();
                }
                _ => {}
            }
        }
        assert!(open.formulas.is_empty(), "{name}: costs without a decision");
    }
    assert_eq!((decisions, ties), (1_601, 54), "decisions, and those among equally cheap workers");
}

/// Ids of the requests that clients got answers to, as the clients saw them.
fn answered(capture: &Recording) -> BTreeSet<String> {
    let response = |value: Value| Some(value.get("id")?.as_str()?.strip_prefix("chatcmpl-")?.to_owned());
    capture.traffic().filter_map(response).collect()
}

#[test]
fn the_lines_of_a_request_of_1_6_share_the_routers_id() {
    let mut dispatched = 0;
    for capture in
        Recording::all_in(&fixtures()).iter().filter(|capture| capture.name().starts_with("1.6.1-"))
    {
        let (mut selected, mut routed, mut done) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for line in logs(capture).iter().flat_map(|(_, lines)| lines).filter_map(|line| decoded(line)) {
            match line.event {
                LogEvent::Selected(event) => {
                    selected.insert(event.ids.router.expect("1.6 gives it").into_owned(), event.worker);
                }
                LogEvent::RouteDone(event) => {
                    routed.insert(event.request_id.into_owned(), event.worker);
                }
                LogEvent::RequestDone(event) => {
                    done.insert(event.request_id.into_owned(), event.decode_worker);
                }
                _ => {}
            }
        }
        assert!(routed.len() > 90 && selected.len() >= routed.len());
        for (id, worker) in &routed {
            assert_eq!(selected.get(id), Some(worker), "{id}");
            assert_eq!(done.get(id), Some(&Some(worker.id)), "{id}");
        }
        let answered = answered(capture);
        assert!(
            answered.iter().all(|id| routed.contains_key(id)),
            "the router's id is the one of the response"
        );
        dispatched += routed.len();
    }
    assert_eq!(dispatched, 844, "dispatched requests of all captures");
}

#[test]
fn tokens_hashes_are_as_many_as_the_line_counts() {
    let mut inputs = 0;
    for (_, lines) in all_logs("1.6.1-log-jsonl-debug") {
        for line in &lines {
            if let Some(LogRecord { event: LogEvent::RoutingInput(event), .. }) = decoded(line) {
                let plain: Value = serde_json::from_str(line).unwrap();
                let hashes: Vec<u64> = serde_json::from_str(plain["local_hashes"].as_str().unwrap()).unwrap();
                assert_eq!(event.local_hashes, hashes);
                assert_eq!(event.num_blocks, hashes.len() as u64);
                assert_eq!(event.num_blocks, event.isl_tokens / event.block_size_tokens);
                inputs += 1;
            }
        }
    }
    assert_eq!(inputs, 99);
}

/// The line as Dynamo colours it: time dim, level coloured, target dim, names of fields in italics.
fn coloured(line: &str) -> String {
    let (time, rest) = line.split_once(' ').unwrap();
    let (level, rest) = (&rest[..5], &rest[6..]);
    let (target, message) = rest.split_once(": ").unwrap();
    let dim = |text: &str| format!("\x1b[2m{text}\x1b[0m");
    let mut coloured = format!("{} \x1b[32m{level}\x1b[0m {}{} ", dim(time), dim(target), dim(":"));
    let has_fields = message.contains("request_id=") || message.contains("request_span");
    for (i, word) in message.split(' ').enumerate() {
        let space = if i == 0 { "" } else { " " };
        let _ = match word.split_once('=').filter(|_| has_fields) {
            Some((key, value)) => write!(coloured, "{space}\x1b[3m{key}\x1b[0m{}{value}", dim("=")),
            None => write!(coloured, "{space}{word}"),
        };
    }
    coloured
}

#[test]
fn a_coloured_line_says_what_a_plain_one_says() {
    let mut compared = 0;
    for (name, lines) in all_logs("0.9.1-healthy").into_iter().chain(all_logs("1.6.1-healthy")) {
        for line in &lines {
            let Some(plain) = decoded(line) else { continue };
            let coloured = coloured(line);
            assert_eq!(decoded(&coloured), Some(plain.clone()), "{name}: {coloured:?}");
            let behind_a_runtime = format!("2026-11-20T23:59:59.123456789Z stderr F {coloured}\r");
            assert_eq!(decoded(&behind_a_runtime), Some(plain));
            compared += 1;
        }
    }
    assert!(compared > 3_000, "{compared}");
}

/// The line of JSONL as Dynamo writes the same event in text.
fn in_text(line: &str) -> String {
    let object: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut out = format!("{} {:>5} ", text("time"), text("level"));
    if object.contains_key("span_name") {
        let _ = write!(out, "http-request:{}: ", text("span_name"));
    }
    let _ = write!(out, "{}: {}", text("target"), text("message"));
    // An event's own fields, then those of the HTTP span, then those of the router's.
    if object.contains_key("otel.kind") {
        let _ = write!(out, " request.outcome={:?} method=POST request_id=0", text("request.outcome"));
        out.push_str(" otel.kind=\"client\"");
    }
    if let Some(id) = object.get("request_id").and_then(Value::as_str) {
        let _ = write!(out, " request_id={id}");
    }
    let around = [
        "time",
        "level",
        "file",
        "line",
        "target",
        "message",
        "span_name",
        "otel.kind",
        "trace_id",
        "request_id",
    ];
    for (key, value) in object.iter().filter(|(key, _)| !around.contains(&key.as_str())) {
        let _ = match value {
            Value::String(list) if list.starts_with('[') => write!(out, " {key}={list}"),
            value => write!(out, " {key}={value}"),
        };
    }
    out
}

#[test]
fn a_line_of_jsonl_says_what_the_same_line_in_text_says() {
    let (mut compared, mut traced) = (0, 0);
    for (name, lines) in all_logs("0.9.1-log-jsonl-info").into_iter().chain(all_logs("1.6.1-log-jsonl-debug"))
    {
        // Only the frontend wrote JSONL there; its workers' logs are text.
        for line in lines.iter().filter(|line| line.starts_with('{')) {
            let Some(event) = decoded(line) else { continue };
            let text = in_text(line);
            let mut in_text = decoded(&text);
            // Text has no trace.
            assert_eq!(in_text.as_ref().and_then(|of| of.trace_id.as_deref()), None);
            if let Some(of) = &mut in_text {
                traced += usize::from(event.trace_id.is_some());
                of.trace_id.clone_from(&event.trace_id);
            }
            if let Some(LogRecord { event: LogEvent::RouteDone(done), .. }) = &mut in_text {
                // JSONL has room for one id of the two.
                assert_eq!(done.http_id.take().as_deref(), Some("0"));
            }
            assert_eq!(in_text, Some(event.clone()), "{name}: {text}");
            let behind_a_runtime = format!("frontend-1  | {line}");
            assert_eq!(decoded(&behind_a_runtime), Some(event));
            compared += 1;
        }
    }
    assert!(compared > 900 && traced > 0, "{compared}, {traced} of them with a trace");
}
