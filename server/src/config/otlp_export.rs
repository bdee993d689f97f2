//! Where decisions are sent as log records of OpenTelemetry, as the command line has it.

use std::str::FromStr;

use axum::http::{HeaderName, HeaderValue};
use clap::Args;
use url::Url;

use super::http_base::http_base;
use super::redacted::Redacted;

/// Decisions to a collector of OpenTelemetry. Nothing is sent without it.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Decisions to OpenTelemetry")]
pub struct OtlpExportArgs {
    /// Collector to which each routing decision is sent as a log record when its request has ended: OTLP over HTTP in Protocol
    /// Buffers, such as http://collector:4318 [default: none, nothing is sent]
    #[arg(long, env = "RADIXSCOPE_OTLP_EXPORT", value_name = "URL", value_parser = Redacted(OtlpUrl::from_str))]
    pub otlp_export: Option<OtlpUrl>,
    /// Headers of these requests, such as a token; separated by commas. In the variable, so that they are in no list of processes
    /// [default: none]
    #[arg(long, env = "RADIXSCOPE_OTLP_EXPORT_HEADERS", value_name = "NAME=VALUE[,…]", value_delimiter = ',', hide_env_values = true, requires = "otlp_export", value_parser = Redacted(OtlpHeader::from_str))]
    pub otlp_export_headers: Vec<OtlpHeader>,
}

/// Base address of a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpUrl(Url);

impl OtlpUrl {
    /// The address of log records, under the path that OTLP gives them.
    pub fn logs(&self) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}v1/logs", self.0.path()));
        url
    }
}

impl FromStr for OtlpUrl {
    type Err = String;

    /// With or without the path of log records.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut url = http_base(text)?;
        if let Some(base) = url.path().strip_suffix("v1/logs/").map(str::to_owned) {
            url.set_path(&base);
        }
        Ok(Self(url))
    }
}

/// A header, which may be a secret.
#[derive(Clone)]
pub struct OtlpHeader(pub (HeaderName, HeaderValue));

impl std::fmt::Debug for OtlpHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=…", self.0.0)
    }
}

impl FromStr for OtlpHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        let name = HeaderName::from_str(name.trim()).map_err(|_| "the name is none of a header")?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| "the value cannot be in a header")?;
        value.set_sensitive(true);
        Ok(Self((name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_logs_is_added_once() {
        let logs = |text: &str| text.parse::<OtlpUrl>().map(|url| url.logs().to_string());
        for (text, expected) in [
            ("collector:4318", "http://collector:4318/v1/logs"),
            ("https://collector/otlp", "https://collector/otlp/v1/logs"),
            ("http://collector:4318/v1/logs", "http://collector:4318/v1/logs"),
        ] {
            assert_eq!(logs(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(logs("grpc://collector:4317").is_err_and(|why| why.contains("http://")));
    }

    #[test]
    fn a_header_is_never_printed() {
        let header: OtlpHeader = "authorization=Bearer s3cret".parse().unwrap();
        assert_eq!(format!("{header:?}"), "authorization=…");
        assert_eq!(header.0.1.as_bytes(), b"Bearer s3cret");
        assert!("no name".parse::<OtlpHeader>().is_err() && "a b=c".parse::<OtlpHeader>().is_err());
    }
}
