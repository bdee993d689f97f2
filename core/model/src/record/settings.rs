//! What routers run with, as a source reports it: numbers by Dynamo's own names, each only as far as it is reported. Must not know
//! what the numbers do, or what applies where nothing is reported.

use serde::{Deserialize, Serialize, Serializer};

use super::Role;
use crate::id::Millis;

/// Where the settings of a router are known from, the most exact source first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum SettingsSource {
    /// `GET /router_policy` of a frontend (from 1.7): what the router runs with now.
    PolicyEndpoint,
    /// Lines of a frontend's log: the factor with which a choice was computed (up to 1.5).
    Log,
    /// The file of `--router-policy-config`, as it was given to us with `--policy`.
    PolicyFile,
    /// Nothing reports it: Dynamo's default. Never in a record.
    Default,
    /// `router_config` of the workers' model cards (from 1.6): workers that advertise settings of their router override the frontend's.
    ModelCard,
    /// Lines of a frontend's log about its start (from 1.6): what it was started with.
    StartUpLog,
}

str_names! {
    /// Name in the API.
    SettingsSource {
        PolicyEndpoint => "router_policy", Log => "log", PolicyFile => "policy_file", Default => "default",
        ModelCard => "model_card", StartUpLog => "start_up_log",
    }
}

impl SettingsSource {
    /// In words, for a list.
    pub const fn label(self) -> &'static str {
        match self {
            Self::PolicyEndpoint => "/router_policy",
            Self::Log => "log",
            Self::PolicyFile => "--policy file",
            Self::Default => "default",
            Self::ModelCard => "model card",
            Self::StartUpLog => "start-up log",
        }
    }
}

/// The numbers of a router, by Dynamo's names. `None`: not reported.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each is the option of its name, which `radixscope_router::numbers` describes"
)]
pub struct RouterNumbers {
    pub overlap_score_weight: Option<f64>,
    pub prefill_load_scale: Option<f64>,
    pub overlap_score_credit: Option<f64>,
    pub overlap_score_credit_decay: Option<f64>,
    pub host_cache_hit_weight: Option<f64>,
    pub disk_cache_hit_weight: Option<f64>,
    pub shared_cache_multiplier: Option<f64>,
    pub decode_active_request_weight: Option<f64>,
    pub router_temperature: Option<f64>,
}

impl RouterNumbers {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, Option<f64>); 9] {
        [
            ("overlap_score_weight", self.overlap_score_weight),
            ("prefill_load_scale", self.prefill_load_scale),
            ("overlap_score_credit", self.overlap_score_credit),
            ("overlap_score_credit_decay", self.overlap_score_credit_decay),
            ("host_cache_hit_weight", self.host_cache_hit_weight),
            ("disk_cache_hit_weight", self.disk_cache_hit_weight),
            ("shared_cache_multiplier", self.shared_cache_multiplier),
            ("decode_active_request_weight", self.decode_active_request_weight),
            ("router_temperature", self.router_temperature),
        ]
    }

    /// These, and where one is not reported that of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            overlap_score_weight: self.overlap_score_weight.or(other.overlap_score_weight),
            prefill_load_scale: self.prefill_load_scale.or(other.prefill_load_scale),
            overlap_score_credit: self.overlap_score_credit.or(other.overlap_score_credit),
            overlap_score_credit_decay: self.overlap_score_credit_decay.or(other.overlap_score_credit_decay),
            host_cache_hit_weight: self.host_cache_hit_weight.or(other.host_cache_hit_weight),
            disk_cache_hit_weight: self.disk_cache_hit_weight.or(other.disk_cache_hit_weight),
            shared_cache_multiplier: self.shared_cache_multiplier.or(other.shared_cache_multiplier),
            decode_active_request_weight: self
                .decode_active_request_weight
                .or(other.decode_active_request_weight),
            router_temperature: self.router_temperature.or(other.router_temperature),
        }
    }

    /// Whether no number is reported.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whose settings they are. What the source does not name is empty, and agrees with any.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct RouterRef {
    /// Who reports them: a frontend as the operator named it, the name of a log, or of a file.
    pub reporter: String,
    /// The router's id, as `/router_policy` names it. It is not the id of the router's messages.
    pub router: String,
    /// The model.
    pub model: String,
    /// The Dynamo namespace of the workers that it chooses among.
    pub namespace: String,
    /// Their component.
    pub component: String,
    /// What they do.
    pub role: Option<Role>,
}

/// What a router runs with, as one source reports it. A later one of the same source and router replaces it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReportedSettings {
    /// Where it is known from.
    pub source: SettingsSource,
    /// Whose settings.
    pub of: RouterRef,
    /// How many times they were changed while the router ran; `None`: not reported.
    pub revision: Option<u64>,
    /// The settings; `None`: the source no longer lists this router.
    pub numbers: Option<RouterNumbers>,
    /// The last time that the source reported other settings of this router: they changed after it. `None`: it reported none.
    pub after_ms: Option<Millis>,
    /// The first time that it reported these: they applied by then.
    pub by_ms: Millis,
}
