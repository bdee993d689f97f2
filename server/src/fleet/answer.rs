//! One request to a member, and what may be taken from its answer: bounded, plain text, numbers that can be.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, StatusCode};
use radixscope_export::ClusterSummary;
use radixscope_model::id::Millis;
use radixscope_model::record::LinkState;
use serde::Deserialize;
use url::Url;

use crate::config::{MemberAt, MemberLogin};
use crate::source::http_client::{Bounds, HttpClient};

/// Longest text of a member that is shown, characters.
const MAX_TEXT_CHARS: usize = 300;
/// The largest whole number that every JSON reader keeps exactly.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// What kind of failure it was, for `/metrics`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FailureKind {
    /// No connection, or no whole answer in time.
    Unreachable,
    /// Its token or login cannot be read here.
    Login,
    /// It answered with another status than 200.
    Status,
    /// Its answer is no summary.
    Invalid,
    /// It is of a version that reports none.
    NoSummary,
}

impl FailureKind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Login => "login",
            Self::Status => "status",
            Self::Invalid => "invalid",
            Self::NoSummary => "no_summary",
        }
    }
}

/// Why there is no summary.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) kind: FailureKind,
    /// In words.
    pub(super) detail: String,
    /// Version of a Radixscope that answers and has no summary.
    pub(super) version: Option<String>,
}

impl Failed {
    fn new(kind: FailureKind, detail: String) -> Self {
        Self { kind, detail, version: None }
    }
}

/// Asks `member` for its summary.
pub(super) async fn ask(
    client: &HttpClient,
    member: &MemberAt,
    bounds: Bounds,
) -> Result<ClusterSummary, Failed> {
    let url = below(&member.url, "api/v1/summary");
    let (status, body) = get(client, member, &url, bounds).await?;
    match status {
        StatusCode::OK => read(&body).map_err(|why| {
            Failed::new(FailureKind::Invalid, format!("its response is no summary of a cluster: {why}"))
        }),
        StatusCode::NOT_FOUND => Err(without_summary(client, member, bounds).await),
        _ => Err(Failed::new(FailureKind::Status, refused(status, &body))),
    }
}

async fn get(
    client: &HttpClient,
    member: &MemberAt,
    url: &Url,
    bounds: Bounds,
) -> Result<(StatusCode, bytes::Bytes), Failed> {
    let at_fault = |why: String| Failed::new(FailureKind::Login, why);
    let login = match &member.login {
        MemberLogin::Open => None,
        login => {
            // A file may be on a slow disk.
            let login = login.clone();
            let read = tokio::task::spawn_blocking(move || login.authorization()).await;
            read.map_err(|error| at_fault(error.to_string()))?.map_err(at_fault)?
        }
    };
    let mut headers = Vec::new();
    if let Some(login) = login {
        let value = HeaderValue::from_str(login.reveal());
        let mut value = value.map_err(|_| at_fault("the login cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        headers.push((AUTHORIZATION, value));
    }
    client.get_with(url, &headers, bounds).await.map_err(|status| {
        let kind = match status.state {
            LinkState::Refused => FailureKind::Invalid,
            _ => FailureKind::Unreachable,
        };
        Failed::new(kind, plain(&without_address(&status.detail, url)))
    })
}

/// Whether a Radixscope is there that knows no summary.
async fn without_summary(client: &HttpClient, member: &MemberAt, bounds: Bounds) -> Failed {
    #[derive(Deserialize)]
    struct Alive {
        alive: bool,
        version: String,
    }
    let url = below(&member.url, "healthz");
    let alive = match get(client, member, &url, bounds).await {
        Ok((StatusCode::OK, body)) => serde_json::from_slice::<Alive>(&body).ok(),
        _ => None,
    };
    match alive.filter(|alive| alive.alive) {
        Some(Alive { version, .. }) => {
            let version = plain(&version);
            let detail = format!("Radixscope {version} does not report /api/v1/summary; its page works");
            Failed { kind: FailureKind::NoSummary, detail, version: Some(version) }
        }
        None => {
            Failed::new(FailureKind::Status, "responds 404 Not Found, so no Radixscope is there".to_owned())
        }
    }
}

/// An error without the address, which need not be known to readers of the page: the name of the member is beside it.
fn without_address(text: &str, url: &Url) -> String {
    let url = url.as_str();
    let text = text.replace(&format!("the response of {url}"), "its response");
    let text = text.replace(&format!("{url}: "), "").replace(&format!("{url} "), "");
    // The number of an error of the operating system says nothing beside its text.
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// What a status other than 200 means.
fn refused(status: StatusCode, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Body {
        error: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        message: String,
    }
    let said = serde_json::from_slice::<Body>(body).ok().map(|body| plain(&body.error.message));
    let what_to_do = match status {
        _ if status.is_redirection() => "; redirects are not followed: give the address that it leads to",
        StatusCode::UNAUTHORIZED => "; set token-file= or login-file= for this member",
        _ => "",
    };
    let said = said.map_or(String::new(), |said| format!(": {said}"));
    format!("responds {status}{said}{what_to_do}")
}

/// `url` ends in a slash.
fn below(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(&format!("{}{path}", url.path()));
    url
}

/// A summary as it may be shown.
fn read(body: &[u8]) -> Result<ClusterSummary, String> {
    let mut read: ClusterSummary = serde_json::from_slice(body).map_err(|error| plain(&error.to_string()))?;
    let texts = [
        Some(&mut read.version),
        Some(&mut read.hit_rate.of),
        read.hit_rate.why.as_mut(),
        Some(&mut read.ttft.source),
        read.ttft.why.as_mut(),
        Some(&mut read.requests.source),
        read.requests.why.as_mut(),
        read.reuse.why.as_mut(),
        Some(&mut read.findings.checked),
    ];
    texts.into_iter().flatten().for_each(|text| *text = plain(text));
    if let Some(worst) = &mut read.findings.worst {
        (worst.code, worst.title) = (plain(&worst.code), plain(&worst.title));
    }
    if let Some(worst) = &mut read.reuse.worst {
        (worst.cause, worst.text) = (plain(&worst.cause), plain(&worst.text));
    }
    match impossible(&read) {
        Some(what) => Err(format!("{what} cannot be")),
        None => Ok(read),
    }
}

/// The name of a figure that cannot be what it is said to be.
fn impossible(of: &ClusterSummary) -> Option<&'static str> {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
    let ms = |at: Option<Millis>| at.map_or(0, |at| at.0);
    let [worst_ms, lost_tokens] = [
        ms(of.findings.worst.as_ref().map(|worst| worst.since_ms)),
        of.reuse.worst.as_ref().map_or(0, |worst| worst.tokens),
    ];
    let counts = [
        of.at_ms.0,
        ms(of.history_from_ms),
        of.hit_rate.decisions,
        of.hit_rate.window_s,
        of.ttft.samples,
        of.ttft.of,
        of.ttft.window_s,
        of.requests.window_s,
        of.reuse.window_s,
        of.findings.critical,
        of.findings.warning,
        of.findings.info,
        worst_ms,
        lost_tokens,
    ];
    let p95 = of.ttft.p95_ms;
    let is_range = p95.is_none_or(|p95| {
        is_amount(p95.low()) && p95.high().is_none_or(|high| high >= p95.low() && high.is_finite())
    });
    let checks = [
        ("hit_rate", of.hit_rate.share.is_none_or(is_share)),
        ("ttft", is_range && is_amount(of.ttft.target_ms)),
        ("requests", of.requests.per_s.is_none_or(is_amount)),
        ("reuse", of.reuse.worst.as_ref().is_none_or(|worst| is_share(worst.share))),
        ("a count", counts.into_iter().all(|count| count <= MAX_COUNT)),
    ];
    checks.into_iter().find(|(_, is_possible)| !is_possible).map(|(what, _)| what)
}

/// Text of strangers on one line: characters that hide or turn others are marked, and what is too long is cut.
fn plain(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = |c: char| if is_hidden(c) { '\u{fffd}' } else { c };
    let mut out: String = text.chars().take(MAX_TEXT_CHARS).map(shown).collect();
    if text.chars().nth(MAX_TEXT_CHARS).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use radixscope_state::cluster::Cluster;
    use serde_json::{Value, json};

    use super::*;

    fn summary() -> Value {
        let of = ClusterSummary::of(&Cluster::default(), Millis(5), false, None);
        serde_json::to_value(of).unwrap()
    }

    #[test]
    fn text_of_a_member_is_bounded_and_hides_nothing() {
        let mut json = summary();
        json["version"] = json!("1\u{202e}2\n3");
        json["findings"]["worst"] =
            json!({"code": "x", "severity": "critical", "title": "<b>".repeat(5_000), "since_ms": 7});
        let read = read(json.to_string().as_bytes()).unwrap();
        assert_eq!(read.version, "1\u{fffd}2\u{fffd}3");
        let title = read.findings.worst.unwrap().title;
        assert_eq!(title.chars().count(), MAX_TEXT_CHARS + 1);
        assert!(title.ends_with('…'));
    }

    #[test]
    fn what_cannot_be_is_refused_and_never_panics() {
        let wrong = [
            ("/hit_rate/share", json!(1.5)),
            ("/hit_rate/share", json!("half")),
            ("/hit_rate/decisions", json!(u64::MAX)),
            ("/hit_rate/decisions", json!(-1)),
            ("/ttft/p95_ms", json!({"low": 5.0, "high": 1.0})),
            ("/ttft/p95_ms", json!({"low": -1.0, "high": null})),
            ("/ttft/target_ms", json!(null)),
            ("/at_ms", json!(u64::MAX)),
            ("/requests/per_s", json!(-3)),
            ("/findings/worst", json!({"code": "x", "severity": "awful", "title": "t", "since_ms": 1})),
        ];
        for (at, value) in wrong {
            let mut json = summary();
            *json.pointer_mut(at).unwrap() = value.clone();
            assert!(read(json.to_string().as_bytes()).is_err(), "{at} {value}");
        }
        let deep = "[".repeat(100_000);
        for body in ["", "null", "{}", "<html>", &deep] {
            assert!(read(body.as_bytes()).is_err());
        }
        assert!(read(summary().to_string().as_bytes()).is_ok());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let body = br#"{"error":{"code":"unauthorized","message":"a token is needed"}}"#;
        let text = refused(StatusCode::UNAUTHORIZED, body);
        assert_eq!(
            text,
            "responds 401 Unauthorized: a token is needed; set token-file= or login-file= for this member"
        );
        assert!(
            refused(StatusCode::FOUND, b"")
                .ends_with("redirects are not followed: give the address that it leads to")
        );
    }
}
