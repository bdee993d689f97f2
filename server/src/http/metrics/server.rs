//! Metrics of the server itself: queue, viewers, connections, and messages and losses of its sources.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use radixscope_model::record::{LinkState, Topic};
use radixscope_state::cluster::{ProcessState, SourceState};

use super::{Families, labels};
use crate::http::access::FailedLogins;
use crate::http::api::Readers;
use crate::http::listen::ConnectionSlots;
use crate::hub::{Refusals, SourceTraffic, View, ViewerCounts};
use crate::recording::StoredStatus;

const STATES: [LinkState; 6] = [
    LinkState::Connecting,
    LinkState::CatchingUp,
    LinkState::Live,
    LinkState::Partial,
    LinkState::Refused,
    LinkState::Ended,
];

impl Families {
    pub(super) fn of_server(&mut self, view: &View<'_>, viewers: &ViewerCounts) {
        let stats = view.stats;
        let build = labels([("version", env!("CARGO_PKG_VERSION"))]);
        self.gauges("build_info", "Version of the server", [(build, 1.0)]);
        self.gauge("uptime_seconds", "Time since the server started", stats.started.elapsed().as_secs_f64());
        self.gauge("queue_messages", "Messages queued for decoding", stats.queued_messages as f64);
        self.gauge("queue_bytes", "Bytes of messages queued for decoding", stats.queued_bytes as f64);
        let most = stats.queue_limits;
        self.gauge("queue_limit_messages", "Maximum of queued messages", most.messages as f64);
        self.gauge("queue_limit_bytes", "Maximum of queued bytes", most.bytes as f64);
        if let Some(lag) = stats.fold_lag {
            let help = "Longest time from a message's arrival to its fold, in the last second with messages";
            self.gauge("fold_lag_seconds", help, lag.as_secs_f64());
        }
        self.counter("records", "Records folded", view.cluster.seq().0);
        self.counter("batches", "Batches published", stats.batches);
        let help = "Bytes of recent batches retained for viewers that reconnect";
        self.gauge("log_bytes", help, stats.log_bytes as f64);
        if let Some(retained) = view.history() {
            self.gauge("history_bytes", "Bytes of the history in memory", retained.bytes as f64);
            let most = "Maximum bytes of the history in memory";
            self.gauge("history_limit_bytes", most, retained.max_bytes as f64);
            if let Some(from) = retained.from_ms {
                let help = "Start of the history in memory, Unix time";
                self.gauge("history_from_timestamp_seconds", help, from.0 as f64 / 1_000.0);
            }
        }
        if let Some(recording) = view.recording() {
            self.gauge("recording_bytes", "Bytes of the retained recordings", recording.bytes as f64);
            let help = "1 while the recording can be written, else 0";
            self.gauge("recording_up", help, f64::from(u8::from(recording.error.is_none())));
            let help = "Gaps in the recording";
            self.counter("recording_gaps", help, recording.gaps);
            if let Some(since) = recording.since_ms {
                let help = "Start of the retained recordings, Unix time";
                self.gauge("recording_since_timestamp_seconds", help, since.0 as f64 / 1_000.0);
            }
            if let Some(stored) = &recording.stored {
                self.of_stored(stored);
            }
        }
        self.gauge("viewers", "Viewers connected", viewers.now.load(Ordering::Relaxed) as f64);
        let total = viewers.total.load(Ordering::Relaxed);
        self.counter("viewers_connected", "Viewers connected since the start", total);
        let help = "Times a viewer fell behind and got a new snapshot";
        self.counter("viewer_resyncs", help, viewers.resyncs.load(Ordering::Relaxed));
        let help = "Records not sent to viewers that fell behind";
        self.counter("viewer_skipped_records", help, viewers.skipped_records.load(Ordering::Relaxed));
    }

    fn of_stored(&mut self, stored: &StoredStatus) {
        self.counter("recording_stored_objects", "Objects stored in the bucket", stored.objects);
        self.counter("recording_stored_bytes", "Bytes stored in the bucket", stored.bytes);
        if let Some(until) = stored.until_ms {
            let help = "Until when the recording is in the bucket, Unix time";
            self.gauge("recording_stored_until_timestamp_seconds", help, until.0 as f64 / 1_000.0);
        }
        let help = "Finished files that wait to be stored in the bucket";
        self.gauge("recording_waiting_files", help, stored.waiting_files as f64);
        let help = "Bytes of the finished files that wait to be stored in the bucket";
        self.gauge("recording_waiting_bytes", help, stored.waiting_bytes as f64);
        let help = "Files deleted from the buffer before they were stored, because it was full";
        self.counter("recording_lost_files", help, stored.lost_files);
        self.counter("recording_lost_bytes", "Bytes of recording_lost_files", stored.lost_bytes);
    }

    pub(in crate::http) fn of_connections(&mut self, slots: &ConnectionSlots) {
        self.gauge("connections", "Connections open, viewers and others", slots.len() as f64);
        self.gauge("connections_limit", "Maximum simultaneous connections", slots.most() as f64);
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let help = "Idle connections closed for others";
        self.counter("connections_evicted", help, counted(&slots.evicted));
        let help = "Former name of connections_evicted";
        self.counter("connections_gave_way", help, counted(&slots.evicted));
        let help = "Connections refused because all allowed ones were in use";
        self.counter("connections_refused", help, counted(&slots.refused));
        let help = "Failed accepts";
        self.counter("connections_not_accepted", help, counted(&slots.not_accepted));
    }

    pub(in crate::http) fn of_logins(&mut self, logins: &FailedLogins) {
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.counter("failed_logins", "Requests with a wrong access token", counted(&logins.total));
        let help = "Of failed_logins, those without a response, because too many responses to their address are delayed";
        self.counter("failed_logins_unanswered", help, counted(&logins.unanswered));
    }

    pub(super) fn of_readers(&mut self, readers: &Readers) {
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.gauge("recording_readers", "Recordings and reports being downloaded", readers.len() as f64);
        let help = "Downloads of recordings and reports that were closed for others because their clients read too slowly";
        self.counter("recording_readers_evicted", help, counted(&readers.evicted));
        let help = "Former name of recording_readers_evicted";
        self.counter("recording_readers_gave_way", help, counted(&readers.evicted));
    }

    pub(super) fn of_refusals(&mut self, refusals: &Refusals) {
        let counts = refusals.list().into_iter();
        let refused = counts.map(|of| (labels([("what", of.what), ("why", of.why)]), of.count));
        let help = "Requests not sent and responses not read because the target or origin is not Dynamo's";
        self.counters("refused", help, refused);
    }

    pub(super) fn of_sources(&mut self, view: &View<'_>) {
        let sources = || view.cluster.sources().iter();
        let name = |source: &SourceState| labels([("source", &source.name)]);
        let by = |count: fn(&SourceTraffic) -> u64| {
            sources().zip(&view.stats.sources).map(move |(source, stats)| (name(source), count(stats)))
        };
        self.counters("ingest_messages", "Messages decoded", by(|s| s.messages));
        self.counters("ingest_bytes", "Payload bytes decoded", by(|s| s.bytes));
        self.counters("ingest_records", "Records from decoded messages", by(|s| s.records));
        let states = sources().flat_map(|source| {
            STATES.map(|state| {
                let labels = labels([("source", &source.name), ("state", state.as_str())]);
                (labels, f64::from(u8::from(source.state == state)))
            })
        });
        self.gauges("source_state", "1 for the current state of the source", states);
        let is_up = |state| matches!(state, LinkState::Live | LinkState::Ended);
        let up = sources().map(|source| (name(source), f64::from(u8::from(is_up(source.state)))));
        let help = "1 while the source is connected and current, or has ended as a recording does; else 0";
        self.gauges("source_up", help, up);
        let lags = sources().filter_map(|source| Some((name(source), source.lag_ms? as f64 / 1_000.0)));
        let help = "Arrival minus publication time of the slowest recent message; includes clock skew";
        self.gauges("source_lag_seconds", help, lags);
        let missed = |again| {
            let each = sources().flat_map(|source| source.missed.iter().map(move |missed| (source, missed)));
            each.filter(move |(_, missed)| missed.cause.counts_again() == again)
        };
        let by_cause = missed(false).map(|(source, missed)| {
            let (topic, cause) = (missed.topic.as_str(), missed.cause.as_str());
            (labels([("source", &source.name), ("topic", topic), ("cause", cause)]), missed.count)
        });
        let help = "Lost messages, each under one cause; a lower bound where ingest_missed_at_least is 1";
        self.counters("ingest_missed", help, by_cause);
        let bounds = sources().flat_map(|source| {
            let topics: BTreeSet<Topic> = source.topics_with_losses().collect();
            topics.into_iter().map(move |topic| {
                let of = labels([("source", &source.name), ("topic", topic.as_str())]);
                (of, f64::from(u8::from(source.is_topic_at_least(topic))))
            })
        });
        let help = "1 where more messages may be lost than ingest_missed counts, because a connection was lost while workers joined or left, \
                     or a cause is a lower bound; else 0";
        self.gauges("ingest_missed_at_least", help, bounds);
        let events = missed(true).map(|(source, missed)| {
            (labels([("source", &source.name), ("topic", missed.topic.as_str())]), missed.count)
        });
        let recovered = missed(false).filter(|(_, missed)| missed.recovered > 0).map(|(source, missed)| {
            let (topic, cause) = (missed.topic.as_str(), missed.cause.as_str());
            (labels([("source", &source.name), ("topic", topic), ("cause", cause)]), missed.recovered)
        });
        let help = "Of ingest_missed, those recovered by queries to workers";
        self.counters("ingest_recovered", help, recovered);
        let help = "Events in lost messages, from the workers' event ids; the messages are in ingest_missed";
        self.counters("ingest_missed_events", help, events);
        let gaps = sources().flat_map(|source| {
            let of = |topic: &str| labels([("source", &source.name), ("topic", topic)]);
            source.unknown_gaps().map(move |gaps| (of(gaps.topic.as_str()), gaps.count as f64))
        });
        let help = "Connection losses with an unknown number of messages lost, which are in no other count";
        self.gauges("ingest_unknown_gaps", help, gaps);
        let rejected = sources().flat_map(|source| {
            source.rejected.iter().map(|rejected| {
                let (topic, reason) = (rejected.topic.as_str(), rejected.reason.as_str());
                (labels([("source", &source.name), ("topic", topic), ("reason", reason)]), rejected.count)
            })
        });
        self.counters("ingest_rejected", "Invalid inputs", rejected);
    }

    pub(super) fn of_processes(&mut self, view: &View<'_>) {
        let processes = || view.cluster.processes().iter();
        let name = |p: &ProcessState| labels([("process", &p.name), ("role", p.role.as_str())]);
        let ages = processes().map(|p| (name(p), view.at_ms.since(p.last_ms) as f64 / 1_000.0));
        self.gauges("process_scrape_age_seconds", "Time since its last successful scrape", ages);
        let restarts = processes().map(|p| (name(p), p.restarts.into()));
        self.counters("process_restarts", "Observed restarts", restarts);
    }
}
