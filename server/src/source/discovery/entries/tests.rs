//! What is handed over, what is skipped, and that the budget holds whatever is put.

use proptest::prelude::*;

use super::*;

fn found(key: &str, value: impl Into<Bytes>) -> Found {
    let value: Bytes = value.into();
    Found { key: key.into(), value: EntryValue::of(value.len(), || value.clone()), lease: None }
}

fn is_changed(put: &Put) -> bool {
    matches!(put, Put::Changed(_))
}

const A: &str = "v1/mdc/n/b/generate/a";
const B: &str = "v1/mdc/n/b/generate/b";
const C: &str = "v1/mdc/n/b/generate/c";

#[test]
fn only_what_changed_is_handed_over() {
    let mut entries = Entries::new(None);
    entries.begin_pass();
    assert!(is_changed(&entries.put(found(A, "1"))) && is_changed(&entries.put(found(B, "1"))));
    assert_eq!(entries.end_pass(), Vec::<String>::new());
    entries.begin_pass();
    assert_eq!(entries.put(found(A, "1")), Put::Nothing);
    assert!(is_changed(&entries.put(found(C, "1"))));
    assert_eq!(entries.end_pass(), [B]);
    assert!(is_changed(&entries.put(found(A, "2"))));
    assert!(entries.end(A) && !entries.end(A));
    assert_eq!((entries.len(), entries.remarks()), (1, String::new()));
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
        assert_eq!(is_changed(&entries.put(found(key, "{}"))), is_read, "{key}");
    }
    assert_eq!(entries.remarks(), "");
}

#[test]
fn a_key_that_is_skipped_is_named_and_counted_once() {
    let mut entries = Entries::new(None);
    let large = vec![b'x'; 1_400_000];
    for key in [B, A, C] {
        assert!(matches!(entries.put(found(key, large.clone())), Put::Skipped(_)));
        assert_eq!(entries.put(found(key, large.clone())), Put::Nothing);
    }
    assert_eq!(
        entries.remarks(),
        " 3 keys skipped, the first: v1/mdc/n/b/generate/a (1.4 MB, more than 64 KiB)."
    );
    // It fits now, it is gone, it is in no list any more.
    assert!(is_changed(&entries.put(found(A, "1"))));
    assert!(!entries.end(B));
    assert_eq!(entries.remarks(), " 1 key skipped.");
    entries.begin_pass();
    entries.put(found(A, "1"));
    assert_eq!((entries.end_pass(), entries.remarks()), (vec![], String::new()));
    // What was followed stays as it was while what it is now does not fit.
    assert!(matches!(entries.put(found(A, large)), Put::Skipped(_)));
    assert_eq!((entries.len(), entries.end(A)), (1, true));
    let long = format!("v1/mdc/n/{}", "k".repeat(MAX_KEY_BYTES));
    entries.put(found(&long, "1"));
    assert!(entries.remarks().contains("a key of 1.03 kB, more than 1 KiB"), "{}", entries.remarks());
    assert!(entries.remarks().len() < 200, "{}", entries.remarks());
}

#[test]
fn what_found_no_room_may_be_put_again_once_there_is_some() {
    let mut entries = Entries::new(None);
    let key = |n: usize| format!("v1/mdc/n/b/generate/{n:06x}");
    for n in 0..MAX_ENTRIES {
        assert!(is_changed(&entries.put(found(&key(n), "1"))));
    }
    assert!(matches!(entries.put(found(&key(MAX_ENTRIES), "1")), Put::Skipped(_)));
    assert!(is_changed(&entries.put(found(&key(0), "2"))), "one that is followed changes as ever");
    assert!(entries.remarks().contains("beyond 40,000 entries or 24 MiB"), "{}", entries.remarks());
    assert!(!entries.take_room());
    entries.end(&key(7));
    assert!(entries.take_room() && !entries.take_room());
    assert!(is_changed(&entries.put(found(&key(MAX_ENTRIES), "1"))));
    assert_eq!(entries.remarks(), "");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_those_of_what_is_followed_and_within_the_budget(
        steps in prop::collection::vec((0..700u16, 0..5usize), 0..900),
    ) {
        let mut entries = Entries::new(None);
        let value = Bytes::from(vec![b'x'; MAX_VALUE_BYTES + 1]);
        for (key, size) in steps {
            let key = format!("v1/mdc/n/b/generate/{key}");
            match size {
                0 => drop(entries.end(&key)),
                size => drop(entries.put(found(&key, value.slice(..(size * MAX_VALUE_BYTES / 4 + size / 4))))),
            }
            prop_assert!(entries.bytes <= MAX_HELD_BYTES);
        }
        prop_assert_eq!(entries.bytes, entries.followed.values().map(|followed| followed.bytes).sum::<usize>());
        let keys: Vec<String> = entries.followed.keys().cloned().collect();
        for key in keys {
            entries.end(&key);
        }
        prop_assert_eq!(entries.bytes, 0);
    }
}
