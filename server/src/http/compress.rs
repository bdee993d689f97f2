//! A body in the forms that browsers take. The build script compresses the page with the same functions.

use std::io::Write as _;

const BROTLI_WINDOW: u32 = 22;

/// A file as brotli and as gzip, each only where it is smaller than the file.
#[allow(dead_code, reason = "of a release, only the build script calls it")]
pub(super) fn forms(path: &str, plain: &[u8], brotli_quality: u32) -> [Option<Vec<u8>>; 2] {
    let kind = path.rsplit('.').next();
    if kind.is_some_and(|kind| ["png", "jpg", "webp", "woff2"].contains(&kind)) {
        return [None, None]; // Those are compressed already.
    }
    [brotli(plain, brotli_quality), gzip(plain, flate2::Compression::default())]
        .map(|packed| packed.filter(|packed| packed.len() < plain.len()))
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
