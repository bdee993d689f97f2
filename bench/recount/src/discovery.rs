//! What a deployment's discovery held: which workers there are, in which pools, and what their model cards say they do.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::files;

/// What the workers of a pool do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Role {
    /// Prefill and decode.
    #[default]
    Aggregated,
    /// Prefill for the workers of another pool.
    Prefill,
    /// Decode of what others prefilled.
    Decode,
}

impl Role {
    /// As Dynamo names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// A worker's model card.
#[derive(Clone, Debug)]
pub struct Card {
    /// `NAMESPACE/COMPONENT`.
    pub pool: String,
    /// What it says of its worker, if it does.
    role: Option<Role>,
    /// Its model.
    model: String,
    /// Whether it was there to the last.
    pub is_there: bool,
}

/// Every card that ever was there.
#[derive(Default, Debug)]
pub struct Discovery {
    /// By the worker's id.
    pub cards: BTreeMap<u64, Card>,
}

impl Discovery {
    /// Reads what was noted of discovery, once or more often.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let mut discovery = Self::default();
        for line in files::lines(path)? {
            let noted: Value = serde_json::from_str(&line).context("a note of discovery")?;
            discovery.note(&noted);
        }
        Ok(discovery)
    }

    /// One note.
    #[cfg(test)]
    pub(crate) fn of(noted: &Value) -> Self {
        let mut discovery = Self::default();
        discovery.note(noted);
        discovery
    }

    fn note(&mut self, noted: &Value) {
        let Some(entries) = noted["kvs"].as_array().or_else(|| noted["discovery"]["kvs"].as_array()) else {
            return;
        };
        self.cards.values_mut().for_each(|card| card.is_there = false);
        for entry in entries {
            if let Some((worker, card)) = card(entry) {
                self.cards.insert(worker, card);
            }
        }
    }

    /// What the workers of a pool do. Where another pool of the namespace prefills for the same model, a pool whose
    /// cards say nothing decodes.
    pub fn role(&self, pool: &str) -> Role {
        let of_pool = || self.cards.values().filter(|card| card.pool == pool);
        if let Some(role) = of_pool().find_map(|card| card.role) {
            return role;
        }
        let is_prefill = |card: &Card| {
            let is_beside = namespace(&card.pool) == namespace(pool) && card.pool != pool;
            let is_same = of_pool().any(|own| own.model == card.model);
            is_beside && is_same && card.role == Some(Role::Prefill)
        };
        if self.cards.values().any(is_prefill) { Role::Decode } else { Role::Aggregated }
    }

    /// Whether any pool only prefills.
    pub fn is_apart(&self) -> bool {
        self.cards.values().any(|card| self.role(&card.pool) == Role::Prefill)
    }
}

fn namespace(pool: &str) -> &str {
    pool.split('/').next().unwrap_or_default()
}

/// Keys and values are base64 as etcd gives them, or plain.
fn card(entry: &Value) -> Option<(u64, Card)> {
    let plain = |text: &str| {
        if text.starts_with("v1/") {
            return text.to_owned();
        }
        let decoded = BASE64_STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        decoded.unwrap_or_else(|| text.to_owned())
    };
    let key = plain(entry["key"].as_str()?);
    let value = match &entry["value"] {
        Value::String(text) => serde_json::from_str(&plain(text)).ok()?,
        value => value.clone(),
    };
    let mut parts = key.strip_prefix("v1/mdc/")?.split('/');
    let (namespace, component) = (parts.next()?, parts.next()?);
    let card = &value["card_json"];
    let role = match (card["worker_type"].as_str(), card["model_type"].as_str()) {
        (Some("prefill"), _) | (None, Some("Prefill")) => Some(Role::Prefill),
        (Some("decode"), _) => Some(Role::Decode),
        (Some(_), _) => Some(Role::Aggregated),
        (None, _) => None,
    };
    let card = Card {
        pool: format!("{namespace}/{component}"),
        role,
        model: card["display_name"].as_str().unwrap_or_default().to_owned(),
        is_there: true,
    };
    Some((value["instance_id"].as_u64()?, card))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(component: &str, id: u64, card: &Value) -> Value {
        json!({"key": format!("v1/mdc/dynamo/{component}/generate/{id:x}"), "value": {"instance_id": id, "card_json": card}})
    }

    #[test]
    fn a_pool_beside_one_that_prefills_decodes() {
        let mut discovery = Discovery::default();
        let prefill = entry("prefill", 1, &json!({"display_name": "m", "model_type": "Prefill"}));
        let decode = entry("backend", 2, &json!({"display_name": "m", "model_type": "Chat | Completions"}));
        let other = entry("backend2", 3, &json!({"display_name": "n", "model_type": "Chat | Completions"}));
        discovery.note(&json!({"kvs": [prefill, decode, other]}));
        let roles = ["dynamo/prefill", "dynamo/backend", "dynamo/backend2"].map(|pool| discovery.role(pool));
        assert_eq!(roles, [Role::Prefill, Role::Decode, Role::Aggregated]);
        assert!(discovery.is_apart());
    }

    #[test]
    fn a_card_in_etcds_form_is_read_and_one_that_went_is_no_longer_there() {
        let mut discovery = Discovery::default();
        let plain = entry("prefill", 1, &json!({"display_name": "m", "worker_type": "prefill"}));
        let base64 = |text: String| BASE64_STANDARD.encode(text);
        let coded = json!({"key": base64(plain["key"].as_str().unwrap().to_owned()), "value": base64(plain["value"].to_string())});
        discovery.note(&json!({"discovery": {"kvs": [coded]}}));
        assert!(discovery.cards[&1].is_there && discovery.is_apart());
        discovery.note(&json!({"discovery": {"kvs": []}}));
        assert!(!discovery.cards[&1].is_there);
    }
}
