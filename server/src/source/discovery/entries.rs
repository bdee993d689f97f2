//! The entries that are followed, within one budget for every store: so that only what changed is handed over, also after a new
//! list, and what does not fit is counted and named. Holds keys and sums, no values.

use std::collections::BTreeMap;

use bytes::Bytes;
use radixscope_model::number_format::count;
use xxhash_rust::xxh3::xxh3_64;

use radixscope_dynamo::discovery::namespace_of;
use radixscope_dynamo::error::{DecodeError, Reason};

use super::budget::{MAX_ENTRIES, MAX_HELD_BYTES, MAX_KEY_BYTES, MAX_SKIPPED, MAX_VALUE_BYTES, bound, size};

/// Most characters of a key that are shown.
const SHOWN_CHARS: usize = 80;

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

/// An entry as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) key: String,
    pub(super) value: EntryValue,
    pub(super) lease: Option<u64>,
}

/// A value, if it is no longer than one may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum EntryValue {
    Read(Bytes),
    TooLarge { bytes: u64 },
}

impl EntryValue {
    /// `read` is called only for a value that is not too long.
    pub(super) fn of(bytes: usize, read: impl FnOnce() -> Bytes) -> Self {
        if bytes > MAX_VALUE_BYTES { Self::TooLarge { bytes: bytes as u64 } } else { Self::Read(read()) }
    }
}

/// Why an entry is not followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    LongKey(usize),
    TooLarge(u64),
    /// There are as many as may be, or they are as large.
    NoRoom,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::LongKey(bytes) => {
                write!(f, "a key of {}, more than {}", size(bytes as u64), bound(MAX_KEY_BYTES))
            }
            Self::TooLarge(bytes) => write!(f, "{}, more than {}", size(bytes), bound(MAX_VALUE_BYTES)),
            Self::NoRoom => {
                write!(f, "beyond {} entries or {}", count(MAX_ENTRIES as u64), bound(MAX_HELD_BYTES))
            }
        }
    }
}

/// What becomes of an entry.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Put {
    /// It is new or other.
    Changed(Entry),
    /// It is as before, or of another namespace, or none of Dynamo's.
    Nothing,
    /// It is not followed, and was not known before.
    Skipped(DecodeError),
}

/// See the module.
pub(super) struct Entries {
    namespace: Option<String>,
    followed: BTreeMap<String, Followed>,
    /// Of the keys and values that are followed.
    bytes: usize,
    /// Keys that are not followed, by a sum over the key.
    skipped: BTreeMap<u64, Skipped>,
    /// The first of them in the order of keys, and why, as shown.
    first: Option<(u64, String)>,
    /// There are more than are held.
    skipped_more: bool,
    /// There was no room for an entry, and now there may be.
    has_room_again: bool,
    /// Number of the list that is being read.
    pass: u32,
}

struct Followed {
    sum: u64,
    bytes: usize,
    pass: u32,
}

struct Skipped {
    why: Why,
    pass: u32,
}

impl Entries {
    /// `namespace`: the one to follow; all otherwise.
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self {
            namespace,
            followed: BTreeMap::new(),
            bytes: 0,
            skipped: BTreeMap::new(),
            first: None,
            skipped_more: false,
            has_room_again: false,
            pass: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.followed.len()
    }

    /// Whether an entry is to be followed: of Dynamo's kinds, and of the namespace that was named.
    pub(super) fn wants(&self, key: &str) -> bool {
        wants(self.namespace.as_deref(), key)
    }

    /// An entry is so now. One that is followed already stays as it was if what it is now does not fit.
    pub(super) fn put(&mut self, found: Found) -> Put {
        let Found { key, value, lease } = found;
        if !self.wants(&key) {
            return Put::Nothing;
        }
        let known = self.followed.get_mut(&key).map(|known| {
            known.pass = self.pass;
            (known.sum, known.bytes)
        });
        let value = match value {
            EntryValue::TooLarge { bytes } => return self.skip(&key, Why::TooLarge(bytes)),
            EntryValue::Read(value) => value,
        };
        let bytes = key.len() + value.len();
        let (sum, held) = (xxh3_64(&value) ^ lease.unwrap_or(0), known.map_or(0, |(_, held)| held));
        if known.is_some_and(|(known, _)| known == sum) {
            self.unskip(&key);
            return Put::Nothing;
        }
        if key.len() > MAX_KEY_BYTES {
            return self.skip(&key, Why::LongKey(key.len()));
        }
        let is_full = known.is_none() && self.followed.len() >= MAX_ENTRIES;
        if is_full || self.bytes - held + bytes > MAX_HELD_BYTES {
            return self.skip(&key, Why::NoRoom);
        }
        self.unskip(&key);
        self.bytes = self.bytes - held + bytes;
        self.followed.insert(key.clone(), Followed { sum, bytes, pass: self.pass });
        Put::Changed(Entry { key, value, lease })
    }

    /// An entry is gone. `false`: it was not followed.
    pub(super) fn end(&mut self, key: &str) -> bool {
        self.unskip(key);
        let Some(ended) = self.followed.remove(key) else { return false };
        self.bytes -= ended.bytes;
        self.has_room_again |= self.skipped.values().any(|skip| skip.why == Why::NoRoom);
        true
    }

    /// A list of all entries begins; each that is there is put.
    pub(super) fn begin_pass(&mut self) {
        self.pass = self.pass.wrapping_add(1);
        self.skipped_more = false;
    }

    /// The list is complete: what it did not have is gone. The keys of those that were followed.
    pub(super) fn end_pass(&mut self) -> Vec<String> {
        let pass = self.pass;
        let removed = self.followed.iter().filter(|(_, followed)| followed.pass != pass);
        let removed: Vec<String> = removed.map(|(key, _)| key.clone()).collect();
        for key in &removed {
            self.end(key);
        }
        self.skipped.retain(|_, skip| skip.pass == pass);
        if self.first.as_ref().is_some_and(|(sum, _)| !self.skipped.contains_key(sum)) {
            self.first = None;
        }
        removed
    }

    /// Whether entries for which there was no room may be put again; `true` once.
    pub(super) fn take_room(&mut self) -> bool {
        std::mem::take(&mut self.has_room_again)
    }

    /// What is not followed, in words; "" if there is nothing.
    pub(super) fn remarks(&self) -> String {
        let first = self.first.as_ref().map_or(String::new(), |(_, shown)| format!(", the first: {shown}"));
        match (self.skipped.len(), self.skipped_more) {
            (0, _) => String::new(),
            (1, false) => format!(" 1 key skipped{}.", first.replacen(", the first", "", 1)),
            (keys, false) => format!(" {} keys skipped{first}.", count(keys as u64)),
            (keys, true) => format!(" More than {} keys skipped{first}.", count(keys as u64)),
        }
    }

    fn skip(&mut self, key: &str, why: Why) -> Put {
        let sum = xxh3_64(key.as_bytes());
        let is_full = self.skipped.len() == MAX_SKIPPED;
        match self.skipped.get_mut(&sum) {
            Some(known) => {
                known.pass = self.pass;
                if std::mem::replace(&mut known.why, why) == why {
                    return Put::Nothing;
                }
            }
            None if is_full => {
                self.skipped_more = true;
                return Put::Nothing;
            }
            None => drop(self.skipped.insert(sum, Skipped { why, pass: self.pass })),
        }
        let shown = format!("{} ({why})", shown(key));
        let error = DecodeError::new(Reason::TooLarge, format!("discovery: {shown}"));
        if self.first.as_ref().is_none_or(|(first, text)| *first == sum || shown < *text) {
            self.first = Some((sum, shown));
        }
        Put::Skipped(error)
    }

    fn unskip(&mut self, key: &str) {
        if self.skipped.is_empty() {
            return;
        }
        let sum = xxh3_64(key.as_bytes());
        if self.skipped.remove(&sum).is_none() {
            return;
        }
        if self.first.as_ref().is_some_and(|(first, _)| *first == sum) {
            self.first = None;
        }
        // Those beyond can be counted now.
        self.has_room_again |= std::mem::take(&mut self.skipped_more);
    }
}

/// See [`Entries::wants`].
pub(super) fn wants(namespace: Option<&str>, key: &str) -> bool {
    namespace_of(key).is_some_and(|of| namespace.is_none_or(|namespace| namespace == of))
}

/// A key as it is shown: others may have chosen it.
fn shown(key: &str) -> String {
    let mut shown: String =
        key.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
