//! A process's metrics as the command line names them: `URL` or `NAME=URL`.

use std::str::FromStr;

use url::Url;

/// Path if the address has none.
const USUAL_PATH: &str = "/metrics";

/// A process to scrape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricsUrl {
    /// Its name.
    pub name: String,
    /// URL of its metrics.
    pub url: Url,
}

impl MetricsUrl {
    /// Why these processes cannot be scraped together: a name is used twice.
    pub fn conflict(all: &[Self]) -> Option<String> {
        let twice =
            all.iter().enumerate().find(|(i, one)| all[..*i].iter().any(|other| other.name == one.name));
        twice.map(|(_, one)| {
            let name = &one.name;
            format!("--prometheus: two processes are named {name:?}; name them: a=URL b=URL")
        })
    }
}

/// The URL as it may be shown: the query may contain a token.
pub(crate) fn without_query(url: &Url) -> Url {
    let mut shown = url.clone();
    shown.set_query(None);
    shown
}

impl FromStr for MetricsUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            !name.is_empty() && name.chars().all(is_plain)
        };
        let (name, address) = match text.split_once('=').filter(|(name, _)| is_name(name)) {
            Some((name, address)) => (Some(name.to_owned()), address),
            None => (None, text),
        };
        let address = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let mut url = Url::parse(&address).map_err(|error| format!("not a URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("unknown scheme; expected http://host:8000 or https://host:8000".to_owned());
        }
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err("no host; expected http://host:8000".to_owned());
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("logins in the URL are not supported; set a token with --prometheus-token".to_owned());
        }
        let usual_name = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        if url.path() == "/" {
            url.set_path(USUAL_PATH);
        }
        url.set_fragment(None);
        Ok(Self { name: name.unwrap_or(usual_name), url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_named_by_its_address_unless_it_is_given_a_name() {
        for (text, name, url) in [
            ("frontend:8000", "frontend:8000", "http://frontend:8000/metrics"),
            ("fe=http://frontend:8000", "fe", "http://frontend:8000/metrics"),
            ("https://a.example/x/metrics?y=z", "a.example:443", "https://a.example/x/metrics?y=z"),
            ("w-0=[::1]:9100", "w-0", "http://[::1]:9100/metrics"),
        ] {
            let read: MetricsUrl = text.parse().unwrap();
            assert_eq!((read.name.as_str(), read.url.as_str()), (name, url), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_scraped_is_refused_with_a_reason() {
        for (text, word) in [
            ("nats://a:4222", "scheme"),
            ("http://user:secret@a:8000", "--prometheus-token"),
            ("fe=", "not a URL"),
            ("a b", "not a URL"),
        ] {
            let error = text.parse::<MetricsUrl>().unwrap_err();
            assert!(error.contains(word) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn processes_that_cannot_be_distinguished_are_refused() {
        let conflict = |texts: &[&str]| {
            let all: Vec<MetricsUrl> = texts.iter().map(|text| text.parse().unwrap()).collect();
            MetricsUrl::conflict(&all)
        };
        assert_eq!(conflict(&["a:1", "a:2", "b=a:1"]), None);
        assert!(conflict(&["a=x:1", "a=x:2"]).unwrap().contains("\"a\""));
    }
}
