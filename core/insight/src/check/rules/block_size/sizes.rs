//! The sizes on the three sides as far as they are known, each with where it was read.

use super::super::prelude::*;
use super::form::{Diagnosis, MismatchKind};
use radixscope_model::record::LogSignal;
use radixscope_state::cluster::BlockSizeSource;
use std::borrow::Cow;

/// Tokens per block; `None`: unknown.
pub(super) struct Sizes {
    pub(super) engine: Option<u32>,
    pub(super) publisher: Option<u32>,
    pub(super) router: Option<u32>,
    engine_from: &'static str,
    publisher_from: &'static str,
    router_from: &'static str,
    /// Sizes of cards, where they differ.
    cards: Option<String>,
}

impl Sizes {
    pub(super) fn of(view: &View<'_>, diagnosis: &Diagnosis) -> Self {
        let (router, router_from) = match router_size(view, diagnosis) {
            Some((size, from)) => (Some(size), from),
            None => (None, "not reported by any card, metric or decision"),
        };
        let mut sizes = Self {
            engine: None,
            publisher: router,
            router,
            engine_from: "not sent by Dynamo; in the worker's log",
            publisher_from: "assumed to be the router's, because a worker registers the size it publishes with",
            router_from,
            cards: None,
        };
        if router.is_none() {
            sizes.publisher_from = "not reported by any log";
        }
        if let Some((publisher, engine)) = logged(view) {
            (sizes.publisher, sizes.publisher_from) = (Some(publisher), "by the worker's log");
            (sizes.engine, sizes.engine_from) = (Some(engine), "by the worker's log");
        }
        if diagnosis.form == MismatchKind::Router && sizes.engine.is_none() {
            let estimate =
                diagnosis.engine_per_router.zip(router).map(|(ratio, c)| (f64::from(c) * ratio) as u32);
            sizes.engine = estimate;
            sizes.engine_from = if estimate.is_some() {
                "an estimate: the longest prompts against the longest stored chains, rounded to a power of two"
            } else {
                "not sent by Dynamo; in the engine's configuration"
            };
            (sizes.publisher, sizes.publisher_from) =
                (estimate, "the engine's, because its events are complete");
        }
        if diagnosis.form == MismatchKind::Cards {
            let mut known: Vec<u32> =
                diagnosis.workers.iter().filter_map(|&w| view.worker(w)?.block_size_tokens).collect();
            known.sort_unstable();
            known.dedup();
            sizes.cards = Some(known.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
        }
        sizes
    }

    /// Engine and publisher with their sizes, as far as they are known.
    pub(super) fn sides(&self) -> String {
        match self.engine.zip(self.publisher) {
            Some((engine, publisher)) if engine != publisher => {
                format!("engine uses {engine}-token blocks, publisher {publisher}")
            }
            _ => "block sizes of engine and publisher differ".to_owned(),
        }
    }

    pub(super) fn evidence(&self, found: Finding) -> Finding {
        let row = |found: Finding, side: &str, size: Option<u32>, from: &str| {
            let value = size.map_or(Cow::Borrowed("unknown"), |size| Cow::Owned(size.to_string()));
            let unit = if size.is_some() { "tokens per block" } else { "" };
            found.evidence(format!("{side}, {from}"), value, unit)
        };
        if let Some(cards) = &self.cards {
            return found.evidence("Sizes registered (C), by the model cards", cards, "tokens per block");
        }
        let found = row(found, "Engine's size (E)", self.engine, self.engine_from);
        let found = row(found, "Publisher's size (P)", self.publisher, self.publisher_from);
        row(found, "Router's size (C)", self.router, self.router_from)
    }
}

/// What a worker's log reports of publisher and engine.
pub(super) fn logged(view: &View<'_>) -> Option<(u32, u32)> {
    view.cluster.signs().iter().rev().find_map(|state| match state.sign {
        LogSignal::PublisherSize { publisher, engine } | LogSignal::Oversize { publisher, engine } => {
            Some((publisher, engine))
        }
        _ => None,
    })
}

/// Tokens per block that the router uses, and where that was read.
fn router_size(view: &View<'_>, diagnosis: &Diagnosis) -> Option<(u32, &'static str)> {
    let size = diagnosis.workers.iter().find_map(|&worker| view.cluster.block_size(worker))?;
    let from = match size.source {
        BlockSizeSource::Events => "by the engine's KV events",
        BlockSizeSource::ModelCard => "by the worker's model card",
        BlockSizeSource::Frontend => "by the frontend's metrics",
        BlockSizeSource::Requests | BlockSizeSource::ComponentRequests => "by the router's decisions",
        BlockSizeSource::Component => "by the model cards of its component",
    };
    Some((size.value, from))
}
