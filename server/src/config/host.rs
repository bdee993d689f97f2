//! A host name under which browsers may reach Radixscope. Pure text.

use std::str::FromStr;

use url::Host;

/// `radixscope.example.org`, or `*.example.org` for every name below it; of any port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowedHost {
    /// In small letters, without a dot at its end.
    name: String,
    /// Whether it is a wildcard: matches names below it, but not the name itself.
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
        const EXPECTED: &str = "expected a name without scheme, port and path, such as radixscope.example.org or \
                                *.example.org";
        let name = name.strip_suffix('.').unwrap_or(name);
        // As browsers write it in `Host`: in small letters, other alphabets in Punycode, addresses in their shortest form.
        let name = match Host::parse(name) {
            Ok(Host::Domain(name)) if is_host_name(&name) => name,
            Ok(address @ (Host::Ipv4(_) | Host::Ipv6(_))) if !is_domain => address.to_string(),
            _ => return Err(EXPECTED.to_owned()),
        };
        Ok(Self { name, is_domain })
    }
}

/// Whether `name` is one that a browser can ask for: labels with something in them, of letters, digits, hyphens and
/// underscores.
pub(super) fn is_host_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.split('.').all(|label| !label.is_empty() && label.chars().all(is_plain))
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

    #[test]
    fn what_no_browser_can_ask_for_is_refused_and_the_rest_is_written_as_they_do() {
        for bad in
            [".example.org", "a..example.org", "[zzz]", "*.10.0.0.1", "*.*.example.org", "example.org.."]
        {
            assert!(bad.parse::<AllowedHost>().is_err(), "{bad}");
        }
        for (text, host) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("[2001:DB8:0::1]", "[2001:db8::1]"),
            ("10.0.0.1", "10.0.0.1"),
            ("radix_scope.example.", "radix_scope.example"),
        ] {
            assert!(text.parse::<AllowedHost>().unwrap().is(host), "{text}");
        }
    }
}
