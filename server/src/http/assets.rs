//! The app's files: inside the binary, compressed once each, with the headers that let browsers keep them.
//!
//! In a debug build they are read from disk, so that a rebuilt app shows without a rebuilt server.

use std::collections::HashMap;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use rust_embed::{EmbeddedFile, RustEmbed};
use tokio::sync::OnceCell;

use super::error::{ApiError, code};
use super::{App, ServeOptions, page};

/// Names the app that is embedded. The compiler notices where it changes; that files appear in an empty folder it does not.
const _: Option<&str> = option_env!("RADIXSCOPE_APP_DIGEST");

#[derive(RustEmbed)]
#[folder = "../app/dist"]
#[allow_missing = true]
struct Dist;

/// Level of the first form: ready a tenth of a second after the start, so that nobody waits for it.
const QUICK_BROTLI_QUALITY: u32 = 9;
/// Level of the form that takes its place a few seconds later: a tenth smaller at ten times the work.
const SMALL_BROTLI_QUALITY: u32 = 11;
const BROTLI_WINDOW: u32 = 22;
/// Digits that Trunk puts into a file's name, without zeros in front; such a file never changes.
const NAME_HASH_LEN: RangeInclusive<usize> = 12..=16;

/// A file in every form it is sent in.
struct Asset {
    plain: Bytes,
    brotli: Option<Bytes>,
    gzip: Option<Bytes>,
    etag: String,
    content_type: HeaderValue,
}

/// A file's path and the hash of its content.
type Key = (String, [u8; 32]);
/// A file that is being made ready or is.
type Cell = Arc<OnceCell<Arc<Asset>>>;

/// The app's files, each made ready once, and made smaller once when there is time.
pub(super) struct Assets {
    ready: Mutex<HashMap<Key, Cell>>,
}

impl Assets {
    pub(super) fn new() -> Self {
        Self { ready: Mutex::default() }
    }

    /// Compresses everything in the background: quickly first, so that the first viewer need not wait, then once
    /// more and as small as it gets. Not in a debug build, where the files may change at any time.
    pub(super) fn prepare(self: &Arc<Self>) {
        if cfg!(debug_assertions) {
            return;
        }
        let assets = Arc::clone(self);
        tokio::spawn(async move {
            for path in Dist::iter() {
                assets.get(&path).await;
            }
            for path in Dist::iter() {
                assets.shrink(&path).await;
            }
        });
    }

    /// Puts the smallest form of a file in the place of the one made quickly.
    async fn shrink(&self, path: &str) {
        let Some(file) = Dist::get(path) else { return };
        let key = (path.to_owned(), file.metadata.sha256_hash());
        let path = path.to_owned();
        let made = tokio::task::spawn_blocking(move || Asset::of(&path, file, SMALL_BROTLI_QUALITY)).await;
        if let Ok(asset) = made {
            let cell = Arc::new(OnceCell::new_with(Some(Arc::new(asset))));
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(key, cell);
        }
    }

    async fn get(&self, path: &str) -> Option<Arc<Asset>> {
        let file = Dist::get(path)?;
        let key = (path.to_owned(), file.metadata.sha256_hash());
        let cell = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            // In a debug build an older form of the same file is of no more use.
            ready.retain(|(known, hash), _| known != path || *hash == key.1);
            Arc::clone(ready.entry(key).or_default())
        };
        let path = path.to_owned();
        let asset = cell.get_or_try_init(|| async {
            tokio::task::spawn_blocking(move || Arc::new(Asset::of(&path, file, QUICK_BROTLI_QUALITY))).await
        });
        asset.await.ok().cloned()
    }
}

impl Asset {
    fn of(path: &str, file: EmbeddedFile, brotli_quality: u32) -> Self {
        let hash = file.metadata.sha256_hash();
        let plain = match file.data {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
        };
        let content_type = content_type(path);
        let is_text = !content_type.starts_with("image/") || content_type == "image/svg+xml";
        let is_worth_it = is_text && !content_type.starts_with("font/");
        let smaller = |packed: Option<Vec<u8>>| packed.filter(|p| p.len() < plain.len()).map(Bytes::from);
        let (brotli, gzip) = if is_worth_it {
            (smaller(brotli(&plain, brotli_quality)), smaller(gzip(&plain, flate2::Compression::default())))
        } else {
            (None, None)
        };
        Self {
            brotli,
            gzip,
            etag: format!("\"{}\"", URL_SAFE_NO_PAD.encode(&hash[..16])),
            content_type: HeaderValue::from_str(&content_type)
                .unwrap_or(HeaderValue::from_static("application/octet-stream")),
            plain,
        }
    }

    /// The smallest form that the client takes, with the name of its encoding.
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

pub(super) fn brotli(plain: &[u8], quality: u32) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut packed, 64 * 1024, quality, BROTLI_WINDOW);
    writer.write_all(plain).ok()?;
    drop(writer);
    Some(packed)
}

pub(super) fn gzip(plain: &[u8], level: flate2::Compression) -> Option<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
    writer.write_all(plain).ok()?;
    writer.finish().ok()
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
    let is_hash =
        |part: &str| NAME_HASH_LEN.contains(&part.len()) && part.chars().all(|c| c.is_ascii_hexdigit());
    let is_version =
        |part: &str| part.matches('.').count() >= 2 && part.starts_with(|c: char| c.is_ascii_digit());
    name.split(['-', '_', '.']).any(is_hash) || name.split('-').skip(1).any(is_version)
}

/// Whether the client has this very form already.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    known.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == etag || tag == "*")
}

/// Answers every path that is no route: the page at `/`, files by their names.
pub(super) async fn serve(State(app): State<App>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return super::method_not_allowed(method).await.into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if path.is_empty() || path == "index.html" {
        return index(&app.options, &headers);
    }
    match app.assets.get(path).await {
        Some(asset) => file(&asset, path, &headers),
        None => {
            let shown: String = uri.path().chars().take(200).collect();
            ApiError::new(code::NOT_FOUND, format!("there is no {shown} here")).into_response()
        }
    }
}

fn file(asset: &Asset, path: &str, headers: &HeaderMap) -> Response {
    let keep = if is_immutable(path) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let (body, encoding) = asset.form_for(accepted);
    // Each form of a file is its own entity.
    let etag = match encoding {
        Some(encoding) => format!("{}-{encoding}\"", asset.etag.trim_end_matches('"')),
        None => asset.etag.clone(),
    };
    let common = [(header::CACHE_CONTROL, keep), (header::VARY, "accept-encoding"), (header::ETAG, &etag)];
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

fn index(options: &ServeOptions, headers: &HeaderMap) -> Response {
    let (status, page) = match Dist::get("index.html") {
        Some(file) => (StatusCode::OK, String::from_utf8_lossy(&file.data).into_owned()),
        None => (StatusCode::SERVICE_UNAVAILABLE, page::NOT_BUILT.to_owned()),
    };
    let forwarded = headers.get("x-forwarded-prefix").and_then(|value| value.to_str().ok());
    let page = page::with_base(&page, &page::prefix(&options.base_path, forwarded));
    let page = options.notice.map_or_else(|| page.clone(), |notice| page::with_notice(&page, notice));
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
    use super::*;

    #[test]
    fn only_names_with_a_hash_or_a_version_are_kept_for_ever() {
        assert!(is_immutable("page-0123456789abcdef_bg.wasm"));
        assert!(is_immutable("style-fedcba9876543210.css"));
        assert!(is_immutable("vendor/echarts-6.0.0.min.js"));
        assert!(!is_immutable("vendor/echarts.min.js"));
        assert!(is_immutable("bar-23456789abcdef.css"), "a hash that began with zeros");
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
        let file = EmbeddedFile {
            data: text.clone().into_bytes().into(),
            metadata: rust_embed::Metadata::__rust_embed_new([7; 32], None, None),
        };
        let asset = Asset::of("app.js", file, QUICK_BROTLI_QUALITY);
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
