//! Why object storage refused or did not answer, in words, with what to do. Says nothing of what was sent, which is signed with secrets.

use std::error::Error as _;
use std::fmt;

use object_store::client::{HttpError, HttpErrorKind};

use crate::config::StoreKind;

/// Most characters of a store's own words.
const MAX_WORDS: usize = 160;

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StoreFailure {
    text: String,
    /// Whether it may be over soon without anybody's help.
    pub(super) is_passing: bool,
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StoreFailure {}

impl From<StoreFailure> for std::io::Error {
    fn from(failure: StoreFailure) -> Self {
        Self::other(failure)
    }
}

impl StoreFailure {
    /// One that may be over soon.
    pub(super) fn passing(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_passing: true }
    }

    fn lasting(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_passing: false }
    }

    /// From what the library reports.
    pub(super) fn of(error: &object_store::Error, kind: StoreKind) -> Self {
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(http) = cause.downcast_ref::<HttpError>() {
                return Self::of_http(http, kind);
            }
            source = cause.source();
        }
        // The library's types for responses are its own; its text has the status, then the body.
        let text = error.to_string();
        match response(&text) {
            Some((status, body)) => Self::of_response(status, body, kind),
            None if text.contains("without LOCATION") => {
                Self::lasting(format!("the bucket is in another region{}", region(kind)))
            }
            None if matches!(error, object_store::Error::NotFound { .. }) => {
                Self::lasting("there is no such object")
            }
            None => Self::lasting(brief(&without_query(&text))),
        }
    }

    fn of_http(error: &HttpError, kind: StoreKind) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let why = brief(&without_query(&cause.to_string()));
        if why.contains("Unsupported scheme") || why.contains("unsupported scheme") {
            return Self::lasting(format!("the endpoint has no TLS{}", allow_http(kind)));
        }
        if why.contains("certificate") {
            return Self::lasting(format!(
                "the endpoint's certificate is not trusted ({why}): name the file of its authority in SSL_CERT_FILE"
            ));
        }
        match error.kind() {
            HttpErrorKind::Connect => {
                Self::passing(format!("cannot connect ({why}): check {}", endpoint(kind)))
            }
            HttpErrorKind::Timeout => Self::passing(format!("it is too slow ({why})")),
            _ => Self::passing(format!("the connection broke ({why})")),
        }
    }

    fn of_response(status: u16, body: &str, kind: StoreKind) -> Self {
        let code = element(body, "Code").unwrap_or_default();
        let said = element(body, "Message").map(brief).filter(|said| !said.is_empty());
        let said = match (code.is_empty(), said) {
            (false, Some(said)) => format!("{status} {code}: {said}"),
            (false, None) => format!("{status} {code}"),
            (true, _) => format!("status {status}"),
        };
        let credentials = credentials(kind);
        match (code, status) {
            ("NoSuchBucket" | "ContainerNotFound", _) => {
                Self::lasting(format!("there is no such bucket ({said}): create it, or correct its name"))
            }
            ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidToken" | "AuthenticationFailed", _)
            | (_, 401) => Self::lasting(format!("the credentials are wrong ({said}): check {credentials}")),
            ("ExpiredToken" | "TokenRefreshRequired", _) => {
                Self::lasting(format!("the credentials have expired ({said}): renew {credentials}"))
            }
            ("RequestTimeTooSkewed", _) => {
                Self::lasting(format!("this machine's clock is wrong ({said}): set it"))
            }
            ("QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage", _) | (_, 507) => {
                Self::passing(format!("the store is full ({said}): make room or raise its quota"))
            }
            (_, 403) => Self::lasting(format!(
                "access is denied ({said}): allow writing, reading and listing under the prefix, or check {credentials}"
            )),
            ("PermanentRedirect" | "AuthorizationHeaderMalformed", _) | (_, 301 | 307) => {
                Self::lasting(format!("the bucket is in another region ({said}){}", region(kind)))
            }
            ("SlowDown" | "ServerBusy", _) | (_, 429 | 503) => {
                Self::passing(format!("the store asks to slow down ({said})"))
            }
            (_, 404) => Self::lasting(format!("there is no such object or bucket ({said})")),
            (_, 500..) => Self::passing(format!("the store has a fault of its own ({said})")),
            _ => Self::lasting(format!("the store refused the request ({said})")),
        }
    }
}

const fn credentials(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the role",
        StoreKind::Google => "GOOGLE_APPLICATION_CREDENTIALS, or the service account",
        StoreKind::Azure => {
            "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the managed identity"
        }
    }
}

/// Without credentials in the environment the machine's metadata service is asked, which exists in clouds only.
const fn endpoint(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => "AWS_ENDPOINT_URL and the network, and that AWS_ACCESS_KEY_ID or a role is set",
        StoreKind::Google => {
            "the network, and that GOOGLE_APPLICATION_CREDENTIALS or a service account is set"
        }
        StoreKind::Azure => {
            "AZURE_STORAGE_ENDPOINT and the network, and that AZURE_STORAGE_ACCOUNT_KEY or an identity is set"
        }
    }
}

const fn allow_http(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => ": AWS_ALLOW_HTTP=true permits that",
        StoreKind::Google => "",
        StoreKind::Azure => ": AZURE_ALLOW_HTTP=true permits that",
    }
}

const fn region(kind: StoreKind) -> &'static str {
    match kind {
        StoreKind::S3 => ": set AWS_REGION",
        StoreKind::Google | StoreKind::Azure => "",
    }
}

/// The status and body of a response in the library's text.
fn response(text: &str) -> Option<(u16, &str)> {
    let (_, rest) = text.split_once("status code: ").or_else(|| text.split_once("error response: "))?;
    let status = rest.get(..3).and_then(|status| status.parse().ok());
    // A response that says yes and holds an error is asked to be repeated.
    Some((status.unwrap_or(503), rest))
}

/// The text of an element of XML, or of a field of the same name in JSON.
fn element<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(text, _)| text.trim())
}

/// The first line, as far as it is short, without what a terminal would obey.
fn brief(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(MAX_WORDS).collect()
}

/// Without what follows a question mark in addresses: a signature may be there.
fn without_query(text: &str) -> String {
    let word = |word: &str| match word.split_once('?') {
        Some((before, _)) if before.contains("://") => format!("{before}?…"),
        _ => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: &str, body: &str) -> StoreFailure {
        let text = format!(
            "Error performing PUT http://h/b/k in 1ms - Server returned non-2xx status code: {status}: {body}"
        );
        StoreFailure::of(&object_store::Error::Generic { store: "S3", source: text.into() }, StoreKind::S3)
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let xml = |code: &str| {
            format!(
                "<Error><Code>{code}</Code><Message>as it is\nmore</Message><StringToSign>secret</StringToSign></Error>"
            )
        };
        for (status, code, passing, words) in [
            ("403 Forbidden", "SignatureDoesNotMatch", false, "credentials are wrong"),
            ("403 Forbidden", "AccessDenied", false, "access is denied"),
            ("404 Not Found", "NoSuchBucket", false, "no such bucket"),
            ("503 Service Unavailable", "SlowDown", true, "slow down"),
            ("507 Insufficient Storage", "XMinioStorageFull", true, "full"),
            ("500 Internal Server Error", "InternalError", true, "fault of its own"),
            ("400 Bad Request", "ExpiredToken", false, "expired"),
            ("400 Bad Request", "AuthorizationHeaderMalformed", false, "AWS_REGION"),
        ] {
            let failure = failure(status, &xml(code));
            assert!(failure.text.contains(words) && failure.text.contains(code), "{failure}");
            assert_eq!(failure.is_passing, passing, "{failure}");
            assert!(!failure.text.contains("secret") && !failure.text.contains("more"), "{failure}");
        }
        assert!(failure("507 Insufficient Storage", "").text.contains("status 507"));
    }

    #[test]
    fn a_signature_in_an_address_is_not_shown() {
        let error = object_store::Error::Generic {
            store: "Azure",
            source: "GET https://h/b?sig=secret failed".into(),
        };
        let failure = StoreFailure::of(&error, StoreKind::Azure);
        assert!(failure.text.contains("https://h/b?…") && !failure.text.contains("secret"), "{failure}");
    }
}
