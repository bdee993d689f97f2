//! Times as clients measured them: what reached them, with the network and whatever stands before the frontend. Pure.

use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_model::record::ClientMeasured;
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::Quantity;
use super::request_values::exact;

/// Percentiles of one quantity as clients measured it.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientTimes {
    /// Requests in the window.
    pub samples: u64,
    /// Median, 95th and 99th percentile; `None` without a sample.
    pub quantiles: Option<[Range; 3]>,
}

impl ClientTimes {
    /// Where it is from.
    pub const SOURCE: &'static str = "per request, as its client measured it";
}

/// Percentiles of what clients measured of requests that ended within `window_ms` before `until`, those of requests that are not known
/// here included. `None`: no result of a client has the quantity.
pub fn client(cluster: &Cluster, quantity: Quantity, until: Millis, window_ms: u64) -> Option<ClientTimes> {
    ended_within(values(cluster, quantity), until, window_ms)
}

/// Percentiles of those values whose request ended at its client within `window_ms` before `until`. `None`: there is no value at all.
fn ended_within(
    values: impl Iterator<Item = (Millis, f64)>,
    until: Millis,
    window_ms: u64,
) -> Option<ClientTimes> {
    let after = Millis(until.0.saturating_sub(window_ms));
    let (mut inside, mut is_known) = (Vec::new(), false);
    for (ended_ms, value) in values {
        is_known = true;
        if after < ended_ms && ended_ms <= until {
            inside.push(value);
        }
    }
    is_known.then(|| {
        let samples = inside.len() as u64;
        ClientTimes { samples, quantiles: exact(inside) }
    })
}

/// When each request ended that a client measured, and its value.
pub(super) fn values(cluster: &Cluster, quantity: Quantity) -> impl Iterator<Item = (Millis, f64)> {
    let joined = cluster.decisions().newest_first().filter_map(|entry| entry.client.as_ref());
    let all = joined.chain(cluster.clients().unknown_newest_first());
    all.filter_map(move |measured| Some((measured.ended_ms, value(quantity, measured)?)))
}

/// In milliseconds.
fn value(quantity: Quantity, measured: &ClientMeasured) -> Option<f64> {
    let us = match quantity {
        Quantity::Ttft => measured.ttft_us,
        Quantity::Tpot => measured.itl_us,
        Quantity::EndToEnd => measured.duration_us,
        Quantity::InputTokens | Quantity::OutputTokens | Quantity::RouterOverhead => None,
    };
    us.map(|us| us as f64 / 1_000.0)
}

/// The time to first token of a request on both sides, in milliseconds: as its client measured it, and as its frontend did.
/// `None`: no client's is known.
pub fn ttft_on_both_sides(entry: &DecisionEntry) -> Option<(f64, Option<f64>)> {
    let client = value(Quantity::Ttft, entry.client.as_ref()?)?;
    let frontend = entry.time_to_first_token_ms().filter(|(_, is_measured)| *is_measured);
    Some((client, frontend.map(|(ms, _)| ms)))
}

/// What was between client and frontend: the times to first token on both sides, subtracted request by request, of those that
/// ended at the client within `window_ms` before `until`. `None`: not known of any request.
pub fn ttft_before_frontend(cluster: &Cluster, until: Millis, window_ms: u64) -> Option<ClientTimes> {
    let differences =
        cluster.decisions().newest_first().filter_map(|entry| match ttft_on_both_sides(entry)? {
            (client, Some(frontend)) => Some((entry.client?.ended_ms, client - frontend)),
            (_, None) => None,
        });
    ended_within(differences, until, window_ms)
}

/// The difference in one line, as far as both sides are known. `None`: no client's time is known.
pub fn ttft_difference(entry: &DecisionEntry) -> Option<String> {
    let text = |ms| Quantity::Ttft.to_text(ms);
    Some(match ttft_on_both_sides(entry)? {
        (client, Some(frontend)) if client >= frontend => format!(
            "{} at the client, {} at the frontend: {} are the network, the client and what waits before the frontend",
            text(client),
            text(frontend),
            text(client - frontend)
        ),
        (client, Some(frontend)) => format!(
            "{} at the client, {} at the frontend: the two do not measure the same first token",
            text(client),
            text(frontend)
        ),
        (client, None) => {
            format!(
                "{} at the client; the frontend's own is not reported, so the difference is unknown",
                text(client)
            )
        }
    })
}
