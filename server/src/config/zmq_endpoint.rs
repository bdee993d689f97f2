//! Address of a ZeroMQ socket, as in discovery and on the command line: `tcp://HOST:PORT`.

use std::fmt;
use std::str::FromStr;

use url::{Host, Url};

/// An address to connect to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ZmqEndpoint {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl FromStr for ZmqEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected tcp://HOST:PORT";
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
        if scheme != "tcp" {
            return Err(format!("ZeroMQ over {scheme} is not supported; only tcp"));
        }
        // Parsed with a scheme for which `Url` checks brackets and empty names.
        let url = Url::parse(&format!("http://{rest}")).map_err(|error| format!("{error}; {expected}"))?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        let host = match url.host() {
            // `*` is an address to bind, not to connect to.
            Some(Host::Domain("*")) => return Err(expected.to_owned()),
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(expected.to_owned()),
        };
        // `Url` omits port 80, the default of the scheme.
        match rest.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse().ok()) {
            Some(port) if is_bare && port > 0 => Ok(Self { host, port }),
            _ => Err(expected.to_owned()),
        }
    }
}

impl fmt::Display for ZmqEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "tcp://[{host}]:{port}") } else { write!(f, "tcp://{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_people_and_discovery_write_them() {
        let read = |text: &str| text.parse::<ZmqEndpoint>().map(|endpoint| endpoint.to_string());
        for text in ["tcp://10.0.0.7:5556", "tcp://broker.dynamo.svc:80", "tcp://[fd00::1]:5556"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert_eq!(read(" broker:5556 ").as_deref(), Ok("tcp://broker:5556"));
        assert!(read("ipc:///tmp/x").unwrap_err().contains("only tcp"));
        for wrong in [
            "",
            "tcp://",
            "tcp://host",
            "tcp://host:0",
            "tcp://host:70000",
            "tcp://host:1/path",
            "tcp://*:5556",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
