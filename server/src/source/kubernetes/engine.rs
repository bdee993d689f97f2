//! What a pod without Dynamo serves a model with, and where it publishes what it caches: by its labels, its command and its ports. Only
//! what is written there is believed; nothing is asked here.

use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;

use radixscope_model::record::Engine;

use super::pods::Labels;
use crate::config::pool_of_model;

/// The engine in a pod of llm-d.
const ENGINE: &str = "llm-d.ai/engine-type";
/// The model of such a pod.
const MODEL: &str = "llm-d.ai/model";
/// Name of the port of KV events.
const EVENTS_PORT: &str = "kv-events";
/// Port of vLLM's KV events unless it is given another one.
const VLLM_EVENTS_PORT: u16 = 5557;
/// Ports of the HTTP servers unless they are given others.
const VLLM_PORT: u16 = 8000;
const SGLANG_PORT: u16 = 30_000;
/// Most ranks that are believed.
const MAX_RANKS: u16 = 1_024;

/// An engine in a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodEngine {
    /// What it is. `None`: nothing says.
    pub(crate) engine: Option<Engine>,
    /// Where it publishes.
    pub(crate) events: PodEvents,
    /// Pool of its workers: its model, as far as its command or its labels name it.
    pub(crate) pool: String,
    /// Port of its own metrics.
    pub(crate) metrics_port: Option<u16>,
}

/// Where an engine in a pod publishes its KV events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PodEvents {
    /// At these ports of its pod: of several ranks those of the first, the others' follow.
    At { port: u16, replay: Option<u16>, ranks: u16 },
    /// Its HTTP server says where, at this port.
    Asked { port: u16 },
    /// Nowhere that could be connected to, and why.
    Nowhere(&'static str),
}

/// `--kv-events-config`, as far as it matters.
#[derive(Deserialize)]
struct EventsConfig {
    enable_kv_cache_events: Option<bool>,
    publisher: Option<String>,
    endpoint: Option<String>,
    replay_endpoint: Option<String>,
}

/// The words of a container's command; those that a shell is to split are split here.
fn words(container: &Container) -> Vec<&str> {
    let all = container.command.iter().chain(&container.args).flatten();
    all.flat_map(|word| word.split_whitespace()).collect()
}

/// The engine that a container's command starts.
pub(super) fn started(container: &Container) -> Option<Engine> {
    let words = words(container);
    let is_vllm = |pair: &[&str]| pair[0].rsplit('/').next() == Some("vllm") && pair[1] == "serve";
    if words.iter().any(|word| word.contains("sglang.launch_server")) {
        Some(Engine::Sglang)
    } else if words.iter().any(|word| word.contains("vllm.entrypoints")) || words.windows(2).any(is_vllm) {
        Some(Engine::Vllm)
    } else {
        None
    }
}

impl PodEngine {
    /// Of a pod that serves a model with an engine. `containers`: all of it.
    pub(super) fn of(labels: &Labels, containers: &[Container]) -> Option<Self> {
        let has_events = |container: &&Container| named_port(container, EVENTS_PORT).is_some();
        let container = containers
            .iter()
            .find(|container| started(container).is_some())
            .or_else(|| containers.iter().find(has_events))
            .or(containers.first())?;
        let words = words(container);
        let of_label = || {
            let name = labels.get(ENGINE)?;
            Engine::ALL.into_iter().find(|engine| engine.as_str() == name)
        };
        let started = started(container);
        let engine = started.or_else(of_label);
        let http = value_of(&words, &["--port"]).and_then(|port| port.parse().ok());
        let http = http.or_else(|| named_port(container, "http"));
        let events = match (engine, named_port(container, EVENTS_PORT), config_of(container)) {
            // What it says itself is exact, ranks included.
            (Some(Engine::Sglang), ..) => PodEvents::Asked { port: http.unwrap_or(SGLANG_PORT) },
            (_, named, Some(config)) => config.events(named, ranks(&words)),
            (_, Some(port), None) => PodEvents::At { port, replay: None, ranks: ranks(&words) },
            (_, None, None) if started.is_some() => {
                PodEvents::Nowhere("its command has no --kv-events-config")
            }
            // A script of its own may start it.
            (_, None, None) => PodEvents::At { port: VLLM_EVENTS_PORT, replay: None, ranks: ranks(&words) },
        };
        let model = model_of(&words).or_else(|| labels.get(MODEL).map(String::as_str));
        let pool = model.and_then(pool_of_model);
        let reports = engine != Some(Engine::Sglang) || words.contains(&"--enable-metrics");
        let usual = match engine {
            Some(Engine::Sglang) => Some(SGLANG_PORT),
            Some(Engine::Vllm) => Some(VLLM_PORT),
            _ => None,
        };
        Some(Self {
            engine,
            events,
            pool: pool.unwrap_or_else(|| engine.map_or("engine", Engine::as_str).to_owned()),
            metrics_port: named_port(container, "metrics").or(http).or(usual).filter(|_| reports),
        })
    }
}

impl EventsConfig {
    fn events(self, named: Option<u16>, ranks: u16) -> PodEvents {
        let is_off = self.enable_kv_cache_events == Some(false);
        if is_off || self.publisher.as_deref().is_some_and(|publisher| publisher != "zmq") {
            return PodEvents::Nowhere("its --kv-events-config publishes nothing over ZeroMQ");
        }
        match self.endpoint.as_deref().map(bound_at) {
            None => PodEvents::At { port: VLLM_EVENTS_PORT, replay: None, ranks },
            Some(Some(port)) => {
                let replay = self.replay_endpoint.as_deref().and_then(bound_at);
                PodEvents::At { port, replay, ranks }
            }
            Some(None) => match named {
                Some(port) => PodEvents::At { port, replay: None, ranks },
                None => PodEvents::Nowhere("it connects to who listens instead of listening itself"),
            },
        }
    }
}

/// The port of a socket that is bound at all addresses of its pod. `None`: it is not.
fn bound_at(endpoint: &str) -> Option<u16> {
    let (host, port) = endpoint.strip_prefix("tcp://")?.rsplit_once(':')?;
    // A variable that Kubernetes sets to the pod's own address.
    let is_own = matches!(host, "*" | "0.0.0.0" | "[::]" | "::") || host.starts_with("$(");
    port.parse().ok().filter(|&port| is_own && port > 0)
}

/// `--kv-events-config` of a command, which may be a word of its own or a part of a line for a shell.
fn config_of(container: &Container) -> Option<EventsConfig> {
    const FLAG: &str = "--kv-events-config";
    let mut all = container.command.iter().chain(&container.args).flatten();
    while let Some(word) = all.next() {
        let Some(at) = word.find(FLAG) else { continue };
        let rest = &word[at + FLAG.len()..];
        let text = match rest.find('{') {
            Some(at) => &rest[at..],
            None => all.next()?.trim_start(),
        };
        // A shell goes on behind it.
        return serde_json::Deserializer::from_str(text).into_iter().next()?.ok();
    }
    None
}

fn named_port(container: &Container, name: &str) -> Option<u16> {
    let port = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name))?;
    u16::try_from(port.container_port).ok()
}

/// The value of an option, `--option value` or `--option=value`.
fn value_of<'w>(words: &[&'w str], options: &[&str]) -> Option<&'w str> {
    words.iter().enumerate().find_map(|(at, word)| {
        options.iter().find_map(|option| match word.strip_prefix(option)? {
            "" => words.get(at + 1).copied(),
            rest => rest.strip_prefix('='),
        })
    })
}

/// Ranks of an engine that run in its pod.
fn ranks(words: &[&str]) -> u16 {
    let local = ["--data-parallel-size-local", "-dpl"];
    let all = ["--data-parallel-size", "-dp"];
    let given = value_of(words, &local).or_else(|| value_of(words, &all));
    given.and_then(|ranks| ranks.parse().ok()).filter(|ranks| (1..=MAX_RANKS).contains(ranks)).unwrap_or(1)
}

fn model_of<'w>(words: &[&'w str]) -> Option<&'w str> {
    let after_serve = || {
        let at = words.iter().position(|word| *word == "serve")?;
        words.get(at + 1).copied().filter(|word| !word.starts_with('-'))
    };
    value_of(words, &["--served-model-name", "--model", "--model-path"]).or_else(after_serve)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn engine(labels: &[(&str, &str)], container: Value) -> PodEngine {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        PodEngine::of(&labels, &[serde_json::from_value(container).unwrap()]).unwrap()
    }

    fn at(port: u16, replay: Option<u16>, ranks: u16) -> PodEvents {
        PodEvents::At { port, replay, ranks }
    }

    #[test]
    fn where_an_engine_publishes_is_in_its_command() {
        let config = r#"{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5560","replay_endpoint":"tcp://*:5570"}"#;
        let both = at(5_560, Some(5_570), 1);
        let line = format!("exec vllm serve Qwen/Qwen3-8B --port 8200 --kv-events-config '{config}' -dp=2");
        let table = [
            (json!(["vllm", "serve", "m", "--kv-events-config", config]), both.clone()),
            (json!(["vllm", "serve", "m", format!("--kv-events-config={config}")]), both),
            (json!(["/bin/sh", "-c", line]), at(5_560, Some(5_570), 2)),
            (
                json!([
                    "python3",
                    "-m",
                    "vllm.entrypoints.openai.api_server",
                    "--data-parallel-size",
                    "8",
                    "--data-parallel-size-local",
                    "4",
                    "--kv-events-config",
                    r#"{"publisher":"zmq"}"#
                ]),
                at(5_557, None, 4),
            ),
            (json!(["vllm", "serve", "m"]), PodEvents::Nowhere("its command has no --kv-events-config")),
            (
                json!(["vllm", "serve", "m", "--kv-events-config", r#"{"enable_kv_cache_events":false}"#]),
                PodEvents::Nowhere("its --kv-events-config publishes nothing over ZeroMQ"),
            ),
            (
                json!(["vllm", "serve", "m", "--kv-events-config", r#"{"endpoint":"tcp://epp:5557"}"#]),
                PodEvents::Nowhere("it connects to who listens instead of listening itself"),
            ),
            (
                json!(["vllm", "serve", "m", "--kv-events-config", r#"{"endpoint":"tcp://$(POD_IP):5557"}"#]),
                at(5_557, None, 1),
            ),
            (
                json!(["python3", "-m", "sglang.launch_server", "--port=31000"]),
                PodEvents::Asked { port: 31_000 },
            ),
            (json!(["python3", "-m", "sglang.launch_server"]), PodEvents::Asked { port: 30_000 }),
            // A script of its own.
            (json!(["/start.sh"]), at(5_557, None, 1)),
        ];
        for (command, expected) in table {
            let found = engine(&[], json!({"name": "c", "command": command}));
            assert_eq!(found.events, expected, "{command}");
        }
        let named = json!({"name": "c", "ports": [{"name": "kv-events", "containerPort": 5599}]});
        assert_eq!(engine(&[], named).events, at(5_599, None, 1));
    }

    #[test]
    fn engines_of_one_model_are_in_one_pool() {
        let of = |labels: &[(&str, &str)], command: Value| {
            let found = engine(labels, json!({"name": "c", "command": command}));
            (found.pool, found.engine, found.metrics_port)
        };
        let vllm = Some(Engine::Vllm);
        assert_eq!(
            of(&[], json!(["vllm", "serve", "Qwen/Qwen3-8B"])),
            ("Qwen-Qwen3-8B".into(), vllm, Some(8_000))
        );
        let served = json!(["vllm", "serve", "/models/x", "--served-model-name", "chat", "--port", "8200"]);
        assert_eq!(of(&[], served), ("chat".into(), vllm, Some(8_200)));
        let labels = [("llm-d.ai/engine-type", "vllm"), ("llm-d.ai/model", "llama")];
        assert_eq!(of(&labels, json!(["/start.sh"])), ("llama".into(), vllm, Some(8_000)));
        let sglang =
            |more: &[&str]| of(&[], json!([&["python3", "-m", "sglang.launch_server"], more].concat()));
        assert_eq!(sglang(&["--model-path", "a/b"]), ("a-b".into(), Some(Engine::Sglang), None));
        assert_eq!(sglang(&["--enable-metrics"]), ("sglang".into(), Some(Engine::Sglang), Some(30_000)));
        assert_eq!(of(&[], json!(["/start.sh"])), ("engine".into(), None, None));
    }
}
