//! Options for querying workers for their blocks.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ipnet::IpNet;

use super::access::network;

/// Queries to workers for their blocks.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Workers' blocks")]
pub struct Trees {
    /// When to query workers for all their cached blocks, over Dynamo's request plane; changes nothing on the worker
    #[arg(long, env = "RADIXSCOPE_TREE_DUMPS", value_enum, value_name = "WHEN", default_value_t = TreeDumps::Auto)]
    pub tree_dumps: TreeDumps,
    /// Address to which workers connect to send their responses; Radixscope listens on the port [default: the address from
    /// which a worker is queried, and a free port]
    #[arg(long, env = "RADIXSCOPE_CALLBACK", value_name = "HOST:PORT")]
    pub callback: Option<CallbackAddress>,
    /// Network to which connections are allowed although workers do not usually have such addresses, for example 127.0.0.0/8 or
    /// 169.254.0.0/16; can be repeated, or separated by commas in the variable [default: loopback addresses, if discovery or
    /// the frontend that names them is on this machine]
    #[arg(long, env = "RADIXSCOPE_ALLOW_TARGET", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub allow_target: Vec<IpNet>,
    /// How often to compare the blocks of a worker in the tree with its own response, such as 30m; 0: never
    #[arg(long, env = "RADIXSCOPE_VERIFY_EVERY", value_name = "DURATION", default_value = "30m", value_parser = verify_every)]
    pub verify_every: Duration,
}

/// When workers are queried for all their blocks.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeDumps {
    /// Workers of Dynamo 1.0 and later whenever some of their blocks are unknown; those of 0.9 on request
    Auto,
    /// Only on POST /api/v1/tree-dumps
    OnRequest,
    /// Never
    Off,
}

impl From<TreeDumps> for radixscope_intake::TreeDumps {
    fn from(when: TreeDumps) -> Self {
        match when {
            TreeDumps::Auto => Self::Auto,
            TreeDumps::OnRequest => Self::OnRequest,
            TreeDumps::Off => Self::Off,
        }
    }
}

/// Address to which workers connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallbackAddress {
    /// Host and port, as sent to workers.
    pub address: String,
    /// The port to listen on.
    pub port: u16,
}

impl FromStr for CallbackAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected HOST:PORT, such as 10.0.0.5:9300".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
        let port: u16 = port.parse().ok().filter(|&port| port != 0).ok_or_else(expected)?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if host.is_empty() || !(is_bracketed || host.chars().all(is_plain)) {
            return Err(expected());
        }
        if matches!(host, "0.0.0.0" | "[::]") {
            return Err(format!("workers cannot connect to {host}; expected an address of this machine"));
        }
        Ok(Self { address: text.to_owned(), port })
    }
}

/// Shortest time between two comparisons.
const LEAST_VERIFY: Duration = Duration::from_secs(10);

fn verify_every(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let every = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if every.is_zero() || every >= LEAST_VERIFY {
        return Ok(every);
    }
    Err(format!("expected 0 or at least {} s", LEAST_VERIFY.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_a_host_and_a_port() {
        let address: CallbackAddress = "radixscope.monitoring:9300".parse().unwrap();
        assert_eq!((address.address.as_str(), address.port), ("radixscope.monitoring:9300", 9300));
        assert_eq!("[fd00::1]:9300".parse::<CallbackAddress>().unwrap().port, 9300);
        for wrong in [
            "",
            "host",
            "host:",
            ":1",
            "host:0",
            "host:70000",
            "fd00::1:9300",
            "a b:1",
            "0.0.0.0:1",
            "[::]:1",
        ] {
            assert!(wrong.parse::<CallbackAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn comparisons_are_rare_or_never() {
        assert_eq!(verify_every("0").unwrap(), Duration::ZERO);
        assert_eq!(verify_every("0s").unwrap(), Duration::ZERO);
        assert_eq!(verify_every("30m").unwrap(), Duration::from_secs(1_800));
        assert!(verify_every("1s").is_err() && verify_every("often").is_err());
    }
}
