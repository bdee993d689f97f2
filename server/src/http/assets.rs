//! The page's files with caching headers. A release contains them, compressed at build time; builds that are not optimised read
//! them from disk.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::error::{ApiError, code};
use super::{Document, Front, page};
pub(crate) use files::Assets;

#[cfg(page_inside)]
#[path = "assets/inside.rs"]
mod files;
#[cfg(not(page_inside))]
#[path = "assets/on_disk.rs"]
mod files;

/// Digits of the digest that the bundler puts into a file's name (`xtask/bundle`); such a file never changes.
const NAME_DIGEST_LEN: usize = 16;

/// A file in all encodings.
struct Asset {
    plain: Bytes,
    brotli: Option<Bytes>,
    gzip: Option<Bytes>,
    etag: String,
    content_type: HeaderValue,
}

impl Asset {
    /// A file with its encodings; `tag` changes with its content.
    fn new(path: &str, plain: Bytes, [brotli, gzip]: [Option<Bytes>; 2], tag: &str) -> Self {
        let content_type = HeaderValue::from_str(&content_type(path))
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        Self { plain, brotli, gzip, etag: format!("\"{tag}\""), content_type }
    }

    /// The smallest encoding that the client accepts, with its name.
    fn form_for(&self, accepted: &str) -> (&Bytes, Option<&'static str>) {
        match (&self.brotli, &self.gzip) {
            (Some(brotli), _) if accepts(accepted, "br") => (brotli, Some("br")),
            (_, Some(gzip)) if accepts(accepted, "gzip") => (gzip, Some("gzip")),
            _ => (&self.plain, None),
        }
    }
}

fn content_type(path: &str) -> String {
    match path.rsplit('.').next() {
        Some("wasm") => "application/wasm".to_owned(),
        Some("js") => "text/javascript; charset=utf-8".to_owned(),
        Some("css") => "text/css; charset=utf-8".to_owned(),
        _ => mime_guess::from_path(path).first_or_octet_stream().essence_str().to_owned(),
    }
}

/// Whether `Accept-Encoding` names `encoding` without refusing it.
pub(super) fn accepts(accepted: &str, encoding: &str) -> bool {
    accepted.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        is_it
            && !parts.any(|p| p.strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0)))
    })
}

/// Whether the name holds a hash of the content (`app-1a2b…_bg.wasm`), so that it never changes.
fn is_immutable(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_hash = |part: &str| part.len() == NAME_DIGEST_LEN && part.chars().all(|c| c.is_ascii_hexdigit());
    let is_version =
        |part: &str| part.matches('.').count() >= 2 && part.starts_with(|c: char| c.is_ascii_digit());
    name.split(['-', '_', '.']).any(is_hash) || name.split('-').skip(1).any(is_version)
}

/// Whether the client already has this version.
pub(super) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    known.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == etag || tag == "*")
}

/// Serves the page at `/` and files by name: the fallback for all other paths.
pub(super) async fn serve(
    State(front): State<Front>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return super::only_get(&front, &method).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if path.is_empty() || path == "index.html" {
        return index(front.assets.get("index.html").await.as_deref(), &front, &headers);
    }
    match front.assets.get(path).await {
        Some(asset) => file(&asset, path, &headers),
        None => {
            let shown: String = uri.path().chars().take(200).collect();
            ApiError::new(code::NOT_FOUND, format!("{shown} does not exist")).into_response()
        }
    }
}

fn file(asset: &Asset, path: &str, headers: &HeaderMap) -> Response {
    let keep = if is_immutable(path) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (body, encoding) = asset.form_for(accepted);
    // Each encoding has its own ETag.
    let etag = match encoding {
        Some(encoding) => format!("{}-{encoding}\"", asset.etag.trim_end_matches('"')),
        None => asset.etag.clone(),
    };
    // Scripts and style sheets are public, so that sandboxed frames with an opaque origin can load them.
    let common = [
        (header::CACHE_CONTROL, keep),
        (header::VARY, "accept-encoding"),
        (header::ETAG, &etag),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    if is_known(headers, &etag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let mut response = (common, body.clone()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, asset.content_type.clone());
    if let Some(encoding) = encoding {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn index(page: Option<&Asset>, front: &Front, headers: &HeaderMap) -> Response {
    let options = &front.options;
    let (status, page) = match page {
        Some(asset) => (StatusCode::OK, String::from_utf8_lossy(&asset.plain).into_owned()),
        None => (StatusCode::SERVICE_UNAVAILABLE, page::NOT_BUILT.to_owned()),
    };
    let forwarded = headers.get("x-forwarded-prefix").and_then(|value| value.to_str().ok());
    let page = page::with_base(&page, &page::prefix(&options.base_path, forwarded));
    let page = options.notice.map_or_else(|| page.clone(), |notice| page::with_notice(&page, notice));
    let page = options.trace_url.as_ref().map_or_else(|| page.clone(), |of| page::with_trace_url(&page, of));
    let page = match &options.stage {
        Some(controls) => page::with_stage(&page, controls.report().driver),
        None => page,
    };
    let page = if front.document == Document::Fleet { page::of_fleet(&page) } else { page };
    let policy = page::policy(&page, &options.frame_ancestors);
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::VARY, "x-forwarded-prefix"),
        (header::CONTENT_SECURITY_POLICY, &policy),
    ];
    (status, headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use radixscope_compress::{Effort, forms};

    use super::*;

    #[test]
    fn only_names_with_a_hash_or_a_version_are_kept_for_ever() {
        assert!(is_immutable("page-0123456789abcdef_bg.wasm"));
        assert!(is_immutable("style-fedcba9876543210.css"));
        assert!(is_immutable("vendor/echarts-6.0.0.min.js"));
        assert!(!is_immutable("vendor/echarts.min.js"));
        assert!(!is_immutable("worker_bg.wasm") && !is_immutable("worker_loader.js"));
        assert!(!is_immutable("favicon.svg"));
    }

    #[test]
    fn an_encoding_is_used_only_if_it_is_accepted() {
        assert!(accepts("gzip, deflate, br", "br"));
        assert!(accepts("br;q=0.5", "br"));
        assert!(!accepts("gzip, br;q=0", "br"));
        assert!(!accepts("", "gzip"));
    }

    #[test]
    fn a_file_is_sent_in_the_smallest_form_and_once() {
        let text = "prefix tree ".repeat(1_000);
        let packed = forms("app.js", text.as_bytes(), Effort::Least).map(|form| form.map(Bytes::from));
        let asset = Asset::new("app.js", Bytes::from(text.clone()), packed, "7");
        let (body, encoding) = asset.form_for("gzip, br");
        assert_eq!(encoding, Some("br"));
        assert!(body.len() < text.len() / 10);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br"));
        let first = super::file(&asset, "app.js", &headers);
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(super::file(&asset, "app.js", &headers).status(), StatusCode::NOT_MODIFIED);
        headers.remove(header::ACCEPT_ENCODING);
        assert_eq!(super::file(&asset, "app.js", &headers).status(), StatusCode::OK);
    }
}
