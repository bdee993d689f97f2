//! A frontend's `GET /router_policy` (from 1.7): what each of its routers runs with now. Seen with 1.7.0.dev20261026; 1.6.1 answers
//! 404. What changes the settings (`PATCH`) is not known here.

use std::borrow::Cow;

use serde::Deserialize;

use super::envelope::Format;
use super::error::DecodeError;
use super::typed::{self, Bounded, Text};
use radixscope_model::record::{Role, RouterNumbers, Topic};

/// Most routers that are read of one response: a frontend has one for each pool of each model that it serves.
pub const MAX_ROUTERS: usize = 256;

/// One router and what it runs with.
#[derive(Clone, PartialEq, Debug)]
pub struct RouterPolicy<'a> {
    /// Its id in these responses, a UUID; another one whenever the frontend starts.
    pub router_id: Cow<'a, str>,
    /// The model.
    pub model: Cow<'a, str>,
    /// The namespace of the workers that it chooses among.
    pub namespace: Cow<'a, str>,
    /// Their component.
    pub component: Cow<'a, str>,
    /// What they do; `None`: a word that is not known.
    pub role: Option<Role>,
    /// How many times its settings were changed since it started. `None`: not reported.
    pub revision: Option<u64>,
    /// Its settings, as far as they are numbers that this version knows; none of a router whose policy has others.
    pub numbers: RouterNumbers,
}

/// Reads the body of a response.
///
/// # Errors
/// The first thing that was not understood: half a list would tell of routers that left.
pub fn decode(body: &[u8]) -> Result<Vec<RouterPolicy<'_>>, DecodeError> {
    let Body { routers: Bounded(routers) } = typed::decode(Topic::RouterPolicy.as_str(), body, Format::Json)?;
    Ok(routers.into_iter().map(Entry::read).collect())
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    routers: Bounded<Entry<'a>, MAX_ROUTERS>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    router_id: Text<'a>,
    model: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    component: Option<Text<'a>>,
    worker_type: Option<Text<'a>>,
    configuration: Option<Configuration>,
}

#[derive(Deserialize, Default)]
struct Configuration {
    revision: Option<u64>,
    parameters: Option<RouterNumbers>,
}

impl<'a> Entry<'a> {
    fn read(self) -> RouterPolicy<'a> {
        let text = |of: Option<Text<'a>>| of.map(|Text(text)| text).unwrap_or_default();
        let Configuration { revision, parameters } = self.configuration.unwrap_or_default();
        RouterPolicy {
            router_id: self.router_id.0,
            model: text(self.model),
            namespace: text(self.namespace),
            component: text(self.component),
            role: self.worker_type.and_then(|Text(word)| Role::of(&word)),
            revision,
            numbers: parameters.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    /// As `dynamo.frontend` 1.7.0.dev20261026 answered after its `prefill_load_scale` was set to 2.
    const CHANGED: &str = r#"{"routers":[{"router_id":"0739924f-5e0c-4d19-bf58-c8a1a1bdf6eb","model":"models/tiny-llama","namespace":"dynamo","component":"backend","endpoint":"generate","worker_type":"aggregated","configuration":{"revision":1,"parameters":{"overlap_score_credit":1.0,"overlap_score_credit_decay":0.0,"prefill_load_scale":2.0,"decode_active_request_weight":0.0,"host_cache_hit_weight":0.75,"disk_cache_hit_weight":0.25,"shared_cache_multiplier":0.0,"router_temperature":0.0}}}]}"#;

    #[test]
    fn a_router_is_read_with_its_settings() {
        let routers = decode(CHANGED.as_bytes()).unwrap();
        let expected = RouterPolicy {
            router_id: "0739924f-5e0c-4d19-bf58-c8a1a1bdf6eb".into(),
            model: "models/tiny-llama".into(),
            namespace: "dynamo".into(),
            component: "backend".into(),
            role: Some(Role::Aggregated),
            revision: Some(1),
            numbers: RouterNumbers {
                overlap_score_weight: None,
                prefill_load_scale: Some(2.0),
                overlap_score_credit: Some(1.0),
                overlap_score_credit_decay: Some(0.0),
                host_cache_hit_weight: Some(0.75),
                disk_cache_hit_weight: Some(0.25),
                shared_cache_multiplier: Some(0.0),
                decode_active_request_weight: Some(0.0),
                router_temperature: Some(0.0),
            },
        };
        assert_eq!(routers, [expected]);
        assert_eq!(decode(br#"{"routers":[]}"#), Ok(vec![]));
    }

    /// As 1.7.0.dev20261026 answered with a prefill and a decode worker: one router for each of their pools.
    #[test]
    fn a_frontend_lists_the_routers_of_all_its_pools() {
        const DISAGGREGATED: &str = r#"{"routers":[{"router_id":"9ad13cad-914c-4bbc-a0d8-1dad63bbb216","model":"models/tiny-llama","namespace":"dynamo","component":"prefill","endpoint":"generate","worker_type":"prefill","configuration":{"revision":0,"parameters":{"overlap_score_credit":1.0,"overlap_score_credit_decay":0.0,"prefill_load_scale":1.0,"decode_active_request_weight":0.0,"host_cache_hit_weight":0.75,"disk_cache_hit_weight":0.25,"shared_cache_multiplier":0.0,"router_temperature":0.0}}},{"router_id":"c03d7976-a50e-4d0e-ad03-5d38e0b8a7f3","model":"models/tiny-llama","namespace":"dynamo","component":"backend","endpoint":"generate","worker_type":"decode","configuration":{"revision":0,"parameters":{"overlap_score_credit":0.0,"overlap_score_credit_decay":0.0,"prefill_load_scale":1.0,"decode_active_request_weight":0.0,"host_cache_hit_weight":0.0,"disk_cache_hit_weight":0.0,"shared_cache_multiplier":0.0,"router_temperature":0.0}}}]}"#;
        let routers = decode(DISAGGREGATED.as_bytes()).unwrap();
        let read =
            |of: &RouterPolicy<'_>| (of.component.to_string(), of.role, of.numbers.overlap_score_credit);
        let expected = [("prefill", Role::Prefill, 1.0), ("backend", Role::Decode, 0.0)]
            .map(|(component, role, credit)| (component.to_owned(), Some(role), Some(credit)));
        assert_eq!(routers.iter().map(read).collect::<Vec<_>>(), expected);
        assert_ne!(routers[0].router_id, routers[1].router_id);
    }

    /// `"configuration":null` is what 1.7.0.dev20261026 reports of `dynamo-two-tier-cost-fn`.
    #[test]
    fn what_is_not_reported_stays_unknown() {
        let body = br#"{"routers":[{"router_id":"a","worker_type":"encoder","configuration":{"parameters":
            {"router_temperature":0.5,"cache_threshold":0.5,"prefill_load_scale":null}}},{"router_id":"b","configuration":null}]}"#;
        let routers = decode(body).unwrap();
        let numbers = RouterNumbers { router_temperature: Some(0.5), ..RouterNumbers::default() };
        let [a, b] = &routers[..] else { panic!("two: {routers:?}") };
        assert_eq!((a.numbers, a.revision, a.role, &*a.model), (numbers, None, None, ""));
        assert!(b.numbers.is_empty());
    }

    #[test]
    fn half_a_list_is_no_list() {
        let reason = |body: &str| decode(body.as_bytes()).unwrap_err().reason;
        assert_eq!(reason(&CHANGED[..CHANGED.len() - 9]), Reason::Truncated);
        assert_eq!(reason(&CHANGED.replace("2.0", "\"2\"")), Reason::WrongType);
        assert_eq!(reason(&CHANGED.replace("\"revision\":1", "\"revision\":-1")), Reason::WrongType);
        assert_eq!(reason(r#"{"routers":[{"model":"m"}]}"#), Reason::MissingField);
        assert_eq!(reason(r#"{"error":"no"}"#), Reason::MissingField);
        let many = vec![r#"{"router_id":"a"}"#; MAX_ROUTERS + 1].join(",");
        assert_eq!(reason(&format!("{{\"routers\":[{many}]}}")), Reason::TooLarge);
    }
}
