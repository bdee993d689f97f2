//! Bodies in the forms that browsers take. A crate of its own because the compressor is generic: its code is made where it is
//! called, and only a crate is optimised in a debug build and in what a build runs.
#![forbid(unsafe_code)]

use std::io::Write as _;

const BROTLI_WINDOW: u32 = 22;

/// What compressing may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As quick as it gets: for what is sent once.
    Least,
    /// As small as it gets: for what is compressed once and sent often.
    Most,
}

impl Effort {
    fn brotli_quality(self) -> u32 {
        match self {
            Self::Least => 1,
            Self::Most => 11,
        }
    }

    fn gzip_level(self) -> flate2::Compression {
        match self {
            Self::Least => flate2::Compression::fast(),
            Self::Most => flate2::Compression::best(),
        }
    }
}

/// A file as brotli and as gzip, each only where it is smaller than the file.
pub fn forms(path: &str, plain: &[u8], effort: Effort) -> [Option<Vec<u8>>; 2] {
    let kind = path.rsplit('.').next();
    if kind.is_some_and(|kind| ["png", "jpg", "webp", "woff2"].contains(&kind)) {
        return [None, None]; // Those are compressed already.
    }
    [brotli(plain, effort), gzip(plain, effort)]
        .map(|packed| packed.filter(|packed| packed.len() < plain.len()))
}

/// As brotli.
pub fn brotli(plain: &[u8], effort: Effort) -> Option<Vec<u8>> {
    let mut packed = Vec::new();
    let mut writer =
        brotli::CompressorWriter::new(&mut packed, 64 * 1024, effort.brotli_quality(), BROTLI_WINDOW);
    writer.write_all(plain).ok()?;
    drop(writer);
    Some(packed)
}

/// As gzip.
pub fn gzip(plain: &[u8], effort: Effort) -> Option<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), effort.gzip_level());
    writer.write_all(plain).ok()?;
    writer.finish().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn every_form_holds_the_same_and_is_smaller() {
        let plain = b"a prefix tree ".repeat(1_000);
        for effort in [Effort::Least, Effort::Most] {
            let [brotli, gzip] = forms("tree.txt", &plain, effort).map(Option::unwrap);
            assert!(brotli.len() < plain.len() / 10 && gzip.len() < plain.len() / 10, "{effort:?}");
            let mut unpacked = Vec::new();
            brotli::Decompressor::new(&brotli[..], 4_096).read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, plain);
            unpacked.clear();
            flate2::read::GzDecoder::new(&gzip[..]).read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, plain);
        }
    }

    #[test]
    fn what_gets_no_smaller_is_left_as_it_is() {
        assert_eq!(forms("one.txt", b"a", Effort::Most), [None, None]);
        assert_eq!(
            forms("face.woff2", &[0; 100], Effort::Most),
            [None, None],
            "such a file is compressed already"
        );
    }
}
