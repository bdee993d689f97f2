//! Token ids against those of others: the library's Python edition, and the KV events of a real Dynamo.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use radixscope_dynamo::envelope;
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_router::hash::{Blocking, Seed, block_hashes, chain};
use radixscope_tokenizer_messages::Text;
use serde::Deserialize;

use crate::Loaded;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn tokenizer(name: &str) -> Loaded {
    Loaded::read(&unpacked(&format!("tokenizer/{name}.json.gz"))).unwrap().0
}

#[test]
fn ids_equal_those_of_the_python_library_for_every_kind_of_model() {
    #[derive(Deserialize)]
    struct Row {
        file: String,
        text: String,
        add_special_tokens: bool,
        ids: Vec<u32>,
    }
    let rows = std::fs::read_to_string(path("tokenizer/expected.jsonl")).unwrap();
    let mut tokenizers = HashMap::new();
    for row in rows.lines() {
        let Row { file, text, add_special_tokens, ids } = serde_json::from_str(row).unwrap();
        let tokenizer = tokenizers.entry(file.clone()).or_insert_with(|| tokenizer(&file));
        let text = Text { text, add_special_tokens };
        assert_eq!(tokenizer.tokens(&text).unwrap(), ids, "{file}: {text:?}");
    }
    assert_eq!(tokenizers.len(), 5);
}

#[test]
fn the_longest_run_of_white_space_is_still_cut_as_everywhere_else() {
    let tokenizer = tokenizer("dynamo");
    let tokens = |text: String| tokenizer.tokens(&Text { text, add_special_tokens: false }).unwrap();
    // The last space belongs to the word after it.
    let (run, end) = (tokens("\n".repeat(99_999)), tokens(" x".to_owned()));
    assert_eq!(tokens(format!("{} x", "\n".repeat(99_999))), [run, end].concat());
}

/// Whether a worker said that it stored the whole of a prompt, from its first block on.
fn is_stored(capture: &str, own: &[TokensHash], chained: &[BlockHash]) -> bool {
    #[derive(Deserialize)]
    struct Line {
        s: String,
        p: String,
    }
    let lines = String::from_utf8(unpacked(&format!("captures/{capture}/nats.jsonl.gz"))).unwrap();
    let mut events = KvEvents::default();
    lines.lines().any(|line| {
        let line: Line = serde_json::from_str(line).unwrap();
        if !line.s.ends_with("kv-events") {
            return false;
        }
        let message = STANDARD.decode(line.p).unwrap();
        let body = envelope::open(&message).unwrap();
        let (payload, format) = body.payload();
        events.decode(payload, format).unwrap();
        events.events.iter().any(|event| {
            let KvData::Stored { parent: None, blocks, .. } = &event.data else { return false };
            let blocks = events.blocks_of(blocks);
            blocks.iter().map(|b| b.tokens_hash).take(own.len()).eq(own.iter().copied())
                && blocks.iter().map(|b| b.block_hash).take(own.len()).eq(chained.iter().copied())
        })
    })
}

#[test]
fn a_prompt_as_text_has_the_block_hashes_that_a_real_dynamo_published() {
    // The chat template was applied by hand. The request's response counted so many prompt tokens.
    let text = std::fs::read_to_string(path("tokenizer/prompt.txt")).unwrap();
    let tokens = tokenizer("dynamo").tokens(&Text { text, add_special_tokens: false }).unwrap();
    assert_eq!(tokens.len(), 3795);
    let blocking = Blocking { block_size_tokens: 16, is_eagle: false };
    let own = block_hashes(&tokens, blocking, Seed::PLAIN);
    assert_eq!(own.len(), 237);
    let chained = chain(&own);
    for capture in ["0.9.1-healthy", "1.6.1-healthy"] {
        assert!(is_stored(capture, &own, &chained), "{capture}");
    }
    let other = block_hashes(&tokens[1..], blocking, Seed::PLAIN);
    assert!(!is_stored("0.9.1-healthy", &other, &chain(&other)), "a token less");
}
