//! What a frontend's log says of its decisions, read here by plain patterns and without the project's decoder: the
//! measure that joined decisions are held against.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// A request as the log tells it.
#[derive(Default, Debug, Clone)]
pub(crate) struct Request {
    /// Whether a line says that its worker was given it.
    pub(crate) dispatched: bool,
    /// Whether a line ties its id to a choice.
    pub(crate) chosen: bool,
    /// When it was chosen, Unix seconds.
    pub(crate) at: f64,
    pub(crate) overlap: Option<u64>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) ttft_ms: Option<f64>,
    /// Cost of each candidate by the id of its worker.
    pub(crate) costs: BTreeMap<u64, f64>,
    pub(crate) has_hashes: bool,
}

/// All that a log tells.
#[derive(Default, Debug)]
pub(crate) struct LoggedDecisions {
    /// Choices of the KV-aware mode.
    pub(crate) selected: usize,
    /// By the router's id.
    pub(crate) requests: BTreeMap<String, Request>,
    /// Costs of candidates, named by a request or not.
    pub(crate) formulas: usize,
}

/// A line, plain.
struct PlainLogLine {
    message: String,
    scope: String,
    fields: BTreeMap<String, String>,
    router_id: Option<String>,
    http_id: Option<String>,
    at: f64,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

fn of_text(line: &str) -> Option<PlainLogLine> {
    static HEAD: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(\S+Z)\s+(?:TRACE|DEBUG|INFO|WARN|ERROR)\s+((?:\S+:\s+)+)(.*)$"));
    static FIELD: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#" ([\w.]+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S+)"#));
    let head = HEAD.captures(line)?;
    let (mut fields, mut own, mut of_spans) = (BTreeMap::new(), None, Vec::new());
    let mut in_spans = false;
    for field in FIELD.captures_iter(&head[3]) {
        let value = field[2].trim_matches('"').to_owned();
        in_spans |= &field[1] == "version";
        if &field[1] == "request_id" {
            if in_spans { of_spans.push(value.clone()) } else { own = own.or(Some(value.clone())) }
        }
        fields.entry(field[1].to_owned()).or_insert(value);
    }
    let (http_id, inner) = (of_spans.first().cloned(), of_spans.get(1).cloned());
    let at = humantime(&head[1]);
    Some(PlainLogLine {
        message: head[3].to_owned(),
        scope: head[2].to_owned(),
        fields,
        router_id: own.or(inner),
        http_id,
        at,
    })
}

fn of_json(line: &str) -> Option<PlainLogLine> {
    let object: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields: BTreeMap<String, String> = object.iter().map(|(k, v)| (k.clone(), text(v))).collect();
    let scope = format!("{} {}", fields.get("target")?, fields.get("span_name").map_or("", |s| s));
    Some(PlainLogLine {
        message: fields.get("message")?.clone(),
        scope,
        router_id: fields.get("request_id").cloned(),
        http_id: None,
        at: humantime(fields.get("time")?),
        fields,
    })
}

/// Unix seconds of `2026-11-20T18:06:54.428894Z`.
fn humantime(text: &str) -> f64 {
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    // Days since the epoch, after the usual shift of the year's beginning to March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = days * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19);
    seconds as f64 + text[19..text.len() - 1].parse::<f64>().unwrap_or(0.0)
}

impl LoggedDecisions {
    /// Reads a whole log.
    pub(crate) fn of(lines: impl Iterator<Item = String>) -> Self {
        static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\x1b\[[0-9;]*m"));
        let lines: Vec<PlainLogLine> = lines
            .filter_map(|line| {
                let plain = COLOUR.replace_all(&line, "");
                if plain.starts_with('{') { of_json(&plain) } else { of_text(&plain) }
            })
            .collect();
        let names: BTreeMap<String, String> = lines
            .iter()
            .filter(|line| line.scope.contains("::metrics"))
            .filter_map(|line| Some((line.http_id.clone()?, line.router_id.clone()?)))
            .collect();
        let mut logged = Self::default();
        lines.iter().for_each(|line| logged.handle(line, &names));
        logged
    }

    fn handle(&mut self, line: &PlainLogLine, names: &BTreeMap<String, String>) {
        static FORMULA: LazyLock<Regex> =
            LazyLock::new(|| pattern(r"ormula for worker_id=(\d+) dp_rank=\d+ with [^:]*: (-?[\d.]+) = "));
        static BEST: LazyLock<Regex> = LazyLock::new(|| pattern(r"with (\d+)/\d+ blocks overlap"));
        let by_http = || line.http_id.as_ref().and_then(|id| names.get(id)).cloned();
        let id = line.router_id.clone().or_else(by_http);
        let is = |prefix: &str| line.message.starts_with(prefix);
        let number = |key: &str| line.fields.get(key).and_then(|text| text.parse::<u64>().ok());
        let is_direct = line.fields.get("router_mode").is_some_and(|mode| mode == "direct");
        let is_choice = is("Selected worker") && !is_direct;
        self.selected += usize::from(is_choice);
        let formula = FORMULA.captures(&line.message);
        self.formulas += usize::from(formula.is_some());
        let Some(id) = id else { return };
        let is_routed = line.scope.contains("kv_router.route_request");
        let of_metrics = line.scope.contains("::metrics");
        let request = self.requests.entry(id).or_default();
        if is_choice || request.at == 0.0 {
            request.at = line.at;
        }
        request.chosen |= is_choice;
        if let Some(formula) = formula {
            request.costs.insert(formula[1].parse().unwrap(), formula[2].parse().unwrap());
        }
        if (is("Selected worker") && is_direct && is_routed) || (is("route request ") && is_routed) {
            (request.dispatched, request.chosen) = (true, true);
            request.overlap = request.overlap.or(number("overlap_blocks"));
        }
        if let Some(best) = BEST.captures(&line.message).filter(|_| is("[ROUTING] Best")) {
            (request.dispatched, request.chosen) = (true, true);
            request.overlap = request.overlap.or(best[1].parse().ok());
        }
        request.has_hashes |= is("[ROUTING_INPUT]");
        if is("request completed") && of_metrics {
            request.input_tokens = number("input_tokens").filter(|&tokens| tokens > 0);
            request.ttft_ms = line.fields.get("ttft_ms").and_then(|text| text.parse().ok());
        }
    }
}
