//! The two choices of a request where prefill and decode are apart.

use super::slots::HitRate;
use super::{RequestBook, RequestPart};
use radixscope_model::id::{DecisionId, PoolIx};
use radixscope_model::micros::Micros;

/// Longest time from the choice of the prefill worker to that of the decode worker, by the router's clock: measured, some
/// 5 ms where the prefill router does not wait for the prefill.
pub(super) const PAIRED_WITHIN_MS: u64 = 100;
/// Choices that may be one of two of a request that no message names: as many as a router makes in that time.
const MAX_UNPAIRED: usize = 256;

impl RequestBook {
    /// The other choice for the request of a part: where prefill and decode are apart, a request has two.
    pub(in crate::routing) fn other(&self, id: DecisionId) -> Option<&RequestPart> {
        let request = self.requests.get(self.parts.get(&id)?)?;
        let own = request.parts.iter().find(|part| part.id == id)?;
        let has_chain = |part: &RequestPart| part.slots.sequence.as_ref().map(|of| of.full_blocks.is_some());
        let others = || request.parts.iter().filter(|part| part.id != id);
        let completes =
            |part: &&RequestPart| matches!((has_chain(own), has_chain(part)), (Some(a), Some(b)) if a != b);
        others().find(completes).or_else(|| others().next()).or_else(|| self.part(own.paired?))
    }

    /// Links two choices whose messages name no request (`kv-hit-rate` of a disaggregated 0.8 or 0.9): the router chooses a decode
    /// worker some milliseconds after the prefill worker, for a prompt of the same length. Only what can be about one request
    /// alone is linked.
    pub(in crate::routing) fn pair(&mut self, id: DecisionId, is_decode: bool) {
        if !is_decode {
            if !self.unpaired.contains(&id) {
                if self.unpaired.len() == MAX_UNPAIRED {
                    self.unpaired.pop_front();
                }
                self.unpaired.push_back(id);
            }
            return;
        }
        let Some(decode) = self.part(id).filter(|part| part.paired.is_none()) else { return };
        let Some(HitRate { time, isl_blocks, .. }) = decode.slots.hit_rate else { return };
        let at = time.at.millis();
        let chosen = |id: &DecisionId| self.part(*id)?.slots.hit_rate;
        let fits = |id: &DecisionId| {
            chosen(id).is_some_and(|of| {
                let chosen_ms = of.time.at.millis();
                of.isl_blocks == isl_blocks && chosen_ms <= at && at.since(chosen_ms) <= PAIRED_WITHIN_MS
            })
        };
        let fitting: Vec<DecisionId> = self.unpaired.iter().copied().filter(fits).collect();
        // Which belongs to which is ambiguous where there are several, so none of them is matched later.
        self.unpaired.retain(|id| !fitting.contains(id));
        if let [prefill] = fitting[..] {
            for (one, other) in [(prefill, id), (id, prefill)] {
                if let Some(part) = self.change(one) {
                    part.paired = Some(other);
                }
            }
        }
    }

    /// Links choices whose messages name no request, once it is known what their pools do, in the order of their times.
    pub(in crate::routing) fn pair_all(&mut self, is_decode: impl Fn(PoolIx) -> Option<bool>) {
        let all = self.requests.values().flat_map(|request| &request.parts);
        let chosen = all.filter(|part| part.paired.is_none()).filter_map(|part| {
            let at = part.slots.hit_rate?.time.at;
            Some((at, part.id, is_decode(part.pool)?))
        });
        let mut chosen: Vec<(Micros, DecisionId, bool)> = chosen.collect();
        chosen.sort_unstable();
        for (_, id, is_decode) in chosen {
            self.pair(id, is_decode);
        }
    }
}
