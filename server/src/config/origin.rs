//! Origins that may use the API, and sites that may frame the page. Pure text.

use std::str::FromStr;

use url::{Host, Url};

use super::host::is_host_name;

const NULL: &str = "null";

/// An origin as browsers write it: `https://example.org:8443`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowedOrigin(String);

impl AllowedOrigin {
    /// As browsers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AllowedOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Sent by browsers for a frame that is sandboxed without allow-same-origin.
        if text == NULL {
            return Ok(Self(text.to_owned()));
        }
        let url = Url::parse(text)
            .map_err(|error| format!("not an origin such as https://example.org: {error}"))?;
        let has_login = !url.username().is_empty() || url.password().is_some();
        let has_more = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
        if !matches!(url.scheme(), "http" | "https") || has_more || has_login {
            return Err("expected scheme, host and port only, such as https://example.org:8443".to_owned());
        }
        if let Some(Host::Domain(name)) = url.host() {
            can_be_sent(name)?;
        }
        Ok(Self(url.origin().ascii_serialization()))
    }
}

/// Whether a browser can name `name` as the host of an origin.
fn can_be_sent(name: &str) -> Result<(), String> {
    if name.contains('*') {
        return Err(
            "origins are compared whole, so * matches nothing; list each origin, separated by commas: \
                    https://a.example.org,https://b.example.org"
                .to_owned(),
        );
    }
    match is_host_name(name.strip_suffix('.').unwrap_or(name)) {
        true => Ok(()),
        false => Err(format!(
            "no page has an origin with the host {name:?}; expected one such as https://example.org"
        )),
    }
}

/// Value of the directive `frame-ancestors` of our Content-Security-Policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameAncestors(String);

impl FrameAncestors {
    /// The value of the header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether other sites may frame the page.
    pub fn names_others(&self) -> bool {
        !matches!(self.0.as_str(), "'self'" | "'none'")
    }
}

impl FromStr for FrameAncestors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_source = |c: char| c.is_ascii_graphic() && !matches!(c, ';' | ',' | '"');
        if text.is_empty() {
            return Err("expected 'self', 'none' or origins such as https://grafana.example.org".to_owned());
        }
        if let Some(c) = text.chars().find(|&c| c != ' ' && !is_source(c)) {
            return Err(format!("{c:?} is not allowed; separate sources by spaces"));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_kept_as_browsers_write_it() {
        let origin: AllowedOrigin = "https://Example.org:443/".parse().unwrap();
        assert_eq!(origin.as_str(), "https://example.org");
        assert_eq!("null".parse::<AllowedOrigin>().unwrap().as_str(), "null");
    }

    #[test]
    fn an_origin_with_a_path_is_refused() {
        assert!("https://example.org/x".parse::<AllowedOrigin>().is_err());
        assert!("example.org".parse::<AllowedOrigin>().is_err());
    }

    #[test]
    fn an_origin_that_no_browser_can_send_is_refused_with_what_to_write() {
        for text in ["https://*.x.org", "https://*", "https://a.*.org:8443"] {
            let why = text.parse::<AllowedOrigin>().unwrap_err();
            assert!(why.contains("list each origin"), "{text}: {why}");
        }
        for text in ["https://.x.org", "https://a..x.org", "https://a+b.x.org", "https://bob@x.org"] {
            assert!(text.parse::<AllowedOrigin>().is_err(), "{text}");
        }
        for (text, sent) in [
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("http://[2001:DB8:0::1]:80", "http://[2001:db8::1]"),
        ] {
            assert_eq!(text.parse::<AllowedOrigin>().unwrap().as_str(), sent);
        }
    }

    #[test]
    fn frame_ancestors_cannot_end_the_directive() {
        assert!("'self' https://g.example".parse::<FrameAncestors>().is_ok());
        assert!("'self'; script-src *".parse::<FrameAncestors>().is_err());
        let others = |text: &str| text.parse::<FrameAncestors>().unwrap().names_others();
        assert!(!others("'self'") && !others("'none'") && others("'self' https://g.example"));
    }
}
