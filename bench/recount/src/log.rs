//! A line of a Dynamo log, text or JSON, as time, message and fields.

use std::{sync::LazyLock, time::UNIX_EPOCH};

use regex::Regex;
use serde_json::Value;

/// A line.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it was written, Unix seconds.
    pub at_s: f64,
    /// What it reports: in text with the fields behind it.
    pub message: String,
    /// In order; a key may come twice, the event's own first.
    fields: Vec<(String, String)>,
    /// Whether the line was JSON.
    pub is_json: bool,
}

/// A pattern that is known to be one.
pub(crate) fn pattern(text: &str) -> Regex {
    match Regex::new(text) {
        Ok(regex) => regex,
        Err(error) => panic!("{text}: {error}"),
    }
}

static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern("\x1b\\[[0-9;]*m"));
static TEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(\d{4}-\d\d-\d\dT[\d:.]+Z)\s+(?:TRACE|DEBUG|INFO|WARN|ERROR)\s+(?:\S+: )?\S+: (.*)$")
});
static FIELD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:^|\s)([A-Za-z_][\w.]*)=(\[[^\]]*\]|"[^"]*"|[^\s,]+)"#));

impl Line {
    /// Reads a line; `None`: it has no time, so it is none of Dynamo's own.
    pub fn read(raw: &str) -> Option<Self> {
        if raw.starts_with('{') { Self::json(raw) } else { Self::text(raw) }
    }

    fn text(raw: &str) -> Option<Self> {
        let plain = COLOUR.replace_all(raw, "");
        let parts = TEXT.captures(&plain)?;
        let message = parts[2].to_owned();
        let fields = FIELD.captures_iter(&message);
        let fields = fields.map(|field| (field[1].to_owned(), field[2].trim_matches('"').to_owned()));
        Some(Self { at_s: time(&parts[1])?, fields: fields.collect(), message, is_json: false })
    }

    fn json(raw: &str) -> Option<Self> {
        let Value::Object(object) = serde_json::from_str(raw).ok()? else { return None };
        let message = object.get("message")?.as_str()?.to_owned();
        let at_s = time(object.get("time")?.as_str()?)?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let fields = object.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        Some(Self { at_s, message, fields, is_json: true })
    }

    /// The first value of `key`: the event's own.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The last value of `key`: that of the innermost span.
    pub fn last(&self, key: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The first value of `key` as a number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.first(key)?.parse().ok()
    }
}

fn time(text: &str) -> Option<f64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same_fields() {
        let text = "2026-11-21T21:59:48.479823Z  INFO http-request:kv_router.route_request: dynamo_runtime::egress: \
            Selected worker router_mode=\"direct\" worker_id=7 method=POST request_id=a model=\"m\" request_id=b \
            worker_id=7 dp_rank=0 overlap_blocks=251 phase=Aggregated";
        let line = Line::read(text).unwrap();
        assert!(line.message.starts_with("Selected worker router_mode="));
        assert_eq!((line.first("request_id"), line.last("request_id")), (Some("a"), Some("b")));
        assert_eq!(line.number("overlap_blocks"), Some(251));
        let json = r#"{"time":"2026-11-21T21:59:48.479823Z","target":"x","message":"Selected worker","logit":1.5,
            "worker_id":7,"overlap_blocks":"251"}"#;
        let line = Line::read(json).unwrap();
        assert_eq!((line.number("overlap_blocks"), line.number("logit")), (Some(251), Some(1.5)));
    }

    #[test]
    fn a_message_with_a_colon_is_whole() {
        let text = "2026-11-21T21:59:48.479823Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: worker_id=7 \
            dp_rank=0, logit: 4.625, cached blocks: 0";
        assert!(Line::read(text).unwrap().message.starts_with("Selected worker: worker_id=7"));
        let coloured = "\x1b[2m2026-11-21T21:59:48.479823Z\x1b[0m \x1b[32m INFO\x1b[0m \x1b[2ma::b\x1b[0m\x1b[2m:\x1b[0m hi";
        assert_eq!(Line::read(coloured).unwrap().message, "hi");
    }
}
