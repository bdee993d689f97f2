//! The two choices for one request where prefill and decode are apart: which is which, and how long the KV cache was between
//! them. Pure.

use super::{Cluster, DecisionEntry};
use radixscope_model::record::Role;

/// Both choices for one request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestParts<'a> {
    /// Who computes the prompt.
    pub prefill: &'a DecisionEntry,
    /// Which worker generates the output.
    pub decode: &'a DecisionEntry,
}

impl RequestParts<'_> {
    /// From the end of the request on the prefill worker to its first token from the decode worker, in milliseconds; below 0
    /// where the token came first. `None`: one of both was not reported.
    pub fn transfer_gap_ms(&self) -> Option<i64> {
        let freed = i64::try_from(self.prefill.progress.ended_ms?.0).ok()?;
        let first_token = i64::try_from(self.decode.progress.first_token_ms?.0).ok()?;
        Some(first_token - freed)
    }
}

impl Cluster {
    /// Both choices for the request of `decided`, as far as they are kept. `None`: it has one, or the other is not kept any
    /// more, or which is which is not known.
    pub fn parts_of<'a>(&'a self, decided: &'a DecisionEntry) -> Option<RequestParts<'a>> {
        let other = self.decisions().get(decided.decision.other_part?)?;
        // Another router's profile says it, whatever pools its endpoints are in.
        let by_profile = |of: &DecisionEntry| Role::of(of.decision.scores.as_ref()?.profile.as_deref()?);
        let role = |of: &DecisionEntry| by_profile(of).or_else(|| Some(self.role(of.pool)?.0));
        match (role(decided), role(other)) {
            (Some(Role::Decode), _) | (_, Some(Role::Prefill)) => {
                Some(RequestParts { prefill: other, decode: decided })
            }
            (_, Some(Role::Decode)) | (Some(Role::Prefill), _) => {
                Some(RequestParts { prefill: decided, decode: other })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{DecisionId, Millis, Seq, Worker, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Progress, Record};

    use super::*;

    fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(at), record });
    }

    /// A worker in each of two pools, and a request that was placed in both.
    fn placed(components: [&'static str; 2]) -> Cluster {
        let mut cluster = Cluster::default();
        for (at, component) in (0..).zip(components) {
            let (worker, id) = (WorkerIx(at), Worker::new(u64::from(at) + 1, 0));
            fold(&mut cluster, 1_000, Record::new_worker(worker, id, "dynamo", component));
        }
        for (id, other) in [(1, 2), (2, 1)] {
            let worker = WorkerIx(id as u32 - 1);
            let mut decision = Decision::new(DecisionId(id), worker, DecisionSource::ActiveSequences);
            decision.other_part = Some(DecisionId(other));
            fold(&mut cluster, 1_000 + id, Record::Decision(Box::new(decision)));
        }
        cluster
    }

    fn progress(cluster: &mut Cluster, id: u64, progress: Progress) {
        fold(cluster, 2_000, Record::Progress { decision: DecisionId(id), progress: Box::new(progress) });
    }

    fn gap(cluster: &Cluster, id: u64) -> Option<i64> {
        let decided = cluster.decisions().get(DecisionId(id)).unwrap();
        let parts = cluster.parts_of(decided).unwrap();
        assert_eq!([parts.prefill, parts.decode].map(|part| part.decision.id.0), [1, 2]);
        parts.transfer_gap_ms()
    }

    #[test]
    fn the_gap_is_from_the_end_of_prefill_to_the_first_token_from_either_part() {
        let mut cluster = placed(["prefill", "backend"]);
        assert_eq!(gap(&cluster, 1), None, "nothing was reported");
        progress(&mut cluster, 1, Progress { ended_ms: Some(Millis(1_145)), ..Progress::default() });
        progress(&mut cluster, 2, Progress { first_token_ms: Some(Millis(1_158)), ..Progress::default() });
        assert_eq!([gap(&cluster, 1), gap(&cluster, 2)], [Some(13); 2]);
    }

    #[test]
    fn a_token_before_the_end_of_prefill_is_a_gap_below_0() {
        let mut cluster = placed(["prefill", "backend"]);
        progress(&mut cluster, 1, Progress { ended_ms: Some(Millis(1_145)), ..Progress::default() });
        progress(&mut cluster, 2, Progress { first_token_ms: Some(Millis(1_140)), ..Progress::default() });
        assert_eq!(gap(&cluster, 2), Some(-5));
    }

    #[test]
    fn without_roles_it_is_not_known_which_is_which() {
        let cluster = placed(["a", "b"]);
        let decided = cluster.decisions().get(DecisionId(1)).unwrap();
        assert_eq!(cluster.parts_of(decided), None);
    }
}
