//! Names and ids replaced by pseudonyms: in a record, and in the state that records lead to. The fold of replaced records onto
//! a replaced state is the replaced state, because nothing in the fold depends on what is replaced here. Hashes of blocks,
//! components, models, times and figures stay. How a pseudonym is made is not known here.

use std::borrow::Cow;

use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{
    Decision, EngineFeed, Entry, Finding, IndexerReport, PolicyClasses, Record, RouterRef, RuleStatus,
    Scrape, SettingsSource,
};

/// Makes pseudonyms: the same for the same.
pub trait Pseudonyms {
    /// Of the id of a worker, of a router or of an instance.
    fn number(&mut self, id: u64) -> u64;
    /// Of a name of some kind.
    fn name(&mut self, kind: &str, name: &str) -> String;
    /// A text with what is known to be a name replaced in it.
    fn text(&mut self, text: &str) -> String;
    /// Free text, which may name anything: left out here and wherever another text repeats it.
    fn leave_out(&mut self, text: &str);
}

/// Of a name that may be empty where nothing is known.
pub(crate) fn name(kind: &str, name: &str, names: &mut dyn Pseudonyms) -> String {
    if name.is_empty() { String::new() } else { names.name(kind, name) }
}

/// Who a worker is.
pub fn worker(id: Worker, names: &mut dyn Pseudonyms) -> Worker {
    Worker { id: WorkerId(names.number(id.id.0)), ..id }
}

/// The texts of a finding.
pub(crate) fn finding(finding: &mut Finding, names: &mut dyn Pseudonyms) {
    let mut say = |text: &mut Cow<'static, str>| *text = names.text(text).into();
    say(&mut finding.title);
    say(&mut finding.explanation);
    for evidence in &mut finding.evidence {
        say(&mut evidence.label);
        say(&mut evidence.value);
    }
    for fix in &mut finding.fix {
        say(&mut fix.text);
        say(&mut fix.value);
    }
}

pub(crate) fn rule(status: &mut RuleStatus, names: &mut dyn Pseudonyms) {
    status.missing = names.text(&status.missing).into();
    if let Some(pending) = &mut status.pending {
        pending.title = names.text(&pending.title).into();
    }
}

/// Whose settings a source reports.
pub(crate) fn router_ref(source: SettingsSource, of: &mut RouterRef, names: &mut dyn Pseudonyms) {
    let kind = match source {
        // The frontend has the name of its metrics, which texts name too.
        SettingsSource::PolicyEndpoint => "process",
        SettingsSource::Log | SettingsSource::StartUpLog => "log",
        SettingsSource::ModelCard => "card",
        SettingsSource::PolicyFile | SettingsSource::Default => "file",
    };
    of.reporter = name(kind, &of.reporter, names);
    of.router = name("router", &of.router, names);
    of.namespace = name("namespace", &of.namespace, names);
}

/// A publisher of an engine. Texts about it may name anything.
pub(crate) fn engine(feed: &mut EngineFeed, names: &mut dyn Pseudonyms) {
    feed.name = name("engine", &feed.name, names);
    for text in [&mut feed.detail, &mut feed.rejected_sample] {
        names.leave_out(text);
        text.clear();
    }
}

/// A standalone indexer. Where it listens to workers is where they are.
pub(crate) fn indexer(report: &mut IndexerReport, names: &mut dyn Pseudonyms) {
    report.name = name("indexer", &report.name, names);
    for of in &mut report.workers {
        of.instance_id = names.number(of.instance_id);
        of.endpoint = name("engine", &of.endpoint, names);
        names.leave_out(&of.status);
        of.status.clear();
    }
}

/// Names of classes are those of a configuration, as components are: they stay.
pub(crate) fn policy_classes(of: &mut PolicyClasses, names: &mut dyn Pseudonyms) {
    of.process = name("process", &of.process, names);
}

pub(crate) fn decision(decision: &mut Decision, names: &mut dyn Pseudonyms) {
    decision.router = decision.router.map(|router| names.number(router));
    decision.request_id = decision.request_id.as_deref().map(|id| name("request", id, names));
    decision.session = decision.session.as_deref().map(|session| name("session", session, names));
    decision.trace_id = decision.trace_id.as_deref().map(|trace| name("trace", trace, names));
    decision.adapter = decision.adapter.as_deref().map(|adapter| name("adapter", adapter, names));
}

/// A record with pseudonyms.
pub fn entry<'a>(entry: &Entry<'a>, names: &mut dyn Pseudonyms) -> Entry<'a> {
    let mut redacted = entry.clone();
    match &mut redacted.record {
        Record::Source { name: of, kind, .. } => *of = name(kind.as_str(), of, names).into(),
        Record::SourceState { detail, .. } | Record::QueryState { detail, .. } => {
            names.leave_out(detail);
            *detail = Cow::Borrowed("");
        }
        Record::Rejected { sample, .. } => {
            names.leave_out(sample);
            *sample = Cow::Borrowed("");
        }
        Record::Worker(identity) => {
            identity.id = worker(identity.id, names);
            identity.namespace = name("namespace", &identity.namespace, names).into();
        }
        Record::RouterLoad { router, .. } => *router = router.map(|router| names.number(router)),
        Record::Decision(of) => decision(of, names),
        Record::Scrape(scrape) => {
            let Scrape { process, instance, .. } = &mut **scrape;
            *process = name("process", process, names);
            *instance = instance.map(|instance| names.number(instance));
        }
        Record::Finding(of) => finding(of, names),
        Record::Checked(rules) => rules.iter_mut().for_each(|status| rule(status, names)),
        Record::Settings(reported) => router_ref(reported.source, &mut reported.of, names),
        Record::PolicyClasses(of) => policy_classes(of, names),
        Record::EngineFeed(feed) => engine(feed, names),
        Record::Indexer(report) => indexer(report, names),
        Record::Endpoint { name: of, .. } => *of = name("endpoint", of, names).into(),
        _ => {}
    }
    redacted
}
