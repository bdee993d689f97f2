//! The entries that were handed over last: so that only what changed is handed over, also after a new list.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use radixscope_dynamo::discovery::namespace_of;
use radixscope_intake::{MAX_PAYLOAD_BYTES, Payload};

/// Most entries that are followed: ten for each of ten thousand workers.
pub(super) const MAX_ENTRIES: usize = 100_000;

/// An entry as the store has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// As in etcd, `v1/mdc/…`.
    pub(crate) key: String,
    /// JSON.
    pub(crate) value: Bytes,
    /// The lease that it lives by.
    pub(crate) lease: Option<u64>,
}

/// Whether an entry is read: of Dynamo's kinds, and of the namespace that was asked for.
pub(super) fn is_in(namespace: Option<&str>, key: &str) -> bool {
    namespace_of(key).is_some_and(|of| namespace.is_none_or(|namespace| namespace == of))
}

/// Keys handed over, with a sum over what they held.
pub(super) struct Entries {
    namespace: Option<String>,
    held: BTreeMap<String, u64>,
}

impl Entries {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self { namespace, held: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// An entry is so now. `None`: it was before, or it is not read.
    pub(super) fn put(&mut self, entry: Entry) -> Option<Payload> {
        let Entry { key, value, lease } = entry;
        if !is_in(self.namespace.as_deref(), &key) || value.len() > MAX_PAYLOAD_BYTES {
            return None;
        }
        let sum = xxh3_64(&value) ^ lease.unwrap_or(0);
        match self.held.get(&key) {
            Some(known) if *known == sum => return None,
            None if self.held.len() == MAX_ENTRIES => return None,
            _ => drop(self.held.insert(key.clone(), sum)),
        }
        Some(Payload::Discovery { key: key.into(), value: Some(value), lease })
    }

    /// An entry is gone. `None`: it was not there.
    pub(super) fn end(&mut self, key: &str) -> Option<Payload> {
        self.held.remove(key)?;
        Some(Payload::Discovery { key: key.into(), value: None, lease: None })
    }

    /// What changes if these are all: what came or is other first, so that nobody who moved seems to be gone meanwhile.
    pub(super) fn replace(&mut self, all: Vec<Entry>) -> Vec<Payload> {
        let keys: BTreeSet<String> = all.iter().map(|entry| entry.key.clone()).collect();
        let gone: Vec<String> = self.held.keys().filter(|key| !keys.contains(*key)).cloned().collect();
        let ended: Vec<Payload> = gone.iter().filter_map(|key| self.end(key)).collect();
        let mut changes: Vec<Payload> = all.into_iter().filter_map(|entry| self.put(entry)).collect();
        changes.extend(ended);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry { key: key.into(), value: value.to_owned().into(), lease: None }
    }

    fn said(changes: &[Payload]) -> Vec<(&str, Option<&[u8]>)> {
        let each = changes.iter().map(|change| match change {
            Payload::Discovery { key, value, .. } => (&**key, value.as_deref()),
            other => panic!("{other:?}"),
        });
        each.collect()
    }

    #[test]
    fn only_what_changed_is_handed_over() {
        let (a, b, c) = ("v1/mdc/n/b/generate/a", "v1/mdc/n/b/generate/b", "v1/mdc/n/b/generate/c");
        let mut entries = Entries::new(None);
        assert_eq!(entries.replace(vec![entry(a, "1"), entry(b, "1")]).len(), 2);
        let changes = entries.replace(vec![entry(a, "1"), entry(c, "1")]);
        assert_eq!(said(&changes), [(c, Some(&b"1"[..])), (b, None)]);
        assert_eq!(entries.put(entry(a, "1")), None);
        assert!(entries.put(entry(a, "2")).is_some());
        assert!(entries.end(a).is_some());
        assert_eq!(entries.end(a), None);
        assert_eq!(entries.len(), 1);
    }

    #[test]
    fn what_is_not_dynamos_or_of_another_namespace_is_not_read() {
        let mut entries = Entries::new(Some("mine".into()));
        for (key, is_read) in [
            ("v1/mdc/mine/b/generate/1", true),
            ("v1/event_channels/namespace/mine/topic/kv_metrics/1", true),
            ("v1/mdc/other/b/generate/1", false),
            ("v1/locks/mine", false),
            ("registry/pods/x", false),
        ] {
            assert_eq!(entries.put(entry(key, "{}")).is_some(), is_read, "{key}");
        }
    }
}
