//! Requests by their ids: the router's, and those of the HTTP spans around them. Lines with both make them one.

use super::bounds::MAX_REQUESTS;
use super::{JoinedRequest, RequestBook, RequestIx, RequestWay, Session};
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::micros::Micros;

/// Pools that one request is routed in: prefill and decode, with one to spare; and ids of HTTP spans of it.
pub(super) const MAX_PARTS: usize = 3;
/// Choices of one request whose costs a trace has: a request that is tried again has more than one a pool.
pub(super) const MAX_TRACED_COSTS: usize = 8;

impl RequestBook {
    /// The parts of a request that is known by either id.
    pub(in crate::routing) fn parts_of(
        &mut self,
        request_id: Option<&str>,
        http_id: Option<&str>,
    ) -> Vec<DecisionId> {
        let ix = self.find_request(request_id, http_id);
        let request = ix.and_then(|ix| self.requests.get(&ix));
        request.map_or_else(Vec::new, |request| request.parts.iter().map(|part| part.id).collect())
    }

    /// The router's id of the request in an HTTP span.
    pub(in crate::routing) fn request_in(&self, http_id: &str) -> Option<&str> {
        self.requests.get(self.by_http.get(http_id)?)?.request_id.as_deref()
    }

    /// When the frontend received a request, by its log.
    pub(in crate::routing) fn arrival_of(&self, request_id: &str) -> Option<Micros> {
        self.requests.get(self.by_request.get(request_id)?)?.way.arrived
    }

    /// Both ids are of one request.
    pub(in crate::routing) fn same(&mut self, request_id: &str, http_id: &str, received_ms: Millis) {
        self.request(Some(request_id), Some(http_id), received_ms);
    }

    /// The request with these ids. Ids that were known apart become one.
    pub(super) fn find_request(
        &mut self,
        request_id: Option<&str>,
        http_id: Option<&str>,
    ) -> Option<RequestIx> {
        let by_request = request_id.and_then(|id| self.by_request.get(id).copied());
        // A client may send the same id twice: it then stands for the latest request.
        let is_other = |ix: &RequestIx| {
            let known = self.requests.get(ix).and_then(|request| request.request_id.as_deref());
            request_id.is_some() && known.is_some() && known != request_id
        };
        let by_http = http_id.and_then(|id| self.by_http.get(id).copied()).filter(|ix| !is_other(ix));
        let found = match (by_request, by_http) {
            (Some(named), Some(spanned)) if named != spanned => {
                self.merge(spanned, named);
                named
            }
            (named, spanned) => named.or(spanned)?,
        };
        self.set_ids(found, request_id, http_id);
        Some(found)
    }

    /// The same, begun if there is none.
    pub(super) fn request(
        &mut self,
        request_id: Option<&str>,
        http_id: Option<&str>,
        received_ms: Millis,
    ) -> RequestIx {
        if let Some(known) = self.find_request(request_id, http_id) {
            return known;
        }
        while self.requests.len() >= MAX_REQUESTS {
            let Some(&oldest) = self.requests.keys().next() else { break };
            self.remove(oldest);
        }
        let ix = self.next;
        self.next += 1;
        let request = JoinedRequest {
            request_id: None,
            http_ids: Vec::new(),
            parts: Vec::new(),
            completed: None,
            session: None,
            client: None,
            is_client_recorded: false,
            trace_id: None,
            traced_costs: Vec::new(),
            way: RequestWay::default(),
            steps: Vec::new(),
            received_ms,
            due: None,
        };
        self.requests.insert(ix, request);
        self.set_ids(ix, request_id, http_id);
        self.schedule(ix);
        ix
    }

    fn set_ids(&mut self, ix: RequestIx, request_id: Option<&str>, http_id: Option<&str>) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        if let Some(id) = request_id.filter(|_| request.request_id.is_none()) {
            request.request_id = Some(id.into());
            self.by_request.insert(id.into(), ix);
            let parts = request.parts.iter().map(|part| part.id);
            self.changed.extend(parts);
        }
        if let Some(id) = http_id {
            let is_known = request.http_ids.iter().any(|known| **known == *id);
            if !is_known && request.http_ids.len() < MAX_PARTS {
                request.http_ids.push(id.into());
            }
            if is_known || request.http_ids.last().is_some_and(|last| **last == *id) {
                self.by_http.insert(id.into(), ix);
            }
        }
    }

    /// From now on a part is of the request with these ids.
    pub(super) fn name(
        &mut self,
        id: DecisionId,
        request_id: Option<&str>,
        http_id: Option<&str>,
        received_ms: Millis,
    ) {
        let Some(&own) = self.parts.get(&id) else { return };
        match self.find_request(request_id, http_id) {
            Some(named) if named != own => self.merge(own, named),
            Some(_) => {}
            None => {
                let is_named = self.requests.get(&own).is_some_and(|r| r.request_id.is_some());
                if is_named && request_id.is_some() {
                    self.request(request_id, http_id, received_ms);
                } else {
                    self.set_ids(own, request_id, http_id);
                }
            }
        }
    }

    /// Two places are of one request.
    fn merge(&mut self, from: RequestIx, to: RequestIx) {
        let Some(mut removed) = self.requests.remove(&from) else { return };
        if let Some(due) = removed.due {
            self.due.remove(&(due, from));
        }
        if let Some(id) = removed.request_id.take()
            && self.by_request.get(&*id) == Some(&from)
        {
            self.by_request.remove(&*id);
        }
        for id in std::mem::take(&mut removed.http_ids) {
            if self.by_http.get(&*id) == Some(&from) {
                self.by_http.remove(&*id);
                self.set_ids(to, None, Some(&id));
            }
        }
        if let Some(request) = self.requests.get_mut(&to) {
            request.completed = request.completed.or(removed.completed);
            if let Some(session) = removed.session {
                Session::join(&mut request.session, session);
            }
            request.way.add(removed.way);
            request.trace_id = request.trace_id.take().or(removed.trace_id);
            request.is_client_recorded |= removed.is_client_recorded;
            request.client = request.client.or(removed.client);
            let room = MAX_TRACED_COSTS.saturating_sub(request.traced_costs.len());
            request.traced_costs.extend(removed.traced_costs.into_iter().take(room));
            request.steps.append(&mut removed.steps);
        }
        for part in removed.parts {
            self.parts.remove(&part.id);
            self.add_part(to, part);
        }
        self.schedule(to);
    }

    pub(super) fn remove(&mut self, ix: RequestIx) {
        let Some(request) = self.requests.remove(&ix) else { return };
        if let Some(due) = request.due {
            self.due.remove(&(due, ix));
        }
        self.without_choice.extend(request.client.filter(|_| request.parts.is_empty()));
        if let Some(id) = request.request_id.filter(|id| self.by_request.get(&**id) == Some(&ix)) {
            self.by_request.remove(&*id);
        }
        for id in request.http_ids {
            if self.by_http.get(&*id) == Some(&ix) {
                self.by_http.remove(&*id);
            }
        }
        for mut part in request.parts {
            self.parts.remove(&part.id);
            self.changed.remove(&part.id);
            self.unindex(part.id, (part.worker, part.begun));
            self.prompt_blocks -= part.drop_prompt();
        }
    }
}
