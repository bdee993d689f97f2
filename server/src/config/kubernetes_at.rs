//! Address of Kubernetes' API: `kubernetes`, `kubernetes:NAMESPACE` or `kubernetes:NAMESPACE@URL`.

use std::fmt;
use std::str::FromStr;

use url::Url;

/// Address of Kubernetes' API, and the namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KubernetesAt {
    /// `None`: the namespace of the pod.
    pub namespace: Option<String>,
    /// `None`: the API of the pod's cluster.
    pub api: Option<Url>,
}

impl FromStr for KubernetesAt {
    type Err = String;

    /// Reads what follows `kubernetes`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let expected =
            "expected kubernetes, kubernetes:NAMESPACE or kubernetes:NAMESPACE@http://127.0.0.1:8001";
        let rest = text.strip_prefix(':').ok_or(expected)?;
        let (namespace, api) = match rest.split_once('@') {
            Some((namespace, api)) => (namespace, Some(self::api(api)?)),
            None => (rest, None),
        };
        // A label of DNS, as Kubernetes requires; so it needs no escape in an address.
        let is_label = matches!(namespace.len(), 1..=63)
            && namespace.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !is_label {
            return Err(format!("no Kubernetes namespace before the address; {expected}"));
        }
        Ok(Self { namespace: Some(namespace.to_owned()), api })
    }
}

/// An address without credentials, so that it can be shown.
fn api(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the address of Kubernetes' API: {error}"))?;
    let has_login = !url.username().is_empty() || url.password().is_some();
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && !has_login;
    if is_plain { Ok(url) } else { Err("Kubernetes' API: expected http(s)://HOST:PORT".to_owned()) }
}

impl fmt::Display for KubernetesAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kubernetes")?;
        if let Some(namespace) = &self.namespace {
            write!(f, ":{namespace}")?;
        }
        match &self.api {
            Some(api) => write!(f, "@{}", api.as_str().trim_end_matches('/')),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_it_is_read() {
        for text in ["kubernetes", "kubernetes:dynamo-system", "kubernetes:ns@http://127.0.0.1:8001"] {
            let at: KubernetesAt = text.strip_prefix("kubernetes").unwrap().parse().unwrap();
            assert_eq!(at.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_place_is_refused_without_repeating_it() {
        for text in [
            ":",
            "s",
            ":Upper",
            ":a/b",
            ":ns@",
            ":ns@ftp://h",
            ":ns@http://bob:hunter2@h",
            ":ns@https://h/path",
            ":@http://h",
            ":ns@http://hunter2:port",
        ] {
            let error = text.parse::<KubernetesAt>().unwrap_err();
            assert!(!error.contains("hunter2") && error.len() > 20, "{text}: {error}");
        }
    }
}
