//! Entries of discovery: workers with their component and role before their first message, their cards, and who
//! left, at once. What concerns event channels and queries is handed on.

use std::borrow::Cow;

use super::discovered::Presence;
use super::interner::ranks_of;
use super::scrape::ranks_or_first;
use super::{Context, Ingest, Sink, within_bounds};
use radixscope_dynamo::discovery::{self, DiscoveryEntry, MAX_ENTRIES, ModelCard, plain_key};
use radixscope_dynamo::error::{DecodeError, Reason};
use radixscope_model::id::Worker;
use radixscope_model::record::{
    DepartureCause, Record, ReportedSettings, RoleEvidence, RouterRef, SettingsSource,
};

/// Data-parallel ranks taken from one model card; a card that claims more is believed so far.
const MAX_RANKS: u32 = 256;

impl Ingest {
    /// Takes an entry as it is now, or its end.
    pub(super) fn discovery(
        &mut self,
        context: &Context<'_>,
        key: &str,
        value: Option<&[u8]>,
        lease: Option<u64>,
        out: &mut dyn Sink,
    ) -> Result<(), DecodeError> {
        let key = &*plain_key(key);
        let Some(value) = value else {
            let change = self.discovered.end(key);
            self.attach.vanished(key);
            self.presence(context, change, out);
            return Ok(());
        };
        within_bounds(value)?;
        let entry = discovery::decode(key, value)?;
        self.discovered.came(context.received.at_ms);
        let change = self.discovered.put(key, &entry, lease).map_err(|()| {
            DecodeError::new(Reason::TooLarge, format!("discovery: more than {MAX_ENTRIES} entries"))
        })?;
        self.attach.discovered(key, &entry, lease);
        match &entry {
            DiscoveryEntry::Instance(of) if of.is_worker() => {
                self.real_names.learn(&of.namespace);
                let context = context.of_component(&of.namespace, &of.component);
                for rank in ranks_or_first(of.instance_id, out.cluster()) {
                    self.worker(&context, rank, out);
                }
            }
            DiscoveryEntry::ModelCard(card) => self.model_card(context, card, out),
            DiscoveryEntry::EventSource(source) => {
                let context = context.of_component(&source.subject.namespace, &source.subject.component);
                source.worker.and_then(|worker| self.worker(&context, worker, out));
            }
            DiscoveryEntry::Instance(_) | DiscoveryEntry::EventChannel(_) | DiscoveryEntry::Other => {}
        }
        self.presence(context, change, out);
        Ok(())
    }

    fn presence(&mut self, context: &Context<'_>, change: Option<Presence>, out: &mut dyn Sink) {
        let (id, has_left) = match change {
            None => return,
            Some(Presence::Came(id)) => (id, false),
            Some(Presence::Left(id)) => (id, true),
        };
        for (_, worker) in ranks_of(id, out.cluster()) {
            out.record(context.entry(match has_left {
                true => Record::Left { worker, why: DepartureCause::Discovery },
                false => Record::Rejoined { worker },
            }));
        }
    }

    /// Settings that workers advertise for the router of their component. All of them have the same card.
    fn router_of_card(&mut self, context: &Context<'_>, card: &ModelCard, out: &mut dyn Sink) {
        let source = SettingsSource::ModelCard;
        let of = RouterRef {
            namespace: card.namespace.clone(),
            component: card.component.clone(),
            role: card.role(),
            ..RouterRef::default()
        };
        let known = out.cluster().settings().iter().find(|state| state.source == source && state.of == of);
        let known = known.filter(|state| state.left_ms.is_none());
        if known.map(|state| state.latest.numbers) == card.router {
            return;
        }
        let (after_ms, by_ms) = (known.map(|state| state.latest.by_ms), context.received.at_ms);
        let news = ReportedSettings { source, of, revision: None, numbers: card.router, after_ms, by_ms };
        out.record(context.entry(Record::Settings(Box::new(news))));
    }

    fn model_card(&mut self, context: &Context<'_>, card: &ModelCard, out: &mut dyn Sink) {
        self.real_names.learn(&card.namespace);
        let context = context.of_component(&card.namespace, &card.component);
        if card.adapter.is_none() {
            self.router_of_card(&context, card, out);
        }
        let first = card.runtime.data_parallel_start_rank.unwrap_or(0);
        let ranks = card.runtime.data_parallel_size.unwrap_or(1).clamp(1, MAX_RANKS);
        for rank in first..first.saturating_add(ranks) {
            if let Some(worker) = self.worker(&context, Worker::new(card.instance_id.0, rank), out) {
                let record = Record::ModelCard {
                    worker,
                    total_kv_blocks: card.runtime.total_kv_blocks,
                    block_size_tokens: card.block_size_tokens,
                    publishes_events: card.runtime.kv_event_publishing_enabled,
                };
                out.record(context.entry(record));
                if let Some(role) = card.role() {
                    self.role(&context, worker, role, RoleEvidence::Card, out);
                }
                if !card.display_name.is_empty() && card.adapter.is_none() {
                    let name = Cow::Borrowed(card.display_name.as_str());
                    out.record(context.entry(Record::Model { worker, name }));
                }
            }
        }
    }
}
