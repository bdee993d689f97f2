//! Documents in one piece and in any others.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMITS: Limits = Limits { text_bytes: 40, piece_bytes: 400 };
const ITEMS: Array = Array { field: "\"items\"", depth: 1 };

/// All parts of what arrives in pieces.
fn parts(array: Option<Array>, pieces: &[&[u8]]) -> Vec<DocumentPart> {
    let mut splitter = Splitter::new(array, LIMITS);
    let mut all = Vec::new();
    for mut piece in pieces.iter().copied() {
        while let Some(part) = splitter.read(&mut piece) {
            all.push(part);
        }
    }
    all.extend(splitter.finish());
    all
}

fn text(part: &DocumentPart) -> (&str, Skipped) {
    let (DocumentPart::Element(piece) | DocumentPart::End(piece)) = part;
    (std::str::from_utf8(&piece.json).unwrap(), piece.left_out)
}

#[test]
fn a_list_comes_apart_into_its_elements_and_what_is_around_them() {
    let list = br#" {"items" : [ {"a":[1,2],"items":[3]},"x,]", 7 ],"more":{"items":[8]}} {"items":[]}"#;
    let all = parts(Some(ITEMS), &[list]);
    let texts: Vec<_> = all.iter().map(|part| text(part).0.trim_end()).collect();
    let around = r#"{"items" : [],"more":{"items":[8]}}"#;
    assert_eq!(texts, [r#"{"a":[1,2],"items":[3]}"#, r#""x,]""#, "7", around, r#"{"items":[]}"#]);
    assert!(matches!(
        all[..],
        [
            DocumentPart::Element(_),
            DocumentPart::Element(_),
            DocumentPart::Element(_),
            DocumentPart::End(_),
            DocumentPart::End(_)
        ]
    ));
}

#[test]
fn long_texts_and_long_elements_are_left_out_and_measured() {
    let long = "v".repeat(1_000);
    let list = json!({"items": [{"key": "a", "value": long}, {"key": "b", "n": (0..300).collect::<Vec<_>>()}, {"key": "c"}]});
    let list = list.to_string();
    let all = parts(Some(ITEMS), &[list.as_bytes()]);
    assert_eq!(text(&all[0]), (r#"{"key":"a","value":""}"#, Skipped::Texts));
    let DocumentPart::Element(first) = &all[0] else { panic!("{all:?}") };
    assert_eq!(first.bytes, 1_000 + r#"{"key":"a","value":""}"#.len() as u64);
    assert_eq!(text(&all[1]).1, Skipped::End);
    assert!(
        text(&all[1]).0.starts_with(r#"{"key":"b","n":[0,1,"#) && text(&all[1]).0.len() <= LIMITS.piece_bytes
    );
    assert_eq!(text(&all[2]), (r#"{"key":"c"}"#, Skipped::Nothing));
}

#[test]
fn an_element_that_has_begun_reports_what_it_is() {
    let mut splitter = Splitter::new(Some(ITEMS), LIMITS);
    let mut bytes = &br#"{"items":[{"kv":{"key":"a","value":"bcd"#[..];
    assert_eq!(splitter.read(&mut bytes), None);
    let piece = splitter.unfinished().unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&piece.json).unwrap(),
        json!({"kv": {"key": "a", "value": "bcd"}})
    );
    assert_eq!(splitter.document_bytes(), 39);
}

#[test]
fn a_line_that_breaks_off_ends_its_document() {
    let all = parts(None, &[b"{\"a\":\"b\n{\"c\":1}\n<html>\n\n"]);
    let texts: Vec<_> = all.iter().map(|part| text(part).0).collect();
    assert_eq!(texts, [r#"{"a":"b"#, r#"{"c":1}"#, "<html>"]);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Value::from),
        "[a-z\\[\\]{},\"\\\\ \u{e9}\n]{0,60}".prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("items|[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn where_the_bytes_break_changes_nothing(
        items in prop::collection::vec(value(), 0..5), around in value(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let document = json!({"a": around, "items": items, "z": 1}).to_string().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(document.len())).chain([0, document.len()]).collect();
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &document[pair[0]..pair[1]]).collect();
        let whole = parts(Some(ITEMS), &[&document]);
        prop_assert_eq!(&parts(Some(ITEMS), &pieces), &whole);
        let (end, elements) = whole.split_last().expect("an end");
        prop_assert_eq!(elements.len(), items.len());
        for (part, item) in elements.iter().zip(&items) {
            let (text, left_out) = text(part);
            prop_assert!(text.len() <= LIMITS.piece_bytes);
            match left_out {
                Skipped::Nothing => prop_assert_eq!(&serde_json::from_str::<Value>(text).unwrap(), item),
                Skipped::Texts => prop_assert!(serde_json::from_str::<Value>(text).is_ok(), "{}", text),
                Skipped::End => {}
            }
        }
        prop_assert!(matches!(end, DocumentPart::End(_)));
    }

    #[test]
    fn no_bytes_make_it_hold_more_than_it_may(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let mut splitter = Splitter::new(Some(ITEMS), LIMITS);
        let mut rest = &bytes[..];
        while splitter.read(&mut rest).is_some() {}
        prop_assert!(splitter.element.json.len() + splitter.around.json.len() <= 2 * LIMITS.piece_bytes);
    }
}
