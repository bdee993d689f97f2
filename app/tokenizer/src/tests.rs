mod fixtures;

use super::*;

/// The smallest that the library builds.
fn tokenizer_json(extra: &str) -> String {
    format!(
        r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[
            {{"id":3,"content":"<end>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}}],
            "normalizer":{{"type":"Sequence","normalizers":[{{"type":"NFC"}},{{"type":"Lowercase"}}]}},
            "pre_tokenizer":{{"type":"Whitespace"}},"post_processor":null,"decoder":null{extra},
            "model":{{"type":"WordLevel","vocab":{{"[unk]":0,"a":1,"b":2}},"unk_token":"[unk]"}}}}"#
    )
}

fn error(file: &str) -> String {
    Loaded::read(file.as_bytes()).unwrap_err()
}

fn text(text: &str) -> Text {
    Text { text: text.to_owned(), add_special_tokens: false }
}

#[test]
fn a_file_says_what_it_is_made_of() {
    let (loaded, summary) = Loaded::read(tokenizer_json("").as_bytes()).unwrap();
    assert_eq!(summary.model, "WordLevel");
    assert_eq!(summary.vocabulary_tokens, 4);
    assert_eq!(summary.normalizer.as_deref(), Some("NFC + Lowercase"));
    assert_eq!(summary.pre_tokenizer.as_deref(), Some("Whitespace"));
    assert_eq!(summary.post_processor, None);
    assert_eq!((summary.special_tokens, summary.special_tokens_total), (vec!["<end>".to_owned()], 1));
    assert_eq!((summary.truncates_after_tokens, summary.pads), (None, false));
    assert_eq!(loaded.tokens(&text("A b c<end>")).unwrap(), [1, 2, 0, 3]);
    assert!(loaded.tokens(&text("")).unwrap().is_empty());
}

#[test]
fn a_file_that_cuts_texts_says_so() {
    let cut = r#""truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0}"#;
    let file = tokenizer_json("").replace(r#""truncation":null"#, cut);
    let (loaded, summary) = Loaded::read(file.as_bytes()).unwrap();
    assert_eq!(summary.truncates_after_tokens, Some(2));
    assert_eq!(loaded.tokens(&text("a b a")).unwrap(), [1, 2]);
}

#[test]
fn what_is_no_tokenizer_is_refused_with_a_reason() {
    assert!(error("").contains("cannot be read as JSON"));
    assert!(error("hello").contains("at line 1 column 1"));
    assert!(error(&tokenizer_json("")[..300]).contains("cannot be read as JSON"), "a file that was cut off");
    assert!(error("[1,2]").contains("not a tokenizer.json"));
    assert!(error(r#"{"a":1}"#).contains("no \"model\""));
    assert!(error(r#"{"tokenizer_class":"X","chat_template":"{}"}"#).contains("lies beside it"));
    assert!(error(r#"{"model":{"type":"Neural"}}"#).contains("\"Neural\" is not known"));
    assert!(error(&tokenizer_json("").replace("Whitespace", "Telepathy")).contains("cannot be built"));
    let nested = format!(r#"{{"model":{}1{}}}"#, r#"{"steps":["#.repeat(100_000), "]}".repeat(100_000));
    assert!(error(&nested).contains("recursion limit"));
    let regex = r#"{"type":"Split","pattern":{"Regex":"(?<"},"behavior":"Isolated","invert":false}"#;
    let file = tokenizer_json("").replace(r#"{"type":"Whitespace"}"#, regex);
    assert!(error(&file).contains("cannot be built"));
}

#[test]
fn what_others_wrote_is_shown_only_to_some_length() {
    let long = error(&format!(r#"{{"model":{{"type":"{}"}}}}"#, "é".repeat(100_000)));
    assert!(long.chars().count() < 2 * MAX_SHOWN_CHARS);
}

#[test]
fn beyond_the_limits_nothing_is_read() {
    assert!(check_size(MAX_FILE_BYTES).is_ok());
    assert_eq!(check_size(MAX_FILE_BYTES + 1).unwrap_err(), "The file has 65 MiB; at most 64 MiB are read.");
    let (loaded, _) = Loaded::read(tokenizer_json("").as_bytes()).unwrap();
    assert!(loaded.tokens(&text(&"a".repeat(MAX_TEXT_BYTES + 1))).unwrap_err().contains("at most"));
    let spaces = |count| loaded.tokens(&text(&format!("a{}b", " ".repeat(count))));
    assert_eq!(spaces(MAX_WHITE_SPACE).unwrap(), [1, 2]);
    assert!(spaces(MAX_WHITE_SPACE + 1).unwrap_err().contains("in a row"));
}
