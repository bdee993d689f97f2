//! The path below which a proxy serves Radixscope. Pure text: knows neither requests nor files.

use std::fmt;
use std::str::FromStr;

/// A path prefix without a slash at its end: "" for the root, "/tools/radixscope" otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BasePath(String);

/// The prefix is written into the page, so only these characters are allowed, to prevent injection.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '~' | '-')
}

impl BasePath {
    /// The prefix, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `path` without the prefix. If it does not start with the prefix, it is returned unchanged, because proxies may strip it.
    pub fn cut<'p>(&self, path: &'p str) -> &'p str {
        match path.strip_prefix(self.0.as_str()) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            _ => path,
        }
    }
}

impl FromStr for BasePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') || text.starts_with("//") {
            return Err("expected a path that begins with one slash, such as /radixscope/".to_owned());
        }
        if let Some(c) = text.chars().find(|&c| !is_plain(c)) {
            return Err(format!("{c:?} is not allowed; expected letters, digits and / . _ ~ -"));
        }
        if text.split('/').any(|part| part == "..") {
            return Err("it must not contain ..".to_owned());
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_kept_without_its_last_slash() {
        let base: BasePath = "/a/b/".parse().unwrap();
        assert_eq!((base.as_str(), base.to_string().as_str()), ("/a/b", "/a/b/"));
        assert_eq!("/".parse::<BasePath>().unwrap().as_str(), "");
    }

    #[test]
    fn the_prefix_is_cut_and_a_stripped_path_stays() {
        let base: BasePath = "/x/".parse().unwrap();
        for (path, cut) in [("/x", "/"), ("/x/", "/"), ("/x/ws", "/ws"), ("/ws", "/ws"), ("/xy", "/xy")] {
            assert_eq!(base.cut(path), cut, "{path}");
        }
    }

    #[test]
    fn what_could_be_injected_into_a_page_is_refused() {
        for bad in ["", "x", "//evil.example", "/a\"b", "/a b", "/<", "/a/../b", "/a?b"] {
            assert!(bad.parse::<BasePath>().is_err(), "{bad}");
        }
    }
}
