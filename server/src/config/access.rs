//! Options for access control and TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::HeaderName;
use clap::Args;
use ipnet::{IpNet, Ipv4Net};

use super::proxy_header::proxy_header;
use super::{InvalidOption, Secret};

/// Tokens shorter than this can be guessed: 16 random letters and digits are 95 bits.
const SAFE_TOKEN_CHARS: usize = 16;
/// Tokens with fewer different characters are most likely typed by hand: of 16 random hexadecimal digits, one in 10,000 has
/// fewer.
const SAFE_TOKEN_DIFFERENT: usize = 6;
/// Leading bits of an IPv6 address that all IPv4-mapped addresses share.
const MAPPED_BITS: u8 = 96;
/// Largest file that a token is read from.
const MAX_TOKEN_BYTES: usize = 4096;

/// Who may read. Without a token or a proxy, everyone who reaches the address.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Who may read")]
pub struct Access {
    /// Token that readers need: once in the address, as ?token=…, then the browser keeps a cookie; or as a bearer token. Prefer
    /// the variable, as other users can read command lines [default: none]
    #[arg(
        long,
        env = "RADIXSCOPE_ACCESS_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        conflicts_with = "access_token_file"
    )]
    pub access_token: Option<Secret>,
    /// File with that token
    #[arg(long, env = "RADIXSCOPE_ACCESS_TOKEN_FILE", value_name = "FILE")]
    pub access_token_file: Option<PathBuf>,
    /// Header in which a proxy, such as oauth2-proxy, names the logged-in user; requests with this header from a
    /// --trusted-proxy may read
    #[arg(
        long,
        env = "RADIXSCOPE_TRUSTED_PROXY_HEADER",
        value_name = "NAME",
        value_parser = proxy_header,
        requires = "trusted_proxy"
    )]
    pub trusted_proxy_header: Option<HeaderName>,
    /// Addresses of those proxies, as networks such as 10.1.0.0/16; the header of other clients is ignored
    #[arg(
        long,
        env = "RADIXSCOPE_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        value_parser = network,
        requires = "trusted_proxy_header"
    )]
    pub trusted_proxy: Vec<IpNet>,
    /// Certificate chain for HTTPS, as a PEM file, the server's own certificate first; read again when it changes
    #[arg(long, env = "RADIXSCOPE_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, as a PEM file
    #[arg(long, env = "RADIXSCOPE_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

impl Access {
    /// The token, from the option or the file.
    ///
    /// # Errors
    /// The file cannot be read, or the token is empty or not a valid header value.
    pub fn token(&self) -> Result<Option<Secret>, InvalidOption> {
        let (option, token) = match (&self.access_token, &self.access_token_file) {
            (Some(token), _) => ("--access-token".to_owned(), token.reveal().trim().to_owned()),
            (None, Some(path)) => {
                let option = format!("--access-token-file {}", path.display());
                let text =
                    std::fs::read_to_string(path).map_err(|error| InvalidOption::new(&option, error))?;
                (option, text.trim().to_owned())
            }
            (None, None) => return Ok(None),
        };
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
            let why = format!("expected a token of 1 to {MAX_TOKEN_BYTES} characters");
            return Err(InvalidOption::new(option, why));
        }
        if !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(InvalidOption::new(option, "expected printable ASCII characters without spaces"));
        }
        Ok(Some(Secret::from(token)))
    }

    /// Whether access is limited.
    pub fn is_limited(&self) -> bool {
        self.access_token.is_some() || self.access_token_file.is_some() || self.trusted_proxy_header.is_some()
    }
}

/// Whether the token can be found by guessing.
pub(crate) fn is_guessable(token: &Secret) -> bool {
    let mut different: Vec<u8> = token.reveal().bytes().collect();
    let len = different.len();
    different.sort_unstable();
    different.dedup();
    len < SAFE_TOKEN_CHARS || different.len() < SAFE_TOKEN_DIFFERENT
}

/// A network, or one address. Clients are identified by their IPv4 address if they have one, so an IPv4-mapped network is read
/// as the IPv4 network.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let one = text.parse::<IpAddr>().ok().map(IpNet::from);
    let network = one.or_else(|| text.parse().ok());
    let network =
        network.ok_or_else(|| "expected a network such as 10.1.0.0/16, or an address".to_owned())?;
    let network = unmapped(network)?;
    if network.addr().is_unspecified() && network.prefix_len() == network.max_prefix_len() {
        return Err(format!(
            "{text} is not the address of any proxy; expected its network or address, such as 10.1.0.0/16"
        ));
    }
    Ok(network)
}

/// An IPv4-mapped network as the IPv4 network; others as they are.
fn unmapped(network: IpNet) -> Result<IpNet, String> {
    let IpNet::V6(v6) = network else { return Ok(network) };
    let Some(address) = v6.addr().to_ipv4_mapped() else { return Ok(network) };
    let bits = v6.prefix_len().checked_sub(MAPPED_BITS);
    match bits.map(|bits| Ipv4Net::new(address, bits)) {
        Some(Ok(v4)) => Ok(v4.into()),
        _ => Err(format!(
            "{v6} is wider than the IPv4-mapped addresses, which need /{MAPPED_BITS} or more; write the IPv4 network, such as \
             10.1.0.0/16"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_is_a_network_of_one() {
        assert!(network("10.1.2.3").unwrap().contains(&"10.1.2.3".parse::<IpAddr>().unwrap()));
        assert!(!network("10.1.2.3").unwrap().contains(&"10.1.2.4".parse::<IpAddr>().unwrap()));
        assert!(network("10.1.0.0/33").is_err() && network("proxy").is_err());
    }

    #[test]
    fn an_ipv4_mapped_network_is_the_ipv4_network() {
        for (text, network) in [
            ("::ffff:10.1.2.3", "10.1.2.3/32"),
            ("::ffff:10.1.2.3/128", "10.1.2.3/32"),
            ("::ffff:10.1.0.0/112", "10.1.0.0/16"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(super::network(text).unwrap().to_string(), network, "{text}");
        }
        assert!(network("::ffff:10.1.0.0/64").unwrap_err().contains("write the IPv4 network"));
    }

    #[test]
    fn an_address_that_no_proxy_can_have_is_refused() {
        for text in ["0.0.0.0", "::", "0.0.0.0/32", "::ffff:0.0.0.0"] {
            assert!(network(text).unwrap_err().contains("not the address of any proxy"), "{text}");
        }
    }

    #[test]
    fn a_token_that_is_short_or_has_few_different_characters_can_be_guessed() {
        for token in ["x", "secret", "123456789012345", "aaaaaaaaaaaaaaaaaaaaaaaa", "abcabcabcabcabcabcabc"] {
            assert!(is_guessable(&Secret::from(token.to_owned())), "{token}");
        }
        for token in ["0123456789abcdef", "k7PnnL2t-a.token.for.tests"] {
            assert!(!is_guessable(&Secret::from(token.to_owned())), "{token}");
        }
    }

    #[test]
    fn a_token_may_stand_in_a_file_with_a_line_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abcdefghijklmnopq\n").unwrap();
        let access = Access { access_token_file: Some(file.path().to_owned()), ..Access::default() };
        assert_eq!(access.token().unwrap().unwrap().reveal(), "abcdefghijklmnopq");
        std::fs::write(file.path(), " \n").unwrap();
        assert!(access.token().is_err());
    }
}
