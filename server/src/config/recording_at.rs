//! Where recordings are: files and folders, or objects in a bucket. Knows no network.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What is written or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordingAt {
    /// A file or a folder.
    Path(PathBuf),
    /// Objects.
    Store(StoreAt),
}

impl FromStr for RecordingAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some((scheme, rest)) => StoreAt::of(scheme, rest).map(Self::Store),
            None if text.is_empty() => {
                Err("expected a path or an address such as s3://BUCKET/PREFIX".to_owned())
            }
            None => Ok(Self::Path(text.into())),
        }
    }
}

impl fmt::Display for RecordingAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Store(at) => at.fmt(f),
        }
    }
}

/// A kind of object storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// Amazon S3, and what speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage.
    Azure,
}

impl StoreKind {
    /// The scheme of its addresses.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }
}

/// An object, or a prefix of objects, in a bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreAt {
    /// The store.
    pub kind: StoreKind,
    /// The bucket; Azure calls it container.
    pub bucket: String,
    /// The object's name or what the names begin with, without a slash at either end; empty: all of the bucket.
    pub prefix: String,
}

impl StoreAt {
    fn of(scheme: &str, rest: &str) -> Result<Self, String> {
        let kinds = [StoreKind::S3, StoreKind::Google, StoreKind::Azure];
        let kind = kinds.into_iter().find(|kind| kind.scheme() == scheme);
        let kind = kind.ok_or("expected a path, or an address that begins with s3://, gs:// or az://")?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        // Logins and ports are no part of such an address: they come from the environment.
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if bucket.is_empty() || !bucket.chars().all(is_name) {
            return Err(format!(
                "expected {scheme}://BUCKET/PREFIX; endpoint and credentials are set by environment variables"
            ));
        }
        let prefix = prefix.trim_matches('/');
        let is_part =
            |part: &str| !matches!(part, "" | "." | "..") && !part.contains(|c: char| c.is_ascii_control());
        if !prefix.is_empty() && !prefix.split('/').all(is_part) {
            return Err("expected a prefix without empty parts, such as dynamo/cluster=a".to_owned());
        }
        Ok(Self { kind, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bucket, prefix } = self;
        let slash = if prefix.is_empty() { "" } else { "/" };
        write!(f, "{}://{bucket}{slash}{prefix}", kind.scheme())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        let read = |text: &str| text.parse::<RecordingAt>().map(|at| at.to_string());
        assert_eq!(read("s3://bucket/dynamo/cluster=a/"), Ok("s3://bucket/dynamo/cluster=a".to_owned()));
        assert_eq!(read("gs://b.c_d"), Ok("gs://b.c_d".to_owned()));
        assert!(matches!("az://c/x".parse(), Ok(RecordingAt::Store(at)) if at.kind == StoreKind::Azure));
        assert_eq!("./s3:/x".parse(), Ok(RecordingAt::Path("./s3:/x".into())));
        for wrong in [
            "",
            "s3://",
            "s3:///x",
            "s3://key:secret@bucket/x",
            "http://bucket/x",
            "s3://b/a//c",
            "s3://b/../c",
            "s3://b/./c",
            "s3://b/a\nc",
        ] {
            let error = read(wrong).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
