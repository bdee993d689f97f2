//! What clients measured, joined with the requests by the ids that the clients gave them. Dynamo's messages name requests by the
//! router's ids: the frontend's log, and traces that have it, tell which id of a client is which. Either may come first, so both wait
//! for the other. Bounded; what waits too long, or has no id, is of no request that is known.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::Millis;
use radixscope_model::record::{ClientMeasured, MAX_CLIENT_ID_BYTES};

/// Ids of clients remembered, and results that wait: as many as requests are remembered.
const MAX_CLIENT_IDS: usize = 1 << 16;
/// So long a result waits for its request: a frontend's log is read within a second of its end, one of hours within this.
const WAIT_MS: u64 = 60_000;

/// Ids of a request in Dynamo: the router's and that of the HTTP span around it.
type RequestIds = (Option<Box<str>>, Option<Box<str>>);

/// Ids of clients and what they measured, as far as one waits for the other.
#[derive(Default)]
pub(super) struct Clients {
    requests: HashMap<Box<str>, RequestIds>,
    named: VecDeque<Box<str>>,
    waiting: HashMap<Box<str>, ClientMeasured>,
    /// In which order they came, and when.
    received: VecDeque<(Millis, Box<str>)>,
    unknown: Vec<ClientMeasured>,
}

impl Clients {
    /// The client's id of a request becomes known. Gives the result that waited for it. Ids longer than a client's may be are of no
    /// request.
    pub(super) fn name(
        &mut self,
        client_id: &str,
        (router, http): (Option<&str>, Option<&str>),
    ) -> Option<ClientMeasured> {
        let mut ids = [Some(client_id), router, http].into_iter().flatten();
        if (router.is_none() && http.is_none())
            || ids.any(|id| id.len() > MAX_CLIENT_ID_BYTES)
            || self.requests.get(client_id).is_some_and(|(known, _)| known.is_some() || router.is_none())
        {
            return None;
        }
        let ids = (router.map(Box::from), http.map(Box::from));
        if self.requests.insert(client_id.into(), ids).is_none() {
            self.named.push_back(client_id.into());
        }
        if self.named.len() > MAX_CLIENT_IDS
            && let Some(oldest) = self.named.pop_front()
        {
            self.requests.remove(&oldest);
        }
        self.waiting.remove(client_id)
    }

    /// A result. Gives the ids of its request if they are known; else it waits for them.
    pub(super) fn measured(
        &mut self,
        client_id: Option<&str>,
        measured: ClientMeasured,
        received_ms: Millis,
    ) -> Option<&RequestIds> {
        let Some(client_id) = client_id else {
            self.unknown.push(measured);
            return None;
        };
        if !self.requests.contains_key(client_id) {
            if self.waiting.insert(client_id.into(), measured).is_none() {
                self.received.push_back((received_ms, client_id.into()));
            }
            while self.received.len() > MAX_CLIENT_IDS {
                self.give_up();
            }
        }
        self.requests.get(client_id)
    }

    /// Results of no request that became known since the last call.
    pub(super) fn take_unknown(&mut self, now: Millis) -> Vec<ClientMeasured> {
        while self.received.front().is_some_and(|(at, _)| now.since(*at) > WAIT_MS) {
            self.give_up();
        }
        std::mem::take(&mut self.unknown)
    }

    fn give_up(&mut self) {
        let oldest = self.received.pop_front();
        self.unknown.extend(oldest.and_then(|(_, id)| self.waiting.remove(&id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::record::Outcome;

    #[test]
    fn ids_that_are_too_long_are_not_retained() {
        let measured = ClientMeasured {
            sent_ms: Millis(1),
            ended_ms: Millis(2),
            ttft_us: None,
            itl_us: None,
            duration_us: None,
            outcome: Outcome::Success,
            status: None,
            output_tokens: None,
        };
        let mut clients = Clients::default();
        assert_eq!(clients.measured(Some("c"), measured, Millis(3)), None);
        let long = "r".repeat(MAX_CLIENT_ID_BYTES + 1);
        assert_eq!(clients.name("c", (Some(&long), None)), None);
        assert_eq!(clients.name("c", (None, Some(&long))), None);
        assert_eq!(clients.name(&long, (Some("r"), None)), None);
        assert!(clients.requests.is_empty() && clients.named.is_empty());
        let longest = &long[1..];
        assert_eq!(clients.name("c", (Some(longest), None)), Some(measured));
    }
}
