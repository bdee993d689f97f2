//! An engine that is listened to without Dynamo, as the command line names it: `[ENGINE=]ADDRESS[,KEY=VALUE]…`.

use std::fmt;
use std::str::FromStr;

use radixscope_model::record::Engine;
use url::Url;

use super::{MetricsUrl, ZmqEndpoint, without_query};

/// Most ranks of an engine.
const MAX_RANKS: u16 = 1_024;
/// Longest name of a pool, in bytes.
const MAX_POOL_BYTES: usize = 64;
/// What is expected, in errors.
const EXPECTED: &str =
    "expected vllm=tcp://HOST:5557[,replay=tcp://HOST:5558][,pool=NAME][,ranks=N] or sglang=http://HOST:PORT";

/// Where an engine is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EngineAddress {
    /// Its publisher's socket; of several ranks that of the first, the others at the ports after it.
    Publisher(ZmqEndpoint),
    /// Where engines connect to this process.
    Here(ZmqEndpoint),
    /// SGLang's HTTP server, which says where it publishes.
    Server(Url),
}

/// An engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineAt {
    /// What it is. `None`: not said.
    pub engine: Option<Engine>,
    /// Where it is.
    pub address: EngineAddress,
    /// Where it sends recent batches again; of several ranks that of the first.
    pub replay: Option<ZmqEndpoint>,
    /// Pool of its workers: engines whose prompts may share blocks.
    pub pool: String,
    /// Its data-parallel ranks, each with sockets of its own.
    pub ranks: u16,
    /// Its own metrics, under its name.
    pub metrics: Option<MetricsUrl>,
}

impl EngineAt {
    /// The address as it is shown.
    pub fn shown(&self) -> String {
        match &self.address {
            EngineAddress::Publisher(at) | EngineAddress::Here(at) => at.to_string(),
            EngineAddress::Server(url) => {
                let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
                format!("{}://{host}:{}", url.scheme(), port.unwrap_or_default())
            }
        }
    }

    /// Why these engines cannot be listened to together: an address is given twice.
    pub fn conflict(all: &[Self]) -> Option<String> {
        let mut sockets: Vec<(String, u16)> = Vec::new();
        for engine in all {
            let (EngineAddress::Publisher(at) | EngineAddress::Here(at)) = &engine.address else {
                sockets.push((engine.shown(), 0));
                continue;
            };
            sockets.extend((0..engine.ranks).map(|rank| (at.host.clone(), at.port.saturating_add(rank))));
        }
        let twice = sockets.iter().enumerate().find(|(at, one)| sockets[..*at].contains(one));
        twice.map(|(_, (host, port))| match port {
            0 => format!("--engine-events: {host} is given twice"),
            port => {
                format!("--engine-events: port {port} of {host} is given twice; each rank has one of its own")
            }
        })
    }
}

/// As it is written on the command line.
impl fmt::Display for EngineAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(engine) = self.engine {
            write!(f, "{}=", engine.as_str())?;
        }
        match &self.address {
            EngineAddress::Publisher(at) | EngineAddress::Here(at) => write!(f, "{at}")?,
            EngineAddress::Server(url) => write!(f, "{}", url.as_str().trim_end_matches('/'))?,
        }
        if let EngineAddress::Here(_) = self.address {
            f.write_str(",bind=true")?;
        }
        if let Some(replay) = &self.replay {
            write!(f, ",replay={replay}")?;
        }
        if self.ranks > 1 {
            write!(f, ",ranks={}", self.ranks)?;
        }
        if self.pool != default_pool(self.engine) {
            write!(f, ",pool={}", self.pool)?;
        }
        if let Some(metrics) = &self.metrics {
            write!(f, ",metrics={}", without_query(&metrics.url))?;
        }
        Ok(())
    }
}

/// Pool of engines that are in none by name.
fn default_pool(engine: Option<Engine>) -> &'static str {
    engine.map_or("engine", Engine::as_str)
}

impl FromStr for EngineAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        // A scheme has no `=`, and what follows it may.
        let named = first.split_once('=').filter(|(name, _)| !name.contains("://"));
        let (engine, address) = match named {
            Some((name, address)) => (engine_named(name)?, address),
            None => (None, first),
        };
        let (mut replay, mut pool, mut ranks, mut is_here, mut metrics) = (None, None, 1, false, None);
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| format!("{part:?} has no value; {EXPECTED}"))?;
            match key {
                "replay" => replay = Some(value),
                "pool" => pool = Some(pool_named(value)?),
                "ranks" => {
                    let given = value.parse().ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
                    ranks = given.ok_or_else(|| format!("ranks: expected 1 to {MAX_RANKS}"))?;
                }
                "metrics" => {
                    let url: MetricsUrl = value.parse().map_err(|error| format!("metrics: {error}"))?;
                    metrics = Some(url.url);
                }
                "bind" => {
                    is_here = value.parse().map_err(|_| "bind: expected true or false".to_owned())?;
                }
                _ => return Err(format!("unknown key {key:?}; {EXPECTED}")),
            }
        }
        let address = match (address.starts_with("http://") || address.starts_with("https://"), is_here) {
            (true, true) => return Err("bind: engines connect to tcp://ADDRESS:PORT".to_owned()),
            (true, false) => server(address, engine)?,
            (false, true) => EngineAddress::Here(address.replace("://*", "://0.0.0.0").parse()?),
            (false, false) => EngineAddress::Publisher(address.parse()?),
        };
        let engine = match address {
            EngineAddress::Server(_) => Some(Engine::Sglang),
            _ => engine,
        };
        let replay = match (&address, replay) {
            (_, None) => None,
            (EngineAddress::Publisher(at), Some(replay)) => Some(match replay.parse() {
                Ok(port @ 1u16..) => ZmqEndpoint { host: at.host.clone(), port },
                _ => replay.parse().map_err(|error| format!("replay: {error}"))?,
            }),
            (EngineAddress::Here(_), Some(_)) => {
                return Err("replay: engines that connect here cannot be asked; leave it out".to_owned());
            }
            (EngineAddress::Server(_), Some(_)) => {
                return Err("replay: SGLang's server says where; leave it out".to_owned());
            }
        };
        let highest = |at: &ZmqEndpoint| at.port.checked_add(ranks - 1).is_some();
        let ports = match &address {
            EngineAddress::Publisher(at) | EngineAddress::Here(at) => Some(at),
            EngineAddress::Server(_) if ranks > 1 => {
                return Err("ranks: SGLang's server says how many; leave it out".to_owned());
            }
            EngineAddress::Server(_) => None,
        };
        if !ports.into_iter().chain(&replay).all(highest) {
            return Err("ranks: their ports would end beyond 65535".to_owned());
        }
        let pool = pool.unwrap_or_else(|| default_pool(engine).to_owned());
        if metrics.is_some() && matches!(address, EngineAddress::Here(_)) {
            return Err(
                "metrics: engines that connect here have several; give each with --prometheus".to_owned()
            );
        }
        let mut read = Self { engine, address, replay, pool, ranks, metrics: None };
        // So its figures are found to be those of its workers.
        read.metrics = metrics.map(|url| MetricsUrl { name: read.shown(), url });
        Ok(read)
    }
}

fn engine_named(name: &str) -> Result<Option<Engine>, String> {
    if name == "auto" {
        return Ok(None);
    }
    let found = Engine::ALL.into_iter().find(|engine| engine.as_str() == name);
    found
        .map(Some)
        .ok_or_else(|| format!("unknown engine {name:?}: vllm, sglang, trtllm or auto; {EXPECTED}"))
}

/// Whether a name of a pool may have it.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The pool of the engines of a model. `None`: nothing of its name can be in that of a pool.
pub(crate) fn pool_of_model(model: &str) -> Option<String> {
    let model = model.trim_matches(['"', '\'', '/']);
    let plain = model.chars().map(|c| if is_plain(c) { c } else { '-' });
    Some(plain.take(MAX_POOL_BYTES).collect()).filter(|pool: &String| !pool.is_empty())
}

fn pool_named(name: &str) -> Result<String, String> {
    let is_name = (1..=MAX_POOL_BYTES).contains(&name.len()) && name.chars().all(is_plain);
    if is_name { Ok(name.to_owned()) } else { Err("pool: expected letters, digits, -, _ and .".to_owned()) }
}

fn server(address: &str, engine: Option<Engine>) -> Result<EngineAddress, String> {
    if engine.is_some_and(|engine| engine != Engine::Sglang) {
        return Err("only SGLang says over HTTP where it publishes; expected tcp://HOST:PORT".to_owned());
    }
    let mut url = Url::parse(address).map_err(|error| format!("not a URL: {error}"))?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err("no host; expected http://HOST:PORT".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("logins in the URL are not supported".to_owned());
    }
    url.set_query(None);
    url.set_fragment(None);
    Ok(EngineAddress::Server(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EngineAt {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn endpoint(text: &str) -> ZmqEndpoint {
        text.parse().unwrap()
    }

    #[test]
    fn an_engine_reads_as_people_write_it() {
        let plain = read("tcp://10.0.0.7:5557");
        assert_eq!((plain.engine, plain.ranks, &*plain.pool), (None, 1, "engine"));
        let full = read("vllm=tcp://h:5557, replay=tcp://h:5558, pool=chat-1, ranks=8");
        let address = EngineAddress::Publisher(endpoint("tcp://h:5557"));
        let replay = Some(endpoint("tcp://h:5558"));
        let engine = Some(Engine::Vllm);
        assert_eq!(
            full,
            EngineAt { engine, address, replay, pool: "chat-1".into(), ranks: 8, metrics: None }
        );
        let metrics = read("vllm=tcp://h:5557,metrics=http://h:8000").metrics.unwrap();
        assert_eq!((&*metrics.name, metrics.url.as_str()), ("tcp://h:5557", "http://h:8000/metrics"));
        assert_eq!(read("trtllm=tcp://h:5557,replay=5560").replay, Some(endpoint("tcp://h:5560")));
        assert_eq!(read("auto=tcp://h:1").engine, None);
        let here = read("vllm=tcp://*:5557,bind=true");
        assert_eq!(here.address, EngineAddress::Here(endpoint("tcp://0.0.0.0:5557")));
        let server = read("http://h:30000");
        assert_eq!(
            (server.engine, server.shown().as_str(), &*server.pool),
            (Some(Engine::Sglang), "http://h:30000", "sglang")
        );
    }

    #[test]
    fn what_is_written_reads_the_same() {
        for text in [
            "tcp://h:1",
            "vllm=tcp://h:1,replay=2,pool=x,ranks=3",
            "sglang=tcp://0.0.0.0:5,bind=true",
            "http://h:1/x",
            "http://h:1,metrics=http://h:1",
        ] {
            assert_eq!(read(&read(text).to_string()), read(text), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        for (text, word) in [
            ("", "expected tcp"),
            ("vlm=tcp://h:1", "unknown engine"),
            ("vllm=http://h:1", "only SGLang"),
            ("vllm=tcp://h:1,replay", "has no value"),
            ("vllm=tcp://h:1,replays=2", "unknown key"),
            ("vllm=tcp://h:1,ranks=0", "ranks"),
            ("vllm=tcp://h:65535,ranks=2", "beyond 65535"),
            ("vllm=tcp://h:1,replay=tcp://h:65535,ranks=2", "beyond 65535"),
            ("vllm=tcp://h:1,pool=a b", "pool"),
            ("vllm=tcp://*:1", "expected tcp"),
            ("tcp://h:1,bind=yes", "bind"),
            ("tcp://h:1,bind=true,replay=5558", "cannot be asked"),
            ("tcp://h:1,bind=true,metrics=http://h:1", "--prometheus"),
            ("tcp://h:1,metrics=nats://h:1", "metrics"),
            ("sglang=http://h:1,replay=5558", "says where"),
            ("sglang=http://h:1,ranks=2", "says how many"),
            ("sglang=http://u:hidden@h:1", "logins"),
        ] {
            let error = text.parse::<EngineAt>().unwrap_err();
            assert!(error.contains(word) && !error.contains("hidden"), "{text}: {error}");
        }
    }

    #[test]
    fn a_socket_is_of_one_rank() {
        let conflict =
            |texts: &[&str]| EngineAt::conflict(&texts.iter().map(|text| read(text)).collect::<Vec<_>>());
        assert_eq!(conflict(&["tcp://a:5557,ranks=2", "tcp://a:5559", "tcp://b:5557"]), None);
        assert!(conflict(&["tcp://a:5557,ranks=2", "tcp://a:5558"]).unwrap().contains("5558"));
        assert!(conflict(&["http://a:1", "http://a:1"]).is_some());
    }
}
