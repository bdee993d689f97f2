//! Lines of an endpoint picker (EPP) of the Gateway API Inference Extension about one choice, as llm-d's router writes them too: JSON of
//! zap, or its console form with tabs. They come at verbosity 4 (`-v=4`, DEBUG); which endpoint was handed the request at 3.
//!
//! A picker runs scheduling profiles for a request, one after the other. In each, scorers give every endpoint 0 … 1
//! (`Calculated score`), the weighted sums are listed (`Candidate pods for picking`), and a picker takes one of them
//! (`Completed running picker plugin successfully`). All lines of a request bear its `x-request-id`; those of several requests mix.
//!
//! | picker | list | endpoint |
//! |---|---|---|
//! | Gateway API Inference Extension 1.2, 1.3 | `pods-weighted-score`, each `{"Pod": …}` | `NamespacedName`, `RunningQueueSize` |
//! | 1.4 and later | `endpoints-weighted-score`, each `{"Endpoint": …}` | `NamespacedName`, `RunningRequestsSize` |
//! | llm-d-router (August 2026) | the same | `ID` with the rank in its name, `RankIndex` |

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Level, LogEvent, LogRecord, clock, text};
use crate::error::{DecodeError, Reason};
use crate::typed::{self, Bounded, Text};
#[cfg(doc)]
use radixscope_model::record::MAX_ENDPOINT_BYTES;
use radixscope_model::record::Topic;

/// Most endpoints of a line: more than fit into one that is not cut.
pub const MAX_ENDPOINTS: usize = 2_048;
/// Longest namespace of an endpoint, name of one, and address of one, in bytes: together less than [`MAX_ENDPOINT_BYTES`].
const MAX_NAMESPACE_BYTES: usize = 64;
const MAX_POD_BYTES: usize = 300;
const MAX_ADDRESS_BYTES: usize = 256;
const MAX_PORT_BYTES: usize = 16;
/// Longest name of a scorer, a picker or a profile, in bytes.
const MAX_NAME_BYTES: usize = 128;

const PROFILE: &str = "Running scheduler profile";
const SCORE: &str = "Calculated score";
const CANDIDATES: &str = "Candidate pods for picking";
const PICKED: &str = "Completed running picker plugin successfully";
const HANDLED: &str = "Request handled";

/// One of these is the message of every line that is read here.
pub(super) const PHRASES: [&str; 5] = [PROFILE, SCORE, CANDIDATES, PICKED, HANDLED];

/// A line about a choice.
#[derive(Clone, PartialEq, Debug)]
pub struct PickerLine<'a> {
    /// The request, as the gateway names it; lines without one follow each other.
    pub request_id: Option<Cow<'a, str>>,
    /// What it says.
    pub step: PickerStep<'a>,
}

/// A step of a choice.
#[derive(Clone, PartialEq, Debug)]
pub enum PickerStep<'a> {
    /// A scheduling profile of this name begins.
    Profile(Cow<'a, str>),
    /// A scorer gave an endpoint a score, before its weight.
    Scored {
        /// Name of the scorer.
        scorer: Cow<'a, str>,
        /// Which endpoint.
        endpoint: EndpointName<'a>,
        /// The score.
        score: f64,
    },
    /// The endpoints that are left, with their weighted sums.
    Candidates(Vec<ScoredEndpoint<'a>>),
    /// An endpoint was taken.
    Picked {
        /// Name of the picker.
        picker: Option<Cow<'a, str>>,
        /// The endpoint; the first of several. `None`: none was.
        endpoint: Option<Endpoint<'a>>,
    },
    /// The request was handed to an endpoint, `ADDRESS:PORT`; the first of several.
    Handled(Cow<'a, str>),
}

/// Namespace and name by which a picker knows an endpoint: those of its pod, and with several ports the name ends in `-rank-N`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndpointName<'a> {
    /// Of the pod; empty outside of Kubernetes.
    pub namespace: Cow<'a, str>,
    /// Of the endpoint.
    pub name: Cow<'a, str>,
}

/// An endpoint as a picker knows it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Endpoint<'a> {
    /// How it is named.
    pub name: EndpointName<'a>,
    /// Name of its pod. `None`: not reported.
    pub pod: Option<Cow<'a, str>>,
    /// Address of its pod.
    pub address: Option<Cow<'a, str>>,
    /// Its port for requests.
    pub port: Option<Cow<'a, str>>,
    /// Its place among the ports of its pod, which is its data-parallel rank. `None`: not reported.
    pub rank: Option<u32>,
    /// Requests that run there.
    pub running: Option<u32>,
    /// Requests that wait there.
    pub waiting: Option<u32>,
    /// Share of its KV cache in use, 0 … 1.
    pub kv_usage: Option<f64>,
}

/// An endpoint with its weighted sum.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoredEndpoint<'a> {
    /// Which.
    pub endpoint: Endpoint<'a>,
    /// The sum; the highest wins.
    pub score: f64,
}

impl PickerLine<'_> {
    /// The same without the line it was read from.
    pub fn into_owned(self) -> PickerLine<'static> {
        let step = match self.step {
            PickerStep::Profile(name) => PickerStep::Profile(own(name)),
            PickerStep::Scored { scorer, endpoint, score } => {
                PickerStep::Scored { scorer: own(scorer), endpoint: endpoint.into_owned(), score }
            }
            PickerStep::Candidates(endpoints) => PickerStep::Candidates(
                endpoints
                    .into_iter()
                    .map(|of| ScoredEndpoint { endpoint: of.endpoint.into_owned(), score: of.score })
                    .collect(),
            ),
            PickerStep::Picked { picker, endpoint } => {
                PickerStep::Picked { picker: picker.map(own), endpoint: endpoint.map(Endpoint::into_owned) }
            }
            PickerStep::Handled(address) => PickerStep::Handled(own(address)),
        };
        PickerLine { request_id: self.request_id.map(own), step }
    }
}

impl EndpointName<'_> {
    fn into_owned(self) -> EndpointName<'static> {
        EndpointName { namespace: own(self.namespace), name: own(self.name) }
    }

    /// Whether it names nothing.
    fn is_empty(&self) -> bool {
        self.name.is_empty()
    }
}

impl Endpoint<'_> {
    fn into_owned(self) -> Endpoint<'static> {
        let Self { name, pod, address, port, rank, running, waiting, kv_usage } = self;
        Endpoint {
            name: name.into_owned(),
            pod: pod.map(own),
            address: address.map(own),
            port: port.map(own),
            rank,
            running,
            waiting,
            kv_usage,
        }
    }
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

/// Reads a line. `None`: it is not one of a picker's about a choice.
pub(super) fn decode(line: &str) -> Result<Option<LogRecord<'_>>, DecodeError> {
    let Some(object) = text::object(line) else { return Ok(None) };
    let head = &line[..line.len() - object.len()];
    // In the console form the message stands before its fields.
    let mut pieces = head.trim_end_matches('\t').rsplit('\t');
    let console = head.contains('\t').then(|| pieces.next()).flatten().filter(|text| PHRASES.contains(text));
    if console.is_none() && !PHRASES.iter().any(|phrase| object.contains(phrase)) {
        return Ok(None);
    }
    let fields: Fields<'_> = typed::decode_json(Topic::Log.as_str(), object.as_bytes(), line.as_bytes())?;
    let own_message = fields.msg.as_ref().map(|Text(text)| text.clone());
    let Some(message) = console.map(Cow::Borrowed).or(own_message) else { return Ok(None) };
    let (at_us, level) = match console {
        Some(_) => {
            let mut from_front = head.split('\t');
            // A runtime may have put words in front of the time.
            let time = from_front.next().and_then(|words| words.rsplit(' ').next());
            (time.and_then(clock::unix_us), from_front.next().map_or(Level::Debug, level_of))
        }
        None => (
            fields.ts.and_then(|ts| time_of(ts.get())),
            fields.level.as_ref().map_or(Level::Debug, |Text(word)| level_of(word)),
        ),
    };
    let reader = StepReader { line, fields };
    let Some(step) = reader.step(&message)? else { return Ok(None) };
    let request_id = reader.fields.request_id.map(|Text(id)| id).filter(|id| !id.is_empty());
    let event = LogEvent::Picker(PickerLine { request_id, step });
    let trace_id = reader.fields.trace_id.and_then(|Text(id)| super::bounded_trace_id(id));
    Ok(Some(LogRecord { at_us, level, trace_id, client_id: None, event }))
}

/// Seconds of Unix time with a fraction, or RFC 3339 in quotes.
fn time_of(json: &str) -> Option<i64> {
    match json.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => clock::unix_us(text),
        None => {
            let us = json.parse::<f64>().ok()? * 1e6;
            // Beyond 2^53 microseconds a float has no room for them.
            (0.0..9e15).contains(&us).then(|| us.round() as i64)
        }
    }
}

/// zap writes verbosities as `Level(-4)`, llm-d as `debug`.
fn level_of(word: &str) -> Level {
    Level::of(&word.to_ascii_uppercase()).unwrap_or(Level::Debug)
}

/// Members of a line. What those of a step are depends on its message, so that they are read with it; others may come twice.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    level: Option<Text<'a>>,
    ts: Option<&'a RawValue>,
    msg: Option<Text<'a>>,
    #[serde(rename = "x-request-id")]
    request_id: Option<Text<'a>>,
    trace_id: Option<Text<'a>>,
    profile: Option<&'a RawValue>,
    plugin: Option<&'a RawValue>,
    endpoint: Option<&'a RawValue>,
    score: Option<&'a RawValue>,
    #[serde(rename = "endpoints-weighted-score")]
    endpoints: Option<&'a RawValue>,
    #[serde(rename = "pods-weighted-score")]
    pods: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
}

/// Reads what a step of its message has.
struct StepReader<'a> {
    line: &'a str,
    fields: Fields<'a>,
}

impl<'a> StepReader<'a> {
    fn step(&self, message: &str) -> Result<Option<PickerStep<'a>>, DecodeError> {
        let Self { fields, .. } = self;
        Ok(Some(match message {
            PROFILE => PickerStep::Profile(self.name(fields.profile, "profile")?),
            SCORE => PickerStep::Scored {
                scorer: self.plugin()?.ok_or_else(|| missing("plugin"))?,
                endpoint: self.read::<EndpointNameFields<'_>>(fields.endpoint, "endpoint")?.name()?,
                score: self.read(fields.score, "score")?,
            },
            CANDIDATES => {
                let listed = fields.endpoints.or(fields.pods);
                let Bounded(all) =
                    self.read::<Bounded<Scored<'_>, MAX_ENDPOINTS>>(listed, "endpoints-weighted-score")?;
                PickerStep::Candidates(all.into_iter().map(Scored::read).collect::<Result<_, _>>()?)
            }
            PICKED => {
                let result: Picked<'_> = self.read(fields.result, "result")?;
                let Bounded(targets) = result.endpoints.or(result.pods).unwrap_or_default();
                let endpoint = targets.into_iter().next().map(Target::read).transpose()?;
                PickerStep::Picked { picker: self.plugin()?, endpoint }
            }
            HANDLED => {
                let Text(all) = self.read(fields.endpoint, "endpoint")?;
                let first = match all {
                    Cow::Borrowed(all) => Cow::Borrowed(all.split(',').next().unwrap_or_default()),
                    Cow::Owned(all) => Cow::Owned(all.split(',').next().unwrap_or_default().to_owned()),
                };
                PickerStep::Handled(bounded(first, MAX_ADDRESS_BYTES + MAX_PORT_BYTES, "endpoint")?)
            }
            _ => return Ok(None),
        }))
    }

    fn read<T: Deserialize<'a>>(&self, from: Option<&'a RawValue>, name: &str) -> Result<T, DecodeError> {
        let json = from.ok_or_else(|| missing(name))?.get().as_bytes();
        typed::decode_json(Topic::Log.as_str(), json, self.line.as_bytes())
    }

    fn name(&self, from: Option<&'a RawValue>, name: &str) -> Result<Cow<'a, str>, DecodeError> {
        let Text(text) = self.read(from, name)?;
        bounded(text, MAX_NAME_BYTES, name)
    }

    /// Name of the plugin, `NAME/TYPE`; the type goes where it is the same.
    fn plugin(&self) -> Result<Option<Cow<'a, str>>, DecodeError> {
        if self.fields.plugin.is_none() {
            return Ok(None);
        }
        let whole = self.name(self.fields.plugin, "plugin")?;
        let same = whole.split_once('/').filter(|(name, of_type)| name == of_type);
        let Some(len) = same.map(|(name, _)| name.len()) else { return Ok(Some(whole)) };
        Ok(Some(match whole {
            Cow::Borrowed(whole) => Cow::Borrowed(&whole[..len]),
            Cow::Owned(whole) => Cow::Owned(whole[..len].to_owned()),
        }))
    }
}

/// Namespace and name, in lower case where they stand alone.
#[derive(Deserialize)]
struct EndpointNameFields<'a> {
    #[serde(borrow, alias = "Namespace")]
    namespace: Option<Text<'a>>,
    #[serde(alias = "Name")]
    name: Option<Text<'a>>,
}

impl<'a> EndpointNameFields<'a> {
    fn name(self) -> Result<EndpointName<'a>, DecodeError> {
        let text = |of: Option<Text<'a>>| of.map(|Text(text)| text).unwrap_or_default();
        Ok(EndpointName {
            namespace: bounded(text(self.namespace), MAX_NAMESPACE_BYTES, "namespace")?,
            name: bounded(text(self.name), MAX_POD_BYTES, "name")?,
        })
    }
}

/// An endpoint and its weighted sum.
#[derive(Deserialize)]
struct Scored<'a> {
    #[serde(borrow, rename = "Endpoint")]
    endpoint: Option<EndpointFields<'a>>,
    #[serde(rename = "Pod")]
    pod: Option<EndpointFields<'a>>,
    #[serde(rename = "Score")]
    score: f64,
}

impl<'a> Scored<'a> {
    fn read(self) -> Result<ScoredEndpoint<'a>, DecodeError> {
        let endpoint = self.endpoint.or(self.pod).ok_or_else(|| missing("Endpoint"))?.read()?;
        Ok(ScoredEndpoint { endpoint, score: self.score })
    }
}

/// What a picker gives.
#[derive(Deserialize)]
struct Picked<'a> {
    #[serde(borrow, rename = "TargetEndpoints")]
    endpoints: Option<Bounded<Target<'a>, MAX_ENDPOINTS>>,
    #[serde(rename = "TargetPods")]
    pods: Option<Bounded<Target<'a>, MAX_ENDPOINTS>>,
}

/// One of the endpoints that were taken: with its score, or alone.
#[derive(Deserialize)]
struct Target<'a> {
    #[serde(borrow, rename = "Endpoint")]
    endpoint: Option<EndpointFields<'a>>,
    #[serde(rename = "Pod")]
    pod: Option<EndpointFields<'a>>,
    #[serde(rename = "ID", alias = "NamespacedName")]
    id: Option<EndpointNameFields<'a>>,
    #[serde(rename = "Address")]
    address: Option<Text<'a>>,
    #[serde(rename = "Port")]
    port: Option<Text<'a>>,
}

impl<'a> Target<'a> {
    fn read(self) -> Result<Endpoint<'a>, DecodeError> {
        match self.endpoint.or(self.pod) {
            Some(endpoint) => endpoint.read(),
            None => EndpointFields {
                id: self.id,
                address: self.address,
                port: self.port,
                ..EndpointFields::default()
            }
            .read(),
        }
    }
}

/// Members of an endpoint that are looked at.
#[derive(Deserialize, Default)]
struct EndpointFields<'a> {
    #[serde(borrow, rename = "ID", alias = "NamespacedName")]
    id: Option<EndpointNameFields<'a>>,
    #[serde(rename = "PodName", alias = "Name")]
    pod: Option<Text<'a>>,
    #[serde(rename = "Address")]
    address: Option<Text<'a>>,
    #[serde(rename = "Port")]
    port: Option<Text<'a>>,
    #[serde(rename = "RankIndex")]
    rank: Option<u32>,
    #[serde(rename = "RunningRequestsSize", alias = "RunningQueueSize")]
    running: Option<u32>,
    #[serde(rename = "WaitingQueueSize")]
    waiting: Option<u32>,
    #[serde(rename = "KVCacheUsagePercent")]
    kv_usage: Option<f64>,
}

impl<'a> EndpointFields<'a> {
    fn read(self) -> Result<Endpoint<'a>, DecodeError> {
        let text = |of: Option<Text<'a>>, most, name| match of {
            Some(Text(text)) if !text.is_empty() => bounded(text, most, name).map(Some),
            _ => Ok(None),
        };
        let name = match self.id {
            Some(id) => id.name()?,
            None => EndpointName::default(),
        };
        let address = text(self.address, MAX_ADDRESS_BYTES, "Address")?;
        if name.is_empty() && address.is_none() {
            return Err(missing("NamespacedName"));
        }
        Ok(Endpoint {
            name,
            pod: text(self.pod, MAX_POD_BYTES, "PodName")?,
            address,
            port: text(self.port, MAX_PORT_BYTES, "Port")?,
            rank: self.rank,
            running: self.running,
            waiting: self.waiting,
            // vLLM reports a share under the name of a percentage.
            kv_usage: self.kv_usage.filter(|share| (0.0..=1.0).contains(share)),
        })
    }
}

fn missing(name: &str) -> DecodeError {
    DecodeError::new(Reason::MissingField, format!("{}: {name}: is missing", Topic::Log.as_str()))
}

/// A name that is not longer than names are.
fn bounded<'a>(text: Cow<'a, str>, most: usize, name: &str) -> Result<Cow<'a, str>, DecodeError> {
    if text.len() > most {
        let what = format!("{}: {name}: more than {most} bytes", Topic::Log.as_str());
        return Err(DecodeError::new(Reason::TooLarge, what));
    }
    Ok(text)
}
