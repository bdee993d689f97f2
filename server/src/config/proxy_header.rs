//! The header in which an authenticating proxy names the user. Headers that requests have without a login are refused, because
//! they would give everyone access. Pure text.

use axum::http::HeaderName;

/// The purpose of a header that cannot name a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Describes the connection or the message framing.
    Transport,
    /// Describes a body, or what the client accepts.
    Content,
    /// Set by browsers.
    Browser,
    /// Unverified credentials from the client.
    Credential,
    /// Added by proxies to every request, logged in or not.
    Route,
}

impl Purpose {
    const fn to_text(self) -> &'static str {
        match self {
            Self::Transport => "describes the connection or the framing of a message",
            Self::Content => "describes the content of a message or what the client accepts",
            Self::Browser => "is set by browsers themselves",
            Self::Credential => "carries a credential that the client chooses",
            Self::Route => "is set by proxies on every request, with or without a login",
        }
    }
}

/// Names in lower case.
const NAMES: [(Purpose, &[&str]); 5] = [
    (
        Purpose::Transport,
        &[
            "connection",
            "date",
            "expect",
            "host",
            "http2-settings",
            "keep-alive",
            "max-forwards",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ],
    ),
    (Purpose::Content, &["accept", "alt-used", "cache-control", "pragma", "range", "save-data"]),
    (
        Purpose::Browser,
        &[
            "dnt",
            "origin",
            "priority",
            "referer",
            "upgrade-insecure-requests",
            "user-agent",
            "x-requested-with",
        ],
    ),
    (Purpose::Credential, &["authorization", "cookie", "proxy-authorization", "set-cookie"]),
    (
        Purpose::Route,
        &[
            "cf-connecting-ip",
            "forwarded",
            "traceparent",
            "tracestate",
            "true-client-ip",
            "via",
            "x-amzn-trace-id",
            "x-client-ip",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-method",
            "x-forwarded-path",
            "x-forwarded-port",
            "x-forwarded-prefix",
            "x-forwarded-proto",
            "x-forwarded-scheme",
            "x-forwarded-server",
            "x-forwarded-ssl",
            "x-forwarded-uri",
            "x-original-uri",
            "x-original-url",
            "x-real-ip",
            "x-request-id",
            "x-scheme",
        ],
    ),
];

/// Prefixes of names.
const PREFIXES: [(Purpose, &str); 8] = [
    (Purpose::Transport, "proxy-"),
    (Purpose::Transport, "sec-websocket-"),
    (Purpose::Content, "accept-"),
    (Purpose::Content, "content-"),
    (Purpose::Content, "if-"),
    (Purpose::Browser, "access-control-"),
    (Purpose::Browser, "sec-"),
    (Purpose::Route, "x-envoy-"),
];

/// Parses the name of the header that an authenticating proxy sets.
///
/// # Errors
/// It is not a header name, or a header that cannot name a logged-in user.
pub(super) fn proxy_header(text: &str) -> Result<HeaderName, String> {
    const EXPECTED: &str =
        "expected the header in which the proxy names the logged-in user, such as X-Forwarded-User";
    let name: HeaderName = text.parse().map_err(|_| format!("not the name of a header; {EXPECTED}"))?;
    match purpose(name.as_str()) {
        Some(purpose) => Err(format!("{text} {} and does not name a user; {EXPECTED}", purpose.to_text())),
        None => Ok(name),
    }
}

fn purpose(name: &str) -> Option<Purpose> {
    let exact = NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(purpose, _)| *purpose);
    exact
        .or_else(|| PREFIXES.iter().find(|(_, prefix)| name.starts_with(prefix)).map(|(purpose, _)| *purpose))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_requests_have_without_a_login_are_refused_with_their_purpose() {
        for (names, purpose) in [
            (
                "Host Connection Transfer-Encoding Upgrade TE Trailer Keep-Alive Proxy-Connection",
                Purpose::Transport,
            ),
            (
                "Content-Length Content-Type Accept Accept-Language Accept-Encoding If-None-Match",
                Purpose::Content,
            ),
            ("Origin User-Agent Referer Sec-Fetch-Site Sec-CH-UA", Purpose::Browser),
            ("Authorization Cookie Proxy-Authorization", Purpose::Credential),
            (
                "Forwarded Via X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Forwarded-Prefix",
                Purpose::Route,
            ),
        ] {
            for name in names.split(' ') {
                let why = proxy_header(name).unwrap_err();
                assert!(why.contains(name) && why.contains(purpose.to_text()), "{name}: {why}");
                assert!(why.contains("such as X-Forwarded-User"), "it says what to write: {why}");
            }
        }
        assert!(proxy_header("X User").unwrap_err().contains("not the name of a header"));
    }

    #[test]
    fn headers_of_login_proxies_are_accepted() {
        for name in [
            "X-Forwarded-User",
            "X-Forwarded-Email",
            "X-Forwarded-Preferred-Username",
            "X-Auth-Request-User",
            "Remote-User",
            "X-Remote-User",
            "X-WEBAUTH-USER",
            "X-Goog-Authenticated-User-Email",
            "Cf-Access-Authenticated-User-Email",
            "Tailscale-User-Login",
        ] {
            assert!(proxy_header(name).is_ok(), "{name}");
        }
    }
}
