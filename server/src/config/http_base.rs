//! The address of an HTTP server under which several paths are requested.

use url::Url;

/// Reads `[http[s]://]HOST[:PORT][/PATH]`; its path ends in a slash.
pub(super) fn http_base(text: &str) -> Result<Url, String> {
    let address = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let mut url = Url::parse(&address).map_err(|error| format!("not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("expected http://HOST:PORT or https://HOST:PORT".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("logins in the URL are not supported".to_owned());
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}
