//! A standalone KV indexer as the command line names it.

use std::fmt;
use std::str::FromStr;

use url::Url;

use super::http_base::http_base;

/// Base address of an indexer; its path ends in a slash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexerUrl(pub(crate) Url);

impl IndexerUrl {
    /// Why these cannot be read together: one is given twice.
    pub(crate) fn conflict(all: &[Self]) -> Option<String> {
        let twice = all.iter().enumerate().find(|(at, one)| all[..*at].contains(one));
        twice.map(|(_, one)| format!("--indexer: {one} is given twice"))
    }
}

impl fmt::Display for IndexerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for IndexerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        http_base(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_and_the_slash_may_be_left_out() {
        let table = [
            ("indexer:8090", "http://indexer:8090"),
            ("http://indexer:8090/", "http://indexer:8090"),
            ("https://gateway/indexer?x=1", "https://gateway/indexer"),
        ];
        for (text, shown) in table {
            let url: IndexerUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(url.0.join("dump").unwrap().as_str(), format!("{shown}/dump"));
        }
        for text in ["ftp://a", "http://", "http://user:secret@a"] {
            let why = text.parse::<IndexerUrl>().unwrap_err();
            assert!(!why.contains("secret"), "{why}");
        }
        let both = ["a:1", "http://a:1/"].map(|text| text.parse().unwrap());
        assert_eq!(IndexerUrl::conflict(&both).as_deref(), Some("--indexer: http://a:1 is given twice"));
        assert_eq!(IndexerUrl::conflict(&both[..1]), None);
    }
}
