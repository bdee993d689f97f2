//! Address of Dynamo's discovery, as on the command line: `etcd://HOST:PORT`, `kubernetes` or `file:FOLDER`.

use std::path::PathBuf;
use std::str::FromStr;

use url::Url;

use super::{KubernetesAt, Secret};

/// Default port of etcd.
const ETCD_PORT: u16 = 2379;

/// Address of discovery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiscoveryAt {
    /// In etcd.
    Etcd(EtcdServers),
    /// In a folder: Dynamo's `DYN_FILE_KV`.
    Files(PathBuf),
    /// In custom resources of Kubernetes.
    Kubernetes(KubernetesAt),
}

/// Servers of one etcd cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdServers {
    /// As `http://HOST:PORT/` or `https://HOST:PORT/`, at least one, without a login.
    pub servers: Vec<Url>,
    /// User and password, if the address names them.
    pub login: Option<(String, Secret)>,
}

impl FromStr for DiscoveryAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(folder) = text.strip_prefix("file:") {
            // `file:///a/b` and `file:/a/b` are the same folder.
            let folder = folder.strip_prefix("//").unwrap_or(folder);
            return match folder.is_empty() {
                true => Err("no folder; expected file:/path/of/DYN_FILE_KV".to_owned()),
                false => Ok(Self::Files(folder.into())),
            };
        }
        if let Some(at) = text.strip_prefix("kubernetes") {
            return at.parse().map(Self::Kubernetes);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err("expected etcd://host:2379, kubernetes or file:/path/of/DYN_FILE_KV".to_owned());
        };
        let http = match scheme {
            "etcd" | "http" => "http",
            "etcds" | "https" => "https",
            _ => {
                let expected = "unknown scheme; expected etcd://host:2379, etcds://host:2379 (TLS), kubernetes or file:/path";
                return Err(expected.to_owned());
            }
        };
        let (login, hosts) = match rest.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, rest),
        };
        // In ETCD_ENDPOINTS each address has its own scheme.
        let server = |host: &str| server(http, host.rsplit_once("://").map_or(host, |(_, host)| host));
        let servers: Vec<Url> =
            hosts.split(',').filter(|host| !host.is_empty()).map(server).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err("no host; expected etcd://host:2379".to_owned());
        }
        let login = login.map(self::login).transpose()?;
        Ok(Self::Etcd(EtcdServers { servers, login }))
    }
}

fn server(scheme: &str, host: &str) -> Result<Url, String> {
    let mut url = Url::parse(&format!("{scheme}://{host}"))
        .map_err(|error| format!("{host:?} is not an address: {error}"))?;
    let is_plain = matches!(url.path(), "" | "/") && url.query().is_none() && url.host_str().is_some();
    if !is_plain {
        return Err(format!("{host:?}: expected a host and a port"));
    }
    // The default port is etcd's, not HTTP's.
    let has_port =
        host.rsplit_once(':').is_some_and(|(_, port)| port.trim_end_matches('/').parse::<u16>().is_ok());
    if !has_port {
        url.set_port(Some(ETCD_PORT)).map_err(|()| format!("{host:?} cannot have a port"))?;
    }
    Ok(url)
}

fn login(text: &str) -> Result<(String, Secret), String> {
    let plain = |text: &str| {
        percent_encoding::percent_decode_str(text).decode_utf8().map(|text| text.into_owned()).ok()
    };
    text.split_once(':')
        .and_then(|(user, password)| Some((plain(user)?, plain(password)?.into())))
        .ok_or_else(|| "expected user:password before the @".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Vec<String> {
        match text.parse() {
            Ok(DiscoveryAt::Etcd(EtcdServers { servers, .. })) => {
                servers.iter().map(Url::to_string).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn servers_of_etcd_have_its_port_unless_they_name_another() {
        assert_eq!(servers("etcd://a"), ["http://a:2379/"]);
        assert_eq!(servers("etcd://a:80,b:2400"), ["http://a/", "http://b:2400/"]);
        assert_eq!(servers("etcds://[::1]"), ["https://[::1]:2379/"]);
        assert_eq!(servers("http://a:2379,http://b:2379"), ["http://a:2379/", "http://b:2379/"]);
    }

    #[test]
    fn a_login_is_kept_and_never_shown() {
        let at: DiscoveryAt = "etcd://us%40er:p%3Aw@a".parse().unwrap();
        assert!(!format!("{at:?}").contains("p:w"));
        let DiscoveryAt::Etcd(EtcdServers { login: Some((user, password)), .. }) = at else { panic!() };
        assert_eq!((&*user, password.reveal()), ("us@er", "p:w"));
    }

    #[test]
    fn a_folder_is_named_with_or_without_slashes() {
        for (text, folder) in [
            ("file:/tmp/kv", "/tmp/kv"),
            ("file:///tmp/kv", "/tmp/kv"),
            ("file:kv", "kv"),
            ("file://kv", "kv"),
        ] {
            assert_eq!(text.parse(), Ok(DiscoveryAt::Files(folder.into())), "{text}");
        }
    }

    #[test]
    fn what_is_no_discovery_is_refused_with_a_reason() {
        for (text, word) in [
            ("a:2379", "etcd://"),
            ("etcd://", "no host"),
            ("etcd://user@a", "user:password"),
            ("etcd://a/v3", "a host and a port"),
            ("consul://a", "scheme"),
            ("file:", "no folder"),
        ] {
            let error = text.parse::<DiscoveryAt>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
