//! What engines' own publishers sent, without Dynamo: see `tests/fixtures/engines/record.py`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::{Recording, fixtures, json};

/// Frames of one message.
pub type Frames = Vec<Bytes>;

/// Everything that one publisher sent.
#[derive(Clone, Debug)]
pub struct EngineRecording {
    /// As it was published.
    pub live: Vec<Frames>,
    /// The same as it was sent again from the first batch on, with its end.
    pub replay: Vec<Frames>,
    /// From batch 25 on.
    pub tail: Vec<Frames>,
    /// What follows from it.
    pub expected: Expected,
}

/// What is right, as it was counted where the blocks were made.
#[derive(Clone, Debug, Deserialize)]
pub struct Expected {
    /// Batches that were published.
    pub batches: usize,
    /// Blocks in device memory at the end.
    pub held: usize,
    /// Blocks in host memory at the end.
    pub host: usize,
    /// Blocks that were stored.
    pub stored: u64,
    /// Blocks that were removed.
    pub removed: u64,
    /// Times that everything was removed.
    pub cleared: u64,
    /// The blocks in device memory by their content: the same for every engine.
    pub paths: Vec<String>,
    /// The same by the engine's hashes.
    pub hashes: Vec<String>,
}

impl EngineRecording {
    /// Those of the repository: engine, version and, for hashes as bytes, `-bytes`.
    pub const ALL: [&'static str; 8] = [
        "vllm-0.23.0",
        "vllm-0.25.0",
        "vllm-0.28.0",
        "vllm-0.32.0",
        "vllm-0.32.0-bytes",
        "sglang-0.5.18",
        "sglang-0.5.21",
        "sglang-0.5.23",
    ];

    /// What Dynamo's mocker sent in place of vLLM (1.6.1), live.
    pub fn of_mocker() -> Vec<Frames> {
        let recorded = Recording::at(fixtures().with_file_name("engines").join("mocker-1.6.1"));
        recorded.zmq_messages().map(|message| message.frames).collect()
    }

    /// One of them.
    pub fn of(name: &str) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Line {
            Live(Vec<String>),
            Replay(Vec<String>),
            Tail(Vec<String>),
            Expected(Expected),
        }
        let path = fixtures().with_file_name("engines").join(format!("{name}.jsonl.gz"));
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (mut live, mut replay, mut tail, mut expected) =
            (Vec::<Frames>::new(), Vec::new(), Vec::new(), None);
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let bytes = |frame: &String| match frame.strip_prefix('=') {
                Some(at) => live[at.parse::<usize>().expect("a number")].last().expect("frames").clone(),
                None => BASE64_STANDARD.decode(frame).expect("base64").into(),
            };
            match json(&line.expect("a line")) {
                Line::Live(frames) => {
                    let frames = frames.iter().map(bytes).collect();
                    live.push(frames);
                }
                Line::Replay(frames) => replay.push(frames.iter().map(bytes).collect()),
                Line::Tail(frames) => tail.push(frames.iter().map(bytes).collect()),
                Line::Expected(counted) => expected = Some(counted),
            }
        }
        Self { live, replay, tail, expected: expected.expect("what is expected comes last") }
    }
}
