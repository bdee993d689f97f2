//! Checks the `Host` header against DNS rebinding: a foreign page can point its own name at this server's address, and the
//! browser then treats this server as that page's.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;

use super::Front;
use super::error::{ApiError, code};
use super::listen::Peer;
use crate::config::AllowedHost;

/// Maximum characters of a name in an error.
const SHOWN_CHARS: usize = 120;

/// The server's host names.
#[derive(Clone, Debug)]
pub(super) struct OwnNames {
    /// Whether the server listens on all addresses: then any address is accepted, because of NAT.
    is_everywhere: bool,
    allowed: Vec<AllowedHost>,
}

impl OwnNames {
    pub(super) fn new(listen: IpAddr, allowed: Vec<AllowedHost>) -> Self {
        Self { is_everywhere: listen.is_unspecified(), allowed }
    }

    /// Whether `authority` is this server on the address `local`, on any port, because of tunnels.
    fn are(&self, authority: &Authority, local: Option<IpAddr>) -> bool {
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            let address = address.to_canonical();
            // Addresses cannot be rebound.
            if address.is_loopback()
                || self.is_everywhere
                || local.is_some_and(|l| l.to_canonical() == address)
            {
                return true;
            }
        }
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        name == "localhost"
            || name.ends_with(".localhost")
            || self.allowed.iter().any(|allowed| allowed.is(&name))
    }
}

/// Rejects requests for foreign names, before anything else.
pub(super) async fn check(
    State(front): State<Front>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let local = request.extensions().get::<Peer>().map(|peer| peer.local);
    let asked = of(request.headers())?;
    let foreign = [Some(&asked), request.uri().authority()]
        .into_iter()
        .flatten()
        .find(|authority| !front.own_names.are(authority, local));
    if let Some(foreign) = foreign {
        let name: String = foreign.host().chars().take(SHOWN_CHARS).collect();
        let message = format!(
            "{name:?} is not a name of this server; to allow it, start the server with --allow-host {name}"
        );
        return Err(ApiError::new(code::FOREIGN_HOST, message));
    }
    Ok(next.run(request).await)
}

/// The host of a request.
fn of(headers: &HeaderMap) -> Result<Authority, ApiError> {
    let mut all = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (all.next(), all.next()) else {
        let given =
            if headers.contains_key(header::HOST) { "several Host headers" } else { "no Host header" };
        return Err(bad(&format!("the request has {given}; expected one")));
    };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let is_plain = |authority: &Authority| !authority.as_str().contains('@') && !authority.host().is_empty();
    authority
        .filter(is_plain)
        .ok_or_else(|| bad("the Host header cannot be read; expected a name, or name:port"))
}

fn bad(message: &str) -> ApiError {
    ApiError::new(code::BAD_HOST, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(listen: &str, host: &str, local: Option<&str>) -> bool {
        let names = OwnNames::new(listen.parse().unwrap(), vec!["radix.example".parse().unwrap()]);
        names.are(&host.parse().unwrap(), local.map(|local| local.parse().unwrap()))
    }

    #[test]
    fn loopback_and_allowed_names_are_ours_on_any_port() {
        for host in ["localhost", "x.localhost:1", "127.0.0.9:80", "[::1]:8321", "Radix.example.:443"] {
            assert!(is_ours("10.0.0.1", host, None), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.2", "127.0.0.1.evil.example"] {
            assert!(!is_ours("10.0.0.1", host, Some("10.0.0.1")), "{host}");
        }
    }

    #[test]
    fn the_address_that_was_reached_is_ours() {
        assert!(is_ours("10.0.0.1", "10.0.0.1:8321", Some("10.0.0.1")));
        assert!(is_ours("::1", "10.0.0.1:8321", Some("::ffff:10.0.0.1")));
        assert!(is_ours("0.0.0.0", "192.0.2.7:80", Some("10.0.0.1")), "through a translation of addresses");
        assert!(!is_ours("0.0.0.0", "evil.example", Some("10.0.0.1")));
    }
}
