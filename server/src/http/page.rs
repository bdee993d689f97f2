//! The page as it is served: rewrites its base path, and computes the Content-Security-Policy. Pure text in, text out.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::config::{BasePath, FrameAncestors};
use radixscope_export::TraceUrl;
use radixscope_export::stage::StageDriver;

/// The page of a binary that was built without the app.
pub(super) const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n<title>Radixscope: the app is not built</title>\n\
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:4rem auto;padding:0 1rem}\
</style>\n</head>\n<body>\n<h1>The app is not built</h1>\n\
<p>The server runs and listens, but this build does not contain the page. Build both with</p>\n\
<pre>cargo xtask dist</pre>\n<p>or, to see the simulated cluster at once,</p>\n<pre>cargo xtask demo</pre>\n\
<p>The state is at <a href=\"api/v1/cluster\">api/v1/cluster</a>, the health of the server at \
<a href=\"readyz\">readyz</a> and <a href=\"metrics\">metrics</a>.</p>\n</body>\n</html>\n";

/// The base path: the option, else the proxy's header, if that is a valid path.
pub(super) fn prefix<'a>(own: &'a BasePath, forwarded: Option<&str>) -> Cow<'a, BasePath> {
    if !own.as_str().is_empty() {
        return Cow::Borrowed(own);
    }
    match forwarded.and_then(|text| text.parse().ok()) {
        Some(forwarded) => Cow::Owned(forwarded),
        None => Cow::Borrowed(own),
    }
}

/// The page with `<base href>` set to `prefix`, so that its relative addresses work at any depth.
pub(super) fn with_base(page: &str, prefix: &BasePath) -> String {
    let base = format!("<base href=\"{prefix}\">");
    let tag = page.find("<base ").and_then(|from| page[from..].find('>').map(|len| (from, from + len + 1)));
    if let Some((from, to)) = tag {
        return format!("{}{base}{}", &page[..from], &page[to..]);
    }
    match page.find("<head>") {
        Some(head) => {
            let after = head + "<head>".len();
            format!("{}{base}{}", &page[..after], &page[after..])
        }
        None => page.to_owned(),
    }
}

/// The page with a notice, which it shows at the top. `notice` is trusted text.
pub(super) fn with_notice(page: &str, notice: &str) -> String {
    page.replacen("</head>", &format!("<meta name=\"radixscope-notice\" content=\"{notice}\"></head>"), 1)
}

/// The page of a server whose readers steer what is shown, by this driver.
pub(super) fn with_stage(page: &str, driver: StageDriver) -> String {
    let meta = format!("<meta name=\"radixscope-stage\" content=\"{}\"></head>", driver.as_str());
    page.replacen("</head>", &meta, 1)
}

/// The page as `radixscope fleet` has it: it shows many clusters, and without scripts there are no pictures of one.
pub(super) fn of_fleet(page: &str) -> String {
    let page = page.replacen("</head>", "<meta name=\"radixscope-fleet\" content=\"\"></head>", 1);
    let page = page.replacen("<title>Radixscope</title>", "<title>Radixscope fleet</title>", 1);
    let scriptless = page.find("<noscript>").zip(page.find("</noscript>"));
    match scriptless.filter(|(from, to)| from < to) {
        Some((from, to)) => {
            let (before, after) = (&page[..from], &page[to..]);
            format!(
                "{before}<noscript><p>Radixscope needs JavaScript and WebAssembly, which this browser or frame does not run. The same as \
                 JSON: <a href=\"api/v1/fleet\">api/v1/fleet</a>.</p>{after}"
            )
        }
        None => page,
    }
}

/// The page with the template of links to traces. It contains nothing that ends an attribute but `&`.
pub(super) fn with_trace_url(page: &str, template: &TraceUrl) -> String {
    let template = template.to_string().replace('&', "&amp;");
    page.replacen(
        "</head>",
        &format!("<meta name=\"radixscope-trace-url\" content=\"{template}\"></head>"),
        1,
    )
}

/// The Content-Security-Policy of `page`: own scripts, its inline scripts by hash, WebAssembly.
pub(super) fn policy(page: &str, frame_ancestors: &FrameAncestors) -> String {
    let mut policy = format!("default-src 'self'; script-src 'self'{}", script_hashes(page));
    let _ = write!(
        policy,
        " 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; \
         base-uri 'self'; form-action 'none'; object-src 'none'; frame-ancestors {}",
        frame_ancestors.as_str()
    );
    policy
}

/// Hashes of the inline scripts of `page` as policy sources, each after a space.
pub(super) fn script_hashes(page: &str) -> String {
    inline_scripts(page).fold(String::new(), |mut hashes, script| {
        let hash = STANDARD.encode(Sha256::digest(script.as_bytes()));
        let _ = write!(hashes, " 'sha256-{hash}'");
        hashes
    })
}

/// Bodies of inline scripts.
fn inline_scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|after| {
        let (attributes, rest) = after.split_once('>')?;
        let (body, _) = rest.split_once("</script>")?;
        let is_file = attributes.split_ascii_whitespace().any(|attribute| attribute.starts_with("src="));
        (!is_file).then_some(body)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<html><head><base href=\"./\" /><script type=\"module\">\nimport x\n</script>\
        <script src=\"vendor/echarts.js\"></script></head></html>";

    fn base(text: &str) -> BasePath {
        text.parse().unwrap()
    }

    #[test]
    fn the_page_of_a_fleet_says_so_and_offers_no_pictures_of_one_cluster() {
        let page = "<head><title>Radixscope</title></head><body>a<noscript><img src=\"panel/tree.svg\"></noscript>b</body>";
        let page = of_fleet(page);
        assert!(page.contains("<meta name=\"radixscope-fleet\" content=\"\"></head>"), "{page}");
        assert!(page.contains("<title>Radixscope fleet</title>") && !page.contains("<img"), "{page}");
        assert!(page.contains("a<noscript>") && page.contains("</noscript>b"), "{page}");
        assert_eq!(of_fleet("</noscript><noscript>"), "</noscript><noscript>", "what is no page stays");
    }

    #[test]
    fn the_base_is_rewritten() {
        assert!(with_base(PAGE, &base("/a/b/")).contains("<head><base href=\"/a/b/\"><script"));
        assert!(with_base(PAGE, &base("/")).contains("<base href=\"/\">"));
    }

    #[test]
    fn a_page_without_a_base_gets_one() {
        assert_eq!(with_base("<head><title>", &base("/x")), "<head><base href=\"/x/\"><title>");
    }

    #[test]
    fn a_forwarded_prefix_counts_only_if_it_is_a_path_and_we_have_none() {
        let none = BasePath::default();
        assert_eq!(prefix(&none, Some("/grafana/x")).as_str(), "/grafana/x");
        assert_eq!(prefix(&none, Some("/\"><script>")).as_str(), "");
        assert_eq!(prefix(&none, Some("//evil.example")).as_str(), "");
        assert_eq!(prefix(&base("/own"), Some("/other")).as_str(), "/own");
    }

    #[test]
    fn a_template_of_links_stands_in_the_head_as_it_is() {
        let template = "https://t.example.org/q?id={request_id}&at={time_ms}".parse().unwrap();
        let page = with_trace_url(PAGE, &template);
        let meta = "<meta name=\"radixscope-trace-url\" content=\"https://t.example.org/q?id={request_id}&amp;at={time_ms}\"></head></html>";
        assert!(page.ends_with(meta), "{page}");
    }

    #[test]
    fn a_notice_stands_in_the_head() {
        let page = with_notice(PAGE, "Read this.");
        assert!(
            page.ends_with("<meta name=\"radixscope-notice\" content=\"Read this.\"></head></html>"),
            "{page}"
        );
    }

    #[test]
    fn inline_scripts_are_allowed_by_hash_and_others_by_origin() {
        let policy = policy(PAGE, &"'self'".parse().unwrap());
        let hash = STANDARD.encode(Sha256::digest(b"\nimport x\n"));
        assert!(
            policy.contains(&format!("script-src 'self' 'sha256-{hash}' 'wasm-unsafe-eval';")),
            "{policy}"
        );
        assert!(policy.ends_with("frame-ancestors 'self'"));
        assert_eq!(policy.matches("sha256-").count(), 1);
    }

    #[test]
    fn the_page_for_a_missing_app_says_what_to_do() {
        assert!(NOT_BUILT.contains("cargo xtask"));
    }
}
