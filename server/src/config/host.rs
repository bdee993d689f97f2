//! A name under which browsers may reach us. Pure text.

use std::str::FromStr;

/// `radixscope.example.org`, or `*.example.org` for every name below it; of any port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowedHost {
    /// In small letters, without a dot at its end.
    name: String,
    /// Whether names below it are meant and not the name itself.
    is_domain: bool,
}

impl AllowedHost {
    /// Whether `host`, without a port, is this name, in any case.
    pub fn is(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        match self.is_domain {
            false => host == self.name,
            true => {
                host.strip_suffix(&self.name).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
        }
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, is_domain) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_v6 = |name: &str| name.starts_with('[') && name.ends_with(']') && !is_domain;
        let name = name.trim_end_matches('.');
        if name.is_empty() || !(name.chars().all(is_plain) || is_v6(name)) {
            return Err("expected a name without scheme, port and path, such as radixscope.example.org or \
                        *.example.org"
                .to_owned());
        }
        Ok(Self { name: name.to_ascii_lowercase(), is_domain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_matched_whole_and_in_any_case() {
        let host: AllowedHost = "Radix.Example.org".parse().unwrap();
        assert!(host.is("radix.example.ORG"));
        assert!(!host.is("a.radix.example.org") && !host.is("radix.example.org.evil.example"));
    }

    #[test]
    fn a_star_stands_for_every_name_below_and_not_for_the_name() {
        let host: AllowedHost = "*.example.org".parse().unwrap();
        assert!(host.is("a.example.org") && host.is("a.b.example.org"));
        assert!(!host.is("example.org") && !host.is(".example.org") && !host.is("evilexample.org"));
    }

    #[test]
    fn what_is_more_than_a_name_is_refused() {
        for bad in
            ["", "*", "*.", "https://example.org", "example.org:80", "example.org/x", "a b", "a*.example.org"]
        {
            assert!(bad.parse::<AllowedHost>().is_err(), "{bad}");
        }
    }
}
