//! Who may read what we serve, and over what.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use ipnet::IpNet;

use super::{InvalidOption, Secret};

/// Tokens shorter than this can be guessed.
const SAFE_TOKEN_CHARS: usize = 16;
/// Largest file that a token is read from.
const MAX_TOKEN_BYTES: usize = 4096;

/// Who may read. Without a token or a proxy everybody who reaches the address may.
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
        value_parser = header_name,
        requires = "trusted_proxy"
    )]
    pub trusted_proxy_header: Option<String>,
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
    /// The token, from wherever it is given.
    ///
    /// # Errors
    /// The file cannot be read, or the token is empty or none that a header can hold.
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
        if token.len() < SAFE_TOKEN_CHARS {
            tracing::warn!("{option}: a token of fewer than {SAFE_TOKEN_CHARS} characters can be guessed");
        }
        Ok(Some(Secret::from(token)))
    }

    /// Whether readers have to show anything.
    pub fn is_limited(&self) -> bool {
        self.access_token.is_some() || self.access_token_file.is_some() || self.trusted_proxy_header.is_some()
    }
}

fn header_name(text: &str) -> Result<String, String> {
    match axum::http::HeaderName::from_str(text) {
        Ok(name) => Ok(name.as_str().to_owned()),
        Err(_) => Err("expected the name of a header, such as X-Forwarded-User".to_owned()),
    }
}

/// A network, or one address.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let one = text.parse::<std::net::IpAddr>().ok().map(IpNet::from);
    one.or_else(|| text.parse().ok())
        .ok_or_else(|| "expected a network such as 10.1.0.0/16, or an address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_is_a_network_of_one() {
        assert!(network("10.1.2.3").unwrap().contains(&"10.1.2.3".parse::<std::net::IpAddr>().unwrap()));
        assert!(!network("10.1.2.3").unwrap().contains(&"10.1.2.4".parse::<std::net::IpAddr>().unwrap()));
        assert!(network("10.1.0.0/33").is_err() && network("proxy").is_err());
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
