//! Descriptions in the file for other readers: how each channel's messages are encoded.

use crate::channel::Channel;

/// Name, encoding and text of a channel's schema, and the encoding of its messages.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) encoding: &'static str,
    pub(crate) text: &'static str,
    pub(crate) messages: &'static str,
}

impl Channel {
    pub(crate) const fn schema(self) -> Schema {
        let (name, text) = match self {
            Channel::Keyframes => ("radixscope.Keyframe", KEYFRAME),
            Channel::Batches => ("radixscope.Batch", BATCH),
            Channel::Decisions => ("radixscope.Decision", DECISION),
            Channel::Findings => ("radixscope.Finding", FINDING),
            Channel::Timeline => ("radixscope.TimelineRow", TIMELINE),
        };
        match self {
            Channel::Keyframes | Channel::Batches => {
                Schema { name, encoding: "rust", text, messages: "postcard" }
            }
            _ => Schema { name, encoding: "jsonschema", text, messages: "json" },
        }
    }
}

const KEYFRAME: &str = "\
// One byte, the version (`record_version` of the file's metadata), then postcard (https://postcard.jamesmunns.com/wire-format)
// of enum Frame { Hello, Snapshot { seq: u64, part: u32, parts: u32, bytes: &[u8] }, .. }: variant 1, one message a part.
// The bytes of all parts together are Radixscope's own form of the state after record `seq`; other readers leave it out and
// take the records of /batches, or the JSON of the other channels.
";

const BATCH: &str = concat!(
    "\
// One byte, the version (`record_version` of the file's metadata), then postcard (https://postcard.jamesmunns.com/wire-format)
// of enum Frame { Hello, Snapshot, Batch { first_seq: u64, count: u32, at_ms: u64, base_ms: u64, check: Option<[u8; 8]>,
// records: &[u8] }, .. }: variant 2. `records` holds `count` times struct { after_base_ms: i64, record: Record } without
// anything between them; a record's time is base_ms + after_base_ms in Unix milliseconds. `Record` is this; ids and hashes
// are eight bytes, the least first:

",
    include_str!("../../model/src/record.rs"),
    "\n// mod pool:\n",
    include_str!("../../model/src/record/pool.rs"),
    "\n// mod scrape:\n",
    include_str!("../../model/src/record/scrape.rs"),
    "\n// mod knowledge:\n",
    include_str!("../../model/src/record/knowledge.rs"),
    "\n// mod finding:\n",
    include_str!("../../model/src/record/finding.rs"),
);

const DECISION: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","description":"A routing decision as GET /api/v1/decisions gives it (docs/api.md), when its request ended or was last reported","properties":{"id":{"type":"string"},"at_ms":{"type":"integer"},"request_id":{"type":["string","null"]},"worker_id":{"type":"string"},"dp_rank":{"type":"integer"},"pool":{"type":"string"}},"required":["id","at_ms","worker_id","dp_rank"]}"#;

const FINDING: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","description":"A finding as it begins and as it ends","properties":{"at_ms":{"type":"integer"},"state":{"enum":["active","resolved"]},"code":{"type":"string"},"severity":{"enum":["info","warning","critical"]},"title":{"type":"string"}},"required":["at_ms","state","code","severity","title"]}"#;

const TIMELINE: &str = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","description":"One second of the deployment, as GET /history gives it","properties":{"at_ms":{"type":"integer"},"stored":{"type":"integer"},"removed":{"type":"integer"},"decisions":{"type":"integer"},"ttft_p95_ms":{"description":"milliseconds over the last minute; null: not reported"},"findings":{"type":"array"},"workers":{"type":"array"}},"required":["at_ms","stored","removed","decisions"]}"#;
